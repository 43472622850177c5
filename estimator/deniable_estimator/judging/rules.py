"""What is told of a metric, and how surely: the part of the rules of `deniable watch` that the
overview shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["PERIODS", "FalseAlarms", "MetricRules", "Per"]

Per: TypeAlias = Literal["run", "week", "month", "year"]

PERIODS: dict[Per, float] = {"run": 0.0, "week": 7.0, "month": 30.0, "year": 365.0}
"""How many days each period has; a run has no length."""


@dataclass(frozen=True, slots=True)
class FalseAlarms:
    """How many false alarms are expected at most, over all metrics together."""

    number: float
    per: Per


@dataclass(frozen=True, slots=True)
class MetricRules:
    """What is told of one metric."""

    points: float = 1.0
    """The least change of a share that is told, in percentage points."""
    percent: float = 5.0
    """The least change of a number that is told, in percent of what it was."""
    expires_days: int = 30
    stale_days: int = 3
    share: float = 0.05
    """The share that must be visible in each window."""
