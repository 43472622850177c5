"""What lint, add and the forecast say of a discovery before its first report."""

from __future__ import annotations

import math

import pytest
from tests.client.discoveries import declared

from deniable.commands import remarks
from deniable.mechanisms import PrefixTree
from deniable_estimator.forecasting.discovery_forecast import (
    Reach,
    discovery_forecast,
    reports_to_find,
)
from deniable_estimator.forecasting.forecast import is_blind
from deniable_estimator.forecasting.lifetime_split import report_variance


def test_known_values_of_the_reach() -> None:
    """A million reports at epsilon 2 and 16 bytes have a standard error of .2567% in a row; half
    of the strings surface from .90% on, and 4,280 fakes are needed to within one percent."""
    made = PrefixTree.design("demo", 2.0, 8)
    reach = Reach.in_window(made, 1_000_000)
    assert math.isclose(reach.half_text, 3.5 * 2.567e-3, rel_tol=1e-3)
    assert math.isclose(reach.sure_any, 6.7 * 2.567e-3, rel_tol=1e-3)
    assert math.isclose(reach.hidden, 6 * 856e-6, rel_tol=1e-3)
    assert math.isclose(reach.fakes, 4_280, rel_tol=0.01)
    assert math.isclose(PrefixTree.design("demo", 4.0, 8).p, 0.3829, abs_tol=1e-3)


@pytest.mark.parametrize("levels", [1, 8, 16])
def test_the_reports_that_find_a_share_are_the_fewest(levels: int) -> None:
    """With so many reports half of the strings of 1% surface, and with one less not."""
    made = PrefixTree.design("demo", 2.0, levels)
    needed = reports_to_find(made, 0.01)
    assert Reach.in_window(made, needed).half_text <= 0.01 < Reach.in_window(made, needed - 1)[1]


def test_the_variance_counts_all_tables() -> None:
    """One table of nine gets a ninth of the reports, so the variance is nine times as large."""
    made = PrefixTree.design("demo", 2.0, 8)
    p, q = float(made.p), float(made.q)
    noise = report_variance(made, 0.0).noise
    assert math.isclose(noise, 9 * q * (1 - q) / (p - q) ** 2)


@pytest.mark.parametrize(
    ("devices", "told", "severity"),
    [
        (400_000, "hardly a string surfaces in a day that less than 1.4%", "note"),
        (10_000, "that less than 9.0% of the devices have: one of 1% takes 806,960", "warning"),
        (100, "no string surfaces with 100 devices", "warning"),
    ],
)
def test_small_crowds_are_warned(devices: int, told: str, severity: str) -> None:
    """A crowd that finds no string of 1% gets a note, and one that finds none of 5% a warning."""
    registry = declared(f"devices = {devices}")
    metric = registry["search"]
    assert told in str(discovery_forecast(metric))
    (problem,) = [each for each in remarks(registry, None) if "surfaces" in each.message]
    assert (problem.severity, is_blind(metric)) == (severity, severity == "warning")


def test_long_strings_are_warned() -> None:
    """Above 16 bytes lint warns that little is found."""
    assert not [each for each in remarks(declared(), None) if "max_length" in each.message]
    found = remarks(declared("max_length = 24"), None)
    (problem,) = [each for each in found if "max_length" in each.message]
    assert problem.severity == "warning"
    assert "13 tables share the reports" in problem.message
