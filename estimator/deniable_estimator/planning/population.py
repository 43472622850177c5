"""Populations for `deniable plan simulate`: how many devices have each value or number."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from statistics import NormalDist

import numpy as np

from deniable.protocol.errors import ValueListError
from deniable_estimator.answers.files import csv_rows
from deniable_estimator.statistics.intervals import FloatArray

_STEPS = 10_000
"""How many numbers, all equally frequent, stand for a continuous distribution."""


@dataclass(frozen=True, eq=False)
class Crowd:
    """Which numbers devices have; arrays have shape (k,)."""

    numbers: FloatArray
    """In rising order."""
    weights: FloatArray
    """How many devices have each, or in which proportion."""

    @classmethod
    def of(cls, numbers: FloatArray, weights: FloatArray | None = None) -> Crowd:
        """The crowd of these numbers in any order; without weights, of one device each."""
        order = np.argsort(numbers, kind="stable")
        some = np.ones(len(numbers)) if weights is None else weights
        return cls(np.asarray(numbers, np.float64)[order], np.asarray(some, np.float64)[order])

    def quantile(self, p: float) -> float:
        """The smallest number with at least the share p at or below it."""
        reached = np.cumsum(self.weights)
        return float(self.numbers[np.searchsorted(reached, p * reached[-1] * (1 - 1e-12))])

    def mean(self) -> float:
        return float(self.numbers @ self.weights / self.weights.sum())

    def geometric_mean(self) -> float:
        """NaN if a number is not above 0."""
        if self.numbers[self.weights > 0].min() <= 0:
            return math.nan
        logs = np.log(self.numbers, where=self.weights > 0, out=np.zeros(len(self.numbers)))
        return math.exp(float(logs @ self.weights / self.weights.sum()))

    def share_below(self, limit: float) -> float:
        return float(self.weights[self.numbers < limit].sum() / self.weights.sum())

    def series(self, name: str) -> float:
        """What an estimate's series of this name estimates: "mean", "geometric mean" or "p95"."""
        if name == "mean":
            return self.mean()
        if name == "geometric mean":
            return self.geometric_mean()
        return self.quantile(float(name.removeprefix("p")) / 100)


def normal_crowd(mean: float, deviation: float) -> Crowd:
    """Numbers that are normally distributed."""
    return Crowd.of(mean + deviation * normal_scores())


def lognormal_crowd(median: float, sigma: float) -> Crowd:
    """Numbers whose logarithms are, around that of `median`, with the deviation `sigma`."""
    return Crowd.of(median * np.exp(sigma * normal_scores()))


def read_numbers(path: str | Path) -> Crowd:
    """The crowd of a file that has a number on each line, or a number and its weight: `2.5,30`.

    Raises:
        ValueListError: the file cannot be read, or a line is no finite number with a weight of at
            least 0; the error names the line.
    """
    source = str(path)
    numbers, weights = [], []
    for line, fields in csv_rows(Path(path)):
        number, weight = _number_line(source, line, fields)
        numbers.append(number)
        weights.append(weight)
    if not math.fsum(weights) > 0:
        raise ValueListError(source, None, "gives no number a weight above 0")
    return Crowd.of(np.array(numbers), np.array(weights))


def zipf_shares(size: int, exponent: float) -> FloatArray:
    """Shares proportional to 1 / rank**exponent, shape (size,), summing to 1."""
    weights = np.arange(1, size + 1, dtype=np.float64) ** -exponent
    shares: FloatArray = weights / weights.sum()
    return shares


def read_shares(path: str | Path, *lists: Sequence[str]) -> FloatArray:
    """Shares from a CSV file of `value,weight` lines, in the order of the list of values; of a pair
    of lists those of its cells, row by row, from `value,value,weight` lines.

    Weights are scaled to sum to 1; a value that is not in the file has weight 0.

    Raises:
        ValueListError: the file cannot be read, or a line is not a value of the metric, once,
            with a weight of at least 0; the error names the line.
    """
    weights = _read_weights(str(path), lists, "value" if len(lists) == 1 else "cell")
    shares = np.array([weights.get(cell, 0.0) for cell in product(*lists)])
    return shares / math.fsum(weights.values())


def read_strings(path: str | Path) -> tuple[list[str], FloatArray]:
    """The strings of a CSV file of `string,weight` lines, and their shares, in its order.

    Weights are scaled to sum to 1.

    Raises:
        ValueListError: the file cannot be read, or a line is not a string, once, with a weight of
            at least 0; the error names the line.
    """
    weights = _read_weights(str(path), [None], "string")
    shares = np.array(list(weights.values())) / math.fsum(weights.values())
    return [text for (text,) in weights], shares


def pair_shares(first: FloatArray, second: FloatArray, dependence: float) -> FloatArray:
    """The cells of two lists with these shares, row by row. The part `dependence` of the devices
    has values that rise together, and the others have them independently."""
    below = np.minimum.outer(np.cumsum(first), np.cumsum(second))
    rising = np.diff(np.diff(below, axis=0, prepend=0.0), axis=1, prepend=0.0)
    table: FloatArray = (1 - dependence) * np.outer(first, second) + dependence * rising
    cells = np.maximum(table, 0.0).ravel()
    shares: FloatArray = cells / cells.sum()
    return shares


@cache
def normal_scores() -> FloatArray:
    """Quantiles of the standard normal distribution, evenly spaced in probability."""
    normal = NormalDist()
    return np.array([normal.inv_cdf((each + 0.5) / _STEPS) for each in range(_STEPS)])


def _number_line(source: str, line: int, fields: list[str]) -> tuple[float, float]:
    try:
        number, weight = float(fields[0]), float(fields[1]) if len(fields) > 1 else 1.0
    except ValueError:
        number = weight = math.nan
    if len(fields) > 2 or not (math.isfinite(number) and math.isfinite(weight) and weight >= 0):
        message = "is no finite number, alone or with a weight of at least 0, like 2.5,30"
        raise ValueListError(source, line, message)
    return number, weight


def _read_weights(
    source: str, lists: Sequence[Sequence[str] | None], what: str
) -> dict[tuple[str, ...], float]:
    """The weight of each value, or of each value of the first list with one of the second, in the
    file's order. Without a list, any text may be named."""
    form = ",".join(["value"] * len(lists) + ["weight"])
    known = [None if each is None else frozenset(each) for each in lists]
    weights: dict[tuple[str, ...], float] = {}
    for line, fields in csv_rows(Path(source)):
        # The form in which values are declared.
        *named, text = (unicodedata.normalize("NFC", each) for each in fields)
        try:
            weight = float(text)
        except ValueError:
            named = []
        if len(named) != len(lists):
            raise ValueListError(source, line, f"is not {form}")
        if not (math.isfinite(weight) and weight >= 0):
            raise ValueListError(source, line, f"has the weight {text}; give it one of at least 0")
        for value, values in zip(named, known, strict=True):
            if values is not None and value not in values:
                raise ValueListError(
                    source, line, f"names {value!r}, which the metric does not declare"
                )
        if tuple(named) in weights:
            told = " with ".join(map(repr, named))
            raise ValueListError(source, line, f"names {told} a second time")
        weights[tuple(named)] = weight
    if not math.fsum(weights.values()) > 0:
        raise ValueListError(source, None, f"gives no {what} a weight above 0")
    return weights
