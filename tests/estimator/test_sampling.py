"""Simulated tallies have exactly the distribution of real ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from deniable import Scheme
from deniable.mechanisms import NumberRange, SlidingWindow, SubsetSelection
from deniable_estimator.analyses import ANALYSES, subset_selection
from deniable_estimator.analyses.sampling import sample_numbers, sample_tally
from deniable_estimator.analyses.sliding_window import SlidingWindowAnalysis
from deniable_estimator.errors import EstimateError


@pytest.mark.parametrize(("size", "epsilon"), [(2, 1.0), (100, 4.0), (100, 1.0)])
def test_billions_of_devices(size: int, epsilon: float, make_scheme: Callable[..., Scheme]) -> None:
    """5,000,000,000 devices are one draw, with every report in it and within 6 errors of truth."""
    scheme = make_scheme(size, epsilon)
    counts = np.full(size, 5 * 10**9 // size)
    row = sample_tally(scheme, counts, np.random.default_rng(1)).rows[0]
    assert row.reports == counts.sum()
    assert row.cells.sum() == row.reports * scheme.mechanism.k
    rate = float(scheme.mechanism.q + (scheme.mechanism.p - scheme.mechanism.q) / size)
    error = np.sqrt(row.reports * rate * (1 - rate))
    assert (np.abs(row.cells - row.reports * rate) < 6 * error).all()


def test_crowds_beyond_one_draw_are_split(
    make_scheme: Callable[..., Scheme], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crowd that numpy cannot draw at once is drawn in parts that lose no device."""
    monkeypatch.setattr(subset_selection, "_CROWD", 100)
    scheme = make_scheme(20, 1.0)
    row = sample_tally(scheme, np.full(20, 77), np.random.default_rng(1)).rows[0]
    assert row.reports == 20 * 77
    assert row.cells.sum() == row.reports * scheme.mechanism.k


def test_wrong_questions(
    make_scheme: Callable[..., Scheme], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts that do not fit, an open domain without values, and no sampler are each refused."""
    scheme, rng = make_scheme(3, 1.0), np.random.default_rng(1)
    with pytest.raises(EstimateError, match="2 counts for 3 values"):
        sample_tally(scheme, np.ones(2, int), rng)
    with pytest.raises(EstimateError, match="open"):
        sample_tally(Scheme("string", scheme.mechanism, ()), np.ones(3, int), rng)
    monkeypatch.delitem(ANALYSES, SubsetSelection)
    with pytest.raises(EstimateError, match="cannot be simulated"):
        sample_tally(scheme, np.ones(3, int), rng)


def test_numbers_are_drawn_as_their_positions() -> None:
    """A tally of numbers has one report of each device, whose columns are drawn as they are for the
    positions of the numbers, in any order; numbers outside of the range count as its ends."""
    window = SlidingWindow.design(NumberRange("0", "10"), 1.0)
    scheme = Scheme("number", window, ())
    numbers, counts = np.array([11.0, 2.5, -3.0, 2.5]), np.array([3, 1000, 2, 500])
    tally = sample_numbers(scheme, numbers, counts, np.random.default_rng(1))
    assert tally.reports == tally.rows[0].cells.sum() == counts.sum()
    positions = np.array([-1, window.range.position(2.5), 1 << 30])
    (row,) = SlidingWindowAnalysis(window).sample_rows(
        positions, np.array([2, 1500, 3]), np.random.default_rng(1)
    )
    assert tally.rows[0].cells.tolist() == row.cells.tolist()
