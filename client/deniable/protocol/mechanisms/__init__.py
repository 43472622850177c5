"""Mechanisms by name: for the registry, which names one, and for schemes, which are read back.

To add a mechanism, add one file to this folder and its entries to the tables below. The
collector need not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.errors import SchemeError

# What is imported under its own name is part of this module as well.
from deniable.protocol.mechanisms.base import FrequencyOracle as FrequencyOracle
from deniable.protocol.mechanisms.base import Mechanism as Mechanism
from deniable.protocol.mechanisms.base import Memoizing as Memoizing
from deniable.protocol.mechanisms.base import Packing as Packing
from deniable.protocol.mechanisms.base import Report as Report
from deniable.protocol.mechanisms.base import Row as Row
from deniable.protocol.mechanisms.limits import MAX_CELLS as MAX_CELLS
from deniable.protocol.mechanisms.limits import MAX_EPSILON as MAX_EPSILON
from deniable.protocol.mechanisms.limits import MAX_MEMO_EPSILON as MAX_MEMO_EPSILON
from deniable.protocol.mechanisms.limits import check_epsilon, check_memo_epsilon

MECHANISMS = {
    "subset_selection": ("subset_selection", "SubsetSelection"),
    "projective_geometry": ("projective_geometry", "ProjectiveGeometry"),
    "unary_encoding": ("compatible", "UnaryEncoding"),
    "hadamard_response": ("compatible", "HadamardResponse"),
    "hashed_projective_geometry": ("hashed", "HashedProjectiveGeometry"),
    "cohort_local_hashing": ("hashed", "CohortLocalHashing"),
    "count_mean_sketch": ("hashed", "CountMeanSketch"),
    "hadamard_count_mean_sketch": ("hashed", "HadamardCountMeanSketch"),
    "memoized_subset_selection": ("subset_selection", "MemoizedSubsetSelection"),
    "memoized_local_hashing": ("hashed", "MemoizedLocalHashing"),
    "basic_rappor": ("rappor", "BasicRappor"),
    "rappor": ("rappor", "Rappor"),
    "one_time_rappor": ("rappor", "OneTimeRappor"),
    "sliding_window": ("sliding_window", "SlidingWindow"),
    "hierarchical_histogram": ("hierarchical_histogram", "HierarchicalHistogram"),
    "dbitflip": ("dbitflip", "DBitFlip"),
    "prefix_tree": ("prefix_tree", "PrefixTree"),
    "memoized_retention": ("memoized_retention", "MemoizedRetention"),
}
"""The module and the class of each mechanism, by the name that schemes have of it. A module is
imported when its mechanism is first used: a device needs one or two of them, and all of them take
longer to import than Python takes to start."""


def _class(name: str) -> Any:
    """The class of a mechanism, which is imported."""
    home, found = MECHANISMS[name]
    return getattr(import_module(f"{__name__}.{home}"), found)


def _lazily(name: str, maker: str = "design") -> Callable[..., Any]:
    """A class method of a mechanism, which imports the mechanism when it is called."""
    return lambda *arguments, **settings: getattr(_class(name), maker)(*arguments, **settings)


AUTO = "auto"

DESIGNS: dict[str, Callable[[int, float], FrequencyOracle[int]]] = {
    "subset_selection": _lazily("subset_selection"),
    "randomized_response": partial(_lazily("subset_selection"), k=1),
    "projective_geometry": _lazily("projective_geometry"),
    "optimized_unary_encoding": _lazily("unary_encoding", "optimized"),
    "symmetric_unary_encoding": _lazily("unary_encoding", "symmetric"),
    "hadamard_response": _lazily("hadamard_response"),
}
"""What `mechanism = "..."` may say for a closed domain: name -> (size, epsilon) -> mechanism."""

STRING_DESIGNS: dict[str, Callable[[str, float], FrequencyOracle[str]]] = {
    name: _lazily(name)
    for name in (
        "hashed_projective_geometry",
        "cohort_local_hashing",
        "count_mean_sketch",
        "hadamard_count_mean_sketch",
        "one_time_rappor",
    )
}
"""The same for strings: name -> (salt, epsilon) -> mechanism. The salt is the metric's name. The
first is what `auto` takes."""

MEMOIZED_DESIGNS: dict[str, Callable[[int, float, float], FrequencyOracle[int]]] = {
    name: _lazily(name) for name in ("memoized_subset_selection", "basic_rappor")
}
"""With memos, only for a closed domain: name -> (size, epsilon, lifetime) -> mechanism."""

MEMOIZED_STRING_DESIGNS: dict[str, Callable[[str, float, float], FrequencyOracle[str]]] = {
    "memoized_local_hashing": _lazily("memoized_local_hashing"),
    "rappor": _lazily("rappor"),
    "rappor_paper": lambda salt, epsilon, lifetime_epsilon: _class("rappor").paper(salt),
    "rappor_chromium": lambda salt, epsilon, lifetime_epsilon: _class("rappor").chromium(salt),
}
"""With memos, for strings or the values of a closed domain: name -> (salt, epsilon,
lifetime) -> mechanism. The first is what `auto` takes for strings."""


_DESIGNS: tuple[tuple[Mapping[str, Callable[..., FrequencyOracle[Any]]], ...], ...] = (
    (DESIGNS, STRING_DESIGNS),
    (MEMOIZED_DESIGNS, MEMOIZED_STRING_DESIGNS),
)
"""Those by size and those by salt, without memos and with them."""


def names(*, closed: bool, memoize: bool) -> tuple[str, ...]:
    """What `mechanism = "..."` may say, for a closed domain or for strings."""
    by_size, by_salt = _DESIGNS[memoize]
    return (AUTO, *(by_size if closed else ()), *(by_salt if memoize or not closed else ()))


def no_mechanism(name: str, known: Sequence[str]) -> CodedMessage:
    """What is wrong with a mechanism's name that is not among the known ones."""
    return CodedMessage(
        "no_mechanism",
        "there is no mechanism {name} here: choose one of {known}",
        name=repr(name),
        known=", ".join(known),
    )


def design(
    name: str,
    size: int | None,
    epsilon: float,
    memo_epsilon: float | None = None,
    *,
    salt: str = "",
) -> FrequencyOracle[Any]:
    """The mechanism called `name`, of which a report is within `epsilon`, and a memo within
    `memo_epsilon` (None: without memory).

    `size` is the size of a closed domain, None for strings. A mechanism over strings can also
    randomize the texts of a closed domain's values; its own size is None. `salt` is that of a
    mechanism over strings: the metric's name.

    Raises:
        SchemeError: there is no such mechanism, or it cannot keep within the epsilons.
    """
    memoize = memo_epsilon is not None
    by_size, by_salt = _DESIGNS[memoize]
    limits = [check_epsilon(epsilon)]
    if memo_epsilon is not None:
        check_memo_epsilon(epsilon, memo_epsilon)
        limits.append(memo_epsilon)
    if name == AUTO and size is not None:
        from deniable.protocol.mechanisms.choice import choose

        made = choose(size, epsilon, memo_epsilon, salt=salt)[0]
    elif name == AUTO or name in by_salt:
        made = by_salt[next(iter(by_salt)) if name == AUTO else name](salt, *limits)
    elif name in by_size and size is not None:
        made = by_size[name](size, *limits)
    else:
        raise SchemeError(no_mechanism(name, names(closed=size is not None, memoize=memoize)))
    return made.require_within(epsilon, memo_epsilon)


def rebuild(name: Any, parameters: Any) -> Mechanism[Any]:
    """The mechanism that a published scheme describes.

    Raises:
        SchemeError: no such mechanism, or parameters it cannot have.
    """
    if not isinstance(name, str) or not isinstance(parameters, Mapping):
        raise SchemeError("the scheme's mechanism must be a text, and its parameters a table")
    if name not in MECHANISMS:
        raise SchemeError(f"this version of deniable knows no mechanism {name!r}: upgrade it")
    mechanism: Mechanism[Any] = _class(name).from_parameters(parameters)
    return mechanism
