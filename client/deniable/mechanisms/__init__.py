"""Mechanisms by name: for the registry, which names one, and for schemes, which are read back.

To add a mechanism, add one file to this folder and its entries to the tables below. The
collector need not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deniable.errors import SchemeError
from deniable.mechanisms.base import (
    MAX_CELLS,
    MAX_EPSILON,
    MAX_MEMO_EPSILON,
    Cell,
    FrequencyOracle,
    Mechanism,
    Memoizing,
    MemoizingOracle,
    Packing,
    Parameters,
    Report,
    Row,
    check_epsilon,
    check_memo_epsilon,
    total_variance,
)
from deniable.mechanisms.bloom import Bloom
from deniable.mechanisms.choice import (
    Choice,
    best_for,
    best_memoized_for,
    explain,
    explain_memoized,
)
from deniable.mechanisms.cohort_local_hashing import CohortLocalHashing
from deniable.mechanisms.count_mean_sketch import CountMeanSketch, HadamardCountMeanSketch
from deniable.mechanisms.dbitflip import DBitFlip
from deniable.mechanisms.hadamard_response import HadamardResponse
from deniable.mechanisms.hashed import Hashed
from deniable.mechanisms.hashed_projective_geometry import HashedProjectiveGeometry
from deniable.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.mechanisms.level import Level
from deniable.mechanisms.memoized_local_hashing import MemoizedLocalHashing
from deniable.mechanisms.memoized_subset_selection import MemoizedSubsetSelection
from deniable.mechanisms.number_range import TOP, NumberRange
from deniable.mechanisms.numeric import Histogram, Numeric, Span
from deniable.mechanisms.prefix_tree import MAX_DISCOVERY_CELLS, MAX_LEVELS, PrefixTree
from deniable.mechanisms.projective_geometry import ProjectiveGeometry
from deniable.mechanisms.rappor import BasicRappor, OneTimeRappor, Rappor, Rounds
from deniable.mechanisms.sliding_window import SlidingWindow
from deniable.mechanisms.subset_selection import SubsetSelection
from deniable.mechanisms.unary_encoding import UnaryEncoding
from deniable.told import Told

__all__ = [
    "AUTO",
    "DESIGNS",
    "MAX_CELLS",
    "MAX_DISCOVERY_CELLS",
    "MAX_EPSILON",
    "MAX_LEVELS",
    "MAX_MEMO_EPSILON",
    "MEMOIZED_DESIGNS",
    "MEMOIZED_STRING_DESIGNS",
    "STRING_DESIGNS",
    "TOP",
    "BasicRappor",
    "Bloom",
    "Cell",
    "Choice",
    "CohortLocalHashing",
    "CountMeanSketch",
    "DBitFlip",
    "FrequencyOracle",
    "HadamardCountMeanSketch",
    "HadamardResponse",
    "Hashed",
    "HashedProjectiveGeometry",
    "HierarchicalHistogram",
    "Histogram",
    "Level",
    "Mechanism",
    "MemoizedLocalHashing",
    "MemoizedSubsetSelection",
    "Memoizing",
    "MemoizingOracle",
    "NumberRange",
    "Numeric",
    "OneTimeRappor",
    "Packing",
    "Parameters",
    "PrefixTree",
    "ProjectiveGeometry",
    "Rappor",
    "Report",
    "Rounds",
    "Row",
    "SlidingWindow",
    "Span",
    "SubsetSelection",
    "UnaryEncoding",
    "all_names",
    "design",
    "design_memoized",
    "design_string",
    "explain",
    "explain_memoized",
    "names",
    "no_mechanism",
    "rebuild",
    "require_name",
    "total_variance",
]

AUTO = "auto"

DESIGNS: dict[str, Callable[[int, float], FrequencyOracle[int]]] = {
    "subset_selection": SubsetSelection.design,
    "randomized_response": lambda size, epsilon: SubsetSelection.design(size, epsilon, k=1),
    "projective_geometry": ProjectiveGeometry.design,
    "optimized_unary_encoding": UnaryEncoding.optimized,
    "symmetric_unary_encoding": UnaryEncoding.symmetric,
    "hadamard_response": HadamardResponse.design,
}
"""What `mechanism = "..."` may say for a closed domain: name -> (size, epsilon) -> mechanism."""

STRING_DESIGNS: dict[str, Callable[[str, float], FrequencyOracle[str]]] = {
    "hashed_projective_geometry": HashedProjectiveGeometry.design,
    "cohort_local_hashing": CohortLocalHashing.design,
    "count_mean_sketch": CountMeanSketch.design,
    "hadamard_count_mean_sketch": HadamardCountMeanSketch.design,
    "one_time_rappor": OneTimeRappor.design,
}
"""The same for strings: name -> (salt, epsilon) -> mechanism. The salt is the metric's name."""

MEMOIZED_DESIGNS: dict[str, Callable[[int, float, float], MemoizingOracle[int]]] = {
    "memoized_subset_selection": MemoizedSubsetSelection.design,
    "basic_rappor": BasicRappor.design,
}
"""With memos, only for a closed domain: name -> (size, epsilon, lifetime) -> mechanism."""

MEMOIZED_STRING_DESIGNS: dict[str, Callable[[str, float, float], MemoizingOracle[str]]] = {
    "memoized_local_hashing": MemoizedLocalHashing.design,
    "rappor": Rappor.design,
    "rappor_paper": lambda salt, epsilon, lifetime_epsilon: Rappor.paper(salt),
    "rappor_chromium": lambda salt, epsilon, lifetime_epsilon: Rappor.chromium(salt),
}
"""With memos, for strings or the values of a closed domain: name -> (salt, epsilon,
lifetime) -> mechanism."""

_CLASSES: dict[str, type[Mechanism[Any]]] = {
    each.name: each
    for each in (
        SubsetSelection,
        ProjectiveGeometry,
        UnaryEncoding,
        HadamardResponse,
        HashedProjectiveGeometry,
        CohortLocalHashing,
        CountMeanSketch,
        HadamardCountMeanSketch,
        MemoizedSubsetSelection,
        MemoizedLocalHashing,
        BasicRappor,
        Rappor,
        OneTimeRappor,
        SlidingWindow,
        HierarchicalHistogram,
        DBitFlip,
        PrefixTree,
    )
}


def all_names() -> tuple[str, ...]:
    """The names of the mechanisms that schemes can have."""
    return tuple(_CLASSES)


def names(*, closed: bool, memoize: bool) -> tuple[str, ...]:
    """What `mechanism = "..."` may say: for a closed domain or for strings, with memos or not."""
    if memoize:
        return (AUTO, *(MEMOIZED_DESIGNS if closed else ()), *MEMOIZED_STRING_DESIGNS)
    return (AUTO, *(DESIGNS if closed else STRING_DESIGNS))


def require_name(name: str, *, closed: bool, memoize: bool) -> None:
    """Check that there is a mechanism called `name` for such a domain.

    Raises:
        SchemeError: there is none; the message lists those that there are.
    """
    known = names(closed=closed, memoize=memoize)
    if name not in known:
        raise SchemeError(no_mechanism(name, known))


def no_mechanism(name: str, known: Sequence[str]) -> Told:
    """What is wrong with a mechanism's name that is not among the known ones."""
    return Told(
        "no_mechanism",
        "there is no mechanism {name} here: choose one of {known}",
        name=repr(name),
        known=", ".join(known),
    )


def design(name: str, size: int, epsilon: float) -> FrequencyOracle[int]:
    """The mechanism called `name` for a closed domain, within `epsilon`.

    Raises:
        SchemeError: there is no such mechanism, or it cannot keep within `epsilon`.
    """
    require_name(name, closed=True, memoize=False)
    maker = best_for if name == AUTO else DESIGNS[name]
    return maker(size, check_epsilon(epsilon)).require_within(epsilon)


def design_string(name: str, metric: str, epsilon: float) -> FrequencyOracle[str]:
    """The mechanism called `name` for any string, salted by the metric's name, within `epsilon`.

    Raises:
        SchemeError: there is no such mechanism, or it cannot keep within `epsilon`.
    """
    require_name(name, closed=False, memoize=False)
    maker = HashedProjectiveGeometry.design if name == AUTO else STRING_DESIGNS[name]
    return maker(metric, check_epsilon(epsilon)).require_within(epsilon)


def design_memoized(
    name: str, metric: str, size: int | None, epsilon: float, lifetime_epsilon: float
) -> MemoizingOracle[Any]:
    """The mechanism with memos called `name`, within `epsilon` and `lifetime_epsilon`.

    `size` is the size of a closed domain, None for strings. A mechanism over strings can also
    randomize the texts of a closed domain's values; its own size is None. `metric` is its salt.

    Raises:
        SchemeError: there is no such mechanism, or it cannot keep within both.
    """
    check_memo_epsilon(epsilon, lifetime_epsilon)
    require_name(name, closed=size is not None, memoize=True)
    mechanism: MemoizingOracle[Any]
    if size is not None and name == AUTO:
        mechanism = best_memoized_for(size, metric, epsilon, lifetime_epsilon)
    elif size is not None and name in MEMOIZED_DESIGNS:
        mechanism = MEMOIZED_DESIGNS[name](size, epsilon, lifetime_epsilon)
    else:
        maker = MemoizedLocalHashing.design if name == AUTO else MEMOIZED_STRING_DESIGNS[name]
        mechanism = maker(metric, epsilon, lifetime_epsilon)
    return mechanism.require_within_lifetime(epsilon, lifetime_epsilon)


def rebuild(name: str, parameters: Mapping[str, Any]) -> Mechanism[Any]:
    """The mechanism that a published scheme describes.

    Raises:
        SchemeError: no such mechanism, or parameters it cannot have.
    """
    if name not in _CLASSES:
        raise SchemeError(f"this version of deniable knows no mechanism {name!r}: upgrade it")
    return _CLASSES[name].from_parameters(parameters)
