"""What a retention can tell, before it is declared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deniable.protocol import windows
from deniable.protocol.mechanisms import MemoizedRetention
from deniable.protocol.mechanisms.limits import check_epsilon
from deniable.protocol.mechanisms.memoized_retention import Asked
from deniable_estimator.forecasting.retention_forecast import BACK, NEW, RetentionForecast


@dataclass(frozen=True)
class RetentionPlan:
    """What a retention can tell of a crowd. Shares and half widths are parts of 1."""

    asks: tuple[str, ...]
    ages: int
    window: str
    declared_epsilon: float
    devices: int
    """Active in a window."""
    sample_rate: float
    reports: float
    """Devices that report in one window, on average."""
    mechanism: str
    epsilon: float
    """Of one report: exact, from the probabilities in force, rounded up."""
    memo_epsilon: float
    """Of all reports of one answer, however many: exact, rounded up."""
    new: float
    """The part of the active devices that is new."""
    back: float
    """The retention that its half widths are for."""
    tells: RetentionForecast


def plan_retention(
    asks: Sequence[Asked],
    ages: int,
    epsilon: float,
    lifetime_epsilon: float,
    devices: int,
    *,
    new: float = NEW,
    sample_rate: float = 1.0,
    window: windows.Kind = "week",
) -> RetentionPlan:
    """The plan of a retention, of `devices` that are active in a window.

    Raises:
        SchemeError: no mechanism can be designed for these.
    """
    made = MemoizedRetention.design(window, ages, asks, check_epsilon(epsilon), lifetime_epsilon)
    reports = devices * sample_rate
    return RetentionPlan(
        asks=made.asks,
        ages=made.ages,
        window=window,
        declared_epsilon=epsilon,
        devices=devices,
        sample_rate=sample_rate,
        reports=reports,
        mechanism=made.name,
        epsilon=made.epsilon,
        memo_epsilon=made.lifetime_epsilon,
        new=new,
        back=BACK,
        tells=RetentionForecast.of(made, reports, new),
    )
