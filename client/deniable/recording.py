"""What a call of `record` means: the metric, the normalized value and the window it falls in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from deniable import segments, windows
from deniable.errors import SegmentError
from deniable.metric import Metric
from deniable.registry import Registry
from deniable.types import Value

_NO_SEGMENTS: Mapping[str, str] = {}


class Record(NamedTuple):
    """One recorded value. It exists only in memory and in the open window."""

    metric: Metric
    text: str
    window: str
    undeclared: bool = False
    """Whether the value is not declared, so that the text is the metric's `other`."""
    segments: Mapping[str, str] | None = _NO_SEGMENTS
    """The device's value of each segment of the metric; None if one of them is not known."""


class Recorder:
    """Checks calls of `record` against a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.told: Mapping[str, str] = {}
        """The device's segments by name."""
        # Days are compared as times: a date object per call would cost a microsecond.
        self._ends = {metric.name: windows.end(metric.expires.isoformat()) for metric in registry}

    def tell(self, given: Mapping[str, str]) -> None:
        """Take the device's segments; those that are not named stay as they are.

        Raises:
            SegmentError: no such segment, or it cannot take such a value. Then none is changed.
        """
        declared = self._registry.segments
        texts = {}
        for name, value in given.items():
            if name not in declared:
                raise SegmentError(
                    str(name), f"is not declared in {self._registry.source}; declare it there"
                )
            texts[name] = declared[name].text(value)
        # Replaced, not changed: records of other threads keep what they have seen.
        self.told = {**self.told, **texts}

    def admit(self, name: str, value: Value, now: float) -> Record | None:
        """The record that a call at the POSIX time `now` makes; None once the metric expired.

        An expired metric is not a programmer's mistake: an app outlives its metrics.

        Raises:
            MetricError: no such metric, or it cannot take such a value.
        """
        metric = self._registry[name]
        text = metric.normalize(value)
        if now >= self._ends[name]:
            return None
        window = windows.window_at(metric.window, now)
        undeclared = metric.type.stands_in(text, value)
        if not metric.segments:
            return Record(metric, text, window, undeclared)
        return Record(metric, text, window, undeclared, segments.told(metric.segments, self.told))
