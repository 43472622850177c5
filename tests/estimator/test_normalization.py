"""The projection onto possible shares, by its defining properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from deniable_estimator.normalization import project

shares = arrays(np.float64, st.integers(1, 30), elements=st.floats(-2, 2))


@given(shares, st.booleans())
def test_result_is_possible(share: np.ndarray, complete: bool) -> None:
    """Projected shares are at least 0 and sum to one, or to at most one if incomplete."""
    projected = project(share, complete=complete)
    assert (projected >= 0).all()
    if complete:
        assert projected.sum() == pytest.approx(1, abs=1e-9)
    else:
        assert projected.sum() <= 1 + 1e-9


@given(shares, st.booleans(), st.integers(0, 2**32 - 1))
def test_result_is_nearest(share: np.ndarray, complete: bool, seed: int) -> None:
    """No possible point is nearer: the angle to every other one is right or obtuse."""
    projected = project(share, complete=complete)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        other = rng.dirichlet(np.full(len(share), 0.3))
        if not complete:
            other *= rng.random()
        assert (share - projected) @ (other - projected) <= 1e-9


@given(shares, st.booleans())
def test_possible_shares_stay(share: np.ndarray, complete: bool) -> None:
    """Projecting twice is projecting once, so what is possible already does not move."""
    once = project(share, complete=complete)
    assert project(once, complete=complete) == pytest.approx(once, abs=1e-9)


@given(shares, st.booleans())
def test_order_is_kept(share: np.ndarray, complete: bool) -> None:
    """A larger share never becomes the smaller one."""
    projected = project(share, complete=complete)
    assert (np.diff(projected[np.argsort(share)]) >= -1e-12).all()


def test_known_projection() -> None:
    """(0.9, 0.4, -0.1) loses 0.15 from each of the two that stay positive."""
    assert project(np.array([0.9, 0.4, -0.1]), complete=True) == pytest.approx([0.75, 0.25, 0])
    assert project(np.array([0.3, 0.4, -0.1]), complete=False) == pytest.approx([0.3, 0.4, 0])
