"""Tallies in SQLite: the counters of each, packed into pages of the size of the file's pages.

A tally has pages of as many counters each as its `span` says. A page of `_PAGE` counters is a list
of all of them, of 4 bytes each, or of 8 where one needs them. A page of more is a list of the
counters other than 0: `_ENTRIES` pairs of 4 bytes each, a place in the page plus 1 and the counter,
in ascending order, and zeros behind. A tally begins with one page. When a page has more counters
than entries, the span of the tally is halved until none has; at `_PAGE` counters all are listed.

So the span and the pages follow from the sum alone, not from the order in which it came. And all
pages but those of 8 bytes are of one length: SQLite would move rows that grow, and free space in
the file could keep an older sum.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deniable_collector.stores.commits import MAX_CELL, TallyKey
from deniable_collector.stores.contract import Found
from deniable_collector.stores.sealed import add_counters
from deniable_collector.stores.vectors import Addition, full

_PAGE = 1_000
"""Counters in a page that lists all: with 4 bytes each it fits into a page of the file."""

_ENTRIES = 500
"""Counters in a page that lists those other than 0."""

_WIDEST = 1 << 30
"""The most counters that a page begins with, whose places have 4 bytes."""

_PAGES = 1 << 24
"""How many page numbers are reserved for a tally."""

_NARROW_TOP = 2**32 - 1


def add_to(connection: sqlite3.Connection, tally: TallyKey, addition: Addition) -> None:
    """Add to one tally, within a transaction.

    Raises:
        StoreError: a counter would exceed the highest.
    """
    identity, span = _find(connection, tally) or (None, _PAGE)
    if identity is None:
        while span < addition.size and span < _WIDEST:
            span *= 2
        made = connection.execute(
            "INSERT INTO tallies (metric, scheme, window, span) VALUES (?, ?, ?, ?)",
            (*tally, span),
        )
        identity = made.lastrowid or 0
    if span == _PAGE:
        add_listing_all(connection, tally, identity, addition)
        return
    new = addition.sparse()
    touched = np.unique(new[0] // span)
    places, counts = _sum(_entries(connection, identity, span, touched.tolist()), new)
    if not _fits(places, counts, span):
        every = _entries(connection, identity, span)
        places, counts = _sum(every, new)
        while span > _PAGE and not _fits(places, counts, span):
            span //= 2
        drop_pages(connection, identity)
        connection.execute("UPDATE tallies SET span = ? WHERE id = ?", (span, identity))
        if span == _PAGE:
            whole = Addition(addition.size, places, counts)
            add_listing_all(connection, tally, identity, whole)
            return
    pages, begins = np.unique(places // span, return_index=True)
    table = np.stack([places % span + 1, counts], axis=1).astype("<u4")
    connection.executemany(
        "INSERT OR REPLACE INTO pages VALUES (?, ?)",
        [
            (identity * _PAGES + page, part.tobytes().ljust(8 * _ENTRIES, b"\0"))
            for page, part in zip(pages.tolist(), np.split(table, begins)[1:], strict=True)
        ],
    )


_Entries: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Places in a tally's vector, ascending, and the counters there."""


def _entries(
    connection: sqlite3.Connection, identity: int, span: int, pages: Sequence[int] | None = None
) -> _Entries:
    """The counters other than 0 of these pages, in ascending order, or of all."""
    values: tuple[object, ...] = _places(identity)
    asked = "BETWEEN ? AND ?"
    if pages is not None:
        asked = "IN (SELECT value FROM json_each(?))"
        values = (json.dumps([identity * _PAGES + page for page in pages]),)
    found = [np.empty((0, 2), np.int64)]
    for place, packed in connection.execute(
        f"SELECT place, counters FROM pages WHERE place {asked} ORDER BY place", values
    ):
        found.append(_listed(packed))
        found[-1][:, 0] += span * (place - identity * _PAGES)
    places, counts = np.concatenate(found).T
    return places, counts


def _listed(packed: bytes) -> NDArray[np.int64]:
    """The places in a page and the counters there, of shape (n, 2)."""
    table = np.frombuffer(packed, "<u4").reshape(-1, 2).astype(np.int64)
    table[:, 0] -= 1
    return table[table[:, 0] >= 0]


def _sum(some: _Entries, others: _Entries) -> _Entries:
    places, where = np.unique(np.concatenate((some[0], others[0])), return_inverse=True)
    counts = np.zeros(len(places), np.int64)
    counts[where[: len(some[0])]] = some[1]
    counts[where[len(some[0]) :]] += others[1]
    return places[counts > 0], counts[counts > 0]


def _fits(places: NDArray[np.int64], counts: NDArray[np.int64], span: int) -> bool:
    """Whether pages of so many counters can list these, whose places ascend."""
    most = np.unique(places // span, return_counts=True)[1].max(initial=0)
    return bool(most <= _ENTRIES and counts.max(initial=0) <= _NARROW_TOP)


def add_listing_all(
    connection: sqlite3.Connection, tally: TallyKey, identity: int, addition: Addition
) -> None:
    """Add to the tally of this id, whose pages list all of their counters.

    Raises:
        StoreError: a counter would exceed the highest.
    """
    first = identity * _PAGES
    if addition.places is None:
        touched = np.arange(-(-addition.size // _PAGE))
        counters = np.zeros((len(touched), _PAGE), np.int64)
        counters.reshape(-1)[: addition.size] = addition.counts
    else:
        pages, within = np.divmod(addition.places, _PAGE)
        touched, rows = np.unique(pages, return_inverse=True)
        counters = np.zeros((len(touched), _PAGE), np.int64)
        counters[rows, within] = addition.counts
    places = (first + touched).tolist()
    # Consecutive pages are read as one range, scattered ones by number.
    if places[-1] - places[0] < 2 * len(places):
        found = connection.execute(
            "SELECT place, counters FROM pages WHERE place BETWEEN ? AND ?",
            (places[0], places[-1]),
        )
    else:
        found = connection.execute(
            f"SELECT place, counters FROM pages WHERE place IN ({','.join(map(str, places))})"
        )
    before = dict(found)
    lengths = [min(_PAGE, addition.size - page * _PAGE) for page in touched.tolist()]
    for row, (place, length) in enumerate(zip(places, lengths, strict=True)):
        if place in before:
            counters[row, :length] += _unpack(before[place], length)
    tops = counters.max(axis=1)
    if tops.max() > MAX_CELL:
        raise full(tally)
    narrow = counters.astype("<u4")
    connection.executemany(
        "INSERT OR REPLACE INTO pages VALUES (?, ?)",
        [
            (place, (narrow if top <= _NARROW_TOP else counters)[row, :length].tobytes())
            for row, (place, length, top) in enumerate(
                zip(places, lengths, tops.tolist(), strict=True)
            )
        ],
    )


def read_tallies(
    connection: sqlite3.Connection,
    metric: str,
    scheme: str,
    totals: Mapping[str, NDArray[np.int64]],
) -> dict[str, Found]:
    """Add the pages or the block of each of these tallies, if there is one, to its vector; see
    `StoreContract.read`. One page or block at a time is in memory.

    Raises:
        DamagedBlock: one cannot be read.
    """
    found: dict[str, Found] = {}
    for name, stamp, span, page, packed, block in connection.execute(
        "SELECT window, stamp, span, place - id * :pages, counters, block "
        f"FROM ({_ASKED}) LEFT JOIN blocks USING (id) "
        "LEFT JOIN pages ON place BETWEEN id * :pages AND id * :pages + :pages - 1",
        _asked(metric, scheme, totals) | {"pages": _PAGES},
    ):
        if block is not None:
            add_counters(TallyKey(metric, scheme, name), totals[name], block)
        elif packed is not None:
            _add(packed, span, totals[name][page * span : (page + 1) * span])
        size = found[name].size if name in found else 0
        found[name] = Found(f"{stamp:016x}", size + len(block or packed or b""))
    return found


def count_reports(
    connection: sqlite3.Connection,
    metric: str,
    scheme: str,
    found: dict[str, NDArray[np.int64]],
    size: int,
) -> None:
    """Add the reports of each row to each of these windows; they are the first of the `size`
    counters."""
    rows = len(next(iter(found.values()), ()))
    if not rows:
        return
    for window, span, page, packed in connection.execute(
        "SELECT window, span, place - id * :pages, counters "
        f"FROM ({_ASKED}) CROSS JOIN pages "
        "WHERE place BETWEEN id * :pages AND id * :pages + (:rows - 1) / span",
        _asked(metric, scheme, found) | {"pages": _PAGES, "rows": rows},
    ):
        first = page * span
        counters = np.zeros(min(span, size - first), np.int64)
        _add(packed, span, counters)
        found[window][first : first + span] += counters[: rows - first]


def put_pages(connection: sqlite3.Connection, tally: TallyKey, counters: NDArray[np.int64]) -> None:
    """Write the vector of a tally that has no pages."""
    places = np.flatnonzero(counters)
    if len(places):
        add_to(connection, tally, Addition(len(counters), places, counters[places]))


def drop_pages(connection: sqlite3.Connection, identity: int) -> None:
    """Delete the pages of the tally of this id."""
    connection.execute("DELETE FROM pages WHERE place BETWEEN ? AND ?", _places(identity))


def forget(connection: sqlite3.Connection, tally: TallyKey) -> bool:
    """Delete a tally, with its pages or its block; False if there is none."""
    found = connection.execute(
        "SELECT id FROM tallies WHERE metric = ? AND scheme = ? AND window = ?", tally
    ).fetchone()
    if found is None:
        return False
    drop_pages(connection, found[0])
    connection.execute("DELETE FROM blocks WHERE id = ?", found)
    connection.execute("DELETE FROM tallies WHERE id = ?", found)
    return True


def _places(identity: int) -> tuple[int, int]:
    return identity * _PAGES, (identity + 1) * _PAGES - 1


_ASKED = (
    "SELECT tallies.id AS id, window, stamp, span FROM json_each(:windows) CROSS JOIN tallies "
    "WHERE metric = :metric AND scheme = :scheme AND window = value"
)


def _asked(metric: str, scheme: str, windows: Iterable[str]) -> dict[str, Any]:
    return {"metric": metric, "scheme": scheme, "windows": json.dumps(list(windows))}


def _find(connection: sqlite3.Connection, tally: TallyKey) -> tuple[int, int] | None:
    """A tally's id, and how many counters its pages have."""
    found: tuple[int, int] | None = connection.execute(
        "SELECT id, span FROM tallies WHERE metric = ? AND scheme = ? AND window = ?", tally
    ).fetchone()
    return found


def _add(packed: bytes, span: int, counters: NDArray[np.int64]) -> None:
    """Add the counters of a page to as many others."""
    if span == _PAGE:
        counters += _unpack(packed, len(counters))
    else:
        places, counts = _listed(packed).T
        counters[places] += counts


def _unpack(packed: bytes, length: int) -> NDArray[np.int64]:
    """The counters of a page that lists all of its `length`."""
    return np.frombuffer(packed, "<u4" if len(packed) == 4 * length else "<i8").astype(np.int64)
