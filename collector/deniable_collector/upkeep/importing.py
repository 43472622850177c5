"""Adding the tallies of a file to a store, each exactly once.

Each group of rows that is added at once has a batch id, computed from its content and origin.
So a second import recognizes what the first one has added, even if other tallies were selected
for its file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import msgspec
import numpy as np

from deniable import Scheme
from deniable_collector.stores.base import (
    Commit,
    Increment,
    Store,
    TallyKey,
    TallyRowKey,
    shard_of,
)
from deniable_collector.stores.definitions import Unpublished
from deniable_collector.upkeep.archive import (
    EVERYTHING,
    Advance,
    ArchiveError,
    Contents,
    RowLine,
    TallySelection,
    check,
    rows,
)

__all__ = ["ImportResult", "load"]

_COMMIT_CELLS = 1 << 16
"""The most cells that are added at once, unless a row has more. This is part of the format,
because the groups determine the ids."""


@dataclass(frozen=True)
class ImportResult:
    """The result of an import: added rows and reports, and those that were there already."""

    contents: Contents
    rows: int
    reports: int
    known_rows: int
    known_reports: int


def load(
    path: Path,
    store: Store,
    now: float,
    selection: TallySelection = EVERYTHING,
    *,
    advance: Advance = lambda share: None,
) -> ImportResult:
    """Add the selected tallies of a file to a store, each exactly once.

    The file is read twice: nothing is added before all of it was checked. `now` is POSIX time in
    seconds. What was added before, within the retention of ids, is left out and counted as
    known, so that another import completes one that was interrupted.

    Raises:
        ArchiveError: as `check` does; or the store has a different scheme of the same name.
        StoreError: the store refused or is unavailable; what was added before stays.
    """
    contents = check(path, advance=lambda share: advance(share / 2))
    if unknown := selection.metrics - {metric for metric, _ in contents.schemes}:
        raise ArchiveError(f"{path} has no metric {', '.join(sorted(unknown))}")
    # Creates the store, if it is new, and checks its number of shards.
    store.publish({})
    schemes: dict[str, list[Scheme]] = {}
    for metric, scheme in contents.schemes:
        if not selection.metrics or metric in selection.metrics:
            _compare(store, metric, scheme)
            schemes.setdefault(metric, []).append(scheme)
    store.publish(schemes)
    added, known = [0, 0], [0, 0]
    second_pass = rows(path, advance=lambda share: advance(0.5 + share / 2))
    for key, parts in _groups(second_pass):
        if not selection.takes(key.metric, key.window):
            continue
        batch = _batch_id(contents.origin, key, parts)
        increments = {TallyRowKey(key, part.row): _increment(part) for part in parts}
        seen = store.fold(Commit((batch,), increments, shard_of(batch, store.shards)), now)
        counts = known if seen else added
        counts[0] += len(parts)
        counts[1] += sum(part.reports for part in parts)
    return ImportResult(contents, added[0], added[1], known[0], known[1])


def _groups(found: Iterator[tuple[str, str, RowLine]]) -> Iterator[tuple[TallyKey, list[RowLine]]]:
    """Neighbouring rows of one tally, as many as are added at once."""
    current: TallyKey | None = None
    parts: list[RowLine] = []
    cells = 0
    for metric, scheme, row in found:
        key = TallyKey(metric, scheme, row.window)
        if parts and (key != current or cells + len(row.cells) > _COMMIT_CELLS):
            yield cast(TallyKey, current), parts
            parts, cells = [], 0
        current = key
        parts.append(row)
        cells += len(row.cells)
    if parts:
        yield cast(TallyKey, current), parts


def _batch_id(origin: str, key: TallyKey, parts: list[RowLine]) -> str:
    content = msgspec.json.encode((origin, key.metric, key.scheme, parts))
    return hashlib.sha256(content).hexdigest()[:32]


def _increment(row: RowLine) -> Increment:
    cells = np.array(row.cells, np.int64)
    columns = np.flatnonzero(cells)
    return Increment(len(cells), row.reports, columns, cells[columns])


def _compare(store: Store, metric: str, scheme: Scheme) -> None:
    try:
        known = store.scheme(metric, scheme.fingerprint)
    except Unpublished:
        return
    if known.canonical() != scheme.canonical():
        raise ArchiveError(
            f"scheme {scheme.fingerprint} of metric {metric} is another one in the store: their "
            "tallies cannot be added"
        )
