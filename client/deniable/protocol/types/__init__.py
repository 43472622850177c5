"""Types of metrics by name: what `type = "..."` in the registry may say.

Adding a type means one file in this folder and its entry here: nothing else asks for a
type's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import ClassVar, cast

from deniable.protocol.types.base import Aggregate, Context, MetricType, Table, Value

__all__ = ["TYPES", "Aggregate", "Context", "MetricType", "Table", "Value"]


class _Types(Mapping[str, type[MetricType]]):
    """The types by name, each imported when it is asked for, because a device needs few of them."""

    _classes: ClassVar[Mapping[str, tuple[str, str]]] = {
        "boolean": ("texts", "Boolean"),
        "category": ("texts", "Category"),
        "string": ("texts", "String"),
        "number": ("number", "Number"),
        "pair": ("pair", "Pair"),
        "discovery": ("discovery", "Discovery"),
        "retention": ("retention", "Retention"),
    }

    def __getitem__(self, name: str) -> type[MetricType]:
        home, found = self._classes[name]
        return cast(type[MetricType], getattr(import_module(f"{__name__}.{home}"), found))

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)


TYPES: Mapping[str, type[MetricType]] = _Types()
