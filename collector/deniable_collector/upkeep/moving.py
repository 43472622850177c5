"""Moves sealed blocks between the store, a folder and a bucket, while collectors run.

From one folder or bucket to another, files keep their names, and the store does not change: first
all are copied, then the setting of all processes. Into or out of the store itself, one atomic step
for each block changes what the store keeps for it. Nothing is deleted, and what is done is not done
again, so an interrupted move is completed by the same call.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from deniable_collector.stores.base import KeptBlock, Store
from deniable_collector.stores.commits import TallyKey
from deniable_collector.stores.errors import StoreUnavailable
from deniable_collector.stores.sealed.archive import Archive, file_of, in_the_store
from deniable_collector.stores.sealed.blocks import UNREADABLE, check_block
from deniable_collector.stores.sealed.places import NotThere, Place, PlaceTrouble
from deniable_collector.upkeep.archive import Advance

__all__ = ["Moved", "move_blocks"]


@dataclass
class Moved:
    """What a move has done: blocks and their bytes, and how many were there already.

    `waiting` is how many blocks are in the store and stay there until DENIABLE_ARCHIVE names the
    place. `failed` says for each window that could not be moved why; it stays where it was.
    """

    blocks: int = 0
    bytes: int = 0
    there: int = 0
    waiting: int = 0
    failed: tuple[tuple[TallyKey, str], ...] = ()


def move_blocks(
    store: Store, here: Archive, to: str, *, advance: Advance = lambda share: None
) -> Moved:
    """Bring all sealed blocks to `to`: a folder, s3://bucket/prefix, or "" for the store itself.

    `here` is where DENIABLE_ARCHIVE says that they are. Each block is checked before it is written,
    and read back.

    Raises:
        StoreError: `to` names no place, or one that belongs to other stores.
        StoreUnavailable: the store or the place cannot be reached.
    """
    there, mine = Archive(to, store), here.of(store)
    if there.place is not None:
        there.take(there.place)
    moved = Moved()
    for block, share in _all(store):
        try:
            _move(store, block, mine, there, moved)
        except UNREADABLE as error:
            moved.failed += ((block.tally, str(error)),)
        advance(share)
    return moved


def _all(store: Store) -> Iterator[tuple[KeptBlock, float]]:
    """The blocks of a store, and what share of the tallies has been looked at."""
    plan = [
        TallyKey(metric, scheme, label)
        for metric, schemes in sorted(store.schemes().items())
        for scheme in sorted(schemes)
        for label in store.windows(metric, scheme)
    ]
    for number, tally in enumerate(plan, 1):
        # Of several shards some may be sealed.
        for block in store.kept_blocks(tally):
            yield block, number / len(plan)


def _move(store: Store, block: KeptBlock, mine: Archive, there: Archive, moved: Moved) -> None:
    tally, name = block.tally, file_of(block.kept)
    if there.place is None:
        if name:
            content = _checked(mine, block)
            _count(moved, content, store.keep_otherwise(block, in_the_store(content)))
        else:
            moved.there += 1
    elif name and there.address != mine.address:
        if _has(there.place, name):
            there.get(tally, block.kept)
            moved.there += 1
            return
        content = _checked(mine, block)
        there.copy(name, content)
        _count(moved, content, True)
    elif name:
        moved.there += 1
    elif there.address != mine.address:
        # Its collectors would not find it: first their setting changes.
        moved.waiting += 1
    else:
        content = _checked(mine, block)
        kept = there.put(tally, content)
        done = store.keep_otherwise(block, kept)
        if not done:
            there.forget(tally, kept)
        _count(moved, content, done)


def _checked(mine: Archive, block: KeptBlock) -> bytes:
    content = mine.get(block.tally, block.kept)
    check_block(block.tally, content)
    return content


def _has(place: Place, name: str) -> bool:
    try:
        place.read(name)
    except NotThere:
        return False
    except PlaceTrouble as error:
        raise StoreUnavailable(f"{place.what} cannot be read ({error})") from error
    return True


def _count(moved: Moved, content: bytes, done: bool) -> None:
    # One that somebody has opened or moved meanwhile is none of this call's.
    moved.blocks += done
    moved.bytes += done * len(content)
