"""p-values and their adjustment, against scipy and by the false discoveries they allow."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from deniable import Scheme
from deniable_estimator.statistics import significance
from deniable_estimator.statistics.intervals import Noise, debias
from deniable_estimator.statistics.significance import (
    Adjustment,
    adjust_p,
    p_values,
    share_p_values,
)

unit = arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 1))


def test_p_values_are_the_normal_tail() -> None:
    """p-values agree with scipy's survival function far into both tails; NaN stays NaN."""
    z = np.array([-40.0, -3.0, 0.0, 1.6448536269514722, 6.0, 37.0])
    assert p_values(z) == pytest.approx(stats.norm.sf(z), rel=1e-12)
    assert np.isnan(p_values(np.array([np.nan]))[0])


@pytest.mark.parametrize(
    ("size", "epsilon", "k", "n"),
    [(2, 1.0, 1, 100), (100, 4.0, 2, 2000), (100, 1.0, 1, 10_000), (100, 1.0, 27, 100_000)],
)
def test_p_values_are_binomial_tails(
    size: int, epsilon: float, k: int, n: int, make_scheme: Callable[..., Scheme]
) -> None:
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
def test_p_values_of_few_supporters_are_exact(q: float, n: int) -> None:
    """Where few reports support a value by chance the p-value of each count is the binomial tail,
    down to one in 10**12; without support it is 1, and never are all values of a list found."""
    p, exact = Fraction(1, 2), Fraction(q)
    counts = np.arange(n + 1)[: 1 + int(stats.binom.isf(1e-12, n, q))]
    found = share_p_values(debias(counts, n, p, exact), Noise.of(p, exact, n, len(counts)))
    assert found == pytest.approx(stats.binom.sf(counts - 1, n, q), rel=1e-7)
    assert found[0] == 1.0


def test_p_values_of_few_supporters_add_up_over_schemes() -> None:
    """Of a sum of two schemes with the same q the p-value is that of all reports together, to
    10%."""
    p, q, first, second = Fraction(1, 2), Fraction(1, 1000), 2_000, 3_000
    size = 12
    counts = np.arange(size)
    one, other = Noise.of(p, q, first, size), Noise.of(p, q, second, size)
    weights = np.full(size, first / 5_000), np.full(size, second / 5_000)
    noise = one.weighted(weights[0]) + other.weighted(weights[1])
    share = debias(counts, 5_000, p, q)
    exact = stats.binom.sf(counts - 1, 5_000, float(q))
    assert share_p_values(share, noise)[1:] == pytest.approx(exact[1:], rel=0.1)


def step_up(p: np.ndarray, alpha: float) -> np.ndarray:
    """Storey's test at one level, by its definition: the largest t < 1/2 up to which the false
    part, estimated as 1.1 pi0 m t / #{p <= t}, is at most alpha. The answer is p <= t."""
    null = min(len(p), 2 * (1 + (p >= 0.5).sum()))
    fine = [t for t in p if t < 0.5 and 1.1 * null * t <= alpha * (p <= t).sum()]
    return p <= max(fine, default=-1.0)


@given(unit, st.floats(0.001, 0.999))
def test_storey_is_the_step_up_test_at_every_level(p: np.ndarray, alpha: float) -> None:
    """An adjusted p-value is at most alpha exactly where Storey's test rejects at alpha."""
    adjusted = adjust_p(p, "storey")
    # At a level that is itself an adjusted p-value, rounding decides.
    if not np.isclose(adjusted, alpha, rtol=1e-9).any():
        assert ((adjusted <= alpha) == step_up(p, alpha)).all()
    assert ((adjusted >= 0) & (adjusted <= 1)).all()
    assert (np.diff(adjusted[np.argsort(p)]) >= 0).all()


@given(unit)
def test_bonferroni_multiplies(p: np.ndarray) -> None:
    """Bonferroni multiplies by the number of values, up to one."""
    assert adjust_p(p, "bonferroni") == pytest.approx(np.minimum(p * len(p), 1))


@pytest.mark.parametrize("adjustment", ["storey", "bonferroni"])
def test_nan_does_not_count(adjustment: Adjustment) -> None:
    """A value without reports stays NaN and leaves the others as if it were not there."""
    p = np.array([0.01, np.nan, 0.04, 0.6])
    adjusted = adjust_p(p, adjustment)
    assert np.isnan(adjusted[1])
    assert adjusted[[0, 2, 3]] == pytest.approx(adjust_p(p[[0, 2, 3]], adjustment))


def test_storey_counts_a_half_among_those_that_nobody_has() -> None:
    """A p-value of exactly 1/2 is none of those rejected: of four values one such makes the part
    that nobody has all of them, and none the half of them."""
    with_half = adjust_p(np.array([0.01, 0.5, 0.2, 0.3]), "storey")
    assert with_half[:2] == pytest.approx([1.1 * 4 * 0.01, 1.0])
    without = adjust_p(np.array([0.01, 0.49, 0.2, 0.3]), "storey")
    assert without == pytest.approx(1.1 * 2 * np.array([0.01, 0.49 / 4, 0.2 / 2, 0.3 / 3]))


@pytest.mark.parametrize("skewness", [-0.5, -0.3, 0.01, 0.3, 0.5])
def test_scores_are_those_of_a_gamma(skewness: float) -> None:
    """A normal deviate that is as far out as under Pearson's type III, to a hundredth, within two
    standard deviations on either side."""
    z = np.linspace(-2, 2, 21)
    exact = stats.norm.isf(stats.pearson3.sf(z, skewness))
    found = significance.normal_score(z, np.full(21, skewness))
    assert found == pytest.approx(exact, abs=0.01)
    assert significance.normal_score(z, np.zeros(21)).tolist() == z.tolist()


def test_low_scores_count_half_of_a_report() -> None:
    """A score below is that of a share moved up by half of what one report moves it."""
    noise = Noise(*(np.array([number]) for number in (0.04, 0.0, 0.001, 0.1)))
    assert significance.low_scores(np.array([-0.45]), noise) == pytest.approx([-2.0])
