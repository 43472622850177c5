"""Answers of numbers: combined over schemes, compared, and what is refused."""

import math
from dataclasses import replace
from datetime import date
from types import SimpleNamespace

import numpy as np
import pytest
import tests.registries

from deniable import Registry, SchemeError
from deniable_collector.tally import Tally
from deniable_estimator.analyses import analysis_of
from deniable_estimator.asking.comparison import compare, since_headline
from deniable_estimator.asking.query import Days
from deniable_estimator.asking.trend import Period, Trend
from deniable_estimator.asking.trend_words import trend_frame
from deniable_estimator.dashboard.recent import change_headline
from deniable_estimator.errors import EstimateError
from deniable_estimator.judging.newest_week import judge_week
from deniable_estimator.kinds.base import TOGETHER, ChangeTest, Series, number_change
from deniable_estimator.kinds.registry import answer_of, combine

DAYS = ("2026-11-16", "2026-11-17", "2026-11-18")


def declared(ask="mean", low=0, high=100, scale="linear", epsilon=2.0):
    """A metric of a number."""
    keys = {"low": low, "high": high, "scale": scale, "ask": ask, "epsilon": epsilon}
    text = tests.registries.declared(number={"type": "number", "unit": "ms", **keys})
    return Registry.parse(text)["number"]


def told(metric, numbers, rng, day=DAYS[0], level=0.95):
    """The answer of one window in which each of these numbers is that of a device."""
    mechanism = metric.scheme.mechanism
    positions = np.array([mechanism.range.position(float(each)) for each in numbers])
    items, counts = np.unique(positions, return_counts=True)
    rows = analysis_of(mechanism).sample_rows(items, counts, rng)
    tally = Tally(metric.name, metric.scheme.fingerprint, (day,), rows)
    return answer_of(tally, metric.scheme, level=level, unit=metric.type.unit)


def series(answer):
    """Value, low and high by name."""
    found = answer.series
    columns = (found.value.tolist(), found.low.tolist(), found.high.tolist())
    return dict(zip(found.names, zip(*columns, strict=True), strict=True))


def test_another_range_leaves_the_older_part_out():
    """Distributions with other edges are not averaged: the newest one answers, however few reports
    it has, and says how many it leaves out and where they are; over the same days that is the one
    in force, which comes first. The same holds for means, which are not compared either: what lies
    outside of a range counts as its end."""
    rng = np.random.default_rng(9)
    large = told(declared("distribution"), rng.uniform(0, 100, 20_000), rng)
    small = told(declared("distribution", high=200), rng.uniform(0, 100, 5000), rng, DAYS[1])
    said = "the newest is shown, and 20,000 reports under others are left out"
    where = "; choose 16 Nov 2026 to see them"
    for day, told_where in ((DAYS[1], where), (DAYS[0], "")):
        both = combine([replace(small, windows=(day,)), large])
        assert both.n == 5000
        assert both.warnings[-1] == f"the range or the cells have changed: {said}{told_where}"
    back = combine([large, replace(small, windows=(DAYS[0],))])
    assert back.n == 20_000
    linear = told(declared(low=1), rng.uniform(1, 99, 5000), rng)
    for other in ({"scale": "log"}, {"high": 200}):
        changed = told(declared(low=1, **other), rng.uniform(1, 99, 4000), rng, DAYS[1])
        assert combine([linear, changed]).n == 4000
        found = compare(linear, changed)
        assert found.values == ()
        assert "the range or the cells have changed" in found.notes[0]
        assert "nothing to compare with since Release" in since_headline("m", found, "Release")
        assert change_headline(found).startswith("Not compared: the range")
        week, before = (
            Days(date.fromisoformat(day), date.fromisoformat(day)) for day in DAYS[1::-1]
        )
        answers = {week: changed, before: linear}
        assert judge_week(answers.get, week, before, None, 1) == "redefined"
    with pytest.raises(EstimateError, match="one metric, kind and level"):
        combine([linear, large])


def test_candidates_are_refused(make_tally):
    """A number has no candidates, and its tallies have no shares."""
    metric = declared()
    tally = make_tally(metric.scheme, 0, [0] * metric.scheme.mechanism.rows[0].width)
    with pytest.raises(EstimateError, match="no candidates"):
        answer_of(tally, metric.scheme, ["one"])
    with pytest.raises(SchemeError, match="no shares of values"):
        str(metric.scheme.oracle)
    with pytest.raises(EstimateError, match="estimate it with its own scheme"):
        answer_of(tally, declared(high=50).scheme)


def test_a_change_whose_interval_holds_zero_is_none():
    """A test may call two quantiles different whose interval of the difference, which is wider,
    holds zero: that does not count as a change; without zero in it, it does."""

    def answer(value):
        one = np.array([value])
        return SimpleNamespace(level=0.95, series=Series(("p95",), one, one, one - 2, one + 2))

    for moved, counts in ((1.0, False), (5.0, True)):
        found = number_change(answer(10), answer(10 + moved), TOGETHER, {"p95": 1e-6})
        assert (found.low[0] <= 0 <= found.high[0]) is not counts
        assert found.changed.tolist() == [counts]


def test_a_change_across_an_edit_of_the_range_says_what_is_compared():
    """The mean alone; a trend says why nothing is said of quantiles."""
    rng = np.random.default_rng(9)
    before = told(declared("distribution"), rng.uniform(0, 100, 5000), rng)
    after = told(declared("distribution", high=200), rng.uniform(0, 100, 5000), rng, DAYS[1])
    found = compare(before, after)
    edited = "the range or the cells have changed"
    assert found.values == ("mean",)
    assert f"{edited}: only what both periods tell alike is compared" in found.notes
    days = [date.fromisoformat(each) for each in DAYS[:2]]
    periods = [
        Period(str(day), day, day, False, each, each.n, change=change)
        for day, each, change in zip(days, (before, after), (None, found), strict=True)
    ]
    frame = trend_frame(Trend("number", "day", 0.95, tuple(periods)), ["p50"])
    assert [row[-1] and row[-1].text for row in frame.rows] == [None, edited]


def test_a_single_change_is_not_said_to_be_one_of_several():
    """Where an interval and a test disagree, the number of series is named if it counts."""
    answer = told(
        declared(), np.random.default_rng(9).uniform(0, 100, 5000), np.random.default_rng(9)
    )
    later = replace(answer, windows=(DAYS[1],))
    for together, said in ((True, "significant among 1 numbers"), (False, "; not significant)")):
        found = compare(answer, later, ChangeTest(together=together))
        apart = replace(found, low=np.array([0.1]), high=np.array([0.2]), p_value=np.array([0.9]))
        assert said in apart.describe(0)


def test_what_did_not_change_has_the_unit_in_its_interval():
    """As a change has: of the ends alone nobody could say what they are."""
    metric = declared("distribution")
    rngs = np.random.default_rng(9), np.random.default_rng(10)
    before, after = (told(metric, np.full(5000, 50.0), rng) for rng in rngs)
    found = compare(before, replace(after, windows=(DAYS[1],)))
    unit = found.after.unit.name
    assert unit
    assert found.describe(found.values.index("p50")).endswith(f" {unit})")


def test_the_change_of_a_quantile_without_a_limit():
    """Where p99 of the later window has no upper limit, nor has its change, and none is told."""
    metric, rng = declared("distribution", epsilon=0.5), np.random.default_rng(4)
    before, after = (told(metric, rng.uniform(0, 100, 3000), rng, day) for day in DAYS[:2])
    assert series(after)["p99"][2] == math.inf
    found = compare(before, after)
    assert found.at(found.values.index("p99"))[2] == math.inf
    assert not found.changed[found.values.index("p99")]


@pytest.mark.parametrize(
    ("ask", "name"), [("mean", "mean"), ("distribution", "p50"), ("distribution", "mean")]
)
def test_schemes_are_averaged(ask, name):
    """Two epsilons of one range: the average is that of all reports, however exact each part is,
    and no wider than the wider half."""
    rng = np.random.default_rng(7)
    numbers = rng.uniform(0, 100, 50_000)
    parts = [
        told(declared(ask, epsilon=epsilon), numbers, rng, day)
        for epsilon, day in zip((1.0, 2.0), DAYS, strict=False)
    ]
    both = combine(parts)
    assert both.n == 100_000
    assert set(both.schemes) == {*parts[0].schemes, *parts[1].schemes}
    widths = [series(each)[name][2] - series(each)[name][1] for each in (*parts, both)]
    assert widths[2] < max(widths[:2])
    values = [series(each)[name][0] for each in parts]
    assert series(both)["mean"][0] == pytest.approx(sum(values) / 2) or name == "p50"
    assert len(both.verdict.figures) == sum(len(each.verdict.figures) for each in parts)
