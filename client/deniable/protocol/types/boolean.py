"""Yes or no."""

from __future__ import annotations

from deniable.protocol.frozen import frozen
from deniable.protocol.randomness import Bits
from deniable.protocol.types.base import Aggregate, Value
from deniable.protocol.types.closed import Closed


@frozen
class Boolean(Closed):
    """True or False, kept as the texts "true" and "false"."""

    name = "boolean"
    foreign = dict.fromkeys(("values", "values_file"), "it is true or false")
    aggregates = ("last", "first", "any", "max")
    values = ("true", "false")

    def normalize(self, value: Value) -> str:
        if not isinstance(value, bool):
            raise ValueError(f"takes True or False, not {type(value).__name__}")
        return "true" if value else "false"

    def merge(self, aggregate: Aggregate, value: str, text: str, records: int, bits: Bits) -> str:
        if aggregate == "max":
            return "true" if "true" in (value, text) else "false"
        return super().merge(aggregate, value, text, records, bits)
