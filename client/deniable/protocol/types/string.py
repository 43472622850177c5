"""Any string: its candidates are named when it is estimated."""

from __future__ import annotations

from typing import Any

from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.frozen import frozen
from deniable.protocol.mechanisms import (
    MEMOIZED_STRING_DESIGNS,
    STRING_DESIGNS,
    FrequencyOracle,
    Mechanism,
    design,
)
from deniable.protocol.types.base import MetricType, Value
from deniable.protocol.value_list import clean_text, value_text


@frozen
class String(MetricType):
    """What `deniable.protocol.value_list` calls a value: 1 to 1,024 bytes without control
    characters, not all blank."""

    name = "string"
    foreign = dict.fromkeys(
        ("values", "values_file"), "its candidates are named when it is estimated"
    )
    needs_candidates = True
    without_memos = tuple(STRING_DESIGNS)
    with_memos = tuple(MEMOIZED_STRING_DESIGNS)

    @classmethod
    def suits(cls, mechanism: Mechanism[Any]) -> bool:
        return isinstance(mechanism, FrequencyOracle) and mechanism.size is None

    def normalize(self, value: Value) -> str:
        return clean_text(value, value_text)

    def item(self, text: str, mechanism: Mechanism[Any]) -> str:
        return text

    def _design(
        self, mechanism: str, metric: str, epsilon: float, memo_epsilon: float | None
    ) -> Mechanism[Any]:
        return design(mechanism, None, epsilon, memo_epsilon, salt=metric)

    def explain(self, metric: str, epsilon: float, memo_epsilon: float | None) -> CodedMessage:
        if memo_epsilon is None:
            return CodedMessage(
                "any_string",
                "hashed projective geometry takes any string and needs the fewest devices",
            )
        return CodedMessage("any_string_memo", "cohort local hashing of a memo takes any string")
