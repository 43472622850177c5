"""An answer by segments as tables: one for each series, which pages and terminal show alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.segmented import Group, Segmented
from deniable_estimator.answers.words.changes import change_cells
from deniable_estimator.answers.words.texts import (
    estimate_title,
    interval_title,
    not_listed,
    series_cell,
    series_name,
)
from deniable_estimator.document.document import Column, Estimate, Frame
from deniable_estimator.messages import message

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
    unit, level, reference = found.total.unit, interval_title(found.level), found.reference
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
                *("estimate", estimate_title(unit), "estimate"),
                interval=level,
                scale=ends,
                zero=(0.0 - base) / (top - base),
            ),
            Column("difference", compared, "words", aside=True, data_only=reference is None),
        )
        rows = [
            (label, each.n, series_cell(each, name, (base, top)), _difference(found, group, name))
            for label, each, group in answers
        ]
        differs = message("differs") if found.differs[found.names.index(name)] else ""
        title = series_name(found.total, name)
        frames.append(Frame(f"series-{len(frames)}", title, columns, rows, subtitle=differs))
    if more := len(found.names) - len(names):
        frames[-1] = replace(frames[-1], notes=(not_listed(more),))
    return tuple(frames)


def _axis(numbers: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    known = [0.0, *(end for each in numbers for end in each if math.isfinite(end))]
    base, top = min(known), max(known)
    return base, base + ((top - base) * _MARGIN or 1.0)


def _difference(found: Segmented, group: Group | None, name: str) -> Estimate | None:
    comparison = found.comparisons.get(group.key) if group else None
    cell = change_cells(comparison, [name]).get(name)
    return cell and replace(cell, tag="")
