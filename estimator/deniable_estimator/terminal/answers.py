"""Every answer as a document for a terminal; here numbers, and who comes back.

Shares and pairs, and what all documents have, are in `tables.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from deniable.protocol.mechanisms.number_range import number_text
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.distribution import CellShares, Distribution
from deniable_estimator.answers.mean import Mean
from deniable_estimator.answers.pair import PairAnswer
from deniable_estimator.answers.pair_estimate import Given
from deniable_estimator.answers.retention import RetentionAnswer
from deniable_estimator.answers.retention_words import (
    devices_between,
    devices_text,
    finding_words,
    impossible_words,
    quick_text,
)
from deniable_estimator.answers.shares import Shares
from deniable_estimator.answers.units import SHARES, half_width
from deniable_estimator.document.document import Column, Document, Frame, Note, WordedValue
from deniable_estimator.document.terminal import BAR
from deniable_estimator.errors import EstimateError
from deniable_estimator.planning.population import Crowd
from deniable_estimator.terminal.tables import (
    Told,
    alarms,
    budget_words,
    estimate_cell,
    heading,
    interval,
    pair_told,
    shares_told,
    warned,
)

_BARS = 22
"""The most bars of a histogram between the first and the last, which have no ends."""

_TAIL = 0.005
"""The share that the first and the last bar hold at most, so that the others are narrow."""

_WIDTH = 30

_ROWS = 14
"""How many windows and cohorts are shown; CSV and JSON have all."""


def answer_document(
    answer: Answer, truth: Any = None, limits: Sequence[float] = (), given: Given = "first"
) -> Document:
    """The answer as its kind is told, with its warnings and alarms.

    `truth` is what is known of a simulated crowd: of shares and of a pair an array of them, of a
    number a `Crowd`, and of a retention its series by name. `limits` are those below which shares
    of a number are told. `given` is the list of a pair that conditionals are given.
    """
    told = Told()
    if isinstance(answer, Shares):
        told = shares_told(answer, truth)
    elif isinstance(answer, PairAnswer):
        told = pair_told(answer, truth, given)
    elif isinstance(answer, RetentionAnswer):
        told = _retention_told(answer, truth)
    elif isinstance(answer, Mean | Distribution) and answer.n:
        told = _numbers_told(answer, truth, limits)
    notes = *told.notes, *warned(answer.warnings), *alarms(answer)
    verdict = Note(told.verdict, "strong")
    return Document(answer.kind, heading(answer), verdict, frames=told.frames, notes=notes)


def check_limits(answer: Answer, limits: Sequence[float]) -> None:
    """Refuse limits below which the answer has no share.

    Raises:
        EstimateError: it is no distribution, or a limit lies outside of its range.
    """
    for limit in limits:
        if not isinstance(answer, Distribution):
            raise EstimateError(
                f"{answer.metric} is not asked for the distribution of a number, so no share below "
                "a limit can be told: leave --below out"
            )
        start, end = answer.range.start, answer.range.end
        if not start <= limit <= end:
            raise EstimateError(
                f"the limit {limit:g} is outside of the range of {answer.metric}: choose one from "
                f"{start:g} to {end:g}"
            )


def shares_below(answer: Answer, limits: Sequence[float]) -> list[dict[str, float | None]]:
    """For JSON: each `limit` with the `share` below it, and the interval's `low` and `high`."""
    assert isinstance(answer, Distribution)
    rows = []
    for limit in limits:
        found = answer.share_below(limit)
        numbers = (found.share, found.low, found.high)
        told = [each if answer.n and math.isfinite(each) else None for each in numbers]
        rows.append(dict(zip(("limit", "share", "low", "high"), (limit, *told), strict=True)))
    return rows


def outside_words(answer: Distribution) -> tuple[str, str]:
    """What lies outside of the range: "below 0.1 s" and "10 s or more"."""
    low, high = (_declared(answer, float(each)) for each in (answer.range.low, answer.range.high))
    return f"below {low}", f"above {high}" if answer.range.integer else f"{high} or more"


def _declared(answer: Distribution, number: float) -> str:
    """A number that somebody has written, as it stands."""
    return f"{number_text(number)} {answer.name or ''}".rstrip()


def _numbers_told(
    answer: Mean | Distribution, truth: Crowd | None, limits: Sequence[float]
) -> Told:
    """The mean; of a distribution quantiles too, shares outside of the range and below `limits`,
    and a histogram. With `truth`, those of the simulated crowd beside them."""
    mean = answer.mean
    reach = mean.reach(answer.fakes)
    most = answer.unit.full(answer.budget, abs(answer.budget))
    budget = budget_words(answer, f"{most} to the {mean.name}")
    if isinstance(answer, Mean):
        return Told((_series(answer, [reach], truth, budget),))
    reaches = [*(answer.reach(each.p) for each in answer.quantiles), reach]
    series = _series(answer, reaches, truth, budget)
    return Told((series, _shares(answer, limits, truth), _histogram(answer)))


def _columns(first: str, simulated: bool, level: float, unit: str) -> tuple[Column, ...]:
    return (
        Column("series", first, "words"),
        Column("truth", f"truth\n{unit}", data_only=not simulated),
        Column(
            "estimate",
            f"estimate\n{unit}",
            "estimate",
            interval=f"{level * 100:.3g}% interval\n{unit}",
        ),
    )


def _series(
    answer: Mean | Distribution,
    reaches: Sequence[tuple[float, float]],
    truth: Crowd | None,
    budget: str,
) -> Frame:
    """Each series with its interval, and between which numbers fakes could put it."""
    series, unit, name = answer.series, answer.unit, answer.name or ""
    outside: dict[str, str] = {}
    if isinstance(answer, Distribution):
        words = dict(zip(("below", "above"), outside_words(answer), strict=True))
        found = zip(series.names, answer.quantiles, strict=False)
        outside = {name: words[each.outside] for name, each in found if each.outside}
    rows = []
    for at, each in enumerate(series.names):
        value, low, high = (float(column[at]) for column in (series.value, series.low, series.high))
        spread, cell = half_width(value, low, high), estimate_cell(unit, (value, low, high))
        rows.append(
            (
                each,
                None if truth is None else unit.text(truth.series(each), spread),
                replace(cell, text=outside.get(each, cell.text)),
                interval(unit, *reaches[at], spread),
            )
        )
    fakes = Column("reach", f"with {answer.fakes * 100:.3g}% fakes\n{name}")
    columns = (*_columns("", truth is not None, answer.level, name), fakes)
    return Frame("series", "", columns, rows, notes=(budget,))


def _shares(answer: Distribution, limits: Sequence[float], truth: Crowd | None) -> Frame:
    """The shares outside of the range, and below each limit."""
    below, above = outside_words(answer)
    told = [(f"below {_declared(answer, each)}", answer.share_below(each), each) for each in limits]
    told.append((below, answer.below, answer.range.start))
    rows = []
    for words, found, limit in (*told, (above, answer.above, math.nan)):
        share = None
        if truth is not None:
            beyond = math.isnan(limit)
            share = 1 - truth.share_below(answer.range.end) if beyond else truth.share_below(limit)
        numbers = found.share, found.low, found.high
        known = None if share is None else SHARES.text(share, half_width(*numbers))
        rows.append((words, known, estimate_cell(SHARES, numbers)))
    columns = _columns("share of the devices", truth is not None, answer.level, "%")
    return Frame("shares", "", columns, rows)


def _histogram(answer: Distribution) -> Frame:
    """Bars of neighbouring cells, with the quantiles that lie in them."""
    bars = _bars(answer.cells)
    widest = max(max(share for _, _, share in bars), 1e-12)
    columns = (
        Column("from", f"from\n{answer.name or ''}"),
        Column("share", "share\n%"),
        Column("bar", "histogram\n(points, without intervals)", "words"),
        Column("quantiles", "", "words"),
    )
    rows, width = [], 0.0
    for start, end, share in bars:
        # The last bars may be narrower, or have no end: they are written like the others.
        width = max(width, (end - start) / 2) if math.isfinite(end - start) else width
        marks = [
            f"p{100 * each.p:g}"
            for each, value in zip(answer.quantiles, answer.series.value.tolist(), strict=False)
            if start <= value < end or (each.outside == "above" and math.isinf(end))
        ]
        rows.append(
            (
                "" if math.isinf(start) else answer.unit.text(start, width or abs(start)),
                SHARES.text(share, 0.0),
                "█" * round(share / widest * _WIDTH),
                " ".join(marks),
            )
        )
    return Frame("histogram", "", columns, rows)


def _bars(cells: CellShares) -> list[tuple[float, float, float]]:
    """(start, end, share) of so many cells each that there are at most `_BARS` and two."""
    before = np.concatenate([[0.0], np.cumsum(cells.shares)])
    inner = len(cells.shares) - 1
    first = max(1, min(int(np.searchsorted(before, _TAIL, side="right")) - 1, inner))
    last = max(first, min(int(np.searchsorted(before, 1 - _TAIL)), inner))
    step = max(1, math.ceil((last - first) / _BARS))
    cuts = [0, *range(first, last, step), last, inner + 1]
    cuts = sorted(set(cuts))
    return [
        (float(cells.starts[a]), float(cells.ends[b - 1]), float(before[b] - before[a]))
        for a, b in itertools.pairwise(cuts)
    ]


def _retention_told(answer: RetentionAnswer, truth: dict[str, float] | None) -> Told:
    """All series with their intervals, the growth and the triangle; with `truth`, by series,
    beside them."""
    wrong = impossible_words(answer)
    notes = (Note(wrong, "alarm"),) if wrong else ()
    if not answer.n:
        return Told(notes=notes)
    series, unit = answer.series, answer.unit
    rows = [
        (
            unit.label(name),
            None if truth is None else unit.text(truth.get(name, math.nan), 0.001),
            estimate_cell(unit, (value, low, high), (0.0, 1.0)),
        )
        for name, value, low, high in zip(
            *(series.names, *map(np.ndarray.tolist, (series.value, series.low, series.high))),
            strict=True,
        )
    ]
    columns = (
        Column("series", "devices", "words"),
        Column("truth", "truth\n%", data_only=truth is None),
        Column(
            "share",
            "share\n%",
            "estimate",
            interval=f"{answer.level * 100:.3g}% interval\n%",
            scale=f"0{100:>{BAR - 1}}",
        ),
    )
    budget = answer.unit.text(answer.budget, answer.budget)
    below = (budget_words(answer, f"{budget} points to any one number"),)
    frames = [Frame("series", "", columns, rows, notes=below)]
    frames += [_growth(answer)] if answer.growth else []
    frames += [_triangle(answer, cells)] if (cells := answer.rows()) else []
    return Told(tuple(frames), finding_words(answer), notes)


def _growth(answer: RetentionAnswer) -> Frame:
    names = ("active", "new", "stayed", "returned", "lost", "interval", "came for\neach lost")
    rows = [
        (
            *(each.window, f"{each.active:,.0f}", *map(devices_text, each[2:5])),
            *(("", "") if not each.lost else (devices_text(each.lost), devices_between(each.lost))),
            quick_text(each),
        )
        for each in answer.growth[-_ROWS:]
    ]
    columns = (Column("window", answer.window, "words"), *(Column(each, each) for each in names))
    return Frame("growth", "", columns, rows)


def _triangle(answer: RetentionAnswer, rows: list[tuple[Any, ...]]) -> Frame:
    """Percent of each cohort, in whole points; a question mark where its devices are too few."""
    ages = range(1, max(age for _, _, age, *_ in rows) + 1)
    found: dict[str, dict[int, WordedValue]] = {}
    began: dict[str, float] = {}
    for cohort, _, age, devices, value, _, low, high, _ in rows:
        began[cohort] = devices
        text = "?" if value is None else f"{value * 100:.0f}"
        wide = value is None or high - low > 0.2
        cell = WordedValue(value, text, "quiet" if wide else "plain")
        found.setdefault(cohort, {})[age] = cell
    columns = (
        Column("cohort", "first\nactive in", "words"),
        Column("devices", "counted"),
        *(Column(f"age {age}", f"{age}") for age in ages),
    )
    told = [
        (cohort, f"{max(0.0, began[cohort]):,.0f}", *(cells.get(age) for age in ages))
        for cohort, cells in list(found.items())[-_ROWS:]
    ]
    note = (
        f"% active so many {answer.window}s later. Dim: known to ±10 points at best; ?: too few "
        "devices."
    )
    return Frame("cohorts", "", columns, told, notes=(note,))
