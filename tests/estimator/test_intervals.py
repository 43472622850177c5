"""Debiasing, the variance of a share, and what devices keep, against exact values."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.estimator.schemes import every_report

from deniable.protocol.mechanisms import Memoizing
from deniable.protocol.mechanisms.hashed import MemoizedLocalHashing
from deniable.protocol.mechanisms.rappor import BasicRappor, Bloom, Rappor, Rounds
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection, SubsetSelection
from deniable.protocol.randomness import PRECISION
from deniable_estimator.analyses import analysis_of, oracle_analysis
from deniable_estimator.analyses.base import OracleAnalysis
from deniable_estimator.analyses.cohorts import report_weight
from deniable_estimator.statistics.intervals import Noise, debias

SHARES = [Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(1, 8)]


@pytest.mark.parametrize("threshold", [3 << 51, (1 << 53) - 12_345, 7_777_777_777_777_777])
@pytest.mark.parametrize("k", [1, 2])
def test_expected_counts_give_the_truth(k, threshold):
    """Debiasing the expected counts, enumerated from the likelihoods, is the truth: no bias."""
    mechanism = SubsetSelection(4, k, threshold)
    for value in range(4):
        supported = sum(
            (
                share * mechanism.likelihood(report, item)
                for report, columns in every_report(mechanism)
                if value in columns
                for item, share in enumerate(SHARES)
            ),
            Fraction(0),
        )
        expected = np.array([float(supported * 1000)])
        (found,) = debias(expected, 1000, mechanism.p, mechanism.q)
        assert found == pytest.approx(float(SHARES[value]), abs=1e-12)


def test_skewness_adds_what_devices_keep():
    """The third moment of a share that is truly 0 is that of its reports, a b, and what is kept
    adds its own and three times that of both together (law of total cumulance)."""
    each = Noise(*(np.array([number]) for number in (0.04, 0.3, 0.001, 0.1)))
    kept = Noise(*(np.array([number]) for number in (0.05, 0.2, 0.001, 0.1)))
    assert each.skewness == pytest.approx(0.04 * 0.3 / 0.2**3)
    both = replace(each, kept=kept)
    assert both.null_error == pytest.approx(0.3)
    assert both.skewness == pytest.approx((0.012 + 0.05 * (3 * 0.3 + 0.2)) / 0.3**3)


def test_noise_of_a_sum_and_of_a_part():
    """Variances of independent estimates add up, those of what is kept as well, a weight counts
    squared, and the larger step stands; an infinite variance of no weight is none."""
    one = Noise(*(np.array([number, np.inf]) for number in (1.0, 2.0, 3.0, 4.0)))
    two = Noise(*(np.array([number, 1.0]) for number in (5.0, 7.0, 9.0, 2.0)))
    total = replace(one, kept=two) + replace(two, kept=one)
    assert [float(each[0]) for each in (total.a, total.b, total.c, total.step)] == [6, 9, 12, 4]
    assert total.kept is not None
    assert float(total.kept.a[0]) == 6
    for pair in ((replace(one, kept=two), one), (one, replace(one, kept=two))):
        alone = pair[0] + pair[1]
        assert alone.kept is two
    half = replace(two, kept=two).weighted(np.array([0.5, 0.0]))
    for part in (half, half.kept):
        assert part is not None
        found = [float(each[0]) for each in (part.a, part.b, part.c, part.step)]
        assert found == [1.25, 1.75, 2.25, 1.0]
    none = Noise(np.array([np.inf]), *(np.array([1.0]) for _ in range(3)))
    assert none.weighted(np.array([0.0])).a.tolist() == [0.0]


def test_the_variance_of_a_share_is_a_quadratic_and_never_negative():
    """a + b f - c f**2 with what is kept on top, each of them 0 where it would be below."""
    each = Noise(*(np.array([number]) for number in (1.0, 2.0, 4.0, 0.0)))
    assert each.at(np.array([0.5])).tolist() == [1.0]
    assert each.at(np.array([2.0])).tolist() == [0.0]
    both = replace(each, kept=each)
    assert both.at(np.array([0.5])).tolist() == [2.0]
    assert both.at(np.array([2.0])).tolist() == [0.0]


ONE = 1 << PRECISION


ROUNDS = Rounds(ONE // 4, ONE // 4, ONE * 3 // 4)
SMALL: list[Memoizing[Any]] = [
    MemoizedSubsetSelection(4, 2, ONE * 7 // 8, ONE * 3 // 4),
    MemoizedLocalHashing("city", 2, MemoizedSubsetSelection(3, 1, ONE * 7 // 8, ONE * 3 // 4)),
    BasicRappor(3, ROUNDS),
    Rappor(Bloom("city", 2, 4, 1), ROUNDS),
]


@pytest.mark.parametrize("mechanism", SMALL, ids=lambda each: each.name)
def test_memos_and_fresh_noise_make_the_report(mechanism):
    """The memo's own channel, followed by fresh noise, is the report's channel, exactly."""
    p1, q1 = analysis_of(mechanism).memo_channel()
    if isinstance(mechanism, (BasicRappor, Rappor)):
        high, low = Fraction(mechanism.rounds.q, ONE), Fraction(mechanism.rounds.p, ONE)
        p, q = mechanism.rounds.p11, mechanism.rounds.p01
    else:
        inner = mechanism.channel if isinstance(mechanism, MemoizedLocalHashing) else mechanism
        high, low, p, q = inner.fresh.p, inner.fresh.q, inner.p, inner.q
    assert p == p1 * high + (1 - p1) * low
    assert q == q1 * high + (1 - q1) * low


def test_unknown_memos_are_refused():
    """Memos of which no analysis tells raise; without memos a device keeps its value."""
    with pytest.raises(NotImplementedError, match="not known"):
        OracleAnalysis(SMALL[0]).memo_channel()
    assert OracleAnalysis(SubsetSelection.design(4, 1.0)).memo_channel() == (1, 0)


def repeated(mechanism, reports, repeats):
    """The noise of one share from so many reports."""
    noise = Noise.of(mechanism.p, mechanism.q, reports, 1)
    return replace(noise, kept=oracle_analysis(mechanism).kept_noise([reports], [repeats]))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_variance_is_that_of_two_rounds(share):
    """The noise of T reports of each device is the variance of its mean, by enumeration.

    One device of three reports: its value is drawn, then its memo, then three reports.
    """
    mechanism = MemoizedSubsetSelection.design(4, 1.0, 3.0, k=1)
    (p1, q1), fresh = analysis_of(mechanism).memo_channel(), mechanism.fresh
    memo = float(q1) + share * float(p1 - q1)
    support = {True: float(fresh.p), False: float(fresh.q)}
    mean = square = 0.0
    for held in (True, False):
        chance = memo if held else 1 - memo
        rate = support[held]
        mean += chance * rate
        square += chance * (rate**2 + rate * (1 - rate) / 3)
    expected = (square - mean**2) / float(mechanism.p - mechanism.q) ** 2
    assert repeated(mechanism, 3, 3.0).at(np.array([share]))[0] == pytest.approx(expected)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("times", [1, 2, 3, 30])
def test_skewness_is_that_of_two_rounds(times, k):
    """The skewness of a share that is truly 0 is the exact one where each device reports once,
    and otherwise at least that, and at most a tenth more: by enumeration of what a device says.

    One device reports so many times out of a memo that holds the value or not.
    """
    mechanism = MemoizedSubsetSelection.design(4, 1.0, 3.0, k=k)
    q1, fresh = float(analysis_of(mechanism).memo_channel()[1]), mechanism.fresh
    count = np.arange(times + 1)
    chance = q1 * stats.binom.pmf(count, times, float(fresh.p))
    chance += (1 - q1) * stats.binom.pmf(count, times, float(fresh.q))
    centred = count - chance @ count
    exact = chance @ centred**3 / (chance @ centred**2) ** 1.5
    found = repeated(mechanism, times, float(times)).skewness[0]
    if times == 1:
        assert found == pytest.approx(exact)
    assert exact * (1 - 1e-9) <= found <= exact * 1.1


def test_worth_is_cautious_for_every_share():
    """Noise counted by worth is never below the exact one, and meets it somewhere."""
    mechanism = MemoizedSubsetSelection.design(4, 1.0, 3.0, k=1)
    share = np.linspace(0, 1, 101)
    exact = repeated(mechanism, 1000, 8.0).at(share)
    channel = analysis_of(mechanism).memo_channel()
    weight = report_weight(channel, float(mechanism.p), float(mechanism.q), 8.0)
    cautious = Noise.of(mechanism.p, mechanism.q, 1000, 101).at(share) / weight
    ratio = cautious / exact
    assert ratio.min() == pytest.approx(1, abs=1e-3)
    assert ratio.min() >= 1 - 1e-9
    assert report_weight(channel, float(mechanism.p), float(mechanism.q), 1.0) == 1
