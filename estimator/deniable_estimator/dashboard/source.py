"""The data of the pages: the store, the registry, the clock and lists of candidates."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from itertools import chain, groupby
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from flask import current_app, g, request
from werkzeug.exceptions import NotFound

from deniable import Metric, Registry, ValueListError, windows
from deniable.told import Told
from deniable.types import Discovery
from deniable.value_list import parse_values, read_values, value_texts
from deniable_collector.stores.base import Store
from deniable_estimator.analyses.anomalies import ALARM_LEVEL
from deniable_estimator.analyses.poisoning import FAKES
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.segmented import Segmented
from deniable_estimator.dashboard.access import for_people, reader_of
from deniable_estimator.dashboard.access.shared import opened_link
from deniable_estimator.dashboard.calculations import LIGHT, decoded, split_answer
from deniable_estimator.dashboard.decodes import Decodes
from deniable_estimator.dashboard.ranges import DayRange
from deniable_estimator.dashboard.snapshot import EndedWindows, Snapshot
from deniable_estimator.dashboard.versions import (
    MOST_STRINGS,
    Listed,
    digest,
    digest_of_bytes,
    digest_of_candidates,
)
from deniable_estimator.dashboard.workers import Workers
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message
from deniable_estimator.questions.history import LONGEST_HISTORY, History, Look, inspect, look
from deniable_estimator.questions.reading import LENGTHS, Selection, select, unfinished
from deniable_estimator.questions.segments import check_names, split_question
from deniable_estimator.questions.trend import Point, Progress, Trend, trend
from deniable_estimator.statistics.significance import Adjustment

__all__ = [
    "PAGE_PATIENCE",
    "DataSource",
    "Versioned",
    "current_source",
    "day_of",
    "declared_metric",
]

PAGE_PATIENCE = 1.0
"""Seconds that a page waits before it shows the progress instead."""

FILE_PATIENCE = 25.0
"""Seconds that programs, files and sent forms wait: shorter than proxies do."""

_LIGHT_SIZE = 1 << 15
"""A longer list is read in another process: to bring some texts into normal form takes long."""

_LIGHT_CELLS = 1 << 15
"""Up to so many values times segments an answer by segments is made where it is asked for."""

_T = TypeVar("_T")


class _Unknown(Exception):
    """The result is not cached."""


@dataclass(frozen=True)
class Versioned(Generic[_T]):
    """A result, and the digest of the tallies that it is based on."""

    answer: _T
    version: bytes


class _Work(Protocol[_T]):
    """Finds an answer; it tells how far it is, and of what is not known raises `_Unknown` if
    only that was asked for."""

    def __call__(self, progress: Progress | None = None, known: bool = False) -> Versioned[_T]: ...


@dataclass(frozen=True)
class DataSource:
    """The data of the pages."""

    store: Store
    registry: Registry
    clock: Callable[[], float]
    candidates_folder: Path | None
    decodes: Decodes
    workers: Workers
    fakes: float = FAKES
    alarm_level: float = ALARM_LEVEL
    patience: float = PAGE_PATIENCE
    """Seconds to wait for a long calculation before `StillDecoding` is raised."""
    most_strings: int = MOST_STRINGS
    """The most strings in a list that a reader sends."""
    reader: str = ""
    """Who asks, for the limit on what one reader may ask for at a time."""

    @property
    def today(self) -> date:
        """The day (UTC) that the clock shows."""
        return day_of(self.clock)

    def list_version(self, metric: Metric) -> bytes | None:
        """That of the strings that the operator has listed for a metric, without reading them; None
        if there is no list."""
        path = self._list_path(metric)
        if path is None:
            return None
        with suppress(OSError):
            status = path.stat()
            return digest("list", metric.name, status.st_ino, status.st_size, status.st_mtime_ns)
        return None

    def _list_path(self, metric: Metric) -> Path | None:
        if not metric.needs_candidates or self.candidates_folder is None:
            return None
        # A metric's name is made of letters, digits and underscores: it cannot lead elsewhere.
        path = self.candidates_folder / f"{metric.name}.txt"
        return path if path.is_file() else None

    def candidates(self, metric: Metric) -> list[str] | None:
        """The strings that the operator has listed for a metric; None if there is no list.

        Raises:
            ValueListError: the list cannot be read or has a mistake.
        """
        path, key = self._list_path(metric), self.list_version(metric)
        if path is None or key is None:
            return None
        return self.decodes.get(key, lambda: Listed(read_values(path), str(path)))

    def sent(self, listed: bytes | Sequence[str], name: str) -> Sequence[str]:
        """The strings that a reader has sent: lines of text, or a list of texts.

        Raises:
            ValueListError: the list, which the error calls `name`, has a mistake.
            StillDecoding, TooManyDecodes: it takes longer than one may wait.
        """
        if isinstance(listed, bytes):
            count, size = len(listed.removesuffix(b"\n").split(b"\n")), len(listed)
        else:
            count, size = len(listed), sum(map(len, listed))
        if count > self.most_strings:
            mistake = Told(
                "too_many_strings",
                "has more than {most:,} strings; send fewer, or part of them at a time",
                most=self.most_strings,
            )
            raise ValueListError(name, None, mistake)
        text = isinstance(listed, bytes)
        parse = parse_values if text else value_texts
        if count <= LIGHT and size <= _LIGHT_SIZE:
            return parse(listed, name)  # type: ignore[arg-type]
        whole = listed
        if not isinstance(whole, bytes):
            whole = "\n".join(whole).encode("utf-8", "surrogatepass")
        key = digest("sent", name, text, count, digest_of_bytes(whole))
        return self.decodes.get(key, lambda: Listed(self.calculate(key, parse, listed, name)))

    def calculate(
        self,
        key: bytes,
        function: Callable[..., _T],
        *arguments: object,
        candidates: Sequence[str] | None = None,
    ) -> _T:
        """What the function returns, in another process, as `Workers.run` says. Whoever asks
        under the same key meanwhile is given the same.

        Raises:
            StillDecoding, TooManyDecodes: it takes longer than one may wait.
            TooHeavy: it takes more than one may have.
        """
        strings = candidates if isinstance(candidates, Listed) else None

        def work(progress: Progress) -> _T:
            return self.workers.run(function, *arguments, strings=strings)

        return self.decodes.job(key, work, self.patience, self.reader)

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
        _check_listed(metric)
        asked = digest_of_candidates(candidates)

        def work(progress: Progress | None = None, known: bool = False) -> Versioned[Answer]:
            return self._point(metric, days, candidates, asked, level, adjust, known=known)

        return self._run_or_queue(metric, work, "estimate", days, asked, level, adjust)

    def trend(
        self,
        metric: Metric,
        days: DayRange,
        by: windows.Kind,
        candidates: Sequence[str] | None = None,
    ) -> Trend:
        """The metric over the periods of these days.

        Raises:
            StillDecoding, TooManyDecodes: it takes longer than one may wait.
        """
        return self.trend_at(metric, days, by, candidates).answer

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
        _check_listed(metric)
        asked = digest_of_candidates(candidates)

        def work(progress: Progress | None = None, known: bool = False) -> Versioned[Trend]:
            versions: list[bytes] = []

            def point(first: date, last: date) -> Answer:
                within = replace(days, first=first, last=last)
                found = self._point(metric, within, candidates, asked, level, "storey", known=known)
                versions.append(found.version)
                return found.answer

            answer = self._trend(metric, days, by, candidates, level, point, progress)
            return Versioned(answer, _version(answer, versions))

        return self._run_or_queue(metric, work, "trend", days, asked, by, level)

    def _run_or_queue(self, metric: Metric, work: _Work[_T], *asked: object) -> Versioned[_T]:
        """What `work` finds: of strings, and of long lists of values, in the background, as that
        may take long.

        Raises:
            StillDecoding, TooManyDecodes: it takes longer than one may wait.
        """
        if not metric.needs_candidates and len(metric.values) <= LIGHT:
            return work()
        job = digest(metric.name, metric.scheme.fingerprint, *asked)
        # What is known is not kept waiting by long calculations of something else.
        with suppress(_Unknown):
            found = work(known=True)
            self.decodes.forget(job)
            return found
        return self.decodes.job(job, work, self.patience, self.reader)

    def version(
        self, metric: Metric, days: DayRange, candidates: Sequence[str] | None = None
    ) -> bytes:
        """That of the estimate, without calculating it."""
        selection = self._select(metric, days, candidates)
        return digest(*selection.version(), unfinished(selection.labels, self.clock()))

    def trend_version(
        self,
        metric: Metric,
        days: DayRange,
        by: windows.Kind,
        candidates: Sequence[str] | None = None,
    ) -> bytes:
        """That of the trend: its periods' versions."""
        versions: list[bytes] = []

        def point(first: date, last: date) -> None:
            within = replace(days, first=first, last=last)
            versions.append(self.version(metric, within, candidates))

        found = self._trend(metric, days, by, candidates, 0.95, point, None)
        return _version(found, versions)

    def history(
        self,
        metric: Metric,
        days: DayRange,
        estimate: Answer | None = None,
        candidates: Sequence[str] | None = None,
    ) -> History:
        """What is strange in the windows of these days, each against those before it, and in
        their `estimate`, which is that of these candidates.

        Strings are not decoded for it.
        """
        _check_listed(metric)
        reach = days.reaching_back(LONGEST_HISTORY, metric.window)
        selection = self._select(metric, reach, None)
        asked = digest_of_candidates(candidates), estimate is None, days, self.alarm_level
        running = unfinished(selection.labels, self.clock())
        key = digest("history", *selection.version(), running, *asked)

        def work() -> History:
            selection.foresee()
            return inspect(
                metric.name,
                tuple(self._looks(selection, metric)),
                self.alarm_level,
                shown={label for label in selection.labels if days.touches(label)},
                whole=estimate.verdict.figures if estimate else (),
                unfinished=running,
            )

        return self.decodes.get(key, work)

    def looks(self, metric: Metric, days: DayRange) -> tuple[Look, ...]:
        """What is looked at in each window of these days, the oldest first."""
        return tuple(self._looks(self._select(metric, days, None), metric))

    def windowwise(self, metric: Metric, days: DayRange, series: str) -> Iterator[Answer]:
        """The estimate of one string in each window of these days, the oldest first."""
        asked = digest_of_candidates([series])
        for label in self._select(metric, days, [series]).labels:
            first = datetime.fromtimestamp(windows.start(label), UTC).date()
            last = datetime.fromtimestamp(windows.end(label) - 1, UTC).date()
            within = DayRange(first, last)
            yield self._point(metric, within, [series], asked, 0.95, "storey").answer

    def _looks(self, selection: Selection, metric: Metric) -> Iterator[Look]:
        """What is looked at in each window. Seven at a time: where none of them has changed, one
        question to the store says so."""
        week = 7 * LENGTHS[metric.window].total_seconds()
        for _, labels in groupby(selection.labels, lambda label: windows.start(label) // week):
            yield from self._known_looks(selection.within(frozenset(labels)))

    def _known_looks(self, selection: Selection) -> tuple[Look, ...]:
        def work() -> tuple[Look, ...]:
            labels = selection.labels
            if len(labels) > 1:
                each = (self._known_looks(selection.within({label})) for label in labels)
                return tuple(chain.from_iterable(each))
            found = look(labels[0], selection.read())
            return () if found is None else (found,)

        return self.decodes.get(digest("looks", *selection.version()), work)

    def reports(self, metric: Metric, days: DayRange) -> int:
        """How many reports of these days there are."""
        selection = self._select(metric, days, None)
        key = digest("reports", *selection.version())
        return self.decodes.get(key, lambda: selection.read().n)

    def _select(
        self, metric: Metric, days: DayRange, candidates: Sequence[str] | None
    ) -> Selection:
        first, last = days.first, days.last
        return select(
            *(self.store, self.registry, metric.name, first, last, candidates, days.without),
            where=dict(days.where),
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
            StillDecoding, TooManyDecodes: it takes longer than one may wait.
        """
        check_names(metric, by)
        selection = self._select(metric, days, candidates)
        version = self.segmented_version(metric, days, candidates)
        given = tuple(sorted((against or {}).items()))
        key = digest(
            "segmented", version, digest_of_candidates(candidates), tuple(by), given, level
        )
        values = len(candidates or metric.values) * len(metric.scheme.combinations)

        def work() -> Segmented:
            question = split_question(selection, by, against=against)
            asked = (question, against, level, self.clock())
            if values <= _LIGHT_CELLS and not metric.needs_candidates:
                return split_answer(*asked)
            return self.calculate(key + b"c", split_answer, *asked, candidates=candidates)

        return Versioned(self.decodes.get(key, work), version)

    def segmented_version(
        self, metric: Metric, days: DayRange, candidates: Sequence[str] | None = None
    ) -> bytes:
        """That of the answer by segments, without calculating it."""
        return self.version(metric, days, candidates)

    def _trend(
        self,
        metric: Metric,
        days: DayRange,
        by: windows.Kind,
        candidates: Sequence[str] | None,
        level: float,
        point: Point,
        progress: Progress | None,
    ) -> Trend:
        return trend(
            self.store,
            self.registry,
            metric.name,
            days.first,
            days.last,
            candidates,
            by=by,
            now=self.clock(),
            level=level,
            point=point,
            progress=progress,
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
            _Unknown: only what is `known` was asked for, and this is not.
        """
        selection = self._select(metric, days, candidates)
        # Before the tallies are read: what comes in between makes another version.
        running = unfinished(selection.labels, self.clock())
        version = digest(*selection.version(), running)
        key = digest(version, asked, level, adjust)
        if known:
            found: Answer | None = self.decodes.known(key)
            if found is None:
                raise _Unknown
            return Versioned(found, version)

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

        return Versioned(self.decodes.get(key, work), version)

    def newest(self, metric: Metric) -> str | None:
        """The newest window that holds any report, whatever the range."""
        pair = self.registry.unasked.get(metric.name)
        labels = [
            label
            for name in (metric.name, *((pair.name,) if pair else ()))
            for scheme in self.store.schemes().get(name, {})
            for label in self.store.windows(name, scheme)[-1:]
        ]
        return max(labels, default=None)


def _version(answer: Trend, versions: Sequence[bytes]) -> bytes:
    """That of a trend: of its estimates, and of which periods are over by now."""
    partial = [each.partial for each in answer.periods]
    return digest(answer.memory, partial, *versions)


def _check_listed(metric: Metric) -> None:
    """Refuse to estimate what nobody lists.

    Raises:
        EstimateError: the metric is a discovery.
    """
    if isinstance(metric.type, Discovery):
        raise EstimateError(
            message(
                "{metric} is a discovery, whose strings nobody lists: its page, "
                "/api/v1/metrics/{metric}/finds and `deniable discover {metric}` show which were "
                "found",
                metric=metric.name,
            )
        )


def day_of(clock: Callable[[], float]) -> date:
    """The day (UTC) that a clock of POSIX seconds shows."""
    return datetime.fromtimestamp(clock(), UTC).date()


def current_source() -> DataSource:
    """The source of the current application, for this request."""
    if "source" not in g:
        source: DataSource = current_app.extensions["deniable_source"]
        # A chart in a frame is made once: it cannot look again.
        whole = request.method not in ("GET", "HEAD") or request.blueprint == "embedding"
        at_once = for_people(request) and not whole
        patience = PAGE_PATIENCE if at_once else FILE_PATIENCE
        store, opened = Snapshot(source.store), opened_link()
        # Of what everybody may see, nobody should be able to subtract two readings.
        public = request.blueprint == "embedding" if opened is None else not opened.link.unfinished
        if public:
            store = EndedWindows(source.store, source.clock())
        g.source = replace(source, store=store, patience=patience, reader=reader_of(request))
    seen: DataSource = g.source
    return seen


def declared_metric(name: str) -> Metric:
    """The metric of that name.

    Raises:
        NotFound: there is none; the message names one that is spelt like it.
    """
    registry = current_source().registry
    if name in registry.metrics:
        return registry[name]
    near = difflib.get_close_matches(name, registry.metrics, n=1)
    if near:
        raise NotFound(
            message("No metric of that name is declared. Did you mean {name}?", name=near[0])
        )
    raise NotFound(message("No metric of that name is declared. The overview lists all there are."))
