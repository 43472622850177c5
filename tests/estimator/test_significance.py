"""p-values, their adjustment, tails and the test of equal shares, against scipy."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.stats import chi2, chi2_contingency, false_discovery_control

from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_estimator.statistics import significance
from deniable_estimator.statistics.intervals import Noise, debias
from deniable_estimator.statistics.significance import (
    adjust_p,
    benjamini_hochberg,
    homogeneity,
    low_scores,
    share_p_values,
)
from deniable_estimator.statistics.tails import (
    binomial_tail,
    chi_square_tail,
    normal_tails,
    poisson_tail,
    student_tails,
    upper_tails,
)

unit = arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 1))


def test_p_values_are_the_normal_tail():
    """p-values agree with scipy's survival function far into both tails; NaN stays NaN."""
    z = np.array([-40.0, -3.0, 0.0, 1.6448536269514722, 6.0, 37.0])
    assert upper_tails(z) == pytest.approx(stats.norm.sf(z), rel=1e-12)
    both = [normal_tails(each) for each in z]
    assert both == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-12)
    assert np.isnan(upper_tails(np.array([np.nan]))[0])


@pytest.mark.parametrize(
    ("size", "epsilon", "k", "n"),
    [(2, 1.0, 1, 100), (100, 4.0, 2, 2000), (100, 1.0, 1, 10_000), (100, 1.0, 27, 100_000)],
)
def test_p_values_are_binomial_tails(size, epsilon, k, n, make_scheme):
    """From one half to one in a million, p-values are the exact tails, or a little above them."""
    mechanism = make_scheme(size, epsilon, k).mechanism
    p, q = mechanism.p, mechanism.q
    first, last = stats.binom.isf([0.5, 1e-6], n, float(q)).astype(int)
    counts = np.arange(first, last + 1)
    noise = Noise.of(p, q, n, len(counts))
    ratio = share_p_values(debias(counts, n, p, q), noise) / stats.binom.sf(counts - 1, n, float(q))
    assert (ratio > 0.98).all()
    assert (ratio < 1.6).all()
    likely = stats.binom.sf(counts - 1, n, float(q)) > 0.01
    assert (ratio[likely] < 1.05).all()


@pytest.mark.parametrize(
    ("q", "n"),
    [(4.5e-5, 10), (4.5e-5, 30), (1e-4, 3_000), (1e-3, 1_000), (0.01, 2_000), (0.2, 100), (0.4, 5)],
)
def test_p_values_of_few_supporters_are_exact(q, n):
    """Where few reports support a value by chance the p-value of each count is the binomial tail,
    down to one in 10**12; without support it is 1, and never are all values of a list found."""
    p, exact = Fraction(1, 2), Fraction(q)
    counts = np.arange(n + 1)[: 1 + int(stats.binom.isf(1e-12, n, q))]
    found = share_p_values(debias(counts, n, p, exact), Noise.of(p, exact, n, len(counts)))
    assert found == pytest.approx(stats.binom.sf(counts - 1, n, q), rel=1e-7)
    assert found[0] == 1.0


def step_up(p, alpha):
    """Storey's test at one level, by its definition: the largest t < 1/2 up to which the false
    part, estimated as 1.1 pi0 m t / #{p <= t}, is at most alpha. The answer is p <= t."""
    null = min(len(p), 2 * (1 + (p >= 0.5).sum()))
    fine = [t for t in p if t < 0.5 and 1.1 * null * t <= alpha * (p <= t).sum()]
    return p <= max(fine, default=-1.0)


@given(unit, st.floats(0.001, 0.999))
def test_storey_is_the_step_up_test_at_every_level(p, alpha):
    """An adjusted p-value is at most alpha exactly where Storey's test rejects at alpha."""
    adjusted = adjust_p(p, "storey")
    # At a level that is itself an adjusted p-value, rounding decides.
    if not np.isclose(adjusted, alpha, rtol=1e-9).any():
        assert ((adjusted <= alpha) == step_up(p, alpha)).all()
    assert ((adjusted >= 0) & (adjusted <= 1)).all()
    assert (np.diff(adjusted[np.argsort(p)]) >= 0).all()


@given(unit)
def test_bonferroni_multiplies(p):
    """Bonferroni multiplies by the number of values, up to one."""
    assert adjust_p(p, "bonferroni") == pytest.approx(np.minimum(p * len(p), 1))


@pytest.mark.parametrize("adjustment", ["storey", "bonferroni"])
def test_nan_does_not_count(adjustment):
    """A value without reports stays NaN and leaves the others as if it were not there."""
    p = np.array([0.01, np.nan, 0.04, 0.6])
    adjusted = adjust_p(p, adjustment)
    assert np.isnan(adjusted[1])
    assert adjusted[[0, 2, 3]] == pytest.approx(adjust_p(p[[0, 2, 3]], adjustment))


def test_storey_counts_a_half_among_those_that_nobody_has():
    """A p-value of exactly 1/2 is none of those rejected: of four values one such makes the part
    that nobody has all of them, and none the half of them."""
    with_half = adjust_p(np.array([0.01, 0.5, 0.2, 0.3]), "storey")
    assert with_half[:2] == pytest.approx([1.1 * 4 * 0.01, 1.0])
    without = adjust_p(np.array([0.01, 0.49, 0.2, 0.3]), "storey")
    assert without == pytest.approx(1.1 * 2 * np.array([0.01, 0.49 / 4, 0.2 / 2, 0.3 / 3]))


@pytest.mark.parametrize("skewness", [-0.5, -0.3, 0.01, 0.3, 0.5])
def test_scores_are_those_of_a_gamma(skewness):
    """A normal deviate that is as far out as under Pearson's type III, to a hundredth, within two
    standard deviations on either side."""
    z = np.linspace(-2, 2, 21)
    exact = stats.norm.isf(stats.pearson3.sf(z, skewness))
    found = significance.normal_score(z, np.full(21, skewness))
    assert found == pytest.approx(exact, abs=0.01)
    assert significance.normal_score(z, np.zeros(21)).tolist() == z.tolist()


def test_scores_beyond_count_half_of_a_report():
    """A score below 0 or above 1 is that of a share moved back by half of what one report moves it,
    and by the slack."""
    noise = Noise(*(np.array([number]) for number in (0.04, 0.0, 0.001, 0.1)))
    assert significance.low_scores(np.array([-0.45]), noise) == pytest.approx([-2.0])
    for slack in (0.0, 0.1):
        found = significance.far_scores(np.array([-0.45, 0.5, 1.45]), noise, slack)
        beyond = 0.4 - slack, -0.55 - slack
        expected = [beyond[0] / 0.2, beyond[1] / 0.2, beyond[0] / 0.039**0.5]
        assert found == pytest.approx(expected)


def found_p(counts, sizes, p, q):
    """The p-values from the supporting reports, shape (S, d), of segments of these sizes."""
    share = (counts / sizes[:, None] - float(q)) / float(p - q)
    return homogeneity(share, [Noise.of(p, q, int(n), counts.shape[1]) for n in sizes])


def by_hand(counts, sizes, least=5.0):
    """The same from the counts, value by value: the larger p of Pearson's statistic and of the
    arcsine root's."""
    rate = counts.sum(0) / sizes.sum()
    out = np.full(counts.shape[1], np.nan)
    for value in range(counts.shape[1]):
        big = sizes * rate[value] >= least
        n, s = sizes[big], counts[big, value]
        rest = sizes[~big].sum()
        if rest * rate[value] >= least:
            n, s = np.r_[n, rest], np.r_[s, counts[~big, value].sum()]
        if len(n) > 1:
            t = s.sum() / n.sum()
            pearson = ((s - n * t) ** 2 / (n * t * (1 - t))).sum()
            y, w = np.arcsin(np.sqrt((s + 0.375) / (n + 0.75))), 4 * (n + 0.5)
            root = (w * (y - (w * y).sum() / w.sum()) ** 2).sum()
            out[value] = chi2.sf(min(pearson, root), len(n) - 1)
    return out


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_it_is_a_test_of_counts(epsilon):
    """For one report of each device the p-values are those of the counts, with small segments
    merged; where all are large, those of a contingency table."""
    mechanism = SubsetSelection.design(20, epsilon)
    rng = np.random.default_rng(3)
    sizes = np.array([20_000.0, 5_000.0, 300.0, 40.0, 12.0])
    rate = rng.uniform(float(mechanism.q), float(mechanism.p), 20)
    counts = rng.binomial(sizes[:, None].astype(int), rate).astype(float)
    found = found_p(counts, sizes, mechanism.p, mechanism.q)
    assert np.allclose(found, by_hand(counts, sizes), rtol=1e-6, atol=1e-12)
    large = found_p(1e4 * counts[:2], 1e4 * sizes[:2], mechanism.p, mechanism.q)
    for value in range(20):
        table = 1e4 * np.array([counts[:2, value], sizes[:2] - counts[:2, value]])
        pearson = chi2_contingency(table, correction=False)[1]
        # Of large counts the arcsine root says the same.
        assert math.log10(large[value] + 1e-290) == pytest.approx(
            math.log10(pearson + 1e-290), rel=0.02, abs=0.02
        )


def test_too_small_segments_are_not_tested():
    """A value is not tested where fewer than two segments can expect five supporting reports."""
    mechanism = SubsetSelection.design(100, 4.0)
    counts = np.zeros((40, 100))
    assert np.isnan(found_p(counts, np.full(40, 1.0), mechanism.p, mechanism.q)).all()
    counts[0, 0] = 1
    assert np.isnan(found_p(counts, np.full(40, 2.0), mechanism.p, mechanism.q)).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_adjusted_values_are_scipys(p):
    """Benjamini and Hochberg's adjusted p-values are scipy's times the safety factor, and NaN is
    left out."""
    given_ = np.array(p)
    factor = 1.1 if len(p) > 1 else 1.0
    expected = np.minimum(factor * false_discovery_control(given_, method="bh"), 1.0)
    inside = expected < 1
    assert np.allclose(benjamini_hochberg(given_)[inside], expected[inside])
    with_gap = np.append(given_, np.nan)
    assert np.isnan(benjamini_hochberg(with_gap)[-1])
    assert np.allclose(benjamini_hochberg(with_gap)[:-1], benjamini_hochberg(given_))


@pytest.mark.parametrize(
    ("count", "trials", "p", "rel"),
    [
        (0, 5, 0.2, 1e-6),
        (5, 5, 0.1587, 1e-6),
        (6, 5, 0.2, 1e-6),
        (30, 100, 0.9, 1e-6),
        (212, 1000, 0.1587, 1e-6),
        (161_000, 10**6, 0.1587, 1e-6),
        # The sum would have millions of terms.
        *(
            (round(trials * p + z * math.sqrt(trials * p * (1 - p))), trials, p, 1e-4)
            for trials in (10**10, 1 << 40)
            for p in (0.01, 0.5)
            for z in (-3, 0, 2, 5, 10, 20)
        ),
    ],
)
def test_binomial(count, trials, p, rel):
    """From certainty to one in 10**88, for any number of trials."""
    expected = stats.binom.sf(count - 1, trials, p)
    assert binomial_tail(count, trials, p) == pytest.approx(expected, rel=rel)


@pytest.mark.parametrize(("count", "mean"), [(10, 2.8), (3, 0.5), (100_500, 1e5), (60, 28.0)])
def test_poisson(count, mean):
    """Far above the mean it is exact, and bounds a binomial's tail; up to the mean it is 1."""
    found = poisson_tail(count, mean)
    assert found == pytest.approx(stats.poisson.sf(count - 1, mean), rel=1e-6)
    assert found >= stats.binom.sf(count - 1, 200_000, mean / 200_000)
    assert poisson_tail(int(mean), mean) == 1.0
    assert poisson_tail(int(mean) + 1, mean) == 1.0
    assert poisson_tail(int(mean) + 2, mean) < 1.0


@pytest.mark.parametrize("freedom", [1, 2, 3, 6, 9, 27])
@pytest.mark.parametrize("t", [0.0, -1.3, 3.3, 8.0])
def test_student(t, freedom):
    """Both sides, for odd and even degrees of freedom, to 14 decimals."""
    expected = 2 * stats.t.sf(abs(t), freedom)
    assert student_tails(t, freedom) == pytest.approx(expected, rel=1e-6, abs=1e-14)


def test_low_scores_never_exaggerate():
    """A share of a value that nobody has is as low as -1 at most as often as a normal is, to 2%.

    Exactly, over all counts of 1,000 reports, for rare and common support.
    """
    for p, q in ((0.5, 0.02), (0.5, 0.27), (0.73, 0.27)):
        counts = np.arange(1001)
        share = (counts / 1000 - q) / (p - q)
        noise = Noise(
            np.full(1001, q * (1 - q) / (1000 * (p - q) ** 2)),
            np.full(1001, (1 - 2 * q) / (1000 * (p - q))),
            np.full(1001, 1e-3),
            np.full(1001, 1e-3 / (p - q)),
        )
        low = low_scores(share, noise) < -1
        assert stats.binom.pmf(counts[low], 1000, q).sum() < stats.norm.cdf(-1) * 1.02


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 31, 1023])
def test_tails_are_scipys(freedom):
    """The tails of chi-square are scipy's for each degree that 32 segments can have and for many,
    also where they are all but impossible."""
    x = np.array([0.0, 1e-9, 0.1, 3.0, 40.0, 300.0, 1100.0, 3000.0])
    found = [chi_square_tail(each, freedom) for each in x]
    assert np.allclose(found, chi2.sf(x, freedom), rtol=1e-6, atol=1e-300)
