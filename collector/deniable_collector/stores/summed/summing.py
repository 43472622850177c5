"""What is done with sums: added up from windows, kept when windows are dropped, read, and imported.

A store has a few primitives (`place.SumPlace`); everything else is here, in `copies.py` and in
`dropping.py`, so that all stores do the same. Every change is one atomic step of one shard, which
is refused if anything that it rests on has changed since it was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from deniable import windows
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.sealed.blocks import DamagedBlock
from deniable_collector.stores.summed.calendars import bounds
from deniable_collector.stores.summed.copies import add_up, periods_due
from deniable_collector.stores.summed.dropping import drop_sum, drop_together, together
from deniable_collector.stores.summed.imported import Imported
from deniable_collector.stores.summed.place import (
    ATTEMPTS,
    Dropped,
    KeptSum,
    SumChange,
    SumPlace,
    counters_of,
    having,
    kept_names,
    plus,
    written_form,
)
from deniable_collector.stores.summed.sums import (
    Holding,
    SumName,
    SumRecord,
    known_reports,
    relevant,
)


class Sums:
    """The sums of a store; without a place of their own, as in a store of the tests, none."""

    def __init__(self, place: SumPlace | None = None) -> None:
        self._place = place

    def names(self, metric: str, scheme: str) -> list[SumName]:
        """All sums, in the order of their periods."""
        found: set[SumName] = set()
        for place, shard in self._shards():
            found.update(map(SumName.parse, place.sum_names(shard, metric, scheme)))
        return sorted(found, key=lambda name: (*bounds(name.period), name))

    def dropped(self, metric: str, scheme: str) -> list[str]:
        """The windows that were dropped and are in kept sums, oldest first."""
        found: set[str] = set()
        for place, shard in self._shards():
            kept = kept_names(place, shard, metric, scheme)
            if kept:
                found.update(place.holding(shard, metric, scheme, kept)[0].dropped)
        return sorted(found, key=windows.start)

    def calendars(self, metric: str, scheme: str) -> dict[str, set[str]]:
        """Each dropped window with the calendars whose kept sums have it."""
        found: dict[str, set[str]] = {}
        for place, shard in self._shards():
            for label, names in having(place, shard, metric, scheme).items():
                found.setdefault(label, set()).update(name.calendar for name in names)
        return found

    def stamps(self, metric: str, scheme: str, asked: Iterable[str]) -> list[tuple[object, ...]]:
        """Window, shard and stamp of each kept sum that has one of these windows."""
        wanted, found = set(asked), list[tuple[object, ...]]()
        for place, shard in self._shards():
            kept = kept_names(place, shard, metric, scheme, wanted)
            if kept:
                holding, stamps = place.holding(shard, metric, scheme, kept)
                found += [
                    (label, f"{shard} {name}", stamps[name])
                    for name, record in holding.sums.items()
                    for label in sorted(wanted.intersection(record.reports))
                ]
        return found

    def reports(
        self, metric: str, scheme: str, asked: Sequence[str]
    ) -> tuple[dict[str, NDArray[np.int64]], list[str]]:
        """The reports of windows by combination of segments, of what sums tell; and the windows
        whose own tallies must be read and added as well. With more than one shard all of them."""
        found: dict[str, NDArray[np.int64]] = {}
        left = list(asked)
        for place, shard in self._shards():
            names = relevant(place.sum_names(shard, metric, scheme), asked)
            holding = place.holding(shard, metric, scheme, names)[0] if names else Holding({})
            known = known_reports(asked, holding) if place.shards == 1 else {}
            left = [label for label in left if label not in known]
            wanted = set(asked)
            for each in (known, holding.dropped):
                for label in wanted.intersection(each):
                    found[label] = found.get(label, 0) + np.array(each[label], np.int64)
        return found, left

    def to_add_up(
        self, metric: str, scheme: str, periods: Iterable[tuple[str, str]]
    ) -> list[tuple[str, str]]:
        """Those of these periods, each with the kind of its windows, for which `add_up` has
        something to do."""
        asked = list(periods)
        due: set[tuple[str, str]] = set()
        for place, shard in self._shards():
            due |= periods_due(place, shard, metric, scheme, asked)
        return [each for each in asked if each in due]

    def add_up(self, metric: str, scheme: str, kind: str, period: str) -> int:
        """Make the copy of a period, or bring it up to date. It is calculated from the windows
        themselves, and goes where it would be of no use. Returns the bytes that were written.

        Raises:
            StoreError: a block is damaged, or the copy did not read back; nothing changed.
        """
        return sum(
            add_up(place, shard, metric, scheme, kind, period) for place, shard in self._shards()
        )

    def drop_windows(
        self, metric: str, scheme: str, before: float, calendars: Sequence[str]
    ) -> Dropped:
        """Drop the windows that had ended by `before` (POSIX seconds). The same step adds them to
        the kept sums of these calendars, as far as they lie in them; without any they are lost.

        A window whose tally cannot be read stays, and the others go.

        Raises:
            StoreUnavailable: the store cannot answer now; what is done stays.
        """
        gone, failed = set[str](), list[tuple[TallyKey, str]]()
        for place, shard in self._shards():
            due = [
                label
                for label in place.holding(shard, metric, scheme, ())[0].windows
                if windows.end(label) <= before
            ]
            for some in together(due):
                try:
                    done, why = drop_together(place, shard, metric, scheme, some, calendars)
                except DamagedBlock as error:
                    done, why = set(), {label: str(error) for label in some}
                gone |= done
                failed += [(TallyKey(metric, scheme, label), why[label]) for label in why]
        return Dropped(len(gone), tuple(failed))

    def drop_sums(
        self, metric: str, scheme: str, calendar: str, before: float, calendars: Sequence[str]
    ) -> Dropped:
        """Drop the kept sums of a calendar whose period had ended by `before`.

        Where `calendars` has quarters, a month goes only if its quarter has all of it; to a quarter
        that has none of its windows it is added by the same step.
        """
        gone, failed = set[SumName](), list[tuple[TallyKey, str]]()
        for place, shard in self._shards():
            for text in place.sum_names(shard, metric, scheme):
                name = SumName.parse(text)
                if not (name.kept and name.ended(before) and name.calendar == calendar):
                    continue
                coarser = calendar == "month" and "quarter" in calendars
                why = f"its quarter has only a part of {name.period}: {name.period} stays"
                try:
                    done = drop_sum(place, shard, metric, scheme, name, coarser)
                except DamagedBlock as error:
                    done, why = False, str(error)
                if done:
                    gone.add(name)
                else:
                    failed.append((TallyKey(metric, scheme, text), why))
        return Dropped(len(gone), tuple(failed))

    def kept(self, metric: str, scheme: str) -> list[KeptSum]:
        """All kept sums, with their counters.

        Raises:
            StoreError: a block is damaged.
        """
        return [
            self.kept_sum(metric, scheme, name) for name in self.names(metric, scheme) if name.kept
        ]

    def kept_sum(self, metric: str, scheme: str, name: SumName) -> KeptSum:
        """One kept sum, over all shards."""
        reports: dict[str, list[int]] = {}
        total = None
        for place, shard in self._shards():
            shape = place.sum_shape(metric, scheme)
            total = np.zeros(shape.size, np.int64) if total is None else total
            record = place.holding(shard, metric, scheme, (name,))[0].sums.get(name)
            if record is not None:
                total += counters_of(place, shard, TallyKey(metric, scheme, str(name)), shape, True)
                for label, each in record.reports.items():
                    reports[label] = plus(reports.get(label), each)
        assert total is not None
        return KeptSum(name, reports, total)

    def add(self, metric: str, scheme: str, brought: KeptSum, batch: str) -> bool:
        """Add to a kept sum what an import brings, once for each id, for ever. Returns whether it
        was added now.

        Raises:
            StoreError: the sum did not read back, or others change it all the time.
        """
        # All sums of a metric lie in one shard, where each can be judged by the others.
        place, shard = next(iter(self._shards()))
        shape, name = place.sum_shape(metric, scheme), brought.name
        tally = TallyKey(metric, scheme, str(name))
        for _ in range(ATTEMPTS):
            holding, stamps = place.holding(shard, metric, scheme, (name,))
            record = holding.sums.get(name, SumRecord())
            if batch in record.added:
                return False
            total = counters_of(place, shard, tally, shape, name in stamps) + brought.counters
            reports = dict(record.reports)
            for label, each in brought.reports.items():
                reports[label] = plus(reports.get(label), each)
            written = written_form(
                tally, shape, SumRecord({}, reports, [*record.added, batch]), total
            )
            change = SumChange({}, {name: stamps.get(name, "")}, put={name: written})
            if place.change(shard, metric, scheme, change):
                return True
        raise StoreUnavailable("others change the same sum all the time")

    def imported(self, metric: str, scheme: str) -> list[Imported]:
        """In which forms windows were imported into this store."""
        return (
            []
            if self._place is None
            else [Imported.parse(text) for text in self._place.imports(metric, scheme)]
        )

    def note_imports(self, metric: str, scheme: str, imports: Iterable[Imported]) -> None:
        """Remember that windows are imported in these forms."""
        if self._place is not None:
            self._place.note_imports(metric, scheme, map(str, imports))

    def _shards(self) -> list[tuple[SumPlace, int]]:
        place = self._place
        return [] if place is None else [(place, shard) for shard in range(place.shards)]
