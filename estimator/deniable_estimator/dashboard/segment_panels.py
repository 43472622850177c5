"""The panels of the page of segments: each series in all segments, and how they differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.segmented import Group, Segmented, shown_series
from deniable_estimator.answers.shares import Shares
from deniable_estimator.answers.units import half_width
from deniable_estimator.dashboard.changes import ChangeText, change_texts
from deniable_estimator.dashboard.words import series_name
from deniable_estimator.document.plot.marks import BarRow
from deniable_estimator.messages import message

_MOST_LINES = 240
"""The most lines of all panels: with 32 segments, 7 series are shown."""

_MOST_PANELS = 12

_MARGIN = 0.04
"""So much of a scale is left free at its end: an arrow there means "no limit"."""


@dataclass(frozen=True, slots=True)
class SegmentLine:
    """A series of one segment. Its row has no dot where nothing is known, or only one limit."""

    row: BarRow
    n: int
    difference: ChangeText | None
    """From the reference; None for the reference itself."""
    kind: str
    """segment, rest or total."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One series in all segments."""

    series: str
    name: str
    """What people call the series."""
    differs: bool
    lines: tuple[SegmentLine, ...]
    zero: float
    """Where zero lies, in percent of the width."""
    most: str
    """The number at the right end of the scale, with its unit."""

    @property
    def endless(self) -> bool:
        """Whether an interval has no limit on one side."""
        return any(line.row.open_low or line.row.open_high for line in self.lines)


@dataclass(frozen=True, slots=True)
class _PanelScale:
    """Where numbers lie across a panel, which begins at zero, or below it where a number does.
    Ends without a limit lie at its edges."""

    low: float
    high: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> _PanelScale:
        """One that shows these numbers."""
        known = [each for each in numbers if math.isfinite(each)]
        low, high = min(0.0, *known, 0.0), max(0.0, *known, 0.0)
        return cls(low, high + (high - low) * _MARGIN or 1.0)

    def at(self, number: float) -> float:
        part = (number - self.low) / (self.high - self.low)
        return round(100 * min(max(part, 0.0), 1.0), 2)


def panels_shown(found: Segmented) -> list[str]:
    """The series that there is room for."""
    lines = len(found.groups) + 2
    return shown_series(found, max(1, min(_MOST_PANELS, _MOST_LINES // lines)))


def panels(found: Segmented, names: Sequence[str]) -> tuple[Panel, ...]:
    """A panel for each of these series. Shares have one scale in all panels; the numbers of a
    metric (its mean, its quantiles) differ in size, so each has its own. All begin at zero."""
    answers: list[tuple[str, Answer, str, Group | None]] = [
        (each.name, each.answer, "segment", each) for each in found.groups
    ]
    if found.rest is not None:
        answers.append((message("rest"), found.rest, "rest", None))
    answers.append((message("all"), found.total, "total", None))
    ends = {name: [end for _, each, *_ in answers for end in _ends(each, name)] for name in names}
    unit, drawn = found.total.unit, []
    common = None
    if isinstance(found.total, Shares):
        common = _PanelScale.of([end for each in ends.values() for end in each])
    for name in names:
        scale = common or _PanelScale.of(ends[name])
        lines = tuple(_line(found, name, scale, *each) for each in answers)
        title = series_name(found.total, name)
        differs = bool(found.differs[found.names.index(name)])
        most = unit.full(scale.high, scale.high / 10)
        drawn.append(Panel(name, title, differs, lines, scale.at(0.0), most))
    return tuple(drawn)


def _ends(answer: Answer, name: str) -> list[float]:
    series = answer.series
    place = series.place(name)
    return [] if place is None else [float(series.low[place]), float(series.high[place])]


def _line(
    found: Segmented,
    name: str,
    scale: _PanelScale,
    label: str,
    answer: Answer,
    kind: str,
    group: Group | None,
) -> SegmentLine:
    series, unit = answer.series, answer.unit
    place = series.place(name)
    if place is None or not math.isfinite(series.value[place]):
        return SegmentLine(BarRow(label, "", known=False), answer.n, None, kind)
    value, low, high = (float(each[place]) for each in (series.value, series.low, series.high))
    spread = half_width(value, low, high)
    least, most = unit.text(low, spread), unit.text(high, spread)
    open_low, open_high = low == -math.inf, high == math.inf
    number = unit.text(value, spread)
    at: float | None = scale.at(value)
    if open_low or open_high:
        # Nothing tells where in such an interval the number is: a point would mislead.
        at = None
        number = unit.unknown
        if not open_low:
            number = message("at least {number}", number=least)
        elif not open_high:
            number = message("at most {number}", number=most)
    comparison = found.comparisons.get(group.key) if group else None
    changes = {} if comparison is None else change_texts(comparison, [name])
    row = BarRow(
        label,
        number,
        *(at, scale.at(low), scale.at(high)),
        between=message("{low} to {high}", low=least, high=most),
        open_low=open_low,
        open_high=open_high,
    )
    return SegmentLine(row=row, n=answer.n, difference=changes.get(name), kind=kind)
