"""The device's side of the network: is there a collector, and would it take this app's reports?

Nothing that counts is sent. For each metric the collector gets one report that names the scheme
and a window of now, but a row that no scheme has (IMPOSSIBLE_ROW): every collector leaves it out,
with reason `bad_row` if it would take a real one, and otherwise with the reason why it would not.
Such a report is the same on every device, whatever was recorded there.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from deniable.device.transport import HttpTransport, Reply, problem_code, read_reply
from deniable.protocol import windows
from deniable.protocol.addresses import is_loopback_host
from deniable.protocol.errors import TransportError
from deniable.protocol.metric import Metric
from deniable.protocol.registry import Registry
from deniable.protocol.wire import LATEST, new_batch_id
from deniable.tools.doctor.result import CheckResult, listed

_ADDRESS = (
    "use the collector's address, without /v1/reports; by default port 8080 is the collector's, "
    "and 8090 the dashboard's"
)

IMPOSSIBLE_ROW = 1_000_000_000
"""No mechanism has so many rows, so no collector counts a report for this one."""

TIMEOUT = 5.0
"""Seconds for each step on the network."""

LARGEST_REGISTRY = 1 << 26
"""Bytes of a collector's public registry: several lists of a million values."""

SKEW_WARNING = 60.0
"""Seconds by which two clocks may differ without a word."""

SKEW_ERROR = 86_400.0
"""Collectors refuse windows that end more than a day ahead of their clock."""

_AT_A_TIME = 50


def check_endpoint(
    registry: Registry, endpoint: str, ingest_key: str | None, clock: Callable[[], float]
) -> Iterator[CheckResult]:
    """What a device with this registry meets at this address."""
    try:
        transport = HttpTransport(endpoint, TIMEOUT, ingest_key=ingest_key)
    except ValueError as error:
        yield CheckResult("endpoint", "no_address", "error", str(error), _ADDRESS)
        return
    if _is_open(endpoint):
        yield CheckResult(
            "endpoint", "no_tls", "warning",
            "the endpoint begins with http://, so the network can read and change reports",
            "put a proxy with TLS in front of the collector, and write https://",
        )  # fmt: skip
    try:
        reply, headers = transport.ask("/v1/registry", largest=LARGEST_REGISTRY)
    except TransportError as error:
        yield _unreachable(error, endpoint)
        return
    declared = _declared(reply)
    if declared is None:
        yield _foreign(reply, headers, endpoint)
        return
    yield CheckResult("endpoint", "collector", "ok", f"a collector responds at {endpoint}")
    yield from _clocks(headers.get("Date"), clock())
    yield from _schemes(registry, declared, transport, ingest_key, clock)


def skew_of(date: str | None, now: float) -> float | None:
    """By how many seconds our clock is ahead of a response's Date; None if that says nothing."""
    try:
        return None if date is None else now - parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return None


def _is_open(endpoint: str) -> bool:
    """Whether reports would travel in clear text beyond this machine."""
    parts = urlsplit(endpoint)
    host = parts.hostname or ""
    return parts.scheme == "http" and not is_loopback_host(f"[{host}]" if ":" in host else host)


def _unreachable(error: TransportError, endpoint: str) -> CheckResult:
    """Why there was no response."""
    cause = error.__context__
    reason = getattr(cause, "reason", None) or cause
    code, advice = "unreachable", "is the collector running, and does a firewall let you through?"
    if isinstance(reason, socket.gaierror):
        code, advice = "unknown_host", "check the spelling of the host, and its entry in the DNS"
    elif isinstance(reason, ConnectionRefusedError):
        code = "refused"
        advice = (
            "nothing listens there: start the collector (`deniable collect`), or correct the port"
        )
    elif isinstance(reason, ssl.SSLCertVerificationError):
        code = "certificate"
        advice = (
            "the certificate is not valid for this host, has expired, or is signed by nobody whom "
            "this machine trusts (SSL_CERT_FILE names others)"
        )
    elif isinstance(reason, ssl.SSLError):
        code, advice = "not_tls", "the port does not speak TLS: a local collector is http://"
    elif isinstance(cause, HTTPException):
        code, advice = "not_http", "if the port speaks TLS, write https://. " + _ADDRESS
    return CheckResult("endpoint", code, "error", f"{endpoint}: {error}", advice)


def _declared(reply: Reply) -> Mapping[str, Any] | None:
    """The metrics that a collector declares; None if this is not a collector's response."""
    if reply.status != 200:
        return None
    try:
        metrics = json.loads(reply.body)["metrics"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not isinstance(metrics, dict) or not all(isinstance(e, dict) for e in metrics.values()):
        return None
    return metrics


def _foreign(reply: Reply, headers: Mapping[str, str], endpoint: str) -> CheckResult:
    """What responded in place of a collector, and what to do about it."""
    if 300 <= reply.status < 400:
        there = re.sub(r"[?#].*", "", headers.get("Location", ""))
        if not re.fullmatch(r"[!-~]{1,200}", there):
            there = "an address that it does not name"
        return CheckResult(
            "endpoint", "redirect", "error",
            f"{endpoint} redirects to {there}, and devices follow no redirect",
            "use the address that it redirects to, without /v1/registry",
        )  # fmt: skip
    problem = problem_code(reply.body)
    if problem == "http-404":
        return CheckResult(
            "endpoint", "wrong_path", "error",
            f"a collector responds at {endpoint}, but not at this path", _ADDRESS,
        )  # fmt: skip
    if problem is not None:
        return CheckResult(
            "endpoint", "busy", "error", f"the collector responded with {problem}",
            "see the collector's log, or `deniable doctor --operator` on its machine",
        )  # fmt: skip
    kind = "a page of HTML" if b"<html" in reply.body[:4096].lower() else "a response"
    return CheckResult(
        "endpoint", "not_a_collector", "error",
        f"{endpoint} sends {kind} with status {reply.status} that is not a collector's: a proxy, "
        "a login page, or another server",
        _ADDRESS,
    )  # fmt: skip


def _clocks(date: str | None, now: float) -> Iterator[CheckResult]:
    skew = skew_of(date, now)
    if skew is not None and abs(skew) > SKEW_WARNING:
        yield CheckResult(
            "clock", "skew", "error" if abs(skew) > SKEW_ERROR else "warning",
            f"this machine's clock is {abs(skew):,.0f} s {'ahead of' if skew > 0 else 'behind'} "
            "the collector's",
            "set both by NTP: a window ends by the device's clock and is accepted by the "
            "collector's",
        )  # fmt: skip


def _schemes(
    registry: Registry,
    declared: Mapping[str, Any],
    transport: HttpTransport,
    ingest_key: str | None,
    clock: Callable[[], float],
) -> Iterator[CheckResult]:
    """Whether the collector would take a report of each metric now."""
    now = clock()
    today = datetime.fromtimestamp(now, UTC).date()
    current = [metric for metric in registry if metric.expires >= today]
    reasons: dict[str, list[str]] = {}
    asked: list[tuple[Metric, str]] = []
    for metric in current:
        if (window := _window(metric, now)) is not None:
            asked.append((metric, window))
        else:
            # Judged by the collector's registry. It may take an earlier scheme too, so another one
            # is no error.
            reason = "bad_row" if metric.name in declared else "unknown_metric"
            reasons.setdefault(reason, []).append(metric.name)
    for first in range(0, len(asked), _AT_A_TIME):
        part = asked[first : first + _AT_A_TIME]
        batch_id = new_batch_id()
        try:
            reply, _ = transport.ask("/v1/reports", _impossible(part, batch_id))
        except TransportError as error:
            yield CheckResult("endpoint", "broke_off", "error", str(error), "try again")
            return
        try:
            refused = read_reply(reply, batch_id, clock)
        except TransportError as error:
            yield _refused_batch(problem_code(reply.body), str(error), ingest_key)
            return
        for place, (metric, _) in enumerate(part):
            reasons.setdefault(refused.get(place, ""), []).append(metric.name)
    yield from _verdicts(reasons)
    taken = reasons.get("bad_row", [])
    other = [
        name
        for name in taken
        if declared.get(name, {}).get("scheme") != registry[name].scheme.fingerprint
    ]
    if other:
        yield CheckResult(
            "registry", "another_scheme", "warning",
            "the collector's registry has another scheme for these, though it may have published "
            f"yours earlier: {listed(other)}",
            "is one of the two registries older? Estimates combine both schemes",
        )  # fmt: skip
    if taken and len(taken) == len(current):
        yield CheckResult(
            "registry", "accepted", "ok",
            f"the collector takes reports of {listed(taken)}",
        )  # fmt: skip


def _impossible(part: Sequence[tuple[Metric, str]], batch_id: str) -> bytes:
    """A batch of which every collector leaves out every report."""
    reports = [
        {
            "metric": metric.name,
            "scheme": metric.scheme.fingerprint,
            "window": window,
            "row": IMPOSSIBLE_ROW,
            "columns": 0,
        }
        for metric, window in part
    ]
    return json.dumps({"batch": batch_id, "reports": reports}).encode()


def _window(metric: Metric, now: float) -> str | None:
    """A window whose reports a collector takes now; None in the middle of a month, say."""
    current = windows.window_at(metric.window, now)
    if metric.answer == "at_once":
        return current
    begun = windows.start(current)
    if now - begun <= LATEST:
        return windows.window_at(metric.window, begun - 1)
    return current if windows.end(current) - now <= SKEW_ERROR else None


def _refused_batch(problem: str | None, message: str, ingest_key: str | None) -> CheckResult:
    """Why the collector did not read the batch at all."""
    if problem == "no-ingest-key":
        given = "does not accept this ingest key" if ingest_key else "asks for an ingest key"
        return CheckResult(
            "endpoint", "ingest_key", "error", f"the collector {given}",
            "pass one of its DENIABLE_INGEST_KEYS as Client(ingest_key=...), and to this command "
            "in DENIABLE_INGEST_KEY",
        )  # fmt: skip
    if problem in ("too-many-requests", "store-unavailable", "queue-full", "too-many-connections"):
        return CheckResult(
            "endpoint", "busy", "warning", f"{message}; devices would try again later",
            "see the collector's log, or `deniable doctor --operator` on its machine",
        )  # fmt: skip
    return CheckResult(
        "endpoint", "refused_batch", "error", message,
        "is there a proxy in front that changes requests? docs/reference/protocol.md explains the "
        "responses",
    )  # fmt: skip


_FOLLOW = (
    "give the collector the app's metrics.toml and send it SIGHUP. Devices keep such reports for "
    "six days"
)

_VERDICTS = {
    "unknown_metric": ("another_registry", "the collector does not know these metrics", _FOLLOW),
    "unknown_scheme": (
        "another_registry",
        "the collector has these metrics with other parameters",
        _FOLLOW,
    ),
    "bad_window": ("another_registry", "the collector has another window for these", _FOLLOW),
    "expired_metric": ("another_registry", "at the collector these have expired", _FOLLOW),
    "window_not_closed": (
        "clock_ahead",
        "the collector refuses windows that have not ended by its clock",
        "set the clock of this machine and the collector's by NTP",
    ),
    "window_too_old": (
        "clock_behind",
        "the collector refuses windows that ended long ago by its clock",
        "set the clock of this machine and the collector's by NTP",
    ),
}
"""For each reason of a collector: a code, what it means, and what to do."""


def _verdicts(reasons: Mapping[str, list[str]]) -> Iterator[CheckResult]:
    """What the collector's reasons mean, but for the one that says that all is well."""
    for reason, names in reasons.items():
        if reason in _VERDICTS:
            code, message, advice = _VERDICTS[reason]
            check = "clock" if code.startswith("clock") else "registry"
            yield CheckResult(check, code, "error", f"{message}: {listed(names)}", advice)
        elif reason != "bad_row":
            yield CheckResult(
                "endpoint", "not_a_collector", "error",
                f"what responds treats reports as no collector does: {listed(names)}", _ADDRESS,
            )  # fmt: skip
