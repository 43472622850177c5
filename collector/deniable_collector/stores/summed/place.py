"""What a store does for its sums, and what one change of them is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.sealed.blocks import block_of, counters_in
from deniable_collector.stores.summed.sums import Holding, SumName, SumRecord, relevant
from deniable_collector.stores.vectors import Shape

ATTEMPTS = 5
"""How often a change is tried that others keep from being made."""


@dataclass
class SumChange:
    """One atomic step. It is refused unless windows and sums have these stamps ("": there is
    none)."""

    windows: Mapping[str, str] = field(default_factory=dict)
    sums: Mapping[SumName, str] = field(default_factory=dict)
    dropped: Collection[str] = ()
    """Windows whose tallies go; they are among `windows`."""
    removed: Collection[SumName] = ()
    """Sums that go, whatever their stamps are."""
    put: Mapping[SumName, tuple[bytes, bytes]] = field(default_factory=dict)
    """Sums that are written, each as its record and its block."""


@dataclass(frozen=True)
class Dropped:
    """What retention has dropped: how many tallies, and why others could not be."""

    tallies: int = 0
    failed: tuple[tuple[TallyKey, str], ...] = ()


@dataclass(frozen=True, eq=False)
class KeptSum:
    """A kept sum over all shards: its reports by window, and all of its counters."""

    name: SumName
    reports: dict[str, list[int]]
    counters: NDArray[np.int64]


class SumPlace(Protocol):
    """What a store does for its sums."""

    @property
    def shards(self) -> int: ...

    def sum_shape(self, metric: str, scheme: str) -> Shape:
        """The shape of the tallies of a scheme."""

    def sum_names(self, shard: int, metric: str, scheme: str) -> list[str]:
        """The texts of the names of all sums of a shard."""

    def holding(
        self, shard: int, metric: str, scheme: str, names: Sequence[SumName]
    ) -> tuple[Holding, dict[SumName, str]]:
        """What a shard has, of one moment: all windows, with the stamps of those that these copies
        may rest on, and these sums with their stamps. Sums that are gone are left out."""

    def window_counters(self, shard: int, tally: TallyKey) -> tuple[str, NDArray[np.int64]] | None:
        """The stamp and the vector of a window, if it has a tally."""

    def sum_block(self, shard: int, tally: TallyKey) -> bytes | None:
        """The block of a sum; the window of `tally` is the text of its name."""

    def change(self, shard: int, metric: str, scheme: str, change: SumChange) -> bool:
        """Make a change; False if it was refused."""

    def imports(self, metric: str, scheme: str) -> list[str]:
        """The texts of all that `note_imports` has noted and no drop has taken."""

    def note_imports(self, metric: str, scheme: str, texts: Iterable[str]) -> None:
        """Remember texts of `imported.Imported`."""


def kept_names(
    place: SumPlace, shard: int, metric: str, scheme: str, asked: Collection[str] | None = None
) -> list[SumName]:
    """The kept sums of one shard that have a part of the range of these windows, or all."""
    texts = [each for each in place.sum_names(shard, metric, scheme) if each.startswith("kept")]
    return list(map(SumName.parse, texts)) if asked is None else relevant(texts, asked)


def having(
    place: SumPlace, shard: int, metric: str, scheme: str, asked: Collection[str] | None = None
) -> dict[str, list[SumName]]:
    """Each dropped window with the kept sums that have it."""
    names = kept_names(place, shard, metric, scheme, asked)
    found: dict[str, list[SumName]] = {}
    if names:
        for name, record in place.holding(shard, metric, scheme, names)[0].sums.items():
            for label in record.reports:
                found.setdefault(label, []).append(name)
    return found


def counters_of(
    place: SumPlace, shard: int, tally: TallyKey, shape: Shape, there: bool
) -> NDArray[np.int64]:
    """The vector of a sum; zeros if it is not there."""
    block = place.sum_block(shard, tally) if there else None
    if block is None:
        return np.zeros(shape.size, np.int64)
    return counters_in(tally, shape.size, block)


def written_form(
    tally: TallyKey, shape: Shape, record: SumRecord, counters: NDArray[np.int64]
) -> tuple[bytes, bytes]:
    """The record and the block of a sum."""
    return msgspec.json.encode(record), block_of(tally, len(shape.widths), counters)


def by_combination(shape: Shape, counters: NDArray[np.int64]) -> list[int]:
    """The reports of a vector, for each combination of segments."""
    found: list[int] = counters[: len(shape.widths)].reshape(shape.groups, -1).sum(axis=1).tolist()
    return found


def plus(some: Sequence[int] | None, more: Sequence[int]) -> list[int]:
    """The sums of two lists, member by member; None is a list of zeros."""
    return list(more) if some is None else [a + b for a, b in zip(some, more, strict=True)]
