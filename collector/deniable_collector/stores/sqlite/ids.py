"""Batch ids in SQLite, as `stores/ids.py` describes them: a row for each slot in use."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from deniable_collector.stores import ids

_GENERATION = 1 << 40
"""How many slot numbers are reserved for a generation."""

_TERM = 1 << 20
"""How many generation numbers are reserved for a term: enough for ten thousand years."""

_PRUNE = 4
"""Expired slots that are deleted for each new id; so the table shrinks without a long pause."""


def remember(
    connection: sqlite3.Connection, batch_ids: Sequence[str], terms: Sequence[int], now: float
) -> frozenset[str]:
    """Store all ids, each for its term; or, if some were seen before, return those and store
    none."""
    ((seed,),) = connection.execute("SELECT seed FROM secrets")
    counts = dict(connection.execute("SELECT generation, ids FROM generations"))
    names = ids.name(batch_ids, seed)
    tags = [names.tags[at : at + ids.TAG] for at in range(0, len(names.tags), ids.TAG)]
    asked = [
        _slots(names, generation, level)
        for term in range(len(ids.TERMS))
        for each in ids.generations_at(now, term)
        if (generation := each + term * _TERM) in counts
        for level in range(ids.level_of(counts[generation]) + 1)
    ]
    mine = {term: ids.generation_at(now, term) + term * _TERM for term in set(terms)}
    slots = {
        term: _slots(names, generation, ids.level_of(counts.get(generation, 0)))
        for term, generation in mine.items()
    }
    target = [slots[term][number] for number, term in enumerate(terms)]
    wanted = ",".join(map(str, {place for places in [*asked, target] for place in places}))
    held: dict[int, bytes] = dict(
        connection.execute(f"SELECT place, tags FROM ids WHERE place IN ({wanted})")
    )
    seen = frozenset(
        batch_id
        for places in asked
        for batch_id, place, tag in zip(batch_ids, places, tags, strict=True)
        if place in held and _holds(held[place], tag)
    )
    if seen:
        return seen
    for place, tag in zip(target, tags, strict=True):
        held[place] = held.get(place, b"") + tag
    connection.executemany(
        "INSERT OR REPLACE INTO ids VALUES (?, ?)", [(place, held[place]) for place in set(target)]
    )
    connection.executemany(
        "INSERT OR REPLACE INTO generations VALUES (?, ?)",
        [
            (generation, counts.get(generation, 0) + terms.count(term))
            for term, generation in mine.items()
        ],
    )
    return seen


def prune(connection: sqlite3.Connection, new: int, now: float) -> None:
    """Delete some slots of generations that are no longer searched, as `new` ids come.

    The last `KEPT` + 1 generations with ids stay, whatever the clock says. A clock that is wrong by
    years for some days makes one or two new generations, and not the five that would push out those
    that are needed when it is right again.
    """
    ((last,),) = connection.execute("SELECT coalesce(max(place), 0) FROM ids")
    # Most stores have ids of the shortest term alone.
    for term in range(last // (_TERM * _GENERATION) + 1):
        first = term * _TERM
        last_ones = connection.execute(
            "SELECT generation FROM generations WHERE generation >= ? AND generation < ? "
            "ORDER BY generation DESC LIMIT 1 OFFSET ?",
            (first, first + _TERM, ids.KEPT),
        ).fetchone()
        if last_ones is None:
            continue
        oldest = min(first + ids.generation_at(now, term) - ids.KEPT, last_ones[0])
        connection.execute(
            "DELETE FROM ids WHERE place IN "
            "(SELECT place FROM ids WHERE place >= ? AND place < ? LIMIT ?)",
            (first * _GENERATION, oldest * _GENERATION, _PRUNE * (new + 1)),
        )
        connection.execute(
            "DELETE FROM generations WHERE generation >= ? AND generation < ?", (first, oldest)
        )


def _slots(names: ids.Names, generation: int, level: int) -> list[int]:
    """The slot numbers of the ids at this level; a leading 1 separates the levels."""
    base, slots, digits = generation * _GENERATION, names.slots, 3 + level
    return [base + int("1" + slots[at : at + digits], 16) for at in range(0, len(slots), 8)]


def _holds(packed: bytes, tag: bytes) -> bool:
    at = packed.find(tag)
    while at % ids.TAG:
        if at < 0:
            return False
        at = packed.find(tag, at + 1)
    return True
