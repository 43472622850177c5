"""Who comes back on the pages: the lifecycle, the average curve, each cohort, and growth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deniable_estimator.answers.base import Comparison
from deniable_estimator.answers.retention import RetentionAnswer
from deniable_estimator.answers.retention_words import (
    devices_between,
    devices_text,
    finding_words,
    growth_words,
    impossible_words,
    quick_text,
)
from deniable_estimator.dashboard.charts.retention import RetentionChart, retention_chart
from deniable_estimator.dashboard.kinds.base import Kind
from deniable_estimator.dashboard.kinds.numbers import NumberLine, number_lines
from deniable_estimator.dashboard.view import View
from deniable_estimator.dashboard.words import NOTHING_STANDS_OUT

_COHORTS = 26
"""Half a year of weeks; the files have all of them."""

_WINDOWS = 13
"""Windows of the table of growth."""

_SMALL = 6
"""How many series are offered to be seen over time."""


@dataclass(frozen=True, slots=True)
class GrowthLine:
    """One window of the table of growth."""

    window: str
    active: str
    new: str
    stayed: str
    returned: str
    lost: str
    between: str
    quick: str


class RetentionKind(Kind[RetentionAnswer]):
    """Who is new, who stays, who comes back."""

    template = "kinds/retention.html"
    picture_template = "kinds/retention.svg"

    def headline(self, answer: RetentionAnswer) -> str:
        return finding_words(answer)

    def unsound(self, answer: RetentionAnswer) -> str | None:
        return impossible_words(answer)

    def attention(self, answer: RetentionAnswer) -> Sequence[str]:
        """Where nothing is known of the leading series."""
        if not answer.n or impossible_words(answer):
            return ()
        place = answer.series.place(answer.leading)
        assert place is not None
        return (NOTHING_STANDS_OUT,) if math.isnan(answer.series.value[place]) else ()

    def parts(
        self, answer: RetentionAnswer, view: View, comparison: Comparison | None = None
    ) -> dict[str, Any]:
        return {
            "chart": retention_chart(answer, _COHORTS),
            "lines": number_lines(answer, comparison),
            "growth": _growth_lines(answer),
            "growing": growth_words(answer),
            "worst": answer.unit.text(answer.budget, answer.budget),
        }

    def picture(self, answer: RetentionAnswer, view: View, limit: int) -> RetentionChart:
        return retention_chart(answer, _WINDOWS)

    def card(self, answer: RetentionAnswer) -> NumberLine:
        """The leading series."""
        lines = dict(zip(answer.series.names, number_lines(answer), strict=True))
        return lines[answer.leading]

    def over_time(self, answer: RetentionAnswer, chosen: Sequence[str]) -> list[str]:
        """The leading series first, the lifecycle, and some ages."""
        names = answer.series.names
        shown = [answer.leading, *(name for name in names if name != answer.leading)][:_SMALL]
        return [*shown, *(each for each in chosen if each in names and each not in shown)]


def _growth_lines(answer: RetentionAnswer) -> tuple[GrowthLine, ...]:
    """The newest windows, the newest first."""
    return tuple(
        GrowthLine(
            window=each.window,
            active=f"{each.active:,.0f}",
            new=devices_text(each.new),
            stayed=devices_text(each.stayed),
            returned=devices_text(each.returned),
            lost="" if each.lost is None else devices_text(each.lost),
            between="" if each.lost is None else devices_between(each.lost),
            quick=quick_text(each),
        )
        for each in reversed(answer.growth[-_WINDOWS:])
    )
