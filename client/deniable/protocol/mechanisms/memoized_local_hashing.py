"""Local hashing with memory and public cohorts (cohort LOLOHA), for strings or long lists.

A device stays in one of C public cohorts, hashes its string to one of g buckets under
that cohort's salt, keeps a generalized randomized response to each bucket as its memo,
and reports a fresh generalized randomized response to that memo (LOLOHA: Arcolezi, Pinzon,
Palamidessi and Gambs, EDBT 2023; see `deniable.protocol.mechanisms.hashed` for the hashing, and
`deniable.protocol.mechanisms.memoized_subset_selection` with d = g and k = 1 for the two rounds)::

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
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar, Self

from deniable.protocol.exact import exp_below
from deniable.protocol.mechanisms.base import MemoizingOracle, Report
from deniable.protocol.mechanisms.hashed import Hashed
from deniable.protocol.mechanisms.limits import MAX_CELLS, check_memo_epsilon
from deniable.protocol.mechanisms.memoized_subset_selection import MemoizedSubsetSelection
from deniable.protocol.randomness import Bits, system_bits

COHORTS = 256
"""8 bits of linkage. The decoder for cohort tables tells strings that collide apart."""


class MemoizedLocalHashing(Hashed, MemoizingOracle[str]):
    """Two rounds of generalized randomized response over hashed strings.

    Raises:
        SchemeError: as Hashed.
    """

    name: ClassVar[str] = "memoized_local_hashing"
    channel_class = MemoizedSubsetSelection
    channel: MemoizedSubsetSelection

    def __init__(self, salt: str, hashes: int, channel: MemoizedSubsetSelection) -> None:
        super().__init__(salt, hashes, channel)
        self.lifetime_odds, self.fresh_odds = channel.lifetime_odds, channel.fresh_odds

    @classmethod
    def design(cls, salt: str, epsilon: float, lifetime_epsilon: float) -> Self:
        """The best number of buckets at `epsilon`, in COHORTS cohorts, if they fit.

        Raises:
            SchemeError: `lifetime_epsilon` is not above `epsilon`.
        """
        check_memo_epsilon(epsilon, lifetime_epsilon)
        buckets = math.floor(exp_below(epsilon) + Fraction(3, 2))
        channel = MemoizedSubsetSelection.design(buckets, epsilon, lifetime_epsilon, k=1)
        return cls(salt, min(COHORTS, MAX_CELLS // buckets), channel)

    def cell(self, row: int, item: str) -> int:
        return self.place(row, item)

    def memoize(self, cell: int, bits: Bits = system_bits) -> int:
        return self.channel.memoize(cell, bits)

    def report(self, row: int, memo: int, bits: Bits = system_bits) -> Report:
        return Report(row, self.channel.report(0, memo, bits).columns)
