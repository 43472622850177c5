"""Numbers over time and compared: logarithmic axes, intervals without a limit, a scale for each."""

from __future__ import annotations

import re
from datetime import date
from itertools import pairwise

import pytest

from deniable import Registry
from deniable_collector.stores import Store
from deniable_estimator.dashboard.charts.changes import change_chart, change_headline, change_lines
from deniable_estimator.dashboard.charts.trend import TrendChart, draw_trend, trend_chart
from deniable_estimator.dashboard.charts.trend_axis import TrendLine, axis_of
from deniable_estimator.questions.comparison import Comparison, compare
from deniable_estimator.questions.reading import read
from deniable_estimator.questions.trend import trend

from .conftest import YESTERDAY, fill_numbers

DAY = date.fromisoformat(YESTERDAY)
BEFORE = date(2026, 11, 13)


def chart_of(store: Store, registry: Registry, name: str, series: str) -> TrendChart | None:
    found = trend(store, registry, name, BEFORE, DAY)
    return trend_chart(found, [series], height=220, name="chart")


def comparison(store: Store, registry: Registry, name: str) -> Comparison:
    before, after = (read(store, registry, name, day, day) for day in (BEFORE, DAY))
    return compare(before, after)


def test_a_logarithmic_metric_has_a_logarithmic_axis(
    number_store: Store, numbers: Registry
) -> None:
    """On the axis of times from milliseconds to minutes, equal factors are equally far apart; a
    linear metric has equal steps."""
    for ago, factor in ((12, 0.05), (14, 20.0)):
        fill_numbers(number_store, numbers, "load", [factor] * 20_000, f"2026-11-{ago}")
    found = trend(number_store, numbers, "load", date(2026, 11, 11), DAY)
    chart = trend_chart(found, ["p50"], height=220, name="chart")
    assert chart is not None
    levels = {float(level.text.removesuffix(" s")): level.at for level in chart.levels}
    tens = [levels[each] for each in (0.1, 1.0, 10.0)]
    assert tens[0] - tens[1] == pytest.approx(tens[1] - tens[2], abs=0.2)
    linear = chart_of(number_store, numbers, "tabs", "mean")
    assert linear is not None
    at = [level.at for level in linear.levels]
    steps = {round(one - two, 0) for one, two in pairwise(at)}
    assert len(steps) <= 2
    assert all(level.text.endswith(" tabs") for level in linear.levels)


def test_what_has_no_upper_limit_reaches_the_edge(number_store: Store, numbers: Registry) -> None:
    """The band of p99 goes up to the edge; no line is drawn and no dot; where nothing is known at
    all there is no chart."""
    chart = chart_of(number_store, numbers, "narrow", "p99")
    assert chart is not None
    assert [mark.open for mark in chart.plots[0].marks] == [True, True]
    assert [mark.high for mark in chart.plots[0].marks] == [0.0, 0.0]
    assert chart.plots[0].lines == ()
    assert "at least 4 GB" in next(point.text for point in chart.points if point.text)
    closed = chart_of(number_store, numbers, "narrow", "p50")
    assert closed is not None
    assert [mark.open for mark in closed.plots[0].marks] == [False, False]
    fill_numbers(number_store, numbers, "load", [1.0], "2026-11-01")
    alone = trend(number_store, numbers, "load", date(2026, 11, 1), date(2026, 11, 1))
    assert trend_chart(alone, ["p50"], height=220, name="chart") is None


def test_each_change_has_a_scale_of_its_own(number_store: Store, numbers: Registry) -> None:
    """However wide the interval of p99 is, that of p50 fills its row: zero is in the middle, and
    the longer end of each lies near an edge."""
    found = comparison(number_store, numbers, "load")
    folded = change_chart(found, 40)
    bars = [*folded.standing.bars, *(folded.noise.bars if folded.noise else ())]
    assert len(bars) == 5
    for bar in bars:
        assert max(abs(bar.low - 50), abs(bar.high - 50)) == pytest.approx(48, abs=1)
        assert 0 <= bar.low <= bar.at <= bar.high <= 100
    assert folded.standing.zero == 50
    assert folded.standing.ticks == ()
    first = folded.standing.bars[0]
    assert first.share.startswith("+")
    assert re.fullmatch(r"[\d.]+", first.spread), "in the unit, not in points"


def test_a_change_without_a_limit_is_told_in_words(number_store: Store, numbers: Registry) -> None:
    """Both periods only bound p99 from below: nothing is said of its change, in no picture and in
    no table."""
    found = comparison(number_store, numbers, "narrow")
    place = found.values.index("p99")
    assert found.describe(place) == "the change is unknown: its interval has no limit"
    lines = {line.value: line for line in change_lines(found, 10)}
    assert lines["p99"].before == lines["p99"].after == "at least 4 GB"
    assert lines["p99"].high == "no upper limit"
    for bar in change_chart(found, 40).standing.bars:
        assert 0 <= bar.low <= bar.high <= 100
        assert "inf" not in f"{bar.share}{bar.spread}{bar.low_text}{bar.high_text}"


def test_what_has_changed_is_named(number_store: Store, numbers: Registry) -> None:
    """The mean of tabs has risen from 5 to 8, and says so in tabs."""
    told = change_headline(comparison(number_store, numbers, "tabs"))
    assert re.fullmatch(r"mean is up [23]\.\d+ tabs \(95% CI \+[\d.]+ to \+[\d.]+\)\.", told)


def test_hardly_below_zero_is_no_whole_step(number_store: Store, numbers: Registry) -> None:
    """A band that reaches a little below zero moves the axis by as much and keeps its round ticks
    from zero on; one that reaches far has a tick below zero."""
    unit = trend(number_store, numbers, "tabs", BEFORE, DAY).unit
    little = axis_of(unit, [TrendLine("x", ((0.4, -0.01, 0.8),))])
    assert little is not None
    assert [level for level, _ in little.levels] == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8])
    assert -0.03 < little.bottom < -0.01
    far = axis_of(unit, [TrendLine("x", ((0.1, -0.4, 0.8),))])
    assert far is not None
    assert far.bottom == far.levels[0][0] < -0.4
    shared = [TrendLine("x", ((0.1, 0.0, 0.2), None)), TrendLine("y", ((0.7, 0.6, 0.8), None))]
    axis = axis_of(unit, shared)
    assert axis is not None
    found = trend(number_store, numbers, "tabs", BEFORE, date(2026, 11, 14))
    one, two = (
        draw_trend(found.periods[:2], [each], axis, height=100, name="c") for each in shared
    )
    assert one is not None
    assert two is not None
    assert one.levels == two.levels
    assert two.plots[0].marks[0].share < one.plots[0].marks[0].share, "on one scale"
