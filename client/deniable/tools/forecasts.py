"""Forecasts of what a crowd will tell. They are the estimator's: the SDK is for devices."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import entry_points
from typing import Literal, Protocol

from deniable.protocol.metric import Metric


class Forecasts(Protocol):
    """What the entry point has: `deniable_estimator.forecasting.declaring`."""

    def remarks(
        self, metric: Metric, cap: float | None = None
    ) -> Iterable[tuple[str, Literal["warning", "note"]]]:
        """What the expected crowd cannot tell, and better choices, each with its severity."""

    def too_few_devices(self, metric: Metric) -> str | None:
        """What the expected crowd lacks, if it is so small that the metric is of no use."""

    def shows(self, metric: Metric) -> str | None:
        """What the expected crowd shows in a day, a week and a month, as a part of a sentence; None
        where `devices` are not given."""

    def seen(self, metric: Metric) -> Iterable[str]:
        """What the expected crowd will and will not tell of a new metric."""


MISSING = "no forecasts, which come with the estimator: pip install 'deniable[estimator]'"


def forecasts() -> Forecasts | None:
    """The estimator's forecasts; None where it is not installed."""
    for point in entry_points(group="deniable.forecasts"):
        try:
            found: Forecasts = point.load()
        except ModuleNotFoundError:
            return None
        return found
    return None
