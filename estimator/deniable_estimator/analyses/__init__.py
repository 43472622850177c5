"""What the tallies of each mechanism say: one analysis for each, and here the list of them.

Adding a mechanism to the estimator means one file in this folder and its entry here. A frequency
oracle that is not listed is still estimated, by counting cell by cell.
"""

from __future__ import annotations

from typing import Any

from deniable.protocol.mechanisms import (
    BasicRappor,
    CohortLocalHashing,
    CountMeanSketch,
    DBitFlip,
    FrequencyOracle,
    HadamardCountMeanSketch,
    HadamardResponse,
    HashedProjectiveGeometry,
    HierarchicalHistogram,
    Mechanism,
    MemoizedLocalHashing,
    MemoizedRetention,
    MemoizedSubsetSelection,
    Memoizing,
    OneTimeRappor,
    PrefixTree,
    ProjectiveGeometry,
    Rappor,
    SlidingWindow,
    SubsetSelection,
    UnaryEncoding,
)
from deniable_estimator.analyses.base import Analysis, MemoryAnalysis, OracleAnalysis
from deniable_estimator.analyses.cohorts import (
    CohortLocalHashingAnalysis,
    MemoizedLocalHashingAnalysis,
    OneTimeRapporAnalysis,
    RapporAnalysis,
)
from deniable_estimator.analyses.discovery import PrefixTreeAnalysis
from deniable_estimator.analyses.hashed import (
    CountMeanSketchAnalysis,
    HadamardCountMeanSketchAnalysis,
    HashedProjectiveGeometryAnalysis,
)
from deniable_estimator.analyses.histogram import DBitFlipAnalysis, HierarchicalHistogramAnalysis
from deniable_estimator.analyses.own_columns import (
    BasicRapporAnalysis,
    MemoizedSubsetSelectionAnalysis,
    SubsetSelectionAnalysis,
    UnaryEncodingAnalysis,
)
from deniable_estimator.analyses.planes import HadamardResponseAnalysis
from deniable_estimator.analyses.projective_geometry import ProjectiveGeometryAnalysis
from deniable_estimator.analyses.retention import RetentionAnalysis
from deniable_estimator.analyses.sliding_window import SlidingWindowAnalysis
from deniable_estimator.errors import EstimateError

__all__ = ["ANALYSES", "analysis_of", "memory_of", "oracle_analysis"]

ANALYSES: dict[type[Mechanism[Any]], type[Analysis[Any]]] = {
    SubsetSelection: SubsetSelectionAnalysis,
    MemoizedSubsetSelection: MemoizedSubsetSelectionAnalysis,
    UnaryEncoding: UnaryEncodingAnalysis,
    BasicRappor: BasicRapporAnalysis,
    ProjectiveGeometry: ProjectiveGeometryAnalysis,
    HadamardResponse: HadamardResponseAnalysis,
    HashedProjectiveGeometry: HashedProjectiveGeometryAnalysis,
    CountMeanSketch: CountMeanSketchAnalysis,
    HadamardCountMeanSketch: HadamardCountMeanSketchAnalysis,
    CohortLocalHashing: CohortLocalHashingAnalysis,
    MemoizedLocalHashing: MemoizedLocalHashingAnalysis,
    Rappor: RapporAnalysis,
    OneTimeRappor: OneTimeRapporAnalysis,
    SlidingWindow: SlidingWindowAnalysis,
    HierarchicalHistogram: HierarchicalHistogramAnalysis,
    DBitFlip: DBitFlipAnalysis,
    PrefixTree: PrefixTreeAnalysis,
    MemoizedRetention: RetentionAnalysis,
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
