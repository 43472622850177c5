"""A metric over some days, as pages and the read API ask for it: its estimate, its trend, its
answer by segments and what a discovery has found, each with the version of what it is read from;
and how its single windows look beside those before them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from deniable import Metric
from deniable.protocol import windows
from deniable.protocol.types.discovery import Discovery
from deniable_estimator.asking.discoveries import finds_of, trend_of_finds
from deniable_estimator.asking.fetch import Question, Selection, select
from deniable_estimator.asking.history import (
    LONGEST_HISTORY,
    History,
    Look,
    inspect_asked,
    looks_in,
)
from deniable_estimator.asking.listed import Listed, digest_of_candidates
from deniable_estimator.asking.query import Days, Query
from deniable_estimator.asking.results import Turn, Versioned, key_of
from deniable_estimator.asking.segments import SegmentTrends, split
from deniable_estimator.asking.trend import Trend, read_ranges, trend
from deniable_estimator.dashboard.calculations import LIGHT, decoded
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.ranges import day_at
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.discovery.finds import Finds
from deniable_estimator.kinds.segments import Segmented
from deniable_estimator.messages import isolated, message
from deniable_estimator.statistics.significance import Adjustment

_LIGHT_CELLS = 1 << 15
"""Up to so many values times segments an answer by segments is made where it is asked for."""

_COMPARED_DAYS = 7
"""So many days before the first of a trend are looked at too."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class PageReading:
    """What is asked of a metric.

    Each method that may take long raises `StillDecoding` or `TooManyDecodes` if it takes longer
    than one may wait, and `TooHeavy` if it takes more than one may have.
    """

    source: DataSource
    metric: Metric
    days: Days
    candidates: Sequence[str] | None = None
    """The strings to look for, or of what has a list the values to estimate; None for all."""
    where: Mapping[str, str] = field(default_factory=dict)
    """The segments whose reports count, each with its value; without any, all do."""
    level: float = 0.95
    adjust: Adjustment = "storey"

    def over(self, days: Days) -> PageReading:
        """The same over other days."""
        return replace(self, days=days)

    @property
    def whole(self) -> PageReading:
        """The same over whole weeks, or what else is kept, where single windows were dropped."""
        return self.over(self.select().kept_days())

    def asking(self, candidates: Sequence[str] | None) -> PageReading:
        """The same of other strings or values."""
        return replace(self, candidates=candidates)

    @property
    def strings(self) -> bytes:
        """A digest of what is looked for."""
        return digest_of_candidates(self.candidates)

    @property
    def query(self) -> Query:
        """What is asked of a store."""
        return Query(self.metric.name, self.days, self.candidates, self.where)

    def select(self, reach: Days | None = None) -> Selection:
        """The tallies that it is about; with more days, to compare with, all that they `reach`."""
        return select(self.source.reader, self.source.registry, self.query, reach)

    @property
    def version(self) -> bytes:
        """That of the estimate and of the answer by segments, without calculating them."""
        return self.source.version_of(self.select())

    @property
    def n(self) -> int:
        """How many reports there are."""
        selection = self.select()
        key = key_of("reports", *selection.version())
        return self.source.results.get(key, lambda: selection.read().n)

    @property
    def answer(self) -> Answer | None:
        """None for strings without candidates, and for a discovery, whose strings are found."""
        if isinstance(self.metric.type, Discovery):
            return None
        if self.metric.needs_candidates and self.candidates is None:
            return None
        return self.estimate().answer

    def estimate(self) -> Versioned[Answer]:
        """The estimate with its version; of strings, that of the candidates."""
        return self._fetch("estimate", self.point, self.days, self.adjust)

    def point(self, turn: Turn) -> Versioned[Answer]:
        """The same, calculated by this turn."""
        source, selection = self.source, self.select()
        # Before the tallies are read: what comes in between makes another version.
        version = source.version_of(selection)
        now = source.clock()

        def work() -> Answer:
            answer = self._estimated(selection.read(), light=self._short)
            given = source.settings
            answer = replace(answer, fakes=given.fakes, alarm_level=given.alarm_level)
            return answer.marked(now)

        found = turn.get(key_of(version, self.strings, self.level, self.adjust), work)
        return _lasting(found, version, bool(found.unreadable))

    def segmented(
        self, by: Sequence[str], against: Mapping[str, str] | None = None
    ) -> Versioned[Segmented]:
        """The metric by segments, with its version.

        Raises:
            EstimateError: what is asked for are no segments of the metric.
        """
        source, selection = self.source, self.select()
        version = source.version_of(selection)
        given = tuple(sorted((against or {}).items()))
        key = key_of("segmented", version, self.strings, tuple(by), given, self.level)
        values = len(self.candidates or self.metric.values) * len(self.metric.scheme.combinations)
        light = values <= _LIGHT_CELLS and not self.metric.needs_candidates
        estimate = partial(self._estimated, light=light)

        def work() -> Segmented:
            return split(selection, by, against=against, estimate=estimate, now=source.clock())

        found = source.fetch(lambda turn: turn.get(key, work), key, light=light)
        return Versioned(found, version)

    def trend(self, by: windows.Kind) -> Versioned[Trend]:
        """The trend with its version."""
        source, given = self.source, (self.source.reader, self.source.registry, self.query)
        version = self.trend_version(by)
        made = partial(trend, *given, by=by, now=source.seen_until, level=self.level)

        def together(turn: Turn) -> Trend:
            points = partial(read_ranges, *given, level=self.level, now=source.clock())
            key = key_of("trend", version, self.strings, self.level)
            return turn.get(key, partial(made, points=points, progress=turn.progress))

        def one_by_one(turn: Turn) -> Trend:
            def points(ranges: Sequence[Days]) -> Iterator[Answer]:
                return (self.over(days).point(turn).answer for days in ranges)

            return made(points=points, progress=turn.progress)

        def work(turn: Turn) -> Versioned[Trend]:
            found = (together if self._light else one_by_one)(turn)
            return _lasting(found, version, any(each.unreadable for each in found.periods))

        return self._fetch("trend", work, self.days, by)

    def segment_trends(self, found: Segmented, by: windows.Kind) -> SegmentTrends:
        """The trend of each segment that has enough reports in these days, all by the same
        period."""
        within = (replace(self, where={**found.where, **each.labels}) for each in found.groups)
        return SegmentTrends(found, tuple(each.trend(by).answer for each in within))

    def finds(self, minimum_share: float | None = None) -> Versioned[Finds]:
        """The strings that a discovery has found, each with the lists that follow it: found in the
        background, as that takes seconds.

        Raises:
            EstimateError: the metric is no discovery.
        """
        source, metric, selection = self.source, self.metric, self.select()
        version, now = source.version_of(selection), source.clock()
        asked = self.level, minimum_share

        def work() -> Finds:
            given = selection.read(), metric
            find = partial(finds_of, *given, level=self.level, minimum_share=minimum_share)
            return source.workers.run(find).marked(now)

        made = source.fetch(
            lambda turn: Versioned(turn.get(key_of("finds", version, *asked), work), version),
            *("finding", metric.name, metric.scheme.fingerprint, self.days, *asked),
        )
        lists, lists_version = source.lists()
        return Versioned(made.answer.followed_in(lists), key_of(made.version, lists_version))

    def trend_of_find(self, by: windows.Kind, finds: Finds, name: str) -> Versioned[Trend]:
        """How common the find of that name was in each period.

        Raises:
            EstimateError: there is none.
        """
        find = next((each for each in finds.finds if each.name == name), None)
        if find is None:
            told = message(
                "“{text}” was not found in these days. Choose one of the strings that were.",
                text=isolated(name[:100]),
            )
            raise EstimateError(told, "find")
        source = self.source
        version = key_of(self.version, source.today)
        asked = "trend of a find", by, find.head, find.cut, finds.level
        key, one = key_of(*asked, version, source.behind), replace(finds, finds=(find,))
        found = partial(
            trend_of_finds,
            *(source.reader, source.registry, self.query, one),
            by=by,
            now=source.seen_until,
        )
        return source.fetch(
            lambda turn: Versioned(turn.get(key, partial(found, progress=turn.progress)), version),
            *(*asked, self.metric.name, self.days),
        )

    def trend_version(self, by: windows.Kind) -> bytes:
        """That of the trend: its periods' versions."""
        # The first days are compared with those of the week before.
        reach = self.days.reaching_back(_COMPARED_DAYS, "day")
        parts = self.select(reach).each_version().values()
        # Which periods have ended changes at midnight.
        known = self.source.today, day_at(self.source.seen_until)
        return key_of(self.days.first, self.days.last, by, known, *parts)

    def alarm(self, estimate: Answer | None = None, family: int = 1) -> History | None:
        """What `history` says of these days, if they raise an alarm."""
        found = self.history(estimate, family)
        return found if found.strange else None

    def history(self, estimate: Answer | None = None, family: int = 1) -> History:
        """What is strange in the windows of these days, each against those before it, and in their
        `estimate`. So many metrics share the level of alarms as the `family` has.

        Strings are not decoded for it.
        """
        source, metric = self.source, self.metric
        check_listed(metric)
        reach = self.days.reaching_back(LONGEST_HISTORY, metric.window)
        selection = self.asking(None).select(reach).apart()
        now, whole = source.clock(), estimate.verdict.figures if estimate else ()
        level = source.settings.alarm_level / family
        asked = self.strings, estimate is None, self.days, level
        return source.results.get(
            key_of("history", source.version_of(selection), *asked),
            lambda: inspect_asked(selection, self._looks(selection), level, whole, now),
        )

    def looks(self) -> tuple[Look, ...]:
        """What is looked at in each window of these days, the oldest first."""
        return self._looks(self.select().apart())

    def windowwise(self) -> Iterator[Answer]:
        """The estimate of each window of these days, the oldest first."""
        turn = Turn(self.source.results)
        for label in self.select().apart().labels:
            within = Days(windows.first_day(label), windows.last_day(label))
            yield self.over(within).point(turn).answer

    def _looks(self, selection: Selection) -> tuple[Look, ...]:
        """What is looked at in each window. Those that have not changed are known; the others are
        read and looked at together."""
        results = self.source.results
        keys = {label: key_of("look", *each) for label, each in selection.each_version().items()}
        found: dict[str, Look] = {label: results.known(key) for label, key in keys.items()}
        unknown = [label for label, seen in found.items() if seen is None]
        for each in looks_in(selection, unknown):
            found[each.label] = each
            results.keep(keys[each.label], each)
        return tuple(found.values())

    def _estimated(self, question: Question, *, light: bool) -> Answer:
        """What a question estimates: here, if that is light, and else in another process."""
        strings = self.candidates if isinstance(self.candidates, Listed) else None
        asked = question, self.level, self.adjust, strings
        return decoded(*asked) if light else self.source.workers.run(decoded, *asked)

    @property
    def _short(self) -> bool:
        return len(self.candidates or self.metric.values) <= LIGHT

    @property
    def _light(self) -> bool:
        """Whether its answers are made where they are asked for: strings, and long lists of values,
        may take long."""
        return not self.metric.needs_candidates and len(self.metric.values) <= LIGHT

    def _fetch(self, what: str, work: Callable[[Turn], _T], *asked: object) -> _T:
        check_listed(self.metric)
        metric, within = self.metric, tuple(self.where.items())
        name = what, metric.name, metric.scheme.fingerprint, within, self.strings, self.level
        return self.source.fetch(work, *name, *asked, light=self._light)


def _lasting(found: _T, version: bytes, lacking: bool) -> Versioned[_T]:
    """A result with its version. One that lacks windows has no lasting version: whoever keeps it
    asks again, and is told when they can be read."""
    return Versioned(found, secrets.token_bytes(20) if lacking else version)


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
