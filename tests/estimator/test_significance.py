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
from deniable_estimator.estimate import estimate
from deniable_estimator.intervals import Noise, debias
from deniable_estimator.sampling import sample_tally
from deniable_estimator.significance import (
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


def test_p_values_without_skewness_are_normal() -> None:
    """Where chance supports a value half of the time the tail is the normal one; NaN stays NaN."""
    noise = Noise.of(Fraction(3, 4), Fraction(1, 2), 10**8, 5)
    share = np.array([-30.0, 0.0, 1.6448536269514722, 37.0, np.nan]) * noise.null_error
    assert share_p_values(share + noise.step / 2, noise)[:4] == pytest.approx(
        stats.norm.sf([-30.0, 0.0, 1.6448536269514722, 37.0]), rel=1e-9
    )
    assert np.isnan(share_p_values(share, noise)[4])


@given(unit)
def test_bh_is_benjamini_hochberg(p: np.ndarray) -> None:
    """The default adjustment is Benjamini and Hochberg's, as scipy computes it."""
    assert adjust_p(p, "bh") == pytest.approx(stats.false_discovery_control(p), rel=1e-12)


@given(unit)
def test_bonferroni_multiplies(p: np.ndarray) -> None:
    """Bonferroni multiplies by the number of values, up to one, and is never below BH."""
    adjusted = adjust_p(p, "bonferroni")
    assert adjusted == pytest.approx(np.minimum(p * len(p), 1))
    assert (adjusted >= adjust_p(p, "bh") - 1e-12).all()


@pytest.mark.parametrize("adjustment", ["bh", "bonferroni"])
def test_nan_does_not_count(adjustment: Adjustment) -> None:
    """A value without reports stays NaN and leaves the others as if it were not there."""
    p = np.array([0.01, np.nan, 0.04, 0.5])
    adjusted = adjust_p(p, adjustment)
    assert np.isnan(adjusted[1])
    assert adjusted[[0, 2, 3]] == pytest.approx(adjust_p(p[[0, 2, 3]], adjustment))


@pytest.mark.parametrize(("size", "epsilon", "devices"), [(60, 2.0, 18_000), (100, 4.0, 400)])
def test_false_discoveries_stay_within_five_percent(
    size: int, epsilon: float, devices: int, make_scheme: Callable[..., Scheme]
) -> None:
    """The mean share of false discoveries at nominal 5 % is at most 5 %, and there are real ones.

    A fifth of the values share all devices equally, the others have none; 250 tallies, seed
    7; 2 comparisons, the second with 6 chance supporters of a value. BH bounds the
    expectation by .04 and the mean of 250 has a standard deviation below .0035: each exceeds
    .05 with probability below .003.
    """
    held = size // 5
    counts = np.zeros(size, np.int64)
    counts[:held] = devices // held
    scheme = make_scheme(size, epsilon)
    rng = np.random.default_rng(7)
    false, found = [], []
    for _ in range(250):
        detected = estimate(sample_tally(scheme, counts, rng), scheme).detected
        false.append(detected[held:].sum() / max(detected.sum(), 1))
        found.append(detected[:held].sum())
    assert np.mean(false) <= 0.05
    assert np.mean(found) > held / 4
