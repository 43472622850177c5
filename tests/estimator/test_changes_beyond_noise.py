"""Which of many changes are more than noise: the step-up test by intervals."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from deniable_estimator.statistics.significance import adjust_p, changes_beyond_noise


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_it_is_the_test_of_p_values(listed: list[float]) -> None:
    """Known by intervals alone, the same changes are found as by their p-values."""
    p = np.array(listed)

    def excluded(level: float) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = p <= 1 - level
        return found

    found = changes_beyond_noise(excluded, len(p), 0.95)
    apart = np.abs(adjust_p(p, "storey") - 0.05) > 1e-9
    assert (found == (adjust_p(p, "storey") <= 0.05))[apart].all()
