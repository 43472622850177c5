"""When a series stepped from one level to another: a likelihood-ratio scan with a confidence set.

Let y_t be estimates with known variances v_t, and m + d [t >= k] their means. With the weights
1 / v_t, the score of a step at k is its least-squares size in standard errors, z_k, and the most
likely k has the largest |z_k| (Hinkley, Biometrika 1970). Weekdays have means of their own, which
are fitted too. If the residuals vary more than noise does, scores are divided by the root of how
much more (at least 1).

Whether there is a step is tested by the largest score among draws of noise alone, each divided by
the root of what its own residuals vary. The share of larger ones is a p-value that holds however
few the draws (Barnard, J. R. Stat. Soc. B 1963) and however much too small the variances are. A
series that a line fits better drifts, and one whose residuals step again has several steps:
neither has one step, and nothing is said.

The confidence set holds every k with z_max**2 - z_k**2 <= c. At the true k that difference exceeds
x with a probability of at most about 1 - (1 - exp(-x / 2))**2, the limit for small steps (Bai, Rev.
Econ. Stat. 1997; smaller for large ones), so c = -2 ln(1 - sqrt(level)).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.statistics.intervals import FloatArray

LEAST_SIDE = 3
"""So many numbers must lie on each side of a step: fewer are odd days."""

LEAST_WEEKS = 4
"""With fewer numbers for each weekday, weekdays have no means of their own."""

_ROUNDING = 1e-9
"""A part of the sum of all weights that may be nothing but the rounding of it."""

_DRAWS = 999
_SEED = 20_261_124


class Step(NamedTuple):
    """Where a series steps; places are indices of the first number at the new level."""

    place: int
    """The most likely one."""
    first: int
    last: int
    """The ends of the confidence set."""
    size: float
    std_error: float
    p_value: float


def find_step(
    y: FloatArray,
    variance: FloatArray,
    weekday: NDArray[np.int64] | None = None,
    *,
    level: float = 0.95,
) -> Step | None:
    """The one step of a series, if it has one at the given level; places count all numbers.

    Args:
        y: shape (n,), the oldest first; NaN where nothing is known.
        variance: of each, shape (n,).
        weekday: from 0, shape (n,), where weekdays may differ.
    """
    known = np.flatnonzero(np.isfinite(y) & np.isfinite(variance) & (variance > 0))
    count = len(known)
    if count < 2 * LEAST_SIDE:
        return None
    root = 1 / np.sqrt(variance[known])
    groups = np.zeros(count, np.int64)
    if weekday is not None and count >= 7 * LEAST_WEEKS:
        groups = weekday[known]
    # Numbers in units of their noise, and the means of weekdays as orthonormal columns.
    target = y[known] * root
    means = (groups[:, None] == np.unique(groups)) * root[:, None]
    means /= np.sqrt((means**2).sum(axis=0))
    places = np.arange(LEAST_SIDE, count - LEAST_SIDE + 1)
    # The sums before each place of what a step there leaves, and of its part in each mean. What
    # the means explain is taken away, so the sum from there on is the same with another sign.
    before = slice(LEAST_SIDE - 1, count - LEAST_SIDE)
    parts = np.cumsum(root[:, None] * means, axis=0)[before]
    sizes = np.cumsum(root**2)[before] - (parts**2).sum(axis=1)
    # Where one number is so exact that the others have no weight beside it, no step can be seen.
    sizes = np.sqrt(np.where(sizes > _ROUNDING * (root**2).sum(), sizes, np.inf))
    freedom = max(1, count - means.shape[1] - 1)

    def scan(numbers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The scores, shape (..., places), and by how much the residuals exceed noise."""
        rest = numbers - (numbers @ means) @ means.T
        score = np.cumsum(rest * -root, axis=-1)[..., before] / sizes
        best = np.maximum(score.max(axis=-1), -score.min(axis=-1))
        left = np.maximum(np.einsum("...i,...i", rest, rest) - best**2, 0.0)
        return score, np.sqrt(left / freedom)

    drawn, spread = scan(_noise(count))
    largest = np.abs(drawn).max(axis=-1) / spread
    score, more = scan(target)
    more = np.maximum(more, 1.0)
    scaled = np.abs(score) / more
    best = int(scaled.argmax())
    p_value = (1 + np.count_nonzero(largest >= scaled[best])) / (_DRAWS + 1)
    line = _normed(np.arange(count) * root, means)
    if p_value > 1 - level or float(target @ line) ** 2 > score[best] ** 2:
        return None
    step = _normed((np.arange(count) >= places[best]) * root, means)
    again, rest = scan(target - score[best] * step)
    if np.abs(again).max() / max(float(rest), 1.0) > np.quantile(largest, level):
        return None
    within = np.flatnonzero(scaled[best] ** 2 - scaled**2 <= -2 * math.log(1 - math.sqrt(level)))
    return Step(
        int(known[places[best]]),
        int(known[places[within[0]]]),
        int(known[places[within[-1]]]),
        float(score[best] / sizes[best]),
        float(more / sizes[best]),
        float(p_value),
    )


def _normed(column: FloatArray, means: FloatArray) -> FloatArray:
    """A column without what the means explain, of length 1."""
    left = column - means @ (means.T @ column)
    return np.asarray(left / np.sqrt((left**2).sum()))


@lru_cache(maxsize=4)
def _noise(count: int) -> FloatArray:
    """Draws of noise alone, shape (draws, count): the same each time, so that answers are."""
    return np.random.default_rng([_SEED, count]).standard_normal((_DRAWS, count))
