"""Who comes back on the pages: the lifecycle, the average curve, each cohort, and growth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deniable_estimator.answers.base import Comparison
from deniable_estimator.answers.files import plain
from deniable_estimator.answers.retention import NAMES, RetentionAnswer
from deniable_estimator.answers.retention_words import (
    devices_between,
    devices_text,
    finding_words,
    growth_words,
    impossible_words,
    quick_text,
)
from deniable_estimator.answers.units import half_width
from deniable_estimator.dashboard.kinds.base import Kind
from deniable_estimator.dashboard.kinds.number_charts import band_line
from deniable_estimator.dashboard.kinds.numbers import NumberLine, number_lines
from deniable_estimator.dashboard.kinds.shares import bar_chart
from deniable_estimator.dashboard.view import View
from deniable_estimator.dashboard.words import NOTHING_STANDS_OUT, kind
from deniable_estimator.document.plot.marks import (
    Bars,
    CellRow,
    Chart,
    HeatCell,
    HeatMap,
    LineChart,
)
from deniable_estimator.document.plot.ticks import Label, Tick, levels_from_zero
from deniable_estimator.messages import message
from deniable_estimator.statistics.intervals import FloatArray

_COHORTS = 26
"""Half a year of weeks; the files have all of them."""

_WINDOWS = 13
"""Windows of the table of growth."""

_SMALL = 6
"""How many series are offered to be seen over time."""


_HEIGHT = 160

_LEVELS = 4
"""How many steps of colour there are."""

_WIDE = 0.2
"""Where an interval is wider, a cell has no colour: it would show noise."""


@dataclass(frozen=True, slots=True)
class RetentionChart:
    """What is drawn of a retention; None where a question is not asked."""

    name: str
    title: str
    description: str
    lifecycle: Bars | None
    curve: LineChart | None
    cohorts: HeatMap | None
    """The newest first, below the average of all."""
    more: int
    """Older cohorts that are not drawn."""


class RetentionKind(Kind[RetentionAnswer]):
    """Who is new, who stays, who comes back."""

    template = "kinds/retention.html"

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

    def charts(self, picture: RetentionChart) -> Sequence[Chart]:
        """The bars of the lifecycle, and the cohorts."""
        return [each for each in (picture.lifecycle, picture.cohorts) if each]

    def card(self, answer: RetentionAnswer) -> NumberLine:
        """The leading series."""
        lines = dict(zip(answer.series.names, number_lines(answer), strict=True))
        return lines[answer.leading]

    def over_time(self, answer: RetentionAnswer, chosen: Sequence[str]) -> list[str]:
        """The leading series first, the lifecycle, and some ages."""
        names = answer.series.names
        shown = [answer.leading, *(name for name in names if name != answer.leading)][:_SMALL]
        return [*shown, *(each for each in chosen if each in names and each not in shown)]


def _growth_lines(answer: RetentionAnswer) -> tuple[tuple[str, ...], ...]:
    """The newest windows, the newest first: each with its active, new, staying, returning and lost
    devices, the interval of those lost, and how many came for each of them."""
    return tuple(
        (
            each.window,
            f"{each.active:,.0f}",
            *map(devices_text, (each.new, each.stayed, each.returned)),
            "" if each.lost is None else devices_text(each.lost),
            "" if each.lost is None else devices_between(each.lost),
            quick_text(each),
        )
        for each in reversed(answer.growth[-_WINDOWS:])
    )


def retention_chart(answer: RetentionAnswer, most: int) -> RetentionChart:
    """All that there is to draw, with the `most` newest cohorts."""
    told = finding_words(answer)
    lifecycle = None
    if answer.lifecycle is not None and answer.lifecycle.n:
        named = replace(answer.lifecycle, values=tuple(NAMES.values()))
        drawn = bar_chart(named, limit=len(NAMES), declared_order=True)
        lifecycle = replace(drawn, heading=message("Active devices"))
    rows = _rows(answer)
    seen = int(np.max(answer.cells.age, initial=0))
    return RetentionChart(
        name=answer.metric,
        title=message("{metric}: who comes back", metric=answer.metric),
        description=told,
        lifecycle=lifecycle,
        curve=_curve(answer, told, seen) if seen else None,
        cohorts=_cohorts(answer, rows[:most], seen) if seen else None,
        more=max(0, len(rows) - most),
    )


def _rows(answer: RetentionAnswer) -> list[CellRow]:
    ages = int(np.max(answer.cells.age, initial=0))
    found: dict[str, list[HeatCell | None]] = {}
    counted: dict[str, float] = {}
    rows = answer.rows()
    scale = _scale(answer) if rows else (0.0, 1.0)
    for cohort, _, age, devices, value, _, low, high, told in rows:
        counted[cohort] = devices
        cells = found.setdefault(cohort, [None] * ages)
        cells[age - 1] = _cell(answer, value, low, high, scale, told == "nothing fits")
    return [
        CellRow(cohort, tuple(cells), counted=f"{max(0.0, counted[cohort]):,.0f}")
        for cohort, cells in reversed(found.items())
    ]


def _cohorts(answer: RetentionAnswer, rows: Sequence[CellRow], ages: int) -> HeatMap:
    return HeatMap(
        heading=message(
            "Each cohort: the share that is active so many windows after its first one"
        ),
        corner=message("First {kind}", kind=kind(answer.window)),
        counted=message("Counted"),
        heads=tuple(str(age) for age in range(1, ages + 1)),
        rows=(_average(answer, ages), *rows),
    )


def _average(answer: RetentionAnswer, ages: int) -> CellRow:
    curve = answer.curve
    assert curve is not None
    scale = _scale(answer)
    cells = [
        _cell(answer, value, low, high, scale, none)
        for value, low, high, none in zip(
            *(plain(each[:ages]) for each in (curve.value, curve.low, curve.high)),
            curve.empty[:ages].tolist(),
            strict=True,
        )
    ]
    return CellRow(message("All"), tuple(cells), counted="", whole=True)


def _scale(answer: RetentionAnswer) -> tuple[float, float]:
    """The retentions with the lightest and the darkest colour: of all that is known well."""
    assert answer.curve is not None
    found = [
        each.value[np.isfinite(each.value) & (each.high - each.low <= _WIDE)]
        for each in (answer.curve, answer.triangle)
    ]
    known = np.concatenate(found)
    return (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)


def _cell(
    answer: RetentionAnswer,
    value: float | None,
    low: float | None,
    high: float | None,
    scale: tuple[float, float],
    none: bool,
) -> HeatCell:
    if value is None or low is None or high is None:
        why = message("no retention fits") if none else answer.unit.unknown
        return HeatCell("?", 0, why)
    spread = half_width(value, low, high)
    part = (value - scale[0]) / (scale[1] - scale[0] or 1.0)
    level = min(_LEVELS, max(1, math.ceil(part * _LEVELS)))
    sure = high - low <= _WIDE
    return HeatCell(
        f"{value * 100:.0f}%" if spread > 0.005 else answer.unit.full(value, spread),
        level if sure else 0,
        answer.unit.interval(low, high, spread),
    )


def _curve(answer: RetentionAnswer, told: str, ages: int) -> LineChart | None:
    found = answer.curve
    assert found is not None
    known = [age for age in range(1, ages + 1) if np.isfinite(found.value[age - 1])]
    if len(known) < 2:
        return None
    places = np.array(known) - 1
    top = float(found.high[places].max()) or 1.0
    levels, step = levels_from_zero(top)
    top = max(top, levels[-1])

    def down(column: FloatArray) -> list[float]:
        return [round((1 - share / top) * _HEIGHT, 1) for share in column[places].tolist()]

    return LineChart(
        form="numbers",
        name=f"{answer.metric}-curve",
        title=message("{metric}: the average of all cohorts", metric=answer.metric),
        description=told,
        height=_HEIGHT,
        lines=(
            band_line(
                [(age - 0.5) / ages * 100 for age in known],
                *(down(each) for each in (found.value, found.low, found.high)),
            ),
        ),
        levels=tuple(
            Tick((1 - level / top) * _HEIGHT, answer.unit.tick(level, step)) for level in levels
        ),
        ticks=tuple(
            Label(round((age - 0.5) / ages * 100, 2), str(age))
            for age in range(1, ages + 1, math.ceil(ages / 13))
        ),
    )
