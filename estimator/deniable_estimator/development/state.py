"""What `deniable dev` knows: the registry as it is edited; the newest few reports and mistakes, in
memory for the live page; and what helps."""

from __future__ import annotations

import difflib
import json
import re
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from deniable import Metric, Registry
from deniable.protocol.errors import Problem
from deniable.protocol.types.discovery import Discovery
from deniable.protocol.wire import SealedReport
from deniable.tools.commands import examined
from deniable_estimator.files import status_of
from deniable_estimator.messages import message, sentence

KEPT = 200
"""How many reports and how many mistakes are kept; older ones are forgotten."""

LONGEST_NAME = 100
"""Letters of an unknown metric's name, or of an origin, that are shown."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
"""A name that a metric may have; whatever else was recorded is not put into a command."""

_LISTS = re.compile(r"""values_file\s*=\s*["']([^"']+)""")
"""Lists of values, also in a file that is no TOML while it is edited."""

_NAMED = 10
"""So many values of a list are named."""

_EMPTY = Registry("development", {})


@dataclass
class RegistryFile:
    """`registry` is the last one without mistakes; before there was one, it is empty."""

    path: Path
    registry: Registry = field(default_factory=lambda: _EMPTY)
    mistakes: Sequence[Problem] = ()
    """What is wrong with the file as it is now; it is in force only if there is nothing."""
    warnings: Sequence[Problem] = ()
    """What can be read but protects nothing, or will not work."""
    _seen: tuple[object, ...] = ()

    def look(self) -> bool:
        """Read the file if it has changed. Returns whether it has, with or without mistakes."""
        seen = self._signature()
        if seen == self._seen:
            return False
        self._seen = seen
        registry, found = examined(self.path)
        if registry is None:
            self.mistakes = found
        else:
            self.registry, self.mistakes = registry, ()
            self.warnings = tuple(each for each in found if each.severity != "note")
        return True

    @property
    def source(self) -> str:
        """What messages call the file."""
        return self.path.name

    def _signature(self) -> tuple[object, ...]:
        """Something that is another when the file, or a list of values that it names, is."""
        text = ""
        with suppress(OSError, ValueError):
            text = self.path.read_text(encoding="utf-8")
        files = (self.path.name, *_LISTS.findall(text))
        return tuple((each, status_of(self.path.parent / each)) for each in files)


@dataclass(frozen=True)
class Arrived:
    """A report that was counted. `at` is POSIX time in seconds, which is kept only here."""

    number: int
    at: float
    report: SealedReport

    @property
    def when(self) -> str:
        """The time of day of its arrival, UTC."""
        return f"{datetime.fromtimestamp(self.at, UTC):%H:%M:%S}"

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

    def batch(self, size: int, reports: Iterable[SealedReport]) -> None:
        """A batch of so many bytes was counted, with these reports."""
        with self._changed:
            self.batches += 1
            self.bytes += size
            for each in reports:
                self.counted[each.metric] += 1
                self._reports.append(Arrived(self.counted.total(), time.time(), each))
            self.changed()

    def mistake(self, code: str, metric: str | None = None, detail: str = "") -> None:
        """A mistake was found. One that was found before is told once, with how often."""
        # JSON may hold half of a UTF-16 pair, which no page can be encoded with.
        metric = None if metric is None else _encodable(metric[:LONGEST_NAME])
        detail = _encodable(detail)
        with self._changed:
            before = self._mistakes.pop((code, metric), None)
            times = 1 if before is None else before.times + 1
            self._mistakes[code, metric] = Mistake(code, metric, detail, time.time(), times)
            if len(self._mistakes) > KEPT:
                self._mistakes.popitem(last=False)
            self.changed()

    def forget_mistakes(self) -> None:
        """The registry has changed: what was wrong before may be mended."""
        with self._changed:
            self._mistakes.clear()
            self.changed()

    def changed(self) -> None:
        """What pages show has changed."""
        with self._changed:
            self.version += 1
            self._changed.notify_all()

    def newest(self) -> tuple[list[Arrived], list[Mistake]]:
        """The reports and the mistakes that are kept, the newest first."""
        with self._changed:
            return list(reversed(self._reports)), list(reversed(self._mistakes.values()))

    def wait(self, version: int, seconds: float) -> int:
        """Wait until the version is another one, for so many seconds at most; the version then."""
        with self._changed:
            self._changed.wait_for(lambda: self.version != version, seconds)
            return self.version


def _encodable(text: str) -> str:
    """The text, with a question mark for each half of a UTF-16 pair."""
    return text.encode("utf-8", "replace").decode()


_TOLD = {
    "unknown_metric": (sentence("There is no metric “{metric}”."), ""),
    "refused_value": (
        sentence("“{metric}” cannot take a value that was recorded. Nothing was reported."),
        "",
    ),
    "undeclared_value": (
        sentence("A value that “{metric}” does not list was recorded. It counts as its “other”."),
        sentence(
            "To count it separately, add it to `values`. Upper and lower case differ, and so do "
            "spaces."
        ),
    ),
    "expired_metric": (
        sentence("“{metric}” has expired, so nothing is recorded."),
        sentence("Set `expires` to a later day."),
    ),
    "missing_segment": (
        sentence("The app has not told a segment, so its metrics are not recorded."),
        sentence(
            "Pass `segments` to the client or call set_segments() (in a page setSegments()). Or "
            "declare an “other” for the segment."
        ),
    ),
    "no_consent": (
        sentence("The app records without consent, so nothing is kept or sent."),
        sentence("Pass consent=True (in a page `consent: true`), or call opt_in() (optIn())."),
    ),
    "disabled": (
        sentence("Telemetry is switched off where the app runs, so nothing is recorded."),
        sentence(
            "Unset DO_NOT_TRACK and DENIABLE_DISABLED; in a browser, switch Global Privacy Control "
            "and Do Not Track off for this page."
        ),
    ),
    "unknown_scheme": (
        sentence(
            "A report of “{metric}” was made with other parameters than metrics.toml has now. It "
            "was left out."
        ),
        sentence(
            "Restart the app, so that it reads the file again. If it ships a compiled registry, "
            "run `deniable compile` or `deniable compile web` first."
        ),
    ),
    "not_development": (
        sentence("A batch came without the mark of development mode. It was refused."),
        sentence(
            "Set DENIABLE_DEV for the app, or `development` in the client. In a page, take the "
            "development build: a released one does nothing with `development`."
        ),
    ),
    "origin": (
        sentence("A page of {origin} wanted to send. It was refused."),
        sentence("If the page is yours, start `deniable dev` with --origin and this address."),
    ),
    "batch": (
        sentence("A batch was refused as a whole: {detail}."),
        sentence(
            "This is a mistake of the SDK that sent it; docs/reference/protocol.md has the format."
        ),
    ),
}
"""By the codes of mistakes: what was found, and what to do, where that does not depend on the
metric."""
_OTHERS = (
    sentence("A report of “{metric}” was left out ({reason}): {detail}."),
    sentence(
        "docs/reference/protocol.md says what each reason means. Check the clock of the device."
    ),
)


def advice_on(mistake: Mistake, registry: Registry) -> tuple[str, str]:
    """What was found, and what to do, as texts that pages translate."""
    code, name = mistake.code, mistake.metric or ""
    metric = registry.metrics.get(name)
    found, advice = _TOLD.get(code, _OTHERS)
    if code == "refused_value" and metric is None:
        found, advice = _OTHERS
    told = message(found, metric=name, reason=code, detail=mistake.detail, origin=mistake.detail)
    if advice:
        return told, message(advice)
    return told, _declare(name, registry) if metric is None else _takes(metric)


def _declare(name: str, registry: Registry) -> str:
    near = difflib.get_close_matches(name, registry.metrics, n=1, cutoff=0.5)
    if near:
        return message(
            "Did you mean “{near}”? If not, declare the metric with `deniable add`.", near=near[0]
        )
    if not _NAME.fullmatch(name):
        return message("A metric's name has small letters, digits and underscores.")
    return message("Declare it: deniable add {metric}", metric=name)


def _takes(metric: Metric) -> str:
    """What the metric takes."""
    if metric.type.name == "boolean":
        return message("It takes true and false alone.")
    if metric.type.of:
        return message(
            "It is a pair, which is not recorded itself. Record {of}: the device joins them.",
            of=", ".join(metric.type.of),
        )
    if metric.values:
        named = ", ".join(metric.values[:_NAMED])
        if len(metric.values) > _NAMED:
            return message(
                "It takes one of its {count} values, like {named}; a list with `other` takes any "
                "text.",
                count=len(metric.values),
                named=named,
            )
        return message("It takes one of {named}. A list with “other” takes any text.", named=named)
    if isinstance(metric.type, Discovery):
        return message("It takes any text without half of a surrogate pair.")
    if metric.needs_candidates:
        return message("It takes a text of 1 to 1,024 bytes without control characters.")
    return message("It takes a number, and neither a text nor true or false.")
