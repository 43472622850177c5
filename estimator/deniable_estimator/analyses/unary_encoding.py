"""Unary encoding and basic RAPPOR, which is unary encoding with memos.

Every bit of every report is randomized independently, so each column of a tally is the sum of two
binomials, independent of all other columns.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeVar

import numpy as np

from deniable.protocol.mechanisms import BasicRappor, UnaryEncoding
from deniable_collector.tally import TallyRow
from deniable_estimator.analyses.base import Counts, Items, MemoryAnalysis, OneRowAnalysis, Ones
from deniable_estimator.analyses.memoized import alternating_bits, flipped

AnyBits = TypeVar("AnyBits", UnaryEncoding, BasicRappor)


class UnaryEncodingAnalysis(OneRowAnalysis[AnyBits]):
    """Each value is supported by its own bit of the only row."""

    def ones(self) -> Ones:
        mechanism = self.mechanism
        return Ones(mechanism.size, float(mechanism.p), float(mechanism.q))

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        """`items` is every value, in order, and is ignored."""
        devices = int(counts.sum())
        cells = rng.binomial(counts, float(self.mechanism.p))
        cells += rng.binomial(devices - counts, float(self.mechanism.q))
        return (TallyRow(devices, cells),)


class BasicRapporAnalysis(UnaryEncodingAnalysis[BasicRappor], MemoryAnalysis):
    """The same with memos, each of which is a bitmap."""

    def memo_channel(self) -> tuple[Fraction, Fraction]:
        return flipped(self.mechanism.rounds)

    def alternation_loss(self, reports: int) -> float:
        return alternating_bits(self.mechanism.rounds, self.mechanism.size, 1, 1, reports // 2)
