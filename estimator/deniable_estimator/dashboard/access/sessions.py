"""Who has signed in: kept on the server, so that signing out ends a session wherever its cookie is.

One small SQLite file, which all processes of a dashboard share and which survives a restart. It
holds a digest of each session's random id, and when it ends: whoever reads it cannot sign in. The
digest is also over whose session it is, so that it is found for that person and that token alone.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable
from hashlib import sha256

SESSION_SECONDS = 12 * 3600
"""A session ends so long after it was used last."""

_RENEWED = SESSION_SECONDS // 12
"""It is written down that a session was used, if that stands there as longer ago than this."""


class Sessions:
    """The open sessions, in a file, or for "" in the memory of this process.

    `clock` is POSIX time in seconds.
    """

    def __init__(self, path: str, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock
        self._lock = threading.Lock()
        self._process = 0
        self._connection: sqlite3.Connection | None = None
        if path:
            # For its owner alone, from the beginning.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))

    def begin(self, belonging: str = "") -> str:
        """A new session; its id. It is open only for whoever names the same `belonging`."""
        session, now = secrets.token_urlsafe(32), self._clock()
        self._do("DELETE FROM sessions WHERE ends <= ?", now)
        self._do(
            "INSERT INTO sessions VALUES (?, ?)", _digest(session, belonging), now + SESSION_SECONDS
        )
        return session

    def holds(self, session: str, belonging: str = "") -> bool:
        """Whether the session is open; it then stays so for longer."""
        known, now = _digest(session, belonging), self._clock()
        found = self._do("SELECT ends FROM sessions WHERE id = ? AND ends > ?", known, now)
        later = now + SESSION_SECONDS
        if found and found[0][0] < later - _RENEWED:
            self._do("UPDATE sessions SET ends = ? WHERE id = ?", later, known)
        return bool(found)

    def end(self, session: str, belonging: str = "") -> None:
        """Nobody is let in by this session any more."""
        self._do("DELETE FROM sessions WHERE id = ?", _digest(session, belonging))

    def _do(self, statement: str, *values: object) -> list[tuple[float]]:
        with self._lock:
            if self._connection is None or self._process != os.getpid():
                # A connection cannot be taken along into a process that was forked.
                self._connection = self._open()
                self._process = os.getpid()
            found: list[tuple[float]] = self._connection.execute(statement, values).fetchall()
            return found

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path or ":memory:", timeout=10, isolation_level=None, check_same_thread=False
        )
        connection.execute(
            "CREATE TABLE IF NOT EXISTS sessions (id BLOB PRIMARY KEY, ends REAL NOT NULL) "
            "WITHOUT ROWID"
        )
        return connection


def _digest(session: str, belonging: str) -> bytes:
    # An id has no line end, so no two pairs are one text.
    whole = f"{session}\n{belonging}" if belonging else session
    return sha256(whole.encode("utf-8", "surrogatepass")).digest()
