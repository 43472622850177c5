"""What a call of `record` means: the metric, the normalized value and the window it falls in."""

from __future__ import annotations

from typing import NamedTuple

from deniable import windows
from deniable.metric import Metric
from deniable.registry import Registry
from deniable.types import Value

__all__ = ["Record", "Recorder"]


class Record(NamedTuple):
    """One recorded value. It exists only in memory and in the open window."""

    metric: Metric
    text: str
    window: str
    undeclared: bool = False
    """Whether the value is not declared, so that the text is the metric's `other`."""


class Recorder:
    """Checks calls of `record` against a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        # Days are compared as times: a date object per call would cost a microsecond.
        self._ends = {metric.name: windows.end(metric.expires.isoformat()) for metric in registry}

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
        return Record(metric, text, window, metric.type.stands_in(text, value))
