"""The data of the pages: fetched from what is known already, or calculated here or, if that takes
long, in the background."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TypeVar

from deniable import Metric, Registry, ValueListError
from deniable.protocol import windows
from deniable.protocol.value_list import read_values
from deniable_estimator.asking.discoveries import followed_lists
from deniable_estimator.asking.fetch import Selection, first_day, reported
from deniable_estimator.asking.listed import Listed, list_path
from deniable_estimator.asking.query import Days
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.results import Results, Turn, key_of
from deniable_estimator.asking.work import Workers
from deniable_estimator.dashboard.calculations import LIGHT, png
from deniable_estimator.dashboard.ranges import day_at, is_ranged, read_range
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.inputs import Asked
from deniable_estimator.kinds.basis import unfinished

PAGE_PATIENCE = 1.0
"""Seconds that a page waits before it shows the progress instead."""

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
    settings: DashboardSettings
    results: Results
    workers: Workers
    patience: float = PAGE_PATIENCE
    """Seconds to wait for a long calculation before `StillDecoding` is raised."""
    who: str = ""
    """Who asks, for the limit on what one reader may ask for at a time."""
    behind: float = 0.0
    """So many seconds ago a window must have ended for the reader to see it."""

    @property
    def today(self) -> date:
        """The day (UTC) that the clock shows."""
        return day_at(self.clock())

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
        return self.results.fetch(key_of(self.behind, *name), work, self.patience, self.who)

    def kept(self, key: bytes, calculate: Callable[[], _T]) -> _T:
        """What is known under the key, or else what `calculate` returns, in the background."""
        return self.fetch(lambda turn: turn.get(key, calculate), key)

    def calculate(self, key: bytes, function: Callable[..., _T], *arguments: object) -> _T:
        """What the function returns, in another process, as `Workers.run` says. Whoever asks
        under the same key meanwhile is given the same; it is not kept."""
        return self.results.job(
            key,
            lambda progress: self.workers.run(function, *arguments),
            self.patience,
            self.who,
        )

    def written(
        self,
        lines: int,
        key: tuple[object, ...],
        function: Callable[..., str],
        *arguments: object,
    ) -> str:
        """A file of so many lines that the function writes: if they are many, by `calculate`."""
        if lines <= LIGHT:
            return function(*arguments)
        return self.calculate(key_of("written", *key), function, *arguments)

    def picture(self, svg: str) -> bytes:
        """An SVG as a PNG, twice as large."""
        return self.kept(key_of("picture", svg), lambda: self.workers.run(png, svg))

    def list_version(self, metric: Metric) -> bytes | None:
        """That of the strings that the operator has listed for a metric, without reading them; None
        if there is no list."""
        with suppress(OSError):
            if path := self._list_path(metric):
                status = path.stat()
                about = status.st_ino, status.st_size, status.st_mtime_ns
                return key_of("list", metric.name, *about)
        return None

    def candidates(self, metric: Metric) -> list[str] | None:
        """The strings that the operator has listed for a metric; None if there is no list.

        Raises:
            ValueListError: the list cannot be read or has a mistake.
        """
        path, key = self._list_path(metric), self.list_version(metric)
        if path is None or key is None:
            return None
        try:
            return self.results.get(key, lambda: Listed(read_values(path), str(path)))
        except ValueListError as error:
            # The name of its folder is not told.
            raise ValueListError(path.name, error.line, error.mistake) from None

    def _list_path(self, metric: Metric) -> Path | None:
        folder = self.settings.candidates_dir
        return list_path(metric, Path(folder) if folder else None)

    def lists(self) -> tuple[dict[str, Collection[str]], bytes]:
        """The lists that are followed already, by metric, with their version: those of the
        registry, and those of the operator. A list with a mistake follows nothing."""
        lists: dict[str, Collection[str]] = {**followed_lists(self.registry)}
        versions = []
        for each in self.registry:
            if each.needs_candidates:
                with suppress(ValueListError):
                    versions.append((each.name, self.list_version(each)))
                    lists[each.name] = frozenset(self.candidates(each) or ())
        return lists, key_of(*sorted(lists), *versions)

    def newest(self, metric: Metric) -> str | None:
        """The newest window that has begun and holds any report, whatever the range: a device
        whose clock is fast may report in a later one."""
        begun = (each for each in self.labels(metric) if windows.start(each) <= self.seen_until)
        return max(begun, default=None)

    def running(self, metric: Metric) -> Days | None:
        """The days so far of the newest window, if it has reports and is not over."""
        newest = self.newest(metric)
        if newest is None or windows.end(newest) <= self.seen_until:
            return None
        first = windows.first_day(newest)
        return Days(first, max(first, day_at(self.seen_until)))

    def read_range(self, metric: Metric, asked: Asked) -> Days:
        """The days of a metric that are asked for, with the same errors as `read_range`."""
        oldest = self.first_day(metric) if asked.get("since") else date.min
        return read_range(asked, self.seen_until, metric.window, metric, oldest)

    def read_days(self, metric: Metric, asked: Asked) -> Days:
        """The days that are asked for. Where none are, and the latest complete windows have no
        reports, those of the window that runs: the first day of an app that reports at once.

        Raises:
            EstimateError: they cannot be shown.
        """
        days = self.read_range(metric, asked)
        if is_ranged(asked):
            return days
        running = self.running(metric)
        if running is None or any(map(days.touches, self.labels(metric))):
            return days
        return replace(running, without=days.without)

    def labels(self, metric: Metric) -> list[str]:
        """The windows that hold reports of a metric, or of the pair that answers for it."""
        return reported(self.reader, self.registry, metric)

    def first_day(self, metric: Metric) -> date:
        """The first day that has reports of a metric in windows of its kind, as it was when this
        was first asked today: all metrics of an overview are asked."""
        key = key_of("first day", metric.name, *self.reader.schemes_of(metric.name), self.today)
        return self.results.get(key, lambda: first_day(self.reader, self.registry, metric))

    def version_of(self, selection: Selection) -> bytes:
        """That of what is read of a selection, and of which of its windows run."""
        return key_of(*selection.version(), unfinished(selection.labels, self.clock()))
