"""The door of `deniable dev`: batches of development mode go on to a collector, all others do not.

The collector behind it is the one that everybody runs, with its checks and its limits. Only the
mark is taken off before it sees a batch, and windows count as open while they last. The newest few
reports and mistakes are kept in memory, for the live page.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from werkzeug.datastructures import Headers
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Request, Response

from deniable import Registry
from deniable.device.development import TROUBLE_CODES, TROUBLES
from deniable.protocol.addresses import is_loopback_host
from deniable.protocol.wire import SealedReport, is_development, unmarked
from deniable_collector.batches.batch import Receipt
from deniable_collector.documents import documents
from deniable_collector.intake import Intake
from deniable_collector.refusals import IntakeError, malformed
from deniable_collector.serving.responses import HttpResponse, answered, head, problem_of
from deniable_collector.settings import Settings
from deniable_collector.stores import Store

_REPORTS = "/v1/reports"
_LARGEST = {_REPORTS: 1 << 20, TROUBLES: 1 << 12}
"""Bytes of a body that is read."""

KEPT = 200
"""How many reports and how many mistakes are kept; older ones are forgotten."""

_LONGEST_NAME = 100
"""Letters of an unknown metric's name that are shown."""

_NOTHING = HttpResponse(204, b"")

# Not a code for which a device drops its batch: a real report waits for its collector.
_REFUSED = {
    "type": "urn:deniable:problem:development-only",
    "title": "Development only",
    "status": 403,
    "detail": "`deniable dev` takes only reports of development mode: set DENIABLE_DEV, or the "
    "option `development` of the client",
}
_DEVELOPMENT_ONLY = HttpResponse(403, json.dumps(_REFUSED).encode(), "application/problem+json")


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
        metric = None if metric is None else _encodable(metric)
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


def at_once(registry: Registry) -> Registry:
    """The registry as the collector has it: a window takes reports from its beginning."""
    metrics = {
        metric.name: replace(metric, answer="at_once", compiled=metric.scheme.mechanism)
        for metric in registry
    }
    return replace(registry, metrics=metrics)


class Gate:
    """Answers at all paths under /v1/."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        registry: Registry,
        arrivals: Arrivals,
        origins: Collection[str] = (),
    ) -> None:
        self._settings = settings
        self._store = store
        self._arrivals = arrivals
        self._origins = frozenset(origins)
        self.load(registry)

    def load(self, registry: Registry) -> None:
        """Take reports by another registry from now on."""
        self._registry = registry
        # Before the first report, so that pages can read the store.
        self._store.publish((metric.name, metric.scheme) for metric in registry)
        known = at_once(registry)
        self._documents = documents(known, self._settings.metrics_bind)
        self._intake = Intake(known, self._store, max_reports=self._settings.max_reports)

    def respond(self, request: Request) -> Response:
        """The response to a request, with the headers that let pages read it."""
        origin = request.headers.get("Origin")
        allowed = origin is not None and self.may_send(origin)
        try:
            answer = self._answer(request, origin, allowed=allowed)
        except IntakeError as error:
            answer = problem_of(error)
        fields = head(answer.content_type, answer.retry_after, answer.status)
        headers = Headers([(name.decode(), text.decode()) for name, text in fields])
        if request.path in _LARGEST:
            headers["Vary"] = "Origin"
            if answer.status == 405:
                headers["Allow"] = "POST"
            if origin is not None and allowed:
                headers["Access-Control-Allow-Origin"] = origin
                headers["Access-Control-Expose-Headers"] = "Retry-After"
                # Browsers ask this where a page of another network calls this machine.
                headers["Access-Control-Allow-Private-Network"] = "true"
            if allowed and request.method == "OPTIONS":
                headers["Access-Control-Allow-Methods"] = "POST"
                headers["Access-Control-Allow-Headers"] = (
                    "authorization, content-type, x-deniable-key"
                )
        return Response(answer.body, answer.status, headers)

    def _answer(self, request: Request, origin: str | None, *, allowed: bool) -> HttpResponse:
        """The response to a request.

        Raises:
            IntakeError: it is refused, as a collector would.
        """
        if request.path not in _LARGEST:
            # What the collector tells everyone.
            found = self._documents.get(request.path.encode())
            if found is None:
                raise IntakeError("http-404", "there is nothing at this path")
            return HttpResponse(200, found.body)
        if origin is not None and not allowed:
            self._arrivals.mistake("origin", None, origin[:_LONGEST_NAME])
            told = "pages of this origin may not send to `deniable dev`: name it with --origin"
            raise IntakeError("origin-not-allowed", told)
        if request.method == "OPTIONS":
            return _NOTHING
        if request.method != "POST":
            raise IntakeError("http-405", "send a batch with POST")
        request.max_content_length = _LARGEST[request.path]
        try:
            body = request.get_data(cache=False)
        except HTTPException:
            told = "the body is larger than a batch may be"
            raise IntakeError("body-too-large", told) from None
        return self._reports(body) if request.path == _REPORTS else self._trouble(body)

    def _reports(self, body: bytes) -> HttpResponse:
        if not is_development(body):
            self._arrivals.mistake("not_development")
            return _DEVELOPMENT_ONLY
        inner = unmarked(body)
        try:
            (outcome,) = self._intake.take([self._intake.read(inner)])
        except Exception as error:
            outcome = error
        response = answered(outcome)
        self._note(inner, outcome, json.loads(response.body), len(body))
        return response

    def _note(
        self, body: bytes, outcome: Receipt | Exception, told: dict[str, Any], size: int
    ) -> None:
        """Tell the live page what became of a batch, of which the device is told this."""
        if not isinstance(outcome, Receipt):
            code = told["type"].rpartition(":")[2]
            self._arrivals.mistake("batch", None, f"{code}: {told['detail']}")
            return
        if outcome.duplicate:
            return
        reports = dict(enumerate(json.loads(body)["reports"]))
        for each in outcome.rejected:
            self._arrivals.mistake(each.reason, _name_of(reports.pop(each.index)), each.detail)
        counted = (SealedReport(**{"row": 0, **each}) for each in reports.values())
        self._arrivals.batch(size, counted)

    def _trouble(self, body: bytes) -> HttpResponse:
        """A mistake that a client found: a code and the name of a metric, and no value."""
        try:
            document = json.loads(body)
            trouble = document["trouble"]
            code, metric = trouble["code"], trouble["metric"]
            fine = (
                document["development"] is True
                and code in TROUBLE_CODES
                and isinstance(metric, str | None)
            )
        except (ValueError, TypeError, KeyError, RecursionError):
            fine = False
        if not fine:
            raise malformed("this is no mistake as clients tell it")
        if metric is not None and code != "unknown_metric" and metric not in self._registry.metrics:
            code = "unknown_metric"
        self._arrivals.mistake(code, None if metric is None else metric[:_LONGEST_NAME])
        return _NOTHING

    def may_send(self, origin: str) -> bool:
        """Whether a page of this origin may send: one of this machine, or one that was named.
        Otherwise any page that the developer visits could."""
        scheme, _, rest = origin.partition("://")
        host = rest if rest.endswith("]") else rest.rpartition(":")[0] or rest
        local = scheme in ("http", "https") and is_loopback_host(host)
        return local or origin in self._origins


def _encodable(text: str) -> str:
    """The text, with a question mark for each half of a UTF-16 pair."""
    return text.encode("utf-8", "replace").decode()


def _name_of(report: Any) -> str | None:
    name = report.get("metric") if isinstance(report, dict) else None
    return name[:_LONGEST_NAME] if isinstance(name, str) else None
