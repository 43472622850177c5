"""Frozen classes, as `dataclass(frozen=True)` makes them, for what every recording loads.

`dataclasses` imports `inspect` and `ast`, and compiles source text for each class: a sixth of the
time of a tool that records one value and exits. `frozen` only keeps the names of the fields. All
other code uses `dataclasses`, whose functions (`replace`, `fields`, `asdict`) also take these
classes. Type checkers treat the two alike (PEP 681).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from dataclasses import Field

_Class = TypeVar("_Class")


class _Fields:
    """What `dataclasses` looks for in a class: its names; made when it is first asked for."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def __get__(self, instance: object, owner: type) -> dict[str, Field[Any]]:
        from dataclasses import make_dataclass

        made: type[Any] = make_dataclass(owner.__name__, self._names, frozen=True)
        found: dict[str, Field[Any]] = made.__dataclass_fields__
        setattr(owner, "__dataclass_fields__", found)  # noqa: B010  (its type is another)
        return found


@dataclass_transform(frozen_default=True)
def frozen(cls: type[_Class]) -> type[_Class]:
    """Give a class the methods of a frozen dataclass: those that it does not write itself.

    Its annotations name the fields, class variables excepted; the values in the class are the
    defaults. `__post_init__` is called if there is one. The annotations must be texts (`from
    __future__ import annotations`), and a frozen class inherits no fields.
    """
    names = tuple(
        name for name, kind in cls.__annotations__.items() if not kind.startswith("ClassVar")
    )
    defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    whole = set(names)
    completes = hasattr(cls, "__post_init__")
    told = ", ".join(f"{name}=..." if name in defaults else name for name in names)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        placed = dict(zip(names, args, strict=False))
        values = {**defaults, **placed, **kwargs}
        if len(args) > len(names) or placed.keys() & kwargs.keys() or values.keys() != whole:
            raise TypeError(f"{cls.__name__}() takes {told}")
        self.__dict__.update(values)
        if completes:
            self.__post_init__()

    def __eq__(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __hash__(self: Any) -> int:
        return hash(tuple(getattr(self, name) for name in names))

    def __repr__(self: Any) -> str:
        told = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({told})"

    def __setattr__(self: Any, name: str, *_: object) -> NoReturn:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot change field {name!r}")

    for method in (__init__, __eq__, __hash__, __repr__):
        if method.__name__ not in cls.__dict__:
            setattr(cls, method.__name__, method)
    for name, value in (
        ("__setattr__", __setattr__),
        ("__delattr__", __setattr__),
        ("__dataclass_fields__", _Fields(names)),
        ("__match_args__", names),
    ):
        setattr(cls, name, value)
    return cls
