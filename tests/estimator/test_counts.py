"""Intervals of shares and tests of changes keep their level, by exact enumeration of the counts."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_estimator.statistics.counts import (
    change_p_values,
    p_values_of_changes,
    share_interval,
)
from deniable_estimator.statistics.intervals import Noise

LEVELS = (0.05, 0.001, 1e-5)


def shares_of(mechanism, counts, n):
    """The shares that so many supporting reports of n say."""
    return (counts / n - float(mechanism.q)) / float(mechanism.p - mechanism.q)


def law(mechanism, share, devices, times=1):
    """The exact distribution of the supporting reports of devices that each reported so often."""
    count = np.arange(times + 1)
    have, lack = (stats.binom.pmf(count, times, float(each)) for each in (mechanism.p, mechanism.q))
    each = share * have + (1 - share) * lack
    cells = 1 << (devices * times).bit_length()
    found = np.fft.irfft(np.fft.rfft(each, cells) ** devices, cells)[: devices * times + 1]
    return np.where(found > 1e-14, found, 0.0)


def noise_of(mechanism, devices, times=1):
    noise = Noise.of(mechanism.p, mechanism.q, devices * times, 1)
    if times == 1:
        return noise
    kept = Noise.of(Fraction(1), Fraction(0), devices * times, 1)
    return replace(noise, kept=kept.weighted(np.full(1, (times - 1) ** 0.5)))


def levels_of(old, new, share):
    """How often the test calls a change where there is none, over each of `LEVELS`, and how many
    supporting reports the smaller crowd expects. A crowd is its scheme, its devices and how often
    each of them reported."""
    sides = []
    for mechanism, devices, times in (old, new):
        chance = law(mechanism, share, devices, times)
        count = np.flatnonzero(chance)
        sides.append((chance[count], shares_of(mechanism, count, devices * times)))
    (chance1, share1), (chance2, share2) = sides
    p = change_p_values(
        np.repeat(share1, len(share2)),
        noise_of(*old),
        np.tile(share2, len(share1)),
        noise_of(*new),
    )
    weight = np.outer(chance1, chance2).ravel()
    expected = [
        devices * float(mechanism.q + Fraction(share) * (mechanism.p - mechanism.q))
        for mechanism, devices, _ in (old, new)
    ]
    return [float(weight[p <= level].sum()) / level for level in LEVELS], min(expected)


def covered(mechanism, n, share):
    """How often a 95% interval holds a share, exactly."""
    chance = law(mechanism, share, n)
    count = np.flatnonzero(chance)
    low, high = share_interval(
        shares_of(mechanism, count, n), Noise.of(mechanism.p, mechanism.q, n, 1), 0.95
    )
    return float(chance[count][(low <= share) & (share <= high)].sum())


@pytest.mark.parametrize("count", [0, 1, 5, 37, 99, 100])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
def test_ends_are_quantiles_of_beta_distributions(count, level):
    """Between Clopper and Pearson's and Jeffreys', mapped to shares and not clipped, to
    1.5% of the half width; beside a count of none, and far out, to 10%."""
    n, p, q = 100, Fraction(3, 4), Fraction(1, 5)
    tail = (1 - level) / 2
    rates = (
        stats.beta.ppf(tail, count + 0.2, n - count + 0.8),
        stats.beta.isf(tail, count + 0.8, n - count + 0.2),
    )
    share, *expected = ((each - 0.2) / 0.55 for each in (count / n, *rates))
    low, high = share_interval(np.array([share]), Noise.of(p, q, n, 1), level)
    half = (expected[1] - expected[0]) / 2
    near = 0.015 if 5 <= count <= 95 and level < 0.99 else 0.1
    assert [low[0], high[0]] == pytest.approx(expected, abs=near * half)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.002, 0.003, 0.01, 0.1])
def test_few_supporters_are_covered(share):
    """With 500 values, epsilon 8 and 500 reports, 0.14 reports support a value by chance. Wilson's
    interval covers a share of 0 in 87% of the cases."""
    assert covered(SubsetSelection.design(500, 8.0), 500, share) >= 0.935


@pytest.mark.parametrize("n", [5, 10, 35])
def test_few_reports_are_covered(n):
    """At the worst share as often as is stated, and more often on average over all shares."""
    mechanism = SubsetSelection.design(4, 8.0)
    found = [covered(mechanism, n, share) for share in np.linspace(0, 1, 401)]
    assert min(found) >= 0.928
    assert np.mean(found) > 0.95


@pytest.mark.campaign
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0, 4.0, 6.0, 8.0])
def test_every_share_is_covered(epsilon):
    """In 93.5% or more of the cases, exactly, for 2 to 1,000 values and 100 to 20,000 reports, and
    rates of support that are close together."""
    for size in (2, 5, 20, 100, 500, 1000):
        mechanism = SubsetSelection.design(size, epsilon)
        for n in (100, 300, 500, 2_000, 20_000):
            for share in (0.0, *np.geomspace(0.5 / n, 0.9, 60)):
                assert covered(mechanism, n, share) >= 0.935, (size, n, share)


@pytest.mark.parametrize("times", [4, 40])
def test_what_devices_keep_widens_intervals_where_it_is(times):
    """Reports of fewer devices have wider intervals where devices have the value, up to the ends
    of the range of shares; below 0 and above 1 nothing is kept."""
    mechanism, n = SubsetSelection.design(20, 4.0), 20_000
    share = np.array([-0.02, -0.001, 0.0005, 0.003, 0.02, 0.5, 0.999, 1.001, 1.02])
    noise = noise_of(mechanism, n // times, times)
    low, high = share_interval(share, noise, 0.95)
    alone = share_interval(share, replace(noise, kept=None), 0.95)
    assert (low <= alone[0] + 1e-12).all()
    assert (high >= alone[1] - 1e-12).all()
    assert low[0] == alone[0][0]
    assert high[-1] == alone[1][-1]
    # In the middle each report counts as one of a `times`-th of a device's.
    wider = (high[5] - low[5]) / (alone[1][5] - alone[0][5])
    expected = np.sqrt(noise.at(share[5:6]) / replace(noise, kept=None).at(share[5:6]))
    assert wider == pytest.approx(expected[0], rel=0.01)


def test_nothing_known_is_no_interval():
    """Without reports an interval has no ends; a share that is not known has none either, and
    neither has a change."""
    noise = Noise.of(Fraction(3, 4), Fraction(1, 4), np.array([0, 10, 10]), 3)
    share = np.array([0.0, 0.2, np.nan])
    low, high = share_interval(share, noise, 0.95)
    assert (low[0], high[0]) == (-np.inf, np.inf)
    assert np.isfinite([low[1], high[1]]).all()
    assert np.isnan([low[2], high[2]]).all()
    p = change_p_values(share, noise, np.array([0.2, 0.2, 0.2]), noise)
    assert np.isnan(p).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("n1", "n2", "total"),
    [(1000, 1000, 17), (20_000, 300, 5), (28_000, 1000, 60), (50, 80, 40), (10**7, 10**6, 900)],
)
def test_p_values_are_those_of_fishers_exact_test(n1, n2, total):
    """Twice the mid-p-value, or one tail if the other one cannot be so small: within 7% down to
    1e-12, for every count with the same sum, alike from either side, and with others as alone."""
    count = np.arange(max(0, total - n1), min(total, n2) + 1)
    exact = stats.hypergeom(n1 + n2, total, n2)
    above, below, at = exact.sf(count - 1), exact.cdf(count), exact.pmf(count)
    least = np.minimum(above, below)
    other = np.where(above <= below, below[0], above[-1])
    last = np.where(least > at, at, 0.0)  # The last possible count counts whole.
    expected = np.minimum(np.minimum(1, 2 * least - last), np.where(other > least, least, 1))
    p, q = Fraction(1, 2), Fraction(1, 100)
    small, large = (
        ((each / n - 0.01) / 0.49, Noise.of(p, q, n, len(count)))
        for each, n in ((total - count, n1), (count, n2))
    )
    again = replace(large[1], kept=Noise.of(Fraction(1), Fraction(0), n2, len(count)))
    pairs = [(*small, *large), (*large, *small), (*small, large[0], again)]
    found, back, kept = p_values_of_changes(pairs)
    assert found == pytest.approx(back, rel=1e-9)
    for one, pair in zip((found, kept), pairs[::2], strict=True):
        assert one == pytest.approx(change_p_values(*pair), rel=1e-9)
    far = expected > 1e-12
    assert found[far] == pytest.approx(expected[far], rel=0.07)


def test_normal_shares_are_compared_as_such():
    """Estimates that are no counts have the p-value of the normal distribution."""
    noise = replace(Noise.none(3), a=np.full(3, 1e-4))
    z = np.array([0.5, 2.0, 5.0])
    found = change_p_values(np.full(3, 0.2), noise, 0.2 + z * 2**0.5 * 0.01, noise)
    assert found == pytest.approx(2 * stats.norm.sf(z), rel=1e-4)


CROWDS = [
    # values, epsilon, devices before, how often each, devices after, share
    (2, 1.0, 4_000, 1, 1_000, 0.3),
    (100, 4.0, 1_000, 1, 1_000, 0.02),
    (100, 6.0, 28_000, 1, 1_000, 0.01),
    (100, 6.0, 5_000, 1, 500, 0.02),
    (300, 8.0, 20_000, 1, 300, 0.03),
    (100, 4.0, 1_000, 4, 1_000, 0.003),
    (20, 6.0, 1_000, 4, 1_000, 0.03),
]


@pytest.mark.parametrize(("size", "epsilon", "before", "times", "after", "share"), CROWDS)
def test_the_test_has_its_level(size, epsilon, before, times, after, share):
    """Where nothing changed, 0.5 to 1.1 times the level, exactly: for crowds of unlike size, and a
    day against four on which the same devices reported. Intervals took it to 114 times."""
    mechanism = SubsetSelection.design(size, epsilon)
    found, _ = levels_of((mechanism, before, times), (mechanism, after, 1), share)
    assert max(found) <= 1.1
    assert min(found) >= 0.4
    assert found[0] >= 0.5


@pytest.mark.campaign
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 6.0, 8.0])
def test_the_test_never_exceeds_its_level(epsilon):
    """At most 1.1 times the level for 2 to 300 values and crowds of any two sizes, and at least
    half of it where the smaller crowd expects five supporting reports, at .05; ten at .001."""
    for size in (2, 10, 100, 300):
        mechanism = SubsetSelection.design(size, epsilon)
        for before, times, after in (
            *((300, 1, 300), (1_000, 1, 1_000), (4_000, 1, 1_000), (5_000, 1, 500)),
            *((20_000, 1, 300), (300, 4, 300), (1_000, 4, 1_000)),
        ):
            for share in (0.0, 0.003, 0.01, 0.03, 0.1):
                rate = float(mechanism.q) + share * float(mechanism.p - mechanism.q)
                if rate * (before * times * after) ** 0.5 > 400:
                    continue  # Many counts take long, and are normal.
                crowds = (mechanism, before, times), (mechanism, after, 1)
                for old, new in (crowds, crowds[::-1]):
                    found, expected = levels_of(old, new, share)
                    assert max(found) <= 1.1, (old, new, share)
                    assert expected < 5 or found[0] >= 0.5, (old, new, share)
                    assert expected < 10 or found[1] >= 0.5, (old, new, share)
