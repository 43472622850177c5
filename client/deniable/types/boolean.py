"""Yes or no."""

from __future__ import annotations

from typing import Any, Self

from deniable.frozen import frozen
from deniable.mechanisms import Mechanism
from deniable.randomness import Bits
from deniable.types.base import Aggregate, Table, Value, require_null
from deniable.types.closed import Closed, require_size


@frozen
class Boolean(Closed):
    """True or False, kept as the texts "true" and "false"."""

    name = "boolean"
    foreign = dict.fromkeys(("values", "values_file"), "it is true or false")
    aggregates = ("last", "first", "any", "max")
    values = ("true", "false")

    @classmethod
    def from_compiled(cls, table: Table, mechanism: Mechanism[Any]) -> Self | None:
        require_null(cls.name, table, "other", "unit")
        if table.settings["values"] != list(cls.values):
            table.report("values", f"of a boolean must be {list(cls.values)}")
            return None
        require_size(table, mechanism)
        return cls()

    def normalize(self, value: Value) -> str:
        if not isinstance(value, bool):
            raise ValueError(f"takes True or False, not {type(value).__name__}")
        return "true" if value else "false"

    def merge(self, aggregate: Aggregate, value: str, text: str, records: int, bits: Bits) -> str:
        if aggregate == "max":
            return "true" if "true" in (value, text) else "false"
        return super().merge(aggregate, value, text, records, bits)
