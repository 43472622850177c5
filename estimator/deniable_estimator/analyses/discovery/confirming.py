"""Which of the strings that may be there are: a test that holds its level.

A string that was chosen by the rows up to its last token has not been looked at in the rows after
them, whose cells count the whole string. There its support A out of N reports is binomial with q if
no device has it, so p = Pr[Bin(N, q) >= A] is exact, and the share (A/N - q) / (p - q) is not
selected by what chose the string. Rows that contradict each other (chi-square below 1 in 1,000), or
a share clearly above that of the string's beginning, are a collision with another string: p is 1.

Benjamini and Hochberg's step-up test (J. R. Statist. Soc. B 1995) over all of them at LEVEL bounds
the expected part of the finds that no device has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms import PrefixTree
from deniable_estimator.analyses.base import Counts
from deniable_estimator.analyses.discovery.tree import AGREE, Candidate, variance
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.tails import binomial_tail, chi_square_tail

LEVEL = 0.01
"""The expected part of the finds that no device has, at most."""

_DISAGREE = 1e-3
"""The probability that the rows of a string without collisions are said to disagree."""

_LIKELY = 1.0
"""Below so many standard errors no p-value is small enough to matter, so it is not calculated."""


@dataclass(frozen=True, slots=True)
class Supported:
    """The reports that speak of a string, in the rows that did not choose it."""

    counts: tuple[int, ...]
    """Row by row, those that support it."""
    reports: tuple[int, ...]
    """Row by row, all of them."""

    @property
    def count(self) -> int:
        return sum(self.counts)

    @property
    def total(self) -> int:
        return sum(self.reports)


def support_of(
    head: bytes, level: int, row: Callable[[int], Counts], reports: Sequence[int], code: PrefixTree
) -> Supported:
    """The support of a string in the rows from `level` on. Its tokens are over there, so that its
    cell is the first of its window."""
    rows = range(level, code.levels + 1)
    counts = tuple(int(row(each)[code.base(each, head)]) for each in rows)
    return Supported(counts, tuple(int(reports[each]) for each in rows))


def confirmed(
    pool: Sequence[Candidate],
    row: Callable[[int], Counts],
    reports: Sequence[int],
    code: PrefixTree,
    level: float = LEVEL,
) -> list[tuple[Candidate, Supported, float]]:
    """The candidates that are there, with their support and p-value, the smallest p-value first."""
    p, q = float(code.p), float(code.q)
    seen = [support_of(each.head, each.level, row, reports, code) for each in pool]
    values = np.array(
        [_p_value(each, support, p, q) for each, support in zip(pool, seen, strict=True)]
    )
    kept = np.flatnonzero(step_up(values, level)).tolist()
    found = [(pool[at], seen[at], float(values[at])) for at in kept]
    return sorted(found, key=lambda each: each[2])


def step_up(values: FloatArray, level: float) -> NDArray[np.bool_]:
    """Which hypotheses Benjamini and Hochberg's test rejects, shape (d,) of p-values."""
    ordered = np.sort(values)
    below = np.flatnonzero(ordered <= level * np.arange(1, len(values) + 1) / max(1, len(values)))
    if not len(below):
        return np.zeros(len(values), np.bool_)
    rejected: NDArray[np.bool_] = values <= ordered[below[-1]]
    return rejected


def _p_value(each: Candidate, seen: Supported, p: float, q: float) -> float:
    total, count = seen.total, seen.count
    if not total or count < total * q + _LIKELY * math.sqrt(total * q * (1 - q)):
        return 1.0
    share = np.array([(count / total - q) / (p - q)])
    own = float(variance(share, total, p, q)[0])
    if share[0] > each.cap + AGREE * math.sqrt(own + each.cap_variance):
        return 1.0
    if not _agrees(seen, count / total):
        return 1.0
    return binomial_tail(count, total, q)


def _agrees(seen: Supported, rate: float) -> bool:
    """Whether the rows may have the same share."""
    rows = [(count, n) for count, n in zip(seen.counts, seen.reports, strict=True) if n]
    rate = min(max(rate, 1e-9), 1 - 1e-9)
    deviance = sum((count - n * rate) ** 2 / (n * rate * (1 - rate)) for count, n in rows)
    return len(rows) < 2 or chi_square_tail(deviance, len(rows) - 1) >= _DISAGREE
