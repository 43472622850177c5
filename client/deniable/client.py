"""The client that an app embeds: it records, and the rest happens behind the app's back.

A programmer's mistake raises at once. Trouble with the disk, the network or the state
file never reaches the app: it is logged once, counted, and handed to `on_trouble`.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from deniable import lifecycle
from deniable.device import Device
from deniable.errors import StateError, TransportError, UndeclaredValueWarning
from deniable.metric import Value
from deniable.outbox import LONGEST_PAUSE
from deniable.randomness import Bits, system_bits
from deniable.recording import Recorder
from deniable.registry import Registry
from deniable.state import MEMORY, State, default_directory
from deniable.transport import HttpTransport, Transport
from deniable.troubles import QueueFull, Troubles
from deniable.worker import Worker

if TYPE_CHECKING:
    from deniable.outbox import Batch
    from deniable.owner_texts import OwnerLanguage
    from deniable.recording import Record
    from deniable.sent import SentReport

__all__ = ["MAX_RECORDS", "SPREAD", "Client", "Status"]

SPREAD = 3_600.0
"""Seconds over which the reports of a closed window are spread."""

MAX_RECORDS = 10_000
"""How many records may wait for the disk; more are dropped and counted."""

Status: TypeAlias = Literal["on", "no_consent", "disabled", "failed", "closed"]

_SHORTEST_IDLE = 1.0
_RETRY_DISK = 60.0
_LONGEST_IDLE = 600.0


class Client:
    """Telemetry of one app on one device.

    Args:
        registry: the `metrics.toml`, or a registry that was read from it.
        endpoint: the collector's address; without one, reports wait on the disk.
        state_dir: where the state file lives; by default a directory under XDG_STATE_HOME
            that has the name of the registry's `app`. ":memory:" keeps it in memory, and an
            open State is used as it is.
        consent: whether the person has agreed, True or False. Without it nothing is kept or
            sent, and what an earlier run left (values and unsent reports) is forgotten at once.
            So it is where DO_NOT_TRACK or DENIABLE_DISABLED is set.
        clock: POSIX time in seconds.
        bits: the source of randomness.
        ingest_key: sent along with batches, where the collector asks for one. It tells apps
            apart and keeps strangers' programs out; inside an app it is no secret.
        transport: carries batches in place of HTTP.
        spread: seconds over which the reports of a closed window are spread, up to a day.
        background: without it nothing happens between calls of `flush` and `close`,
            which then do the work in the calling thread.
        on_trouble: is given every error that the client keeps from the app, and must not
            call the client. What it raises is not kept from the app.

    Raises:
        RegistryError: the registry cannot be read, or holds mistakes.
        ValueError: the endpoint is no address, the key is none, or `spread` is out of range.
        TypeError: `consent` is neither True nor False.
    """

    def __init__(
        self,
        registry: str | Path | Registry,
        endpoint: str | None = None,
        state_dir: str | Path | State | None = None,
        *,
        consent: bool = True,
        clock: Callable[[], float] = time.time,
        bits: Bits = system_bits,
        ingest_key: str | None = None,
        transport: Transport | None = None,
        spread: float = SPREAD,
        background: bool = True,
        on_trouble: Callable[[Exception], None] | None = None,
    ) -> None:
        if not 0 <= spread <= LONGEST_PAUSE:
            raise ValueError(f"spread must be from 0 to {LONGEST_PAUSE:g} seconds, not {spread!r}")
        if not isinstance(consent, bool):
            # "no" would count as true.
            raise TypeError(f"consent must be True or False, not {type(consent).__name__}")
        self.registry = registry if isinstance(registry, Registry) else Registry.load(registry)
        if transport is None and endpoint is not None:
            transport = HttpTransport(endpoint, ingest_key=ingest_key)
        self._state = _open_state(self.registry.app, state_dir)
        self._device = Device(
            self.registry, self._state, transport, clock=clock, bits=bits, spread=spread
        )
        self._recorder = Recorder(self.registry)
        # Python's development mode (`python -X dev`): what is said there stays with developers.
        self._development = sys.flags.dev_mode
        self._clock = clock
        self._disabled = _is_set("DO_NOT_TRACK") or _is_set("DENIABLE_DISABLED")
        self._consent = consent
        self._switched_off = self._state.switched_off
        self._closed = False
        self._troubles = Troubles(on_trouble)
        self._records: deque[Record] = deque()
        # Held from taking records out of the queue until they are written.
        self._writing = threading.Lock()
        self._worker = (
            Worker(self, Client._step, Client._idle_seconds, self._state.close)
            if background
            else None
        )
        self._owns_state = self._state is not state_dir
        lifecycle.follow(self)
        if self.status in ("disabled", "no_consent"):
            self._withdraw()
        self._resume()

    def record(self, name: str, value: Value) -> None:
        """Record a value of a metric. Returns at once; nothing is sent before the window ends.

        The value reaches the disk within half a second. A process that is killed before then
        loses it, and Python ends at once on SIGTERM: an app that is stopped by signals calls
        `close` in its handler.

        Raises:
            MetricError: no such metric, or it cannot take such a value.
        """
        record = self._recorder.admit(name, value, self._clock())
        if record is None:
            self._troubles.counters["expired"] += 1
            return
        if self.status != "on":
            return
        if record.undeclared:
            self._troubles.counters["other"] += 1
            if self._development:
                warnings.warn(
                    f"metric {name!r}: a value that is not declared was recorded, and counts as "
                    f"{record.text!r}; if it should count by itself, declare it",
                    UndeclaredValueWarning,
                    stacklevel=2,
                )
        self._keep(record)

    def _keep(self, record: Record) -> None:
        """Queue a record for the disk."""
        if len(self._records) >= MAX_RECORDS:
            self._troubles.note(QueueFull("records arrive faster than the disk takes them"))
        else:
            # No lock is taken: a signal handler may record while record is running.
            self._records.append(record)
            if self._worker is not None:
                self._worker.wake()

    def flush(self, timeout: float | None = 5.0) -> bool:
        """Write all records and send every sealed report now.

        A window that is still open stays open. One attempt is made, unless the collector
        has asked to wait. Returns whether nothing is left to send; False also when
        `timeout` (seconds) ends first.
        """
        if self._closed or self._disabled:
            return True
        if self._worker is None:
            return self._step(True)
        return self._worker.run(timeout)

    def close(self, timeout: float | None = 2.0) -> None:
        """Write all records, make one short attempt to send, and stop. May be called twice."""
        if self._closed:
            return
        started = time.monotonic()
        if self._worker is None or self._worker.started:
            self.flush(timeout)
        self._write()  # in case the thread is held up by the network
        self._closed = True
        if self._worker is not None:
            left = None if timeout is None else max(0.0, started + timeout - time.monotonic())
            self._worker.stop(left)
        self._state.close()
        lifecycle.leave(self)

    def sent(self) -> list[SentReport]:
        """What this device has reported, or is about to, in words; the newest first."""
        return self._sent("en")

    def _sent(self, language: OwnerLanguage) -> list[SentReport]:
        from deniable.owner_texts import OWNER_TEXTS
        from deniable.sent import describe_entries

        if not self._has_state():
            return []
        entries = self._troubles.guard(self._device.entries)
        if self._closed:
            self._state.close()
        return describe_entries(entries or [], self.registry, OWNER_TEXTS[language])

    def owner_page(
        self,
        *,
        app: str | None = None,
        opt_out_url: str | None = None,
        erase_url: str | None = None,
        language: OwnerLanguage = "en",
    ) -> str:
        """A page of HTML for the owner of the device: what was sent, what it reveals, what
        waits, and what the ledger has left. `deniable.owner` says what the addresses are.

        Raises:
            ValueError: an address would run a script.
        """
        from deniable import owner

        reports = self._sent(language)
        found = self._troubles.guard(self._device.owned) if self._has_state() else None
        ledger, waiting, erased = found if found is not None else ([], 0, None)
        if self._closed:
            self._state.close()
        return owner.owner_page(
            reports,
            ledger,
            waiting,
            sending=self.status in ("on", "closed"),
            erased=erased,
            app=app,
            opt_out_url=opt_out_url,
            erase_url=erase_url,
            language=language,
        )

    @property
    def consent(self) -> bool:
        """Whether the person has agreed to telemetry."""
        return self._consent

    def opt_in(self) -> None:
        """The person agrees."""
        self._consent = True
        self._resume()

    def opt_out(self) -> None:
        """The person does not agree, or not any more: forget values and unsent reports at once.

        What was spent and which windows were answered is kept, and so are the keys of memos,
        so that opting in again reveals no more than was declared.
        """
        self._consent = False
        self._withdraw()

    def erase(self) -> None:
        """Forget values, all reports, and the keys of memos, as the owner of the device asks.

        The ledger stays. Metrics that have answered with memory never answer again here.
        """
        with self._writing:
            self._records.clear()
        if self._has_state():
            self._troubles.guard(self._device.erase)

    @property
    def status(self) -> Status:
        """Whether records are kept, and if not, why. "failed": the state cannot be trusted;
        "no_consent": the app's consent is missing, or the owner of the device has switched
        reporting off with `deniable sent --switch-off`."""
        if self._closed:
            return "closed"
        if self._disabled:
            return "disabled"
        if self._state.failure is not None:
            return "failed"
        return "on" if self._consent and not self._switched_off else "no_consent"

    @property
    def counters(self) -> dict[str, int]:
        """How often something did not go well, by kind.

        expired: records of metrics past their day; other: records of values that are not
        declared, which were taken as `other`; overflow: records dropped because the disk was
        too slow; dropped: reports dropped because the outbox was full; rejected: reports, or
        whole batches, refused for good; unknown_metric, unknown_scheme, window_not_closed:
        reports that wait for a collector whose registry or clock is behind; endpoint: answers
        that were not a collector's; network, disk, state, internal: troubles of that kind.
        Nothing of this is sent.
        """
        return dict(self._troubles.counters)

    def before_fork(self) -> None:
        """Called by `deniable.lifecycle`: hold still until `after_fork`."""
        self._writing.acquire()
        self._state.before_fork()

    def after_fork(self, *, child: bool) -> None:
        """Called by `deniable.lifecycle`: go on, in the parent and in the child."""
        if child:
            # The parent still has these records, and will write them.
            self._records.clear()
            if self._worker is not None:
                self._worker.reset()
        self._state.after_fork(child=child)
        self._writing.release()

    def __del__(self) -> None:
        # A client that nobody holds any more, as after a notebook's cell was run again, writes
        # what it has and ends its thread. A state of somebody else's may be in use right now.
        if getattr(self, "_owns_state", False) and not self._closed:
            self._write()
            self._closed = True
            if self._worker is not None:
                self._worker.stop(0)
            self._state.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _step(self, urgent: bool) -> bool:
        """One round of all that there is to do; whether nothing is left to send."""
        self._heed()
        if self.status != "on":
            return self.status != "failed"
        if not self._write():
            return False
        while self._device.transport is not None and self.status == "on":
            batch = self._troubles.guard(lambda: self._device.take(urgent=urgent))
            if batch is None:
                break
            if not self._deliver(batch):
                break
        return self._troubles.guard(self._device.waiting) == 0

    def _heed(self) -> None:
        """See whether the owner of the device has switched reporting off, or on again."""
        before, self._switched_off = self._switched_off, self._state.switched_off
        if self._switched_off and not before:
            self._withdraw()  # also what another process wrote in between

    def _withdraw(self) -> None:
        """Forget what was recorded and not sent, here and on the disk."""
        with self._writing:
            self._records.clear()
        if self._has_state():
            self._troubles.guard(self._device.withdraw)

    def _write(self) -> bool:
        """Bring the queued records to the disk and seal what has ended."""
        with self._writing:
            records = [self._records.popleft() for _ in range(len(self._records))]
            if self.status != "on":
                return False
            if not records and not self._has_state():
                return True
            dropped = self._troubles.guard(lambda: self._device.write(records))
            if dropped is None:
                # The disk may be back later; should the state have failed, they are not kept.
                self._records.extendleft(reversed(records))
                return False
            if dropped:
                self._troubles.counters["dropped"] += dropped
            return True

    def _deliver(self, batch: Batch) -> bool:
        """Send one batch; whether to go on with the next."""
        try:
            left_out = self._device.deliver(batch)
        except Exception as error:
            self._troubles.note(error)
            return isinstance(error, TransportError) and error.final
        for each in left_out:
            self._troubles.note(each)
        return True

    def _idle_seconds(self) -> float:
        idle = None
        if self.status == "on" and self._has_state():
            idle = self._troubles.guard(self._device.idle_seconds)
        if self._records:  # the disk was in the way
            idle = min(_RETRY_DISK, _LONGEST_IDLE if idle is None else idle)
        # Not for ever: clocks are set, machines sleep, and other processes share the state.
        return _LONGEST_IDLE if idle is None else min(_LONGEST_IDLE, max(_SHORTEST_IDLE, idle))

    def _resume(self) -> None:
        """Look at what an earlier run has left, if there was one."""
        if self._worker is not None and self.status == "on" and self._has_state():
            self._worker.wake()

    def _has_state(self) -> bool:
        path = self._state.path
        if path is None:
            return True
        try:
            return path.exists()
        except OSError:
            return True  # it cannot be looked at; opening it will say why


def _open_state(app: str, state_dir: str | Path | State | None) -> State:
    if isinstance(state_dir, State):
        return state_dir
    if state_dir == MEMORY:
        return State(None)
    try:
        return State(default_directory(app) if state_dir is None else Path(state_dir), app)
    except StateError as error:
        state = State(None)
        state.failure = str(error)
        return state


def _is_set(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() not in ("", "0", "false", "no")
