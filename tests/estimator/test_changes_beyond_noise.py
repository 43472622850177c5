"""Which of many changes are more than noise: the step-up test by intervals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from deniable import Scheme
from deniable.mechanisms import design
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import estimate
from deniable_estimator.questions.comparison import compare
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


@pytest.mark.parametrize(
    ("size", "moving", "devices", "epsilon"),
    [(10, 0, 20_000, 1.0), (10, 4, 20_000, 1.0), (100, 0, 20_000, 2.0), (100, 20, 200_000, 2.0)],
)
def test_few_of_the_told_changes_are_false(
    size: int, moving: int, devices: int, epsilon: float
) -> None:
    """The mean part of false ones among those that are told is at most 5%.

    400 pairs of weeks, seed 11; where nothing moves it is how often any change is told, a share of
    successes with a standard error of at most .011. The limit .05 + 2.6 standard errors = .079
    fails by chance with probability at most .005 for each of four cases, .02 in all.
    """
    scheme = Scheme("category", design("auto", size, epsilon), tuple(map(str, range(size))))
    rng = np.random.default_rng([11, size, moving])
    before = np.full(size, 1 / size)
    after = before.copy()
    after[:moving:2] *= 1.5
    after[1:moving:2] *= 0.5
    false, found = [], 0
    for _ in range(400):
        answers = [
            estimate(
                sample_tally(
                    scheme, rng.multinomial(devices, shares), rng, metric="m", window=window
                ),
                scheme,
            )
            for shares, window in ((before, "2026-W45"), (after, "2026-W46"))
        ]
        changed = compare(*answers).changed
        told = int(changed.sum())
        false.append(int(changed[moving:].sum()) / max(1, told))
        found += int(changed[:moving].sum())
    assert np.mean(false) <= 0.079
    assert moving == 0 or found > 400, "it finds some of those that move"
