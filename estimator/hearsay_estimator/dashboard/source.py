"""Where the pages get their facts: the store, the registry, the clock and lists of candidates."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

from flask import current_app, g
from werkzeug.exceptions import NotFound

from hearsay import Metric, Registry, windows
from hearsay.value_list import read_values
from hearsay_collector.stores.base import Store
from hearsay_estimator.dashboard.ranges import DayRange
from hearsay_estimator.dashboard.snapshot import Snapshot
from hearsay_estimator.estimate import Estimate
from hearsay_estimator.reading import read
from hearsay_estimator.trend import Trend, trend

__all__ = ["Source", "current_source", "declared_metric"]


@dataclass(frozen=True)
class Source:
    """Where the pages get their facts."""

    store: Store
    registry: Registry
    clock: Callable[[], float]
    candidates_folder: Path | None

    @property
    def today(self) -> date:
        """The day (UTC) that the clock shows."""
        return datetime.fromtimestamp(self.clock(), UTC).date()

    def candidates(self, metric: Metric) -> list[str] | None:
        """The strings that the operator has listed for a metric; None if there is no list.

        Raises:
            ValueListError: the list cannot be read or has a mistake.
        """
        if metric.values is not None or self.candidates_folder is None:
            return None
        # A metric's name is made of letters, digits and underscores: it cannot lead elsewhere.
        path = self.candidates_folder / f"{metric.name}.txt"
        return read_values(path) if path.is_file() else None

    def estimate(
        self, metric: Metric, days: DayRange, candidates: Sequence[str] | None = None
    ) -> Estimate | None:
        """None for strings without candidates."""
        if metric.values is None and candidates is None:
            return None
        return read(self.store, self.registry, metric.name, days.first, days.last, candidates)

    def trend(
        self,
        metric: Metric,
        days: DayRange,
        by: windows.Kind,
        candidates: Sequence[str] | None = None,
    ) -> Trend:
        """The metric over the periods of these days."""
        first, last = days.first, days.last
        return trend(self.store, self.registry, metric.name, first, last, candidates, by=by)

    def newest(self, metric: Metric) -> str | None:
        """The newest window that holds any answer, whatever the range."""
        schemes = self.store.schemes().get(metric.name, {})
        labels = [
            label for scheme in schemes for label in self.store.windows(metric.name, scheme)[-1:]
        ]
        return max(labels, default=None)


def current_source() -> Source:
    """That of the application which answers, as this request sees it."""
    if "source" not in g:
        source: Source = current_app.extensions["hearsay_source"]
        g.source = replace(source, store=Snapshot(source.store))
    seen: Source = g.source
    return seen


def declared_metric(name: str) -> Metric:
    """The metric of that name.

    Raises:
        NotFound: there is none; the message names one that is spelt like it.
    """
    registry = current_source().registry
    if name in registry.metrics:
        return registry[name]
    near = difflib.get_close_matches(name, registry.metrics, n=1)
    advice = f" Did you mean {near[0]}?" if near else " The overview lists all there are."
    raise NotFound(f"No metric of that name is declared.{advice}")
