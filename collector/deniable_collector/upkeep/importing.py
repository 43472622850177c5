"""Adding the tallies of a file to a store, each exactly once.

Each group of rows that is added at once has a batch id, computed from its content and origin.
So a second import recognizes what the first one has added, even if other tallies were selected
for its file.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

import msgspec
import numpy as np

from deniable import Scheme
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import (
    Commit,
    Increment,
    TallyKey,
    TallyRowKey,
    Unpublished,
    shard_of,
)
from deniable_collector.stores.summed.imported import TALLY, Imported, brought_before, source_of
from deniable_collector.stores.summed.summing import KeptSum
from deniable_collector.stores.vectors import shape_of
from deniable_collector.upkeep.archive import (
    EVERYTHING,
    Advance,
    ArchiveError,
    Contents,
    RowLine,
    SumLine,
    TallySelection,
)
from deniable_collector.upkeep.archive_reading import check, rows, sums

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
    sums: int = 0
    known_sums: int = 0
    """Sums of dropped windows, which are recognized for ever."""


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
        ArchiveError: as `check` does; or the store has a different scheme of the same name, or
            it has counted a window of the file itself.
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
    brought = _brought(path, contents, selection)
    _check_calendars(path, store, brought)
    if contents.origin:
        if contents.origin == store.identity():
            _check_own(store, brought)
        _check_forms(path, store, brought)
    store.publish(schemes)
    if contents.origin:
        # Before anything is added.
        for of, windows in brought.items():
            store.sums.note_imports(*of, windows)
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
    sums_added = [0, 0]
    if contents.sums:
        for metric, fingerprint, line, parts in sums(path):
            if selection.takes_sum(metric, line.name):
                batch = _sum_id(contents.origin, metric, fingerprint, line, parts)
                its_sum = _kept_sum(store.scheme(metric, fingerprint), line, parts)
                sums_added[not store.sums.add(metric, fingerprint, its_sum, batch)] += 1
    return ImportResult(contents, added[0], added[1], known[0], known[1], *sums_added)


_Brought: TypeAlias = Mapping[tuple[str, str], Sequence[Imported]]
"""The windows that a file brings, by metric and scheme, each in the form in which it does."""


def _brought(path: Path, contents: Contents, selection: TallySelection) -> _Brought:
    source = source_of(contents.origin)
    found: defaultdict[tuple[str, str], list[Imported]] = defaultdict(list)
    for metric, fingerprint, window in contents.windows:
        if selection.takes(metric, window):
            found[metric, fingerprint].append(Imported(source, TALLY, "", window))
    for metric, fingerprint, line, parts in sums(path) if contents.sums else ():
        if selection.takes_sum(metric, line.name):
            batch = _sum_id(contents.origin, metric, fingerprint, line, parts)
            found[metric, fingerprint] += [
                Imported(source, line.name.calendar, batch, window) for window in line.reports
            ]
    return found


def _check_calendars(path: Path, store: Store, brought: _Brought) -> None:
    """Refuse sums that could not be read beside those of the store: of a window that is in the sum
    of a week here, and in that of a month there."""
    for (metric, fingerprint), windows in brought.items():
        calendars: defaultdict[str, set[str]] = defaultdict(set)
        for each in windows:
            if each.form != TALLY:
                calendars[each.window].add(each.form)
        known = store.sums.calendars(metric, fingerprint) if calendars else {}
        for window in sorted(calendars.keys() & known.keys()):
            if calendars[window].isdisjoint(known[window]):
                theirs = " and ".join(sorted(calendars[window]))
                ours = " and ".join(sorted(known[window]))
                raise ArchiveError(
                    f"window {window} of metric {metric} was dropped: {path} has it in the sum of "
                    f"its {theirs}, the store in that of its {ours}, and added up it could not be "
                    "read any more. Nothing was added: leave it out with --since or --before, and "
                    "give both stores the same `keep`"
                )


def _check_own(store: Store, brought: _Brought) -> None:
    """Refuse windows that the store has counted itself, in a file that it, or a copy of it, wrote.

    Its windows that were dropped meanwhile may come back; then the memory of imports has them.
    """
    for (metric, fingerprint), windows in brought.items():
        held = set(store.all_windows(metric, fingerprint))
        sources = {each.source for each in windows}
        came = {
            each.window
            for each in store.sums.imported(metric, fingerprint)
            if each.source in sources
        }
        if counted := ({each.window for each in windows} & held) - came:
            raise ArchiveError(
                f"window {min(counted)} of metric {metric} comes from this very store, or a copy "
                "of it, and the store still has it: it would be counted twice. Nothing was added: "
                "leave it out with --since or --before"
            )


def _check_forms(path: Path, store: Store, brought: _Brought) -> None:
    """Refuse what would count windows twice that came before from the same store in another
    form."""
    for (metric, fingerprint), windows in brought.items():
        again = brought_before(windows, store.sums.imported(metric, fingerprint))
        if again is not None:
            now = "as a tally" if again.form == TALLY else f"in the sum of its {again.form}"
            raise ArchiveError(
                f"window {again.window} of metric {metric} came from the same store before, and is "
                f"in {path} in another form ({now}): it would be counted twice. Nothing was added: "
                "leave it out with --since or --before"
            )


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


def _kept_sum(scheme: Scheme, line: SumLine, parts: list[RowLine]) -> KeptSum:
    shape = shape_of(scheme)
    counters = np.zeros(shape.size, np.int64)
    for part in parts:
        counters[part.row] = part.reports
        start = shape.starts[part.row]
        counters[start : start + len(part.cells)] = part.cells
    return KeptSum(line.name, line.reports, counters)


def _batch_id(origin: str, key: TallyKey, parts: Sequence[RowLine | SumLine]) -> str:
    content = msgspec.json.encode((origin, key.metric, key.scheme, parts))
    return hashlib.sha256(content).hexdigest()[:32]


def _sum_id(origin: str, metric: str, scheme: str, line: SumLine, parts: list[RowLine]) -> str:
    return _batch_id(origin, TallyKey(metric, scheme, str(line.name)), [line, *parts])


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
