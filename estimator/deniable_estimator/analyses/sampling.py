"""Simulated tallies: drawn from their exact distribution, without simulating a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

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
    values: Sequence[str] | FloatArray | None = None,
    metric: str = "simulated",
    window: str = "simulated",
) -> Tally:
    """One window's tally of `counts.sum()` devices, `counts[i]` of which have the i-th value.

    Args:
        counts: shape (d,), non-negative.
        values: the strings or the numbers, if the scheme does not list its values. Numbers may lie
            outside of the range.

    Raises:
        EstimateError: no sampler for this mechanism, or not one count for each value.
    """
    mechanism, counts = scheme.mechanism, np.asarray(counts, np.int64)
    items: Items
    if not isinstance(mechanism, (Numeric, PrefixTree)) and not scheme.needs_candidates:
        items = scheme.items
    elif values is None:
        raise EstimateError("this metric's domain is open: say which values the counts are for")
    elif isinstance(mechanism, Numeric):
        places = [mechanism.range.position(float(each)) for each in values]
        items, index = np.unique(np.array(places, np.int64), return_inverse=True)
        counts = np.bincount(index, weights=counts, minlength=len(items)).astype(np.int64)
    else:
        items = cast("Sequence[str]", values)
    if len(items) != len(counts):
        raise EstimateError(f"{len(counts)} counts for {len(items)} values: give one for each")
    rows = analysis_of(mechanism).sample_rows(items, counts, rng)
    return Tally(metric, scheme.fingerprint, (window,), rows)
