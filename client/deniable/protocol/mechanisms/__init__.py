"""Mechanisms by name: for the registry, which names one, and for schemes, which are read back.

To add a mechanism, add one file to this folder and its entries to the tables below. The
collector need not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from deniable.protocol import lazy_names
from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.errors import SchemeError
from deniable.protocol.mechanisms.base import (
    FrequencyOracle,
    Mechanism,
    Memoizing,
    MemoizingOracle,
    Packing,
    Report,
    Row,
    total_variance,
)
from deniable.protocol.mechanisms.limits import (
    MAX_CELLS,
    MAX_EPSILON,
    MAX_MEMO_EPSILON,
    check_epsilon,
    check_memo_epsilon,
)

if TYPE_CHECKING:
    from deniable.protocol.mechanisms.choice import explain, explain_memoized
    from deniable.protocol.mechanisms.dbitflip import DBitFlip
    from deniable.protocol.mechanisms.hadamard_response import HadamardResponse
    from deniable.protocol.mechanisms.hashed import (
        CohortLocalHashing,
        CountMeanSketch,
        HadamardCountMeanSketch,
        Hashed,
        HashedProjectiveGeometry,
        MemoizedLocalHashing,
    )
    from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram, Level
    from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
    from deniable.protocol.mechanisms.memoized_subset_selection import MemoizedSubsetSelection
    from deniable.protocol.mechanisms.number_range import NumberRange
    from deniable.protocol.mechanisms.numeric import Histogram, Numeric
    from deniable.protocol.mechanisms.prefix_tree import PrefixTree
    from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry
    from deniable.protocol.mechanisms.rappor import (
        BasicRappor,
        Bloom,
        OneTimeRappor,
        Rappor,
        Rounds,
    )
    from deniable.protocol.mechanisms.sliding_window import SlidingWindow
    from deniable.protocol.mechanisms.subset_selection import SubsetSelection
    from deniable.protocol.mechanisms.unary_encoding import UnaryEncoding

__all__ = [
    "AUTO",
    "DESIGNS",
    "MAX_CELLS",
    "MAX_EPSILON",
    "MAX_MEMO_EPSILON",
    "MEMOIZED_DESIGNS",
    "MEMOIZED_STRING_DESIGNS",
    "STRING_DESIGNS",
    "BasicRappor",
    "Bloom",
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
    "MemoizedRetention",
    "MemoizedSubsetSelection",
    "Memoizing",
    "MemoizingOracle",
    "NumberRange",
    "Numeric",
    "OneTimeRappor",
    "Packing",
    "PrefixTree",
    "ProjectiveGeometry",
    "Rappor",
    "Report",
    "Rounds",
    "Row",
    "SlidingWindow",
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
    "total_variance",
]

_HOMES = {
    name: home
    for home, names_of_home in {
        "choice": ("explain", "explain_memoized"),
        "dbitflip": ("DBitFlip",),
        "hadamard_response": ("HadamardResponse",),
        "hashed": (
            "CohortLocalHashing",
            "CountMeanSketch",
            "HadamardCountMeanSketch",
            "Hashed",
            "HashedProjectiveGeometry",
            "MemoizedLocalHashing",
        ),
        "hierarchical_histogram": ("HierarchicalHistogram", "Level"),
        "memoized_retention": ("MemoizedRetention",),
        "memoized_subset_selection": ("MemoizedSubsetSelection",),
        "number_range": ("NumberRange",),
        "numeric": ("Histogram", "Numeric"),
        "prefix_tree": ("PrefixTree",),
        "projective_geometry": ("ProjectiveGeometry",),
        "rappor": ("BasicRappor", "Bloom", "OneTimeRappor", "Rappor", "Rounds"),
        "sliding_window": ("SlidingWindow",),
        "subset_selection": ("SubsetSelection",),
        "unary_encoding": ("UnaryEncoding",),
    }.items()
    for name in names_of_home
}
"""The module of each name that is not imported above."""

if not TYPE_CHECKING:
    # A mechanism is imported when it is first used: a device needs one or two of them, and all of
    # them take longer to import than Python takes to start. Type checkers read the imports above.
    __getattr__, __dir__ = lazy_names(globals(), _HOMES)


def _lazily(name: str, maker: str) -> Callable[..., Any]:
    """A class method of a mechanism, which imports the mechanism when it is called."""

    def make(*arguments: Any, **settings: Any) -> Any:
        home = import_module(f"{__name__}.{_HOMES[name]}")
        return getattr(getattr(home, name), maker)(*arguments, **settings)

    return make


AUTO = "auto"

DESIGNS: dict[str, Callable[[int, float], FrequencyOracle[int]]] = {
    "subset_selection": _lazily("SubsetSelection", "design"),
    "randomized_response": partial(_lazily("SubsetSelection", "design"), k=1),
    "projective_geometry": _lazily("ProjectiveGeometry", "design"),
    "optimized_unary_encoding": _lazily("UnaryEncoding", "optimized"),
    "symmetric_unary_encoding": _lazily("UnaryEncoding", "symmetric"),
    "hadamard_response": _lazily("HadamardResponse", "design"),
}
"""What `mechanism = "..."` may say for a closed domain: name -> (size, epsilon) -> mechanism."""

STRING_DESIGNS: dict[str, Callable[[str, float], FrequencyOracle[str]]] = {
    "hashed_projective_geometry": _lazily("HashedProjectiveGeometry", "design"),
    "cohort_local_hashing": _lazily("CohortLocalHashing", "design"),
    "count_mean_sketch": _lazily("CountMeanSketch", "design"),
    "hadamard_count_mean_sketch": _lazily("HadamardCountMeanSketch", "design"),
    "one_time_rappor": _lazily("OneTimeRappor", "design"),
}
"""The same for strings: name -> (salt, epsilon) -> mechanism. The salt is the metric's name."""

MEMOIZED_DESIGNS: dict[str, Callable[[int, float, float], MemoizingOracle[int]]] = {
    "memoized_subset_selection": _lazily("MemoizedSubsetSelection", "design"),
    "basic_rappor": _lazily("BasicRappor", "design"),
}
"""With memos, only for a closed domain: name -> (size, epsilon, lifetime) -> mechanism."""

MEMOIZED_STRING_DESIGNS: dict[str, Callable[[str, float, float], MemoizingOracle[str]]] = {
    "memoized_local_hashing": _lazily("MemoizedLocalHashing", "design"),
    "rappor": _lazily("Rappor", "design"),
    "rappor_paper": lambda salt, epsilon, lifetime_epsilon: _lazily("Rappor", "paper")(salt),
    "rappor_chromium": lambda salt, epsilon, lifetime_epsilon: _lazily("Rappor", "chromium")(salt),
}
"""With memos, for strings or the values of a closed domain: name -> (salt, epsilon,
lifetime) -> mechanism."""

_REBUILDS: dict[str, Callable[[Mapping[str, Any]], Mechanism[Any]]] = {
    "subset_selection": _lazily("SubsetSelection", "from_parameters"),
    "projective_geometry": _lazily("ProjectiveGeometry", "from_parameters"),
    "unary_encoding": _lazily("UnaryEncoding", "from_parameters"),
    "hadamard_response": _lazily("HadamardResponse", "from_parameters"),
    "hashed_projective_geometry": _lazily("HashedProjectiveGeometry", "from_parameters"),
    "cohort_local_hashing": _lazily("CohortLocalHashing", "from_parameters"),
    "count_mean_sketch": _lazily("CountMeanSketch", "from_parameters"),
    "hadamard_count_mean_sketch": _lazily("HadamardCountMeanSketch", "from_parameters"),
    "memoized_subset_selection": _lazily("MemoizedSubsetSelection", "from_parameters"),
    "memoized_local_hashing": _lazily("MemoizedLocalHashing", "from_parameters"),
    "basic_rappor": _lazily("BasicRappor", "from_parameters"),
    "rappor": _lazily("Rappor", "from_parameters"),
    "one_time_rappor": _lazily("OneTimeRappor", "from_parameters"),
    "sliding_window": _lazily("SlidingWindow", "from_parameters"),
    "hierarchical_histogram": _lazily("HierarchicalHistogram", "from_parameters"),
    "dbitflip": _lazily("DBitFlip", "from_parameters"),
    "prefix_tree": _lazily("PrefixTree", "from_parameters"),
    "memoized_retention": _lazily("MemoizedRetention", "from_parameters"),
}
"""From the name in a published scheme and its parameters to the mechanism."""


def all_names() -> tuple[str, ...]:
    """The names of the mechanisms that schemes can have."""
    return tuple(_REBUILDS)


def names(*, closed: bool, memoize: bool) -> tuple[str, ...]:
    """What `mechanism = "..."` may say: for a closed domain or for strings, with memos or not."""
    if memoize:
        return (AUTO, *(MEMOIZED_DESIGNS if closed else ()), *MEMOIZED_STRING_DESIGNS)
    return (AUTO, *(DESIGNS if closed else STRING_DESIGNS))


def _require_name(name: str, *, closed: bool, memoize: bool) -> None:
    """Check that there is a mechanism called `name` for such a domain.

    Raises:
        SchemeError: there is none; the message lists those that there are.
    """
    known = names(closed=closed, memoize=memoize)
    if name not in known:
        raise SchemeError(no_mechanism(name, known))


def no_mechanism(name: str, known: Sequence[str]) -> CodedMessage:
    """What is wrong with a mechanism's name that is not among the known ones."""
    return CodedMessage(
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
    _require_name(name, closed=True, memoize=False)
    if name == AUTO:
        from deniable.protocol.mechanisms.choice import choose

        return choose(size, check_epsilon(epsilon))[0].require_within(epsilon)
    return DESIGNS[name](size, check_epsilon(epsilon)).require_within(epsilon)


def design_string(name: str, metric: str, epsilon: float) -> FrequencyOracle[str]:
    """The mechanism called `name` for any string, salted by the metric's name, within `epsilon`.

    Raises:
        SchemeError: there is no such mechanism, or it cannot keep within `epsilon`.
    """
    _require_name(name, closed=False, memoize=False)
    maker = STRING_DESIGNS["hashed_projective_geometry" if name == AUTO else name]
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
    _require_name(name, closed=size is not None, memoize=True)
    mechanism: MemoizingOracle[Any]
    if size is not None and name == AUTO:
        from deniable.protocol.mechanisms.choice import choose_memoized

        mechanism = choose_memoized(size, metric, epsilon, lifetime_epsilon)[0]
    elif size is not None and name in MEMOIZED_DESIGNS:
        mechanism = MEMOIZED_DESIGNS[name](size, epsilon, lifetime_epsilon)
    else:
        known = "memoized_local_hashing" if name == AUTO else name
        maker = MEMOIZED_STRING_DESIGNS[known]
        mechanism = maker(metric, epsilon, lifetime_epsilon)
    return mechanism.require_within_lifetime(epsilon, lifetime_epsilon)


def rebuild(name: str, parameters: Mapping[str, Any]) -> Mechanism[Any]:
    """The mechanism that a published scheme describes.

    Raises:
        SchemeError: no such mechanism, or parameters it cannot have.
    """
    if name not in _REBUILDS:
        raise SchemeError(f"this version of deniable knows no mechanism {name!r}: upgrade it")
    return _REBUILDS[name](parameters)
