"""The forecast: what an expected crowd will see of a metric."""

from __future__ import annotations

import dataclasses
from datetime import date

import pytest
from scipy import stats

from deniable import Metric
from deniable.types import Category, String
from deniable_estimator.forecasting.detection import critical_value, detectable_share
from deniable_estimator.forecasting.forecast import forecast

METRIC = Metric(
    name="m",
    type=Category(tuple(f"v{n}" for n in range(100))),
    description="d",
    owner="o",
    expires=date(2099, 1, 1),
    epsilon=1.0,
    lifetime_epsilon=8.0,
)


def expecting(devices: int | None, sample_rate: float = 1.0) -> Metric:
    return dataclasses.replace(METRIC, devices=devices, sample_rate=sample_rate)


def test_critical_value_is_the_normal_quantile() -> None:
    """The critical value of a family is the quantile at 1 - alpha / family."""
    assert critical_value(0.05, 100) == pytest.approx(stats.norm.isf(0.0005), rel=1e-9)


def test_a_large_crowd_needs_no_warning() -> None:
    """From about 600,000 devices on, 100 values at epsilon 1 show a 1% share."""
    assert forecast(expecting(700_000)) is None
    assert forecast(expecting(None)) is None


def test_a_crowd_that_sees_too_little() -> None:
    """The warning names the smallest visible share and how many devices 1% would take."""
    message = forecast(expecting(100_000))
    assert message is not None
    assert "no share below 2.5%" in message
    needed = int(message.partition("takes ")[2].partition(" devices")[0].replace(",", ""))
    mechanism = METRIC.scheme.mechanism
    assert detectable_share(mechanism, 100, needed) == pytest.approx(0.01, rel=1e-4)


def test_a_hopeless_crowd() -> None:
    """Where noise can look like half of the crowd there is no usable signal."""
    message = forecast(expecting(100))
    assert message is not None
    assert message.startswith("no usable signal with 100 devices")


def test_strings_have_no_forecast() -> None:
    """Without candidates nobody knows how many values are compared."""
    strings = dataclasses.replace(METRIC, type=String(), devices=10)
    assert forecast(strings) is None
