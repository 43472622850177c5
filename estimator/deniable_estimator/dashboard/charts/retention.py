"""The geometry of a retention: bars of the lifecycle, the average curve, the map of cohorts."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from deniable_estimator.answers.files import plain
from deniable_estimator.answers.retention import NAMES, RetentionAnswer
from deniable_estimator.answers.retention_words import finding_words
from deniable_estimator.answers.units import half_width
from deniable_estimator.dashboard.charts import BarChart, bar_chart
from deniable_estimator.dashboard.charts.histogram import Curve
from deniable_estimator.dashboard.charts.ticks import Tick, levels_from_zero
from deniable_estimator.messages import message

_HEIGHT = 160

_LEVELS = 4
"""How many steps of colour there are."""

_WIDE = 0.2
"""Where an interval is wider, a cell has no colour: it would show noise."""


@dataclass(frozen=True, slots=True)
class RetentionCell:
    """One cell of the heat map."""

    share: str
    between: str
    """Its interval, or why there is none."""
    level: int
    """The step of colour, from 1 to 4; 0 of a cell that is hardly known."""


@dataclass(frozen=True, slots=True)
class CohortRow:
    """One cohort, or the average of all."""

    name: str
    counted: str
    cells: tuple[RetentionCell | None, ...]
    """None where nothing was seen."""


@dataclass(frozen=True, slots=True)
class RetentionChart:
    """What a picture shows of a retention; None where a question is not asked."""

    name: str
    title: str
    description: str
    lifecycle: BarChart | None
    curve: Curve | None
    average: CohortRow | None
    cohorts: tuple[CohortRow, ...]
    """The newest first."""
    ages: tuple[int, ...]
    more: int
    """Older cohorts that are not drawn."""


def retention_chart(answer: RetentionAnswer, most: int) -> RetentionChart:
    """All that there is to draw, with the `most` newest cohorts."""
    told = finding_words(answer)
    lifecycle = None
    if answer.lifecycle is not None and answer.lifecycle.n:
        named = replace(answer.lifecycle, values=tuple(NAMES.values()))
        lifecycle = bar_chart(named, limit=len(NAMES), declared_order=True)
    rows = _rows(answer)
    seen = int(np.max(answer.cells.age, initial=0))
    return RetentionChart(
        name=answer.metric,
        title=message("{metric}: who comes back", metric=answer.metric),
        description=told,
        lifecycle=lifecycle,
        curve=_curve(answer, told, seen) if seen else None,
        average=_average(answer, seen) if seen else None,
        cohorts=tuple(rows[:most]),
        ages=tuple(range(1, seen + 1)),
        more=max(0, len(rows) - most),
    )


def _rows(answer: RetentionAnswer) -> list[CohortRow]:
    ages = int(np.max(answer.cells.age, initial=0))
    found: dict[str, list[RetentionCell | None]] = {}
    counted: dict[str, float] = {}
    rows = answer.rows()
    scale = _scale(answer) if rows else (0.0, 1.0)
    for cohort, _, age, devices, value, _, low, high, told in rows:
        counted[cohort] = devices
        cells = found.setdefault(cohort, [None] * ages)
        cells[age - 1] = _cell(answer, value, low, high, scale, told == "nothing fits")
    return [
        CohortRow(cohort, f"{max(0.0, counted[cohort]):,.0f}", tuple(cells))
        for cohort, cells in reversed(found.items())
    ]


def _average(answer: RetentionAnswer, ages: int) -> CohortRow:
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
    return CohortRow("", "", tuple(cells))


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
) -> RetentionCell:
    if value is None or low is None or high is None:
        why = message("no retention fits") if none else answer.unit.unknown
        return RetentionCell("?", why, 0)
    spread = half_width(value, low, high)
    part = (value - scale[0]) / (scale[1] - scale[0] or 1.0)
    level = min(_LEVELS, max(1, math.ceil(part * _LEVELS)))
    sure = high - low <= _WIDE
    return RetentionCell(
        f"{value * 100:.0f}%" if spread > 0.005 else answer.unit.full(value, spread),
        answer.unit.interval(low, high, spread),
        level if sure else 0,
    )


def _curve(answer: RetentionAnswer, told: str, ages: int) -> Curve | None:
    found = answer.curve
    assert found is not None
    known = [age for age in range(1, ages + 1) if np.isfinite(found.value[age - 1])]
    if len(known) < 2:
        return None
    places = np.array(known) - 1
    top = float(found.high[places].max()) or 1.0
    levels, step = levels_from_zero(top)
    top = max(top, levels[-1])

    def points(column: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> list[str]:
        return [
            f"{(age - 0.5) / ages * 1000:.1f} {(1 - share / top) * _HEIGHT:.1f}"
            for age, share in zip(known, column[places].tolist(), strict=True)
        ]

    low, high = points(found.low), points(found.high)
    return Curve(
        name=f"{answer.metric}-curve",
        title=message("{metric}: the average of all cohorts", metric=answer.metric),
        description=told,
        height=_HEIGHT,
        line="M" + "L".join(points(found.value)),
        band="M" + "L".join(high + low[::-1]) + "Z",
        levels=tuple(
            Tick((1 - level / top) * _HEIGHT, answer.unit.tick(level, step)) for level in levels
        ),
        ticks=tuple(
            Tick(round((age - 0.5) / ages * 100, 2), str(age))
            for age in range(1, ages + 1, math.ceil(ages / 13))
        ),
        outside=("", ""),
        limit=None,
    )
