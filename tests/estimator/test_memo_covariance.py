"""Changes of metrics with memos: what the noise of one device has in common in two windows, and how
often intervals of a change hold it."""

from __future__ import annotations

import math
from datetime import date, timedelta
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from deniable import Scheme
from deniable.protocol.mechanisms import MECHANISMS, Memoizing, Report
from deniable.protocol.mechanisms.base import ONE
from deniable.protocol.mechanisms.dbitflip import DBitFlip
from deniable.protocol.mechanisms.hashed import MemoizedLocalHashing
from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
from deniable.protocol.mechanisms.number_range import NumberRange
from deniable.protocol.mechanisms.rappor import BasicRappor, Bloom, Rappor, Rounds
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses import analysis_of
from deniable_estimator.asking.fetch import Question
from deniable_estimator.asking.history import Look, inspect
from deniable_estimator.judging.newest_window import MetricRules, judge
from deniable_estimator.kinds.basis import Part
from deniable_estimator.kinds.registry import answer_of
from deniable_estimator.statistics.counts import share_interval
from deniable_estimator.statistics.intervals import (
    Noise,
    debias,
    interval_of_difference,
)
from deniable_estimator.statistics.participation import Participation

Matrix = NDArray[np.float64]

_ROUNDS = Rounds(ONE // 2, ONE // 4, ONE * 3 // 4)
_STRINGS = ["Bergen", "Oslo", "Bodø", "Molde", "Narvik"]

CASES: dict[str, tuple[Memoizing[Any], list[Any]]] = {
    "randomized response": (MemoizedSubsetSelection.design(2, 1.0, 3.0), [0, 1]),
    "two of five": (MemoizedSubsetSelection.design(5, 1.0, 3.0, k=2), list(range(5))),
    "hashing": (
        MemoizedLocalHashing("a", 3, MemoizedSubsetSelection.design(3, 1.0, 3.0, k=1)),
        _STRINGS,
    ),
    "basic RAPPOR": (BasicRappor(4, _ROUNDS), list(range(4))),
    "RAPPOR": (Rappor(Bloom("a", 3, 4, 2), _ROUNDS), _STRINGS),
    "dBitFlip, one row": (
        DBitFlip(NumberRange("0", "10"), 4, 4, ONE // 4, ONE // 5),
        [-1, 2, 7, 12],
    ),
    "dBitFlip, two rows": (
        DBitFlip(NumberRange("0", "10"), 4, 2, ONE // 4, ONE // 5),
        [-1, 2, 7, 12],
    ),
    "retention": (
        MemoizedRetention.design("week", 1, ("lifecycle", "cohorts"), 1.0, 3.0),
        list(range(9)),
    ),
}


def _flips(true, width, one, zero):
    """The distribution of the bitmaps that come of one whose bits are 1 with these chances."""
    each = [one if true >> place & 1 else zero for place in range(width)]
    return np.array(
        [
            math.prod(p if made >> place & 1 else 1 - p for place, p in enumerate(each))
            for made in range(1 << width)
        ]
    )


def rounds_of(mechanism, entry, width):
    """The chances of the memos of an entry, and of the reports of each memo."""
    if isinstance(mechanism, MemoizedLocalHashing):
        return rounds_of(mechanism.channel, entry, width)
    if isinstance(mechanism, MemoizedRetention):
        first, second = mechanism.channels
        if entry < first.size:
            return rounds_of(first, entry, width)
        return rounds_of(second, entry - first.size, width)
    if isinstance(mechanism, MemoizedSubsetSelection):
        size, k = mechanism.size, mechanism.k
        p1, q1 = float(mechanism.permanent.p), float(mechanism.permanent.q)
        made = [each for each in range(1 << size) if each.bit_count() == k]
        likely = mechanism.fresh.likelihood
        fresh = [
            [float(likely(Report(0, s.bit_length() - 1 if k == 1 else s), m)) for s in made]
            for m in range(size)
        ]
        return np.array([p1 if m == entry else q1 for m in range(size)]), np.array(fresh)
    if isinstance(mechanism, DBitFlip):
        a, g = float(mechanism.memo_flipped), mechanism.fresh / ONE
        true = 1 << entry if entry < width else 0
        memo = _flips(true, width, 1 - a, a)
        return memo, np.array([_flips(m, width, 1 - g, g) for m in range(1 << width)])
    assert isinstance(mechanism, BasicRappor | Rappor)
    rounds = mechanism.rounds
    turned = rounds.f / (2 * ONE)
    memo = _flips(entry, width, 1 - turned, turned)
    p, q = rounds.p / ONE, rounds.q / ONE
    return memo, np.array([_flips(m, width, q, p) for m in range(1 << width)])


def covariance(mechanism, row, x, y):
    """That of the indicators of all reports of a device in two windows, in which it has the values
    x and y: whatever is read from a report is a weighted sum of these."""
    width = mechanism.rows[row].width
    one, two = mechanism.cell(row, x), mechanism.cell(row, y)
    (memo, fresh), (other, again) = (rounds_of(mechanism, each, width) for each in (one, two))
    if one == two:
        joint = fresh.T @ (memo[:, None] * fresh)
    else:
        joint = sum(
            a * b * np.outer(fresh[m], again[n])
            for (m, a), (n, b) in product(enumerate(memo), enumerate(other))
        )
    return np.asarray(joint - np.outer(memo @ fresh, other @ again))


def test_every_mechanism_with_memos_is_here():
    """A mechanism with memos that ships is enumerated."""
    shipped = {mechanism.name for mechanism, _ in CASES.values()}
    assert shipped == {name for name in MECHANISMS if "memo" in name} | {
        *("basic_rappor", "rappor", "dbitflip")
    }


@pytest.mark.parametrize("case", CASES)
def test_memos_never_make_up_for_each_other(case):
    """Given a device's row, no function of one report has a negative covariance in two windows:
    the same entry has a covariance without negative eigenvalues, and another entry has none. So
    sqrt(sigma1**2 + sigma2**2) holds for cells, sums of cells, means and quantiles alike."""
    mechanism, values = CASES[case]
    same = 0
    for row in range(len(mechanism.rows)):
        for x, y in product(values, repeat=2):
            found = covariance(mechanism, row, x, y)
            assert np.abs(found.sum(axis=0)).max() < 1e-12
            if mechanism.cell(row, x) == mechanism.cell(row, y):
                same += 1
                assert np.allclose(found, found.T)
                least = np.linalg.eigvalsh(found).min()
                assert least > -1e-12
                assert np.trace(found) > 1e-6
            else:
                assert np.abs(found).max() < 1e-12
    assert same >= len(values)


@pytest.mark.parametrize(("cells", "most"), [(16, 0.0), (64, 0.03)])
def test_rows_take_little_from_a_sum_of_cells(cells, most):
    """A device of dBitFlip keeps its row. If its number moves to a cell of another row, sums that
    hold both cells are negatively correlated: at epsilon 1 never with 16 cells, which are one row,
    and with 64 by at most 3% of the variance, were all devices to move between the same two."""
    mechanism = DBitFlip.design(NumberRange("0", "1000"), 1.0, 4.0, cells)
    rows, found = len(mechanism.rows), [0.0]
    for below in range(1, cells):
        centred = (np.arange(cells) < below) - below / cells
        noise = float(mechanism.share_variance) * (centred**2).sum()
        for x, y in ((0, 1), (0, below - 1), (below, cells - 1), (cells - 2, cells - 1)):
            if x < y < cells and x % rows != y % rows:
                pull = -centred[x] * centred[y]
                own = noise + (rows - 1) * (centred[x] ** 2 + centred[y] ** 2) / 2
                found.append(-pull / own)
    assert max(found) <= most
    assert most == 0 or max(found) > most / 2


def drawn_shares(mechanism, changing, churn, rng, *, trials=1_000, devices=1_500):
    """How many reports support value 0 in each of two windows of so many trials.

    In the first window 30% of devices have value 0, and all others are alike. A device is replaced
    with the chance `churn`; of the others each draws a value with the chance `changing`, 40% of
    them value 0.
    """
    size, shape = mechanism.size, (trials, devices)

    def values(first):
        return np.where(rng.random(shape) < first, 0, rng.integers(1, size, shape))

    def memos(value):
        """Whether each memo is value 0."""
        chance = np.where(value == 0, float(mechanism.permanent.p), float(mechanism.permanent.q))
        return rng.random(shape) < chance

    def reports(memo):
        chance = np.where(memo, float(mechanism.fresh.p), float(mechanism.fresh.q))
        return (rng.random(shape) < chance).sum(axis=1)

    old = values(0.3)
    moves = rng.random(shape) < changing
    new = np.where(moves, values(0.4), old)
    gone = rng.random(shape) < churn
    new = np.where(gone, values(0.3), new)
    memo = memos(old)
    again = np.where((new != old) | gone, memos(new), memo)
    return reports(memo), reports(again)


@pytest.mark.campaign
@pytest.mark.parametrize("size", [2, 5, 50])
@pytest.mark.parametrize("churn", [0.0, 0.2])
@pytest.mark.parametrize("changing", [0.0, 0.01, 0.1, 1.0])
def test_intervals_of_a_change_hold_it(changing, churn, size):
    """95% intervals hold the change among all devices in 95% of 1,000 crowds or more, whatever part
    of the values changes: seed 31; not below .93, 2.9 standard errors (24 comparisons, alpha .05
    of all)."""
    rng = np.random.default_rng(31)
    mechanism = MemoizedSubsetSelection.design(size, 1.0, 3.0)
    n, noise = 1_500, Noise.of(mechanism.p, mechanism.q, 1_500, 1)
    ends = []
    for support in drawn_shares(mechanism, changing, churn, rng, devices=n):
        share = debias(support, n, mechanism.p, mechanism.q)
        ends.append((share, *share_interval(share, noise, 0.95)))
    low, high = interval_of_difference(*ends)
    truth = (1 - churn) * changing * 0.1
    assert np.mean((low <= truth) & (truth <= high)) >= 0.93


def crowd_of_memos(rng, windows, shift):
    """The tallies of 20,000 devices that keep their memos over so many days; in the last one so
    many devices more have the first value."""
    scheme = DAILY
    mechanism = scheme.mechanism
    assert isinstance(mechanism, MemoizedSubsetSelection)
    fresh = analysis_of(mechanism.fresh)
    values = rng.choice(5, 20_000, p=(0.3, 0.25, 0.2, 0.15, 0.1))
    true = rng.random((20_000, 5)) < float(mechanism.permanent.p)
    other = (np.arange(5) + rng.integers(1, 5, (20_000, 5))) % 5
    memos = np.where(true, np.arange(5), other)
    found = []
    for number in range(windows):
        if number == windows - 1:
            values = np.where(rng.random(20_000) < shift / 0.7, 0, values)
        held = np.bincount(memos[np.arange(20_000), values], minlength=5)
        label = (date(2026, 10, 5) + timedelta(number)).isoformat()
        rows = fresh.sample_rows(np.arange(5), held, rng)
        found.append(Tally("m", scheme.fingerprint, (label,), rows))
    return found


DAILY = Scheme("category", MemoizedSubsetSelection.design(5, 1.0, 3.0), tuple("abcde"))


@pytest.mark.campaign
def test_a_shift_is_a_change_and_no_anomaly():
    """A share that rises by 12 points in a day is told as a change of that day in each of 5 crowds,
    and never as an anomaly; in the days before, 140 judgements tell nothing at levels that allow
    .013 false findings in all: seed 34, which is the alpha."""
    rng = np.random.default_rng(34)
    level = 3e-5
    false = told = 0
    for _ in range(5):
        tallies = crowd_of_memos(rng, 36, 0.12)
        of = {each.windows[0]: each for each in tallies}
        looks = [Look.of(label, answer_of(each, DAILY)) for label, each in of.items()]
        assert not inspect("m", looks).strange

        def ask(labels, of=of):
            chosen = [of[each] for each in labels]
            rows = sum(each.rows[0].cells for each in chosen)
            n = sum(each.reports for each in chosen)
            tally = Tally("m", DAILY.fingerprint, tuple(labels), (TallyRow(n, rows),))
            counts = {each.windows[0]: each.reports for each in chosen}
            return Question((Part(tally, DAILY, None, Participation(counts)),))

        *early, last = of
        for window in early[7:]:
            judged = judge(ask, early[: early.index(window) + 1], window, MetricRules(), level)
            assert judged is not None
            false += len(judged.changes)
        judged = judge(ask, list(of), last, MetricRules(), level)
        assert judged is not None
        told += any(each.detail == "a/up" for each in judged.changes)
    assert told == 5
    assert not false
