"""Types of metrics by name: what `type = "..."` in the registry may say.

Adding a type means one file in this folder and its entry here: nothing else asks for a
type's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, cast

from deniable.protocol import lazy_names
from deniable.protocol.types.base import Aggregate, MetricType, Table, Value

if TYPE_CHECKING:
    from deniable.protocol.types.closed import MAX_VALUES, Boolean, Category
    from deniable.protocol.types.discovery import Discovery
    from deniable.protocol.types.number import Number
    from deniable.protocol.types.pair import Pair
    from deniable.protocol.types.pair_parts import MAX_PAIR_CELLS
    from deniable.protocol.types.retention import Retention
    from deniable.protocol.types.string import String

__all__ = [
    "MAX_PAIR_CELLS",
    "MAX_VALUES",
    "TYPES",
    "Aggregate",
    "Boolean",
    "Category",
    "Discovery",
    "MetricType",
    "Number",
    "Pair",
    "Retention",
    "String",
    "Table",
    "Value",
    "joins",
]

_HOMES = {
    "Boolean": "closed",
    "Category": "closed",
    "Discovery": "discovery",
    "MAX_PAIR_CELLS": "pair_parts",
    "MAX_VALUES": "closed",
    "Number": "number",
    "Pair": "pair",
    "Retention": "retention",
    "String": "string",
}
"""The module of each name that is not imported above."""

if not TYPE_CHECKING:
    # A type is imported when it is first used, because a device needs few of them. Type checkers
    # read the imports above.
    __getattr__, __dir__ = lazy_names(globals(), _HOMES)


class _Types(Mapping[str, type[MetricType]]):
    """The types by name, each imported when it is asked for."""

    _classes: ClassVar[Mapping[str, str]] = {
        "boolean": "Boolean",
        "category": "Category",
        "string": "String",
        "number": "Number",
        "pair": "Pair",
        "discovery": "Discovery",
        "retention": "Retention",
    }

    def __getitem__(self, name: str) -> type[MetricType]:
        found = self._classes[name]
        home = import_module(f"{__name__}.{_HOMES[found]}")
        return cast(type[MetricType], getattr(home, found))

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __contains__(self, name: object) -> bool:
        return name in self._classes

    def __len__(self) -> int:
        return len(self._classes)


TYPES: Mapping[str, type[MetricType]] = _Types()


def joins(name: object) -> bool:
    """Whether a metric whose type has this name joins others, and so must be read after them."""
    return isinstance(name, str) and name in TYPES and TYPES[name].joins
