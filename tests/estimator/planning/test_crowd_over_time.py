"""What a metric shows in a day, a week and a month."""

import re

import numpy as np
import pytest
from tests.client.conftest import metrics_toml

from deniable import Registry
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.cohorts import report_weight
from deniable_estimator.planning.crowd_forecast import reports_over, seen, shows

MEMO = {"longitudinal": "memoize", "memo_epsilon": 2.0, "lifetime_epsilon": 6.0}


def metric(**keys):
    return Registry.parse(metrics_toml(m={"devices": 50_000, **keys}))["m"]


def test_turns_give_other_devices_each_day():
    """Of 92 groups one reports in a day, 7 in a week and 30 in a month: as many devices."""
    found = [reports_over(metric(one_in=92), windows) for windows in (1, 7, 30)]
    assert found == pytest.approx([50_000 * days / 92 for days in (1, 7, 30)])


def test_memos_count_as_the_estimator_counts_them():
    """Reports from memos count as what the estimator takes them for, where values are rare."""
    declared = metric(**MEMO)
    oracle = declared.scheme.oracle
    channel = analysis_of(oracle).memo_channel()
    for windows in (1, 7, 30):
        weight = reports_over(declared, windows) / (50_000 * windows)
        cautious = report_weight(channel, float(oracle.p), float(oracle.q), windows)
        p1, q1 = (float(each) for each in channel)
        p, q = float(oracle.p), float(oracle.q)
        kept = q1 * (1 - q1) / (p1 - q1) ** 2 / (q * (1 - q) / (p - q) ** 2)
        assert weight == pytest.approx(1 / (1 + (windows - 1) * kept))
        assert weight >= cautious - 1e-12


@pytest.mark.parametrize(
    "keys",
    [
        {"one_in": 10},
        {"window": "week", "one_in": 3},
        {"window": "month", "one_in": 3},
        MEMO,
        {"type": "string", **MEMO},
        {"type": "number", "low": 0, "high": 9, "ask": "mean", "one_in": 10},
        {"type": "number", "low": 1, "high": 9, "ask": "distribution", "one_in": 10},
        {"type": "discovery", "epsilon": 4.0, "one_in": 2},
    ],
)
def test_longer_spans_show_more(keys):
    """A day, a week and a month, as far as the metric's window is not longer, each have a figure,
    and longer spans show smaller shares."""
    told = shows(metric(**keys))
    assert told is not None
    figures = [float(each) for each in re.findall(r"([\d.]+)%", told)]
    spans = {"day": 3, "week": 2, "month": 1}[str(keys.get("window", "day"))]
    assert len(figures) == told.count(" in a ") == spans
    assert all(np.diff(figures) < 0)
    assert told in " ".join(seen(metric(**keys)))
