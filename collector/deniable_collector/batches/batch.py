"""A batch that was read, and the result of committing it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from deniable_collector.batches.folding import Accepted, Block
from deniable_collector.stores.base import Increment, TallyRowKey

__all__ = ["NAMED", "REASONS", "Batch", "Receipt", "Rejection"]

NAMED = 100
"""Rejections of a batch that are named; all of them are counted. A device's batch has no more
reports than that (`deniable.outbox.BATCH_REPORTS`)."""

REASONS = (
    "malformed",
    "unknown_metric",
    "bad_window",
    "expired_metric",
    "window_not_closed",
    "window_too_old",
    "unknown_scheme",
    "bad_row",
    "bad_columns",
)
"""Why a report can be rejected, in the order of the checks."""


@dataclass(frozen=True)
class Rejection:
    """A report that was not counted: its index in the batch, a reason code and its meaning."""

    index: int
    reason: str
    detail: str


class Batch(NamedTuple):
    """A batch that has been read: what may be counted, and what may not.

    The good reports of a binary batch are summed already, in `summed` and `blocks`. Of the bad
    ones the first `NAMED` are in `rejected`, and `refused` counts all of them by reason.
    """

    id: str
    accepted: tuple[Accepted, ...]
    rejected: tuple[Rejection, ...]
    summed: Mapping[TallyRowKey, Increment] = MappingProxyType({})
    blocks: tuple[Block[TallyRowKey], ...] = ()
    refused: Mapping[str, int] = MappingProxyType({})

    @property
    def reports(self) -> int:
        """How many reports may be counted."""
        number = len(self.accepted)
        if self.summed:
            number += sum(each.reports for each in self.summed.values())
        for block in self.blocks:
            number += int(block.reports.sum())
        return number

    @property
    def metrics(self) -> set[str]:
        """The metrics of the reports that may be counted."""
        keys = {each.key.tally for each in self.accepted}
        keys.update(key.tally for key in self.summed)
        keys.update(block.rows[0].tally for block in self.blocks)
        return {key.metric for key in keys}


class Receipt(NamedTuple):
    """The result of a batch. Its accepted reports are durably in the tallies.

    Either `accepted` or `duplicate` is 0: a batch is counted as a whole, or was before.
    `rejected` names the first `NAMED` that were left out; `refused` counts all by reason.
    """

    batch: str
    accepted: int
    duplicate: int
    rejected: tuple[Rejection, ...]
    refused: Mapping[str, int] = MappingProxyType({})
