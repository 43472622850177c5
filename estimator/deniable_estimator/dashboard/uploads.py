"""Lists of strings that readers have sent: kept for their session, and for no longer.

A list is far too long for a cookie, so it is in the memory of the dashboard, which is one process
(`gunicorn_conf.py`), under a random key in the session's cookie. It is never written to a disk.

Lists are deleted when their session is signed out, when it forgets them, when there are too many,
once nobody has looked at them for a time, and when the dashboard ends.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Callable, Sequence

from cachetools import TTLCache
from flask import Flask, current_app, g, request, session

from deniable import Metric, ValueListError
from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.value_list import parse_values, value_texts
from deniable_estimator.asking.listed import Listed
from deniable_estimator.asking.results import key_of
from deniable_estimator.dashboard.access.caller import caller
from deniable_estimator.dashboard.calculations import LIGHT
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.messages import message

KEPT_SECONDS = 12 * 3600
"""A list that nobody has looked at for so long is forgotten: as long as a session lasts."""

MOST_OF_ONE = 8
"""Lists of one session, each of another metric."""

MOST_OF_THE_LARGEST = 16
"""All lists together take no more room than so many of the largest that may be sent."""

_BESIDE = 1_000
"""Bytes that a list takes beside its text, about: so the smallest are not without number."""

_KEY = "lists"


class Uploads:
    """Lists by session and metric, in the memory of this process; a dashboard has one.

    `clock` is POSIX time in seconds; `most_bytes` is for all lists together. Of those that are too
    many the ones go first that were not looked at for the longest. Threads may share it.
    """

    def __init__(self, clock: Callable[[], float], most_bytes: int) -> None:
        self._lock = threading.Lock()
        self._lists: TTLCache[tuple[str, str], bytes] = TTLCache(
            most_bytes, KEPT_SECONDS, clock, lambda listed: len(listed) + _BESIDE
        )

    def keep(self, key: str, metric: str, listed: bytes) -> None:
        """Keep the list of a metric for the session with that secret key."""
        # The clock stands still meanwhile, so that none expires between being found and deleted.
        with self._lock, self._lists.timer:
            self._lists[key, metric] = listed
            for each in self._own(key)[:-MOST_OF_ONE]:
                del self._lists[each]

    def find(self, key: str, metric: str) -> bytes | None:
        """The list, which is then kept for longer; None if there is none."""
        with self._lock:
            listed: bytes | None = self._lists.get((key, metric))
            if listed is not None:
                self._lists[key, metric] = listed
            return listed

    def forget(self, key: str, metric: str = "") -> None:
        """Delete the list of a metric, or all of the session's."""
        with self._lock, self._lists.timer:
            for each in self._own(key):
                if metric in ("", each[1]):
                    del self._lists[each]

    def sweep(self) -> None:
        """Delete what nobody has looked at for too long."""
        with self._lock:
            self._lists.expire()

    def _own(self, key: str) -> list[tuple[str, str]]:
        """The lists of a session, the one first that was not looked at for the longest."""
        return [each for each in self._lists if each[0] == key]


def offer_uploads(app: Flask, uploads: Uploads) -> None:
    """Keep what readers send to this application until they sign out."""
    app.extensions["deniable_uploads"] = uploads
    app.before_request(_upkeep)


def keep_list(metric: Metric, listed: bytes) -> None:
    """Keep a metric's list for the session of this request."""
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
    if count > (most := source.settings.dashboard_strings):
        mistake = CodedMessage(
            "too_many_strings",
            "has more than {most:,} strings; send fewer, or part of them at a time",
            most=most,
        )
        raise ValueListError(name, None, mistake)
    parse = parse_values if text else value_texts
    if count <= LIGHT and len(whole) <= _LIGHT_SIZE:
        return parse(sent, name)  # type: ignore[arg-type]
    key = key_of("sent", name, text, count, hashlib.blake2b(whole, digest_size=20).digest())
    return source.kept(key, lambda: Listed(source.workers.run(parse, sent, name)))
