"""What is done with sums: added up from windows, kept when windows are dropped, read, and imported.

`life.ShardPart` has the steps, each of one shard; here they are done for all shards.

A kept sum and the days that it was made of are different tallies. So the ids of imports, which are
made of the content, do not tell that both bring the same reports. A memory of imports does: it has
in which form each window of another store came, as a tally or in a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from hashlib import sha256
from itertools import groupby
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable.protocol import windows
from deniable.protocol.keep import CALENDARS
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.contract import Change, Of, StoreContract
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.life import ATTEMPTS, ShardPart
from deniable_collector.stores.sealed import DamagedBlock
from deniable_collector.stores.sums import SumName, SumRecord, bounds, period_of

_IMPORTS = "imports"
"""The name of the memory of imports: a sum of nothing, with a record, beside the tallies."""


TALLY = "tally"
"""The form of a window that came as a tally of its own."""


class Imported(NamedTuple):
    """One window of another store and how it came: as a TALLY, or as a part of a kept sum of the
    calendar `form`, which was added under the id `batch`."""

    source: str
    form: str
    batch: str
    window: str

    def ended(self, before: float) -> bool:
        """Whether nothing that was dropped up to `before` (POSIX seconds) can leave a part of this
        window in a sum: its longest period had ended."""
        kind = windows.kind_of(self.window)
        periods = [period_of(calendar, self.window) for calendar in CALENDARS[kind]]
        ends = [bounds(each)[1] for each in periods]
        return max([windows.end(self.window), *ends]) <= before


def source_of(origin: str) -> str:
    """A short name for the origin of a file, which may be any text; empty if it has none."""
    return origin and sha256(origin.encode()).hexdigest()[:16]


def brought_before(new: Iterable[Imported], known: Iterable[Imported]) -> Imported | None:
    """What of an import would count a window twice, if anything: the window came before from the
    same store, as a tally and now in a sum, or the other way round, or in another sum of the same
    calendar. What came in the same form is recognized by its id. A month and its quarter may both
    be there: readers take one of them.
    """
    there: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for each in known:
        there.setdefault((each.source, each.window), set()).add((each.form, each.batch))
    for each in new:
        forms = there.get((each.source, each.window), set())
        if (each.form, each.batch) in forms:
            continue
        for form, _ in forms:
            if form == each.form or TALLY in (form, each.form):
                return each
    return None


class Sums:
    """The sums of a store."""

    def __init__(self, store: StoreContract) -> None:
        self._store = store

    def parts(self, of: Of) -> list[ShardPart]:
        """The parts of the tallies of a metric and scheme, of each shard."""
        return [ShardPart(self._store, shard, of) for shard in range(self._store.shards)]

    def names(self, of: Of) -> list[SumName]:
        """All sums, in the order of their periods."""
        found = {name for part in self.parts(of) for name in part.sums()}
        return sorted(found, key=lambda name: (*bounds(name.period), name))

    def calendars(self, of: Of) -> dict[str, set[str]]:
        """Each dropped window with the calendars whose kept sums have it."""
        found: dict[str, set[str]] = {}
        for part in self.parts(of):
            for name, record in part.kept().sums.items():
                for label in record.reports:
                    found.setdefault(label, set()).add(name.calendar)
        return found

    def add_up(self, of: Of, kind: str, period: str) -> int:
        """Make the copy of a period, or bring it up to date. It is calculated from the windows
        themselves, and goes where it would be of no use. Returns the bytes that were written.

        Raises:
            StoreError: a block is damaged, or the copy did not read back; nothing changed.
        """
        return sum(part.add_up(kind, period) for part in self.parts(of))

    def drop_windows(self, of: Of, before: float, calendars: Sequence[str]) -> dict[TallyKey, str]:
        """Drop the windows that had ended by `before` (POSIX seconds). The same step adds them to
        the kept sums of these calendars, as far as they lie in them; without any they are lost.

        A window whose tally cannot be read stays, and the others go. Each is told with why its
        part in a shard stays, empty if it went from all.

        Raises:
            StoreUnavailable: the store cannot answer now; what is done stays.
        """
        found: dict[TallyKey, str] = {}
        for part in self.parts(of):
            # By one step those that lie in the same month.
            months = groupby(part.ended(before), partial(period_of, "month"))
            for some in [list(each) for _, each in months]:
                try:
                    done = part.drop_together(some, calendars)
                except DamagedBlock as error:
                    done = dict.fromkeys(some, str(error))
                for label, why in done.items():
                    key = TallyKey(*of, label)
                    found[key] = found.get(key) or why
        return found

    def drop_sums(
        self, of: Of, calendar: str, before: float, calendars: Sequence[str]
    ) -> dict[TallyKey, str]:
        """Drop the kept sums of a calendar whose period had ended by `before`; each is told as by
        `drop_windows`.

        Where `calendars` has quarters, a month goes only if its quarter has all of it; to a quarter
        that has none of its windows it is added by the same step.
        """
        found: dict[TallyKey, str] = {}
        for part in self.parts(of):
            for name in part.sums():
                if not (name.kept and name.ended(before) and name.calendar == calendar):
                    continue
                coarser = calendar == "month" and "quarter" in calendars
                why = f"its quarter has only a part of {name.period}: {name.period} stays"
                try:
                    done = part.drop_sum(name, coarser)
                except DamagedBlock as error:
                    done, why = False, str(error)
                key = TallyKey(*of, str(name))
                found[key] = found.get(key) or ("" if done else why)
        return found

    def kept_sum(self, of: Of, name: SumName) -> tuple[dict[str, list[int]], NDArray[np.int64]]:
        """One kept sum over all shards: its reports by window, and all of its counters."""
        whole = SumRecord()
        total = np.zeros(self._store.shape(of).size, np.int64)
        for part in self.parts(of):
            record = part.holding((name,)).sums.get(name)
            if record is not None:
                total += part.read(str(name))[1]
                whole.add(record)
        return whole.reports, total

    def add(self, of: Of, name: SumName, more: SumRecord, counters: NDArray[np.int64]) -> bool:
        """Add to a kept sum what an import brings, with its id, once for each id, for ever. Returns
        whether it was added now.

        Raises:
            StoreError: the sum did not read back, or others change it all the time.
        """
        # All sums of a metric lie in one shard, where each can be judged by the others.
        part = self.parts(of)[0]
        for _ in range(ATTEMPTS):
            there = part.holding((name,))
            if name in there.sums and not {*more.added}.isdisjoint(there.sums[name].added):
                return False
            put = {str(name): part.grown(there, name, more, counters)}
            if part.change(Change({str(name): there.stamps.get(name, "")}, put=put)):
                return True
        raise StoreUnavailable("others change the same sum all the time")

    def imported(self, of: Of) -> list[Imported]:
        """In which forms windows were imported into this store."""
        return _imports(self._memory(of))[1]

    def note_imports(self, of: Of, imports: Collection[Imported]) -> None:
        """Remember that windows are imported in these forms."""
        self._change_imports(of, lambda known: [*dict.fromkeys([*known, *imports])])

    def forget_imports(self, of: Of, before: float) -> None:
        """Forget the imports of which nothing can be left, when all was dropped that had ended by
        `before` (POSIX seconds)."""
        self._change_imports(of, lambda known: [each for each in known if not each.ended(before)])

    def _memory(self, of: Of) -> ShardPart:
        return self.parts((of[0], f"{of[1]}.imports"))[0]

    def _change_imports(self, of: Of, edit: Callable[[list[Imported]], list[Imported]]) -> None:
        memory = self._memory(of)
        for _ in range(ATTEMPTS):
            stamp, known = _imports(memory)
            new = edit(known)
            put = {_IMPORTS: (msgspec.json.encode(new), b"")}
            if new == known or memory.change(Change({_IMPORTS: stamp}, put=put)):
                return
        raise StoreUnavailable("others import into the same metric all the time")


def _imports(memory: ShardPart) -> tuple[str, list[Imported]]:
    """The stamp of the memory of imports, and what it has."""
    head = memory.heads([_IMPORTS]).get(_IMPORTS)
    if head is None:
        return "", []
    return head.stamp, [Imported(*each) for each in msgspec.json.decode(head.record)]
