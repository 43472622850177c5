"""Adding the tallies of a file to a store, each exactly once.

Each window, and each sum, is added at once under a batch id, computed from its content and origin.
So a second import recognizes what the first one has added, even if other tallies were selected
for its file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import Commit, TallyKey, shard_of
from deniable_collector.stores.summing import TALLY, Imported, brought_before, source_of
from deniable_collector.stores.sums import SumRecord
from deniable_collector.stores.vectors import addition_of, shape_of, vector_of
from deniable_collector.tally import TallyRow
from deniable_collector.upkeep.archive import (
    EVERYTHING,
    Advance,
    ArchiveError,
    ArchivePart,
    ArchiveReader,
    Contents,
    TallySelection,
)


@dataclass
class Amount:
    """How much an import has added, or has found added before."""

    rows: int = 0
    reports: int = 0
    sums: int = 0
    """Sums of dropped windows, which are recognized for ever."""


@dataclass(frozen=True)
class ImportResult:
    """The result of an import: what was added, and what was there already."""

    contents: Contents
    added: Amount
    known: Amount
    dropped: int
    """Windows that were added before and that the store has dropped since."""


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
        ArchiveError: as `check` does; or the store has counted a window of the file itself.
        StoreError: the store refused or is unavailable; what was added before stays.
    """
    reader = ArchiveReader(path, lambda share: advance(share / 2))
    # The windows that the file brings, by metric and scheme, each in the form in which it does.
    brought: defaultdict[tuple[str, str], dict[Imported, None]] = defaultdict(dict)
    for part in reader.parts():
        if selection.takes(part.metric, part.period):
            brought[part.of].update(dict.fromkeys(_imports(part, reader.origin)))
    contents = reader.contents
    if unknown := selection.metrics - {metric for metric, _ in contents.schemes}:
        raise ArchiveError(f"{path} has no metric {', '.join(sorted(unknown))}")
    # Creates the store, if it is new, and checks its number of shards.
    store.publish(())
    own = contents.origin == store.identity()
    for of, windows in brought.items():
        _check(path, store, of, windows)
        _check_twice(path, store, of, windows, own)
    store.publish(
        each for each in contents.schemes if not selection.metrics or each[0] in selection.metrics
    )
    # Before anything is added.
    for of, windows in brought.items():
        store.sums.note_imports(of, windows)
    added, known = Amount(), Amount()
    dropped = 0
    there = {of: set(store.all_windows(*of)) for of in brought}
    for part in ArchiveReader(path, lambda share: advance(0.5 + share / 2)).parts():
        if not selection.takes(part.metric, part.period):
            continue
        batch, shape = part.batch_id(contents.origin), shape_of(part.scheme)
        rows = {row.row: TallyRow(row.reports, np.array(row.cells)) for row in part.rows}
        if part.sum is not None:
            record = SumRecord(reports=part.sum.reports, added=[batch])
            new = store.sums.add(part.of, part.sum.name, record, vector_of(shape, rows))
            (added if new else known).sums += 1
            continue
        addition = addition_of(shape, rows)
        additions = {TallyKey(*part.of, part.name): addition}
        seen = store.fold(Commit((batch,), additions, shard_of(batch, store.shards)), now)
        amount = known if seen else added
        amount.rows += len(part.rows)
        amount.reports += addition.reports
        dropped += bool(seen) and part.name not in there[part.of]
    return ImportResult(contents, added, known, dropped)


def _imports(part: ArchivePart, origin: str) -> list[Imported]:
    """The windows that a part brings."""
    source = source_of(origin)
    if part.sum is None:
        return [Imported(source, TALLY, "", part.name)]
    batch, calendar = part.batch_id(origin), part.sum.name.calendar
    return [Imported(source, calendar, batch, window) for window in part.sum.reports]


def _check(path: Path, store: Store, of: tuple[str, str], windows: Collection[Imported]) -> None:
    """Refuse sums that could not be read beside those of the store: of a window that is in the sum
    of a week here, and in that of a month there."""
    calendars: defaultdict[str, set[str]] = defaultdict(set)
    for each in windows:
        if each.form != TALLY:
            calendars[each.window].add(each.form)
    known = store.sums.calendars(of) if calendars else {}
    for window in sorted(calendars.keys() & known.keys()):
        if calendars[window].isdisjoint(known[window]):
            theirs = " and ".join(sorted(calendars[window]))
            ours = " and ".join(sorted(known[window]))
            raise ArchiveError(
                f"window {window} of metric {of[0]} was dropped: {path} has it in the sum of "
                f"its {theirs}, the store in that of its {ours}, and added up it could not be "
                "read any more. Nothing was added: leave it out with --since or --before, and "
                "give both stores the same `keep`"
            )


def _check_twice(
    path: Path, store: Store, of: tuple[str, str], windows: Collection[Imported], own: bool
) -> None:
    """Refuse windows that would be counted twice: those that the store has counted itself, in a
    file that it, or a copy of it, wrote (`own`), and what came before from the same store in
    another form."""
    imported = store.sums.imported(of)
    if own:
        sources = {each.source for each in windows}
        # Its windows that were dropped meanwhile may come back; then the memory has them.
        came = {each.window for each in imported if each.source in sources}
        held = set(store.all_windows(*of)) - came
        if counted := {each.window for each in windows} & held:
            raise ArchiveError(
                f"window {min(counted)} of metric {of[0]} comes from this very store, or a copy "
                "of it, and the store still has it: it would be counted twice. Nothing was added: "
                "leave it out with --since or --before"
            )
    again = brought_before(windows, imported)
    if again is not None:
        now = "as a tally" if again.form == TALLY else f"in the sum of its {again.form}"
        raise ArchiveError(
            f"window {again.window} of metric {of[0]} came from the same store before, and is "
            f"in {path} in another form ({now}): it would be counted twice. Nothing was added: "
            "leave it out with --since or --before"
        )
