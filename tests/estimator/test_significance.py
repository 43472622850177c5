"""p-values and their adjustment, against scipy and by the false discoveries they allow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from hearsay import Scheme
from hearsay_estimator.estimate import estimate
from hearsay_estimator.sampling import sample_tally
from hearsay_estimator.significance import Adjustment, adjust_p, critical_value, p_values

unit = arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 1))


def test_p_values_are_the_normal_tail() -> None:
    """p-values agree with scipy's survival function far into both tails; NaN stays NaN."""
    z = np.array([-40.0, -3.0, 0.0, 1.6448536269514722, 6.0, 37.0])
    assert p_values(z) == pytest.approx(stats.norm.sf(z), rel=1e-12)
    assert np.isnan(p_values(np.array([np.nan]))[0])


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


def test_critical_value_is_the_normal_quantile() -> None:
    """The critical value of a family is the quantile at 1 - alpha / family."""
    assert critical_value(0.05, 100) == pytest.approx(stats.norm.isf(0.0005), rel=1e-9)


def test_false_discoveries_stay_within_five_percent(make_scheme: Callable[..., Scheme]) -> None:
    """The mean share of false discoveries at nominal 5 % is at most 5 %, and most finds are real.

    d = 60, of which 12 values share all devices equally and 48 have none; epsilon 2, n =
    18,000, 400 tallies, seed 7. BH bounds the expectation by .04 (48/60 of 5 %); the mean of
    400 has a standard deviation of about .003, so it exceeds .05 with probability .0004.
    """
    counts = np.zeros(60, np.int64)
    counts[:12] = 1500
    scheme = make_scheme(60, 2.0)
    rng = np.random.default_rng(7)
    false, found = [], []
    for _ in range(400):
        detected = estimate(sample_tally(scheme, counts, rng), scheme).detected
        false.append(detected[12:].sum() / max(detected.sum(), 1))
        found.append(detected[:12].sum())
    assert np.mean(false) <= 0.05
    assert np.mean(found) > 9
