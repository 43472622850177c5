"""Strings that were hashed in public cohorts: their shares by the decoder for cohort tables.

RAPPOR and cohort local hashing, with or without memos, hash strings to so few columns that
common strings collide with all others in some cohorts. Counting the support of each candidate
separately would include its neighbours' support, an error that no number of reports removes. So
`deniable_estimator.analyses.cohorts.decoder` estimates the candidates jointly.

**Cohort local hashing** sets one column for each string in every cohort.

**RAPPOR's filters.** Given the filter of the device's string in its cohort, every bit of every
report is independent. So each cell of a tally is the sum of two binomials, independent of all other
cells.

Filters are decoded by a regression, which also weighs the bits that a string does *not* set,
against their background density c. One string that sets h of k bits, with cells of equal weight,
has the weights (1 - c) / d on its own bits and -c / d on the others, d = (1 - 2c) h + c**2 k, and
the best fake sets its own bits and no other::

    A = [h(1 - c) - p01(h - ck)] / [d(p11 - p01)] - c(h - ck) / d

which is 1 / (p11 - p01) for h = 1, more than a bitmap of plausible density achieves (see
`deniable_estimator.analyses.base`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple, TypeVar

import numpy as np

from deniable.protocol.mechanisms import Row
from deniable.protocol.mechanisms.hashed import CohortLocalHashing, MemoizedLocalHashing
from deniable.protocol.mechanisms.rappor import OneTimeRappor, Rappor
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.anomalies import Ones
from deniable_estimator.analyses.base import (
    AnyOracle,
    Counts,
    Finding,
    Items,
    OracleAnalysis,
    Pull,
    Support,
)
from deniable_estimator.analyses.cohorts.decoder import Decoding, decode
from deniable_estimator.analyses.cohorts.table import Design
from deniable_estimator.analyses.hashed import HashedAnalysis, hash_columns
from deniable_estimator.analyses.own_columns import (
    MemoizedSubsetSelectionAnalysis,
    SubsetSelectionAnalysis,
    alternating_bits,
    flipped,
)
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import listed, message
from deniable_estimator.statistics.intervals import Noise

_MOST_CELLS = 1 << 27
"""The limit for all candidates together: half a gigabyte. More are refused, because they cannot be
estimated jointly; counted one by one, thousands would be found because of hash collisions."""

_SHARES = 1000
"""Steps of the grid of shares over which `report_weight` takes the minimum."""


class Channel(NamedTuple):
    """How a mechanism fills the row of a cohort."""

    salt: str
    hashes: int
    """Columns that a string sets in each cohort."""
    p11: Fraction
    p01: Fraction
    """How often a report sets a column that the string sets, and one that the string does not."""


class CohortAnalysis(OracleAnalysis[AnyOracle]):
    """What the tables of one mechanism's cohorts say of strings."""

    tests_shares = False

    @abstractmethod
    def table(self) -> Channel:
        """How reports fill the tables."""

    def find(
        self, tallies: Sequence[Tally], items: Items, level: float, repeats: Sequence[float]
    ) -> tuple[Finding, Counts]:
        """Estimate candidates, which are strings, jointly; detection is at 1 - `level`.

        There are no ghosts: a candidate outside the joint fit has the p-value of adding it to the
        fit.

        Raises:
            EstimateError: so many candidates do not fit into memory.
        """
        channel, rows = self.table(), self.mechanism.rows
        most = _MOST_CELLS // (len(rows) * channel.hashes)
        if len(items) > most:
            raise EstimateError(
                message(
                    "{count:,} candidates are too many for {mechanism}: ask for at most {most:,} "
                    "at a time",
                    count=len(items),
                    mechanism=self.mechanism.name,
                    most=most,
                )
            )
        design = _design(channel, rows, items)
        p11, p01 = float(channel.p11), float(channel.p01)
        each = []
        for tally, times in zip(tallies, repeats, strict=True):
            # Memos have the same effect as fewer reports.
            scale = report_weight(self.memo_channel(), p11, p01, times) if self.remembers else 1.0
            found = decode(
                np.array([row.cells for row in tally.rows]) * scale,
                np.array([row.reports for row in tally.rows]) * scale,
                *(design, p01, p11),
                background=1 - (1 - 1 / design.columns) ** channel.hashes,
                exclusive=rows[0].columns == 1,
                fdr=1 - level,
                level=level,
            )
            each.append(found)
        # Without memos a device reports from another cohort each time, which has no effect here.
        kept = None if self.remembers else self.kept_noise([found.n for found in each], repeats)
        if kept is not None:
            explained = kept.at(np.array([[found.explained_share] for found in each])).ravel()
            each = [
                replace(found, explained_error=math.sqrt(found.explained_error**2 + more))
                for found, more in zip(each, explained.tolist(), strict=True)
            ]
        share, error, p_value = (
            np.array([getattr(found, name) for found in each])
            for name in ("share", "std_error", "p_value")
        )
        none = np.zeros(share.shape)
        finding = Finding(
            share,
            Noise(np.where(np.isfinite(share), error, np.inf) ** 2, none, none, none, kept),
            p_value,
            none > 0,
            [tuple(_warnings(found, items)) if found.n else () for found in each],
        )
        return finding, np.array([[tally.reports] for tally in tallies])


def _design(channel: Channel, rows: Sequence[Row], items: Items) -> Design:
    """Which cells each of the strings sets."""
    hashes, width = channel.hashes, rows[0].width
    positions = np.empty((len(items), len(rows), hashes), np.int32)
    columns = hash_columns(channel.salt, len(rows) * hashes, width, list(items))
    for number, column in enumerate(columns):
        positions[:, number // hashes, number % hashes] = column
    return Design.of(positions, width)


def _warnings(found: Decoding, items: Items) -> Iterator[str]:
    low, _, _ = found.unexplained
    if low > 0:
        yield message(
            "the values detected explain {explained:.0%} of the crowd: at least {low:.0%} have "
            "others, which are too rare to be told from noise or were not asked for",
            explained=max(found.explained_share, 0),
            low=low,
        )
    alike = np.flatnonzero(found.same_as != np.arange(len(items)))
    if len(alike):
        pairs: list[str] = [
            message("{one!r} like {other!r}", one=items[at], other=items[found.same_as[at]])
            for at in alike[:3].tolist()
        ]
        if len(alike) > 3:
            pairs = [*pairs, "..."]
        yield message(
            "{count:,} candidates hash like others in every cohort and share their estimate, "
            "which is of both together: {pairs}",
            count=len(alike),
            pairs=listed(pairs),
        )


def report_weight(
    memo_channel: tuple[Fraction, Fraction], p: float, q: float, repeats: float
) -> float:
    """The weight of one report, at most 1, in reports of different devices.

    p and q are those of a column. The weight is for the share at which memos matter most, so it
    is somewhat too small for others.
    """
    p1, q1 = (float(each) for each in memo_channel)
    share = np.linspace(0, 1, _SHARES + 1)
    rate, memo = q + share * (p - q), q1 + share * (p1 - q1)
    part = memo * (1 - memo) / (p1 - q1) ** 2 / (rate * (1 - rate) / (p - q) ** 2)
    return 1 / (1 + (repeats - 1) * float(part.max()))


AnyCohorts = TypeVar("AnyCohorts", CohortLocalHashing, MemoizedLocalHashing)


class CohortLocalHashingAnalysis(CohortAnalysis[AnyCohorts], HashedAnalysis[AnyCohorts]):
    """Strings are estimated jointly; the support of a single one is counted as for other hashed
    strings."""

    channel_analysis = SubsetSelectionAnalysis

    def table(self) -> Channel:
        channel = self.mechanism.channel
        return Channel(self.mechanism.salt, 1, channel.p, channel.q)


class MemoizedLocalHashingAnalysis(CohortLocalHashingAnalysis[MemoizedLocalHashing]):
    """The same with memos, one for each column of the device's cohort."""

    channel_analysis = MemoizedSubsetSelectionAnalysis

    def memo_channel(self) -> tuple[Fraction, Fraction]:
        return self.channel.memo_channel()

    def alternation_loss(self, reports: int) -> float:
        return self.channel.alternation_loss(reports)

    def entries(self, values: int | None) -> int | None:
        width = self.mechanism.width
        return width if values is None else min(values, width)


AnyFilter = TypeVar("AnyFilter", Rappor, OneTimeRappor)


class FilterAnalysis(CohortAnalysis[AnyFilter]):
    """Strings as bits of a Bloom filter, another in each cohort."""

    def table(self) -> Channel:
        bloom = self.mechanism.bloom
        return Channel(bloom.salt, bloom.h, self.mechanism.p, self.mechanism.p01)

    def support(self, tally: Tally, items: Items) -> Support:
        cells = np.concatenate([row.cells for row in tally.rows])
        return Support(_design(self.table(), self.mechanism.rows, items).sums(cells), tally.reports)

    def ones(self) -> Ones:
        bloom, fewer = self.mechanism.bloom, 0.0
        # Hashes of a string may meet in one bit. In how many rows that happens is not known;
        # even for devices with the same value it exceeds this once in a million times.
        meetings = bloom.cohorts * bloom.h * (bloom.h - 1) / (2 * bloom.k)
        if meetings:
            fewer = min(1.0, (meetings + 6 * math.sqrt(meetings) + 10) / bloom.cohorts)
        return Ones(
            bloom.k, float(self.mechanism.p), float(self.mechanism.p01), float(bloom.h), fewer
        )

    def pull(self, targets: int = 1) -> Pull:
        """By the weights of the regression (see above)."""
        bloom, p11, p01 = self.mechanism.bloom, self.mechanism.p, self.mechanism.p01
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
        bloom, p11, p01 = self.mechanism.bloom, self.mechanism.p, self.mechanism.p01
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


class RapporAnalysis(FilterAnalysis[Rappor]):
    """The same with memos, each of which is a filter."""

    def memo_channel(self) -> tuple[Fraction, Fraction]:
        return flipped(self.mechanism.rounds)

    def alternation_loss(self, reports: int) -> float:
        bloom = self.mechanism.bloom
        return alternating_bits(self.mechanism.rounds, bloom.k, bloom.h, bloom.h, reports // 2)
