"""Which mechanism `auto` takes for a closed domain, why, and what the choice costs.

Subset selection has the least total variance of all, and its reports are subsets, so
their size grows with the domain. Where one would take more than 256 bytes, projective
geometry response takes over: one number a report, within a few percent of the optimum.
How many devices there are does not matter: both are unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hearsay.mechanisms.base import Mechanism, total_variance
from hearsay.mechanisms.projective_geometry import ProjectiveGeometry
from hearsay.mechanisms.subset_selection import SubsetSelection

__all__ = ["MAX_REPORT_BYTES", "Choice", "best_for", "explain"]

MAX_REPORT_BYTES = 256
"""The longest report that `auto` accepts for the last percent of accuracy."""


@dataclass(frozen=True)
class Choice:
    """What `auto` takes.

    Attributes:
        mechanism: the one.
        reason: why, in a sentence.
        loss: its total variance over the least possible at this size and epsilon (1: optimal).
    """

    mechanism: Mechanism[Any]
    reason: str
    loss: float


def best_for(size: int, epsilon: float) -> Mechanism[int]:
    """The mechanism that `auto` takes for a closed domain of `size` values.

    Raises:
        SchemeError: the domain is too small or too large.
    """
    return _choose(size, epsilon)[0]


def explain(size: int, epsilon: float) -> Choice:
    """What `auto` takes for a closed domain, with the reason and its loss.

    Raises:
        SchemeError: the domain is too small or too large.
    """
    chosen, optimal = _choose(size, epsilon)
    length = optimal.rows[0].report_bytes
    if chosen is optimal:
        reason = (
            f"subset selection has the least possible error, and a report of {length} bytes is "
            f"within {MAX_REPORT_BYTES}"
        )
    else:
        reason = (
            f"subset selection would need {length:,} bytes a report, above {MAX_REPORT_BYTES}; "
            f"projective geometry needs {chosen.rows[0].report_bytes} and loses little"
        )
    least = total_variance(optimal.p, optimal.q, size)
    loss = total_variance(chosen.p, chosen.q, size) / least
    return Choice(chosen, reason, float(loss))


def _choose(size: int, epsilon: float) -> tuple[Mechanism[int], SubsetSelection]:
    """What `auto` takes, and what has the least variance."""
    optimal = SubsetSelection.design(size, epsilon)
    if optimal.rows[0].report_bytes <= MAX_REPORT_BYTES:
        return optimal, optimal
    return ProjectiveGeometry.design(size, epsilon), optimal
