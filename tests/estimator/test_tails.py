"""Tail probabilities against scipy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from deniable_estimator.statistics.intervals import Noise
from deniable_estimator.statistics.significance import low_scores
from deniable_estimator.statistics.tails import (
    binomial_tail,
    chi_square_tail,
    normal_tails,
    poisson_tail,
    student_tails,
)


@pytest.mark.parametrize(
    ("count", "trials", "p"),
    [
        (0, 5, 0.2),
        (5, 5, 0.1587),
        (6, 5, 0.2),
        (30, 100, 0.9),
        (212, 1000, 0.1587),
        (161_000, 10**6, 0.1587),
    ],
)
def test_binomial(count: int, trials: int, p: float) -> None:
    """From certainty to one in a million, for up to a million trials."""
    assert binomial_tail(count, trials, p) == pytest.approx(
        stats.binom.sf(count - 1, trials, p), rel=1e-6
    )


@pytest.mark.parametrize(("count", "mean"), [(10, 2.8), (3, 0.5), (100_500, 1e5), (60, 28.0)])
def test_poisson(count: int, mean: float) -> None:
    """Far above the mean it is exact, and bounds a binomial's tail; up to the mean it is 1."""
    found = poisson_tail(count, mean)
    assert found == pytest.approx(stats.poisson.sf(count - 1, mean), rel=1e-6)
    assert found >= stats.binom.sf(count - 1, 200_000, mean / 200_000)
    assert poisson_tail(int(mean), mean) == 1.0
    assert poisson_tail(int(mean) + 1, mean) == 1.0
    assert poisson_tail(int(mean) + 2, mean) < 1.0


@pytest.mark.parametrize(("x", "freedom"), [(1100, 1023), (12, 3), (0.1, 1), (0, 4), (3000, 1023)])
def test_chi_square(x: float, freedom: int) -> None:
    """For odd and even degrees of freedom, also where it is all but impossible."""
    assert chi_square_tail(x, freedom) == pytest.approx(stats.chi2.sf(x, freedom), rel=1e-6)


@pytest.mark.parametrize("freedom", [1, 2, 3, 6, 9, 27])
@pytest.mark.parametrize("t", [0.0, -1.3, 3.3, 8.0])
def test_student(t: float, freedom: int) -> None:
    """Both sides, for odd and even degrees of freedom, to 14 decimals."""
    expected = 2 * stats.t.sf(abs(t), freedom)
    assert student_tails(t, freedom) == pytest.approx(expected, rel=1e-6, abs=1e-14)


def test_normal() -> None:
    """Both sides of the standard normal, far out too."""
    for z in (0.0, -1.96, 9.0):
        assert normal_tails(z) == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-9)


def test_low_scores_never_exaggerate() -> None:
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


@pytest.mark.parametrize("trials", [10**10, 1 << 40])
@pytest.mark.parametrize("p", [0.01, 0.5])
@pytest.mark.parametrize("z", [-3, 0, 2, 5, 10, 20])
def test_huge_binomials(trials: int, p: float, z: int) -> None:
    """Counts whose sum would have millions of terms have the same tail, without the sum."""
    count = round(trials * p + z * math.sqrt(trials * p * (1 - p)))
    assert binomial_tail(count, trials, p) == pytest.approx(
        stats.binom.sf(count - 1, trials, p), rel=1e-4
    )
