"""Answers about some days, which are kept until their tallies change; long calculations go on in
the background."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from deniable import Metric
from deniable.types import Discovery
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.segmented import Segmented
from deniable_estimator.asking.reading import Selection, select, unfinished
from deniable_estimator.asking.segments import check_names, split_question
from deniable_estimator.asking.trend import Progress
from deniable_estimator.dashboard.calculations import LIGHT, decoded, split_answer
from deniable_estimator.dashboard.ranges import DayRange
from deniable_estimator.dashboard.sources.lists import ListSource
from deniable_estimator.dashboard.versions import (
    Listed,
    digest,
    digest_of_candidates,
)
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message
from deniable_estimator.statistics.significance import Adjustment

_LIGHT_CELLS = 1 << 15
"""Up to so many values times segments an answer by segments is made where it is asked for."""

_T = TypeVar("_T")


class _NotKnown(Exception):
    """The result is not cached."""


@dataclass(frozen=True)
class Versioned(Generic[_T]):
    """A result, and the digest of the tallies that it is based on."""

    answer: _T
    version: bytes


class _Work(Protocol[_T]):
    """Finds an answer; it tells how far it is, and of what is not known raises `_NotKnown` if
    only that was asked for."""

    def __call__(self, progress: Progress | None = None, known: bool = False) -> Versioned[_T]: ...


@dataclass(frozen=True)
class AnswerSource(ListSource):
    """The data of the pages, with answers about some days."""

    def estimate(
        self, metric: Metric, days: DayRange, candidates: Sequence[str] | None = None
    ) -> Answer | None:
        """None for strings without candidates, and for a discovery, whose strings are found.

        Raises:
            StillDecoding, TooManyDecodes: it takes longer than one may wait.
        """
        if isinstance(metric.type, Discovery) or (metric.needs_candidates and candidates is None):
            return None
        return self.estimate_at(metric, days, candidates).answer

    def estimate_at(
        self,
        metric: Metric,
        days: DayRange,
        candidates: Sequence[str] | None = None,
        *,
        level: float = 0.95,
        adjust: Adjustment = "storey",
    ) -> Versioned[Answer]:
        """The estimate with its version; of strings, that of the candidates."""
        check_listed(metric)
        asked = digest_of_candidates(candidates)

        def work(progress: Progress | None = None, known: bool = False) -> Versioned[Answer]:
            return self._point(metric, days, candidates, asked, level, adjust, known=known)

        return self._run_or_queue(metric, work, "estimate", days, asked, level, adjust)

    def segmented_at(
        self,
        metric: Metric,
        days: DayRange,
        by: Sequence[str],
        against: Mapping[str, str] | None = None,
        candidates: Sequence[str] | None = None,
        *,
        level: float = 0.95,
    ) -> Versioned[Segmented]:
        """The metric by segments, with its version.

        Raises:
            EstimateError: what is asked for are no segments of the metric.
            StillDecoding, TooManyDecodes: it takes longer than one may wait.
        """
        check_names(metric, by)
        selection = self._select(metric, days, candidates)
        version = self.version(metric, days, candidates)
        given = tuple(sorted((against or {}).items()))
        key = digest(
            "segmented", version, digest_of_candidates(candidates), tuple(by), given, level
        )
        values = len(candidates or metric.values) * len(metric.scheme.combinations)

        light = values <= _LIGHT_CELLS and not metric.needs_candidates

        def work() -> Segmented:
            question = split_question(selection, by, against=against)
            asked = (question, against, level, self.clock())
            if light:
                return split_answer(*asked)
            strings = candidates if isinstance(candidates, Listed) else None
            return self.workers.run(split_answer, *asked, strings=strings)

        found = self.decodes.get(key, work) if light else self.kept(key, work)
        return Versioned(found, version)

    def version(
        self, metric: Metric, days: DayRange, candidates: Sequence[str] | None = None
    ) -> bytes:
        """That of the estimate and of the answer by segments, without calculating them."""
        selection = self._select(metric, days, candidates)
        return digest(*selection.version(), unfinished(selection.labels, self.clock()))

    def _run_or_queue(self, metric: Metric, work: _Work[_T], *asked: object) -> Versioned[_T]:
        """What `work` finds: of strings, and of long lists of values, in the background, as that
        may take long.

        Raises:
            StillDecoding, TooManyDecodes: it takes longer than one may wait.
        """
        if self._is_light(metric):
            return work()
        # Readers who see other windows must not be given what this one's job finds.
        job = digest(metric.name, metric.scheme.fingerprint, self.behind, *asked)
        # What is known is not kept waiting by long calculations of something else.
        with suppress(_NotKnown):
            found = work(known=True)
            self.decodes.forget(job)
            return found
        return self.decodes.job(job, work, self.patience, self.who)

    def _is_light(self, metric: Metric) -> bool:
        """Whether its answers are made where they are asked for."""
        return not metric.needs_candidates and len(metric.values) <= LIGHT

    def _select(
        self, metric: Metric, days: DayRange, candidates: Sequence[str] | None
    ) -> Selection:
        first, last = days.first, days.last
        return select(
            *(self.reader, self.registry, metric.name, first, last, candidates, days.without),
            where=dict(days.where),
        )

    def _point(
        self,
        metric: Metric,
        days: DayRange,
        candidates: Sequence[str] | None,
        asked: bytes,
        level: float,
        adjust: Adjustment,
        *,
        known: bool = False,
    ) -> Versioned[Answer]:
        """The estimate of some days.

        Raises:
            _NotKnown: only what is `known` was asked for, and this is not.
        """
        selection = self._select(metric, days, candidates)
        # Before the tallies are read: what comes in between makes another version.
        running = unfinished(selection.labels, self.clock())
        version = digest(*selection.version(), running)
        key = digest(version, asked, level, adjust)
        if known:
            found: Answer | None = self.decodes.known(key)
            if found is None:
                raise _NotKnown
            return _lasting(found, version)

        def work() -> Answer:
            question = selection.read()
            if len(candidates or metric.values) <= LIGHT:
                answer = decoded(question, level, adjust)
            else:
                strings = candidates if isinstance(candidates, Listed) else None
                answer = self.workers.run(
                    decoded, question, level, adjust, strings, strings=strings
                )
            answer = replace(answer, fakes=self.fakes, alarm_level=self.alarm_level)
            return answer.marked(running)

        return _lasting(self.decodes.get(key, work), version)


def _lasting(answer: Answer, version: bytes) -> Versioned[Answer]:
    """An answer with its version. One that lacks windows has no lasting version: whoever keeps it
    asks again, and is told when they can be read."""
    return Versioned(answer, secrets.token_bytes(20) if answer.unreadable else version)


def check_listed(metric: Metric) -> None:
    """Refuse to estimate what nobody lists.

    Raises:
        EstimateError: the metric is a discovery.
    """
    if isinstance(metric.type, Discovery):
        raise EstimateError(
            message(
                "{metric} is a discovery, whose strings nobody lists: its page, "
                "/api/v1/metrics/{metric}/finds and `deniable estimate discover {metric}` show "
                "which were found",
                metric=metric.name,
            )
        )
