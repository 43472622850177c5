"""What types have in common whose values are listed."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.mechanisms import (
    FrequencyOracle,
    Mechanism,
    Memoizing,
    design,
    design_memoized,
    names,
)
from deniable.protocol.types.base import MetricType


class Closed(MetricType):
    """A type with a list of values: mechanisms know them by their places in it."""

    @classmethod
    def mechanisms(cls, *, memoize: bool) -> tuple[str, ...]:
        return names(closed=True, memoize=memoize)

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

    def design(self, mechanism: str, metric: str, epsilon: float) -> Mechanism[Any]:
        return design(mechanism, len(self.values), epsilon)

    def design_memoized(
        self, mechanism: str, metric: str, epsilon: float, memo_epsilon: float
    ) -> Memoizing[Any]:
        return design_memoized(mechanism, metric, len(self.values), epsilon, memo_epsilon)

    def explain(self, metric: str, epsilon: float, memo_epsilon: float | None) -> CodedMessage:
        from deniable.protocol.mechanisms import choice  # a device explains nothing

        size = len(self.values)
        if memo_epsilon is None:
            return choice.explain(size, epsilon).reason
        return choice.explain_memoized(size, metric, epsilon, memo_epsilon).reason

    def loss(self, mechanism: Mechanism[Any], epsilon: float) -> float:
        from deniable.protocol.mechanisms import choice

        assert isinstance(mechanism, FrequencyOracle)
        return choice.loss(mechanism, len(self.values), epsilon)

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each value in the list, from 0."""
        return {value: place for place, value in enumerate(self.values)}
