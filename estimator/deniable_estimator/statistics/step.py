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

Where the same devices report again, a part of the noise stays with them: that of memos, and who was
chosen in any case. It wanders as devices come and go, and looks like steps: noise of which all is
kept, by devices of which 1 to 10% leave each day, would step in 6 to 51% of series of 49 to 180
days. So noise is drawn with such a part too, first-order autoregressive for several rates at which
devices leave, because nobody knows the true one, and the largest p-value counts. Scores are then
divided by what residuals vary even if that is less than the noise, as it is while the same devices
stay: so a step is seen where days before it were alike. It must also be larger than what other
devices on either side could make of it.

The confidence set holds every k with z_max**2 - z_k**2 <= c. At the true k that difference exceeds
x with a probability of at most about 1 - (1 - exp(-x / 2))**2, the limit for small steps (Bai, Rev.
Econ. Stat. 1997; smaller for large ones), so c = -2 ln(1 - sqrt(level)). Where noise is kept, c is
at least what the step that was found would have lost there in such draws, at that level.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.statistics.detection import deviations
from deniable_estimator.statistics.intervals import FloatArray

LEAST_SIDE = 3
"""So many numbers must lie on each side of a step: fewer are odd days. Where the most likely place
has fewer, nothing is said yet, because every other place would be wrong."""

LEAST_WEEKS = 4
"""With fewer numbers for each weekday, weekdays have no means of their own."""

_ROUNDING = 1e-9
"""A part of a sum that may be nothing but its rounding."""

_DRAWS = 999
_DRAWS_KEPT = 399
"""For each way in which noise is kept, at levels up to `_COARSE`."""
_COARSE = 0.99

_STAYS = (0.8, 0.9, 0.97, 0.99, 0.998)
"""Of the noise that is kept, what is still there one number later."""
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
    kept: float = 0.0,
    level: float = 0.95,
) -> Step | None:
    """The one step of a series, if it has one at the given level; places count all numbers.

    Args:
        y: shape (n,), the oldest first; NaN where nothing is known.
        variance: of each, shape (n,).
        weekday: from 0, shape (n,), where weekdays may differ.
        kept: the part of the variances, at most 1, that two numbers may share because the same
            devices reported for both.
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
    # The sums before each place, from 1 on, of what a step there leaves, and of its part in each
    # mean. What the means explain is taken away, so the sum from there on is the same with another
    # sign.
    parts = np.cumsum(root[:, None] * means, axis=0)[:-1]
    sizes = np.cumsum(root**2)[:-1] - (parts**2).sum(axis=1)
    # Where one number is so exact that the others have no weight beside it, no step can be seen.
    sizes = np.sqrt(np.where(sizes > _ROUNDING * (root**2).sum(), sizes, np.inf))
    freedom = max(1, count - means.shape[1] - 1)
    usual = float((root**2).mean())

    def scan(numbers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The scores, shape (..., places), and by how much the residuals exceed noise."""
        rest = numbers - (numbers @ means) @ means.T
        score = np.cumsum(rest * -root, axis=-1)[..., :-1] / sizes
        best = np.maximum(score.max(axis=-1), -score.min(axis=-1))
        left = np.maximum(np.einsum("...i,...i", rest, rest) - best**2, 0.0)
        return score, np.sqrt(left / freedom)

    least = _ROUNDING if kept else 1.0
    score, more = scan(target)
    scaled = np.abs(score) / max(float(more), least)
    best = int(scaled.argmax())
    place = best + 1
    if not LEAST_SIDE <= place <= count - LEAST_SIDE:
        return None
    draws = _DRAWS_KEPT if kept and level <= _COARSE else _DRAWS
    scans = [scan(each) for each in _noises(count, kept, draws)]
    largest = np.array([np.abs(drawn).max(axis=-1) / spread for drawn, spread in scans])
    larger = np.count_nonzero(largest >= scaled[best], axis=-1)
    p_value = (1 + larger.max()) / (largest.shape[-1] + 1)
    line = _normed(np.arange(count) * root, means)
    if p_value > 1 - level or float(target @ line) ** 2 > score[best] ** 2:
        return None
    step = _normed((np.arange(count) >= place) * root, means)
    again, rest = scan(target - score[best] * step)
    # One odd day at an end is no second step.
    again = again[LEAST_SIDE - 1 : count - LEAST_SIDE]
    if np.abs(again).max() / max(float(rest), least) > np.quantile(largest, level, axis=-1).max():
        return None
    size = float(score[best] / sizes[best])
    # What is kept does not average out on either side.
    spread_of_size = math.sqrt((1 - kept) / sizes[best] ** 2 + 2 * kept / usual)
    std_error = max(float(more), 1.0) * spread_of_size
    if kept and abs(size) <= deviations(level) * std_error:
        # Many devices that are replaced at once would be a step too.
        return None
    # How far a score may lie below the largest one.
    apart = -2 * math.log(1 - math.sqrt(level))
    for noise in _noises(count, kept, draws) if kept else ():
        drawn, spread = scan(noise + score[best] / max(float(more), 1.0) * step)
        lost = (np.abs(drawn).max(axis=-1) ** 2 - drawn[:, best] ** 2) / spread**2
        apart = max(apart, float(np.quantile(lost, level)))
    within = np.flatnonzero(scaled[best] ** 2 - scaled**2 <= apart)
    return Step(
        int(known[place]),
        int(known[within[0] + 1]),
        int(known[within[-1] + 1]),
        size,
        std_error,
        float(p_value),
    )


def _normed(column: FloatArray, means: FloatArray) -> FloatArray:
    """A column without what the means explain, of length 1."""
    left = column - means @ (means.T @ column)
    return np.asarray(left / np.sqrt((left**2).sum()))


def _noises(count: int, kept: float, draws: int) -> Iterator[FloatArray]:
    """Draws of noise alone, shape (draws, count); where a part of it is kept, for each rate at
    which devices leave, and for half of that part too."""
    if not kept:
        yield _normal(draws, count)
        return
    fresh = _normal(2, draws, count)[0]
    for stay in _STAYS:
        for part in (kept, kept / 2):
            yield math.sqrt(1 - part) * fresh + math.sqrt(part) * _held(stay, draws, count)


@lru_cache(maxsize=2 * len(_STAYS))
def _held(stay: float, draws: int, count: int) -> FloatArray:
    """What is kept of noise, of variance 1, where so much of it is still there one number later."""
    new: FloatArray = _normal(2, draws, count)[1]
    held = new.copy()
    for at in range(1, count):
        held[:, at] = stay * held[:, at - 1] + math.sqrt(1 - stay**2) * new[:, at]
    return held


@lru_cache(maxsize=4)
def _normal(*shape: int) -> FloatArray:
    """The same each time, so that answers are."""
    return np.random.default_rng([_SEED, shape[-1]]).standard_normal(shape)
