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

from typing import Any

from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.mechanisms.base import FrequencyOracle
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection, SubsetSelection

MAX_REPORT_BYTES = 256
"""The longest report that `auto` accepts for the best accuracy."""

SMALL_LOSS = 1.05
"""Up to this loss `auto` does not consider hashing, which would add a cohort and collisions."""


def choose(
    size: int, epsilon: float, memo_epsilon: float | None = None, *, salt: str = ""
) -> tuple[FrequencyOracle[Any], CodedMessage]:
    """What `auto` takes for a closed domain of `size` values, and why, as the beginning of a
    sentence; `memo_epsilon` is None without memory, and `salt` that of a mechanism over strings.

    Raises:
        SchemeError: the domain is too small or too large, or `memo_epsilon` not above `epsilon`.
    """
    if memo_epsilon is not None:
        return _choose_memoized(size, salt, epsilon, memo_epsilon)
    optimal = SubsetSelection.design(size, epsilon)
    length = optimal.rows[0].report_bytes
    if length <= MAX_REPORT_BYTES:
        return optimal, CodedMessage(
            "least_error",
            "subset selection has the least possible error, and a report of {length} is within "
            "{most}",
            length=_bytes(length),
            most=MAX_REPORT_BYTES,
        )
    # Imported where it is chosen, as those with memos below: most devices need none of them.
    from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry

    space = ProjectiveGeometry.design(size, epsilon)
    return space, CodedMessage(
        "shorter_reports",
        "subset selection would need {length:,} bytes a report, above {most}; projective "
        "geometry needs {bytes} and loses little",
        length=length,
        most=MAX_REPORT_BYTES,
        bytes=space.rows[0].report_bytes,
    )


def _choose_memoized(
    size: int, salt: str, epsilon: float, memo_epsilon: float
) -> tuple[FrequencyOracle[Any], CodedMessage]:
    from deniable.protocol.mechanisms.hashed import MemoizedLocalHashing

    selection = MemoizedSubsetSelection.design(size, epsilon, memo_epsilon)
    hashing = MemoizedLocalHashing.design(salt, epsilon, memo_epsilon)
    length, lost = selection.rows[0].report_bytes, loss(selection, size, epsilon)
    if length > MAX_REPORT_BYTES:
        return hashing, CodedMessage(
            "shorter_memo_reports",
            "subset selection of a memo would need {length:,} bytes a report, above {most}; cohort "
            "local hashing needs {bytes}",
            length=length,
            most=MAX_REPORT_BYTES,
            bytes=hashing.rows[0].report_bytes,
        )
    if lost <= max(SMALL_LOSS, loss(hashing, size, epsilon)):
        return selection, CodedMessage(
            "small_memo_loss",
            "subset selection of a memo has {loss:.3g} times the least possible variance, in "
            "{length} a report",
            loss=lost,
            length=_bytes(length),
        )
    return hashing, CodedMessage(
        "smaller_memo_loss",
        "under lifetime epsilon {epsilon:g} subset selection of a memo would have {loss:.3g} "
        "times the least variance; cohort local hashing loses less",
        epsilon=memo_epsilon,
        loss=lost,
    )


def _bytes(length: int) -> CodedMessage:
    if length == 1:
        return CodedMessage("one_byte", "1 byte")
    return CodedMessage("some_bytes", "{length} bytes", length=length)


def loss(mechanism: FrequencyOracle[Any], size: int, epsilon: float) -> float:
    """Total variance over `size` values, over the least possible within `epsilon`.

    Subset selection with the best k has the least (Ye and Barg, IEEE Trans. Inf. Theory 2018).
    """
    least = SubsetSelection.design(size, epsilon)
    return float(mechanism.total_variance(size) / least.total_variance(size))
