"""Tests whether a tally of numbers can be the sum of honest reports: figures with p-values.

Each p-value is valid for *every* crowd of honest devices, whatever their numbers, and however often
the same devices reported: the bounds hold for each report, given the number behind it.

**Sliding window.** A window of w columns has exactly one column of each remainder modulo w. So
whatever the number, a report falls on a column j = r modulo w with probability ::

    K_r m + (P / (2**53 w) - m),    K_r = how many of the D columns have remainder r

with m the probability of a column outside of the window. One column is sent with a probability
from m to P / (2**53 w).

* *groups*: chi-square of the w groups of columns, whose probabilities are known.
* *rarest*, *commonest*: the column that is sent too seldom for m, or too often for P / (2**53 w):
  binomial tails, times the number of columns.
* *outside*: a mean above `high` or below `low`.

**Hierarchical histogram.**

* *lowest*: the node of any row whose reports are too few for any share of 0 or more: the lower tail
  of a binomial with probability q, times the number of nodes.
* *low*: in the finest row, how many nodes are more than a standard error below zero, where nodes
  that move together count as fewer (as in `deniable_estimator.analyses.anomalies`).
* *rows*: chi-square of the reports in each row beside the shares that devices draw.
* *agreement*: chi-square of how much the rows differ about the shares of the four nodes of depth 1.
  Devices draw their row whatever their number, so that all rows tell of the same crowd.
* *repeated*: the most frequent column of a row, compared with the most that devices with the same
  number would send it.

**dBitFlip.** Devices keep their rows and memos, so if they reported `repeats` times, variances are
that many times larger at most.

* *rows*: as above, with equal shares.
* *ones*: how many bits are set in all reports. Whatever its number is, a device has a bit of its
  own in one of the R rows, and draws one of them. So the mean is d s + (1 - 2 s) / R and the
  variance d s (1 - s) + (1 - 2 s)**2 (1 - 1 / R) / R.
* *lowest*, *low*: the counter of a cell that is too low for any share of 0 or more, times the
  number of cells; and how many counters are more than a standard error below that. Given the
  numbers, they are independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from deniable.protocol.mechanisms.dbitflip import DBitFlip
from deniable.protocol.mechanisms.hierarchical_histogram import (
    HierarchicalHistogram,
    Level,
    space_of,
)
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.anomalies import (
    CROWDED,
    LEAST_REPORTS,
    Found,
    low_figure,
    message_figure,
    row_figures,
)
from deniable_estimator.analyses.base import Counts, OneRowAnalysis
from deniable_estimator.analyses.numbers.bits import cell_shares
from deniable_estimator.analyses.numbers.mean import window_channel, window_mean
from deniable_estimator.analyses.numbers.scores import ARITY, ownership, row_shares
from deniable_estimator.analyses.own_columns import SubsetSelectionAnalysis
from deniable_estimator.analyses.projective_geometry import ProjectiveGeometryAnalysis
from deniable_estimator.statistics.tails import (
    binomial_tail,
    chi_square_tail,
    normal_tails,
)

_VARIED = 50.0
"""Reports that noise must have changed in a row: their variance is estimated from the counters."""


def window_figures(window: SlidingWindow, row: TallyRow) -> Iterator[Found]:
    """All tests of the row of a sliding window; none of fewer than LEAST_REPORTS reports."""
    n = row.reports
    if n < LEAST_REPORTS:
        return
    inside, outside = window_channel(window)
    remainder = np.arange(window.columns) % window.width
    columns = np.bincount(remainder)
    expected = n * (columns * outside + inside - outside)
    if window.width > 1 and expected.min() >= CROWDED:
        seen = np.bincount(remainder, weights=row.cells)
        statistic = float((np.square(seen - expected) / expected).sum())
        freedom = window.width - 1
        yield "groups", statistic, float(freedom), chi_square_tail(statistic, freedom)
    least, most = int(row.cells.min()), int(row.cells.max())
    tail = binomial_tail(n - least, n, 1 - outside)
    yield "rarest", float(least), n * outside, min(1.0, window.columns * tail)
    tail = binomial_tail(most, n, inside)
    yield "commonest", float(most), n * inside, min(1.0, window.columns * tail)
    mean = window_mean(window, row)
    nearest = min(max(mean.mean, -1.0), 1.0)
    tail = 1.0
    if mean.mean != nearest:
        # Either end could have been exceeded.
        tail = normal_tails((mean.mean - nearest) / mean.std_error)
    yield "outside", mean.mean, nearest, tail


def tree_figures(mechanism: HierarchicalHistogram, rows: Sequence[TallyRow]) -> Iterator[Found]:
    """All tests of a tally of a hierarchical histogram, those of the mean's row included.

    Where several rows have a figure, the least likely one is told, times the number of rows.
    """
    total = sum(row.reports for row in rows)
    if total < LEAST_REPORTS:
        return
    tree = [
        (level, row)
        for level, row in zip(mechanism.levels, rows, strict=False)
        if row.reports >= LEAST_REPORTS
    ]
    yield from row_figures(rows, shares=row_shares(mechanism))
    if tree:
        supports = [_nodes(level).places(row.cells)[: level.size] for level, row in tree]
        yield _lowest(tree, supports)
        if tree[-1][0].size > ARITY:
            yield _low(*tree[-1], supports[-1])
        most = [_nodes(level).commonest() or float(level.p) for level, _ in tree]
        yield from message_figure([row for _, row in tree], most)
    spread = [(level, row) for level, row in tree if row.reports * (1 - float(level.p)) >= _VARIED]
    if len(spread) > 1:
        yield _agreement(spread)
    if mechanism.mean is not None:
        yield from window_figures(mechanism.mean, rows[-1])


def bit_figures(mechanism: DBitFlip, tally: Tally, repeats: float) -> Iterator[Found]:
    """All tests of a tally of dBitFlip; none of fewer than LEAST_REPORTS reports."""
    n = tally.reports
    if n < LEAST_REPORTS:
        return
    yield from row_figures(tally.rows, repeats)
    s, rows = float(mechanism.flipped), len(tally.rows)
    seen = sum(int(row.cells.sum()) for row in tally.rows) / n
    expected = mechanism.bits * s + (1 - 2 * s) / rows
    own = (1 - 2 * s) ** 2 * (1 - 1 / rows) / rows
    error = math.sqrt((mechanism.bits * s * (1 - s) + own) * repeats / n)
    yield "ones", seen, expected, normal_tails((seen - expected) / error)
    reports = np.array([max(1, row.reports) for row in tally.rows], np.float64)
    if reports.min() * s < CROWDED:
        return
    # Without the half, counters of few reports would be below their expectation too often.
    counters = np.array([row.cells for row in tally.rows], np.float64).T + 0.5
    scores = (counters - reports * s) / np.sqrt(reports * s * (1 - s) * repeats)
    lowest = cell_shares(mechanism, tally.rows).min()
    tail = normal_tails(min(0.0, float(scores.min()))) / 2
    yield "lowest", float(lowest), 0.0, min(1.0, mechanism.cells * tail)
    yield low_figure(int((scores < -1).sum()), mechanism.cells)


_Rows: TypeAlias = Sequence[tuple[Level, TallyRow]]


def _nodes(level: Level) -> OneRowAnalysis[Any]:
    """What a row says of the nodes of its level."""
    if isinstance(level, ProjectiveGeometry):
        return ProjectiveGeometryAnalysis(level)
    return SubsetSelectionAnalysis(level)


def _lowest(tree: _Rows, supports: Sequence[Counts]) -> Found:
    nodes, best = 0, ("lowest", 0.0, 0.0, 1.0)
    for (level, row), support in zip(tree, supports, strict=True):
        nodes += level.size
        p, q = float(level.p), float(level.q)
        least = int(support.min())
        tail = binomial_tail(row.reports - least, row.reports, 1 - q)
        if tail <= best[3]:
            best = ("lowest", (least / row.reports - q) / (p - q), 0.0, tail)
    return *best[:3], min(1.0, nodes * best[3])


def _low(level: Level, row: TallyRow, support: Counts) -> Found:
    n, q = row.reports, float(level.q)
    # Without the half, supports of few reports would be below their expectation too often.
    scores = (support + 0.5 - n * q) / math.sqrt(n * q * (1 - q))
    return low_figure(int((scores < -1).sum()), level.size, _nodes(level).together())


def _agreement(tree: _Rows) -> Found:
    """The rows' own shares of three of the four nodes, beside their common mean."""
    shares, precisions = [], []
    for level, row in tree:
        own = ownership(*space_of(level), level.rows[0].width, level.size)
        p, q = float(level.p), float(level.q)
        scores = own.reshape(ARITY, -1, own.shape[1]).sum(axis=1) / (p - q)
        # In every report the four sum to about the same; centred, exactly.
        scores = (scores - scores.mean(axis=0))[:-1]
        rate = row.cells / row.reports
        mean = scores @ rate
        spread = (scores * rate) @ scores.T - np.outer(mean, mean)
        shares.append(mean)
        precisions.append(np.linalg.pinv(spread / row.reports))
    common = np.linalg.pinv(np.sum(precisions, axis=0)) @ sum(
        precision @ share for precision, share in zip(precisions, shares, strict=True)
    )
    statistic = float(
        sum(
            (share - common) @ precision @ (share - common)
            for precision, share in zip(precisions, shares, strict=True)
        )
    )
    freedom = (ARITY - 1) * (len(tree) - 1)
    return "agreement", statistic, float(freedom), chi_square_tail(statistic, freedom)
