"""Simulated tallies: drawn from their exact distribution, without simulating a device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable.protocol.mechanisms.numeric import Numeric
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable_collector.tally import Tally
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.base import Items
from deniable_estimator.errors import EstimateError
from deniable_estimator.statistics.intervals import FloatArray


def sample_tally(
    scheme: Scheme,
    counts: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    values: Sequence[str] | None = None,
    metric: str = "simulated",
    window: str = "simulated",
) -> Tally:
    """One window's tally of `counts.sum()` devices, `counts[i]` of which have the i-th value.

    Args:
        counts: shape (d,), non-negative.
        values: the strings, if the scheme is for strings.

    Raises:
        EstimateError: no sampler for this mechanism, or not one count for each value.
    """
    is_open = scheme.needs_candidates or isinstance(scheme.mechanism, PrefixTree)
    if is_open and values is None:
        raise EstimateError("this metric's domain is open: say which strings the counts are for")
    items: Items = values or () if is_open else scheme.items
    if len(items) != len(counts):
        raise EstimateError(f"{len(counts)} counts for {len(items)} values: give one for each")
    rows = analysis_of(scheme.mechanism).sample_rows(items, np.asarray(counts, np.int64), rng)
    return Tally(metric, scheme.fingerprint, (window,), rows)


def sample_numbers(
    scheme: Scheme,
    numbers: FloatArray,
    counts: NDArray[np.int64],
    rng: np.random.Generator,
    *,
    metric: str = "simulated",
    window: str = "simulated",
) -> Tally:
    """One window's tally of `counts.sum()` devices, `counts[i]` of which have `numbers[i]`.

    Args:
        numbers: shape (k,), inside of the range or outside.
        counts: shape (k,), non-negative.

    Raises:
        EstimateError: the scheme is not one of numbers.
    """
    mechanism = scheme.mechanism
    if not isinstance(mechanism, Numeric):
        raise EstimateError(f"{mechanism.name} is no mechanism for numbers")
    positions = np.array([mechanism.range.position(each) for each in numbers.tolist()], np.int64)
    some, places = np.unique(positions, return_inverse=True)
    each = np.bincount(places, weights=counts, minlength=len(some)).astype(np.int64)
    rows = analysis_of(mechanism).sample_rows(some, each, rng)
    return Tally(metric, scheme.fingerprint, (window,), rows)
