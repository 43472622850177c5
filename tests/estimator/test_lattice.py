"""Upper bounds of expectations over sums: against exact sums, and with their errors added."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from deniable_estimator.statistics.lattice import (
    Summand,
    mean_and_variance,
    tilt_to,
    upper_expectation,
)


def _above(place, rate):
    return math.log(place) - rate * place if rate * place >= 1 else math.inf


def _positive(places):
    return np.maximum(places, 0.0)


def _bound(summands, cells):
    deviation = math.sqrt(mean_and_variance(summands, 0.0)[1])
    tilt = tilt_to(summands, 0.0, 1 / deviation)
    return upper_expectation(summands, tilt, cells, _positive, _above)


@pytest.mark.parametrize("shift", [0, 100, 300, 700])
def test_small_probabilities_keep_their_digits(shift):
    """E[max(0, S)] of a shifted binomial, down to 1e-100, is bounded to seven digits."""
    count = 1000
    coin = Summand(np.array([0, 2]), np.array([0.5, 0.5]), count)
    constant = Summand(np.array([-count - shift]), np.array([1.0]), 1)
    found = _bound([coin, constant], 1 << 12)
    values = 2 * np.arange(count + 1) - count - shift
    exact = math.fsum(
        max(0, value) * chance
        for value, chance in zip(
            values.tolist(), stats.binom.pmf(np.arange(count + 1), count, 0.5), strict=True
        )
    )
    assert exact <= found <= exact * (1 + 1e-7)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    weights=st.lists(st.integers(1, 20), min_size=2, max_size=5),
    places=st.lists(st.integers(-9, 9), min_size=5, max_size=5, unique=True),
    count=st.integers(1, 12),
    cells=st.sampled_from([64, 256, 1024]),
    tilt=st.floats(0, 1),
)
def test_bound_holds_for_any_tilt_and_number_of_cells(weights, places, count, cells, tilt):
    """Whatever wraps around or lies beyond the window, the bound is not below the exact mean."""
    chances = np.array(weights) / sum(weights)
    summand = Summand(np.array(places[: len(weights)]), chances, count)
    exact = np.array([1.0])
    single = np.zeros(19)
    for place, chance in zip(summand.places, chances, strict=True):
        single[place + 9] += chance
    for _ in range(count):
        exact = np.convolve(exact, single)
    values = np.arange(len(exact)) - 9 * count
    mean = float(np.maximum(values, 0) @ exact)
    found = upper_expectation([summand], tilt, cells, _positive, _above)
    assert found >= mean * (1 - 1e-12)


def test_many_places_and_few_agree():
    """The transform of a summand is the same place by place and by FFT."""
    chances = np.full(200, 1 / 200)
    many = Summand(np.arange(-150, 50), chances, 30)
    found = _bound([many], 1 << 12)
    exact = np.array([1.0])
    for _ in range(30):
        exact = np.convolve(exact, chances)
    mean = float(np.maximum(np.arange(len(exact)) - 150 * 30, 0) @ exact)
    assert mean <= found <= mean * (1 + 1e-6)
