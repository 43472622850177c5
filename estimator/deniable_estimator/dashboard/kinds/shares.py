"""Shares on the pages: bars with their intervals, those below the noise folded away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deniable import Metric
from deniable_estimator.answers.base import Comparison
from deniable_estimator.answers.shares import Shares
from deniable_estimator.dashboard import words
from deniable_estimator.dashboard.charts import BarChart, bar_chart, folded_chart
from deniable_estimator.dashboard.kinds.base import Kind
from deniable_estimator.dashboard.table import table
from deniable_estimator.dashboard.view import LONGEST_SEARCH, View
from deniable_estimator.messages import message

_CHART_BARS = 40
_NOISE_BARS = 20
_CARD_BARS = 5
_TABLE_LINES = 100
"""How many values fit into a page of 100 KB; a link lists all."""
_ALL_LINES = 10_000
"""For longer lists, only the files contain every value."""
_SEARCHED = 8
"""A longer table has a field to search in."""
_SMALL = 6
"""How many values are offered to be seen over time."""


class SharesKind(Kind[Shares]):
    """How devices are spread over values."""

    template = "kinds/shares.html"
    picture_template = "kinds/shares.svg"

    def headline(self, answer: Shares) -> str:
        return words.headline(answer)

    def unsound(self, answer: Shares) -> str | None:
        return words.impossible(answer) if answer.impossible.any() else None

    def attention(self, answer: Shares) -> Sequence[str]:
        sound = answer.n and not answer.impossible.any()
        return (words.NOTHING_STANDS_OUT,) if sound and not answer.detected.any() else ()

    def new_leader(self, before: Shares, newest: Shares) -> str | None:
        """Both lead by intervals that do not overlap, although the larger of d values leads by
        chance more easily than one that is named beforehand: the intervals are of level
        1 - .05 / d."""
        new, old = newest.leading, before.leading
        if newest.boolean or new == old or not {new, old} <= {*newest.values} & {*before.values}:
            return None
        for answer, first, second in ((newest, new, old), (before, old, new)):
            level = 1 - (1 - answer.level) / len(answer.values)
            _, low, high = answer.at(answer.places((first, second)), level)
            if not low[0] > high[1]:
                return None
        return message("{new} leads now; before this, {old} did.", new=new, old=old)

    def parts(
        self, answer: Shares, view: View, comparison: Comparison | None = None
    ) -> dict[str, Any]:
        declared = view.order == "declared"
        return {
            "folded": folded_chart(
                answer,
                limit=_CHART_BARS,
                noise_limit=_NOISE_BARS,
                declared_order=declared,
                normalized=view.shares == "normalized",
            ),
            "lines": table(
                answer,
                _ALL_LINES if view.lines == "all" else _TABLE_LINES,
                declared_order=declared,
                comparison=comparison,
                sort=view.sort,
                find=view.find,
            ),
            "all_lines": _ALL_LINES,
            "searched": _SEARCHED,
            "longest_search": LONGEST_SEARCH,
        }

    def picture(self, answer: Shares, view: View, limit: int) -> BarChart:
        return bar_chart(
            answer,
            limit=limit,
            declared_order=view.order == "declared",
            normalized=view.shares == "normalized",
        )

    def card(self, answer: Shares) -> BarChart:
        return bar_chart(answer, limit=1 if answer.boolean else _CARD_BARS)

    def over_time(self, answer: Shares, chosen: Sequence[str]) -> list[str]:
        """The largest values, and the chosen ones; of a boolean "true" alone."""
        if answer.boolean:
            return ["true"]
        largest = [answer.values[i] for i in answer.order[:_SMALL]]
        return [*largest, *(value for value in chosen if value not in largest)]

    def asked(self, metric: Metric, shown: Sequence[str]) -> Sequence[str] | None:
        """Of many values only those that are shown need be estimated. The shares of a number, which
        a pair of it gives, are of ranges, and these cannot be asked for by name."""
        return None if metric.type.name == "number" or metric.values == ("true", "false") else shown
