"""The rules of `deniable watch`, as data: what is told, how surely, and where it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from deniable.errors import MistakesError
from deniable_estimator.judging.rules import FalseAlarms, MetricRules

__all__ = ["NoticeChannel", "RulesError", "WatchRules"]


class RulesError(MistakesError):
    """The rules have mistakes; `problems` holds all of them, in file order."""


@dataclass(frozen=True, slots=True)
class NoticeChannel:
    """Where messages are sent. `address` may hold a secret: it is never shown."""

    name: str
    kind: Literal["webhook", "apprise"]
    address: str

    def __repr__(self) -> str:
        """Without the address."""
        return f"NoticeChannel({self.name!r}, {self.kind!r})"


@dataclass(frozen=True, slots=True)
class WatchRules:
    """All rules of one file."""

    dashboard: str
    language: str
    false_alarms: FalseAlarms
    wait_days: int
    digest: int | None
    """The weekday (UTC) on which a digest is sent; Monday is 0."""
    only: tuple[str, ...]
    """The metrics that are watched; none: all."""
    defaults: MetricRules
    metrics: Mapping[str, MetricRules]
    channels: tuple[NoticeChannel, ...]

    def of(self, metric: str) -> MetricRules:
        """The rules of a metric."""
        return self.metrics.get(metric, self.defaults)

    def watches(self, metric: str) -> bool:
        """Whether a metric is watched."""
        return not self.only or metric in self.only
