"""Unbiased shares from support counts, and their variance.

A report supports a value with probability r = q + f (p - q), where f is the value's share, so
the count S of n reports is binomial and ::

    share = (S/n - q) / (p - q)                            unbiased
    Var(share) = r (1 - r) / (n (p-q)**2) = a + b f - c f**2
    a = q (1-q) / (n (p-q)**2),  b = (1 - 2q) / (n (p-q)),  c = 1/n

If the same devices report again, a second quadratic is added for what they `kept` from one
report to the next (`deniable_estimator.analyses.base`), where it is positive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray


def interval_of_difference(
    old: tuple[FloatArray, FloatArray, FloatArray], new: tuple[FloatArray, FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """The ends of the intervals of new - old; each is given as value, low and high, shape (d,).

    For independent estimates with intervals (l, u) the difference d lies between ::

        d - sqrt((new - l_new) ** 2 + (u_old - old) ** 2)
        d + sqrt((u_new - new) ** 2 + (old - l_old) ** 2)

    (Newcombe, Statistics in Medicine 1998, method 10), which for large crowds is
    d +- z sqrt(Var_old + Var_new).
    """
    (was, was_low, was_high), (now, now_low, now_high) = old, new
    return (
        now - was - np.hypot(now - now_low, was_high - was),
        now - was + np.hypot(now_high - now, was - was_low),
    )


def fieller_ends(
    square: FloatArray, half: FloatArray, rest: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The ends in [0, 1] of the quotients t with square t**2 - 2 half t + rest <= 0 (Fieller,
    J. Roy. Stat. Soc. B 1954).

    Where these are two rays, the ends are those of what the rays hold of [0, 1]. Where nothing of
    [0, 1] fits, the low end is above the high one.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(half**2 - square * rest, 0.0))
        ends = (half - root) / square, (half + root) / square
        least, most = np.minimum(*ends), np.maximum(*ends)
    known, rays = square > 0, (square < 0) & (half**2 > square * rest)
    low = np.where(rays & (least < 0), np.clip(most, 0.0, 1.0), 0.0)
    high = np.where(rays & (most > 1), np.clip(least, 0.0, 1.0), 1.0)
    return (
        np.where(known, np.maximum(least, 0.0), low),
        np.where(known, np.minimum(most, 1.0), high),
    )


FloatArray: TypeAlias = NDArray[np.float64]


def debias(
    counts: NDArray[Any], reports: int | NDArray[np.int64], p: Fraction, q: Fraction
) -> FloatArray:
    """The unbiased share of each value."""
    return (counts / reports - float(q)) / _of_one_report(p, q)[0]


@lru_cache(maxsize=1024)
def _of_one_report(p: Fraction, q: Fraction) -> tuple[float, float, float, float]:
    """p - q, and a, b and step of one report."""
    return (
        float(p - q),
        float(q * (1 - q) / (p - q) ** 2),
        float((1 - 2 * q) / (p - q)),
        float(1 / (p - q)),
    )


@dataclass(frozen=True, eq=False)
class Noise:
    """The variance of d estimated shares as a function of the true share f: a + b f - c f**2,
    and that of `kept`. Each array has shape (d,), or (1,) where all values are alike; of T tallies
    at once (T, d), or (T, 1).
    """

    a: FloatArray
    b: FloatArray
    c: FloatArray
    step: FloatArray
    """How far one report moves the estimate."""
    kept: Noise | None = None
    """Added because the same devices report again; None if they do not."""

    @classmethod
    def of(
        cls, p: Fraction, q: Fraction, reports: int | NDArray[np.int64], size: int | tuple[int, ...]
    ) -> Self:
        """The noise of `size` values under one scheme; infinite without reports."""
        n = np.broadcast_to(np.asarray(reports, np.float64), size)
        each = np.divide(1.0, n, out=np.zeros(size), where=n > 0)
        _, a, b, step = _of_one_report(p, q)
        return cls(np.where(n > 0, a * each, np.inf), b * each, each, step * each)

    @classmethod
    def none(cls, size: int | tuple[int, ...]) -> Self:
        """The noise of `size` constants."""
        zero = np.zeros(size)
        return cls(zero, zero, zero, zero)

    def at(self, share: FloatArray) -> FloatArray:
        """The variance at these shares; 0 if r would be outside [0, 1]."""
        variance: FloatArray = np.maximum(self.a + self.b * share - self.c * share**2, 0.0)
        return variance if self.kept is None else variance + self.kept.at(share)

    def taken(self, places: NDArray[np.intp]) -> Noise:
        """That of the values at these indices."""
        return self.turned(
            lambda each: each[places] if len(each) > 1 else np.broadcast_to(each, places.shape)
        )

    def turned(self, array: Callable[[FloatArray], FloatArray]) -> Noise:
        """The same with another in place of each `array`."""
        a, b, c, step = map(array, (self.a, self.b, self.c, self.step))
        return Noise(a, b, c, step, self.kept and self.kept.turned(array))

    @classmethod
    def stacked(cls, noises: Sequence[Noise]) -> Noise:
        """That of several tallies, in arrays of shape (T, d), from arrays of the same shape."""
        a, b, c, step = (
            np.array([getattr(each, name) for each in noises]) for name in ("a", "b", "c", "step")
        )
        none = cls.none(a.shape[-1])
        kept = [each.kept or none for each in noises]
        some = any(each.kept for each in noises)
        return Noise(a, b, c, step, cls.stacked(kept) if some else None)

    def row(self, place: int) -> Noise:
        """That of one of several tallies, of which some devices reported again or not."""
        found = self.turned(lambda each: each[place])
        return replace(found, kept=None) if found.kept and found.kept.absent.all() else found

    @property
    def absent(self) -> NDArray[np.bool_]:
        """Where there is none, as of what no device kept."""
        absent: NDArray[np.bool_] = (self.a == 0) & (self.b == 0) & (self.c == 0)
        return absent

    @property
    def null_error(self) -> FloatArray:
        """The standard error of a share that is truly 0."""
        return np.sqrt(self.a if self.kept is None else self.a + self.kept.a)

    @property
    def skewness(self) -> FloatArray:
        """The skewness of the estimate of a share that is truly 0.

        What devices keep makes their reports move together, and its third moment grows with
        the square of their number. (Law of total cumulance, Brillinger, Ann. Inst. Statist.
        Math. 1969: exact for one report of each device, somewhat too large for more.)
        """
        third = self.a * self.b
        if self.kept is not None:
            third = third + self.kept.a * (3 * self.b + self.kept.b)
        return third / self.null_error**3

    def __add__(self, other: Noise) -> Noise:
        """The variance of the sum of two independent estimates."""
        kept = self.kept or other.kept
        if self.kept is not None and other.kept is not None:
            kept = self.kept + other.kept
        step = np.maximum(self.step, other.step)
        return Noise(self.a + other.a, self.b + other.b, self.c + other.c, step, kept)

    def weighted(self, weight: FloatArray) -> Noise:
        """The variance of the estimate times `weight`, shape (d,); none where that is 0."""
        square = weight**2
        a = np.where(square > 0, self.a, 0.0)
        kept = None if self.kept is None else self.kept.weighted(weight)
        return Noise(a * square, self.b * square, self.c * square, self.step * weight, kept)
