"""The client that an app embeds. The app records values; background threads do the rest.

Once a client is made, nothing that goes wrong reaches the app: neither a value that does not fit,
nor trouble with the disk, the network or the state file. It is counted, and passed to `on_trouble`.
Only in development do the names of metrics and segments raise that are not declared.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from deniable.device.background import Background
from deniable.device.diagnostics import Diagnostics, QueueFull
from deniable.protocol.errors import MetricError, SegmentError, StateError, UndeclaredValueWarning
from deniable.protocol.randomness import Bits, system_bits

if TYPE_CHECKING:
    from pathlib import Path

    from deniable.device.open_windows import Record
    from deniable.device.owner import Owned
    from deniable.device.sent import OwnerLanguage, SentReport
    from deniable.device.state import State
    from deniable.device.transport import Transport
    from deniable.protocol.registry import Registry
    from deniable.protocol.types import Value

SPREAD = 3_600.0
"""Seconds over which the reports of a closed window are spread."""

_NOT_GIVEN: Any = object()

MAX_RECORDS = 10_000
"""How many records may wait for the disk; more are dropped and counted."""


class Client(Background):
    """Telemetry of one app on one device.

    Args:
        registry: the `metrics.toml`, the `metrics.json` that was compiled from it, or a registry
            that was read from either.
        endpoint: the collector's address; without one, reports wait on the disk.
        state_dir: where the state file lives; by default a directory under XDG_STATE_HOME
            that has the name of the registry's `app`. ":memory:" keeps it in memory, and an
            open State is used as it is.
        consent: whether the person has agreed, True or False. It must be given. Without it
            nothing is kept or sent, and what an earlier run left (values and unsent reports) is
            deleted at once. The same happens if DO_NOT_TRACK or DENIABLE_DISABLED is set.
        clock: POSIX time in seconds.
        bits: the source of randomness.
        ingest_key: sent with each batch, if the collector asks for a key. It distinguishes apps
            and keeps strangers' programs out; inside an app it is no secret.
        transport: sends batches in place of HTTP.
        spread: seconds over which the reports of a closed window are spread, up to a day.
        background: if False, nothing happens between calls of `flush` and `close`,
            which then do the work in the calling thread.
        segments: the device's value of each declared segment, as `set_segments` takes them.
        on_trouble: is called with every error that the client keeps from the app, without its
            traceback, which would hold values. It must not call the client. An exception that it
            raises does reach the app.
        development: the address of `deniable dev`, for development mode
        (`deniable.device.development`);
            by default what DENIABLE_DEV names in the environment; False: never. In development
            mode `endpoint`, `state_dir`, `transport`, `ingest_key` and `spread` are not used.
        strict: whether a metric or segment that is not declared raises, as in development mode.

    Raises:
        RegistryError: the registry cannot be read, or holds mistakes.
        SegmentError: in development, a segment is not declared.
        ValueError: the endpoint is not an address, the key is malformed, `spread` is out of
            range, or the address of development mode is not of this machine.
        TypeError: `consent` is not given, or is neither True nor False, or `segments` is no
            mapping.
    """

    def __init__(
        self,
        registry: str | Path | Registry,
        endpoint: str | None = None,
        state_dir: str | Path | State | None = None,
        *,
        consent: bool = _NOT_GIVEN,
        clock: Callable[[], float] = time.time,
        bits: Bits = system_bits,
        ingest_key: str | None = None,
        transport: Transport | None = None,
        spread: float = SPREAD,
        background: bool = True,
        segments: Mapping[str, str] | None = None,
        on_trouble: Callable[[Exception], None] | None = None,
        development: str | Literal[False] | None = None,
        strict: bool = False,
    ) -> None:
        # Imported here, because most programs that import Client do something else first. And not
        # later: a client that is collected while Python ends cannot import, and must still write.
        from deniable.device.device import Device
        from deniable.device.outbox import LONGEST_PAUSE
        from deniable.protocol.registry import Registry

        if not 0 <= spread <= LONGEST_PAUSE:
            raise ValueError(f"spread must be from 0 to {LONGEST_PAUSE:g} seconds, not {spread!r}")
        if not isinstance(consent, bool):
            # "no" would count as true.
            found = "" if consent is _NOT_GIVEN else f", not {type(consent).__name__}"
            raise TypeError(
                f"consent must be True or False{found}: ask the person first, and pass the answer, "
                "like Client(..., consent=True)"
            )
        self.registry = registry if isinstance(registry, Registry) else Registry.load(registry)
        if transport is None and endpoint is not None:
            from deniable.device.transport import HttpTransport

            transport = HttpTransport(endpoint, ingest_key=ingest_key)
        named = "DENIABLE_DEV" if development is None else "development"
        if development is None:
            development = os.environ.get("DENIABLE_DEV", "").strip() or False
        device: Device
        if development is False:
            state = _open_state(self.registry.app, state_dir)
            device = Device(self.registry, state, transport, clock=clock, bits=bits, spread=spread)
            troubles = Diagnostics(on_trouble)
        else:
            # Imported here: released apps do not need it.
            from deniable.device.development import DevelopmentDevice, Narrator
            from deniable.protocol.addresses import loopback_address

            address = loopback_address(development, named)
            device = DevelopmentDevice(self.registry, address, clock=clock, bits=bits)
            troubles = Narrator(device, on_trouble)
        self._strict = strict or development is not False
        # Python's development mode (`python -X dev`): only developers see its warnings.
        self._development = sys.flags.dev_mode
        super().__init__(
            device,
            troubles,
            consent=consent,
            threads=background,
            owns_state=device.state is not state_dir,
        )
        self.set_segments(segments or {})
        self._begin()

    def record(self, name: str, value: Value) -> None:
        """Record a value of a metric. Returns at once.

        A value that the metric cannot take is dropped, and counted as "refused": telemetry does
        not end an app whose data is not as expected.

        Nothing is sent before the window ends, unless the metric is answered at once: then the
        first record of a window is sent within ten seconds, and later ones change nothing.

        The value reaches the disk within half a second. A process that is killed before then
        loses it. Python ends at once on SIGTERM, so an app that is stopped by signals calls
        `close` in its handler.

        Raises:
            MetricError: in development (DENIABLE_DEV, `deniable.testing`, `strict=True`): no such
                metric, or it is a pair or a retention. Elsewhere this is counted as "mistake".
        """
        self._admit(name, value)

    def active(self, name: str) -> None:
        """Say that the app was used, for a metric of the type "retention". Returns at once.

        The first call in a window is reported within ten seconds, and later ones change nothing.
        The device itself remembers its first window, and the windows since then.

        Raises:
            MetricError: in development, as `record`: no such metric, or one of another type.
                Elsewhere this is counted as "mistake".
        """
        from deniable.device.device import ACTIVE

        self._admit(name, ACTIVE)

    def _admit(self, name: str, value: Value) -> None:
        """What `record` and `active` do, which call it."""
        try:
            record = self._device.admit(name, value)
        except MetricError as error:
            self._mistaken(error)
            return
        except SegmentError as error:
            if self.status == "on":
                self._troubles.note(error)
            else:
                self._troubles.remark(self.status)
            return
        if record is None:
            self._troubles.remark("expired", name)
            return
        if record.refused is not None:
            self._troubles.note(record.refused, "refused")
            self._warn(f"{record.refused}, so the value was dropped")
        if self.status != "on":
            self._troubles.remark(self.status)
            return
        if record.undeclared:
            self._troubles.remark("other", name, record.text)
            self._warn(
                f"metric {name!r}: a value that is not declared was recorded, and counts as "
                f"{record.text!r}; to count it separately, declare it"
            )
        self._keep(record)

    def _warn(self, message: str) -> None:
        """Warn a developer, at the line that called `record`."""
        if self._development:
            warnings.warn(message, UndeclaredValueWarning, stacklevel=4)

    def set_segments(self, segments: Mapping[str, str]) -> None:
        """Tell the client the device's segments, like {"platform": "web"}.

        Segments that are not named stay as they are. A window that is already open keeps the
        segments of its first record. Segments are not private: each report of a metric that is
        counted by them tells them in clear. A value that a segment cannot take is counted as
        "refused", and the segment is not known then.

        Raises:
            SegmentError: in development (DENIABLE_DEV, `deniable.testing`, `strict=True`): no such
                segment. Elsewhere this is counted as "mistake".
            TypeError: `segments` is no mapping.
        """
        if not isinstance(segments, Mapping):
            raise TypeError(
                'segments must map names to values, like {"platform": "web"}, '
                f"not {type(segments).__name__}"
            )
        for name, value in segments.items():
            try:
                refused = self._device.set_segment(name, value)
            except SegmentError as error:
                self._mistaken(error)
            else:
                if refused is not None:
                    self._troubles.note(refused, "refused")

    def _mistaken(self, error: MetricError | SegmentError) -> None:
        """A call has named what the registry does not declare."""
        self._troubles.note(error, "mistake")
        if self._strict:
            raise error

    def _keep(self, record: Record) -> None:
        """Queue a record for the disk."""
        if len(self._records) >= MAX_RECORDS:
            self._troubles.note(QueueFull("records arrive faster than the disk takes them"))
        else:
            # No lock: a signal handler may call record while record is running.
            self._records.append(record)
            self._writer.wake()

    def flush(self, timeout: float | None = 5.0) -> bool:
        """Write all records and send every finished report now, without the usual delay.

        Windows that have not ended stay open. There is one attempt to send, or none if the
        collector has asked to wait. Returns whether nothing is left to send; also False if
        `timeout` (seconds) ends first.
        """
        if self._closed or self._disabled:
            return True
        deadline = None if timeout is None else time.monotonic() + timeout
        return self._work(deadline, urgent=True)

    def sent(self) -> list[SentReport]:
        """The reports that this device has sent or will send, in words; the newest first. The
        list is empty if the state cannot be read now, which is counted as trouble."""
        from deniable.device.sent import describe_entries

        owned = self._owned()
        return describe_entries(owned.entries if owned else (), self.registry)

    def _owned(self) -> Owned | None:
        """What the state holds for the owner of the device; None after trouble."""
        from deniable.device.owner import Owned, owned

        def read() -> Owned:
            with self._state.transaction() as connection:
                return owned(connection, self._device.registry)

        found = self._troubles.guard(read) if self._state.exists() else Owned()
        if self._closed:
            self._state.close()
        return found

    def owner_page(
        self,
        *,
        app: str | None = None,
        opt_out_url: str | None = None,
        erase_url: str | None = None,
        language: OwnerLanguage = "en",
    ) -> str:
        """A page of HTML for the owner of the device: what was sent, what it reveals, what
        waits, and what the ledger still allows. `deniable.device.owner.owner_page` explains the
        arguments.

        Raises:
            ValueError: an address would run a script.
        """
        from deniable.device import owner
        from deniable.device.sent import OWNER_TEXTS, describe_entries

        owned = self._owned()
        return owner.owner_page(
            describe_entries(owned.entries if owned else (), self.registry, OWNER_TEXTS[language]),
            owned,
            self.registry,
            sending=self.status in ("on", "closed"),
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
        self._troubles.guard(self._carry_out)
        self._resume()

    def opt_out(self) -> None:
        """The person does not agree, or no longer agrees: delete values and unsent reports.

        The ledger, the list of reported windows and the keys of memos stay, so that opting in
        again reveals no more than was declared.
        """
        self._consent = False
        self._delete(self._deletion or self._state.withdraw)

    def erase(self) -> None:
        """Delete values, all reports, and the keys of memos, as the owner of the device asks.

        The ledger stays. A metric that has reported with memos never does so again on this
        device.
        """
        self._delete(lambda: self._state.erase(self._device.clock()))

    @property
    def counters(self) -> dict[str, int]:
        """How often something went wrong, by kind.

        refused: values that a metric or segment cannot take, which were dropped; mistake: calls
        that name what the registry does not declare; expired: records of metrics past their day;
        segment: records of metrics whose segment the client was not told, which were not kept;
        other: records of values that are not declared, which were taken as `other`; overflow:
        records dropped because the disk was
        too slow; dropped: reports dropped because the outbox was full; rejected: reports, or
        whole batches, refused for good; unknown_metric, unknown_scheme, window_not_closed:
        reports that wait for a collector whose registry or clock is behind; endpoint: responses
        that were not a collector's; network, disk, state, internal: troubles of that kind.
        None of this is sent.
        """
        return dict(self._troubles.counters)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open_state(app: str, state_dir: str | Path | State | None) -> State:
    from deniable.device.state import MEMORY, State, states_root

    if isinstance(state_dir, State):
        return state_dir
    if state_dir == MEMORY:
        return State(None)
    try:
        return State(f"{states_root()}/{app}" if state_dir is None else state_dir, app)
    except StateError as error:
        state = State(None)
        state.failure = StateError(str(error))
        return state
