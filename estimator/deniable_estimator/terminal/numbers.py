"""Numbers in a terminal: their mean and quantiles, what lies outside of the range, a histogram.

Importing this file registers how they are shown (`estimate_view`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deniable.protocol.mechanisms.number_range import number_text
from deniable_estimator.analyses.numbers.distribution import RangeShare
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.distribution import CellShares, Distribution
from deniable_estimator.answers.mean import Mean
from deniable_estimator.answers.units import SHARES, half_width
from deniable_estimator.errors import EstimateError
from deniable_estimator.planning.population import Crowd
from deniable_estimator.terminal.tables import alarms, estimate_view, heading, interval

_BARS = 22
"""The most bars of a histogram between the first and the last, which have no ends."""

_TAIL = 0.005
"""The share that the first and the last bar hold at most, so that the others are narrow."""

_WIDTH = 30


@estimate_view.register
def _(answer: Mean, truth: Crowd | None = None, limits: Sequence[float] = ()) -> RenderableType:
    """The mean; with `truth`, that of the simulated crowd beside it."""
    parts: list[RenderableType] = [heading(answer)]
    if answer.n:
        parts += [_series(answer, [answer.found.reach(answer.fakes)], truth), _budget(answer)]
    return Group(*parts, *_remarks(answer))


@estimate_view.register
def _(
    answer: Distribution, truth: Crowd | None = None, limits: Sequence[float] = ()
) -> RenderableType:
    """Quantiles and mean, shares outside of the range and below `limits`, a histogram; with
    `truth`, those of the simulated crowd beside them."""
    parts: list[RenderableType] = [heading(answer)]
    if answer.n:
        budgets = [answer.reach(each.p) for each in answer.quantiles]
        budgets.append(answer.mean.reach(answer.fakes))
        parts += [
            *(_series(answer, budgets, truth), _budget(answer), ""),
            *(_shares(answer, limits, truth), "", _histogram(answer)),
        ]
    return Group(*parts, *_remarks(answer))


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


def _series(
    answer: Mean | Distribution, budgets: Sequence[tuple[float, float]], truth: Crowd | None
) -> Table:
    """Each series with its interval, and between which numbers fakes could put it."""
    series, unit = answer.series, answer.unit
    outside: list[str | None] = [None] * len(series.names)
    if isinstance(answer, Distribution):
        words = dict(zip(("below", "above"), outside_words(answer), strict=True))
        for place, each in enumerate(answer.quantiles):
            outside[place] = words.get(each.outside or "")
    table = _series_table("", truth is not None, answer.level, answer.name or "")
    table.add_column(f"with {answer.fakes * 100:.3g}% fakes\n{answer.name or ''}", justify="right")
    for place, name in enumerate(series.names):
        value, low, high = (float(each[place]) for each in (series.value, series.low, series.high))
        spread = half_width(value, low, high)
        cells = [name, outside[place] or unit.text(value, spread)]
        cells += [interval(unit, *ends, spread) for ends in ((low, high), budgets[place])]
        if truth is not None:
            cells.insert(1, unit.text(truth.series(name), spread))
        table.add_row(*map(Text, cells))
    return table


def _shares(answer: Distribution, limits: Sequence[float], truth: Crowd | None) -> Table:
    """The shares outside of the range, and below each limit."""
    below, above = outside_words(answer)
    end = answer.range.end
    rows: list[tuple[str, RangeShare, float]] = []
    for limit in limits:
        share = truth.share_below(limit) if truth else 0.0
        rows.append((f"below {_declared(answer, limit)}", answer.share_below(limit), share))
    if truth is None:
        rows += [(below, answer.below, 0.0), (above, answer.above, 0.0)]
    else:
        rows.append((below, answer.below, truth.share_below(answer.range.start)))
        rows.append((above, answer.above, 1 - truth.share_below(end)))
    table = _series_table("share of the devices", truth is not None, answer.level, "%")
    for words, found, share in rows:
        spread = half_width(found.share, found.low, found.high)
        cells = [words, SHARES.text(found.share, spread)]
        cells.append(interval(SHARES, found.low, found.high, spread))
        if truth is not None:
            cells.insert(1, SHARES.text(share, spread))
        table.add_row(*map(Text, cells))
    return table


def _series_table(name: str, simulated: bool, level: float, unit: str) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column(name, vertical="bottom", no_wrap=True)
    headings = ("estimate", f"{level * 100:.3g}% interval")
    for each in (*(("truth",) if simulated else ()), *headings):
        table.add_column(f"{each}\n{unit}", justify="right", no_wrap=True)
    return table


def _histogram(answer: Distribution) -> Table:
    """Bars of neighbouring cells, with the quantiles that lie in them."""
    bars = _bars(answer.cells)
    widest = max(max(share for _, _, share in bars), 1e-12)
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column(f"from\n{answer.name or ''}", justify="right", no_wrap=True)
    table.add_column("share\n%", justify="right", no_wrap=True)
    table.add_column("histogram\n(points, without intervals)", no_wrap=True)
    table.add_column("")
    width = 0.0
    for start, end, share in bars:
        # The last bars may be narrower, or have no end: they are written like the others.
        width = max(width, (end - start) / 2) if math.isfinite(end - start) else width
        marks = [
            f"p{100 * each.p:g}"
            for each, value in zip(answer.quantiles, answer.series.value.tolist(), strict=False)
            if start <= value < end or (each.outside == "above" and math.isinf(end))
        ]
        table.add_row(
            Text("" if math.isinf(start) else answer.unit.text(start, width or abs(start))),
            Text(SHARES.text(share, 0.0)),
            Text("█" * round(share / widest * _WIDTH), style="cyan"),
            Text(" ".join(marks), style="bold"),
        )
    return table


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


def _budget(answer: Mean | Distribution) -> Text:
    """What fakes could add to the mean; the table has between which numbers they could put it."""
    found = answer.found if isinstance(answer, Mean) else answer.mean
    most = answer.unit.full(answer.budget, abs(answer.budget))
    return Text(
        f"Poisoning budget: {answer.fakes * 100:.3g}% fake devices could add up to {most} to the "
        f"{'geometric mean' if found.log else 'mean'}.",
        style="dim",
    )


def _remarks(answer: Answer) -> Iterator[Text]:
    yield from (Text(f"Note: {warning}.", style="yellow") for warning in answer.warnings)
    yield from alarms(answer)
