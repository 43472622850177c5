"""Which mechanism `auto` chooses for a closed domain, why, and how much variance it costs.

Without memos, subset selection has the least total variance of all mechanisms. Its reports
are subsets, so their size grows with the domain. If a report would need more than 256 bytes,
projective geometry response is chosen: a report is one number, within a few percent of the
optimum. The number of devices does not matter, because both are unbiased.

With memos, subset selection is as exact as without them, but a short lifetime only allows
small subsets, and the loss grows with the domain. If the loss exceeds a few percent and
cohort local hashing would lose less, that is chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.mechanisms.base import FrequencyOracle, MemoizingOracle, total_variance
from deniable.protocol.mechanisms.subset_selection import SubsetSelection

if TYPE_CHECKING:
    from deniable.protocol.mechanisms.memoized_subset_selection import MemoizedSubsetSelection

MAX_REPORT_BYTES = 256
"""The longest report that `auto` accepts for the best accuracy."""

SMALL_LOSS = 1.05
"""Up to this loss `auto` does not consider hashing, which would add a cohort and collisions."""


def explain(size: int, epsilon: float) -> CodedMessage:
    """Why `auto` takes what it takes for a closed domain, as the beginning of a sentence.

    Raises:
        SchemeError: the domain is too small or too large.
    """
    chosen, optimal = choose(size, epsilon)
    length = optimal.rows[0].report_bytes
    if chosen is optimal:
        return CodedMessage(
            "least_error",
            "subset selection has the least possible error, and a report of {length} is within "
            "{most}",
            length=_bytes(length),
            most=MAX_REPORT_BYTES,
        )
    return CodedMessage(
        "shorter_reports",
        "subset selection would need {length:,} bytes a report, above {most}; projective "
        "geometry needs {bytes} and loses little",
        length=length,
        most=MAX_REPORT_BYTES,
        bytes=chosen.rows[0].report_bytes,
    )


def _bytes(length: int) -> CodedMessage:
    if length == 1:
        return CodedMessage("one_byte", "1 byte")
    return CodedMessage("some_bytes", "{length} bytes", length=length)


def choose(size: int, epsilon: float) -> tuple[FrequencyOracle[int], SubsetSelection]:
    """What `auto` takes for a closed domain of `size` values, and what has the least variance.

    Raises:
        SchemeError: the domain is too small or too large.
    """
    optimal = SubsetSelection.design(size, epsilon)
    if optimal.rows[0].report_bytes <= MAX_REPORT_BYTES:
        return optimal, optimal
    # Imported where it is chosen, as those with memos below: most devices need none of them.
    from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry

    return ProjectiveGeometry.design(size, epsilon), optimal


def explain_memoized(size: int, salt: str, epsilon: float, lifetime_epsilon: float) -> CodedMessage:
    """Why `auto` takes what it takes with memory for a closed domain.

    Raises:
        SchemeError: the domain is too small or too large, or the lifetime not above `epsilon`.
    """
    chosen, selection = choose_memoized(size, salt, epsilon, lifetime_epsilon)
    length = selection.rows[0].report_bytes
    if chosen is selection:
        return CodedMessage(
            "small_memo_loss",
            "subset selection of a memo has {loss:.3g} times the least possible variance, in "
            "{length} a report",
            loss=loss(selection, size, epsilon),
            length=_bytes(length),
        )
    if length > MAX_REPORT_BYTES:
        return CodedMessage(
            "shorter_memo_reports",
            "subset selection of a memo would need {length:,} bytes a report, above {most}; cohort "
            "local hashing needs {bytes}",
            length=length,
            most=MAX_REPORT_BYTES,
            bytes=chosen.rows[0].report_bytes,
        )
    return CodedMessage(
        "smaller_memo_loss",
        "under lifetime epsilon {epsilon:g} subset selection of a memo would have {loss:.3g} "
        "times the least variance; cohort local hashing loses less",
        epsilon=lifetime_epsilon,
        loss=loss(selection, size, epsilon),
    )


def choose_memoized(
    size: int, salt: str, epsilon: float, lifetime_epsilon: float
) -> tuple[MemoizingOracle[Any], MemoizedSubsetSelection]:
    """What `auto` takes with memory for a closed domain, and subset selection of a memo.

    Raises:
        SchemeError: as `explain_memoized`.
    """
    from deniable.protocol.mechanisms.hashed import MemoizedLocalHashing
    from deniable.protocol.mechanisms.memoized_subset_selection import MemoizedSubsetSelection

    selection = MemoizedSubsetSelection.design(size, epsilon, lifetime_epsilon)
    hashing = MemoizedLocalHashing.design(salt, epsilon, lifetime_epsilon)
    allowed = max(SMALL_LOSS, loss(hashing, size, epsilon))
    if (
        selection.rows[0].report_bytes <= MAX_REPORT_BYTES
        and loss(selection, size, epsilon) <= allowed
    ):
        return selection, selection
    return hashing, selection


def loss(mechanism: FrequencyOracle[Any], size: int, epsilon: float) -> float:
    """Total variance over `size` values, over the least possible within `epsilon`.

    Subset selection with the best k has the least (Ye and Barg, IEEE Trans. Inf. Theory 2018).
    """
    least = SubsetSelection.design(size, epsilon)
    return float(
        total_variance(mechanism.p, mechanism.q, size) / total_variance(least.p, least.q, size)
    )
