"""Shares as binomial counts: their intervals, and whether two of them differ.

Of one scheme a share is start + width S/n with a binomial count S of n reports. Its variance
a + b f - c f**2 gives all three back: n = 1/c, width = sqrt(b**2 + 4 a c) / c, and start is the
lower root. The binomial is the only distribution with such a variance whose skewness follows from
it (Morris, Ann. Statist. 1982), so sums of several schemes are taken for such counts, too.

**Intervals.** The ends for a count x of n reports, mapped to shares, are quantiles of ::

    low:  Beta(x + 1/5, n - x + 4/5) at alpha/2,   high:  Beta(x + 4/5, n - x + 1/5) at 1 - alpha/2

between the exact interval (Clopper and Pearson, Biometrika 1934: 0 and 1, at least the
level always) and Jeffreys' (Brown, Cai and DasGupta, Stat. Science 2001: 1/2 and 1/2, the level on
average). At .95 it covers at least .936 from 36 reports on, and at least .928 with fewer, at the
worst share; on average over all shares it covers more than .95. For many counts all three are
alike. The quantiles are Camp's cube roots (Ann. Math. Stat. 1951; Abramowitz and Stegun 26.5.22),
and are in that figure.

**Changes.** If the share f is the same in two crowds, then given the sum of their counts the second
one, X, is hypergeometric whatever f is (Fisher's exact test). With the signed root r of twice the
log likelihood ratio, of counts half a report nearer to each other, ::

    P(X >= x) = 1 - Phi(r + ln(u / r) / r)
    u = 2 sinh(t / 2) sqrt(v1 v2 / (w1 + w2)),   t = logit x2/n2 - logit x1/n1
    v = x (n - x) / n,   w = n R (1 - R),   R: the rate of both together

(Skovgaard, J. Appl. Prob. 1987; Daniels, Int. Stat. Rev. 1987, for the half report), within 6% of
the exact tail down to single counts and to 1e-14. Under two schemes rates differ where shares do
not, and t is taken along f (Fraser, Reid and Wu, Biometrika 1999). The p-value is the smaller of ::

    P(X > x) + P(X >= x), or the same below: twice the mid-p-value (Lancaster, JASA 1961)
    P(X >= x), or the same below, if the other tail cannot be so small

What devices keep from one report to the next makes n smaller, so that the variance is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.statistics.detection import deviations
from deniable_estimator.statistics.intervals import FloatArray, Noise
from deniable_estimator.statistics.tails import upper_tails

_NORMAL = 1e-8
"""Without a part in f**2 a share is as good as normal: that of so much more than one report."""

_NONE = 1e-9
"""Stands for a count of 0, whose logarithm is taken."""

_MANY = 100.0
"""Of counts with a larger variance each tail can be as small as any level."""

_NEAR = 1e-3
"""Roots that are smaller need no correction, and rounding would spoil it."""

_AT_ONCE = 1 << 15
"""Values whose changes are calculated at once: some tens of arrays of a quarter of a megabyte."""

_HALVINGS = 50
"""So often the place of the common share is halved."""


@dataclass(frozen=True, eq=False)
class Counts:
    """The binomial counts behind shares; arrays have shape (d,), or (1,) where all are alike."""

    trials: FloatArray
    start: FloatArray
    """The share if no report supported the value: below 0."""
    width: FloatArray
    """How far from there the share is if all did."""

    @classmethod
    def of(cls, noise: Noise, *, kept: bool = False) -> Counts:
        """Those with the variance of a noise; without `kept`, of what each report has alone."""
        a, b, c = noise.a, noise.b, noise.c
        if kept and noise.kept is not None:
            a, b, c = a + noise.kept.a, b + noise.kept.b, c + noise.kept.c
        c = np.where(c > 0, c, _NORMAL * np.minimum(a, 1.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.sqrt(b**2 + 4 * a * c)
            return cls(1 / c, -2 * a / (b + root), root / c)

    def rate(self, share: FloatArray) -> FloatArray:
        """How often a report supports a value of this share."""
        return np.clip((share - self.start) / self.width, 0.0, 1.0)

    def interval(self, share: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
        """The ends, z standard deviations out."""
        rate = self.rate(share)
        yes, no = self.trials * rate, self.trials * (1 - rate)
        low = _beta_quantile(-z, yes + 0.2, no + 0.8)
        high = _beta_quantile(z, yes + 0.8, no + 0.2)
        return self.start + self.width * low, self.start + self.width * high


def share_interval(share: FloatArray, noise: Noise, level: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends, each of shape (d,), that cover the true share at `level`; not clipped.

    They are infinite where nothing is known, and NaN where the share is."""
    z = deviations(level)
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = Counts.of(noise).interval(share, z)
        if noise.kept is not None:
            ends = Counts.of(noise, kept=True).interval(share, z)
            # Where nothing is kept, the wider quadratic would fall below the other; at the edge
            # both are equal, so an end inside it moves outwards and stays inside.
            low, high = (
                np.where(noise.kept.at(end) > 0, far, end)
                for end, far in zip((low, high), ends, strict=True)
            )
    without = np.where(np.isnan(share), np.nan, np.inf)
    known = np.isfinite(share + noise.a)
    return np.where(known, low, -without), np.where(known, high, without)


def p_values_of_changes(
    pairs: Sequence[tuple[FloatArray, Noise, FloatArray, Noise]],
) -> list[FloatArray]:
    """The `change_p_values` of each of these pairs. Those of as many values are calculated
    together: a trend has hundreds of changes."""
    found: list[FloatArray] = []
    for size, same in groupby(pairs, key=lambda pair: len(pair[0])):
        alike, step = list(same), max(1, _AT_ONCE // max(1, size))
        for begin in range(0, len(alike), step):
            old, old_noise, new, new_noise = zip(*alike[begin : begin + step], strict=True)
            noises = Noise.stacked(old_noise), Noise.stacked(new_noise)
            found += list(change_p_values(np.array(old), noises[0], np.array(new), noises[1]))
    return found


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def change_p_values(
    old: FloatArray, old_noise: Noise, new: FloatArray, new_noise: Noise
) -> FloatArray:
    """The chance of a change from `old` to `new`, or a larger one on either side, if the true
    share is the same; shape (d,), NaN where one of the two is not known.

    The estimates must be independent: of what they have in common neither noise may hold a part.
    """
    one, two = Counts.of(old_noise), Counts.of(new_noise)
    common = _common_share((old, old_noise, one), (new, new_noise, two))
    rises = new >= old
    rates = one.rate(common), two.rate(common)
    grows = np.sqrt(_slope(two, rates[1]) / _slope(one, rates[0]))
    crowds = []
    for share, noise, each, rate, unit in (
        (old, old_noise, one, rates[0], grows),
        (new, new_noise, two, rates[1], 1 / grows),
    ):
        trials = each.trials * _alone(noise, common, each)
        crowds.append((trials * each.rate(share), trials, rate, unit))
    # The test is the same from either side: the second is the one that is larger.
    small, large = (
        _CountedCrowd(*(np.where(rises, here, there) for here, there in zip(*pair, strict=True)))
        for pair in (crowds, crowds[::-1])
    )
    least = _tail(small, large)
    beyond = _tail(small.moved(-1.0), large.moved(1.0))
    # The last possible count counts whole: half of it would exceed the level.
    twice = np.minimum(least + np.where(beyond > 0, beyond, least), 1.0)
    # With many counts the other tail can be as small as any.
    few = np.nonzero(np.minimum(small.variance, large.variance) < _MANY)
    small, large = small.at(few), large.at(few)
    move = np.minimum(large.found / large.unit, (small.trials - small.found) / small.unit)
    other = _tail(large.moved(-move), small.moved(move))
    twice[few] = np.minimum(twice[few], np.where(other > least[few], least[few], 1.0))
    known = np.isfinite(new - old) & np.isfinite(old_noise.a + new_noise.a)
    return np.where(known, twice, np.nan)


class _CountedCrowd(NamedTuple):
    """One of two crowds that are compared; arrays of shape (d,)."""

    found: FloatArray
    trials: FloatArray
    rate: FloatArray
    """If nothing changed."""
    unit: FloatArray
    """What moves the count so that the share of both together stays: 1 under one scheme. The units
    of both have the product 1."""

    def moved(self, by: FloatArray | float) -> _CountedCrowd:
        """With so many units more in its count."""
        return self._replace(found=self.found + by * self.unit)

    def at(self, places: tuple[NDArray[np.intp], ...]) -> _CountedCrowd:
        """That of some values."""
        return _CountedCrowd(*(each[places] for each in self))

    @property
    def variance(self) -> FloatArray:
        """That of a count, if nothing changed."""
        return self.trials * self.rate * (1 - self.rate)


def _tail(small: _CountedCrowd, large: _CountedCrowd) -> FloatArray:
    """The chance that the count of the second is that or more, given the share of both."""
    small, large = small.moved(0.5), large.moved(-0.5)
    x1, n1, x2, n2 = small.found, small.trials, large.found, large.trials
    certain, impossible = (x2 <= 0) | (x1 >= n1), (x2 >= n2) | (x1 <= 0)
    x1, x2 = np.clip(x1, _NONE, n1 - _NONE), np.clip(x2, _NONE, n2 - _NONE)
    deviance, logit1 = _deviance(x1, n1, small.rate)
    another, logit2 = _deviance(x2, n2, large.rate)
    t = logit2 * large.unit - logit1 * small.unit
    information = small.variance / small.unit**2 + large.variance / large.unit**2
    alone = x1 * (n1 - x1) / n1 * (x2 * (n2 - x2) / n2)
    u = 2 * np.sinh(t / 2) * np.sqrt(alone / information)
    r = np.sign(t) * np.sqrt(np.maximum(2 * (deviance + another), 0.0))
    z = np.where(np.abs(r) > _NEAR, r + np.log(u / r) / r, r)
    return upper_tails(np.where(certain, -np.inf, np.where(impossible, np.inf, z)))


def _slope(counts: Counts, rate: FloatArray) -> FloatArray:
    """How fast the logit of a rate grows with the share."""
    return 1 / (counts.width * rate * (1 - rate))


def _deviance(x: FloatArray, n: FloatArray, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Half the deviance of a count from its rate, and the difference of their logits."""
    expected = n * rate
    yes, no = (x - expected) / expected, (expected - x) / (n - expected)
    deviance = expected * _relative(yes) + (n - expected) * _relative(no)
    return deviance, np.log1p(yes) - np.log1p(no)


def _relative(part: FloatArray) -> FloatArray:
    """(1 + part) ln(1 + part) - part, accurate near 0."""
    small = np.abs(part) < 1e-3
    series = part**2 * (1 / 2 - part * (1 / 6 - part * (1 / 12 - part / 20)))
    return np.where(small, series, (1 + part) * np.log1p(part) - part)


def _common_share(*crowds: tuple[FloatArray, Noise, Counts]) -> FloatArray:
    """The share that makes both counts most likely: the average by inverse variance at itself."""
    (old, first, one), (new, second, two) = crowds
    alike = (one.start == two.start) & (one.width == two.width)
    for noise in (first, second):
        alike &= True if noise.kept is None else noise.kept.absent
    pooled: FloatArray = (one.trials * old + two.trials * new) / (one.trials + two.trials)
    if alike.all():
        return pooled
    lowest = np.maximum(one.start, two.start)
    highest = np.minimum(one.start + one.width, two.start + two.width)
    low, high = (np.clip(pick(old, new), lowest, highest) for pick in (np.minimum, np.maximum))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        falls = (old - middle) * second.at(middle) + (new - middle) * first.at(middle) < 0
        low, high = np.where(falls, low, middle), np.where(falls, middle, high)
    return np.where(alike, pooled, (low + high) / 2)


def _alone(noise: Noise, share: FloatArray, counts: Counts) -> FloatArray | float:
    """The part of the variance that each report has alone."""
    if noise.kept is None:
        return 1.0
    own = counts.width**2 * counts.rate(share) * (1 - counts.rate(share)) / counts.trials
    return np.where(own > 0, own / (own + noise.kept.at(share)), 1.0)


def _beta_quantile(z: float, a: FloatArray, b: FloatArray) -> FloatArray:
    """Where a beta variable is z normal deviates above its median."""
    swapped = a > b
    small, large = np.where(swapped, b, a), np.where(swapped, a, b)
    z_small = np.where(swapped, -z, z)
    first, second = 1 - 1 / (9 * small), 1 - 1 / (9 * large)
    root = np.sqrt(9 * (first**2 / large + second**2 / small) - z**2 / (small * large))
    divisor = 9 * second**2 - z**2 / large
    cube = np.maximum((9 * first * second + z_small * root) / divisor, 0.0) ** 3
    odds = np.where(divisor > 0, small / large * cube, np.where(z_small > 0, np.inf, 0.0))
    rate = np.where(np.isinf(odds), 1.0, odds / (1 + odds))
    return np.where(swapped, 1 - rate, rate)
