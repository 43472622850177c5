"""What a crowd will see of a metric, and the notes of lint."""

import dataclasses
import itertools
import math
import re
import subprocess
import sys

import pytest
from tests.registries import declared as tables_declared

from deniable import Registry
from deniable.protocol.mechanisms.number_range import NumberRange
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable_estimator.planning.crowd_limits import forecast
from deniable_estimator.planning.lifetime_split import report_variance
from deniable_estimator.statistics.expected import (
    Reach,
    mean_half_width,
    mean_variance,
    reports_to_find,
)

UNIT = NumberRange("0", "1")


def test_a_mean_has_a_half_width():
    """As a part of the range, on a linear and on a logarithmic scale."""
    for numbers in (NumberRange("-5", "15"), NumberRange("1", "100", "log")):
        window = SlidingWindow.design(numbers, 1.0)
        assert mean_variance(window) == pytest.approx(4.0122, abs=1e-4)
        expected = 1.96 * math.sqrt(4.0122 / 10_000) / 2
        assert mean_half_width(window, 10_000) == pytest.approx(expected, rel=1e-4)


def test_known_values_of_the_reach():
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
def test_the_reports_that_find_a_share_are_the_fewest(levels):
    """With so many reports half of the strings of 1% surface, and with one less not."""
    made = PrefixTree.design("demo", 2.0, levels)
    needed = reports_to_find(made, 0.01)
    assert Reach.in_window(made, needed).half_text <= 0.01 < Reach.in_window(made, needed - 1)[1]


def test_the_variance_counts_all_tables():
    """One table of nine gets a ninth of the reports, so the variance is nine times as large."""
    made = PrefixTree.design("demo", 2.0, 8)
    p, q = float(made.p), float(made.q)
    noise = report_variance(made, 0.0).noise
    assert math.isclose(noise, 9 * q * (1 - q) / (p - q) ** 2)


@pytest.mark.parametrize(
    ("keys", "code"),
    [({"ages": 2}, "weak_retention"), ({"asks": ["lifecycle"]}, "weak_lifecycle")],
)
def test_a_retention_of_too_few_devices_is_told(keys, code):
    """The warning names the half width in points, which halves with four times the devices where
    anything is known, and ends where it is at most ten."""
    text = tables_declared(
        back={"type": "retention", "epsilon": 0.5, "lifetime_epsilon": 1.0, **keys}
    )
    metric = Registry.parse(text)["back"]
    points = {}
    for devices in (200, 800, 3_200, 12_800, 51_200, 204_800, 819_200, 3_276_800):
        told = forecast(dataclasses.replace(metric, devices=devices))
        if told is not None:
            assert told.code == code
            points[devices] = int(re.search(r"\+-(\d+) points", str(told))[1])
    widths = [each for each in points.values() if each < 50]
    assert 2 <= len(widths) < 8
    assert widths[-1] in range(10, 21)
    assert all(abs(wide - 2 * narrow) <= 1.5 for wide, narrow in itertools.pairwise(widths))


def test_forecasts_load_no_numpy():
    """`init` and `add` make them while somebody waits, and numpy alone would take as long."""
    loaded = "import sys, deniable_estimator.planning.crowd_forecast; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("False", "")
