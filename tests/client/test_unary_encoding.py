"""Unary encoding: the two published parameter choices."""

import math

import pytest

from deniable.protocol.errors import SchemeError
from deniable.protocol.mechanisms.compatible import MAX_SIZE, UnaryEncoding


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_published_probabilities(epsilon):
    """Optimized: p = 1/2 and q = 1 / (e + 1). Symmetric: p = h / (h + 1) and q = 1 - p."""
    optimized, symmetric = UnaryEncoding.optimized(9, epsilon), UnaryEncoding.symmetric(9, epsilon)
    assert float(optimized.p) == 0.5
    assert float(optimized.q) == pytest.approx(1 / (math.exp(epsilon) + 1), rel=1e-12)
    half = math.exp(epsilon / 2)
    assert float(symmetric.p) == pytest.approx(half / (half + 1), rel=1e-12)
    assert symmetric.p + symmetric.q == 1


def test_reports_are_bounded():
    """A domain whose report would be too long is refused."""
    with pytest.raises(SchemeError, match="domain"):
        UnaryEncoding.optimized(MAX_SIZE + 1, 1.0)
