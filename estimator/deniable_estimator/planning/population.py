"""What devices have in a simulated population: made up for a metric, or read from a file."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from deniable import Metric
from deniable.protocol.errors import ValueListError
from deniable.protocol.mechanisms.number_range import NumberRange
from deniable.protocol.types.discovery import Discovery
from deniable.protocol.types.number import Number
from deniable.protocol.types.pair import Pair
from deniable_estimator.document.csv_files import csv_rows
from deniable_estimator.messages import message
from deniable_estimator.statistics.intervals import FloatArray

STRINGS = 20
"""Of a metric for any string, so many made-up ones are recorded, if there is no list."""

WORDS = ("cafe", "decade", "face", "bead", "feed", "cab", "deaf", "fade", "bed", "added")
"""What simulated devices have of a discovery: words whose letters every alphabet has."""

_YES_AND_NO = np.array([0.3, 0.7])
"""The shares of devices that say yes, and no, to a boolean metric."""

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


def zipf_shares(size: int, exponent: float) -> FloatArray:
    """Shares proportional to 1 / rank**exponent, shape (size,), summing to 1."""
    weights = np.arange(1, size + 1, dtype=np.float64) ** -exponent
    shares: FloatArray = weights / weights.sum()
    return shares


class CrowdValues(NamedTuple):
    """What devices have of a metric: normalized texts, the share of each, and these in words."""

    values: list[str]
    shares: FloatArray
    words: str


def made_up(metric: Metric, listed: Sequence[str] | None = None) -> CrowdValues:
    """The made-up values of a metric, which is no retention; `listed` are strings to take for those
    that devices have, the commonest first."""
    kind = metric.type
    if isinstance(kind, Number):
        return _made_up_numbers(metric, kind.range)
    if isinstance(kind, Pair):
        # As if the two had nothing to do with each other.
        one, two = (
            _YES_AND_NO if len(part.values) == 2 else zipf_shares(len(part.values), 1.0)
            for part in kind.parts
        )
        told = message("the values of the two metrics are independent of each other")
        return CrowdValues(list(metric.values), np.outer(one, two).ravel(), told)
    if kind.name == "boolean":
        told = message("{percent}% say yes", percent=f"{100 * _YES_AND_NO[0]:g}")
        return CrowdValues(["true", "false"], _YES_AND_NO, told)
    if isinstance(kind, Discovery):
        values = list(dict.fromkeys(map(metric.normalize, listed or WORDS)))
    else:
        made = (f"example-{number}" for number in range(1, STRINGS + 1))
        values = list(metric.values or listed or made)
    told = message(
        "the first of {count} values is the most frequent, the second half as frequent as that, "
        "the third a third, and so on",
        count=len(values),
    )
    return CrowdValues(values, zipf_shares(len(values), 1.0), told)


def _made_up_numbers(metric: Metric, numbers: NumberRange) -> CrowdValues:
    low, high = float(numbers.low), float(numbers.high)
    log = numbers.scale == "log"
    # Each hundredth of the quantiles stands for those around it.
    scores = normal_scores()[50::100]
    middle, least, most = (
        low * (high / low) ** part if log else low + part * (high - low)
        for part in (0.4, 0.15, 0.65)
    )
    if log:
        told = message(
            "around {middle:.3g}, on a logarithmic scale; 95% from {low:.3g} to {high:.3g}",
            middle=middle,
            low=least,
            high=most,
        )
        some = middle * np.exp(math.log(most / least) / 4 * scores)
    else:
        told = message(
            "around {middle:.3g}, and 95% from {low:.3g} to {high:.3g}",
            middle=middle,
            low=least,
            high=most,
        )
        some = middle + (most - least) / 4 * scores
    if numbers.integer:
        some = np.rint(some)
    texts = [metric.normalize(float(each)) for each in some.tolist()]
    return CrowdValues(texts, np.full(len(texts), 1 / len(texts)), told)


def read_population(path: Path, metric: Metric) -> CrowdValues:
    """What devices have by a CSV file: `value,weight` lines, of a pair `value,value,weight`, of a
    number `number` or `number,weight`; of a metric that lists no values any strings.

    Weights are scaled to sum to 1; a listed value that is not in the file has weight 0.

    Raises:
        ValueListError: the file cannot be read, or a line is not such a value, once, with a weight
            of at least 0; the error names the line.
    """
    kind = metric.type
    if isinstance(kind, Number):
        weights = _read_numbers(metric, path)
        what = "number"
    else:
        lists = [part.values for part in kind.parts] if isinstance(kind, Pair) else [metric.values]
        weights = _read_weights(metric, path, lists)
        what = "cell" if len(lists) > 1 else "value" if metric.values else "string"
    total = math.fsum(weights.values())
    if not total > 0:
        raise ValueListError(str(path), None, f"gives no {what} a weight above 0")
    return CrowdValues(list(weights), np.array(list(weights.values())) / total, f"as in {path}")


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


def _read_numbers(metric: Metric, path: Path) -> dict[str, float]:
    """The weight of each number, as its normalized text."""
    weights: dict[str, float] = {}
    for line, fields in csv_rows(path):
        try:
            number, weight = float(fields[0]), float(fields[1]) if len(fields) > 1 else 1.0
        except ValueError:
            number = weight = math.nan
        if len(fields) > 2 or not (math.isfinite(number) and math.isfinite(weight) and weight >= 0):
            message = "is no finite number, alone or with a weight of at least 0, like 2.5,30"
            raise ValueListError(str(path), line, message)
        text = metric.normalize(number)
        weights[text] = weights.get(text, 0.0) + weight
    return weights


def _read_weights(metric: Metric, path: Path, lists: Sequence[Sequence[str]]) -> dict[str, float]:
    """The weight of each value, or of each value of the first list with one of the second, in the
    metric's order. Of an empty list any text may be named; the order is then the file's."""
    source, form = str(path), ",".join(["value"] * len(lists) + ["weight"])
    weights: dict[tuple[str, ...], float] = {}
    for line, fields in csv_rows(path):
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
        for value, values in zip(named, lists, strict=True):
            if values and value not in values:
                raise ValueListError(
                    source, line, f"names {value!r}, which the metric does not declare"
                )
        if tuple(named) in weights:
            told = " with ".join(map(repr, named))
            raise ValueListError(source, line, f"names {told} a second time")
        weights[tuple(named)] = weight
    if metric.values:
        cells = zip(metric.values, product(*lists), strict=True)
        return {value: weights.get(cell, 0.0) for value, cell in cells}
    found: dict[str, float] = {}
    for (value,), weight in weights.items():
        text = metric.normalize(value)
        found[text] = found.get(text, 0.0) + weight
    return found
