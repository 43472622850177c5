"""What has arrived at `deniable dev`: reports and mistakes, the newest few of each, in memory."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, field

from deniable.protocol.wire import SealedReport

KEPT = 200
"""How many reports and how many mistakes are kept; older ones are forgotten."""


@dataclass(frozen=True)
class Arrived:
    """A report that was counted. `at` is POSIX time in seconds, which is kept only here."""

    number: int
    at: float
    report: SealedReport

    @property
    def size(self) -> int:
        """Bytes that the report takes in its batch."""
        fields = self.report._asdict()
        if self.report.row == 0:
            del fields["row"]
        return len(json.dumps(fields, separators=(",", ":")))


@dataclass(frozen=True)
class Mistake:
    """Something that a developer has to mend.

    `code` says what; `metric` is its metric, if it is about one, and `detail` the collector's own
    words. `times` is how often it was found, and `at` when last, in POSIX seconds.
    """

    code: str
    metric: str | None
    detail: str
    at: float
    times: int = 1


@dataclass
class Arrivals:
    """Safe to use from several threads. `version` grows with each change."""

    version: int = 0
    counted: Counter[str] = field(default_factory=Counter)
    """Reports by metric."""
    batches: int = 0
    bytes: int = 0
    """Of all batches, with everything in them."""
    _reports: deque[Arrived] = field(default_factory=lambda: deque(maxlen=KEPT))
    _mistakes: OrderedDict[tuple[str, str | None], Mistake] = field(default_factory=OrderedDict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def report(self, report: SealedReport) -> None:
        """A report was counted."""
        with self._changed:
            self.counted[report.metric] += 1
            number = self.counted.total()
            self._reports.append(Arrived(number, time.time(), report))
            self._change()

    def batch(self, size: int) -> None:
        """A batch of so many bytes was counted."""
        with self._changed:
            self.batches += 1
            self.bytes += size
            self._change()

    def mistake(self, code: str, metric: str | None = None, detail: str = "") -> None:
        """A mistake was found. One that was found before is told once, with how often."""
        # JSON may hold half of a UTF-16 pair, which no page can be encoded with.
        metric = None if metric is None else _encodable(metric)
        detail = _encodable(detail)
        with self._changed:
            before = self._mistakes.pop((code, metric), None)
            times = 1 if before is None else before.times + 1
            self._mistakes[code, metric] = Mistake(code, metric, detail, time.time(), times)
            if len(self._mistakes) > KEPT:
                self._mistakes.popitem(last=False)
            self._change()

    def forget_mistakes(self) -> None:
        """The registry has changed: what was wrong before may be mended."""
        with self._changed:
            self._mistakes.clear()
            self._change()

    def changed(self) -> None:
        """What pages show has changed in another way."""
        with self._changed:
            self._change()

    def newest(self) -> tuple[list[Arrived], list[Mistake]]:
        """The reports and the mistakes that are kept, the newest first."""
        with self._changed:
            return list(reversed(self._reports)), list(reversed(self._mistakes.values()))

    def wait(self, version: int, seconds: float) -> int:
        """Wait until the version is another one, for so many seconds at most; the version then."""
        with self._changed:
            self._changed.wait_for(lambda: self.version != version, seconds)
            return self.version

    def _change(self) -> None:
        self.version += 1
        self._changed.notify_all()


def _encodable(text: str) -> str:
    """The text, with a question mark for each half of a UTF-16 pair."""
    return text.encode("utf-8", "replace").decode()
