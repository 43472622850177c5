"""RAPPOR's filters, with memos and for one report.

Given the filter of the device's string in its cohort, every bit of every report is independent.
So each cell of a tally is the sum of two binomials, independent of all other cells.

Filters are decoded by a regression, which also weighs the bits that a string does *not* set,
against their background density c. One string that sets h of k bits, with cells of equal weight,
has the weights (1 - c) / d on its own bits and -c / d on the others, d = (1 - 2c) h + c**2 k, and
the best fake sets its own bits and no other::

    A = [h(1 - c) - p01(h - ck)] / [d(p11 - p01)] - c(h - ck) / d

which is 1 / (p11 - p01) for h = 1, more than a bitmap of plausible density achieves (see
`deniable_estimator.analyses.poisoning`).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeVar

import numpy as np

from deniable.protocol.mechanisms import OneTimeRappor, Rappor
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.base import Counts, Items, MemoryAnalysis, Ones, Pull
from deniable_estimator.analyses.cohorts import Channel, CohortAnalysis
from deniable_estimator.analyses.hashed import hash_columns
from deniable_estimator.analyses.memoized import alternating_bits, flipped

AnyFilter = TypeVar("AnyFilter", Rappor, OneTimeRappor)


class FilterAnalysis(CohortAnalysis[AnyFilter]):
    """Strings as bits of a Bloom filter, another in each cohort."""

    @property
    def p01(self) -> Fraction:
        """How often a report sets a bit that the string does not set; `mechanism.p` is how often
        it sets one that the string sets."""
        return 1 - self.mechanism.p

    def table(self) -> Channel:
        bloom = self.mechanism.bloom
        sizes = bloom.cohorts, bloom.k, bloom.h
        return Channel(bloom.salt, *sizes, self.mechanism.p, self.p01, exclusive=False)

    def ones(self) -> Ones:
        bloom, fewer = self.mechanism.bloom, 0.0
        # Hashes of a string may meet in one bit. In how many rows that happens is not known;
        # even for devices with the same value it exceeds this once in a million times.
        meetings = bloom.cohorts * bloom.h * (bloom.h - 1) / (2 * bloom.k)
        if meetings:
            fewer = min(1.0, (meetings + 6 * math.sqrt(meetings) + 10) / bloom.cohorts)
        return Ones(bloom.k, float(self.mechanism.p), float(self.p01), float(bloom.h), fewer)

    def _pull(self, targets: int) -> Pull:
        """By the weights of the regression (see above)."""
        bloom, p11, p01 = self.mechanism.bloom, self.mechanism.p, self.p01
        h, k = bloom.h, bloom.k
        c = 1 - (1 - Fraction(1, k)) ** h
        d = (1 - 2 * c) * h + c**2 * k
        spare = p01 * (h - c * k)
        constant = c * (h - c * k) / d
        most = (h * (1 - c) - spare) / (d * (p11 - p01)) - constant
        least = (-c * (k - h) - spare) / (d * (p11 - p01)) - constant
        return Pull(targets * most, targets * least)

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        bloom, p11, p01 = self.mechanism.bloom, self.mechanism.p, self.p01
        columns = hash_columns(bloom.salt, bloom.cohorts * bloom.h, bloom.k, list(items))
        left = np.array(counts, np.int64)
        rows = []
        for cohort in range(bloom.cohorts):
            here = rng.binomial(left, 1 / (bloom.cohorts - cohort))
            left -= here
            bits = np.sort([next(columns) for _ in range(bloom.h)], axis=0)
            true = np.zeros(bloom.k, np.int64)
            for number, each in enumerate(bits):
                # Hashes that collide in one bit set it once.
                fresh = np.ones(len(here), bool) if number == 0 else each != bits[number - 1]
                np.add.at(true, each[fresh], here[fresh])
            devices = int(here.sum())
            cells = rng.binomial(true, float(p11)) + rng.binomial(devices - true, float(p01))
            rows.append(TallyRow(devices, cells))
        return tuple(rows)


class OneTimeRapporAnalysis(FilterAnalysis[OneTimeRappor]):
    """Without memos, for one report of a device."""


class RapporAnalysis(FilterAnalysis[Rappor], MemoryAnalysis):
    """With memos, each of which is a filter."""

    @property
    def p01(self) -> Fraction:
        return self.mechanism.rounds.p01

    def memo_channel(self) -> tuple[Fraction, Fraction]:
        return flipped(self.mechanism.rounds)

    def alternation_loss(self, reports: int) -> float:
        bloom = self.mechanism.bloom
        return alternating_bits(self.mechanism.rounds, bloom.k, bloom.h, bloom.h, reports // 2)
