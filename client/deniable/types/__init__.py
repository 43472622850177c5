"""Types of metrics by name: what `type = "..."` in the registry may say.

Adding a type means one file in this folder and its entry here: nothing else asks for a
type's name.
"""

from __future__ import annotations

from deniable.types.base import Aggregate, MetricType, Table, Value
from deniable.types.boolean import Boolean
from deniable.types.category import MAX_VALUES, Category
from deniable.types.discovery import Discovery
from deniable.types.number import Number
from deniable.types.pair import MAX_PAIR_CELLS, Pair
from deniable.types.string import String

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
    "String",
    "Table",
    "Value",
]

TYPES: dict[str, type[MetricType]] = {
    each.name: each for each in (Boolean, Category, String, Number, Pair, Discovery)
}
