"""What both stores hold of a tally that takes commits: a block, and increments that came since.

A commit appends what it adds, 8 bytes for each counter (u32 place in the vector, u32 count, little-
endian). So it costs as much as it brings, however large the tally is. Increments are merged into
the block when they take as many bytes as the block, and within DENIABLE_JOURNAL_SECONDS
(`Store.merge`): until then they are part of the store's journal. After that the block follows from
the sum alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable_collector.stores.commits import MAX_CELL, Addition, TallyKey
from deniable_collector.stores.sealed import add_counters, block_of, damaged, reports_in
from deniable_collector.stores.vectors import Shape, full

OPEN, NEAR_TOP, SEALED = 1, 2, 3
"""Kinds of tallies. Those NEAR_TOP have a counter that increments might bring above the highest: a
commit is merged, which finds that out. So is one to a tally that is SEALED."""

LEAST, MOST = 1 << 15, 1 << 22
"""Bytes of increments that any block may have, and that none may have."""

SIZE = 8
_COUNT_TOP = 2**32 - 1

_NEAR = 2**52
"""So many increments as there may be bring no counter from here to MAX_CELL."""


def packed(addition: Addition) -> bytes:
    """The increments of an addition that `fits`."""
    return np.stack((addition.places, addition.counts), axis=1).astype("<u4").tobytes()


def fits(addition: Addition) -> bool:
    """Whether each count of an addition has room in an increment."""
    return bool(addition.counts.max(initial=0) <= _COUNT_TOP)


def is_large(addition: Addition) -> bool:
    """Whether an addition is better merged at once: more like it would soon be."""
    return SIZE * len(addition.places) > LEAST


def takes(kind: int, block: int, added: int) -> bool:
    """Whether a tally of this kind, with a block and increments of so many bytes, takes more of
    them."""
    return kind == OPEN and added < min(max(LEAST, block), MOST)


class Held(NamedTuple):
    """A block, empty where all counters are 0, and the increments since."""

    block: bytes
    added: bytes = b""

    def add_to(self, tally: TallyKey, total: NDArray[np.int64]) -> None:
        """Add all counters to a vector of the tally's size.

        Raises:
            DamagedBlock: they cannot be read.
        """
        if self.block:
            add_counters(tally, total, self.block)
        if self.added:
            places, counts = self._table(tally, len(total))
            np.add.at(total, places, counts)

    def reports(self, tally: TallyKey, rows: int) -> NDArray[np.int64]:
        """The reports of each row, without reading the cells of the block.

        Raises:
            DamagedBlock: they cannot be read.
        """
        found = reports_in(tally, self.block) if self.block else np.zeros(rows, np.int64)
        if self.added:
            places, counts = self._table(tally, 1 << 32)
            np.add.at(found, places[places < rows], counts[places < rows])
        return found

    def _table(self, tally: TallyKey, size: int) -> NDArray[np.int64]:
        if len(self.added) % SIZE:
            raise damaged(tally)
        table = np.frombuffer(self.added, "<u4").reshape(-1, 2).T.astype(np.int64)
        if table[0].max() >= size:
            raise damaged(tally)
        return table


def merged(
    tally: TallyKey, shape: Shape, held: Held, addition: Addition | None = None
) -> tuple[int, bytes]:
    """The kind and the block of a tally with its increments, and with this addition.

    Raises:
        StoreError: a counter would exceed the highest.
        DamagedBlock: what is there cannot be read.
    """
    counters = np.zeros(shape.size, np.int64)
    held.add_to(tally, counters)
    if addition is not None:
        counters[addition.places] += addition.counts
    top = int(counters.max())
    if top > MAX_CELL:
        raise full(tally)
    block = block_of(tally, len(shape.widths), counters, coded=False)
    return OPEN if top < _NEAR else NEAR_TOP, block
