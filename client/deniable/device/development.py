"""Development mode: reports go to `deniable dev` on this machine, and count nowhere else.

The mode is for developers who want to see a report within a second of `record`. Values become
reports by the same mechanisms, with the same randomness. These things differ
(docs/how-to/test-your-app.md):

- Nothing of the app's state is read or written. Each flush is a device of its own: its windows
  close at once, its ledger is new, and it takes part whatever `sample_rate` and `one_in` say.
- Each batch has a mark, and only `deniable dev` takes a batch that has it.
- Mistakes are printed as they happen, and `deniable dev` hears of them, without any value.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from sqlite3 import Connection

from deniable.device.device import Device
from deniable.device.diagnostics import Diagnostics
from deniable.device.state import State
from deniable.device.transport import HttpTransport, Reply
from deniable.protocol.errors import MetricError, RejectedError, SegmentError, TransportError
from deniable.protocol.randomness import Bits
from deniable.protocol.registry import Registry
from deniable.protocol.wire import mark_development

TROUBLES = "/v1/troubles"
"""Where `deniable dev` hears of mistakes that a client found."""

_SECONDS = 2.0
"""Each step on the network may take so long; `deniable dev` is on the same machine."""

_REMARKS = {
    "expired": (
        "expired_metric",
        "metric {metric!r} has expired, so nothing is recorded: set `expires` to a later day",
    ),
    "other": (
        "undeclared_value",
        "metric {metric!r}: a value that is not in the list counts as {counts_as!r}",
    ),
    "no_consent": (
        "no_consent",
        "consent is False, so nothing is recorded: pass True, or call opt_in()",
    ),
    "disabled": (
        "disabled",
        "DO_NOT_TRACK or DENIABLE_DISABLED is set, so nothing is recorded: unset it",
    ),
}
"""The code of what is no error, and what a developer reads of it."""

TROUBLE_CODES = (
    "unknown_metric",
    "refused_value",
    "missing_segment",
    *(code for code, _ in _REMARKS.values()),
)
"""What a client can find."""

_MOST_TOLD = 100
"""Mistakes that a client tells of; an app may make the same one in a loop."""

_LONGEST_NAME = 100
"""Letters of an unknown metric's name that `deniable dev` hears of: it may be a value, and shows no
more."""

_OF_THE_OUTBOX = frozenset({"device", "reports", "pauses", "schemes"})
"""The tables of the state that stay; a new device begins without what is in all others."""


class _MarkingTransport(HttpTransport):
    """Marks each batch, and never uses a proxy: it would be another machine."""

    proxies = False

    def send(self, body: bytes) -> Reply:
        return super().send(mark_development(body))


class _DevelopmentState(State):
    """A state in memory. Forked children begin with an empty one, because each flush is a device
    of its own anyway."""

    def after_fork(self, *, child: bool) -> None:
        if child:
            self._connection = None
        super().after_fork(child=False)


class DevelopmentDevice(Device):
    """A new device at each flush, which sends to `deniable dev` at `address`."""

    jitter = 0.0
    longest_backoff = 1.0  # `deniable dev` may just be starting
    rollout_pause = math.inf
    """A report that is left out is not sent again: the developer mends the cause, and records once
    more."""

    def __init__(
        self, registry: Registry, address: str, *, clock: Callable[[], float], bits: Bits
    ) -> None:
        self._server = _MarkingTransport(address, _SECONDS)
        registry, state = _taking_part(registry), _DevelopmentState(None)
        super().__init__(registry, state, self._server, clock=clock, bits=bits, spread=0.0)
        self.address = address

    def _begin(self, connection: Connection, now: float) -> float:
        """Become a new device, for which every window counts as ended."""
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for table in {name for (name,) in tables.fetchall()} - _OF_THE_OUTBOX:
            connection.execute(f"DELETE FROM {table}")
        return float("inf")

    def tell(self, code: str, metric: str | None) -> None:
        """Tell `deniable dev` of a mistake. If it does not listen, nobody needs to know."""
        name = None if metric is None else metric[:_LONGEST_NAME]
        trouble = {"development": True, "trouble": {"code": code, "metric": name}}
        with suppress(TransportError):
            self._server.ask(TROUBLES, json.dumps(trouble).encode())


class Narrator(Diagnostics):
    """Says on stderr, once each, what a client in development mode does and finds wrong."""

    def __init__(
        self, device: DevelopmentDevice, on_trouble: Callable[[Exception], None] | None
    ) -> None:
        super().__init__(on_trouble)
        self.device = device
        self._told: set[str] = set()
        self._say(
            f"DEVELOPMENT MODE: reports go to {device.address} alone, and nothing counts. "
            f"Unset DENIABLE_DEV (or leave `development` out) before you release"
        )

    def remark(self, kind: str, metric: str | None = None, counts_as: str = "") -> None:
        super().remark(kind, metric, counts_as)
        if kind in _REMARKS:
            code, text = _REMARKS[kind]
            self._mistake(code, metric, text.format(metric=metric, counts_as=counts_as))

    def tell(self, error: Exception) -> None:
        address = self.device.address
        if isinstance(error, TransportError):
            self._say(
                f"{error}: only `deniable dev` takes reports of development mode, and {address} "
                "may be another collector"
                if error.final
                else f"{error}; is `deniable dev` running at {address}?"
            )
        elif isinstance(error, RejectedError):
            self._say(
                f"metric {error.metric!r}: a report was left out ({error.reason}); {address}/live "
                "says what to do"
            )
        elif isinstance(error, MetricError):
            known = error.metric in self.device.registry.metrics
            self._mistake("refused_value" if known else "unknown_metric", error.metric, str(error))
        elif isinstance(error, SegmentError):
            self._mistake("missing_segment", None, str(error))
        else:
            # The text of another error may hold a value.
            self._say(f"trouble: {type(error).__name__}")
        super().tell(error)

    def _mistake(self, code: str, metric: str | None, text: str) -> None:
        if self._say(text):
            self.device.tell(code, metric)

    def _say(self, text: str) -> bool:
        """Print a line, unless it was printed before. Returns whether it was."""
        if text in self._told or len(self._told) >= _MOST_TOLD:
            return False
        self._told.add(text)
        if sys.stderr is not None:
            # One write, so that lines of several processes do not mix.
            sys.stderr.write(f"deniable: {' '.join(text.split())}\n")
            sys.stderr.flush()
        return True


def _taking_part(registry: Registry) -> Registry:
    """The registry, with every device reporting in every window. Its schemes are the same."""
    metrics = {
        each.name: replace(each, sample_rate=1.0, one_in=None, compiled=each.scheme.mechanism)
        for each in registry
    }
    return replace(registry, metrics=metrics, lifetime_epsilon=None)
