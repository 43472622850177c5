"""Normalized shares, by their defining properties and by their errors."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from deniable_estimator.statistics.normalization import Normalization, normalize

shares = arrays(np.float64, st.integers(1, 30), elements=st.floats(-2, 2))
judged = st.integers(1, 30).flatmap(
    lambda size: st.tuples(
        arrays(np.float64, size, elements=st.floats(-2, 2)), arrays(np.bool_, size)
    )
)
"""(shares, which of them are detected), whatever they are."""


@given(judged, st.booleans())
def test_result_is_possible(judged, complete):
    """Normalized shares are at least 0 and sum to one, or to at most one if incomplete."""
    normalized = normalize(*judged, complete=complete)
    assert (normalized >= 0).all()
    if complete:
        assert normalized.sum() == pytest.approx(1, abs=1e-9)
    else:
        assert normalized.sum() <= 1 + 1e-9


@given(judged, st.booleans(), st.integers(0, 2**32 - 1))
def test_result_is_nearest_beside_the_detected(judged, complete, seed):
    """Of the values that are not detected, no other non-negative shares of the same sum are nearer
    to the unbiased ones: the angle to every other such point is right or obtuse."""
    share, detected = judged
    normalized = normalize(share, detected, complete=complete)[~detected]
    rng = np.random.default_rng(seed)
    if detected.any():
        for _ in range(20 if len(normalized) else 0):
            other = normalized.sum() * rng.dirichlet(np.full(len(normalized), 0.3))
            assert (share[~detected] - normalized) @ (other - normalized) <= 1e-9


@given(shares)
def test_detected_shares_are_kept(share):
    """Detected shares that are possible beside each other stay as they are; in a closed list all
    shares first move by the same amount, so that they sum to one."""
    detected = share > 0
    scaled = share / max(1.0, share[detected].sum())
    found = normalize(scaled, detected, complete=False)
    assert found[detected] == pytest.approx(scaled[detected], abs=1e-12)
    even = share + (1 - share.sum()) / len(share)
    detected = even > 0
    if even[detected].sum() <= 1 + 1e-12:
        found = normalize(share, detected, complete=True)
        assert found == pytest.approx(even, abs=1e-9)


def test_known_shares():
    """What is over or missing is taken from, or given to, those that are not detected."""
    some = np.array([True, False, False])
    all_three = np.ones(3, np.bool_)
    none = np.zeros(3, np.bool_)

    def check(share, detected, complete, wanted):
        found = normalize(np.array(share), detected, complete=complete)
        assert found == pytest.approx(wanted)

    check([0.7, 0.4, -0.1], some, True, [0.7, 0.3, 0.0])
    check([0.6, 0.3, -0.2], some, True, [0.7, 0.3, 0.0])
    check([0.9, 0.4, -0.1], all_three, True, [0.75, 0.25, 0.0])
    check([1.1, 0.1, -0.2], some, True, [1.0, 0.0, 0.0])
    check([0.5, 0.3, -0.1], some, False, [0.5, 0.2, 0.0])
    check([0.5, 0.1, -0.2], some, False, [0.5, 0.0, 0.0])
    check([0.9, 0.4, -0.1], some, False, [0.9, 0.1, 0.0])
    check([0.9, 0.4, -0.1], none, True, [1 / 3, 1 / 3, 1 / 3])
    check([0.3, 0.4, -0.1], none, False, [0.2, 0.2, 0.2])
    check([-0.3, 0.1, -0.1], none, False, [0.0, 0.0, 0.0])


def test_normalized_shares_travel_with_an_answer():
    """They are calculated when they are asked for, and once; an answer that comes from another
    process has them, because of a million values they take a while."""
    share = np.array([0.7, 0.2, -0.1, np.nan])
    lazy = Normalization(share, np.array([True] * 4), np.array([False, True, False, False]), False)
    assert "shares" not in vars(lazy)
    found = lazy.shares
    assert found is lazy.shares
    assert found.tolist()[:3] == pytest.approx([0.7, 0.0, 0.0])
    assert np.isnan(found[3])
    travelled = pickle.loads(pickle.dumps(Normalization(*list(vars(lazy).values())[:4])))
    assert vars(travelled)["shares"].tobytes() == found.tobytes()
