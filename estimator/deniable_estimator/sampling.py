"""Simulated tallies: drawn from their exact distribution, without simulating a device.

There is one sampler for each mechanism, by name. To add one, write it in its own file and list
it here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable.mechanisms import (
    BasicRappor,
    CohortLocalHashing,
    CountMeanSketch,
    HadamardCountMeanSketch,
    HadamardResponse,
    HashedProjectiveGeometry,
    MemoizedLocalHashing,
    MemoizedSubsetSelection,
    OneTimeRappor,
    ProjectiveGeometry,
    Rappor,
    SubsetSelection,
    UnaryEncoding,
)
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.decoders import (
    bloom,
    hadamard_response,
    hashed,
    projective_geometry,
    subset_selection,
    unary_encoding,
)
from deniable_estimator.decoders.support import Items
from deniable_estimator.errors import EstimateError

__all__ = ["SAMPLERS", "Sampler", "sample_tally"]

Sampler: TypeAlias = Callable[
    [Any, Items, NDArray[np.int64], np.random.Generator], tuple[TallyRow, ...]
]
"""(the mechanism, items, devices with each item, shape (d,), generator) -> the tally's rows."""

SAMPLERS: dict[str, Sampler] = {
    SubsetSelection.name: subset_selection.sample_rows,
    UnaryEncoding.name: unary_encoding.sample_rows,
    ProjectiveGeometry.name: projective_geometry.sample_rows,
    HadamardResponse.name: hadamard_response.sample_rows,
    HashedProjectiveGeometry.name: hashed.sample_rows,
    CohortLocalHashing.name: hashed.sample_rows,
    CountMeanSketch.name: hashed.sample_rows,
    HadamardCountMeanSketch.name: hashed.sample_rows,
    MemoizedSubsetSelection.name: subset_selection.sample_rows,
    MemoizedLocalHashing.name: hashed.sample_rows,
    BasicRappor.name: unary_encoding.sample_rows,
    Rappor.name: bloom.sample_rows,
    OneTimeRappor.name: bloom.sample_rows,
}
"""mechanism -> sampler."""


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
    name = scheme.mechanism.name
    if name not in SAMPLERS:
        raise EstimateError(f"tallies of {name} cannot be simulated: simulate its devices")
    if scheme.needs_candidates and values is None:
        raise EstimateError("this metric's domain is open: say which strings the counts are for")
    items: Items = values or () if scheme.needs_candidates else scheme.items
    if len(items) != len(counts):
        raise EstimateError(f"{len(counts)} counts for {len(items)} values: give one for each")
    rows = SAMPLERS[name](scheme.mechanism, items, np.asarray(counts, np.int64), rng)
    return Tally(metric, scheme.fingerprint, (window,), rows)
