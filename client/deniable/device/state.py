"""The device's state: one SQLite file, safe against crashes, forks and a second process.

This module provides transactions, and fails closed: a file that is damaged, foreign, another app's
or newer than this code is never used, repaired or replaced. A new device starts only if the file
is missing. `deniable.device.state_file` opens and checks it.

The owner of a device can delete the reports that wait, or everything but the ledger: that and the
list of reported windows always stay, so that agreeing again reveals no more than was declared.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from deniable.device import open_windows, outbox
from deniable.device.state_file import (
    PATIENCE,
    distrust,
    may_be_there,
    open_file,
    open_memory,
    wait_until,
)
from deniable.protocol.errors import StateError

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME = "state.sqlite3"

_OFF = "switched-off"
"""The file beside it that switches reporting off. It is a file, so that whoever manages the
device can create it without our program."""

_ERASED = ("open_values", "refusals", "firsts", "batches", "reports", "schemes", "memo_keys")
"""The tables that an erasure empties. Windows stay as they are, and are not drawn again; a metric
that looks back is not reported without its memos, so its first window is not needed either."""


def states_root() -> str:
    """Where state directories are by default: the XDG base directory for state. A text, because
    `pathlib` takes 3 ms to import, which an app that only records does not pay.

    Raises:
        StateError: the user has no home directory.
    """
    base = os.environ.get("XDG_STATE_HOME", "")
    if not base.startswith("/"):  # the XDG specification: relative paths are ignored
        home = os.path.expanduser("~")
        if home == "~":
            raise StateError("no home directory to keep the state in: give the client a state_dir")
        base = os.path.join(home, ".local", "state")
    return os.path.join(base, "deniable")


def default_directory(app: str) -> str:
    """The state directory of an app, for one user of the device.

    It depends only on the app's name. So the ledger stays the same if the collector moves to
    another address, and two apps never share one.

    Raises:
        StateError: the user has no home directory.
    """
    return os.path.join(states_root(), app)


class Lock:
    """A lock for one thread at a time, which does not deadlock in signal handlers.

    A signal handler runs in the main thread and interrupts whatever that thread was doing. If the
    handler closes a client, and the interrupted call holds the client's lock, an ordinary lock
    would wait for ever. So the same thread cannot take this one a second time.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        """What a fork holds until it is done in both processes."""
        self._holder: int | None = None

    @contextmanager
    def held(self, patience: float) -> Iterator[None]:
        """Hold the lock; `patience` is how many seconds to wait for another thread.

        Raises:
            BlockingIOError: another thread did not release it in time, or this one holds it.
        """
        if self._holder == threading.get_ident():
            raise BlockingIOError("the state is in use by a call that this one has interrupted")
        if not self.lock.acquire(timeout=max(0.0, patience)):
            raise BlockingIOError("the state is in use by another thread")
        self._holder = threading.get_ident()
        try:
            yield
        finally:
            self._holder = None
            self.lock.release()


class State:
    """The state in `directory`, or in memory if that is None. Nothing is opened yet.

    With `app`, a state of another app is refused, because each app has its own ledger.
    """

    def __init__(self, directory: str | Path | None, app: str | None = None) -> None:
        self.path: str | None = None
        """The file; None if the state is in memory."""
        if directory is not None:
            folder = os.fspath(directory)
            if not os.path.isabs(folder):
                # Absolute from the start: the app may change its working directory.
                folder = os.path.join(os.getcwd(), folder)
            self.path = os.path.join(folder, FILE_NAME)
        self.app = app
        self.failure: StateError | None = None
        """Why the state cannot be trusted; None while it can."""
        self._connection: sqlite3.Connection | None = None
        self._lock = Lock()
        self.until: float | None = None
        """The `time.monotonic` until which every transaction may wait; None: each waits PATIENCE
        seconds."""

    def exists(self) -> bool:
        """Whether the device has a state already; also if the directory cannot be read, of which
        opening the state will say why."""
        return self.path is None or may_be_there(self.path)

    @property
    def patience(self) -> float:
        """Seconds to wait now for others that use the file."""
        return PATIENCE if self.until is None else max(0.0, self.until - time.monotonic())

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """An atomic transaction; only one runs at a time in all threads and processes.

        Raises:
            StateError: the file cannot be trusted; every later transaction raises it too.
            sqlite3.Error, OSError: the disk does not work, or another process has a lock.
        """
        patience = self.patience
        deadline = time.monotonic() + patience
        with self._lock.held(patience):
            self._check()
            try:
                if self._connection is None:
                    path, app = self.path, self.app
                    self._connection = open_file(path, app, deadline) if path else open_memory()
                connection = self._connection
                wait_until(connection, deadline)
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                wait_until(connection, deadline)
                connection.execute("COMMIT")
            except BaseException as error:
                self._abandon()
                self.failure = distrust(error)
                self._check()
                raise

    def _check(self) -> None:
        # Not the stored error, which would keep the frames that it has passed, and their values.
        if self.failure is not None:
            raise StateError(str(self.failure), damaged=self.failure.damaged) from None

    def withdraw(self) -> None:
        """Delete the values of open windows and the reports that were not acknowledged.

        The list of sent reports stays, for the owner to see. So do the keys of memos, which are
        independent of any value: with another key, the same value would be revealed a second time.
        """
        with self.transaction() as connection:
            open_windows.clear(connection)
            outbox.withdraw(connection)

    def erase(self, now: float) -> None:
        """Delete the values, all reports, the first windows of metrics that look back, and the keys
        of memos, at a POSIX time in seconds.

        Metrics that have reported with memos never do so again on this device.
        """
        with self.transaction() as connection:
            for table in _ERASED:
                connection.execute(f"DELETE FROM {table}")
            day = datetime.fromtimestamp(now, UTC).date()
            connection.execute("UPDATE device SET erased = ?", (day.isoformat(),))

    @property
    def switched_off(self) -> bool:
        """Whether the owner of the device has switched reporting off, for every app that keeps
        its state here, until they switch it on again."""
        # If it cannot be read, nothing is reported.
        return self.path is not None and may_be_there(self._off)

    def switch(self, *, on: bool) -> None:
        """Switch reporting on or off, permanently.

        Raises:
            OSError: the disk does not work.
        """
        if on:
            with suppress(FileNotFoundError):
                os.unlink(self._off)
        else:
            os.makedirs(os.path.dirname(self._off), exist_ok=True, mode=0o700)
            os.close(os.open(self._off, os.O_CREAT | os.O_WRONLY, 0o600))

    @property
    def _off(self) -> str:
        if self.path is None:
            raise StateError("a state in memory ends with its process: there is nothing to switch")
        return os.path.join(os.path.dirname(self.path), _OFF)

    def close(self) -> None:
        """Release the file, unless it is in use. The next transaction opens it again."""
        with suppress(BlockingIOError), self._lock.held(self.patience):
            self._disconnect()

    def before_fork(self) -> None:
        """Wait for the running transaction and close the file: a connection must not be forked."""
        self._lock.lock.acquire()
        if self.path is not None:
            self._disconnect()

    def after_fork(self, *, child: bool) -> None:
        """Continue, in both processes. Only the parent can use a state in memory."""
        if child:
            self.until = None  # another thread of the parent may be closing its client
        if child and self.path is None:
            # With a copied ledger, two processes would report the same window.
            self.failure = StateError("a state in memory cannot be used after a fork")
        self._lock.lock.release()

    def _abandon(self) -> None:
        if self._connection is None:
            return
        with suppress(sqlite3.Error):
            self._connection.rollback()
        if self.path is not None:
            self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
