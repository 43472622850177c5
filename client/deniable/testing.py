"""For the tests of apps: a client that keeps its records in memory and sends nothing.

>>> from deniable.testing import MemoryClient
>>> telemetry = MemoryClient("metrics.toml")  # doctest: +SKIP
>>> telemetry.record("browser", "firefox")  # doctest: +SKIP
>>> telemetry.assert_recorded("browser", "firefox")  # doctest: +SKIP
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from deniable.device.client import Client
from deniable.device.state import MEMORY
from deniable.protocol.errors import SegmentError
from deniable.protocol.registry import Registry
from deniable.protocol.types import Value

if TYPE_CHECKING:
    from deniable.device.open_windows import Record


class MemoryRecord(NamedTuple):
    """One call of `record` or `active`: the metric's name, the value as the metric holds it (empty
    for `active`), the window, and the values of the metric's segments in their declared order."""

    metric: str
    value: str
    window: str
    segments: tuple[str, ...] = ()


class MemoryClient(Client):
    """A `deniable.Client` without disk, network or noise, but with the same checks.

    `records` holds every call with consent, the oldest first. What a device would report of them
    depends on the metric's `aggregate`: of a metric that is answered at once, the first call of
    each window. A boolean's value is "true" or "false", a number's its shortest text, like "3" or
    "2.5". An undeclared value is listed as the metric's `other`, with an
    `UndeclaredValueWarning`; a value that the metric cannot take is not listed, and gives the same
    warning. Metrics and segments that are not declared raise. DO_NOT_TRACK and DENIABLE_DISABLED
    are honoured: unset them in tests that expect records.

    Raises:
        RegistryError: the registry cannot be read, or holds mistakes.
        TypeError: `consent` is neither True nor False.
    """

    def __init__(
        self,
        registry: str | Path | Registry,
        *,
        consent: bool = True,
        clock: Callable[[], float] = time.time,
        segments: Mapping[str, str] | None = None,
    ) -> None:
        self.records: list[MemoryRecord] = []
        self._untold: dict[str, None] = {}
        """What was not recorded because a segment is missing, and why: each once, in order."""
        super().__init__(
            registry,
            None,
            MEMORY,
            consent=consent,
            clock=clock,
            segments=segments,
            background=False,
            on_trouble=self._hear,
            development=False,
            strict=True,
        )
        self._development = True

    def _hear(self, error: Exception) -> None:
        if isinstance(error, SegmentError):
            self._untold[str(error)] = None

    def _keep(self, record: Record) -> None:
        if record.refused is not None:
            return
        told = tuple(record.segments.values())
        self.records.append(MemoryRecord(record.metric.name, record.text, record.window, told))

    def opt_out(self) -> None:
        """The person does not agree: forget the records."""
        super().opt_out()
        self.records.clear()

    def erase(self) -> None:
        """Forget the records."""
        super().erase()
        self.records.clear()

    def after_fork(self, *, child: bool) -> None:
        """Both parent and child keep the records in memory."""
        super().after_fork(child=False)

    def values(self, name: str) -> list[str]:
        """What was recorded for one metric, the oldest first.

        Raises:
            MetricError: no such metric.
        """
        metric = self.registry[name]
        return [record.value for record in self.records if record.metric == metric.name]

    def assert_recorded(self, name: str, value: Value) -> None:
        """Fail unless this value was recorded for the metric.

        Raises:
            MetricError: no such metric, or it cannot take such a value.
        """
        text = self.registry[name].normalize(value)
        found = self.values(name)
        reasons = "".join(f"; {reason}" for reason in self._untold)
        assert text in found, f"{name}: {text!r} was not recorded; recorded: {found}{reasons}"

    def assert_active(self, name: str) -> None:
        """Fail unless `active` was called for the metric.

        Raises:
            MetricError: no such metric.
        """
        assert self.values(name), f"{name}: active was not called"

    def assert_nothing_recorded(self, name: str | None = None) -> None:
        """Fail if anything was recorded: for one metric, or at all.

        Raises:
            MetricError: no such metric.
        """
        # A mistyped name would let every test pass.
        metric = None if name is None else self.registry[name].name
        found = [record for record in self.records if metric in (None, record.metric)]
        assert not found, f"recorded: {found}"
