"""Sending to the collector: POST {endpoint}/v1/reports.

A transport sends bytes and returns a reply. The batch is counted (202), refused for good (a problem
document of the collector about the batch), or must be sent again (everything else). A wrong path, a
proxy's 403 or an HTML page says nothing about the batch, so it waits.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from deniable.protocol.addresses import check_endpoint
from deniable.protocol.errors import TransportError

if TYPE_CHECKING:
    from http.client import HTTPResponse
    from urllib.request import OpenerDirector, Request

_LARGEST_REPLY = 1 << 18
_WHOLE = 3.0
"""A reply that comes byte by byte, or after "100 Continue" without end, never exceeds a step's
timeout. So the whole exchange is limited to so many timeouts."""

_PROBLEM = "urn:deniable:problem:"
_FINAL = frozenset(
    (
        "not-json",
        "not-gzip",
        "bad-batch-id",
        "malformed-batch",
        "body-too-large",
        "too-many-reports",
        "too-many-metrics",
    )
)
"""The collector's problem codes that, with a status 4xx, sending the same bytes again cannot avoid
(docs/reference/protocol.md)."""

_KEY = r"[A-Za-z0-9._~+/-]{16,256}=*"


class Reply(NamedTuple):
    """A collector's reply: HTTP status, body, and the Retry-After header where there is one."""

    status: int
    body: bytes = b""
    retry_after: str | None = None


class Transport(Protocol):
    """Sends one batch to the collector."""

    def send(self, body: bytes) -> Reply:
        """Send a batch and return the reply, whatever its status.

        Raises:
            TransportError: there was no reply.
        """


class HttpTransport:
    """HTTP by the standard library: proxies from the environment, redirects not followed.

    `timeout` (seconds) limits each step on the network, and three times that the whole exchange.
    `ingest_key` is sent with the batch, for a collector that asks for one.

    Raises:
        ValueError: the endpoint cannot be a collector's address, or the key is malformed.
    """

    proxies: ClassVar[bool] = True
    """Whether the proxies that the environment names are used."""

    def __init__(
        self, endpoint: str, timeout: float = 10.0, *, ingest_key: str | None = None
    ) -> None:
        check_endpoint(endpoint)
        self.endpoint = endpoint.rstrip("/")
        self.timeout = timeout
        check_ingest_key(ingest_key)
        self._ingest_key = ingest_key

    def send(self, body: bytes) -> Reply:
        return self.ask("/v1/reports", body)[0]

    def ask(
        self,
        path: str,
        body: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        largest: int = _LARGEST_REPLY,
    ) -> tuple[Reply, Mapping[str, str]]:
        """GET a path of the collector, or POST a body there: the reply, and its headers. A reply
        of more than `largest` bytes is none. `headers` are sent in place of a batch's own.

        Raises:
            TransportError: there was no reply.
        """
        # Imported here: an app that only records does not need HTTP.
        import http.client
        import urllib.request

        from deniable.protocol import __version__

        sent = {"User-Agent": f"deniable/{__version__}", **(headers or {})}
        if body is not None and headers is None:
            sent["Content-Type"] = "application/json"
            if self._ingest_key is not None:
                sent["Authorization"] = f"Bearer {self._ingest_key}"
        url = f"{self.endpoint}{path}"
        request = urllib.request.Request(url, body, sent)  # noqa: S310  (checked above)
        opened: list[Any] = []
        opener = _make_opener(opened, proxies=self.proxies)
        passed = threading.Event()
        timer = threading.Timer(_WHOLE * self.timeout, _hang_up, (opened, passed))
        timer.daemon = True
        timer.start()
        try:
            with opener.open(request, timeout=self.timeout) as response:
                found, content = response.headers, bytearray()
                # Part by part: the body comes over a socket that nobody can hang up on any more.
                while not passed.is_set() and len(content) <= largest:
                    if not (part := response.read1(largest + 1)):
                        break
                    content += part
                if passed.is_set():  # what was read may be cut off
                    raise TimeoutError
        except http.client.HTTPException as error:
            # Its text is not repeated, because it would end up in the app's logs.
            raise TransportError(
                f"the server does not speak HTTP ({type(error).__name__}), so reports wait: "
                "check the endpoint",
                foreign=True,
            ) from None
        except OSError as error:
            reason = "the reply took too long" if passed.is_set() else _reason(error)
            raise TransportError(f"the collector cannot be reached: {reason}") from None
        finally:
            timer.cancel()
            for each in opened:
                each.close()
        if len(content) > largest:
            raise TransportError("the collector's reply is too long")
        return Reply(response.status, bytes(content), found.get("Retry-After")), found


def check_ingest_key(key: str | None) -> None:
    """Refuse a key that no collector could have.

    Raises:
        ValueError: it is malformed.
    """
    if key is not None and not re.fullmatch(_KEY, key):
        raise ValueError(
            "an ingest key has 16 to 256 letters, digits and - . _ ~ + /: copy it from "
            "the collector's DENIABLE_INGEST_KEYS"
        )


def _reason(error: OSError) -> str:
    """Why nothing could be sent, without what a proxy has written: it would end up in the app's
    logs."""
    told = str(getattr(error, "reason", None) or error)
    # As `http.client` says it: the proxy's status, and then the proxy's own words.
    refused = re.match(r"Tunnel connection failed: (\d{1,3})\b", told)
    return told if refused is None else f"the proxy refused the tunnel with status {refused[1]}"


def _hang_up(opened: list[Any], passed: threading.Event) -> None:
    """End an exchange that takes too long."""
    import socket

    passed.set()
    for each in opened:
        with suppress(OSError, AttributeError):  # no socket yet, or none any more; or an answer
            each.sock.shutdown(socket.SHUT_RDWR)


def _make_opener(opened: list[Any], *, proxies: bool) -> OpenerDirector:
    """Opens requests, and puts the connection and the answers of each into the list. Python before
    3.12 leaves the answer of a proxy that refuses a tunnel open, and its socket with it.

    Every status is a reply, because no handler looks at it. So redirects are not followed: one
    could lead reports to a place that nobody configured.
    """
    import http.client
    import urllib.request

    def begin(*arguments: Any, **more: Any) -> Any:
        opened.append(http.client.HTTPResponse(*arguments, **more))
        return opened[-1]

    class Watched(urllib.request.HTTPHandler, urllib.request.HTTPSHandler):
        def do_open(self, http_class: Any, req: Request, **options: Any) -> HTTPResponse:
            def make(*arguments: Any, **more: Any) -> Any:
                made = http_class(*arguments, **more)
                made.response_class = begin
                opened.append(made)
                return made

            return super().do_open(make, req, **options)

    opener = urllib.request.OpenerDirector()
    proxy = urllib.request.ProxyHandler(None if proxies else {})
    for handler in (proxy, Watched(), urllib.request.UnknownHandler()):
        opener.add_handler(handler)
    return opener


def read_reply(reply: Reply, batch_id: str, now: Callable[[], float]) -> dict[int, str]:
    """The reports that a 202 left out: index in the batch -> reason.

    Raises:
        TransportError: the batch is not counted; `final` if it never will be.
    """
    if reply.status == 202:
        with suppress(ValueError, TypeError, KeyError, OverflowError, RecursionError):
            document = json.loads(reply.body)
            if document["batch"] == batch_id:
                return {int(each["index"]): _code(each["reason"]) for each in document["rejected"]}
    problem = problem_code(reply.body)
    if problem is None:
        raise TransportError(
            f"a response with status {reply.status} came that is not a collector's, so reports "
            "wait: check the endpoint, and the proxies in front of it",
            retry_after=retry_seconds(reply.retry_after, now()),
            foreign=True,
        )
    final = problem in _FINAL and 400 <= reply.status < 500
    raise TransportError(
        f"the collector responded with {problem} (status {reply.status})",
        retry_after=None if final else retry_seconds(reply.retry_after, now()),
        final=final,
    )


def _code(reason: str) -> str:
    """A reason that is safe to show in logs and lists, which a server must not write into."""
    return reason if re.fullmatch(r"[a-z_]{1,64}", reason) else "unknown_reason"


def problem_code(body: bytes) -> str | None:
    """The code of a problem document of the collector; None for anything else."""
    found = re.fullmatch(rf"{_PROBLEM}([a-z0-9-]{{1,64}})", problem_type(body))
    return None if found is None else found[1]


def problem_type(body: bytes) -> str:
    """The type of a problem document (RFC 9457); empty for anything else."""
    try:
        return str(json.loads(body)["type"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return ""


def retry_seconds(header: str | None, now: float) -> float | None:
    """The wait in seconds that a Retry-After asks for (RFC 9110, 10.2.3); None if it asks none."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None
