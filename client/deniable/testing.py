"""For the tests of apps: a client that keeps its records in memory and sends nothing.

>>> from deniable.testing import MemoryClient
>>> telemetry = MemoryClient("metrics.toml")  # doctest: +SKIP
>>> telemetry.record("browser", "firefox")  # doctest: +SKIP
>>> telemetry.assert_recorded("browser", "firefox")  # doctest: +SKIP
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from deniable.metric import Value
from deniable.recording import Recorder
from deniable.registry import Registry

if TYPE_CHECKING:
    from deniable.sent import SentReport

__all__ = ["MemoryClient", "MemoryRecord"]


class MemoryRecord(NamedTuple):
    """One call of `record`: the metric's name, the value as the metric holds it, the window."""

    metric: str
    value: str
    window: str


class MemoryClient:
    """Stands in for `deniable.Client`: the same checks, no disk, no network, no noise.

    `records` holds what was recorded with consent, the oldest first; a boolean's value is
    "true" or "false", and a value that the metric counts as `other` stands there as that.

    Raises:
        RegistryError: the registry cannot be read, or holds mistakes.
    """

    def __init__(
        self,
        registry: str | Path | Registry,
        *,
        consent: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.registry = registry if isinstance(registry, Registry) else Registry.load(registry)
        self.records: list[MemoryRecord] = []
        self.consent = consent
        self._clock = clock
        self._recorder = Recorder(self.registry)

    def record(self, name: str, value: Value) -> None:
        """Record a value, as `Client.record` would.

        Raises:
            MetricError: no such metric, or it cannot take such a value.
        """
        record = self._recorder.admit(name, value, self._clock())
        if record is not None and self.consent:
            self.records.append(MemoryRecord(record.metric.name, record.text, record.window))

    def flush(self, timeout: float | None = 5.0) -> bool:
        """There is nothing to send."""
        return True

    def close(self, timeout: float | None = 2.0) -> None:
        """There is nothing to close; `records` stay."""

    def sent(self) -> list[SentReport]:
        """Nothing was sent."""
        return []

    def opt_in(self) -> None:
        """The person agrees."""
        self.consent = True

    def opt_out(self) -> None:
        """The person does not agree: forget the records."""
        self.consent = False
        self.records.clear()

    def values(self, name: str) -> list[str]:
        """What was recorded for one metric, the oldest first."""
        return [record.value for record in self.records if record.metric == name]

    def assert_recorded(self, name: str, value: Value) -> None:
        """Fail unless this value was recorded for the metric.

        Raises:
            MetricError: no such metric, or it cannot take such a value.
        """
        text = self.registry[name].normalize(value)
        found = self.values(name)
        assert text in found, f"{name}: {text!r} was not recorded; recorded: {found}"

    def assert_nothing_recorded(self, name: str | None = None) -> None:
        """Fail if anything was recorded: for one metric, or at all."""
        found = [record for record in self.records if name in (None, record.metric)]
        assert not found, f"recorded: {found}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
