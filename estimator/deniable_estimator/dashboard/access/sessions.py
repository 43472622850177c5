"""Who has signed in: kept on the server, so that signing out ends a session wherever its cookie is.

One small SQLite file, which all processes of a dashboard share and which survives a restart. It
holds a digest of each session's random id, and when it ends: whoever reads it cannot sign in. The
digest is also over whose session it is, so that it is found for that person and that token alone.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from hashlib import sha256

from deniable_estimator.files import SmallDatabase

SESSION_SECONDS = 12 * 3600
"""A session ends so long after it was used last."""

_RENEWED = SESSION_SECONDS // 12
"""It is written down that a session was used, if that stands there as longer ago than this."""


class Sessions:
    """The open sessions, in a file, or for "" in the memory of this process.

    `clock` is POSIX time in seconds.
    """

    def __init__(self, path: str, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._run = SmallDatabase(
            path,
            "CREATE TABLE IF NOT EXISTS sessions (id BLOB PRIMARY KEY, ends REAL NOT NULL) "
            "WITHOUT ROWID",
        ).run

    def begin(self, belonging: str = "") -> str:
        """A new session; its id. It is open only for whoever names the same `belonging`."""
        session, now = secrets.token_urlsafe(32), self._clock()
        self._run("DELETE FROM sessions WHERE ends <= ?", now)
        self._run(
            "INSERT INTO sessions VALUES (?, ?)", _digest(session, belonging), now + SESSION_SECONDS
        )
        return session

    def holds(self, session: str, belonging: str = "") -> bool:
        """Whether the session is open; it then stays so for longer."""
        known, now = _digest(session, belonging), self._clock()
        found = self._run("SELECT ends FROM sessions WHERE id = ? AND ends > ?", known, now)
        later = now + SESSION_SECONDS
        if found and found[0][0] < later - _RENEWED:
            self._run("UPDATE sessions SET ends = ? WHERE id = ?", later, known)
        return bool(found)

    def end(self, session: str, belonging: str = "") -> None:
        """Nobody is let in by this session any more."""
        self._run("DELETE FROM sessions WHERE id = ?", _digest(session, belonging))


def _digest(session: str, belonging: str) -> bytes:
    # An id has no line end, so no two pairs are one text.
    whole = f"{session}\n{belonging}" if belonging else session
    return sha256(whole.encode("utf-8", "surrogatepass")).digest()
