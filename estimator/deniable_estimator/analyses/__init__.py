"""What the tallies of each mechanism say: one analysis for each, and here the list of them.

Adding a mechanism to the estimator means one file in this folder and its entry here. A frequency
oracle that is not listed is still estimated, by counting cell by cell.
"""

from __future__ import annotations

from typing import Any

from deniable.protocol import mechanisms
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

ANALYSES: dict[type[Mechanism[Any]], type[Analysis[Any]]] = {
    mechanisms.SubsetSelection: own_columns.SubsetSelectionAnalysis,
    mechanisms.MemoizedSubsetSelection: own_columns.MemoizedSubsetSelectionAnalysis,
    mechanisms.UnaryEncoding: own_columns.UnaryEncodingAnalysis,
    mechanisms.BasicRappor: own_columns.BasicRapporAnalysis,
    mechanisms.ProjectiveGeometry: projective_geometry.ProjectiveGeometryAnalysis,
    mechanisms.HadamardResponse: planes.HadamardResponseAnalysis,
    mechanisms.HashedProjectiveGeometry: hashed.HashedProjectiveGeometryAnalysis,
    mechanisms.CountMeanSketch: hashed.CountMeanSketchAnalysis,
    mechanisms.HadamardCountMeanSketch: hashed.HadamardCountMeanSketchAnalysis,
    mechanisms.CohortLocalHashing: cohorts.CohortLocalHashingAnalysis,
    mechanisms.MemoizedLocalHashing: cohorts.MemoizedLocalHashingAnalysis,
    mechanisms.Rappor: cohorts.RapporAnalysis,
    mechanisms.OneTimeRappor: cohorts.OneTimeRapporAnalysis,
    mechanisms.SlidingWindow: numbers.SlidingWindowAnalysis,
    mechanisms.HierarchicalHistogram: numbers.HierarchicalHistogramAnalysis,
    mechanisms.DBitFlip: numbers.DBitFlipAnalysis,
    mechanisms.PrefixTree: discovery.PrefixTreeAnalysis,
    mechanisms.MemoizedRetention: retention.RetentionAnalysis,
}
"""mechanism -> its analysis."""


def analysis_of(mechanism: Mechanism[Any]) -> Analysis[Any]:
    """The analysis of a mechanism's tallies.

    Raises:
        EstimateError: there is none.
    """
    kind = type(mechanism)
    if kind in ANALYSES:
        return ANALYSES[kind](mechanism)
    return oracle_analysis(mechanism)


def oracle_analysis(mechanism: Mechanism[Any]) -> OracleAnalysis[Any]:
    """That of a frequency oracle.

    Raises:
        EstimateError: the mechanism is none.
    """
    if not isinstance(mechanism, FrequencyOracle):
        raise EstimateError(f"{mechanism.name} has no shares of values to estimate")
    kind = ANALYSES.get(type(mechanism), OracleAnalysis)
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
