"""What the tallies of each mechanism say: one analysis for each, and here the list of them.

Adding a mechanism to the estimator means one file in this folder and its entry here. `sample_tally`
draws the tally of a crowd from its exact distribution, without simulating a device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable.protocol.mechanisms import FrequencyOracle, Mechanism
from deniable.protocol.mechanisms.number_range import Numeric
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable_collector.tally import Tally
from deniable_estimator.analyses import (
    cohorts,
    discovery,
    hashed,
    own_columns,
    planes,
    projective_geometry,
    retention,
)
from deniable_estimator.analyses.base import Analysis, Items, OracleAnalysis
from deniable_estimator.analyses.numbers import dbitflip, hierarchical_histogram, sliding_window
from deniable_estimator.errors import EstimateError
from deniable_estimator.statistics.intervals import FloatArray

ANALYSES: dict[str, type[Analysis[Any]]] = {
    "subset_selection": own_columns.SubsetSelectionAnalysis,
    "memoized_subset_selection": own_columns.MemoizedSubsetSelectionAnalysis,
    "unary_encoding": own_columns.UnaryEncodingAnalysis,
    "basic_rappor": own_columns.BasicRapporAnalysis,
    "projective_geometry": projective_geometry.ProjectiveGeometryAnalysis,
    "hadamard_response": planes.HadamardResponseAnalysis,
    "hashed_projective_geometry": hashed.HashedProjectiveGeometryAnalysis,
    "count_mean_sketch": hashed.CountMeanSketchAnalysis,
    "hadamard_count_mean_sketch": hashed.HadamardCountMeanSketchAnalysis,
    "cohort_local_hashing": cohorts.CohortLocalHashingAnalysis,
    "memoized_local_hashing": cohorts.MemoizedLocalHashingAnalysis,
    "rappor": cohorts.RapporAnalysis,
    "one_time_rappor": cohorts.FilterAnalysis,
    "sliding_window": sliding_window.SlidingWindowAnalysis,
    "hierarchical_histogram": hierarchical_histogram.HierarchicalHistogramAnalysis,
    "dbitflip": dbitflip.DBitFlipAnalysis,
    "prefix_tree": discovery.PrefixTreeAnalysis,
    "memoized_retention": retention.RetentionAnalysis,
}
"""The name of a mechanism -> its analysis."""


def analysis_of(mechanism: Mechanism[Any]) -> Analysis[Any]:
    """The analysis of a mechanism's tallies."""
    return ANALYSES.get(mechanism.name, OracleAnalysis)(mechanism)


def oracle_analysis(mechanism: Mechanism[Any]) -> OracleAnalysis[Any]:
    """That of a frequency oracle.

    Raises:
        EstimateError: the mechanism is none.
    """
    if not isinstance(mechanism, FrequencyOracle):
        raise EstimateError(f"{mechanism.name} has no shares of values to estimate")
    analysis = analysis_of(mechanism)
    assert isinstance(analysis, OracleAnalysis)
    return analysis


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
