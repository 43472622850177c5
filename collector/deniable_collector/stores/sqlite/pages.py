"""Tallies in SQLite: the counters of each, packed into pages of the size of the file's pages.

A page is a list of all its counters, of 4 bytes each, or of 8 where one needs them. Where that is
shorter, it is a list of the counters other than 0: their places in the page, of 2 bytes each, and
after them the counters, of 4 bytes each. The length tells which.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable_collector.stores.commits import MAX_CELL, TallyKey, version_of
from deniable_collector.stores.vectors import Addition, full

__all__ = [
    "add_pages",
    "add_to",
    "count_reports",
    "drop_pages",
    "forget",
    "many_versions",
    "mark",
    "page_bytes",
    "put_pages",
    "stamps",
]

_PAGE = 1_000
"""Counters in a page: with 4 bytes each it fits into a page of the file."""

_PAGES = 1 << 24
"""How many page numbers are reserved for a tally."""

_NARROW_TOP = 2**32 - 1


def add_to(connection: sqlite3.Connection, tally: TallyKey, addition: Addition) -> None:
    """Add to one tally, within a transaction.

    Raises:
        StoreError: a counter would exceed the highest.
    """
    first = _find(connection, tally)
    if first is None:
        made = connection.execute(
            "INSERT INTO tallies (metric, scheme, window) VALUES (?, ?, ?)", tally
        )
        first = (made.lastrowid or 0) * _PAGES
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
            _add(before[place], counters[row, :length])
    tops = counters.max(axis=1)
    if tops.max() > MAX_CELL:
        raise full(tally)
    connection.executemany(
        "INSERT OR REPLACE INTO pages VALUES (?, ?)",
        zip(places, _pack(counters, lengths, tops.tolist()), strict=True),
    )


def add_pages(
    connection: sqlite3.Connection,
    metric: str,
    scheme: str,
    totals: Mapping[str, NDArray[np.int64]],
) -> None:
    """Add the tally of each of these windows, if there is one, to its vector, which has the same
    length; windows that are to be added up have the same one."""
    for window, page, packed in connection.execute(
        "SELECT window, place - id * :pages, counters "
        f"FROM ({_ASKED}) CROSS JOIN pages "
        "WHERE place BETWEEN id * :pages AND id * :pages + :pages - 1",
        _asked(metric, scheme, totals) | {"pages": _PAGES},
    ):
        _add(packed, totals[window][page * _PAGE : (page + 1) * _PAGE])


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
    asked = _asked(metric, scheme, found) | {"pages": _PAGES, "last": (rows - 1) // _PAGE}
    for window, page, packed in connection.execute(
        "SELECT window, place - id * :pages, counters "
        f"FROM ({_ASKED}) CROSS JOIN pages "
        "WHERE place BETWEEN id * :pages AND id * :pages + :last",
        asked,
    ):
        first = page * _PAGE
        counters = np.zeros(min(_PAGE, size - first), np.int64)
        _add(packed, counters)
        found[window][first : first + _PAGE] += counters[: rows - first]


def mark(connection: sqlite3.Connection, tally: TallyKey, stamp: int) -> None:
    """Give a changed tally its new stamp."""
    connection.execute(
        "UPDATE tallies SET stamp = ? WHERE metric = ? AND scheme = ? AND window = ?",
        (stamp, *tally),
    )


def stamps(
    connection: sqlite3.Connection, metric: str, scheme: str, windows: Iterable[str]
) -> list[tuple[str, int]]:
    """The stamps of the existing tallies, each with its window."""
    asked = _asked(metric, scheme, windows)
    return connection.execute(f"SELECT window, stamp FROM ({_ASKED})", asked).fetchall()


def many_versions(
    connection: sqlite3.Connection, asked: Mapping[str, Iterable[str]]
) -> dict[str, bytes]:
    """The version of each metric over its windows; see `Store.versions`."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for metric, labels in asked.items():
        alike.setdefault(tuple(labels), []).append(metric)
    found: dict[str, list[tuple[object, ...]]] = {}
    for labels, metrics in alike.items():
        rows = connection.execute(
            "SELECT tallies.metric, tallies.scheme, tallies.window, stamp "
            "FROM json_each(:metrics) AS metric "
            "CROSS JOIN schemes ON schemes.metric = metric.value "
            "CROSS JOIN json_each(:windows) AS label "
            "CROSS JOIN tallies ON tallies.metric = schemes.metric "
            "AND tallies.scheme = schemes.fingerprint AND tallies.window = label.value",
            {"metrics": json.dumps(metrics), "windows": json.dumps(labels)},
        )
        for metric, *stamp in rows:
            found.setdefault(metric, []).append(tuple(stamp))
    return {metric: version_of(metric, "", each) for metric, each in found.items()}


def put_pages(connection: sqlite3.Connection, tally: TallyKey, counters: NDArray[np.int64]) -> None:
    """Write the vector of a tally that has no pages."""
    places = np.flatnonzero(counters)
    if len(places):
        add_to(connection, tally, Addition(len(counters), places, counters[places]))


def page_bytes(connection: sqlite3.Connection, identity: int) -> int:
    """The bytes of a tally's pages."""
    found: int = connection.execute(
        "SELECT coalesce(sum(length(counters)), 0) FROM pages WHERE place BETWEEN ? AND ?",
        _places(identity),
    ).fetchone()[0]
    return found


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
    "SELECT id, window, stamp FROM tallies WHERE metric = :metric AND scheme = :scheme "
    "AND window IN (SELECT value FROM json_each(:windows))"
)


def _asked(metric: str, scheme: str, windows: Iterable[str]) -> dict[str, Any]:
    return {"metric": metric, "scheme": scheme, "windows": json.dumps(list(windows))}


def _find(connection: sqlite3.Connection, tally: TallyKey) -> int | None:
    """The number of a tally's first page."""
    found = connection.execute(
        "SELECT id FROM tallies WHERE metric = ? AND scheme = ? AND window = ?", tally
    ).fetchone()
    return None if found is None else found[0] * _PAGES


def _pack(
    counters: NDArray[np.int64], lengths: Sequence[int], tops: Sequence[int]
) -> Iterator[bytes]:
    """Each row of counters as a page of that length; `tops` are the highest counters."""
    narrow = counters.astype("<u4")
    numbers = np.count_nonzero(counters, axis=1).tolist()
    for row, (length, top, number) in enumerate(zip(lengths, tops, numbers, strict=True)):
        if top > _NARROW_TOP:
            yield counters[row, :length].astype("<i8").tobytes()
        elif 6 * number < 4 * length:
            places = np.flatnonzero(narrow[row])
            yield places.astype("<u2").tobytes() + narrow[row, places].tobytes()
        else:
            yield narrow[row, :length].tobytes()


def _add(packed: bytes, counters: NDArray[np.int64]) -> None:
    """Add the counters of a page to as many others."""
    length = len(counters)
    if len(packed) in (4 * length, 8 * length):
        counters += np.frombuffer(packed, "<u4" if len(packed) == 4 * length else "<i8")
        return
    number = len(packed) // 6
    places = np.frombuffer(packed, "<u2", number)
    counters[places] += np.frombuffer(packed, "<u4", offset=2 * number)
