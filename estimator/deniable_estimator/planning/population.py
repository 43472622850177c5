"""Simulated populations: how many devices have each value, for `deniable simulate`."""

from __future__ import annotations

import csv
import math
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from deniable.errors import ValueListError
from deniable_estimator.statistics.intervals import FloatArray

__all__ = ["read_shares", "zipf_shares"]


def zipf_shares(size: int, exponent: float) -> FloatArray:
    """Shares proportional to 1 / rank**exponent, shape (size,), summing to 1."""
    weights = np.arange(1, size + 1, dtype=np.float64) ** -exponent
    shares: FloatArray = weights / weights.sum()
    return shares


def read_shares(path: str | Path, values: Sequence[str]) -> FloatArray:
    """Shares from a CSV file of `value,weight` lines, in the order of `values`.

    Weights are scaled to sum to 1; a value that is not in the file has weight 0.

    Raises:
        ValueListError: the file cannot be read, or a line is not a value of the metric, once,
            with a weight of at least 0; the error names the line.
    """
    source = str(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ValueListError(source, None, f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise ValueListError(source, None, "is not UTF-8 text; save it in that encoding") from None
    weights = dict.fromkeys(values, 0.0)
    given: set[str] = set()
    reader = csv.reader(text.splitlines())
    for fields in reader:
        if fields:
            value, weight = _line(source, reader.line_num, fields)
            if value not in weights:
                message = f"names {value!r}, which the metric does not declare"
                raise ValueListError(source, reader.line_num, message)
            if value in given:
                raise ValueListError(source, reader.line_num, f"names {value!r} a second time")
            given.add(value)
            weights[value] = weight
    total = math.fsum(weights.values())
    if not total > 0:
        raise ValueListError(source, None, "gives no value a weight above 0; write value,weight")
    return np.array(list(weights.values())) / total


def _line(source: str, number: int, fields: list[str]) -> tuple[str, float]:
    try:
        value, text = fields
        value = unicodedata.normalize("NFC", value)  # the form in which values are declared
        weight = float(text)
    except ValueError:
        message = "is not a value and its weight; write it as value,weight"
        raise ValueListError(source, number, message) from None
    if not (math.isfinite(weight) and weight >= 0):
        raise ValueListError(source, number, f"has the weight {text}; give it one of at least 0")
    return value, weight
