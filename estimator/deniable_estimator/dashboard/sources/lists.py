"""What all questions share: the store, the registry, the clock, lists of strings, and
calculations in other processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TypeVar

from deniable import Metric, Registry, ValueListError
from deniable.coded_message import CodedMessage
from deniable.value_list import parse_values, read_values, value_texts
from deniable_estimator.analyses.anomalies import ALARM_LEVEL
from deniable_estimator.analyses.base import FAKES
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.trend import Progress
from deniable_estimator.dashboard.calculations import LIGHT, png
from deniable_estimator.dashboard.decodes import Decodes
from deniable_estimator.dashboard.versions import (
    MOST_STRINGS,
    Listed,
    digest,
    digest_of_bytes,
)
from deniable_estimator.dashboard.workers import Workers

PAGE_PATIENCE = 1.0
"""Seconds that a page waits before it shows the progress instead."""

_LIGHT_SIZE = 1 << 15
"""A longer list is read in another process: to bring some texts into normal form takes long."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class ListSource:
    """The data of the pages, without any answer."""

    reader: Reader
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
            mistake = CodedMessage(
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
        return self.kept(key, lambda: Listed(self.workers.run(parse, listed, name)))

    def picture(self, svg: str, scale: int) -> bytes:
        """An SVG as a PNG, `scale` times as large.

        Raises:
            StillDecoding, TooManyDecodes: to draw it takes longer than one may wait.
        """
        key = digest("picture", svg, scale)
        return self.kept(key, lambda: self.workers.run(png, svg, scale))

    def kept(self, key: bytes, calculate: Callable[[], _T]) -> _T:
        """What is known under the key, or else what `calculate` returns, in the background; it is
        known from then on.

        Raises:
            StillDecoding, TooManyDecodes: it takes longer than one may wait.
            TooHeavy: it takes more than one may have.
        """
        found: _T | None = self.decodes.known(key)
        if found is not None:
            return found

        def work(progress: Progress) -> _T:
            return self.decodes.get(key, calculate)

        return self.decodes.job(key, work, self.patience, self.who)

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

        return self.decodes.job(key, work, self.patience, self.who)

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


def day_of(clock: Callable[[], float]) -> date:
    """The day (UTC) that a clock of POSIX seconds shows."""
    return datetime.fromtimestamp(clock(), UTC).date()
