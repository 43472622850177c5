"""Which strings are there: a search through the rows of a discovery tally, two bytes a row, and a
test of what it finds that holds its level.

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

Which two bytes may follow a prefix is said by UTF-8 (RFC 3629, section 4) and the letters of an
alphabet. A prefix may end inside a letter, so it leaves a state: which bytes the letter still
lacks. A letter that is cut by the declared length is allowed; it ends in whatever state it is.

**Test.** A string that was chosen by the rows up to its last token has not been looked at in the
rows after them, whose cells count the whole string. There its support A out of N reports is
binomial with q if no device has it, so p = Pr[Bin(N, q) >= A] is exact, and the share (A/N - q) /
(p - q) is not selected by what chose the string. Rows that contradict each other (chi-square below
1 in 1,000), or a share clearly above that of the string's beginning, are a collision with another
string: p is 1.

Benjamini and Hochberg's step-up test (J. R. Statist. Soc. B 1995) over all of them at LEVEL bounds
the expected part of the finds that no device has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms.prefix_tree import ALPHABETS, WINDOW, PrefixTree
from deniable_estimator.analyses.base import Counts
from deniable_estimator.analyses.discovery.prior import START
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.tails import binomial_tail, chi_square_tail

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
    """That of `steps`."""
    last: int
    """Its last byte; START of none."""
    cap: float
    """The least share of its prefixes, itself among them."""
    cap_variance: float
    score: float
    """The logarithm of the chance that all its tokens are real."""

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
    live = [Candidate(b"", BETWEEN, START, 1.0, 0.0, 0.0)]
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
    found = []
    for at in np.argsort(-scores, kind="stable")[:KEPT].tolist():
        parent, token = live[parents[at]], int(tokens[at])
        lower = shares[at] < parent.cap
        found.append(
            Candidate(
                parent.head + token.to_bytes(2, "big").rstrip(b"\0"),
                int(allowed[parent.state, token]),
                token & 255,
                float(shares[at]) if lower else parent.cap,
                float(noises[at]) if lower else parent.cap_variance,
                float(scores[at]),
            )
        )
    return found


DEAD = -1
"""No text goes on like this."""
BETWEEN = 0
"""Between two letters."""
ENDED = 1
"""The string is over."""

# One, two or three more continuation bytes; and the next one limited, after E0, ED, F0 and F4,
# so that no letter is written longer than need be, is half of a surrogate pair, or is too large.
_ONE, _TWO, _THREE, _E0, _ED, _F0, _F4 = range(2, 9)
_STATES = 9


@lru_cache(maxsize=8)
def steps(alphabet: str) -> NDArray[np.int8]:
    """The state after a token in a state, shape (9, 65,536); DEAD where none is allowed.

    `alphabet` is a name out of `prefix_tree.ALPHABETS`.
    """
    singles = [each for each in ALPHABETS[alphabet] if each < 0x80]
    others = max(ALPHABETS[alphabet]) >= 0x80
    one = np.full((_STATES, 256), DEAD, np.int8)
    one[BETWEEN, singles] = BETWEEN
    one[BETWEEN, 0] = one[ENDED, 0] = ENDED
    if others:
        one[BETWEEN, 0xC2:0xE0] = _ONE
        one[BETWEEN, 0xE0:0xF0] = _TWO
        one[BETWEEN, 0xE0], one[BETWEEN, 0xED] = _E0, _ED
        one[BETWEEN, 0xF0:0xF5] = _THREE
        one[BETWEEN, 0xF0], one[BETWEEN, 0xF4] = _F0, _F4
    one[_ONE, 0x80:0xC0] = BETWEEN
    one[_TWO, 0x80:0xC0] = _ONE
    one[_THREE, 0x80:0xC0] = _TWO
    one[_E0, 0xA0:0xC0] = _ONE
    one[_ED, 0x80:0xA0] = _ONE
    one[_F0, 0x90:0xC0] = _TWO
    one[_F4, 0x80:0x90] = _TWO
    two = np.where(one[:, :, None] == DEAD, np.int8(DEAD), one[one])
    found: NDArray[np.int8] = two.reshape(_STATES, WINDOW)
    found.flags.writeable = False
    return found


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


def p_value(each: Candidate, seen: Supported, p: float, q: float) -> float:
    """That of a candidate with this support, if no device has it."""
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
