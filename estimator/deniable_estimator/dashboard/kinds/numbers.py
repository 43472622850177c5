"""Numbers on the pages: a distribution as a histogram with its quantiles and the shares below any
limit, a mean on the scale of its range, and what answers with series have in common.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from deniable_estimator.analyses.base import FAKES
from deniable_estimator.analyses.numbers.distribution import RangeShare
from deniable_estimator.answers.base import Answer, Comparison
from deniable_estimator.answers.distribution import Distribution
from deniable_estimator.answers.mean import Mean
from deniable_estimator.answers.units import SHARES, NumberUnit
from deniable_estimator.dashboard.changes import ChangeText, change_texts
from deniable_estimator.dashboard.kinds.base import Kind
from deniable_estimator.dashboard.kinds.number_charts import (
    MOST_BARS,
    curve_chart,
    histogram_chart,
    scale_chart,
)
from deniable_estimator.dashboard.ranges import RangeError
from deniable_estimator.dashboard.view import View
from deniable_estimator.dashboard.words import NOTHING_STANDS_OUT, SeriesText, series_text
from deniable_estimator.document.plot.marks import Columns, Dots
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import joined, message, sentence


@dataclass(frozen=True, slots=True)
class NumberLine:
    """One line of the table."""

    name: str
    text: SeriesText
    change: ChangeText | None = None


def number_lines(answer: Answer, comparison: Comparison | None = None) -> tuple[NumberLine, ...]:
    """Each series of an answer, in its order, with its change in a comparison."""
    series, unit = answer.series, answer.unit
    columns = (series.value, series.low, series.high, series.std_error)
    changes = {} if comparison is None else change_texts(comparison, series.names)
    return tuple(
        NumberLine(unit.label(name), series_text(unit, *map(float, numbers)), changes.get(name))
        for name, *numbers in zip(series.names, *columns, strict=True)
    )


def worst_case(unit: NumberUnit, budget: float) -> str:
    """What fakes add at most, in the unit."""
    return unit.full(budget, budget)


_HISTOGRAM_HEIGHT = 200
_CURVE_HEIGHT = 160
_CARD_HEIGHT = 96
_CARD_BARS = 32

_BELOW = sentence("{part} are below {estimate} ({level:.0%} interval {between})")
_AT_OR_BELOW = sentence("{part} are at {estimate} or below ({level:.0%} interval {between})")
_HALF = message("Half of the devices")
_MOST = message("95%")
_ONE_SIDED = sentence("{name}: {estimate}")
_TOO_FEW = sentence(
    "Too few devices have reported to tell where half of them lie: it takes more reports, or a "
    "longer range."
)


class DistributionKind(Kind[Distribution]):
    """How a number is distributed."""

    template = "kinds/distribution.html"

    def headline(self, answer: Distribution) -> str:
        lines = dict(zip(answer.series.names, number_lines(answer), strict=True))
        if _unknown(answer):
            return message(_TOO_FEW)
        told = [
            _quantile_words(answer, name, lines[name], part) for name, part in _HEADLINE.items()
        ]
        return message("{told}.", told=joined(told))

    def attention(self, answer: Distribution) -> Sequence[str]:
        return (NOTHING_STANDS_OUT,) if answer.n and _unknown(answer) else ()

    def parts(
        self, answer: Distribution, view: View, comparison: Comparison | None = None
    ) -> dict[str, Any]:
        limit, below, mistake = None, None, None
        if view.limit is not None:
            try:
                limit = read_limit(view.limit)
                below = _below(answer, limit)
            except EstimateError as error:
                mistake = RangeError(message("“limit”: {mistake}.", mistake=str(error)), "limit")
            except RangeError as error:
                mistake = error
        fakes = answer.fakes / FAKES
        moved = max(answer.attack.gain, answer.attack.loss) * fakes
        return {
            "chart": self.picture(answer, view, MOST_BARS),
            "curve": curve_chart(
                answer,
                height=_CURVE_HEIGHT,
                name=f"{answer.metric}-below",
                limit=None if below is None else limit,
            ),
            "lines": number_lines(answer, comparison),
            "outside": _outside(answer),
            "below": below,
            "mistake": mistake,
            "moved": SHARES.text(moved, moved),
            "worst": worst_case(answer.unit, answer.budget),
            "log": answer.mean.log,
            "mean_name": answer.unit.label(answer.series.names[-1]),
        }

    def picture(self, answer: Distribution, view: View, limit: int) -> Columns:
        bars = MOST_BARS if limit > _CARD_BARS else _CARD_BARS
        return histogram_chart(answer, height=_HISTOGRAM_HEIGHT, name=answer.metric, limit=bars)

    def card(self, answer: Distribution) -> Columns:
        return histogram_chart(answer, height=_CARD_HEIGHT, name=answer.metric, limit=_CARD_BARS)

    def over_time(self, answer: Distribution, chosen: Sequence[str]) -> list[str]:
        """Each quantile, and the mean."""
        return list(answer.series.names)


_HEADLINE = {"p50": _HALF, "p95": _MOST}
"""The series that the headline tells, and the part of the devices that lies below it."""


def read_limit(text: str) -> float:
    """The limit that somebody has typed in.

    Raises:
        RangeError: it is no number.
    """
    try:
        limit = float(text)
    except ValueError:
        limit = math.nan
    if not math.isfinite(limit):
        raise RangeError(
            message("“limit” is not a number. Write one like 2.5, without its unit."), "limit"
        )
    return limit


def _unknown(answer: Distribution) -> bool:
    """Whether nothing is known of the median."""
    return not any(map(math.isfinite, (answer.series.low[0], answer.series.high[0])))


def _below(answer: Distribution, limit: float) -> dict[str, Any]:
    """The shares below a limit, and at it or above; whether it is inside of a cell."""
    found, unit = answer.share_below(limit), answer.unit
    rest = RangeShare(1 - found.share, found.variance, 1 - found.high, 1 - found.low)
    return {
        "limit": unit.exact(limit),
        "below": _share(found),
        "above": _share(rest),
        "interpolated": found.interpolated,
    }


def _outside(answer: Distribution) -> tuple[NumberLine, NumberLine]:
    """The shares that lie outside of the range."""
    unit, numbers = answer.unit, answer.range
    low, high = unit.exact(numbers.start), unit.exact(numbers.end)
    return (
        NumberLine(message("below {number}", number=low), _share(answer.below)),
        NumberLine(message("{number} or above", number=high), _share(answer.above)),
    )


def _share(found: RangeShare) -> SeriesText:
    return series_text(SHARES, found.share, found.low, found.high, math.sqrt(found.variance))


def _quantile_words(answer: Distribution, name: str, line: NumberLine, part: str) -> str:
    place, text = answer.series.names.index(name), line.text
    if not all(math.isfinite(ends[place]) for ends in (answer.series.low, answer.series.high)):
        return message(_ONE_SIDED, name=name, estimate=text.estimate)
    template = _AT_OR_BELOW if answer.range.integer else _BELOW
    return message(
        template,
        part=part,
        estimate=text.estimate,
        level=answer.level,
        between=text.between,
    )


_MEAN = sentence("The mean is {estimate}; the {level:.0%} interval is {between}.")
_GEOMETRIC = sentence("The geometric mean is {estimate}; the {level:.0%} interval is {between}.")


class MeanKind(Kind[Mean]):
    """The average of a number."""

    template = "kinds/mean.html"

    def headline(self, answer: Mean) -> str:
        text = _line(answer).text
        template = _GEOMETRIC if answer.mean.log else _MEAN
        return message(template, estimate=text.estimate, level=answer.level, between=text.between)

    def parts(
        self, answer: Mean, view: View, comparison: Comparison | None = None
    ) -> dict[str, Any]:
        return {
            "chart": self.picture(answer, view, 0),
            "lines": number_lines(answer, comparison),
            "worst": worst_case(answer.unit, answer.budget),
            "log": answer.mean.log,
        }

    def picture(self, answer: Mean, view: View, limit: int) -> Dots:
        return scale_chart(answer, name=answer.metric)

    def card(self, answer: Mean) -> Dots:
        return scale_chart(answer, name=answer.metric)

    def over_time(self, answer: Mean, chosen: Sequence[str]) -> list[str]:
        return [answer.leading]


def _line(answer: Mean) -> NumberLine:
    return number_lines(answer)[0]
