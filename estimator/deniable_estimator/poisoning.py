"""The poisoning budget: how far fake devices could move an estimate at most.

A fake does not randomize. It sends the well-formed report that moves the estimate most. Let a
fraction b of all reports be fake, and let f be the share of a value among the honest ones. If
every fake supports the value (Cao, Jia and Gong, USENIX Security 2021), its estimate rises by ::

    G = b [A - f],   A = (1 - q) / (p - q)             what fakes alone would show
    G = b [A - f],   A = (a - r q) / (p - q)           in all, for r targets at once

where a is how many of the targets one report can support. If none supports it, the
estimate falls by b [f - B] with B = -q / (p - q). Small epsilons have p near q, so a large A.

Filters of RAPPOR are decoded by a regression, which also weighs the bits that a string does
*not* set, against their background density c. One string that sets h of k bits, with cells
of equal weight, has the weights (1 - c) / d on its own bits and -c / d on the others,
d = (1 - 2c) h + c**2 k, and the best fake sets its own bits and no other::

    A = [h(1 - c) - p01(h - ck)] / [d(p11 - p01)] - c(h - ck) / d

which is 1 / (p11 - p01) for h = 1, more than a bitmap of plausible density achieves.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.mechanisms import (
    BasicRappor,
    Bloom,
    FrequencyOracle,
    HadamardResponse,
    MemoizedSubsetSelection,
    OneTimeRappor,
    ProjectiveGeometry,
    Rappor,
    SubsetSelection,
    UnaryEncoding,
)
from deniable_estimator.intervals import FloatArray

__all__ = ["FAKES", "Exposure", "Pull", "gain", "loss", "pull"]

FAKES = 0.01
"""The default fraction of reports that are assumed to be fake."""


class Pull(NamedTuple):
    """The share of the target that fakes alone would show, exactly."""

    most: Fraction
    """If they all push it up."""
    least: Fraction
    """If they all push it down; negative."""


class Exposure(NamedTuple):
    """How far d shares move, divided by the fraction of fakes; shape (d,) each.

    Multiplied by the fraction of fakes, these are the poisoning budget. Both are positive.
    """

    gain: FloatArray
    loss: FloatArray

    @classmethod
    def of(
        cls,
        mechanism: FrequencyOracle[Any],
        share: FloatArray,
        n: int,
        reports: int | NDArray[np.int64],
    ) -> Exposure:
        """For estimates under one scheme, from n reports in all.

        `reports`, shape (d,), is the number of reports that each value is estimated from, if that
        is fewer; fakes then choose to be among them.
        """
        most, least = (float(each) for each in pull(mechanism))
        weight = np.broadcast_to(n / np.maximum(reports, 1), share.shape)
        honest = np.clip(share, 0.0, 1.0)
        return cls(weight * (most - honest), weight * (honest - least))


def gain(
    mechanism: FrequencyOracle[Any], fakes: float = FAKES, share: float = 0.0, targets: int = 1
) -> float:
    """The most that fakes add to the share of their target, or of several targets in all.

    Args:
        mechanism: it randomizes the honest reports.
        fakes: the part of all reports that are fake.
        share: what the honest reports show of the targets, in all.
        targets: how many values are pushed at once, chosen as suits the fakes best.

    Raises:
        ValueError: there are fewer targets than one, or more than values.
    """
    return fakes * (float(pull(mechanism, targets).most) - share)


def loss(
    mechanism: FrequencyOracle[Any], fakes: float = FAKES, share: float = 0.0, targets: int = 1
) -> float:
    """The most that fakes subtract from it; the arguments are those of `gain`."""
    return fakes * (share - float(pull(mechanism, targets).least))


def pull(mechanism: FrequencyOracle[Any], targets: int = 1) -> Pull:
    """What fakes alone would show, of a value or of so many targets in all.

    Raises:
        ValueError: there are fewer targets than one, or more than values.
    """
    size = mechanism.size
    if targets < 1 or (size is not None and targets > size):
        raise ValueError(f"targets must be from 1 to {size or 'any number'}, not {targets}")
    if isinstance(mechanism, Rappor):
        most, least = _of_filters(mechanism.bloom, mechanism.rounds.p11, mechanism.rounds.p01)
        return Pull(targets * most, targets * least)
    if isinstance(mechanism, OneTimeRappor):
        most, least = _of_filters(mechanism.bloom, mechanism.p, 1 - mechanism.p)
        return Pull(targets * most, targets * least)
    p, q = mechanism.p, mechanism.q
    lowest, highest = _supported(mechanism, targets)
    return Pull((highest - targets * q) / (p - q), (lowest - targets * q) / (p - q))


def _supported(mechanism: FrequencyOracle[Any], targets: int) -> tuple[int, int]:
    """The fewest and the most of so many targets that one report can support.

    An attacker can try strings until they hash as desired.
    """
    if isinstance(mechanism, (SubsetSelection, MemoizedSubsetSelection)):
        k, size = mechanism.k, mechanism.size
        return max(0, targets - (size - k)), min(targets, k)
    if isinstance(mechanism, ProjectiveGeometry):
        fewest, most = _in_planes(mechanism.order, mechanism.dimension, mechanism.size)
        return max(0, targets - (mechanism.size - fewest)), min(targets, most)
    if isinstance(mechanism, HadamardResponse):
        # Column 0 supports every value. Any other one has -1 in half of the rows, and one has
        # it in all rows from order / 2 on, which all belong to values.
        return max(0, targets - mechanism.order // 2), targets
    assert mechanism.size is None or isinstance(mechanism, (UnaryEncoding, BasicRappor))
    return 0, targets


def _in_planes(order: int, dimension: int, size: int) -> tuple[int, int]:
    """The fewest and the most of the first `size` points that one hyperplane holds.

    The first order**(dimension - 1) points have a leading 1. One hyperplane holds none of them,
    and all points after them; any other one holds order**(dimension - 2) of them, and of the
    points after them what a hyperplane of their space holds.
    """
    if dimension == 1:
        return 0, 0  # a hyperplane of a single point is empty
    leading, each = order ** (dimension - 1), order ** (dimension - 2)
    if size <= leading:
        return 0, min(size, each)
    fewest, most = _in_planes(order, dimension - 1, size - leading)
    return min(size - leading, each + fewest), each + most


def _of_filters(bloom: Bloom, p11: Fraction, p01: Fraction) -> tuple[Fraction, Fraction]:
    """The pull on one string, by the weights of the regression (see above)."""
    h, k = bloom.h, bloom.k
    c = 1 - (1 - Fraction(1, k)) ** h
    d = (1 - 2 * c) * h + c**2 * k
    spare = p01 * (h - c * k)
    constant = c * (h - c * k) / d
    most = (h * (1 - c) - spare) / (d * (p11 - p01)) - constant
    least = (-c * (k - h) - spare) / (d * (p11 - p01)) - constant
    return most, least
