"""What the tallies of each mechanism say: one analysis for each, and here the list of them.

Adding a mechanism to the estimator means one file in this folder and its entry here. A frequency
oracle that is not listed is still estimated, by counting cell by cell.
"""

from __future__ import annotations

from typing import Any

from deniable.protocol.mechanisms import FrequencyOracle, Mechanism, Memoizing
from deniable_estimator.analyses import (
    cohorts,
    discovery,
    hashed,
    numbers,
    own_columns,
    planes,
    projective_geometry,
    retention,
)
from deniable_estimator.analyses.base import Analysis, MemoryAnalysis, OracleAnalysis
from deniable_estimator.errors import EstimateError

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
    "one_time_rappor": cohorts.OneTimeRapporAnalysis,
    "sliding_window": numbers.SlidingWindowAnalysis,
    "hierarchical_histogram": numbers.HierarchicalHistogramAnalysis,
    "dbitflip": numbers.DBitFlipAnalysis,
    "prefix_tree": discovery.PrefixTreeAnalysis,
    "memoized_retention": retention.RetentionAnalysis,
}
"""The name of a mechanism -> its analysis."""


def analysis_of(mechanism: Mechanism[Any]) -> Analysis[Any]:
    """The analysis of a mechanism's tallies.

    Raises:
        EstimateError: there is none.
    """
    if mechanism.name in ANALYSES:
        return ANALYSES[mechanism.name](mechanism)
    return oracle_analysis(mechanism)


def oracle_analysis(mechanism: Mechanism[Any]) -> OracleAnalysis[Any]:
    """That of a frequency oracle.

    Raises:
        EstimateError: the mechanism is none.
    """
    if not isinstance(mechanism, FrequencyOracle):
        raise EstimateError(f"{mechanism.name} has no shares of values to estimate")
    kind = ANALYSES.get(mechanism.name, OracleAnalysis)
    analysis = kind(mechanism)
    assert isinstance(analysis, OracleAnalysis)
    return analysis


def memory_of(mechanism: Memoizing[Any]) -> MemoryAnalysis:
    """What the memos of a mechanism add.

    Raises:
        TypeError: its analysis does not say.
    """
    memory = analysis_of(mechanism).memory
    if memory is None:
        raise TypeError(f"the memos of {mechanism.name} are not known here: add them")
    return memory
