"""Whether a share is the same in all segments: the statistic, its merging, and false finds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, chi2_contingency, false_discovery_control

from deniable.mechanisms import SubsetSelection
from deniable_estimator.statistics.homogeneity import (
    _chi_square_tails,
    benjamini_hochberg,
    homogeneity,
)
from deniable_estimator.statistics.intervals import FloatArray, Noise


def found_p(counts: FloatArray, sizes: FloatArray, p: Fraction, q: Fraction) -> FloatArray:
    """The p-values from the supporting reports, shape (S, d), of segments of these sizes."""
    share = (counts / sizes[:, None] - float(q)) / float(p - q)
    return homogeneity(share, [Noise.of(p, q, int(n), counts.shape[1]) for n in sizes])


def by_hand(counts: FloatArray, sizes: FloatArray, least: float = 5.0) -> FloatArray:
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
def test_it_is_a_test_of_counts(epsilon: float) -> None:
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


def test_too_small_segments_are_not_tested() -> None:
    """A value is not tested where fewer than two segments can expect five supporting reports."""
    mechanism = SubsetSelection.design(100, 4.0)
    counts = np.zeros((40, 100))
    assert np.isnan(found_p(counts, np.full(40, 1.0), mechanism.p, mechanism.q)).all()
    counts[0, 0] = 1
    assert np.isnan(found_p(counts, np.full(40, 2.0), mechanism.p, mechanism.q)).all()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_adjusted_values_are_scipys(p: list[float]) -> None:
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


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 31])
def test_tails_are_scipys(freedom: int) -> None:
    """The tails of chi-square are scipy's for each degree that 32 segments can have."""
    x = np.array([0.0, 1e-9, 0.5, 3.0, 40.0, 300.0])
    assert np.allclose(_chi_square_tails(x, freedom), chi2.sf(x, freedom), rtol=1e-9, atol=1e-300)
