"""A batch that was read, and the result of committing it.

They are structs of msgspec, because a few of them are made for each request: one takes a fifth of
the time of a named tuple, and the garbage collector need not look at it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import msgspec

from deniable_collector.batches.folding import Accepted

NAMED = 100
"""Rejections of a batch that are named; all of them are counted. A device's batch has no more
reports than that (`deniable.device.outbox.BATCH_REPORTS`)."""

REASONS = {
    "malformed": "is no object of exactly the members of a report",
    "unknown_metric": "names a metric that the registry does not declare",
    "bad_window": "names no window of the metric's kind",
    "expired_metric": "names a window that begins after the metric's expiry",
    "window_not_closed": "names a window that ends more than a day from now; or that begins more "
    "than a day from now, if the metric is answered at once",
    "window_too_old": "names a window that ended more than six days ago",
    "unknown_scheme": "names a scheme that the metric never had",
    "bad_row": "names a row that the scheme does not have",
    "bad_columns": "has columns that no device could have sent for this row",
}
"""Why a report can be rejected, in the order of the checks: it ..."""


@dataclass(frozen=True)
class Rejection:
    """A report that was not counted: its index in the batch, a reason code and its meaning."""

    index: int
    reason: str
    detail: str


class Batch(msgspec.Struct, frozen=True, gc=False):
    """A batch that has been read: what may be counted, and what may not.

    Of the bad reports the first `NAMED` are in `rejected`, and `refused` counts all by reason.
    """

    id: str
    accepted: tuple[Accepted, ...]
    rejected: tuple[Rejection, ...]
    refused: Mapping[str, int] = MappingProxyType({})


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """The result of a batch. Its accepted reports are durably in the tallies.

    Either `accepted` or `duplicate` is 0: a batch is counted as a whole, or was before.
    `rejected` names the first `NAMED` that were left out; `refused` counts all by reason.
    """

    batch: str
    accepted: int
    duplicate: int
    rejected: tuple[Rejection, ...]
    refused: Mapping[str, int] = MappingProxyType({})
