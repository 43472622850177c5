"""The links that were made: one small SQLite file, which all processes of a dashboard share.

It holds a digest of each link's secret, so whoever reads the file cannot open a link. A link that
is revoked is deleted: every process asks the file with each request, so it ends at once. A link
also ends with its maker's entry in the file of people, whether or not a dashboard ran meanwhile:
whoever looks it up next deletes it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from datetime import date, timedelta
from hashlib import sha256
from typing import Any, Literal, TypeAlias

from deniable import DeniableError
from deniable_estimator.files import SmallDatabase
from deniable_estimator.messages import message

MOST_OF_ONE = 500
"""The most links of one person."""

NOTE_LENGTH = 200
"""The most characters of a note."""

KEPT_DAYS = 30
"""Days for which a link that has ended is still listed."""

_TABLE = (
    "CREATE TABLE IF NOT EXISTS links (digest BLOB NOT NULL UNIQUE, id TEXT NOT NULL UNIQUE, "
    "path TEXT NOT NULL, query TEXT NOT NULL, maker TEXT NOT NULL, entry TEXT, "
    "note TEXT NOT NULL, made TEXT NOT NULL, until TEXT NOT NULL, unfinished INTEGER NOT NULL)"
)


Maker: TypeAlias = Literal["here", "away", "left"]
"""Whether the maker of a link may still share: "away" closes it for now, "left" for good."""


class LinksError(DeniableError):
    """The link cannot be kept; the message says why."""


@dataclass(frozen=True, slots=True)
class SharedLink:
    """A link as it is kept, but for its secret."""

    path: str
    made: date
    until: date
    """The last day (UTC) on which it opens."""
    query: str = ""
    """The view: the path and the query of its page."""
    maker: str = ""
    """The name of the person who has made it; "" for the dashboard's own token."""
    entry: str | None = None
    """That person's entry in the file of people; None for whoever is not in it."""
    note: str = ""
    unfinished: bool = False
    """Whether it also shows windows that have not ended."""
    id: str = ""
    """Names the link in lists; it opens nothing."""
    secret: str = field(default="", repr=False, compare=False)
    """What opens it, of one that was just made or found by it."""

    @property
    def opened_at(self) -> str:
        """The path that opens the view."""
        return f"/shared/{self.secret}"

    @property
    def address(self) -> str:
        """The view's own address, for people who have signed in."""
        return f"{self.path}?{self.query}" if self.query else self.path


_COLUMNS = tuple(each.name for each in fields(SharedLink) if each.name != "secret")
_LISTED = ", ".join(_COLUMNS)


class SharedLinks:
    """The links in a file, or for "" in the memory of this process. Only those whose maker is here
    open and are listed; those whose maker has left are deleted."""

    def __init__(self, path: str, maker: Callable[[SharedLink], Maker] = lambda link: "here"):
        self._maker = maker
        self.lasting = bool(path)
        """Whether they outlive the dashboard's process."""
        # What is deleted is overwritten: a note or a view that was revoked is gone.
        self._run = SmallDatabase(path, "PRAGMA secure_delete = ON", _TABLE).run

    def make(self, link: SharedLink) -> SharedLink:
        """Keep a new link; with its secret.

        Raises:
            LinksError: there are too many already.
        """
        self._run("DELETE FROM links WHERE until < ?", str(link.made - timedelta(days=KEPT_DAYS)))
        if len(self.listed(link.maker)) >= MOST_OF_ONE:
            raise LinksError(
                message(
                    "You have {most} links, which is the most. Revoke some of them first.",
                    most=MOST_OF_ONE,
                )
            )
        # 256 random bits open it; 48 tell it from others, and a second link cannot take them.
        link = replace(link, secret=secrets.token_urlsafe(32), id=secrets.token_hex(6))
        values = [getattr(link, name) for name in _COLUMNS]
        self._run(
            f"INSERT INTO links (digest, {_LISTED}) VALUES (?{', ?' * len(values)})",
            _digest(link.secret),
            *(str(each) if isinstance(each, date) else each for each in values),
        )
        return link

    def find(self, secret: str, today: date) -> SharedLink | None:
        """The link with this secret, if it opens today. Links that have ended, were revoked or
        never were are found alike: not at all."""
        found = self._run(
            f"SELECT {_LISTED} FROM links WHERE digest = ? AND until >= ?",
            *(_digest(secret), str(today)),
        )
        links = self._open(found)
        return replace(links[0], secret=secret) if links else None

    def listed(self, maker: str | None = None) -> list[SharedLink]:
        """All links, or those of one person, the newest first."""
        where, values = ("", ()) if maker is None else (" WHERE maker = ?", (maker,))
        found = self._run(
            f"SELECT {_LISTED} FROM links{where} ORDER BY made DESC, rowid DESC", *values
        )
        return self._open(found)

    def revoke(self, known: str, maker: str | None = None) -> SharedLink | None:
        """Delete the link with this id, if it is of that person; None if there is none."""
        mine = [each for each in self.listed(maker) if each.id == known]
        if not mine:
            return None
        self._run("DELETE FROM links WHERE id = ?", known)
        return mine[0]

    def _open(self, rows: list[tuple[Any, ...]]) -> list[SharedLink]:
        found = [(link, self._maker(link)) for link in map(_link, rows)]
        for link, maker in found:
            if maker == "left":
                self._run("DELETE FROM links WHERE id = ?", link.id)
        return [link for link, maker in found if maker == "here"]


def _link(row: tuple[Any, ...]) -> SharedLink:
    found: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    ends = {key: date.fromisoformat(found[key]) for key in ("made", "until")}
    return SharedLink(**{**found, **ends, "unfinished": bool(found["unfinished"])})


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()
