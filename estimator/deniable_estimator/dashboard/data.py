"""The data of the pages: each question that they ask, fetched from what is known already, or
calculated here or, if that takes long, in the background."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from deniable import Metric, Registry
from deniable.protocol import windows
from deniable.protocol.types import Discovery
from deniable.protocol.value_list import read_values
from deniable_estimator.analyses.anomalies import ALARM_LEVEL
from deniable_estimator.analyses.base import FAKES
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.segmented import Segmented
from deniable_estimator.asking.listed import MOST_STRINGS, Listed, digest_of_candidates
from deniable_estimator.asking.periods import read_ranges
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.reading import Selection, select, unfinished
from deniable_estimator.asking.results import Results, Turn, Versioned, digest
from deniable_estimator.asking.segments import SplitQuestion, check_names, split_question
from deniable_estimator.asking.trend import Points, Trend, trend
from deniable_estimator.asking.work import Workers
from deniable_estimator.dashboard.calculations import LIGHT, decoded, png
from deniable_estimator.dashboard.ranges import DayRange, read_range
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message
from deniable_estimator.statistics.significance import Adjustment

PAGE_PATIENCE = 1.0
"""Seconds that a page waits before it shows the progress instead."""

_LIGHT_CELLS = 1 << 15
"""Up to so many values times segments an answer by segments is made where it is asked for."""

_COMPARED_DAYS = 7
"""So many days before the first of a trend are looked at too."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class DataSource:
    """What the pages ask.

    Each method that may take long raises `StillDecoding` or `TooManyDecodes` if it takes longer
    than one may wait, and `TooHeavy` if it takes more than one may have.
    """

    reader: Reader
    registry: Registry
    clock: Callable[[], float]
    candidates_folder: Path | None
    results: Results
    workers: Workers
    fakes: float = FAKES
    alarm_level: float = ALARM_LEVEL
    patience: float = PAGE_PATIENCE
    """Seconds to wait for a long calculation before `StillDecoding` is raised."""
    most_strings: int = MOST_STRINGS
    """The most strings in a list that a reader sends."""
    who: str = ""
    """Who asks, for the limit on what one reader may ask for at a time."""
    behind: float = 0.0
    """So many seconds ago a window must have ended for the reader to see it."""

    @property
    def today(self) -> date:
        """The day (UTC) that the clock shows."""
        return day_of(self.clock)

    @property
    def seen_until(self) -> float:
        """The POSIX time up to which the reader sees windows that have ended."""
        return self.clock() - self.behind

    def fetch(self, work: Callable[[Turn], _T], *name: object, light: bool = False) -> _T:
        """What `work` finds: at once, if it is `light` or all that it gets is known; else by a job
        of that name in the background."""
        if light:
            return work(Turn(self.results))
        # Readers who see other windows must not be given what this one's job finds.
        return self.results.fetch(digest(self.behind, *name), work, self.patience, self.who)

    def kept(self, key: bytes, calculate: Callable[[], _T]) -> _T:
        """What is known under the key, or else what `calculate` returns, in the background."""
        return self.fetch(lambda turn: turn.get(key, calculate), key)

    def calculate(
        self,
        key: bytes,
        function: Callable[..., _T],
        *arguments: object,
        candidates: Sequence[str] | None = None,
    ) -> _T:
        """What the function returns, in another process, as `Workers.run` says. Whoever asks
        under the same key meanwhile is given the same; it is not kept."""
        return self.results.job(
            key,
            lambda progress: self._run(candidates, function, *arguments),
            self.patience,
            self.who,
        )

    def written(
        self,
        lines: int,
        key: tuple[object, ...],
        function: Callable[..., str],
        *arguments: object,
        candidates: Sequence[str] | None = None,
    ) -> str:
        """A file of so many lines that the function writes: if they are many, by `calculate`."""
        if lines <= LIGHT:
            return function(*arguments)
        return self.calculate(digest("written", *key), function, *arguments, candidates=candidates)

    def picture(self, svg: str, scale: int) -> bytes:
        """An SVG as a PNG, `scale` times as large."""
        key = digest("picture", svg, scale)
        return self.kept(key, lambda: self.workers.run(png, svg, scale))

    def list_version(self, metric: Metric) -> bytes | None:
        """That of the strings that the operator has listed for a metric, without reading them; None
        if there is no list."""
        with suppress(OSError):
            if path := self._list_path(metric):
                status = path.stat()
                about = status.st_ino, status.st_size, status.st_mtime_ns
                return digest("list", metric.name, *about)
        return None

    def candidates(self, metric: Metric) -> list[str] | None:
        """The strings that the operator has listed for a metric; None if there is no list.

        Raises:
            ValueListError: the list cannot be read or has a mistake.
        """
        path, key = self._list_path(metric), self.list_version(metric)
        if path is None or key is None:
            return None
        return self.results.get(key, lambda: Listed(read_values(path), str(path)))

    def estimate(
        self, metric: Metric, days: DayRange, candidates: Sequence[str] | None = None
    ) -> Answer | None:
        """None for strings without candidates, and for a discovery, whose strings are found."""
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
        asked = candidates, digest_of_candidates(candidates), level, adjust
        return self.fetch(
            lambda turn: self.point(turn, metric, days, *asked),
            *("estimate", metric.name, metric.scheme.fingerprint, days, *asked[1:]),
            light=_is_light(metric),
        )

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
        """
        check_names(metric, by)
        selection = self.select(metric, days, candidates)
        version = self.version_of(selection)
        given = tuple(sorted((against or {}).items()))
        key = digest(
            "segmented", version, digest_of_candidates(candidates), tuple(by), given, level
        )
        values = len(candidates or metric.values) * len(metric.scheme.combinations)
        light = values <= _LIGHT_CELLS and not metric.needs_candidates

        def work() -> Segmented:
            question = split_question(selection, by, against=against)
            asked = partial(
                SplitQuestion.answer, question, against=against, level=level, now=self.clock()
            )
            return asked() if light else self._run(candidates, asked)

        return Versioned(self.fetch(lambda turn: turn.get(key, work), key, light=light), version)

    def version(
        self, metric: Metric, days: DayRange, candidates: Sequence[str] | None = None
    ) -> bytes:
        """That of the estimate and of the answer by segments, without calculating them."""
        return self.version_of(self.select(metric, days, candidates))

    def trend_at(
        self,
        metric: Metric,
        days: DayRange,
        by: windows.Kind,
        candidates: Sequence[str] | None = None,
        *,
        level: float = 0.95,
    ) -> Versioned[Trend]:
        """The trend with its version."""
        check_listed(metric)
        asked, light = digest_of_candidates(candidates), _is_light(metric)
        version = self.trend_version(metric, days, by, candidates)

        def made(points: Points, turn: Turn) -> Trend:
            return trend(
                *(self.reader, self.registry, metric.name, days.first, days.last, candidates),
                by=by,
                now=self.seen_until,
                level=level,
                points=points,
                progress=turn.progress,
            )

        def together(turn: Turn) -> Trend:
            points = partial(
                read_ranges,
                *(self.reader, self.registry, metric.name),
                candidates=candidates,
                without=days.without,
                level=level,
                now=self.clock(),
                where=dict(days.where),
            )
            return turn.get(digest("trend", version, asked, level), lambda: made(points, turn))

        def one_by_one(turn: Turn) -> Trend:
            def points(ranges: Sequence[tuple[date, date]]) -> Iterator[Answer]:
                for first, last in ranges:
                    within = replace(days, first=first, last=last)
                    found = self.point(turn, metric, within, candidates, asked, level, "storey")
                    yield found.answer

            return made(points, turn)

        found = self.fetch(
            together if light else one_by_one,
            *("trend", metric.name, metric.scheme.fingerprint, days, asked, by, level),
            light=light,
        )
        return _lasting(found, version, any(period.unreadable for period in found.periods))

    def trend_version(
        self,
        metric: Metric,
        days: DayRange,
        by: windows.Kind,
        candidates: Sequence[str] | None = None,
    ) -> bytes:
        """That of the trend: its periods' versions."""
        # The first days are compared with those of the week before.
        reach = days.reaching_back(_COMPARED_DAYS, "day")
        parts = self.select(metric, reach, candidates).each_version().values()
        # Which periods have ended changes at midnight.
        known = self.today, day_of(lambda: self.seen_until)
        return digest(days.first, days.last, by, known, *parts)

    def reports(self, metric: Metric, days: DayRange) -> int:
        """How many reports of these days there are."""
        selection = self.select(metric, days)
        key = digest("reports", *selection.version())
        return self.results.get(key, lambda: selection.read().n)

    def newest(self, metric: Metric) -> str | None:
        """The newest window that holds any report, whatever the range."""
        return max(self.labels(metric), default=None)

    def running(self, metric: Metric) -> DayRange | None:
        """The days so far of the newest window, if it has reports and is not over."""
        newest = self.newest(metric)
        if newest is None or windows.end(newest) <= self.seen_until:
            return None
        first = windows.first_day(newest)
        return DayRange(first, max(first, datetime.fromtimestamp(self.seen_until, UTC).date()))

    def read_days(self, metric: Metric, arguments: Mapping[str, str]) -> DayRange:
        """The days of an address. Where it names none, and the latest complete windows have no
        reports, those of the window that runs: the first day of an app that reports at once.

        Raises:
            RangeError: it asks for days that cannot be shown.
        """
        days = read_range(arguments, self.seen_until, metric.window, metric)
        if any(arguments.get(name) for name in ("since", "from", "to")):
            return days
        running = self.running(metric)
        if running is None or any(map(days.touches, self.labels(metric))):
            return days
        return replace(running, without=days.without)

    def labels(self, metric: Metric) -> list[str]:
        """The windows that hold reports of a metric, or of the pair that answers for it."""
        pair = self.registry.unasked.get(metric.name)
        return [
            label
            for name in (metric.name, *((pair.name,) if pair else ()))
            for scheme in self.reader.schemes().get(name, {})
            for label in self.reader.all_windows(name, scheme)
        ]

    def select(
        self, metric: Metric, days: DayRange, candidates: Sequence[str] | None = None
    ) -> Selection:
        """The tallies of a metric over these days."""
        return select(
            *(self.reader, self.registry, metric.name, days.first, days.last, candidates),
            days.without,
            where=dict(days.where),
        )

    def version_of(self, selection: Selection) -> bytes:
        """That of what is read of a selection, and of which of its windows run."""
        return digest(*selection.version(), unfinished(selection.labels, self.clock()))

    def _run(
        self, candidates: Sequence[str] | None, function: Callable[..., _T], *arguments: object
    ) -> _T:
        strings = candidates if isinstance(candidates, Listed) else None
        return self.workers.run(function, *arguments, strings=strings)

    def point(
        self,
        turn: Turn,
        metric: Metric,
        days: DayRange,
        candidates: Sequence[str] | None,
        asked: bytes,
        level: float,
        adjust: Adjustment,
    ) -> Versioned[Answer]:
        """The estimate of some days."""
        selection = self.select(metric, days, candidates)
        # Before the tallies are read: what comes in between makes another version.
        version, running = self.version_of(selection), unfinished(selection.labels, self.clock())

        def work() -> Answer:
            question = selection.read()
            if len(candidates or metric.values) <= LIGHT:
                answer = decoded(question, level, adjust)
            else:
                strings = candidates if isinstance(candidates, Listed) else None
                answer = self._run(strings, decoded, question, level, adjust, strings)
            answer = replace(answer, fakes=self.fakes, alarm_level=self.alarm_level)
            return answer.marked(running)

        found = turn.get(digest(version, asked, level, adjust), work)
        return _lasting(found, version, bool(found.unreadable))

    def _list_path(self, metric: Metric) -> Path | None:
        if not metric.needs_candidates or self.candidates_folder is None:
            return None
        # A metric's name is made of letters, digits and underscores: it cannot lead elsewhere.
        path = self.candidates_folder / f"{metric.name}.txt"
        return path if path.is_file() else None


def _is_light(metric: Metric) -> bool:
    """Whether its answers are made where they are asked for: strings, and long lists of values,
    may take long."""
    return not metric.needs_candidates and len(metric.values) <= LIGHT


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


def day_of(clock: Callable[[], float]) -> date:
    """The day (UTC) that a clock of POSIX seconds shows."""
    return datetime.fromtimestamp(clock(), UTC).date()
