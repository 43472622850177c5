"""Mechanisms by name: how the registry asks for one, and how a scheme is read back.

Adding a mechanism means one file in this folder and its entries in the two tables
below; the collector never learns of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hearsay.errors import SchemeError
from hearsay.mechanisms.base import (
    MAX_EPSILON,
    Cell,
    Mechanism,
    Packing,
    Report,
    Row,
    check_epsilon,
    total_variance,
)
from hearsay.mechanisms.subset_selection import SubsetSelection

__all__ = [
    "AUTO",
    "DESIGNS",
    "MAX_EPSILON",
    "Cell",
    "Mechanism",
    "Packing",
    "Report",
    "Row",
    "SubsetSelection",
    "design",
    "rebuild",
    "total_variance",
]

AUTO = "auto"

DESIGNS = {
    "subset_selection": SubsetSelection.design,
    "randomized_response": lambda size, epsilon: SubsetSelection.design(size, epsilon, k=1),
}
"""What `mechanism = "..."` may say for a closed domain: name -> (size, epsilon) -> mechanism."""

_CLASSES: dict[str, type[Mechanism[Any]]] = {SubsetSelection.name: SubsetSelection}


def design(name: str, size: int, epsilon: float) -> Mechanism[Any]:
    """The mechanism called `name` for a closed domain, within `epsilon`.

    Raises:
        SchemeError: there is no such mechanism, or it cannot keep within `epsilon`.
    """
    chosen = "subset_selection" if name == AUTO else name
    if chosen not in DESIGNS:
        known = ", ".join([AUTO, *DESIGNS])
        raise SchemeError(f"there is no mechanism {name!r}: choose one of {known}")
    return DESIGNS[chosen](size, check_epsilon(epsilon)).require_within(epsilon)


def rebuild(name: str, parameters: Mapping[str, Any]) -> Mechanism[Any]:
    """The mechanism that a published scheme describes.

    Raises:
        SchemeError: no such mechanism, or parameters it cannot have.
    """
    if name not in _CLASSES:
        raise SchemeError(f"this version of hearsay knows no mechanism {name!r}: upgrade it")
    return _CLASSES[name].from_parameters(parameters)
