"""The device's side of the network: is there a collector, and would it take this app's reports?

Nothing that counts is sent. For each metric the collector gets one report that names the scheme
and a window of now, but a row that no scheme has (IMPOSSIBLE_ROW): every collector leaves it out,
with reason `bad_row` if it would take a real one, and otherwise with the reason why it would not.
Such a report is the same on every device, whatever was recorded there.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from urllib.parse import urlsplit

from deniable.device.transport import HttpTransport, Reply, problem_code, read_reply
from deniable.protocol import windows
from deniable.protocol.addresses import is_loopback_host
from deniable.protocol.errors import TransportError
from deniable.protocol.metric import Metric
from deniable.protocol.registry import Registry
from deniable.protocol.wire import LATEST, SealedReport, encode_batch, new_batch_id
from deniable.tools.doctor import CheckResult, listed

_ADDRESS = (
    "use the collector's address, without /v1/reports; by default port 8080 is the collector's, "
    "and 8090 the dashboard's"
)

IMPOSSIBLE_ROW = 1_000_000_000
"""No mechanism has so many rows, so no collector counts a report for this one."""

TIMEOUT = 5.0
"""Seconds for each step on the network."""

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
    now = clock()
    asked = [
        SealedReport(
            each.name, each.scheme.fingerprint, _window(each, now), IMPOSSIBLE_ROW, columns=0
        )
        for each in registry
        if now < each.ends
    ]
    reasons: dict[str, list[str]] = {}
    for first in range(0, len(asked) or 1, _AT_A_TIME):
        part = asked[first : first + _AT_A_TIME]
        batch_id = new_batch_id()
        try:
            reply, headers = transport.ask("/v1/reports", encode_batch(batch_id, part))
        except TransportError as error:
            yield _unreachable(error, endpoint)
            return
        try:
            refused = read_reply(reply, batch_id, clock)
        except TransportError as error:
            yield _refused_batch(error, reply, headers, endpoint, ingest_key)
            return
        for place, report in enumerate(part):
            reasons.setdefault(refused.get(place, "none"), []).append(report.metric)
    yield CheckResult("endpoint", "collector", "ok", f"a collector responds at {endpoint}")
    yield from check_clock("the collector's", skew_of(headers.get("Date"), now))
    yield from _verdicts(reasons)


def skew_of(date: str | None, now: float) -> float:
    """By how many seconds our clock is ahead of a response's Date; 0 if that says nothing."""
    try:
        return 0.0 if date is None else now - parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _is_open(endpoint: str) -> bool:
    """Whether reports would travel in clear text beyond this machine."""
    parts = urlsplit(endpoint)
    host = parts.hostname or ""
    return parts.scheme == "http" and not is_loopback_host(f"[{host}]" if ":" in host else host)


_CAUSES = (
    (socket.gaierror, "unknown_host", "check the spelling of the host, and its entry in the DNS"),
    (
        ConnectionRefusedError, "refused",
        "nothing listens there: start the collector (`deniable collect`), or correct the port",
    ),
    (
        ssl.SSLCertVerificationError, "certificate",
        "the certificate is not valid for this host, has expired, or is signed by nobody whom "
        "this machine trusts (SSL_CERT_FILE names others)",
    ),
    (ssl.SSLError, "not_tls", "the port does not speak TLS: a local collector is http://"),
    (HTTPException, "not_http", f"if the port speaks TLS, write https://. {_ADDRESS}"),
    (object, "unreachable", "is the collector running, and does a firewall let you through?"),
)  # fmt: skip
"""Why there was no response, by the error: a code, and what to do."""


def _unreachable(error: TransportError, endpoint: str) -> CheckResult:
    """Why there was no response."""
    cause = error.__context__
    reason = getattr(cause, "reason", None) or cause
    code, advice = next(told for kind, *told in _CAUSES if isinstance(reason, kind))
    return CheckResult("endpoint", code, "error", f"{endpoint}: {error}", advice)


def _refused_batch(
    error: TransportError,
    reply: Reply,
    headers: Mapping[str, str],
    endpoint: str,
    ingest_key: str | None,
) -> CheckResult:
    """What responded in place of a collector, or why the collector did not read the batch."""
    problem = problem_code(reply.body)
    code, told, advice = (
        "refused_batch", str(error),
        "see the collector's log, or `deniable doctor --operator` on its machine",
    )  # fmt: skip
    if 300 <= reply.status < 400:
        there = re.sub(r"[?#].*", "", headers.get("Location", ""))
        if not re.fullmatch(r"[!-~]{1,200}", there):
            there = "an address that it does not name"
        code, told = "redirect", f"{endpoint} redirects to {there}, and devices follow no redirect"
        advice = "use the address that it redirects to, without /v1/reports"
    elif problem is None:
        kind = "a page of HTML" if b"<html" in reply.body[:4096].lower() else "a response"
        code, advice = "not_a_collector", _ADDRESS
        told = (
            f"{endpoint} sends {kind} with status {reply.status} that is not a collector's: a "
            "proxy, a login page, or another server"
        )
    elif problem == "http-404":
        code, advice = "wrong_path", _ADDRESS
        told = f"a collector responds at {endpoint}, but not at this path"
    elif problem == "no-ingest-key":
        given = "does not accept this ingest key" if ingest_key else "asks for an ingest key"
        code, told = "ingest_key", f"the collector {given}"
        advice = (
            "pass one of its DENIABLE_INGEST_KEYS as Client(ingest_key=...), and to this command "
            "in DENIABLE_INGEST_KEY"
        )
    return CheckResult("endpoint", code, "error", told, advice)


def check_clock(whose: str, skew: float) -> Iterator[CheckResult]:
    """Whether our clock is so many seconds ahead of another that it matters."""
    if abs(skew) > SKEW_WARNING:
        yield CheckResult(
            "clock", "skew", "error" if abs(skew) > SKEW_ERROR else "warning",
            f"this machine's clock is {abs(skew):,.0f} s {'ahead of' if skew > 0 else 'behind'} "
            f"{whose}",
            "set both by NTP: a window ends by the device's clock and is accepted by the "
            "collector's",
        )  # fmt: skip


def _window(metric: Metric, now: float) -> str:
    """A window whose reports a collector takes now, if there is one: in the middle of a month
    there is none of a month."""
    current = windows.window_at(metric.window, now)
    begun = windows.start(current)
    if metric.answer == "at_once" or now - begun > LATEST:
        return current
    return windows.window_at(metric.window, begun - 1)


_FINE = {"bad_row", "window_not_closed", "window_too_old"}
"""The reasons of one that would take a report: now, or at the end of its window. If a clock is
wrong, that is told from the time that the collector sends."""


def _verdicts(reasons: Mapping[str, list[str]]) -> Iterator[CheckResult]:
    """What the collector's reasons mean."""
    wrong = [
        f"{name} ({reason})"
        for reason in sorted(reasons.keys() - _FINE)
        for name in reasons[reason]
    ]
    if wrong:
        yield CheckResult(
            "registry", "another_registry", "error",
            f"the collector refuses reports of these: {listed(wrong)}",
            "give the collector the app's metrics.toml and send it SIGHUP. Devices keep such "
            "reports for six days. docs/reference/protocol.md says what each reason means",
        )  # fmt: skip
    elif taken := reasons.get("bad_row"):
        yield CheckResult(
            "registry", "accepted", "ok", f"the collector takes reports of {listed(taken)}"
        )
