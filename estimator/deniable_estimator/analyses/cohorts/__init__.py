"""Strings that were hashed in public cohorts: their shares by the decoder for cohort tables.

RAPPOR and cohort local hashing, with or without memos, hash strings to so few columns that
common strings collide with all others in some cohorts. Counting the support of each candidate
separately would include its neighbours' support, an error that no number of reports removes. So
`deniable_estimator.analyses.cohorts.decoder` estimates the candidates jointly.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from deniable_collector.tally import Tally
from deniable_estimator.analyses.base import AnyOracle, Counts, Finding, Items, OracleAnalysis
from deniable_estimator.analyses.cohorts.decoder import Decoding, decode
from deniable_estimator.analyses.cohorts.design import Design
from deniable_estimator.analyses.hashed import hash_columns
from deniable_estimator.analyses.memoized import report_weight
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import listed, message
from deniable_estimator.statistics.intervals import Noise

__all__ = ["Channel", "CohortAnalysis"]

_MOST_CELLS = 1 << 27
"""The limit for all candidates together: half a gigabyte. More are refused, because they cannot be
estimated jointly; counted one by one, thousands would be found because of hash collisions."""


class Channel(NamedTuple):
    """How a mechanism fills a cohort table."""

    salt: str
    cohorts: int
    columns: int
    hashes: int
    """Columns that a string sets in each cohort."""
    p11: Fraction
    p01: Fraction
    """How often a report sets a column that the string sets, and one that the string does not."""
    exclusive: bool
    """Whether each report sets exactly one column."""


class CohortAnalysis(OracleAnalysis[AnyOracle]):
    """What the tables of one mechanism's cohorts say of strings."""

    tests_shares = False

    @abstractmethod
    def table(self) -> Channel:
        """How reports fill the tables."""

    def find(
        self, tally: Tally, items: Items, level: float, repeats: float
    ) -> tuple[Finding, int | Counts]:
        """Estimate candidates, which are strings, jointly; detection is at 1 - `level`.

        There are no ghosts: a candidate outside the joint fit has the p-value of adding it to the
        fit.

        Raises:
            EstimateError: so many candidates do not fit into memory.
        """
        channel, memory = self.table(), self.memory
        self._check_number(channel, len(items))
        p11, p01 = float(channel.p11), float(channel.p01)
        # Memos have the same effect as fewer reports.
        scale = report_weight(memory.memo_channel(), p11, p01, repeats) if memory else 1.0
        found = decode(
            np.array([row.cells for row in tally.rows]) * scale,
            np.array([row.reports for row in tally.rows]) * scale,
            _design(channel, items),
            p01,
            p11,
            background=1 - (1 - 1 / channel.columns) ** channel.hashes,
            exclusive=channel.exclusive,
            fdr=1 - level,
            level=level,
        )
        # Without memos a device reports from another cohort each time, which has no effect here.
        kept = None if memory else self.kept_noise(found.n, repeats)
        if kept is not None:
            explained = kept.at(np.full(1, found.explained_share))
            error = math.sqrt(found.explained_error**2 + float(explained[0]))
            found = replace(found, explained_error=error)
        known = np.isfinite(found.share)
        none = np.zeros(len(items))
        variance = np.where(known, found.std_error, np.inf) ** 2
        finding = Finding(
            found.share,
            Noise(variance, none, none, none, kept),
            found.p_value,
            np.zeros(len(items), np.bool_),
            tuple(_warnings(found, items)) if found.n else (),
        )
        return finding, tally.reports

    def _check_number(self, channel: Channel, candidates: int) -> None:
        each = channel.cohorts * channel.hashes
        if candidates * each > _MOST_CELLS:
            raise EstimateError(
                message(
                    "{count:,} candidates are too many for {mechanism}: ask for at most {most:,} "
                    "at a time",
                    count=candidates,
                    mechanism=self.mechanism.name,
                    most=_MOST_CELLS // each,
                )
            )


def _design(channel: Channel, items: Items) -> Design:
    """Which cells each of the strings sets."""
    positions = np.empty((len(items), channel.cohorts, channel.hashes), np.int32)
    count = channel.cohorts * channel.hashes
    columns = hash_columns(channel.salt, count, channel.columns, list(items))
    for number, column in enumerate(columns):
        positions[:, number // channel.hashes, number % channel.hashes] = column
    return Design.of(positions, channel.columns)


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
