"""The device: what happens between a record and an acknowledged batch, step by step.

It has no threads and catches no errors; `deniable.device.background` does both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any, Final

from deniable.device import ledger, outbox
from deniable.device.open_windows import OpenWindows, Record
from deniable.device.outbox import OutgoingBatch
from deniable.device.state import State
from deniable.protocol import segments, windows
from deniable.protocol.errors import MetricError, RejectedError, SegmentError, TransportError
from deniable.protocol.randomness import Bits
from deniable.protocol.registry import Registry
from deniable.protocol.types import Value

if TYPE_CHECKING:
    from deniable.device.transport import Transport

ACTIVE: Final[Any] = object()
"""What `Client.active` records in place of a value."""


class Device:
    """One device: a registry, a state and a transport to the collector.

    `clock` returns POSIX seconds. The reports of a closed window are sent at a random moment
    within `spread` seconds. Every method that uses the state raises StateError if the state
    cannot be trusted, and sqlite3.Error or OSError if the disk does not work.
    """

    jitter = outbox.JITTER
    """The longest delay of answers at once."""

    longest_backoff = 3_600.0

    rollout_pause = 1_800.0
    """Seconds after which a report is sent again whose metric or scheme the collector did not know
    yet. The actual wait is between once and twice as long."""

    def __init__(
        self,
        registry: Registry,
        state: State,
        transport: Transport | None,
        *,
        clock: Callable[[], float],
        bits: Bits,
        spread: float,
    ) -> None:
        self.registry = registry
        self.state = state
        self.transport = transport
        self.clock = clock
        self.bits = bits
        self.spread = spread
        self.told: Mapping[str, str] = {}
        """Its segments by name."""

    def set_segment(self, name: str, value: object) -> SegmentError | None:
        """Take one of the device's segments. Returns why it cannot take such a value: then the
        segment is not known any more.

        Raises:
            SegmentError: no such segment.
        """
        segment = self.registry.segments.get(name) if isinstance(name, str) else None
        if segment is None:
            raise SegmentError(
                str(name), f"is not declared in {self.registry.source}; declare it there"
            )
        # Replaced, not changed: records of other threads keep what they have seen.
        told = {each: text for each, text in self.told.items() if each != name}
        try:
            self.told = {**told, name: segment.text(value)}
        except SegmentError as error:
            self.told = told
            return error
        return None

    def admit(self, name: str, value: Value) -> Record | None:
        """The record that a call makes now; None once the metric expired.

        An expired metric is not a programmer's mistake: an app outlives its metrics. Neither is a
        value that the metric cannot take: it depends on the device.

        Raises:
            MetricError: no such metric, or it is not recorded in this way.
            SegmentError: a segment of the metric is not known, so it is not recorded.
        """
        if not isinstance(name, str):
            raise MetricError(type(name).__name__, "is not a name: pass the metric's name first")
        metric = self.registry[name]
        if metric.type.of:
            raise MetricError(
                name,
                "is a pair, which is not recorded: record {} and {}, and the device joins them "
                "when the window closes".format(*metric.type.of),
            )
        if (value is ACTIVE) != metric.type.looks_back:
            raise MetricError(
                name,
                f"is a {metric.type.name}, which takes no values: call active({name!r})"
                if metric.type.looks_back
                else f"is a {metric.type.name}, which takes values: call record({name!r}, value)",
            )
        now = self.clock()
        if now >= metric.ends:
            return None
        window = windows.window_at(metric.window, now)
        if value is ACTIVE:
            return Record(metric, "", window)
        try:
            text = metric.normalize(value)
        except MetricError as error:
            return Record(metric, "", window, refused=error)
        undeclared = metric.type.stands_in(text, value)
        told = segments.told(metric.segments, self.told)
        for segment in metric.segments:
            if segment.name not in told:
                raise SegmentError(
                    segment.name,
                    f"is not known, so {name} is not recorded: tell the client, or declare an "
                    '"other"',
                )
        return Record(metric, text, window, undeclared, told)

    def write(self, records: Sequence[Record]) -> tuple[int, int]:
        """Keep records in their windows, and seal the windows that have ended or that are
        answered at once.

        Returns how many reports were dropped because the outbox was full, and how many wait.
        """
        with self.state.transaction() as connection:
            now = self.clock()
            until = self._begin(connection, now)
            ledger.draw_keys(connection, self.registry, self.bits)
            kept = OpenWindows(connection, self.registry, self.bits)
            # The reports of one call share one random delay: here that of answers at once, which is
            # drawn only if there are any.
            kept.keep(records, cache(lambda: now + self._uniform(self.jitter)))
            # The delay of windows that have ended: devices do not all send at midnight, and the
            # time of sending says nothing about the time of recording.
            kept.seal(until, now + self._uniform(self.spread))
            return outbox.trim(connection), outbox.queued(connection)

    def _begin(self, connection: Connection, now: float) -> float:
        """Begin to write. Returns the POSIX time by which windows must have ended to be sealed."""
        return now

    def take(self, *, urgent: bool, ending: bool = False) -> OutgoingBatch | None:
        """The next batch to deliver, if one is due (see `outbox.take`) and can be sent.

        If the app is `ending`, reports that are answered at once do not wait for their jitter. The
        others keep their delay, so that the network does not learn from them when it ended.
        """
        if self.transport is None:
            return None
        with self.state.transaction() as connection:
            now = self.clock()
            if ending:
                at_once = [metric.name for metric in self.registry if metric.answer == "at_once"]
                outbox.hurry(connection, at_once, now)
            return outbox.take(connection, now, self.bits, urgent=urgent)

    def deliver(self, batch: OutgoingBatch) -> Sequence[RejectedError | TransportError]:
        """Send one batch and store the result.

        Returns an error for each report that the collector left out, or one if it refused the
        whole batch for good.

        Raises:
            TransportError: it will be tried again.
        """
        assert self.transport is not None  # or there is no batch
        from deniable.device.transport import read_reply  # not needed by an app that only records

        try:
            rejected = read_reply(self.transport.send(batch.body), batch.id, self.clock)
        except TransportError as error:
            with self.state.transaction() as connection:
                if error.final:
                    outbox.settle(connection, batch.id, "rejected", str(error))
                    return [error]
                now = self.clock()
                asked = now + min(error.retry_after or 0.0, outbox.LONGEST_PAUSE)
                until = max(asked, now + self._backoff(batch.failures))
                outbox.pause(connection, batch.id, until, asked)
            raise
        with self.state.transaction() as connection:
            retry_at = self.clock() + self.rollout_pause + self._uniform(self.rollout_pause)
            return outbox.acknowledge(connection, batch.id, rejected, retry_at)

    def seconds_to_send(self) -> float:
        """How long until a batch is due; infinity when no report waits."""
        with self.state.transaction() as connection:
            return max(0.0, outbox.next_attempt(connection) - self.clock())

    def _backoff(self, failures: int) -> float:
        """Exponential backoff with full jitter: uniform up to a bound that doubles from a second
        on."""
        return self._uniform(min(self.longest_backoff, 2.0 ** min(failures, 30)))

    def _uniform(self, bound: float) -> float:
        """A delay below `bound`. It randomizes a time, never a value, so a float is safe."""
        return self.bits(53) / (1 << 53) * bound
