"""The mechanism of a retention, over its whole output space: one report, one memo, whole lives."""

import itertools
import math
from fractions import Fraction

import pytest

from deniable.protocol.errors import SchemeError
from deniable.protocol.exact import exp_below
from deniable.protocol.mechanisms import Report, rebuild
from deniable.protocol.mechanisms.memoized_retention import ASKS, MAX_AGES, MemoizedRetention
from deniable.protocol.randomness import PRECISION

from .two_rounds import memo_chances, report_chances, worst_ratio

ONE = 1 << PRECISION
Life = tuple[int, ...]
"""The items of a device in the windows in which it is active."""

CASES = {
    "both": MemoizedRetention.design("week", 2, ASKS, 1.0, 2.5),
    "lifecycle": MemoizedRetention.design("day", 0, ("lifecycle",), 2.0, 2.2),
    "cohorts": MemoizedRetention.design("month", 3, ("cohorts",), 1.5, 4.0),
    "sets of two": MemoizedRetention.design("week", 4, ("cohorts",), 0.5, 3.0),
}

each_case = pytest.mark.parametrize("mechanism", CASES.values(), ids=CASES)


def lives(ages, count):
    """The lives over `count` windows, by all first windows that make a difference, and all sets of
    windows in which a device is active."""
    made = MemoizedRetention.design("week", max(ages, 1), ASKS, 1.0, 2.0)
    for first in range(-2 * ages - 3, count):
        span = range(max(first, -1), count)
        for used in itertools.product((False, True), repeat=len(span)):
            active = {number for number, each in zip(span, used, strict=True) if each} | {first}
            yield tuple(
                made.item(number, first, number - 1 in active)
                for number in sorted(active)
                if number >= 0
            )


def items(mechanism):
    return range(3 * (mechanism.ages + 2))


@each_case
def test_one_report_is_within_epsilon_and_one_memo_within_its_own(mechanism):
    """Over all items, memos and reports: the two rounds make each report exactly as often as
    `likelihood` says, the chances add up to one, and the largest ratios are the three odds."""
    assert mechanism.odds <= exp_below(mechanism.epsilon)
    one = {}
    worst_memo = worst_fresh = Fraction(1)
    for item in items(mechanism):
        whole = Fraction(0)
        for row, channel in enumerate(mechanism.channels):
            place = mechanism.place(row, item)
            composed = {}
            for memo, chance in memo_chances(channel, place).items():
                for columns, each in report_chances(channel, memo).items():
                    composed[columns] = composed.get(columns, Fraction(0)) + chance * each
            for columns, chance in composed.items():
                exact = chance / len(mechanism.rows)
                assert mechanism.likelihood(Report(row, columns), item) == exact
                one.setdefault((row, columns), []).append(exact)
                whole += exact
        assert whole == 1
    for channel in mechanism.channels:
        by_place = [memo_chances(channel, place) for place in range(channel.size)]
        by_memo = [report_chances(channel, memo) for memo in range(channel.size)]
        worst_memo = max(worst_memo, worst_ratio(by_place))
        worst_fresh = max(worst_fresh, worst_ratio(by_memo))
    assert max(max(each) / min(each) for each in one.values()) == mechanism.odds
    assert worst_memo == mechanism.lifetime_odds
    assert worst_fresh == mechanism.fresh_odds


def law(channel, places):
    """How often all reports of a life together are each sequence of sets: one memo for each place,
    and all reports of a place from its memo."""
    chances = {}
    order = list(dict.fromkeys(places))
    by_memo = [report_chances(channel, memo) for memo in range(channel.size)]
    for drawn in itertools.product(range(channel.size), repeat=len(order)):
        held = dict(zip(order, drawn, strict=True))
        chance = math.prod(memo_chances(channel, place)[held[place]] for place in order)
        for said in itertools.product(by_memo[0], repeat=len(places)):
            each = math.prod(
                by_memo[held[place]][columns] for place, columns in zip(places, said, strict=True)
            )
            chances[said] = chances.get(said, Fraction(0)) + chance * each
    return chances


@pytest.mark.parametrize(("asked", "ages", "most"), [("lifecycle", 0, 3), ("cohorts", 1, 2)])
def test_a_whole_life_has_few_memos_and_keeps_to_their_bounds(asked, ages, most):
    """Over all lives in four windows: the reports of two lives that change at the same times
    differ by at most the memos' odds, one for each memo of a life; and those of any two by at most
    the fresh odds to the number of reports."""
    mechanism = MemoizedRetention.design("week", ages, (asked,), 1.0, 1.5)
    (channel,) = mechanism.channels
    by_shape = {}
    by_length = {}
    for life in sorted(set(lives(max(ages, 1), 4))):
        if asked == "lifecycle":
            places = tuple(item // 3 for item in life)
        else:
            places = tuple(mechanism.place(0, item) for item in life)
        order = list(dict.fromkeys(places))
        shape = tuple(map(order.index, places))
        known = by_shape.setdefault(shape, {})
        if places and places not in known:
            known[places] = law(channel, places)
            by_length.setdefault(len(places), []).append(known[places])
    assert {max(shape) + 1 for shape in by_shape if shape} == set(range(1, most + 1))
    for shape, laws in by_shape.items():
        if shape:
            bound = mechanism.lifetime_odds ** (max(shape) + 1)
            assert worst_ratio(list(laws.values())) <= bound
    assert any(len(laws) > 1 for laws in by_shape.values())
    for length, each in by_length.items():
        assert worst_ratio(each) <= mechanism.fresh_odds**length


def test_a_year_of_averaging_gains_no_more_than_the_memo():
    """The best guess of a cohort from all reports of up to 52 windows, exactly: it is right more
    often with each report, and never as often as with the memo itself before one's eyes."""
    mechanism = MemoizedRetention.design("week", 1, ("cohorts",), 1.0, 2.0)
    (channel,) = mechanism.channels
    truth = channel.permanent.p
    hit, miss = channel.fresh.p, channel.fresh.q
    before = Fraction(1, 3)
    for windows in (1, 4, 13, 52):
        # Given its memo, how often each cell was reported says all; the order says nothing.
        given = [hit**count * miss ** (windows - count) for count in range(windows + 1)]
        right = Fraction(0)
        for first in range(windows + 1):
            for second in range(windows + 1 - first):
                counts = (first, second, windows - first - second)
                ways = math.comb(windows, first) * math.comb(windows - first, second)
                best = given[max(counts)]  # the cell that was reported most often
                rest = sum((given[count] for count in counts), Fraction(0)) - best
                right += ways * (truth * best + (1 - truth) / 2 * rest) / 3
        assert before < right < truth
        before = right
    assert truth - before < Fraction(1, 100)  # a year of reports tells the memo, and no more


@pytest.mark.parametrize("ages", [1, 2, 12, MAX_AGES])
def test_cohorts_do_not_repeat_within_what_is_told_apart(ages):
    """In a window, the cohorts of the windows up to `ages` back have cells of their own, whichever
    window it is; all others are "older". A cohort has the same cell in all of its windows."""
    mechanism = MemoizedRetention.design("week", ages, ("cohorts",), 1.0, 3.0)
    for number in range(5 * ages):
        cells = [
            mechanism.place(0, mechanism.item(number, first, before=False))
            for first in range(number - 3 * ages, number + 1)
        ]
        assert cells[: 2 * ages] == [ages + 1] * (2 * ages)
        assert sorted(cells[2 * ages :]) == list(range(ages + 1))
        later = mechanism.place(0, mechanism.item(number + ages, number, before=True))
        assert later == cells[-1]


@pytest.mark.parametrize("asks", [("lifecycle",), ("cohorts",), ASKS])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("ages", [1, 12, MAX_AGES])
def test_designs_use_both_epsilons_and_no_more(asks, epsilon, ages):
    """Each row has the whole of both; a scheme that is read again is the same mechanism."""
    made = MemoizedRetention.design("week", ages, asks, epsilon, 2 * epsilon)
    for channel in made.channels:
        assert epsilon - 1e-6 < channel.epsilon <= epsilon + 1e-15
        assert 2 * epsilon - 1e-6 < channel.lifetime_epsilon <= 2 * epsilon + 1e-14
    again = rebuild("memoized_retention", made.parameters())
    assert isinstance(again, MemoizedRetention)
    assert again.parameters() == made.parameters()
    assert (again.asks, again.ages, again.window) == (asks, made.ages, "week")
    assert again.texts == made.texts
    assert len(again.texts) == sum(row.width for row in again.rows)


def test_questions_and_ages_belong_together():
    """Ages without cohorts, and items that are none are errors."""
    only = CASES["lifecycle"].parameters()
    with pytest.raises(SchemeError, match="asks for lifecycle with 2 ages"):
        rebuild("memoized_retention", {**only, "ages": 2})
    for item in (-1, 12):
        with pytest.raises(ValueError, match="outside the domain"):
            CASES["both"].randomize(item)


@pytest.mark.parametrize(("asks", "most"), [(("lifecycle",), 3), (("cohorts",), 2)])
def test_no_life_has_more_memos(asks, most):
    """Over all lives of seven windows with two ages: a device that answers cohorts has its cohort
    and then "older", and one that answers the lifecycle at most the three."""
    ages = 2 if asks == ("cohorts",) else 0
    mechanism = MemoizedRetention.design("week", ages, asks, 1.0, 2.0)
    found = set()
    for life in lives(2, 7):
        whole = [divmod(item, 4) for item in life]
        entries = [
            mechanism.cell(0, lifecycle * (ages + 2) + (cohort if ages else 0))
            for lifecycle, cohort in whole
        ]
        found.add(len(set(entries)))
        if asks == ("cohorts",):
            assert entries == sorted(entries, key=lambda each: each == ages + 4)  # never back
        else:
            assert 0 not in entries[1:]  # new at most once, and first
    assert max(found) == most
