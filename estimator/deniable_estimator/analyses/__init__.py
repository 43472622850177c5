"""What the tallies of each mechanism say: one analysis for each, and here the list of them.

Adding a mechanism to the estimator means one file in this folder and its entry here. `sample_tally`
draws the tally of a crowd from its exact distribution, without simulating a device; `asked_values`
says what a tally is asked for: the declared values, or candidates that follow the rule for values.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable.protocol.errors import ValueListError
from deniable.protocol.mechanisms import FrequencyOracle, Mechanism
from deniable.protocol.mechanisms.number_range import Numeric
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable.protocol.value_list import value_texts
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
from deniable_estimator.messages import message
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


_KEPT = 50_000
"""Strings of a list up to which it is kept once it is checked: two such lists take about 10 MB."""


def asked_values(
    scheme: Scheme, candidates: Sequence[str] | None = None
) -> tuple[tuple[str, ...], Items]:
    """The candidates as values, and what the mechanism randomizes in place of each.

    Without candidates, those of the scheme's closed domain, in its order. Candidates are brought
    into normal form C, as devices do it.

    Raises:
        EstimateError: a candidate cannot be a value (`deniable.protocol.value_list`), is listed
            twice or is not in the domain; or the metric is a string and there are no candidates.
    """
    if candidates is not None:
        return _named(scheme, candidates)
    if scheme.needs_candidates:
        raise EstimateError(
            message("this metric's domain is open: give the candidates to look for")
        )
    return scheme.values, _array(scheme.items)


def _checked(candidates: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(value_texts(candidates, "the list of candidates"))


# Every period of a trend asks for the same list.
_kept = lru_cache(maxsize=2)(_checked)


def _named(scheme: Scheme, candidates: Sequence[str]) -> tuple[tuple[str, ...], Items]:
    try:
        check = _kept if len(candidates) <= _KEPT else _checked
        values = check(tuple(candidates))
    except ValueListError as error:
        raise EstimateError(str(error)) from None
    if scheme.needs_candidates:
        return values, values
    index = dict(zip(scheme.values, scheme.items, strict=True))
    try:
        return values, _array([index[value] for value in values])
    except KeyError as error:
        raise EstimateError(
            message(
                "{value} is not one of the metric's declared values, so no report can speak of "
                "it: leave it out",
                value=str(error),
            )
        ) from None


def _array(items: Sequence[Any]) -> Items:
    """Indices as an array, to gather with; strings as they are."""
    if isinstance(items[0], str):
        return items
    if isinstance(items, range):
        return np.arange(items.start, items.stop, items.step)
    return np.array(items, np.int64)
