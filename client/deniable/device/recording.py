"""What a call of `record` means: the metric, the normalized value and the window it falls in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from deniable.protocol import segments, windows
from deniable.protocol.errors import MetricError, SegmentError
from deniable.protocol.metric import Metric
from deniable.protocol.registry import Registry
from deniable.protocol.types import Value

ACTIVE: Final[Any] = object()
"""What `Client.active` records in place of a value."""


class Record(NamedTuple):
    """One recorded value. It exists only in memory and in the open window."""

    metric: Metric
    text: str
    window: str
    undeclared: bool = False
    """Whether the value is not declared, so that the text is the metric's `other`."""
    segments: Mapping[str, str] = {}
    """The device's value of each segment of the metric."""
    refused: MetricError | None = None
    """Why the metric cannot take the value; then there is no text. It does not repeat the value."""


class Recorder:
    """Checks calls of `record` against a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.told: Mapping[str, str] = {}
        """The device's segments by name."""

    def tell(self, name: str, value: object) -> SegmentError | None:
        """Take one of the device's segments. Returns why it cannot take such a value: then the
        segment is not known any more.

        Raises:
            SegmentError: no such segment.
        """
        segment = self._registry.segments.get(name) if isinstance(name, str) else None
        if segment is None:
            raise SegmentError(
                str(name), f"is not declared in {self._registry.source}; declare it there"
            )
        # Replaced, not changed: records of other threads keep what they have seen.
        told = {each: text for each, text in self.told.items() if each != name}
        try:
            self.told = {**told, name: segment.text(value)}
        except SegmentError as error:
            self.told = told
            return error.with_traceback(None)  # its frames hold the value
        return None

    def admit(self, name: str, value: Value, now: float) -> Record | None:
        """The record that a call at the POSIX time `now` makes; None once the metric expired.

        An expired metric is not a programmer's mistake: an app outlives its metrics. Neither is a
        value that the metric cannot take: it depends on the device.

        Raises:
            MetricError: no such metric, or it is not recorded in this way.
            SegmentError: a segment of the metric is not known, so it is not recorded.
        """
        if not isinstance(name, str):
            raise MetricError(type(name).__name__, "is not a name: pass the metric's name first")
        metric = self._registry[name]
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
        if now >= metric.ends:
            return None
        window = windows.window_at(metric.window, now)
        if value is ACTIVE:
            return Record(metric, "", window)
        try:
            text = metric.normalize(value)
        except MetricError as error:
            return Record(metric, "", window, refused=error.with_traceback(None))
        undeclared = metric.type.stands_in(text, value)
        told = segments.told(metric.segments, self.told)
        if told is None:
            raise SegmentError(
                segments.missing(metric.segments, self.told),
                f'is not known, so {name} is not recorded: tell the client, or declare an "other"',
            )
        return Record(metric, text, window, undeclared, told)
