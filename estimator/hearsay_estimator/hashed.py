"""Hashed strings: the support of candidates summed over the rows of their hash tables, and
tallies drawn from their exact distribution.

In row i a candidate has the support S_i of the place it hashes to, out of n_i reports; the sum
over rows, out of n, is the statistic of a pure protocol with the mechanism's p and q.

A candidate that nobody has looks frequent in a row where it shares the place of a
frequent string, and in that row alone: a *ghost*. With few rows, it is told from a real
string by the disagreement of the rows' own estimates f_i, whose variances are
v / n_i::

    X = sum of n_i (f_i - f)**2 / v,  v = r (1-r) / (p-q)**2 at the common estimate f

which has a chi-square distribution with one degree less than there are rows, if all rows
speak of one share. Heavy collisions make it huge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mmh3
import numpy as np
from numpy.typing import NDArray

from hearsay.hashing import hash_key
from hearsay.mechanisms import (
    HadamardResponse,
    Hashed,
    Mechanism,
    ProjectiveGeometry,
    SubsetSelection,
    UnaryEncoding,
)
from hearsay_collector.tally import Tally, TallyRow
from hearsay_estimator import (
    hadamard_response,
    projective_geometry,
    subset_selection,
    unary_encoding,
)
from hearsay_estimator.support import Items, Support

__all__ = ["GHOST_LEVEL", "decode", "decode_with_ghosts", "hash_places", "sample_rows"]

_Counts = NDArray[np.int64]

GHOST_LEVEL = 1e-3
"""How often a string without collisions is taken for a ghost."""

_TABLES: dict[type[Mechanism[int]], Callable[[_Counts, Any], _Counts]] = {
    ProjectiveGeometry: lambda cells, channel: projective_geometry.space_support(
        cells, channel.order, channel.dimension
    ),
    HadamardResponse: hadamard_response.matrix_support,
    SubsetSelection: lambda cells, channel: cells,
    UnaryEncoding: lambda cells, channel: cells,
}
"""From the cells of a row to the support of each place."""

_SAMPLERS: dict[type[Mechanism[int]], Callable[..., tuple[TallyRow, ...]]] = {
    ProjectiveGeometry: projective_geometry.sample_rows,
    HadamardResponse: hadamard_response.sample_rows,
    SubsetSelection: subset_selection.sample_rows,
    UnaryEncoding: unary_encoding.sample_rows,
}


def hash_places(mechanism: Hashed, texts: Sequence[str]) -> Iterator[_Counts]:
    """Row by row, the places that the strings hash to, each of shape (len(texts),)."""
    keys = [hash_key(mechanism.salt, text) for text in texts]
    for row in range(0, mechanism.hashes, 2):
        digests = b"".join([mmh3.hash_bytes(key, row >> 1) for key in keys])
        halves = np.frombuffer(digests, "<u8").reshape(-1, 2)
        for half in range(min(2, mechanism.hashes - row)):
            yield (halves[:, half] % np.uint64(mechanism.width)).astype(np.int64)


def _row_supports(tally: Tally, mechanism: Hashed, items: Items) -> Iterator[tuple[_Counts, int]]:
    """Row by row, the support of each candidate and the number of reports."""
    table = _TABLES[type(mechanism.channel)]
    for row, places in zip(tally.rows, hash_places(mechanism, list(items)), strict=True):
        yield table(row.cells, mechanism.channel)[places], row.reports


def decode(tally: Tally, mechanism: Hashed, items: Items) -> Support:
    """How many reports support each of the items, which are strings."""
    counts = np.zeros(len(items), np.int64)
    for supported, _ in _row_supports(tally, mechanism, items):
        counts += supported
    return Support(counts, tally.reports)


def decode_with_ghosts(tally: Tally, mechanism: Hashed, items: Items) -> Support:
    """The same, and which of the items are ghosts."""
    rows = [
        (supported, reports)
        for supported, reports in _row_supports(tally, mechanism, items)
        if reports
    ]
    counts = np.zeros(len(items), np.int64)
    for supported, _ in rows:
        counts += supported
    ghosts = np.zeros(len(items), bool)
    if len(rows) > 1:
        rate = counts / tally.reports
        deviance = sum(reports * (supported / reports - rate) ** 2 for supported, reports in rows)
        # At the edges, 0 and 1, the variance of the rate is not known to be 0.
        variance = np.maximum(rate * (1 - rate), 1 / tally.reports)
        ghosts = deviance / variance > _critical(len(rows) - 1)
    return Support(counts, tally.reports, ghosts)


def _critical(freedom: int) -> float:
    """What a chi-square number exceeds with probability GHOST_LEVEL, by bisection."""
    low, high = 0.0, 100.0 + 10.0 * freedom
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _survival(middle, freedom) > GHOST_LEVEL else (low, middle)
    return high


def _survival(x: float, freedom: int) -> float:
    """The upper tail of the chi-square distribution, by its closed forms."""
    half = x / 2
    odd = freedom % 2
    tail = math.erfc(math.sqrt(half)) if odd else math.exp(-half)
    for degree in range(2 - odd, freedom, 2):
        tail += math.exp(degree / 2 * math.log(half) - half - math.lgamma(degree / 2 + 1))
    return tail


def sample_rows(
    mechanism: Hashed, items: Items, counts: _Counts, rng: np.random.Generator
) -> tuple[TallyRow, ...]:
    """The tally of a crowd in which `counts[i]` devices have the string `items[i]`."""
    sample = _SAMPLERS[type(mechanism.channel)]
    every = np.arange(mechanism.width)
    left = np.array(counts, np.int64)
    rows: list[TallyRow] = []
    for row, places in enumerate(hash_places(mechanism, list(items))):
        here = rng.binomial(left, 1 / (mechanism.hashes - row))
        left -= here
        crowd = np.zeros(mechanism.width, np.int64)
        np.add.at(crowd, places, here)
        rows += sample(mechanism.channel, every, crowd, rng)
    return tuple(rows)
