"""Discovery: which strings occur, and how common strings are that somebody names. A search through
the rows of a tally, two bytes a row, and a test of what it finds that holds its level.
`statistics.expected` says what surfaces in which crowd.

**Search.** Row r counts, for each string of first 2r bytes x and next two bytes k, the cell
base_r(x) + k. So all continuations of x are one window of 65,536 neighbouring cells, and the server
hashes each prefix that is still in question once. With the estimate f of a cell, its standard error
s of a share of 0, and the prior L (`prior.py`), a continuation has the log-odds ::

    z |z| / 2 + L(k after x) + 1,   z = min(f, share of x) / s

and a prefix the sum of -log(1 + exp(-log-odds)) over its tokens: the logarithm of the chance that
each of them is real. The `KEPT` likeliest prefixes of a row go on.

A string cannot be more common than its beginning. So a cell that is clearly larger than its prefix
is a heavy cell of another string, and dropped. The variance of that comparison is the one at the
estimate itself: at a share near 1 the variance of a share of 0 would drop the truth.

**Test.** A string that was chosen by the rows up to its last token has not been looked at in the
rows after them, whose cells count the whole string. There its support A out of N reports is
binomial with q if no device has it, so p = Pr[Bin(N, q) >= A] is exact, and the share (A/N - q) /
(p - q) is not selected by what chose the string. Rows that contradict each other (chi-square below
1 in 1,000), or a share clearly above that of the string's beginning, are a collision with another
string: p is 1.

Benjamini and Hochberg's step-up test (J. R. Statist. Soc. B 1995) over all of them at LEVEL bounds
the expected part of the finds that no device has.

**A string that is asked for by name** is estimated from the rows after its last token, as a find
is: the row of its last token counts it too, but has chosen it, if it was found in the same reports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms.prefix_tree import WINDOW, PrefixTree
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.base import Analysis, Counts, Items, sample_each_row
from deniable_estimator.analyses.discovery.prior import BETWEEN, DEAD, ENDED, START, Prior, steps
from deniable_estimator.analyses.projective_geometry import ProjectiveGeometryAnalysis
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.significance import step_up
from deniable_estimator.statistics.tails import binomial_tail, chi_square_tail

KEPT = 512
"""Prefixes of a row that go on to the next: 256 lose a twentieth of what is found."""

AGREE = 3.5
"""By so many standard errors a string may seem more common than its beginning."""

_HIT = 2.0
"""Cells below so many standard errors are not looked at."""

_OFFSET = 1.0
"""What every token has in its favour: set once, on lists that no benchmark uses for validation."""

LEVEL = 0.01
"""The expected part of the finds that no device has, at most."""

_DISAGREE = 1e-3
"""The probability that the rows of a string without collisions are said to disagree."""

_LIKELY = 1.0
"""Below so many standard errors no p-value is small enough to matter, so it is not calculated."""


@dataclass(frozen=True, slots=True)
class FoundHead:
    """A string as the rows count it."""

    head: bytes
    """Its first bytes, as the devices have them: UTF-8, cut to the declared length."""
    cut: bool
    """Whether it fills the declared length, so that longer strings may be counted in it."""

    @property
    def level(self) -> int:
        """The first row in which all of its tokens are over."""
        return len(self.head) // 2 if self.cut else len(self.head) // 2 + 1

    @property
    def text(self) -> str:
        """As people read it: what is left of a letter that is cut is shown as \\xNN. It was written
        by a stranger: escape it wherever it is shown."""
        return self.head.decode("utf-8", "backslashreplace")

    @property
    def name(self) -> str:
        """What shares, addresses, charts and files of a trend call it: one that is cut ends in
        dots, as another one may be as long."""
        return self.text + ("\N{HORIZONTAL ELLIPSIS}" if self.cut else "")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A string that may be there, or a prefix on the way to one."""

    head: bytes
    state: int
    """That of `steps`."""
    cap: float
    """The least share of its prefixes, itself among them."""
    cap_variance: float
    score: float
    """The logarithm of the chance that all its tokens are real."""

    @property
    def cut(self) -> bool:
        """Whether it fills the whole length, so that longer strings begin with it."""
        return self.state != ENDED


class DecodedRows:
    """The rows of a tally, each decoded when it is first asked for."""

    def __init__(self, mechanism: PrefixTree, tally: Tally) -> None:
        self.mechanism = mechanism
        self.reports = [row.reports for row in tally.rows]
        self.channel = channel = ProjectiveGeometryAnalysis(mechanism.channel)
        self.row: Callable[[int], Counts] = cache(lambda at: channel.places(tally.rows[at].cells))
        """The support of each cell of a row, shape (width,)."""
        self._p, self._q = float(mechanism.p), float(mechanism.q)

    def find(
        self,
        prior: Prior,
        level: float,
        progress: Callable[[int, int], None] = lambda done, of: None,
    ) -> list[tuple[FoundHead, float]]:
        """The strings that occur, with their p-values, the smallest first.

        Args:
            level: the expected part of the finds that no device has, at most.
            progress: is told how many of how many rows are done.
        """
        of = self.mechanism.levels + 1
        pool = self._candidates(prior.logs, progress)
        progress(of - 1, of)
        heads = [FoundHead(each.head, each.cut) for each in pool]
        values = np.array([self._p_value(*each) for each in zip(pool, heads, strict=True)])
        kept = np.flatnonzero(step_up(values) <= level).tolist()
        found = [(heads[at], float(values[at])) for at in kept]
        progress(of, of)
        return sorted(found, key=lambda each: each[1])

    def supported(self, head: FoundHead) -> Counts:
        """The reports that speak of a string, in the rows that do not choose it: its tokens are
        over there, so that its cell is the first of its window. Row by row those that support it,
        and all of them, shape (2, rows)."""
        rows = range(head.level, self.mechanism.levels + 1)
        counts = [self.row(each)[self.mechanism.base(each, head.head)] for each in rows]
        return np.array([counts, self.reports[head.level :]], np.int64)

    def tells(self, head: FoundHead) -> bool:
        """Whether a scheme of this length counts exactly this: another length cuts elsewhere."""
        full = len(head.head) == 2 * self.mechanism.levels
        return full if head.cut else len(head.head) < 2 * self.mechanism.levels

    def _candidates(
        self, logs: FloatArray, progress: Callable[[int, int], None]
    ) -> list[Candidate]:
        """The strings that may be there, KEPT of each length at most."""
        live = [Candidate(b"", BETWEEN, 1.0, 0.0, 0.0)]
        found: list[Candidate] = []
        for level in range(self.mechanism.levels):
            progress(level, self.mechanism.levels + 1)
            if not self.reports[level]:
                return found
            grown = self._grown(level, logs, live)
            found += [each for each in grown if each.state == ENDED]
            live = [each for each in grown if each.state != ENDED]
            if not live:
                return found
        return found + live

    def _grown(self, level: int, logs: FloatArray, live: Sequence[Candidate]) -> list[Candidate]:
        """The likeliest continuations of the prefixes by the tokens of one row."""
        p, q, code = self._p, self._q, self.mechanism
        support, reports, allowed = self.row(level), self.reports[level], steps(code.alphabet)
        inner = logs[np.arange(WINDOW) >> 8, np.arange(WINDOW) & 255]
        inner[0] = 0.0
        error = float(np.sqrt(q * (1 - q) / reports) / (p - q))
        hits = np.flatnonzero(support > reports * q + _HIT * np.sqrt(reports * q * (1 - q)))
        share = (support[hits] / reports - q) / (p - q)
        noise = variance(share, reports, p, q)
        # A window may go on at the first cell.
        around, each = np.concatenate([hits, hits + code.width]), len(hits)
        columns: list[tuple[NDArray[np.intp], Counts, FloatArray, FloatArray, FloatArray]] = []
        for place, parent in enumerate(live):
            base, last = code.base(level, parent.head), parent.head[-1] if level else START
            begin, end = np.searchsorted(around, [base, base + WINDOW])
            tokens, at = around[begin:end] - base, np.arange(begin, end) % max(each, 1)
            keep = allowed[parent.state, tokens] != DEAD
            limit = parent.cap + AGREE * np.sqrt(noise[at] + parent.cap_variance)
            keep &= share[at] <= limit
            if level == 0:
                keep &= tokens != 0  # the empty string is none
            tokens, at = tokens[keep], at[keep]
            z = np.minimum(share[at], parent.cap) / error
            odds = z * np.abs(z) / 2 + logs[last, tokens >> 8] + inner[tokens] + _OFFSET
            score = parent.score - np.logaddexp(0.0, -odds)
            columns.append((np.full(len(tokens), place), tokens, share[at], noise[at], score))
        parents, tokens, shares, noises, scores = (
            np.concatenate(column) for column in zip(*columns, strict=True)
        )
        found = []
        for at in np.argsort(-scores, kind="stable")[:KEPT].tolist():
            parent, token = live[parents[at]], int(tokens[at])
            lower = shares[at] < parent.cap
            found.append(
                Candidate(
                    parent.head + token.to_bytes(2, "big").rstrip(b"\0"),
                    int(allowed[parent.state, token]),
                    float(shares[at]) if lower else parent.cap,
                    float(noises[at]) if lower else parent.cap_variance,
                    float(scores[at]),
                )
            )
        return found

    def _p_value(self, each: Candidate, head: FoundHead) -> float:
        """That of a candidate with the support that its head has, if no device has it."""
        p, q, seen = self._p, self._q, self.supported(head)
        count, total = seen.sum(axis=1).tolist()
        if not total or count < total * q + _LIKELY * math.sqrt(total * q * (1 - q)):
            return 1.0
        share = np.array([(count / total - q) / (p - q)])
        own = float(variance(share, total, p, q)[0])
        if share[0] > each.cap + AGREE * math.sqrt(own + each.cap_variance):
            return 1.0
        if not _agrees(seen, count / total):
            return 1.0
        return binomial_tail(count, total, q)


def variance(share: FloatArray, reports: float, p: float, q: float) -> FloatArray:
    """The variance of shares estimated from so many reports, at those shares."""
    rate = np.clip(q + np.maximum(share, 0.0) * (p - q), 1e-9, 1 - 1e-9)
    return rate * (1 - rate) / (reports * (p - q) ** 2)


def _agrees(seen: Counts, rate: float) -> bool:
    """Whether the rows may have the same share."""
    rows = [(count, n) for count, n in seen.T.tolist() if n]
    rate = min(max(rate, 1e-9), 1 - 1e-9)
    deviance = sum((count - n * rate) ** 2 / (n * rate * (1 - rate)) for count, n in rows)
    return len(rows) < 2 or chi_square_tail(deviance, len(rows) - 1) >= _DISAGREE


class PrefixTreeAnalysis(Analysis[PrefixTree]):
    """What a tally of discovery says: which strings occur (`DecodedRows`)."""

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        code = self.mechanism
        rows = range(code.levels + 1)
        places = ([code.place(row, item) for item in items] for row in rows)
        channels = [ProjectiveGeometryAnalysis(code.channel)] * len(rows)
        return sample_each_row(channels, places, counts, rng)
