"""What a thief of the disk makes of a store's files: single commits, in order, where there are any.

SQLite's log holds whole pages: each version of a page is laid over the database, commit by
commit, and what one image counts more than the one before is a commit. Redis's append-only file
holds commands.
"""

from __future__ import annotations

import struct
from collections import Counter
from contextlib import closing
from typing import Any, TypeAlias

from deniable_collector.settings import Settings
from deniable_collector.stores import StoreError, open_store

Cells: TypeAlias = "Counter[tuple[str, str, int, int]]"
"""Counts by metric, window, row and column; column -1 counts the row's reports."""

_WAL_HEADER, _FRAME_HEADER = 32, 24


def sqlite_commits(path, scratch):
    """What each commit in the log of this database added, in order; `scratch` is a new folder."""
    scratch.mkdir()
    log = path.with_name(path.name + "-wal")
    data = log.read_bytes() if log.exists() else b""
    size = struct.unpack(">I", data[8:12])[0] if data else 0
    image, found = bytearray(path.read_bytes()), list[Cells]()
    before = _read_image(bytes(image), scratch / "database")
    frames = sorted(_frames(data, size), key=lambda frame: frame[0])  # Salts count the restarts.
    for number, (_, page, last, content) in enumerate(frames):
        image[(page - 1) * size : page * size] = content.ljust(size, b"\0")
        if last:
            now = _read_image(bytes(image), scratch / str(number))
            # Less than before: the database holds more than the first versions of its pages.
            if now != before and now >= before:
                found.append(_difference(now, before))
            before = now
    return found


def _frames(data, size):
    """(salt, page, whether it ends a commit, content), those that the log has done with too."""
    for at in range(_WAL_HEADER, len(data), _FRAME_HEADER + size):
        page, pages, salt = struct.unpack(">III", data[at : at + 12])
        if page:
            yield salt, page, bool(pages), data[at + _FRAME_HEADER : at + _FRAME_HEADER + size]


def _read_image(image, path):
    # Bytes 18 and 19 are 1 where a database has no log.
    path.write_bytes(image[:18] + b"\1\1" + image[20:])
    try:
        with closing(open_store(Settings(store=f"sqlite:///{path}"))) as store:
            return contents(store)
    except StoreError:
        return Counter()


def redis_commands(folder):
    """All commands that the append-only files in this folder of Redis hold, in order."""
    while True:
        files = folder.glob("appendonlydir/*.incr.aof")
        try:
            kept = [
                (file.stat().st_mtime_ns, file.name, tuple(_commands(file.read_bytes())))
                for file in files
            ]
        except FileNotFoundError:
            continue  # Redis has just removed one, as a rewrite is complete
        return [command for *_, commands in sorted(kept) for command in commands]


def _commands(data):
    at = 0

    def number(mark):
        nonlocal at
        assert data[at : at + 1] == mark
        end = data.index(b"\r\n", at)
        value, at = int(data[at + 1 : end]), end + 2
        return value

    while at < len(data):
        command = []
        for _ in range(number(b"*")):
            length = number(b"$")
            command.append(data[at : at + length])
            at += length + 2
        yield command


def contents(store):
    """All that a store counts."""
    cells: Counter[Any] = Counter()
    for metric, scheme in store.schemes():
        for window in store.windows(metric, scheme):
            for number, row in enumerate(store.tally(metric, scheme, [window]).rows):
                cells[metric, window, number, -1] += row.reports
                cells.update({
                    (metric, window, number, column): int(row.cells[column])
                    for column in row.cells.nonzero()[0].tolist()
                })  # fmt: skip
    return +cells


def _difference(now, before):
    return Counter({key: now[key] - before[key] for key in now if now[key] != before[key]})
