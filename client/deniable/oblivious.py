"""Sends batches in two hops after Oblivious HTTP (RFC 9458): sealed for the gateway, through a
relay that cannot read them.

The relay sees the device's address and no report; the gateway sees the report and no address
(docs/how-to/two-hops.md).
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from deniable.device import transport
from deniable.device.transport import HttpTransport, Reply
from deniable.protocol.addresses import check_endpoint
from deniable.protocol.errors import TransportError, WireError
from deniable.protocol.oblivious import binary_http, capsules, signed_keys

KEY_SECONDS = 86_400.0
"""Seconds for which a list of keys is used; then it is read again, so that old keys fall out of
use."""

_LARGEST_KEYS = 1 << 14

_LONGEST = 10**10 - 1
"""A number with as many digits as the largest row and column of any scheme."""


class ObliviousTransport:
    """Oblivious HTTP (RFC 9458). Needs the extra `oblivious`.

    Args:
        endpoint: the collector's address, as for `Client`. No connection is made to it.
        relay: the relay's address.
        gateway: the gateway's identity, as `deniable relay key show` prints it. Ship it with the
            app: it is what keeps a relay from reading reports.
        timeout: seconds for each step on the network, as for `HttpTransport`.
        ingest_key: sent inside the capsule, if the collector asks for a key.
        clock: seconds that never go back.

    Raises:
        ValueError: an address, the identity or the key is malformed, or both addresses name one
        host. ImportError: the extra is missing; the message says how to install it.
    """

    def __init__(
        self,
        endpoint: str,
        relay: str,
        gateway: str,
        *,
        timeout: float = 10.0,
        ingest_key: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if importlib.util.find_spec("pyhpke") is None:
            raise ImportError(
                "sending in two hops needs pyhpke: install deniable with its extra oblivious, "
                "pip install 'deniable[oblivious]'"
            )
        check_endpoint(endpoint)
        signed_keys.check_identity(gateway)
        transport.check_ingest_key(ingest_key)
        parts, between = urlsplit(endpoint), urlsplit(relay)
        self._http = HttpTransport(relay, timeout)
        if (parts.hostname, parts.port) == (between.hostname, between.port):
            raise ValueError(
                "the relay and the collector have the same address: the relay must be another "
                "server, which somebody else runs"
            )
        self._gateway = gateway
        self._clock = clock
        self._keys: capsules.KeyConfiguration | None = None
        self._until = 0.0
        head = [(b"content-type", b"application/json")]
        if ingest_key is not None:
            head.append((b"authorization", b"Bearer " + ingest_key.encode()))
        self._fields = tuple(head)
        self._place = (
            parts.scheme.encode(),
            parts.netloc.encode("idna" if not parts.netloc.isascii() else "ascii"),
            f"{parts.path.rstrip('/')}/v1/reports".encode(),
        )

    def send(self, body: bytes) -> Reply:
        """Send a batch and return the collector's reply.

        Raises:
            TransportError: there was no reply of the collector. It is never final: what a relay
                says is no reason to drop a batch.
        """
        message = binary_http.InnerRequest(b"POST", *self._place, self._fields, body).encode()
        message = binary_http.padded(message, sealed_size(body, len(message) - len(body)))
        sealed, reply = self._exchange(message, self._key())
        if 400 <= reply.status < 500 and transport.problem_type(reply.body) == capsules.KEY_PROBLEM:
            # The gateway has changed its keys. If it tells no other one, the batch waits.
            self._keys, before = None, self._keys
            key = self._key()
            if key != before:
                sealed, reply = self._exchange(message, key)
        if reply.status != 200:
            raise _refused(reply)
        try:
            inner = binary_http.InnerResponse.decode(sealed.open_response(reply.body))
        except WireError as error:
            raise TransportError(
                f"a response came that is not the gateway's, so reports wait: {error}",
                foreign=True,
            ) from None
        return Reply(inner.status, inner.content, inner.header(b"retry-after").decode() or None)

    def _exchange(
        self, message: bytes, key: capsules.KeyConfiguration
    ) -> tuple[capsules.Sealed, Reply]:
        sealed = capsules.seal_request(key, message)
        reply, _ = self._http.ask(
            signed_keys.PATH, sealed.capsule, headers={"Content-Type": capsules.REQUEST_TYPE}
        )
        return sealed, reply

    def _key(self) -> capsules.KeyConfiguration:
        """The gateway's first key, read through the relay, so that the gateway sees no address."""
        now = self._clock()
        if self._keys is None or now >= self._until:
            reply, headers = self._http.ask(
                signed_keys.PATH, headers={"Accept": signed_keys.KEYS_TYPE}, largest=_LARGEST_KEYS
            )
            if reply.status != 200:
                raise _refused(reply)
            try:
                self._keys = signed_keys.verified(self._gateway, reply.body, _signature(headers))[0]
            except WireError as error:
                raise TransportError(
                    f"{error}, so reports wait: check the identity and the relay", foreign=True
                ) from None
            self._until = now + KEY_SECONDS
        return self._keys


def _signature(headers: Mapping[str, str]) -> str:
    found = headers.get(signed_keys.SIGNATURE) or ""
    return found if found.isascii() else ""


def _refused(reply: Reply) -> TransportError:
    """What relay or gateway said without a capsule."""
    problem = transport.problem_code(reply.body)
    told = f"{problem} (status {reply.status})" if problem else f"status {reply.status}"
    return TransportError(
        f"the relay responded with {told}, so reports wait",
        retry_after=transport.retry_seconds(reply.retry_after, time.time()),
        foreign=problem is None,
    )


def sealed_size(body: bytes, around: int) -> int:
    """The bytes of the message that carries a batch, so that the relay learns nothing of what a
    report says: a power of two that depends on nothing random, on the names in it, on how many
    reports and columns it has, and on no digit of them. `around` is what is around the batch."""
    return binary_http.padded_size(around + _bound(body))


def _bound(body: bytes) -> int:
    """The most bytes that a batch of the same metrics, schemes, windows and counts could have."""
    try:
        batch = json.loads(body)
        for report in batch["reports"]:
            report["row"] = _LONGEST
            if isinstance(report["columns"], int):
                report["columns"] = _LONGEST
            elif isinstance(report["columns"], list):
                report["columns"] = [_LONGEST] * len(report["columns"])
        return max(len(body), len(json.dumps(batch, separators=(",", ":"))))
    except (ValueError, TypeError, KeyError, RecursionError):
        return len(body)
