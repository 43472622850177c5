"""How often the same devices can have reported: bounds that hold, and that are met."""

import itertools
from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from deniable.protocol import windows
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.kinds.registry import answer_of
from deniable_estimator.statistics.participation import Participation, overlap, together


def named(reports):
    return {f"window {place}": float(n) for place, n in enumerate(reports)}


@pytest.mark.parametrize(
    ("reports", "rate", "expected"),
    [
        ([], 1.0, 1.0),
        ([0, 0], 1.0, 1.0),
        ([500], 1.0, 1.0),
        ([500, 500, 500], 1.0, 3.0),
        ([500, 500, 500], 0.1, 1.2),
        ([1000, 10], 1.0, 1030 / 1010),
    ],
)
def test_repeats_by_hand(reports, rate, expected):
    """Equal windows repeat as often as there are windows; a small one hardly counts."""
    assert Participation(named(reports), rate).repeats == pytest.approx(expected)


def test_repeats_is_the_largest_possible():
    """No way for devices to report has more repetition, and one has as much.

    All sets of devices in two windows of up to 3 and 2 out of 4 devices, exhaustively.
    """
    for first, second in itertools.product(range(1, 4), range(1, 3)):
        most = max(
            sum(
                (device in one) + (device in two) + 2 * (device in one and device in two)
                for device in range(4)
            )
            for one in map(set, itertools.combinations(range(4), first))
            for two in map(set, itertools.combinations(range(4), second))
        )
        found = Participation(named([first, second])).repeats
        assert found == pytest.approx(most / (first + second))


@pytest.mark.parametrize(
    ("devices", "windows", "rate"), [(50, 365, 0.02), (400, 365, 0.02), (50, 30, 0.2), (5, 30, 0.2)]
)
def test_counts_that_vary_by_chance_do_not_hide_repetition(devices, windows, rate):
    """Devices that report at random repeat at least as often as they do on average, to 5%, over 40
    draws, seed 1; windows without reports are not told. The smaller count of two windows, by
    itself, gave as little as the half."""
    rng, bounds, actual = np.random.default_rng(1), [], []
    for _ in range(40):
        reported = rng.random((devices, windows)) < rate
        counts, times = reported.sum(axis=0), reported.sum(axis=1)
        bounds.append(Participation(named(counts[counts > 0].tolist()), rate).repeats)
        actual.append((times**2).sum() / times.sum())
    assert np.mean(bounds) >= 0.95 * np.mean(actual)
    assert np.mean(bounds) <= 1.5 * np.mean(actual)


@pytest.mark.parametrize(("windows", "rate", "most"), [(365, 0.02, 8), (30, 1.0, 8), (30, 0.1, 1)])
def test_a_ledger_ends_the_repetition(windows, rate, most):
    """Equal windows repeat as the coins say until the ledger is spent, by the binomial
    distribution; a budget that allows no report was another one when they were made."""
    times = np.arange(windows + 1)
    chance = stats.binom.pmf(times, windows, rate)
    capped = np.minimum(times, most)
    expected = (chance @ capped**2) / (chance @ capped)
    crowd = named([1000] * windows)
    assert Participation(crowd, rate, most + 0.5, 1.0).repeats == pytest.approx(expected)
    assert Participation(crowd, rate, windows, 1.0).repeats == pytest.approx(
        1 + (windows - 1) * rate
    )
    assert Participation(crowd, rate, 0.5, 1.0).repeats == 1


def test_where_only_the_sum_is_known_all_devices_were_there(make_scheme):
    """Without word of who reported, each window of a tally has the same devices."""
    scheme = make_scheme(2, 1.0)
    row = TallyRow(900, np.array([500, 400]))
    tally = Tally("m", scheme.fingerprint, ("a", "b", "c"), (row,))
    assert Participation.evenly(tally).repeats == 3
    assert answer_of(tally, scheme).devices == 300
    alone = Participation({"a": 900})
    assert answer_of(tally, scheme, participation=alone).devices == 900


USES = st.lists(
    st.lists(st.sampled_from([None, 0, 1, 2]), min_size=4, max_size=4), min_size=1, max_size=6
)
"""Device -> the scheme under which it reports in each of four windows, if it does."""


@given(USES, st.lists(st.floats(0.01, 1), min_size=3, max_size=3), st.booleans())
def test_no_crowd_exceeds_the_bounds(uses, weights, limited):
    """However devices change between three schemes, their squares, products and the variance of
    a weighted average are within the bounds, with or without a budget that they keep to."""
    costs = [1.0, 2.5, 0.75]
    schemes = sorted({scheme for device in uses for scheme in device if scheme is not None})
    if not schemes:
        return
    times = np.array([[device.count(scheme) for device in uses] for scheme in schemes])
    spent = (times.T * [costs[scheme] for scheme in schemes]).sum(axis=1).max()
    parts = []
    for scheme in schemes:
        reports = [sum(device[window] == scheme for device in uses) for window in range(4)]
        held = {name: n for name, n in named(reports).items() if n}
        parts.append(Participation(held, 1.0, float(spent) if limited else None, costs[scheme]))
    matrix = overlap(parts)
    products = times @ times.T / np.outer(times.sum(axis=1), times.sum(axis=1))
    assert (products <= matrix + 1e-9).all()
    share = np.array(weights)[: len(schemes), None]
    share /= share.sum()
    each = share / times.sum(axis=1)[:, None]
    actual = ((each * times).sum(axis=0) ** 2).sum()
    own = (share[:, 0] ** 2 * np.diag(matrix)).sum()
    assert actual <= own + together(parts, share, matrix)[0] + 1e-9
    whole = Participation.merged(parts)
    assert (times.sum(axis=0) ** 2).sum() <= whole.n * whole.repeats + 1e-9


def test_schemes_of_other_devices_vary_apart():
    """In one window a device uses one scheme; and who has spent a budget under the first scheme
    has nothing left for the second, so that the average varies as if it were of one scheme."""
    apart = [Participation({"a": 100.0}), Participation({"a": 300.0})]
    half = np.array([[0.5], [0.5]])
    assert together(apart, half, overlap(apart)) == [0.0]
    crowd = {"first": ["a", "b"], "second": ["c", "d"]}
    spent = [Participation(dict.fromkeys(each, 100.0), 1.0, 2.0, 1.0) for each in crowd.values()]
    matrix = overlap(spent)
    own = (half[:, 0] ** 2 * np.diag(matrix)).sum()
    assert own + together(spent, half, matrix)[0] == pytest.approx(1 / 200)
    rich = [Participation(part.reports) for part in spent]
    assert own + together(rich, half, overlap(rich))[0] == pytest.approx(1 / 100)


def test_a_common_budget_bounds_a_device_over_schemes():
    """Reports that cost four times as much are four times as few: where weights are as the costs
    are, no mixture lets a device count for more than under one scheme alone."""
    crowd = {1.0: ["a", "b", "c", "d"], 4.0: ["e", "f", "g", "h"]}
    parts = [
        Participation(dict.fromkeys(windows, 100.0), 1.0, 4.0, cost)
        for cost, windows in crowd.items()
    ]
    weights, matrix = np.array([[0.2], [0.8]]), overlap(parts)
    assert together(parts, weights, matrix) == pytest.approx([0.0], abs=1e-12)
    endless = [Participation(part.reports) for part in parts]
    assert together(endless, weights, overlap(endless))[0] > 0.001


@pytest.mark.parametrize("groups", [2, 3, 5])
def test_devices_that_take_turns_repeat_as_their_groups_do(groups):
    """Exact enumeration: of one device in each group, the repetition over any windows is no more
    than the bound, and over windows of one group it is the bound."""
    labels = windows.span("day", date(2026, 11, 1), date(2026, 11, 12))
    for chosen in itertools.combinations(labels, 4):
        numbers = [windows.number(label) % groups for label in chosen]
        times = np.array([numbers.count(group) for group in range(groups)])
        found = Participation(dict.fromkeys(chosen, 1.0), one_in=groups).repeats
        assert found >= (times**2).sum() / times.sum() - 1e-12
        if len(set(numbers)) == 1:
            assert found == pytest.approx(4.0)


def test_turns_never_count_as_less_than_the_ledger_allows():
    """A device that takes turns sends all its reports, unlike one that reports at random: over a
    year with four of them, four is the repetition."""
    labels = windows.span("day", date(2026, 1, 1), date(2026, 12, 31))
    reports = dict.fromkeys(labels, 100.0)
    found = Participation(reports, budget=4.0, cost=1.0, one_in=92).repeats
    assert found == 4.0
    assert Participation(reports, 1 / 92, budget=4.0, cost=1.0).repeats < 4.0


def test_schemes_share_the_devices_of_one_group():
    """Windows of the same group may have the same devices under another scheme; of another group
    only those that drew again, after an edit."""
    one = Participation({"2026-11-01": 100.0}, one_in=7)
    assert one.shared(Participation({"2026-11-08": 80.0}, one_in=7)) == 80.0
    assert one.shared(Participation({"2026-11-09": 80.0}, one_in=7)) == pytest.approx(80 / 7)
    assert one.shared(Participation({"2026-11-01": 80.0}, one_in=7)) == 0.0
