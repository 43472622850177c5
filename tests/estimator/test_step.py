"""Where a series steps: false steps, places, confidence sets, and what is said of a trend."""

import math
from dataclasses import replace
from datetime import date, timedelta
from types import SimpleNamespace

import numpy as np
import pytest

from deniable.protocol import windows
from deniable_estimator.annotations import Annotation
from deniable_estimator.asking.trend import Period, Trend
from deniable_estimator.asking.trend_words import TrendStep, step_of
from deniable_estimator.document.units import SHARES
from deniable_estimator.kinds.base import Series
from deniable_estimator.statistics.participation import Participation, shared_noise
from deniable_estimator.statistics.step import LEAST_SIDE, Step, find_step


def rising(at, count, size=20.0):
    return size * (np.arange(count) >= at)


@pytest.mark.parametrize("at", [LEAST_SIDE, 10, 20 - LEAST_SIDE])
def test_a_clear_step_is_placed_exactly(at):
    """Also where numbers are unknown, and downwards; the set holds nothing else."""
    noise = np.random.default_rng(1).normal(size=20)
    found = find_step(rising(at, 20) + noise, np.ones(20))
    assert found is not None
    assert (found.place, found.first, found.last, found.p_value) == (at, at, at, 0.001)
    assert found.size == pytest.approx(20, abs=2)
    down = find_step(noise - rising(at, 20), np.ones(20))
    assert down is not None
    assert (down.place, down.size < 0) == (at, True)
    gap = 0 if at > LEAST_SIDE else 19
    longer = np.insert(rising(at, 20) + noise, gap, np.nan)
    moved = find_step(longer, np.ones(21))
    assert moved is not None
    assert moved.place == at + (gap == 0)


def test_weights_count():
    """A number with a huge variance says nothing: the step is where the others have it."""
    y, variance = rising(10, 20), np.ones(20)
    y[5], variance[5] = 60.0, 1e9
    found = find_step(y, variance)
    assert found is not None
    assert found.place == 10
    assert found.std_error == pytest.approx(math.sqrt(1 / 10 + 1 / 9), rel=1e-3)


@pytest.mark.parametrize(("error", "told"), [(0.0006, "+2.8"), (0.0004, "+2.830")])
def test_a_step_is_told_with_the_digits_of_its_interval(error, told):
    """As any other change: half of a 95% interval from 0.1 points on takes one decimal."""
    days = [date(2026, 11, number) for number in (2, 3)]
    periods = tuple(Period(day.isoformat(), day, day, False, None, 0) for day in days)
    trend = Trend("m", "day", 0.95, periods)
    found = Step(1, 1, 1, 0.0283, error, 1e-9)
    step = TrendStep(trend, "yes", found, periods, periods[1], ())
    assert step.told().startswith(f"A step of {told} points, most likely on 2026-11-03 (95% CI")
    for by, when in (("week", "in week 2026-11-03"), ("month", "in 2026-11-03")):
        longer = replace(step, trend=replace(trend, by=by))
        assert f", most likely {when} (" in longer.told()


def test_a_step_names_what_happened_late_in_the_week_before():
    """What happens on a Friday hardly shows in its week, and fully in the next one."""
    labels = windows.span("week", date(2026, 6, 1), date(2026, 11, 15))
    noise, error = np.random.default_rng(1).normal(size=(len(labels), 1)), np.ones(1)
    periods = []
    for label, number in zip(labels, rising(12, len(labels))[:, None] + noise, strict=True):
        series = Series(("yes",), number, error, number - 2, number + 2)
        estimate = SimpleNamespace(
            series=series,
            unit=SHARES,
            leading="yes",
            alike=lambda _: True,
            participation=Participation({label: 100.0}, 0.0),
        )
        days = windows.first_day(label), windows.last_day(label)
        periods.append(Period(label, *days, False, estimate, 100))
    friday = windows.first_day(labels[12]) - timedelta(3)
    noted = [
        Annotation(1, friday - timedelta(ago), None, text, None, ())
        for ago, text in ((7, "Long ago"), (0, "Release"))
    ]
    step = step_of(Trend("m", "week", 0.95, tuple(periods)), ("yes",), noted)
    assert step.period.label == labels[12]
    assert [each.label for each in step.periods] == labels[11:13]
    assert [each.text for each in step.noted] == ["Release"]


def test_one_exact_number_leaves_no_step():
    """Beside a number whose noise is as good as none the others have no weight: there is no step,
    and nothing is divided by zero."""
    y, variance = rising(10, 20), np.ones(20)
    y[1], variance[1] = 0.5, 1e-17
    with np.errstate(all="raise"):
        assert find_step(y, variance) is None


@pytest.mark.parametrize("case", ["level", "line", "two steps", "odd day", "short", "weekends"])
def test_what_is_no_single_step_has_none(case):
    """A drift, two steps, one odd day, too few numbers, and weekends."""
    time, noise = np.arange(56), np.random.default_rng(2).normal(0, 0.5, 56)
    series = {
        "level": noise,
        "line": noise + time * 0.5,
        "two steps": noise + rising(20, 56) - 2 * rising(40, 56),
        "odd day": noise + 20.0 * (time == 30),
        "short": rising(3, 2 * LEAST_SIDE - 1),
        "weekends": noise + 10.0 * (time % 7 >= 5),
    }[case]
    assert find_step(series, np.full(len(series), 0.25), np.arange(len(series)) % 7) is None


@pytest.mark.parametrize("at", [1, 2, 26, 27])
def test_a_step_near_an_end_is_not_dated_elsewhere(at):
    """With two numbers on a side nothing is said: the third one shows whether it stays."""
    noise = np.random.default_rng(3).normal(size=28)
    assert find_step(noise + rising(at, 28), np.ones(28)) is None


@pytest.mark.parametrize("odd", [0, -1])
def test_an_odd_day_at_an_end_hides_no_step(odd):
    """As a holiday on the newest day."""
    y = np.random.default_rng(3).normal(size=60) + rising(30, 60, 5.0)
    y[odd] += 5.0
    found = find_step(y, np.ones(60))
    assert found is not None
    assert abs(found.place - 30) <= 1


@pytest.mark.campaign
@pytest.mark.parametrize("times", [1.0, 2.0])
@pytest.mark.parametrize("count", [28, 56, 91])
def test_false_steps_are_as_rare_as_stated(count, times):
    """At most 5% of series without a step have one, also where they vary twice as much as their
    variances say: 800 each, seed 5; at most .073, three standard errors."""
    rng = np.random.default_rng(5)
    variance = rng.uniform(0.5, 2, count)
    found = sum(
        find_step(rng.normal(0, times * np.sqrt(variance)), variance, np.arange(count) % 7)
        is not None
        for _ in range(800)
    )
    assert found / 800 <= 0.073


def wandering(rng, count, stay, kept):
    """Noise of variance 1, of which a part is kept by devices of which some leave each day."""
    held = rng.normal(size=count)
    for at in range(1, count):
        held[at] = stay * held[at - 1] + math.sqrt(1 - stay**2) * held[at]
    return math.sqrt(kept) * held + math.sqrt(1 - kept) * rng.normal(size=count)


def test_kept_noise_that_wanders_is_no_step():
    """Half of these series look like a step to who takes their numbers for those of other devices
    each day. What really steps is seen all the same, also within a wide interval."""
    rng, ones = np.random.default_rng(7), np.ones(49)
    series = [wandering(rng, 49, 0.93, 1.0) for _ in range(20)]
    alone, together = (
        sum(find_step(y, ones, kept=kept) is not None for y in series) for kept in (0.0, 1.0)
    )
    assert together <= 2 < 6 <= alone
    found = find_step(wandering(rng, 49, 0.99, 1.0) + rising(30, 49, 4.0), ones, kept=1.0)
    assert found is not None
    assert found.place == 30
    assert found.std_error == pytest.approx(math.sqrt(2), rel=0.05)


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        ({"kept": 0.5}, 0.5),
        ({"kept": 0.5, "sample_rate": 0.1}, 0.06),
        ({"kept": 0.5, "budget": 3.0}, 0.5 * 2 / 29),
    ],
)
def test_how_much_noise_days_share(limits, most):
    """All that a device keeps if each reports daily, and less where it reports now and then, or
    until its ledger is spent; weeks share more of theirs, as what is fresh averages out."""
    days = [(date(2026, 11, 2) + timedelta(at)).isoformat() for at in range(30)]
    parts = [Participation({day: 10_000.0}, **limits) for day in days]
    assert shared_noise(parts) == pytest.approx(most, rel=0.2)
    weeks = [Participation.merged(parts[at : at + 7]) for at in range(0, 28, 7)]
    assert shared_noise(weeks) > shared_noise(parts)
    assert shared_noise(parts[:1]) == 0


@pytest.mark.campaign
@pytest.mark.parametrize(("count", "stay"), [(28, 0.9), (49, 0.97), (91, 0.985), (49, 0.998)])
@pytest.mark.parametrize("kept", [0.1, 1.0])
def test_false_steps_of_kept_noise_are_as_rare_as_stated(count, stay, kept):
    """At most 5% of series without a step have one, whatever part of the noise is kept and however
    many devices leave: 300 each, seed 8; at most .088, three standard errors."""
    rng = np.random.default_rng(8)
    found = sum(
        find_step(wandering(rng, count, stay, kept), np.ones(count), kept=kept) is not None
        for _ in range(300)
    )
    assert found / 300 <= 0.088


@pytest.mark.campaign
@pytest.mark.parametrize("count", [56, 91])
@pytest.mark.parametrize(("weeks", "bound", "placed"), [(2, 0.88, 0.8), (1, 0.714, 0.55)])
def test_a_step_is_placed_within_two_days(count, weeks, bound, placed):
    """A step of three standard errors of the change between two weeks (1.6 times those of a day),
    and of one week (1.13 times), in 600 series with weekends: how often it is found and placed
    within two days, and that its 95% set holds it in 95% of those that are found. Nobody can place
    more than `bound`: so many does the most likely place where both levels and the weekends are
    known. Seed 6; bands of three standard errors."""
    rng = np.random.default_rng(6)
    size, near, held, found, best = 3 * math.sqrt(weeks / 7), 0, 0, 0, 0
    for _ in range(600):
        at = int(rng.integers(count // 4, 3 * count // 4))
        noise = rng.normal(size=count) + rising(at, count, size)
        known = np.cumsum((noise - size / 2)[::-1])[::-1]
        best += abs(int(known.argmax()) - at) <= 2
        weekend = 0.5 * (np.arange(count) % 7 > 4)
        step = find_step(noise + weekend, np.ones(count), np.arange(count) % 7)
        if step is not None:
            found += 1
            near += abs(step.place - at) <= 2
            held += step.first <= at <= step.last
    assert abs(best / 600 - bound) <= 3 * math.sqrt(bound * (1 - bound) / 600)
    assert near / 600 >= placed - 3 * math.sqrt(placed * (1 - placed) / 600)
    assert near / 600 <= bound + 3 * math.sqrt(bound * (1 - bound) / 600)
    assert held / found >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / found)
