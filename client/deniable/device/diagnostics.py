"""Errors that are kept from the app: each is counted, logged once for each kind, and passed to
`on_trouble`.

That a value did not fit is not logged: a log may leave the device, and this says something about
the value.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Literal, ParamSpec, TypeVar

from deniable.protocol.errors import (
    DeniableError,
    RejectedError,
    SegmentError,
    StateError,
    TransportError,
)

_P = ParamSpec("_P")
_T = TypeVar("_T")


# Without the name: where a call has its arguments in the wrong order, that is the value.
_MISTAKE = "a call names a metric or segment that is not declared; with strict=True it raises"


class QueueFull(DeniableError):
    """Records arrive faster than the disk takes them; one was dropped."""


class Diagnostics:
    """Counts troubles by kind; `on_trouble` is called with each of them, and may raise it again."""

    def __init__(self, on_trouble: Callable[[Exception], None] | None) -> None:
        self.counters: Counter[str] = Counter()
        self._logged: set[str] = set()
        self._on_trouble = on_trouble

    def guard(self, work: Callable[_P, _T], *args: _P.args, **more: _P.kwargs) -> _T | None:
        """The result of `work`, or None after trouble."""
        try:
            return work(*args, **more)
        except Exception as error:
            self.note(error)
            return None

    def note(self, error: Exception, told: Literal["refused", "mistake"] | None = None) -> None:
        """Count a trouble, and log it if it is the first of its kind; `told` is the kind of what
        the app's own call is the cause of."""
        kind, message = (told, _MISTAKE) if told else _classify(error)
        self.counters[kind] += 1
        # An app that has not imported logging shows no logs. To import it would be more trouble
        # where no file descriptor is free.
        if kind not in self._logged and kind != "refused" and "logging" in sys.modules:
            self._logged.add(kind)
            import logging

            logger = logging.getLogger("deniable")
            if not logger.handlers:
                # Print nothing into the terminal of an app that has not configured logging.
                logger.addHandler(logging.NullHandler())
            # No traceback: handlers that collect local variables would also collect values.
            logger.warning("telemetry: %s", message)
        self.tell(error)

    def tell(self, error: Exception) -> None:
        """Pass a trouble on, without the frames that it and those before it have passed: they hold
        true values, and whoever collects errors would send them on."""
        error.__context__ = error.__cause__ = None
        told = error.with_traceback(None)
        if self._on_trouble is not None:
            self._on_trouble(told)

    def remark(self, kind: str, metric: str | None = None, counts_as: str = "") -> None:
        """What is no trouble, and counted if it is about a metric: "expired", a record past its
        last day was not kept; "other", a value that is not in the list was recorded; and a client's
        status, for which no record was kept."""
        if metric is not None:
            self.counters[kind] += 1


def _classify(error: Exception) -> tuple[str, str]:
    """The kind of a trouble, and a message that does not repeat a value."""
    if isinstance(error, TransportError):
        if error.final:
            return "rejected", f"the collector refused a batch: {error}"
        return "endpoint" if error.foreign else "network", f"sending is postponed: {error}"
    if isinstance(error, RejectedError):
        return error.reason if error.waits else "rejected", str(error)
    if isinstance(error, StateError):
        return "state", f"stopped for good: {error}"
    if isinstance(error, SegmentError):
        return "segment", str(error)
    if isinstance(error, QueueFull):
        return "overflow", str(error)
    import sqlite3  # what keeps the state has imported it

    if isinstance(error, (sqlite3.Error, OSError)):
        return "disk", f"the state file cannot be read or written: {error}"
    return "internal", f"an internal error: {type(error).__name__}"
