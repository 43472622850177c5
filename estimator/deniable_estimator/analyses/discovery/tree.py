"""Which strings may be there: a search through the rows of a discovery tally, two bytes a row.

Row r counts, for each string of first 2r bytes x and next two bytes k, the cell base_r(x) + k. So
all continuations of x are one window of 65,536 neighbouring cells, and the server hashes each
prefix that is still in question once. With the estimate f of a cell, its standard error s of a
share of 0, and the prior L (`prior.py`), a continuation has the log-odds ::

    z |z| / 2 + L(k after x) + 1,   z = min(f, share of x) / s

and a prefix the sum of -log(1 + exp(-log-odds)) over its tokens: the logarithm of the chance that
each of them is real. The `KEPT` likeliest prefixes of a row go on.

A string cannot be more common than its beginning. So a cell that is clearly larger than its prefix
is a heavy cell of another string, and dropped. The variance of that comparison is the one at the
estimate itself: at a share near 1 the variance of a share of 0 would drop the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms import PrefixTree
from deniable.protocol.mechanisms.prefix_code import WINDOW
from deniable_estimator.analyses.base import Counts
from deniable_estimator.analyses.discovery.letters import BETWEEN, DEAD, ENDED, steps
from deniable_estimator.analyses.discovery.prior import START
from deniable_estimator.statistics.intervals import FloatArray

KEPT = 512
"""Prefixes of a row that go on to the next: 256 lose a twentieth of what is found."""

AGREE = 3.5
"""By so many standard errors a string may seem more common than its beginning."""

_HIT = 2.0
"""Cells below so many standard errors are not looked at."""

_OFFSET = 1.0
"""What every token has in its favour: set once, on lists that no benchmark uses for validation."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A string that may be there, or a prefix on the way to one."""

    head: bytes
    state: int
    """That of `letters.steps`."""
    last: int
    """Its last byte; START of none."""
    cap: float
    """The least share of its prefixes, itself among them."""
    cap_variance: float
    score: float
    """The logarithm of the chance that all its tokens are real."""
    level: int
    """Rows that chose it: the others say what it is without having chosen it."""

    @property
    def cut(self) -> bool:
        """Whether it fills the whole length, so that longer strings begin with it."""
        return self.state != ENDED


def variance(share: FloatArray, reports: float, p: float, q: float) -> FloatArray:
    """The variance of shares estimated from so many reports, at those shares."""
    rate = np.clip(q + np.maximum(share, 0.0) * (p - q), 1e-9, 1 - 1e-9)
    found: FloatArray = rate * (1 - rate) / (reports * (p - q) ** 2)
    return found


def candidates(
    row: Callable[[int], Counts],
    reports: Sequence[int],
    code: PrefixTree,
    logs: FloatArray,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> list[Candidate]:
    """The strings that may be there, KEPT of each length at most.

    Args:
        row: the support of each cell of a row, shape (width,).
        reports: those of each row.
        logs: the prior's, shape (257, 256).
        progress: is told how many of how many rows are done.
    """
    allowed = steps(code.alphabet)
    live = [Candidate(b"", BETWEEN, START, 1.0, 0.0, 0.0, 0)]
    found: list[Candidate] = []
    inner = logs[np.arange(WINDOW) >> 8, np.arange(WINDOW) & 255]
    inner[0] = 0.0
    for level in range(code.levels):
        progress(level, code.levels + 1)
        if not reports[level]:
            return found
        grown = _grown(level, row(level), reports[level], code, (logs, inner), allowed, live)
        found += [each for each in grown if each.state == ENDED]
        live = [each for each in grown if each.state != ENDED]
        if not live:
            return found
    return found + live


def _grown(
    level: int,
    support: Counts,
    reports: int,
    code: PrefixTree,
    prior: tuple[FloatArray, FloatArray],
    allowed: NDArray[np.int8],
    live: Sequence[Candidate],
) -> list[Candidate]:
    """The likeliest continuations of the prefixes by the tokens of one row."""
    p, q = float(code.p), float(code.q)
    error = float(np.sqrt(q * (1 - q) / reports) / (p - q))
    hits = np.flatnonzero(support > reports * q + _HIT * np.sqrt(reports * q * (1 - q)))
    share = (support[hits] / reports - q) / (p - q)
    noise = variance(share, reports, p, q)
    # A window may go on at the first cell.
    around, each = np.concatenate([hits, hits + code.width]), len(hits)
    logs, inner = prior
    columns: list[tuple[NDArray[np.intp], Counts, FloatArray, FloatArray, FloatArray]] = []
    for place, parent in enumerate(live):
        base = code.base(level, parent.head)
        begin, end = np.searchsorted(around, [base, base + WINDOW])
        tokens, at = around[begin:end] - base, np.arange(begin, end) % max(each, 1)
        keep = allowed[parent.state, tokens] != DEAD
        limit = parent.cap + AGREE * np.sqrt(noise[at] + parent.cap_variance)
        keep &= share[at] <= limit
        if level == 0:
            keep &= tokens != 0  # the empty string is none
        tokens, at = tokens[keep], at[keep]
        z = np.minimum(share[at], parent.cap) / error
        odds = z * np.abs(z) / 2 + logs[parent.last, tokens >> 8] + inner[tokens] + _OFFSET
        score = parent.score - np.logaddexp(0.0, -odds)
        columns.append((np.full(len(tokens), place), tokens, share[at], noise[at], score))
    parents, tokens, shares, noises, scores = (
        np.concatenate(column) for column in zip(*columns, strict=True)
    )
    chosen = np.argsort(-scores, kind="stable")[:KEPT]
    return [
        _child(live[parents[at]], int(tokens[at]), shares[at], noises[at], scores[at], allowed)
        for at in chosen
    ]


def _child(
    parent: Candidate,
    token: int,
    share: float,
    noise: float,
    score: float,
    allowed: NDArray[np.int8],
) -> Candidate:
    lower = share < parent.cap
    return Candidate(
        parent.head + token.to_bytes(2, "big").rstrip(b"\0"),
        int(allowed[parent.state, token]),
        token & 255,
        float(share) if lower else parent.cap,
        float(noise) if lower else parent.cap_variance,
        float(score),
        parent.level + 1,
    )
