"""Cohort local hashing, with memos and without: one column for each string in every cohort."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeVar

from deniable.protocol.mechanisms import CohortLocalHashing, MemoizedLocalHashing
from deniable_estimator.analyses.base import MemoryAnalysis
from deniable_estimator.analyses.cohorts import Channel, CohortAnalysis
from deniable_estimator.analyses.hashed import HashedAnalysis
from deniable_estimator.analyses.subset_selection import (
    MemoizedSubsetSelectionAnalysis,
    SubsetSelectionAnalysis,
)

AnyCohorts = TypeVar("AnyCohorts", CohortLocalHashing, MemoizedLocalHashing)


class CohortLocalHashingAnalysis(CohortAnalysis[AnyCohorts], HashedAnalysis[AnyCohorts]):
    """Strings are estimated jointly; the support of a single one is counted as for other hashed
    strings."""

    channel_analysis = SubsetSelectionAnalysis

    def table(self) -> Channel:
        mechanism, channel = self.mechanism, self.mechanism.channel
        sizes = mechanism.hashes, mechanism.width, 1
        exclusive = channel.rows[0].columns == 1
        return Channel(mechanism.salt, *sizes, channel.p, channel.q, exclusive)


class MemoizedLocalHashingAnalysis(
    CohortLocalHashingAnalysis[MemoizedLocalHashing], MemoryAnalysis
):
    """The same with memos, one for each column of the device's cohort."""

    channel_analysis = MemoizedSubsetSelectionAnalysis
    channel: MemoizedSubsetSelectionAnalysis

    def memo_channel(self) -> tuple[Fraction, Fraction]:
        return self.channel.memo_channel()

    def alternation_loss(self, reports: int) -> float:
        return self.channel.alternation_loss(reports)

    def entries(self, values: int | None) -> int | None:
        width = self.mechanism.width
        return width if values is None else min(values, width)
