"""Numbers in words: a distribution with its quantiles and the shares below any limit, a mean, and
what answers with series have in common.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from deniable_estimator.analyses.base import FAKES
from deniable_estimator.analyses.numbers import HistogramAnalysis
from deniable_estimator.analyses.numbers.distribution import RangeShare
from deniable_estimator.analyses.numbers.sliding_window import SlidingWindowAnalysis
from deniable_estimator.document.document import Column, Estimate, Frame, Picture
from deniable_estimator.document.units import SHARES
from deniable_estimator.kinds import formats
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.basis import Part
from deniable_estimator.kinds.kind import Card, Kind, Shown
from deniable_estimator.kinds.numbers import charts
from deniable_estimator.kinds.numbers.distribution import (
    Distribution,
    combine_distributions,
    estimate_distribution,
    series_names,
)
from deniable_estimator.kinds.numbers.mean import Mean, combine_means, estimate_mean
from deniable_estimator.messages import joined, message, sentence, spaced
from deniable_estimator.statistics.significance import Adjustment

_HISTOGRAM_HEIGHT = 200
_CARD_HEIGHT = 96
_CARD_BARS = 32


_BELOW = sentence("{part} are below {estimate} ({level:.0%} interval {between})")
_AT_OR_BELOW = sentence("{part} are at {estimate} or below ({level:.0%} interval {between})")
_HALF = message("Half of the devices")
_MOST = message("95%")
_HEADLINE = {"p50": _HALF, "p95": _MOST}
"""The series that the headline tells, and the part of the devices that lies below it."""
_ONE_SIDED = sentence("{name}: {estimate}")
_TOO_FEW = sentence(
    "Too few devices have reported to tell where half of them lie: it takes more reports, or a "
    "longer range."
)
_MEAN = sentence("The mean is {estimate}; the {level:.0%} interval is {between}.")
_GEOMETRIC = sentence("The geometric mean is {estimate}; the {level:.0%} interval is {between}.")

EVERYONE = message(
    "The numbers are those of all devices that could report, on average over the period; the "
    "devices that did report are taken for a random sample of them."
)
_LOG = message(
    "The geometric mean is the mean of the logarithms, as a number again. A few very large numbers "
    "hardly move it, and it is usually below the ordinary mean, which cannot be told from a "
    "logarithmic scale."
)
_QUANTILES = message(
    "p90 is the number that 90% of the devices are below. The bars are the likeliest shares and "
    "have no intervals: noise makes some of them too high and others too low."
)
_ENDS = message(
    "Numbers below the range count as its lower end, and those above it as its upper end; a mean "
    'does not show how many there are. Declare the metric with `ask = "distribution"` for one '
    "release to see them."
)
_POISONING = message(
    "The poisoning budget: a fake device may send whatever moves a number most. A small epsilon "
    "makes each of them count for more."
)


def series_frame(
    answer: Answer,
    shown: Shown,
    first: str,
    *more: tuple[Column, Sequence[Any]],
    axis: tuple[float, float] | None = None,
) -> Frame:
    """The table of an answer with series: a row for each that is listed, in its order, with its
    change in a comparison; `more` are columns at the end."""
    series, unit = answer.series, answer.unit
    changes = formats.change_cells(shown.comparison, series.names)
    rows = []
    for place, name in enumerate(series.names):
        if name not in answer.listed:
            continue
        (value, low, high), error = series.at(name), series.std_error.item(place)
        known = None
        if shown.truth is not None:
            known = unit.full(_true(shown.truth, name), max(0.001, (high - low) / 2))
        cells = (
            formats.estimate_of(unit, value, low, high, axis=axis),
            changes.get(name),
            formats.error_of(unit, error),
        )
        rows.append((unit.label(name), known, *cells, *(each[place] for _, each in more)))
    table = (
        Column("series", first, "words"),
        Column("truth", message("Truth"), data_only=shown.truth is None),
        formats.estimate_column(answer, scale=axis and ("0", "100%")),
        change_column(answer, shown),
        Column("std_error", message("Std. error")),
        *(column for column, _ in more),
    )
    return Frame("series", "", table, rows)


def _true(truth: Any, name: str) -> float:
    known = truth.series(name) if hasattr(truth, "series") else truth.get(name, math.nan)
    return float(known)


def change_column(answer: Answer, shown: Shown) -> Column:
    """The changes of a comparison, if there is one."""
    title = formats.change_title(answer.unit)
    return Column("change", title, sort="change", data_only=shown.comparison is None)


def poisoning(answer: Answer, text: str) -> str:
    """What fakes could do at most."""
    fakes = f"{answer.fakes * 100:.3g}"
    told = message("Worst case with {fakes}% fake devices: {text}.", fakes=fakes, text=text)
    return spaced((told, _POISONING))


def _reach(answer: Mean | Distribution, reaches: Sequence[tuple[float, float]]) -> Any:
    """The column that says between which numbers fakes could put each series."""
    title = message("With {fakes}% fakes", fakes=f"{answer.fakes * 100:.3g}")
    series, unit = answer.series, answer.unit
    spreads = (series.high - series.low) / 2
    told = [
        unit.interval(*ends, float(spread)) for ends, spread in zip(reaches, spreads, strict=True)
    ]
    return Column("reach", title, aside=True), told


def _interval_key(answer: Answer) -> tuple[str, str]:
    return "number", message("estimate and {level}% interval", level=f"{answer.level * 100:g}")


class DistributionKind(Kind[Distribution]):
    """How a number is distributed."""

    answer = Distribution
    analysis = HistogramAnalysis
    combine = staticmethod(combine_distributions)
    series_of = staticmethod(series_names)

    @staticmethod
    def estimate(part: Part, level: float, adjust: Adjustment) -> Distribution:
        return estimate_distribution(part, level)

    def headline(self, answer: Distribution) -> str:
        if self.unknown(answer):
            return message(_TOO_FEW)
        told = [_quantile_words(answer, name, part) for name, part in _HEADLINE.items()]
        return message("{told}.", told=joined(told))

    def unknown(self, answer: Distribution) -> bool:
        """Whether nothing is known of the median."""
        return not any(map(math.isfinite, (answer.series.low[0], answer.series.high[0])))

    def reading(self, answer: Distribution) -> tuple[str, ...]:
        moved = max(answer.attack.gain, answer.attack.loss) * answer.fakes / FAKES
        worst = message(
            "{moved} points for the share below any number, +{worst} for the {name}",
            moved=SHARES.text(moved, moved),
            worst=answer.unit.full(answer.budget, answer.budget),
            name=answer.unit.label(answer.series.names[-1]),
        )
        log = (_LOG,) if answer.log else ()
        return _QUANTILES, *log, EVERYONE, poisoning(answer, worst)

    def frames(self, answer: Distribution, shown: Shown) -> tuple[Frame, ...]:
        reaches = [answer.reach(each.p) for each in answer.quantiles]
        reaches.append(answer.mean_reach)
        series = series_frame(answer, shown, message("Number"), _reach(answer, reaches))
        below = Frame("below", message("Share below a limit"), notes=_limits(answer, shown))
        if not shown.drawn:
            return series, _outside(answer, shown), charts.histogram_frame(answer), below
        if not self.unknown(answer):
            series = replace(series, pictures=self.pictures(answer, shown, charts.MOST_BARS))
            below = replace(below, pictures=(_curve(answer, shown),))
        return series, _outside(answer, shown), below

    def pictures(self, answer: Distribution, shown: Shown, limit: int) -> tuple[Picture, ...]:
        bars = charts.MOST_BARS if limit > _CARD_BARS else _CARD_BARS
        chart = charts.histogram_chart(answer, height=_HISTOGRAM_HEIGHT, limit=bars)
        legend = (
            ("bar", message("share of devices in each bar")),
            ("bar outside", message("outside of the range")),
            _interval_key(answer),
        )
        return (Picture(chart, legend=legend),)

    def card(self, answer: Distribution) -> Card:
        chart = charts.histogram_chart(answer, height=_CARD_HEIGHT, limit=_CARD_BARS)
        return Card(chart, name=message("Median"), blank=not chart.marks.rows[0].known)


def _curve(answer: Distribution, shown: Shown) -> Picture:
    told = message(
        "share of devices below each number, and {level}% interval of each",
        level=f"{answer.level * 100:g}",
    )
    chart = charts.curve_chart(answer, next(iter(shown.limits), None))
    return Picture(chart, legend=(("line", told),))


def _limits(answer: Distribution, shown: Shown) -> tuple[str, ...]:
    """The shares below each limit, and at it or above, in sentences.

    Raises:
        EstimateError: a limit is outside of the range.
    """
    told = []
    for limit in shown.limits:
        found = answer.share_below(limit)
        rest = RangeShare(1 - found.share, found.variance, 1 - found.high, 1 - found.low)
        below, above = _share(found), _share(rest)
        told.append(
            message(
                "{share} are below {limit} ({between}); {rest} are at {limit} or above "
                "({between_rest}).",
                limit=answer.unit.exact(limit),
                share=below.text,
                between=below.between,
                rest=above.text,
                between_rest=above.between,
            )
        )
        if found.interpolated:
            told.append(
                message(
                    "The limit lies inside of a cell, so the interval allows for where the numbers "
                    "of that cell may be."
                )
            )
    return tuple(told)


def _outside(answer: Distribution, shown: Shown) -> Frame:
    """The shares that lie outside of the range."""
    unit, numbers, truth = answer.unit, answer.range, shown.truth
    low, high = unit.exact(numbers.start), unit.exact(numbers.end)
    known = (None, None)
    if truth is not None:
        known = truth.share_below(numbers.start), 1 - truth.share_below(numbers.end)
    rows = [
        (name, None if true is None else SHARES.full(true, 0.001), _share(found), _error(found))
        for name, true, found in (
            (message("below {number}", number=low), known[0], answer.found.below),
            (message("{number} or above", number=high), known[1], answer.found.above),
        )
    ]
    columns = (
        Column("series", message("Number"), "words"),
        Column("truth", message("Truth"), data_only=truth is None),
        formats.estimate_column(answer),
        Column("std_error", message("Std. error")),
    )
    return Frame("outside", message("Outside of the range"), columns, rows)


def _share(found: RangeShare) -> Estimate:
    return formats.estimate_of(SHARES, found.share, found.low, found.high)


def _error(found: RangeShare) -> str:
    return formats.error_of(SHARES, math.sqrt(found.variance))


def _quantile_words(answer: Distribution, name: str, part: str) -> str:
    numbers = answer.series.at(name)
    told = formats.estimate_of(answer.unit, *numbers)
    if not all(map(math.isfinite, numbers[1:])):
        return message(_ONE_SIDED, name=name, estimate=told.text)
    template = _AT_OR_BELOW if answer.range.integer else _BELOW
    return message(
        template,
        part=part,
        estimate=told.text,
        level=answer.level,
        between=told.between,
    )


class MeanKind(Kind[Mean]):
    """The average of a number."""

    answer = Mean
    analysis = SlidingWindowAnalysis
    combine = staticmethod(combine_means)
    series_of = staticmethod(series_names)

    @staticmethod
    def estimate(part: Part, level: float, adjust: Adjustment) -> Mean:
        return estimate_mean(part, level)

    def headline(self, answer: Mean) -> str:
        series = answer.series
        told = formats.estimate_of(answer.unit, *series.at(answer.leading))
        template = _GEOMETRIC if answer.log else _MEAN
        return message(template, estimate=told.text, level=answer.level, between=told.between)

    def reading(self, answer: Mean) -> tuple[str, ...]:
        worst = message("+{worst}", worst=answer.unit.full(answer.budget, answer.budget))
        log = (_LOG,) if answer.log else ()
        return *log, _ENDS, EVERYONE, poisoning(answer, worst)

    def frames(self, answer: Mean, shown: Shown) -> tuple[Frame, ...]:
        reach = _reach(answer, [answer.mean_reach])
        frame = series_frame(answer, shown, message("Number"), reach)
        return (replace(frame, pictures=self.pictures(answer, shown, 0)) if shown.drawn else frame,)

    def pictures(self, answer: Mean, shown: Shown, limit: int) -> tuple[Picture, ...]:
        return (Picture(charts.scale_chart(answer), legend=(_interval_key(answer),)),)

    def card(self, answer: Mean) -> Card:
        return Card(charts.scale_chart(answer))
