"""Open domains by salted hash tables: any string is hashed to a value of a closed mechanism.

A device draws one of R rows uniformly, hashes its string with that row's salt to one of
w values, and reports that value through a mechanism over them (the *channel*). Over the
public hash functions, under which two strings meet in a row with probability 1/w::

    p = channel.p
    q = p/w + (1 - 1/w) channel.q
    e**epsilon = channel's: the row does not depend on the string
    n * Var(share f) = r (1-r) / (p-q)**2,  r = q + f (p-q)

so that estimates are unbiased over the draw of the hash functions, collisions and all.
For the hash functions in force, a string that collides with another in one of the R rows is
estimated too high by 1/R of that other's share, and all others slightly too low. Over the
hash functions this adds a variance of (sum of all f**2) / (R (w-1)), which does not shrink
with the number of reports. It is concentrated on a few *ghosts*, whose rows disagree.

The row is drawn afresh for each report. With a fixed row, the reports of a device would share
log2(R) bits that link them, without any gain in accuracy.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar, Self

from deniable.protocol.errors import SchemeError
from deniable.protocol.exact import exp_below
from deniable.protocol.hashing import hash64
from deniable.protocol.mechanisms.base import Channels, FrequencyOracle, Memoizing, Report
from deniable.protocol.mechanisms.compatible import HadamardResponse, UnaryEncoding
from deniable.protocol.mechanisms.limits import MAX_CELLS, SALT, Parameters, check_memo_epsilon
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection, SubsetSelection
from deniable.protocol.randomness import Bits, system_bits

MAX_ROWS = 1 << 16

_ROWS = {"salt": SALT, "rows": (1, MAX_ROWS)}
"""What all have in common; beside it stand the parameters of the channel."""


class Hashed(Channels[str], FrequencyOracle[str]):
    """A channel over the hash values of strings, in `hashes` rows under the salt `salt`.

    Raises:
        SchemeError: no rows, or more than MAX_CELLS cells in all.
    """

    size: None

    def __init__(self, salt: str, hashes: int, channel: FrequencyOracle[int]) -> None:
        (row,) = channel.rows
        assert channel.size is not None
        if not 1 <= hashes <= min(MAX_ROWS, MAX_CELLS // row.width):
            raise SchemeError(
                f"{self.name}: {hashes} rows of {row.width:,} cells are none, or above "
                f"{MAX_CELLS:,} cells in all; take fewer"
            )
        self.salt, self.hashes, self.channel = salt, hashes, channel
        self.channels = (channel,) * hashes
        self.size, self.width = None, channel.size
        self.rows = (row,) * hashes
        self.p = channel.p
        self.q = channel.p / self.width + (1 - Fraction(1, self.width)) * channel.q
        self.odds = channel.odds

    def parameters(self) -> Parameters:
        return {"salt": self.salt, "rows": self.hashes, **self.channel.parameters()}

    def place(self, row: int, text: str) -> int:
        """Which value of the channel a string stands for in a row.

        Raises:
            ValueError: the string is not valid Unicode.
        """
        # 2**64 values over at most 2**23 places are even to one part in 2**41.
        return hash64(self.salt, row, text) % self.width


ROWS = 4
"""Enough to notice that one table differs; more would only cost memory and time."""

LEAST_POINTS = 1 << 17
"""Places in a table: a collision with a given string has a chance below 1 in 100,000."""


class HashedProjectiveGeometry(Hashed):
    """Projective geometry over hashed strings.

    Projective geometry response for strings; the analyst may name the candidates later.

    Each of R salted tables is a projective space, and a string is hashed to one of its K
    points (see `deniable.protocol.mechanisms.projective_geometry`). Every message supports s of
    the K points, so over the hash functions::

        q = s / K,    n * Var(share 0) = q (1-q) / (p-q)**2

    exactly, whatever the threshold: nearly the optimum for large domains, at 18 to 21 bits per
    report. Four tables distinguish a string from a ghost, which is high in only one of them.
    """

    name: ClassVar[str] = "hashed_projective_geometry"
    bounds: ClassVar = {**_ROWS, "channel": ProjectiveGeometry}

    @classmethod
    def design(cls, salt: str, epsilon: float) -> Self:
        """The space of least variance for a rare string, with ROWS tables of at least
        LEAST_POINTS points and MAX_CELLS cells in all; metrics have their names for salt.
        """
        channel = ProjectiveGeometry.best(epsilon, LEAST_POINTS, MAX_CELLS // ROWS)
        return cls(salt, ROWS, channel)


LOCAL_COHORTS = 1024


class CohortLocalHashing(Hashed):
    """Generalized randomized response over hashed strings.

    Local hashing with public cohorts, so that it can be kept as counts.

    A device draws one of the cohorts, hashes its string to one of g buckets under that
    cohort's salt and answers by generalized randomized response over the buckets (Wang et
    al., USENIX Security 2017; with a fixed set of hash functions Cormode, Maddock and Maple,
    VLDB 2021)::

        p = e / (e + g - 1)  (rounded down to 53 bits),  q = 1/g
        n * Var(share f) = r (1-r) / (p-q)**2;  4e / (e-1)**2 for f = 0 and g = e + 1

    Included for compatibility and comparison. With C cohorts, collisions add a variance of
    (sum of all f**2) / (C (g-1)), which is large since g is small.
    """

    name: ClassVar[str] = "cohort_local_hashing"
    bounds: ClassVar = {**_ROWS, "channel": SubsetSelection}

    @classmethod
    def design(cls, salt: str, epsilon: float) -> Self:
        """The number of buckets is e**epsilon + 1, rounded; LOCAL_COHORTS cohorts, if they fit."""
        buckets = math.floor(exp_below(epsilon) + Fraction(3, 2))
        channel = SubsetSelection.design(buckets, epsilon, k=1)
        return cls(salt, min(LOCAL_COHORTS, MAX_CELLS // buckets), channel)


WIDTH = 1024
"""Places in a row, as published."""

HASHES = 1024
"""Rows. The published 65,536 would make a tally of 67 million cells; collisions add a
variance of (sum of all f**2) / (HASHES * WIDTH)."""


class CountMeanSketch(Hashed):
    """Symmetric unary encoding over hashed strings.

    Apple's two sketches for strings (Differential Privacy Team, "Learning with Privacy at
    Scale", 2017), as hashed mechanisms.

    *Count mean sketch*: a string is hashed to one of m bits, and every bit is kept with
    probability h / (h + 1), h = e**(epsilon / 2): symmetric unary encoding of the place::

        p = h / (h + 1),  q = p/m + (1 - 1/m) / (h + 1),  n * Var(share 0) near h / (h - 1)**2

    *Hadamard count mean sketch*: one uniform coordinate of the place's Hadamard transform is
    reported with its sign, flipped with probability 1 / (e + 1). A coordinate l of m with its
    sign b is the column l + m b of a Hadamard matrix of order 2m, and a place one of its last
    m rows, so this is Hadamard response over the m places::

        p = e / (e + 1),  q = p/m + (1 - 1/m) / 2,  n * Var(share 0) near ((e+1) / (e-1))**2

    Both estimators are the published ones: (S/n - q) / (p - q) is their count-mean with its
    correction for collisions. Included for compatibility and comparison.
    """

    name: ClassVar[str] = "count_mean_sketch"
    bounds: ClassVar = {**_ROWS, "channel": UnaryEncoding}

    @classmethod
    def design(cls, salt: str, epsilon: float) -> Self:
        """The sketch at `epsilon`, with HASHES rows of WIDTH places."""
        return cls(salt, HASHES, UnaryEncoding.symmetric(WIDTH, epsilon))


class HadamardCountMeanSketch(Hashed):
    """Hadamard response over hashed strings."""

    name: ClassVar[str] = "hadamard_count_mean_sketch"
    bounds: ClassVar = {**_ROWS, "channel": HadamardResponse}

    @classmethod
    def design(cls, salt: str, epsilon: float) -> Self:
        """The sketch at `epsilon`, with HASHES rows of WIDTH places."""
        return cls(salt, HASHES, HadamardResponse.design(WIDTH, epsilon))


MEMO_COHORTS = 256
"""8 bits of linkage. The decoder for cohort tables tells strings that collide apart."""


class MemoizedLocalHashing(Memoizing[str], Hashed):
    """Two rounds of generalized randomized response over hashed strings.

    Local hashing with memory and public cohorts (cohort LOLOHA), for strings or long lists.

    A device stays in one of C public cohorts, hashes its string to one of g buckets under
    that cohort's salt, keeps a generalized randomized response to each bucket as its memo,
    and reports a fresh generalized randomized response to that memo (LOLOHA: Arcolezi, Pinzon,
    Palamidessi and Gambs, EDBT 2023; see `Hashed` for the hashing, and for the two rounds
    `deniable.protocol.mechanisms.subset_selection` with d = g and k = 1)::

        p = p1 p2 + (1 - p1) (1 - p2) / (g-1)
        e**epsilon  = p (g-1) / (1-p)       one report
        e**lifetime = p1 (g-1) / (1-p1)     one memo, of which there are at most g
        e**fresh    = p2 (g-1) / (1-p2)     one report, given the memos
        q = 1/g,  n * Var(share f) = r (1-r) / (p-q)**2,  r = q + f (p-q)

    with g = e**epsilon + 1, rounded, which is the best g since one report is exactly local
    hashing at epsilon: within a percent of 4e / (e-1)**2, the least for large domains. The
    published calibration treats the two rounds as binary, and so uses less than the declared
    epsilon (2.87 for 3 under a lifetime of 4); this one is exact.

    The cohort is the only thing that links a device's reports: log2(C) bits, by which C must
    be small beside the number of devices. The published protocol draws a hash function for
    each device, and sends it along with every report: a permanent identifier.

    Raises:
        SchemeError: as Hashed.
    """

    name: ClassVar[str] = "memoized_local_hashing"
    bounds: ClassVar = {**_ROWS, "channel": MemoizedSubsetSelection}
    channel: MemoizedSubsetSelection

    def __init__(self, salt: str, hashes: int, channel: MemoizedSubsetSelection) -> None:
        super().__init__(salt, hashes, channel)
        self.lifetime_odds, self.fresh_odds = channel.lifetime_odds, channel.fresh_odds

    @classmethod
    def design(cls, salt: str, epsilon: float, lifetime_epsilon: float) -> Self:
        """The best number of buckets at `epsilon`, in MEMO_COHORTS cohorts, if they fit.

        Raises:
            SchemeError: `lifetime_epsilon` is not above `epsilon`.
        """
        check_memo_epsilon(epsilon, lifetime_epsilon)
        buckets = math.floor(exp_below(epsilon) + Fraction(3, 2))
        channel = MemoizedSubsetSelection.design(buckets, epsilon, lifetime_epsilon, k=1)
        return cls(salt, min(MEMO_COHORTS, MAX_CELLS // buckets), channel)

    def cell(self, row: int, item: str) -> int:
        return self.place(row, item)

    def memoize(self, cell: int, bits: Bits = system_bits) -> int:
        return self.channel.memoize(cell, bits)

    def report(self, row: int, memo: int, bits: Bits = system_bits) -> Report:
        return Report(row, self.channel.report(0, memo, bits).columns)
