"""An answer by segments: what it has found, in a sentence, and a table for each series, which pages
and terminal show alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deniable_estimator.document.document import Column, Estimate, Frame
from deniable_estimator.document.units import half_width
from deniable_estimator.kinds import formats
from deniable_estimator.kinds.base import TOGETHER, Answer
from deniable_estimator.kinds.segments import Group, Segmented
from deniable_estimator.kinds.shares.shares import Shares
from deniable_estimator.messages import message, sentence

_TWICE = 0.15
"""A ratio within so much of 2 is called twice; below 1 and this, the ratio is not told."""

_LEADS = sentence("{segment} has the highest {series}: {value}, {times} {other} ({less}).")
_ABOVE = sentence(
    "{segment} has a higher {series} than {other}: {value}, {times} as much ({less})."
)
_LEADS_PLAIN = sentence("{segment} has the highest {series}: {value}; {other} has {less}.")
_ABOVE_PLAIN = sentence("{segment} has a higher {series} than {other}: {value} against {less}.")

_MARGIN = 1.04
"""A scale is so much longer than what it shows: an arrow at its end means "no limit"."""


def segment_frames(found: Segmented, names: Sequence[str]) -> tuple[Frame, ...]:
    """Each of these series in all segments, with the difference from the reference. Shares have one
    scale in all tables; the numbers of a metric (its mean, its quantiles) differ in size, so each
    has its own. All begin at zero, or below it where a number does."""
    answers: list[tuple[str, Answer, Group | None]] = [
        (each.name, each.answer, each) for each in found.groups
    ]
    if found.rest is not None:
        answers.append((message("rest"), found.rest, None))
    answers.append((message("all"), found.total, None))
    unit, level, reference = found.total.unit, formats.interval_title(found.level), found.reference
    compared = message("Difference from {segment}", segment=reference.name) if reference else ""
    frames: list[Frame] = []
    for name in names:
        asked = names if unit.of_all else [name]
        base, top = _axis([each.series.at(one) for _, each, _ in answers for one in asked])
        ends = "0" if base == 0 else unit.full(base, top - base), unit.full(top, top / 10)
        columns = (
            Column("segment", ", ".join(found.by), "name"),
            Column("n", message("Reports"), "count", aside=True),
            Column(
                *("estimate", formats.estimate_title(unit), "estimate"),
                interval=level,
                scale=ends,
                zero=(0.0 - base) / (top - base),
            ),
            Column("difference", compared, "words", aside=True, data_only=reference is None),
        )
        rows = [
            (
                label,
                each.n,
                formats.series_cell(each, name, (base, top)),
                _difference(found, group, name),
            )
            for label, each, group in answers
        ]
        differs = message("differs") if found.differs[found.names.index(name)] else ""
        title = formats.series_name(found.total, name)
        frames.append(Frame(f"series-{len(frames)}", title, columns, rows, subtitle=differs))
    if more := len(found.names) - len(names):
        frames[-1] = replace(frames[-1], notes=(formats.not_listed(more),))
    return tuple(frames)


def _axis(numbers: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    known = [0.0, *(end for each in numbers for end in each if math.isfinite(end))]
    base, top = min(known), max(known)
    return base, base + ((top - base) * _MARGIN or 1.0)


def _difference(found: Segmented, group: Group | None, name: str) -> Estimate | None:
    comparison = found.comparisons.get(group.key) if group else None
    cell = formats.change_cells(comparison, [name]).get(name)
    return cell and replace(cell, tag="")


def finding(found: Segmented) -> str:
    """A series and two segments whose difference stands out from the noise when it is corrected for
    all segments and series (`Comparison.changed`). Where none does, the verdict stands."""
    series = leading_series(found)
    if series is None:
        return found.verdict
    ordered = sorted(found.groups, key=lambda each: -_value(each, series))
    top, second, bottom = ordered[0], ordered[1], ordered[-1]
    leads = top.answer.series.at(series)[1] > second.answer.series.at(series)[2]
    other = second if leads else bottom
    if not leads and not _differs(top, other, series):
        return found.verdict
    (value, *_), (less, low, _) = (each.answer.series.at(series) for each in (top, other))
    times = _times(value / less) if less > 0 and low > 0 else None
    arguments = {
        "segment": top.name,
        "series": _series_words(found, series),
        "other": other.name,
        "value": _text(top, series),
        "less": _text(other, series),
    }
    if times is None:
        return message(_LEADS_PLAIN if leads else _ABOVE_PLAIN, **arguments)
    return message(_LEADS if leads else _ABOVE, times=times, **arguments)


def leading_series(found: Segmented) -> str | None:
    """The series to tell of: the leading one of the total if it differs, or else the one that
    differs most surely; None if none differs."""
    differing = [name for name, differs in zip(found.names, found.differs, strict=True) if differs]
    if not differing:
        return None
    leading = found.total.leading
    if leading in differing:
        return leading
    return differing[int(np.argmin([found.p_adjusted[found.names.index(x)] for x in differing]))]


def _value(group: Group, series: str) -> float:
    value, *_ = group.answer.series.at(series)
    return -math.inf if math.isnan(value) else value


def _differs(one: Group, other: Group, series: str) -> bool:
    comparison = one.answer.change_from(other.answer, TOGETHER)
    return series in comparison.values and bool(comparison.changed[comparison.values.index(series)])


def _times(ratio: float) -> str | None:
    if abs(ratio - 2) <= _TWICE:
        return message("twice")
    return None if ratio < 1 + 2 * _TWICE else message("{ratio:.2g} times", ratio=ratio)


def _text(group: Group, series: str) -> str:
    numbers = group.answer.series.at(series)
    return group.answer.unit.full(numbers[0], half_width(*numbers))


def _series_words(found: Segmented, series: str) -> str:
    if not isinstance(found.total, Shares):
        return series
    if found.total.boolean:
        return message("share of yes")
    return message("share of {value}", value=found.total.unit.label(series))
