"""Frozen classes behave as frozen dataclasses do."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

import pytest

from deniable.protocol.frozen import frozen

_NOTHING: Mapping[str, int] = {}


@frozen
class Point:
    """A class with every feature that `frozen` knows."""

    kind: ClassVar[str] = "point"
    x: int
    y: int = 2
    names: Mapping[str, int] = _NOTHING

    def __post_init__(self):
        if self.x < 0:
            raise ValueError("x is negative")

    @cached_property
    def total(self):
        return self.x + self.y


@dataclasses.dataclass(frozen=True)
class Twin:
    """The same as a dataclass."""

    kind: ClassVar[str] = "point"
    x: int
    y: int = 2
    names: Mapping[str, int] = dataclasses.field(default_factory=dict)


@frozen
class Pair:
    """A class whose fields can be hashed, and one of whose fields does not count in comparing."""

    name: str
    note: str = ""

    def __eq__(self, other):
        return isinstance(other, Pair) and self.name == other.name

    def __hash__(self):
        return hash(self.name)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((), {"y": 1}),
        ((1, 2, {}, 4), {}),
        ((1,), {"x": 2}),
        ((1,), {"z": 2}),
        ((1, 2, {}), {"z": 2}),
    ],
)
def test_refuses_other_arguments(args, kwargs):
    """A call that a dataclass refuses is refused, and the error names the fields."""
    with pytest.raises(TypeError):
        Twin(*args, **kwargs)
    with pytest.raises(TypeError, match=r"Point\(\) takes x, y="):
        Point(*args, **kwargs)


def test_cannot_be_changed():
    """Fields can be neither assigned nor deleted, with the error of dataclasses."""
    made = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        made.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        del made.x
    assert made.x == 1


def test_compares_and_hashes_by_its_fields():
    """Equal fields of the same class are equal; methods that a class writes itself stay."""
    assert Point(1) == Point(1, 2) != Point(1, 3)
    assert Point(1) != Twin(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point(1))  # as a dataclass with a dictionary in it
    assert Pair("a", "first") == Pair("a", "second") != Pair("b")
    assert len({Pair("a", "first"), Pair("a", "second")}) == 1


def test_serves_the_functions_of_dataclasses():
    """`replace`, `fields`, `asdict` and `is_dataclass` take instances, and `match` takes fields."""
    made = Point(1)
    assert made.total == 3
    changed = dataclasses.replace(made, y=7)
    assert (changed.x, changed.y, changed.total) == (1, 7, 8)
    assert [each.name for each in dataclasses.fields(made)] == [
        each.name for each in dataclasses.fields(Twin)
    ]
    assert dataclasses.asdict(made) == {"x": 1, "y": 2, "names": {}}
    assert dataclasses.is_dataclass(Point)
    match made:
        case Point(x, y):
            assert (x, y) == (1, 2)
        case _:
            pytest.fail("no match")
