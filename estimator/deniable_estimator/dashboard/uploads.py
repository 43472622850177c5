"""Lists of strings that readers have sent: kept for their session, and for no longer.

A list is far too long for a cookie, so it is in one small SQLite file beside that of the sessions.
It stands there under a digest of a random key in the session's cookie: whoever reads the file
cannot say whose list it is, nor ask for it.

Lists are deleted when their session is signed out, when it forgets them, when there are too many,
and once nobody has looked at them for a time.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256

from flask import Flask, current_app, g, request, session
from werkzeug.exceptions import ServiceUnavailable

from deniable import Metric, ValueListError
from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.value_list import parse_values, value_texts
from deniable_estimator.asking.listed import Listed
from deniable_estimator.asking.results import key_of
from deniable_estimator.dashboard.access.caller import caller
from deniable_estimator.dashboard.calculations import LIGHT
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.files import SmallDatabase
from deniable_estimator.messages import message

_log = logging.getLogger("deniable.dashboard")

KEPT_SECONDS = 12 * 3600
"""A list that nobody has looked at for so long is forgotten: as long as a session lasts."""

MOST_OF_ONE = 8
"""Lists of one session, each of another metric."""

MOST_LISTS = 200
"""Lists of all sessions."""

MOST_OF_THE_LARGEST = 16
"""All lists together take no more room than so many of the largest that may be sent."""

_SWEEP_SECONDS = 60.0
_KEY = "lists"

_BEGIN = (
    # What is deleted is overwritten, and gives its room back.
    *("PRAGMA secure_delete = ON", "PRAGMA auto_vacuum = FULL"),
    "CREATE TABLE IF NOT EXISTS lists "
    "(whose TEXT, which TEXT, looked REAL, listed BLOB, PRIMARY KEY (whose, which))",
)
_BEYOND = (
    "DELETE FROM lists WHERE rowid IN (SELECT rowid FROM (SELECT rowid, "
    "sum(length(listed)) OVER newest AS bytes, row_number() OVER newest AS place, "
    "row_number() OVER (PARTITION BY whose ORDER BY looked DESC, rowid DESC) AS own "
    "FROM lists WINDOW newest AS (ORDER BY looked DESC, rowid DESC)) "
    "WHERE bytes > ? OR place > ? OR own > ?)"
)
"""Deletes what is beyond these bounds, those that were looked at the longest ago."""


class Uploads:
    """Lists by session and metric, in a file, or for "" in the memory of this process.

    `clock` is POSIX time in seconds; `most_bytes` is for all lists together. Of those that are too
    many the ones go first that were not looked at for the longest.
    """

    def __init__(self, path: str, clock: Callable[[], float], most_bytes: int) -> None:
        self._clock, self._most_bytes = clock, most_bytes
        self._run = SmallDatabase(path, *_BEGIN).run
        self._swept = -_SWEEP_SECONDS

    def keep(self, key: str, metric: str, listed: bytes) -> None:
        """Keep the list of a metric for the session with that secret key.

        Raises:
            ServiceUnavailable: it is larger than all lists may be.
            sqlite3.Error: the file cannot be written.
        """
        if len(listed) > self._most_bytes:
            raise ServiceUnavailable(
                message(
                    "The list is longer than the {most:,} bytes that are kept in all.",
                    most=self._most_bytes,
                )
            )
        named, now = _named(key, metric), self._clock()
        self._run("REPLACE INTO lists VALUES (?, ?, ?, ?)", *named, now, listed)
        self._run(_BEYOND, self._most_bytes, MOST_LISTS, MOST_OF_ONE)

    def find(self, key: str, metric: str) -> bytes | None:
        """The list, which is then kept for longer; None if there is none."""
        named, now = _named(key, metric), self._clock()
        with suppress(sqlite3.Error):
            found = self._run(
                "SELECT listed FROM lists WHERE whose = ? AND which = ? AND looked >= ?",
                *(*named, now - KEPT_SECONDS),
            )
            if found:
                self._run("UPDATE lists SET looked = ? WHERE whose = ? AND which = ?", now, *named)
                return bytes(found[0][0])
        return None

    def forget(self, key: str, metric: str = "") -> None:
        """Delete the list of a metric, or all of the session's."""
        whose, which = _named(key, metric)
        with suppress(sqlite3.Error):
            self._run("DELETE FROM lists WHERE whose = ? AND ? IN ('', which)",
                      whose, which if metric else "")  # fmt: skip

    def sweep(self) -> None:
        """Delete what nobody has looked at for too long; now and then is enough."""
        now = self._clock()
        if abs(now - self._swept) >= _SWEEP_SECONDS:
            self._swept = now
            with suppress(sqlite3.Error):
                self._run("DELETE FROM lists WHERE looked < ?", now - KEPT_SECONDS)


def _named(key: str, metric: str) -> tuple[str, str]:
    """Whose list it is and which one, as the file has them."""
    which = hmac.digest(key.encode(), metric.encode(), "sha256").hex()
    return sha256(key.encode()).hexdigest(), which


def offer_uploads(app: Flask, uploads: Uploads) -> None:
    """Keep what readers send to this application until they sign out."""
    app.extensions["deniable_uploads"] = uploads
    app.before_request(_upkeep)


def keep_list(metric: Metric, listed: bytes) -> None:
    """Keep a metric's list for the session of this request.

    Raises:
        ServiceUnavailable: there is no place for it.
    """
    session.permanent = True
    session.setdefault(_KEY, secrets.token_hex(16))
    _uploads().keep(session[_KEY], _own(metric), listed)


def kept_list(metric: Metric) -> Sequence[str] | None:
    """The strings that the session of this request has sent for a metric."""
    if not metric.needs_candidates or request.authorization or _KEY not in session:
        return None
    known: dict[str, Sequence[str] | None] = g.setdefault("kept_lists", {})
    if metric.name not in known:
        sent = _uploads().find(session[_KEY], _own(metric))
        known[metric.name] = (
            None if sent is None else sent_list(current_source(), sent, message("Your list"))
        )
    return known[metric.name]


def forget_list(metric: Metric) -> None:
    """Forget what the session of this request has sent for a metric."""
    if _KEY in session:
        _uploads().forget(session[_KEY], _own(metric))


def _own(metric: Metric) -> str:
    """What the metric's list of whoever asks is kept as. People whom a proxy names have one each in
    a browser: what another person has sent from it is not theirs."""
    person = caller()
    return f"{person.name} {metric.name}" if person and person.by_proxy else metric.name


def _upkeep() -> None:
    """With every request: drop what is too old, and what belongs to a session that ends."""
    uploads = _uploads()
    uploads.sweep()
    if request.endpoint == "access.sign_out" and _KEY in session:
        uploads.forget(session[_KEY])


def _uploads() -> Uploads:
    uploads: Uploads = current_app.extensions["deniable_uploads"]
    return uploads


_LIGHT_SIZE = 1 << 15
"""A longer list is read in another process: to bring some texts into normal form takes long."""


def sent_list(source: DataSource, sent: bytes | Sequence[str], name: str) -> Sequence[str]:
    """The strings that a reader has sent: lines of text, or a list of texts.

    Raises:
        ValueListError: the list, which the error calls `name`, has a mistake.
        StillDecoding, TooManyDecodes: it takes longer than one may wait.
    """
    text = isinstance(sent, bytes)
    whole = sent if isinstance(sent, bytes) else "\n".join(sent).encode("utf-8", "surrogatepass")
    count = len(whole.removesuffix(b"\n").split(b"\n")) if text else len(sent)
    if count > source.most_strings:
        mistake = CodedMessage(
            "too_many_strings",
            "has more than {most:,} strings; send fewer, or part of them at a time",
            most=source.most_strings,
        )
        raise ValueListError(name, None, mistake)
    parse = parse_values if text else value_texts
    if count <= LIGHT and len(whole) <= _LIGHT_SIZE:
        return parse(sent, name)  # type: ignore[arg-type]
    key = key_of("sent", name, text, count, hashlib.blake2b(whole, digest_size=20).digest())
    return source.kept(key, lambda: Listed(source.workers.run(parse, sent, name)))
