"""Lists of strings that readers have sent: kept for their session, and for no longer.

A list is a file in a folder of the temporary ones, because several worker processes may serve one
session and a list is far too long for a cookie. The folder is its owner's alone and is named after
the dashboard's token. A file is named after a random key in the session's cookie, of which it has
a digest only: whoever reads the folder cannot say whose list it is, nor ask for it.

Lists are deleted when their session is signed out, when it forgets them, when there are too many,
and once nobody has looked at them for a time.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from flask import Flask, current_app, g, request, session

from deniable import DeniableError, Metric, ValueListError
from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.value_list import parse_values, value_texts
from deniable_collector.files import written
from deniable_estimator.asking.listed import Listed
from deniable_estimator.asking.results import digest
from deniable_estimator.dashboard.calculations import LIGHT
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.files import FileEditError, alone
from deniable_estimator.messages import message

KEPT_SECONDS = 12 * 3600
"""A list that nobody has looked at for so long is forgotten: as long as a session lasts."""

MOST_OF_ONE = 8
"""Lists of one session, each of another metric."""

MOST_LISTS = 200
"""Lists of all sessions."""

_MOST_OF_THE_LARGEST = 16
"""All lists together take no more room than so many of the largest that may be sent."""

_SWEEP_SECONDS = 60.0
_KEY = "lists"
_NAME = 32
"""Characters of a session's part of a file's name, and of a metric's."""


class ListNotKept(DeniableError):
    """There is no place for the list."""


class Uploads:
    """Lists by session and metric, for all processes that name the same folder.

    `clock` is POSIX time in seconds; `most_bytes` is for all lists together. Of those that are too
    many the ones go first that were not looked at for the longest.
    """

    def __init__(self, folder: Path, clock: Callable[[], float], most_bytes: int) -> None:
        self._folder, self._clock, self._most_bytes = folder, clock, most_bytes
        self._swept = -_SWEEP_SECONDS

    def keep(self, key: str, metric: str, listed: bytes) -> None:
        """Keep the list of a metric for the session with that secret key.

        Raises:
            ListNotKept: it is larger than all lists may be, or the folder cannot be used.
        """
        if len(listed) > self._most_bytes:
            raise ListNotKept(
                message(
                    "The list is longer than the {most:,} bytes that are kept in all.",
                    most=self._most_bytes,
                )
            )
        path = self._path(key, metric)
        try:
            self._open()
            with alone(path):
                path.unlink(missing_ok=True)
                self._make_room(path.name[:_NAME], len(listed))
                with written(path) as file:
                    file.write(listed)
                    file.flush()
                    self._touch(file.fileno())
        except (OSError, FileEditError) as error:
            raise ListNotKept(
                message(
                    "The list cannot be kept: the dashboard cannot write to its folder of "
                    "temporary files. An operator can name another one in TMPDIR."
                )
            ) from error

    def find(self, key: str, metric: str) -> bytes | None:
        """The list, which is then kept for longer; None if there is none."""
        path = self._path(key, metric)
        try:
            self._check()
            if self._clock() - path.stat().st_mtime > KEPT_SECONDS:
                path.unlink(missing_ok=True)
                return None
            listed = path.read_bytes()
            self._touch(path)
        except OSError:
            return None
        return listed

    def forget(self, key: str, metric: str | None = None) -> None:
        """Delete the list of a metric, or all of the session's."""
        name = self._path(key, metric or "").name
        with suppress(OSError):
            self._check()
            for path in self._folder.glob(name if metric else f"{name[:_NAME]}*"):
                path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Delete what nobody has looked at for too long; now and then is enough."""
        now = self._clock()
        if abs(now - self._swept) < _SWEEP_SECONDS:
            return
        self._swept = now
        with suppress(OSError):
            self._check()
            for changed, _, path in self._lists():
                if now - changed > KEPT_SECONDS:
                    path.unlink(missing_ok=True)

    def _path(self, key: str, metric: str) -> Path:
        whose = sha256(key.encode()).hexdigest()[:_NAME]
        which = hmac.digest(key.encode(), metric.encode(), "sha256").hex()[:_NAME]
        return self._folder / f"{whose}{which}"

    def _open(self) -> None:
        with suppress(FileExistsError):
            self._folder.mkdir(0o700)
        self._check()

    def _check(self) -> None:
        """Refuse a folder that is somebody else's, or that others can look into."""
        status = self._folder.lstat()
        ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
        if not ours or status.st_mode & 0o077:
            raise PermissionError

    def _make_room(self, whose: str, size: int) -> None:
        """Delete as many lists as one more of that size and session takes, the oldest first."""
        lists = sorted(self._lists())
        mine = [each for each in lists if each[2].name.startswith(whose)]
        doomed = mine[: max(0, len(mine) + 1 - MOST_OF_ONE)]
        rest = [each for each in lists if each not in doomed]
        total = sum(each[1] for each in rest)
        while rest and (len(rest) >= MOST_LISTS or total + size > self._most_bytes):
            doomed.append(rest.pop(0))
            total -= doomed[-1][1]
        for _, _, path in doomed:
            path.unlink(missing_ok=True)

    def _lists(self) -> Iterator[tuple[float, int, Path]]:
        """When each was last looked at, its bytes, and where it is."""
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):
                status = path.stat()
                yield status.st_mtime, status.st_size, path

    def _touch(self, path: Path | int) -> None:
        now = self._clock()
        os.utime(path, (now, now))


def offer_uploads(app: Flask, clock: Callable[[], float]) -> None:
    """Keep what readers send to this application, whose secret key is set, until they sign out."""
    secret = app.secret_key
    assert isinstance(secret, bytes)
    # All processes with one token agree on a folder that nobody else can name beforehand.
    name = hmac.digest(secret, b"deniable uploads", "sha256").hex()[:_NAME]
    folder = Path(tempfile.gettempdir()) / f"deniable-lists-{name}"
    most = _MOST_OF_THE_LARGEST * app.config["DENIABLE_SETTINGS"].dashboard_upload
    app.extensions["deniable_uploads"] = Uploads(folder, clock, most)
    app.before_request(_upkeep)


def keep_list(metric: Metric, listed: bytes) -> None:
    """Keep a metric's list for the session of this request.

    Raises:
        ListNotKept: there is no place for it.
    """
    if _KEY not in session:
        session[_KEY] = secrets.token_hex(16)
    _uploads().keep(session[_KEY], metric.name, listed)


def kept_list(metric: Metric) -> Sequence[str] | None:
    """The strings that the session of this request has sent for a metric."""
    key = session.get(_KEY)
    if not metric.needs_candidates or request.authorization or not isinstance(key, str):
        return None
    known: dict[str, Sequence[str] | None] = g.setdefault("kept_lists", {})
    if metric.name not in known:
        sent = _uploads().find(key, metric.name)
        known[metric.name] = (
            None if sent is None else sent_list(current_source(), sent, message("Your list"))
        )
    return known[metric.name]


def forget_list(metric: Metric) -> None:
    """Forget what the session of this request has sent for a metric."""
    if isinstance(key := session.get(_KEY), str):
        _uploads().forget(key, metric.name)


def _upkeep() -> None:
    """With every request: drop what is too old, and what belongs to a session that ends."""
    uploads = _uploads()
    uploads.sweep()
    if request.endpoint == "access.sign_out" and isinstance(key := session.get(_KEY), str):
        uploads.forget(key)


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
    if isinstance(sent, bytes):
        count, size = len(sent.removesuffix(b"\n").split(b"\n")), len(sent)
    else:
        count, size = len(sent), sum(map(len, sent))
    if count > source.most_strings:
        mistake = CodedMessage(
            "too_many_strings",
            "has more than {most:,} strings; send fewer, or part of them at a time",
            most=source.most_strings,
        )
        raise ValueListError(name, None, mistake)
    text = isinstance(sent, bytes)
    parse = parse_values if text else value_texts
    if count <= LIGHT and size <= _LIGHT_SIZE:
        return parse(sent, name)  # type: ignore[arg-type]
    whole = sent
    if not isinstance(whole, bytes):
        whole = "\n".join(whole).encode("utf-8", "surrogatepass")
    key = digest("sent", name, text, count, hashlib.blake2b(whole, digest_size=20).digest())
    return source.kept(key, lambda: Listed(source.workers.run(parse, sent, name)))
