"""Who comes back, in words: sentences, and on the pages the lifecycle, the average curve, each
cohort, and growth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deniable.protocol import windows
from deniable.protocol.mechanisms.memoized_retention import LIFECYCLE
from deniable_estimator.analyses.retention import Ratio
from deniable_estimator.document.document import Column, Estimate, Frame, Picture, WordedValue
from deniable_estimator.document.plot.marks import CellRow, Chart, HeatCell, HeatMap, LineChart
from deniable_estimator.document.plot.scales import Tick, levels_from_zero
from deniable_estimator.document.units import half_width
from deniable_estimator.kinds.formats import estimate, estimate_of, interval_title, kind
from deniable_estimator.kinds.kind import Kind, Shown
from deniable_estimator.kinds.numbers.charts import band_line
from deniable_estimator.kinds.numbers.words import poisoning, series_frame
from deniable_estimator.kinds.retention.making import combine_retentions, estimate_retention
from deniable_estimator.kinds.retention.retention import (
    NAMES,
    Around,
    RetentionAnswer,
    WindowGrowth,
    retention_series,
)
from deniable_estimator.kinds.shares.charts import bar_chart
from deniable_estimator.messages import counted, message, sentence, spaced
from deniable_estimator.statistics.intervals import FloatArray

_COHORTS = 26
"""Half a year of weeks; the files have all of them."""

_WINDOWS = 13
"""Windows of the table of growth."""

_HEIGHT = 160

_LEVELS = 4
"""How many steps of colour there are."""

_STRONGER = message("the stronger the colour, the more come back")
_FAINT = message("known to ±10 points at best; “?” where a cohort is too small to tell")

_NO_IDS = message(
    "A device knows whether this is its first window, and reports it with noise: there is no id, "
    "and nobody can follow a device from one window to the next. An app that is installed again, "
    "or whose data is cleared, is a new device."
)
_QUOTIENTS = message(
    "The share of a cohort is a quotient of two estimates. Where its devices are too few, no share "
    "fits worse than another, and none is shown."
)
_HALVES = message(
    "Each device answers one of the two questions for ever, so cohorts are counted among half of "
    "the devices."
)
_WINDOW = {"day": message("Day"), "week": message("Week"), "month": message("Month")}

_WIDE = 0.2
"""Where an interval is wider, a cell has no colour: it would show noise."""

_LIFECYCLE = sentence(
    "{new} of the devices are new, {stayed} stayed from the {kind} before, and {returned} came "
    "back after a gap."
)
_AGE: dict[windows.Kind, str] = {
    "day": sentence(
        "{retention} of new devices are active on the day after their first ({level:g}% interval "
        "{between})."
    ),
    "week": sentence(
        "{retention} of new devices are active in the week after their first ({level:g}% interval "
        "{between})."
    ),
    "month": sentence(
        "{retention} of new devices are active in the month after their first ({level:g}% interval "
        "{between})."
    ),
}
_TOO_FEW = message("Too few new devices have reported to tell how many come back.")
_NOT_OVER = message("How many come back is told when these windows have ended.")
_NONE = message("The reports on cohorts do not fit to any retention; do not rely on them.")
_QUICK = sentence(
    "In {window}, {quick} devices were new or back for each one that was lost ({level:g}% interval "
    "{low} to {high})."
)


class RetentionKind(Kind[RetentionAnswer]):
    """Who is new, who stays, who comes back."""

    answer = RetentionAnswer
    types = frozenset({"retention"})
    estimate = staticmethod(estimate_retention)
    combine = staticmethod(combine_retentions)
    series_of = staticmethod(retention_series)

    def headline(self, answer: RetentionAnswer) -> str:
        return finding_words(answer)

    def unsound(self, answer: RetentionAnswer) -> str | None:
        if answer.lifecycle is not None and answer.lifecycle.impossible.any():
            return message(
                "Impossible shares of the lifecycle. No honest crowd has them; do not rely on them."
            )
        return _NONE if answer.curve is not None and answer.curve.empty[:1].any() else None

    def unknown(self, answer: RetentionAnswer) -> bool:
        """Whether nothing is known of the leading series."""
        return math.isnan(answer.series.at(answer.leading)[0])

    def reading(self, answer: RetentionAnswer) -> tuple[str, ...]:
        halves = (_HALVES,) if len(answer.asks) > 1 else ()
        points = answer.unit.text(answer.budget, answer.budget)
        worst = poisoning(answer, message("+{worst} points", worst=points))
        return _NO_IDS, _QUOTIENTS, *halves, worst

    def frames(self, answer: RetentionAnswer, shown: Shown) -> tuple[Frame, ...]:
        axis = None if shown.drawn else (0.0, 1.0)
        frames = [series_frame(answer, shown, message("Devices"), axis=axis)]
        growing = growth_words(answer)
        if answer.growth:
            below = (growing,) if growing and not shown.drawn else ()
            frames.append(replace(_growth(answer), notes=below))
        if not shown.drawn:
            return *frames, *_triangle(answer)
        drawn = retention_pictures(answer, _COHORTS)
        if growing and drawn:
            last = drawn[-1]
            drawn = (*drawn[:-1], replace(last, notes=(*last.notes, growing)))
        return replace(frames[0], pictures=drawn), *frames[1:]

    def pictures(self, answer: RetentionAnswer, shown: Shown, limit: int) -> tuple[Picture, ...]:
        return retention_pictures(answer, _WINDOWS)

    def charts(self, answer: RetentionAnswer, shown: Shown, limit: int) -> Sequence[Chart]:
        """The bars of the lifecycle, and the cohorts."""
        drawn = [each.chart for each in retention_pictures(answer, _WINDOWS)]
        kept = [each for each in drawn if not isinstance(each, LineChart)]
        title = message("{metric}: who comes back", metric=answer.metric)
        return [replace(each, title=title, description=finding_words(answer)) for each in kept]


def finding_words(answer: RetentionAnswer) -> str:
    """The answer, in two sentences at most."""
    told: list[str] = []
    if answer.cohorts is not None:
        told.append(_age_words(answer))
    if answer.lifecycle is not None and answer.lifecycle.n:
        new, stayed, returned = (
            estimate(answer.unit, *answer.series.at(each)) for each in LIFECYCLE
        )
        told.append(
            message(_LIFECYCLE, new=new, stayed=stayed, returned=returned, kind=kind(answer.window))
        )
    return spaced(told)


def growth_words(answer: RetentionAnswer) -> str:
    """What the newest window with one before it says of growth; empty without one."""
    for each in reversed(answer.growth):
        if each.quick is not None and math.isfinite(each.quick.high):
            width = each.quick.high - each.quick.low
            digits = 2 if width > 0.01 else 3 if width > 0.001 else 4
            return message(
                _QUICK,
                window=each.window,
                quick=f"{each.quick.value:.{digits}f}",
                level=answer.level * 100,
                low=f"{each.quick.low:.{digits}f}",
                high=f"{each.quick.high:.{digits}f}",
            )
    return ""


def devices_text(found: Around) -> str:
    """A number of devices, to the digits that its interval allows."""
    spread = half_width(*found)
    step = 10 ** max(0, math.floor(math.log10(spread))) if 0 < spread < math.inf else 1
    return f"{round(found.value / step) * step:,.0f}"


def devices_between(found: Around) -> str:
    """Its interval, to the same digits."""
    low, high = (devices_text(Around(end, found.low, found.high)) for end in found[1:])
    return message("{low} to {high}", low=low, high=high)


def quick_text(each: WindowGrowth) -> str:
    """The devices that came for each one lost; empty where that is not known."""
    return "" if each.quick is None or math.isnan(each.quick.value) else f"{each.quick.value:.2f}"


def _age_words(answer: RetentionAnswer) -> str:
    curve = answer.curve
    assert curve is not None
    numbers = answer.series.at("age 1")
    if not answer.ended:
        return _NOT_OVER
    if math.isnan(numbers[0]):
        return _NONE if curve.empty[0] else _TOO_FEW
    told = estimate_of(answer.unit, *numbers)
    return message(
        _AGE[answer.window],
        retention=told.text,
        level=answer.level * 100,
        between=told.between,
    )


def _growth(answer: RetentionAnswer) -> Frame:
    """The newest windows, the newest first."""
    rows = []
    for each in reversed(answer.growth[-_WINDOWS:]):
        lost = None
        if each.lost is not None:
            lost = Estimate(
                each.lost.value, devices_text(each.lost), between=devices_between(each.lost)
            )
        others = map(devices_text, (each.new, each.stayed, each.returned))
        rows.append((each.window, f"{each.active:,.0f}", *others, lost, quick_text(each)))
    columns = (
        Column("window", _WINDOW[answer.window], "words"),
        Column("active", message("Active")),
        Column("new", message("New")),
        Column("stayed", message("Stayed")),
        Column("returned", message("Back after a gap")),
        Column("lost", message("Lost"), "estimate", interval=interval_title(answer.level)),
        Column("gained_for_each_lost", message("New or back for each lost")),
    )
    about = message(
        "Active devices are counted; the others are estimates. Lost: active in the window before, "
        "and not in this one, with the {level}% interval.",
        level=f"{answer.level * 100:g}",
    )
    return Frame("growth", message("Growth"), columns, rows, subtitle=about)


def _triangle(answer: RetentionAnswer) -> tuple[Frame, ...]:
    """The cohorts as a table, in which those that are hardly known are dim."""
    chart, _ = _cohorts(answer, _WINDOWS)
    if not chart.heads:
        return ()
    columns = (
        Column("cohort", chart.corner, "words"),
        Column("devices", chart.counted or ""),
        *(Column(f"age {age}", age) for age in chart.heads),
    )
    rows = [
        (row.label, row.counted, *(each and _quiet(each) for each in row.cells))
        for row in chart.rows
    ]
    notes = (message("Dim: {which}.", which=_FAINT),)
    return (Frame("cohorts", message("Each cohort"), columns, rows, (), notes, chart.heading),)


def _quiet(found: HeatCell) -> WordedValue:
    return WordedValue(None, found.text, "plain" if found.level else "quiet")


def retention_pictures(answer: RetentionAnswer, most: int) -> tuple[Picture, ...]:
    """All that there is to draw: the average of all cohorts, the lifecycle, and the `most` newest
    cohorts below their average."""
    drawn = []
    cohorts, older = _cohorts(answer, most)
    if curve := _curve(answer, len(cohorts.heads)):
        about = message(
            "The share of new devices that is active in each {kind} after their first one, with "
            "the {level}% interval",
            kind=kind(answer.window),
            level=f"{answer.level * 100:g}",
        )
        drawn.append(Picture(curve, message("Average of all cohorts"), about))
    if answer.lifecycle is not None and answer.lifecycle.n:
        named = replace(answer.lifecycle, values=tuple(NAMES.values()))
        heading = message("Active devices")
        chart = bar_chart(named, Shown(rows=0, declared_order=True))
        drawn.append(Picture(replace(chart, heading=heading), heading))
    if cohorts.heads:
        left = counted(
            "{count:,} older cohort is not drawn; the files hold it.",
            "{count:,} older cohorts are not drawn; the files hold them.",
            older,
        )
        legend = ("up", _STRONGER), ("faded", _FAINT)
        notes = (left,) if older > 0 else ()
        drawn.append(
            Picture(cohorts, message("Each cohort"), cohorts.heading, legend=legend, notes=notes)
        )
    return tuple(drawn)


def _cohorts(answer: RetentionAnswer, most: int) -> tuple[HeatMap, int]:
    """The `most` newest cohorts below the average of all, without heads where no age was seen; and
    how many older ones there are."""
    ages = int(np.max(answer.cells.age, initial=0))
    found: dict[str, list[HeatCell | None]] = {}
    devices: dict[str, str] = {}
    rows: list[CellRow] = []
    if ages and answer.curve is not None:
        cells = _heat(answer, answer.triangle)
        for (cohort, _, age, began, *_), each in zip(answer.rows(), cells, strict=True):
            devices[cohort] = f"{max(0.0, began):,.0f}"
            found.setdefault(cohort, [None] * ages)[age - 1] = each
        average = tuple(_heat(answer, answer.curve)[:ages])
        rows.append(CellRow(message("All"), average, counted="", whole=True))
    newest = list(reversed(found))[:most]
    rows += [CellRow(each, tuple(found[each]), counted=devices[each]) for each in newest]
    chart = HeatMap(
        heading=message(
            "Each cohort: the share that is active in each {kind} after its first one",
            kind=kind(answer.window),
        ),
        corner=message("First {kind}", kind=kind(answer.window)),
        counted=message("Counted"),
        heads=tuple(str(age) for age in range(1, ages + 1)),
        rows=tuple(rows),
    )
    return chart, len(found) - most


def _heat(answer: RetentionAnswer, found: Ratio) -> list[HeatCell]:
    """Retentions as cells. The lightest and the darkest colour are those of all that is known
    well."""
    assert answer.curve is not None
    known = np.concatenate(
        [
            each.value[np.isfinite(each.value) & (each.high - each.low <= _WIDE)]
            for each in (answer.curve, answer.triangle)
        ]
    )
    least, most = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    cells = []
    for value, low, high in np.transpose((found.value, found.low, found.high)).tolist():
        if math.isnan(value):
            fits = answer.unit.unknown if math.isfinite(low) else message("no retention fits")
            cells.append(HeatCell("?", 0, fits))
            continue
        spread = half_width(value, low, high)
        part = (value - least) / (most - least or 1.0)
        level = min(_LEVELS, max(1, math.ceil(part * _LEVELS)))
        text = f"{value * 100:.0f}%" if spread > 0.005 else answer.unit.full(value, spread)
        between = answer.unit.interval(low, high, spread)
        cells.append(HeatCell(text, level if high - low <= _WIDE else 0, between))
    return cells


def _curve(answer: RetentionAnswer, ages: int) -> LineChart | None:
    found = answer.curve
    if found is None or np.isfinite(found.value[:ages]).sum() < 2:
        return None
    known = [age for age in range(1, ages + 1) if np.isfinite(found.value[age - 1])]
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
        description=finding_words(answer),
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
            Tick(round((age - 0.5) / ages * 100, 2), str(age))
            for age in range(1, ages + 1, math.ceil(ages / 13))
        ),
    )
