"""Types whose values are texts: yes or no, one of a list of values, and any string."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

from deniable.protocol import value_list
from deniable.protocol.checks import Check, texts
from deniable.protocol.checks import text as is_text
from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.errors import ValueListError
from deniable.protocol.frozen import frozen
from deniable.protocol.mechanisms import FrequencyOracle, Mechanism, design, names
from deniable.protocol.randomness import Bits
from deniable.protocol.types.base import Aggregate, MetricType, Table, Value


class _Texts(MetricType):
    @classmethod
    def mechanisms(cls, *, memoize: bool) -> tuple[str, ...]:
        return names(closed=not cls.needs_candidates, memoize=memoize)

    def _design(
        self, mechanism: str, metric: str, epsilon: float, memo_epsilon: float | None
    ) -> Mechanism[Any]:
        return design(mechanism, len(self.values) or None, epsilon, memo_epsilon, salt=metric)


class Closed(_Texts):
    """A type with a list of values: mechanisms know them by their places in it."""

    def item(self, text: str, mechanism: Mechanism[Any]) -> int | str:
        place = self.place(text)
        assert isinstance(mechanism, FrequencyOracle)
        return self.values[place] if mechanism.size is None else place

    def place(self, text: str) -> int:
        """The place of a normalized text in the list, from 0.

        Raises:
            KeyError: it is no value, as the registry has changed since it was recorded.
        """
        return self.places[text]

    def explain(self, metric: str, epsilon: float, memo_epsilon: float | None) -> CodedMessage:
        from deniable.protocol.mechanisms.choice import choose  # a device explains nothing

        return choose(len(self.values), epsilon, memo_epsilon, salt=metric)[1]

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each value in the list, from 0."""
        return {value: place for place, value in enumerate(self.values)}


@frozen
class Boolean(Closed):
    """True or False, kept as the texts "true" and "false"."""

    name = "boolean"
    foreign = dict.fromkeys(("values", "values_file"), "it is true or false")
    aggregates = ("last", "first", "any", "max")
    values = ("true", "false")

    def normalize(self, value: Value) -> str:
        if not isinstance(value, bool):
            found = type(value)
            full = f"{found.__module__}.{found.__qualname__}".removeprefix("builtins.")
            raise ValueError(f"takes True or False, not {full}")
        return "true" if value else "false"

    def merge(self, aggregate: Aggregate, value: str, text: str, records: int, bits: Bits) -> str:
        if aggregate == "max":
            return "true" if "true" in (value, text) else "false"
        return super().merge(aggregate, value, text, records, bits)


MAX_VALUES = 1 << 20
"""The most values that may be listed."""

_OTHER = "other"
"""A value of that name stands for the rest, if the metric does not say another."""


@frozen
class Category(Closed):
    """One of the declared values, in normal form C; what is none of them is `other`, if that is
    declared, and refused if not."""

    name = "category"
    keys: ClassVar[Mapping[str, Check]] = {
        "values": texts,
        "values_file": is_text,
        # A compiled registry also says that there is none.
        "other": lambda value: None if value is None else is_text(value),
    }

    values: tuple[str, ...]
    other: str | None = None

    @classmethod
    def read(cls, table: Table) -> Self | None:
        values = _values(table)
        other = table.settings.get("other", _OTHER if _OTHER in values else None)
        if other is not None:
            other, told = unicodedata.normalize("NFC", other), other
            if other not in values:
                table.report("other", f"is {told!r}, which is not one of the values")
        return cls(values, other) if values else None

    def normalize(self, value: Value) -> str:
        return value_list.listed_value(value, self.places, self.other)

    def place(self, text: str) -> int:
        # An app may be upgraded inside a window, and the value leave the domain.
        known = self.other is None or text in self.places
        return super().place(text if known else str(self.other))

    def stands_in(self, text: str, value: Value) -> bool:
        if text != self.other or not isinstance(value, str):
            return False
        return value_list.normal_form(value) not in self.places


def _values(table: Table) -> tuple[str, ...]:
    settings = table.settings
    key = "values" if "values" in settings else "values_file"
    if key not in settings:
        table.report(None, 'lacks values: list them, like ["yes", "no"], or name a values_file')
        return ()
    if "values_file" in settings and key == "values":
        table.report(None, "has both values and values_file: keep one of them")
        return ()
    if key == "values":
        values = [unicodedata.normalize("NFC", value) for value in settings[key]]
        value_list.report_mistakes(key, values, table.report)
    else:
        try:
            values = value_list.read_values(os.path.join(table.context.folder, settings[key]))
        except ValueListError as error:
            table.report(key, str(error))
            return ()
    if not 2 <= len(values) <= MAX_VALUES:
        table.report(key, f"must list from 2 to {MAX_VALUES:,} values, not {len(values):,}")
        return ()
    return tuple(values)


@frozen
class String(_Texts):
    """What `deniable.protocol.value_list` calls a value: 1 to 1,024 bytes without control
    characters, not all blank."""

    name = "string"
    foreign = dict.fromkeys(
        ("values", "values_file"), "its candidates are named when it is estimated"
    )
    needs_candidates = True

    @classmethod
    def suits(cls, mechanism: Mechanism[Any]) -> bool:
        return isinstance(mechanism, FrequencyOracle) and mechanism.size is None

    def normalize(self, value: Value) -> str:
        return value_list.clean_text(value, value_list.value_text)

    def item(self, text: str, mechanism: Mechanism[Any]) -> str:
        return text

    def explain(self, metric: str, epsilon: float, memo_epsilon: float | None) -> CodedMessage:
        if memo_epsilon is None:
            return CodedMessage(
                "any_string",
                "hashed projective geometry takes any string and needs the fewest devices",
            )
        return CodedMessage("any_string_memo", "cohort local hashing of a memo takes any string")
