"""The device's state: one SQLite file, safe against crashes, forks and a second process.

It fails closed: a file that is damaged, foreign, another app's or newer than this code is never
used, repaired or replaced. A new device starts only if the file is missing. Each module declares
its own tables.

The owner of a device can delete the reports that wait, or everything but the ledger: that and the
list of reported windows always stay, so that agreeing again reveals no more than was declared.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime

from deniable.device import ledger, open_windows, outbox
from deniable.protocol.errors import StateError
from deniable.whole_files import place

FILE_NAME = "state.sqlite3"

MEMORY = ":memory:"
"""As a state directory: keep the state in memory, for devices that live for one process."""

PLACED_WITHIN = 60.0
"""Seconds within which another process has placed a new file, where there are no hard links."""

PATIENCE = 2.0
"""Seconds that a transaction waits for another process or thread that uses the state's file."""

_OFF = "switched-off"
"""The file beside it that switches reporting off. It is a file, so that whoever manages the
device can create it without our program."""

_ERASED = ("open_values", "refusals", "firsts", "reports", "schemes", "memo_keys")
"""The tables that an erasure empties. Windows stay as they are, and are not drawn again; a metric
that looks back is not reported without its memos, so its first window is not needed either."""

_LEAVE = (
    ", so nothing is reported: leave it, because a new one would start with an unspent ledger "
    "(in development, remove it)"
)

_APPLICATION = 0x646E6279  # "dnby"
_VERSION = 1  # Its tables have changed, but no version was published with others.

_TABLES = "CREATE TABLE device (app TEXT, erased TEXT)"
"""One row: the app, if known, and the UTC day on which the owner last erased reports."""

_SETTINGS = (
    # The journal keeps its blocks, so that `State._wipe` can overwrite its old pages. The next
    # statement may be the first to find the journal of a crash: exclusive, it does not unlink it.
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = PERSIST",
    "PRAGMA locking_mode = NORMAL",
    "PRAGMA synchronous = FULL",
    # In the file itself, SQLite overwrites what is deleted.
    "PRAGMA secure_delete = ON",
    "PRAGMA temp_store = MEMORY",
)


def states_root() -> str:
    """Where state directories are by default: the XDG base directory for state. That of an app, for
    one user of the device, has the app's name there. It depends only on that. So the ledger stays
    the same if the collector moves to another address, and two apps never share one.

    A text, because `pathlib` takes 3 ms to import, which an app that only records does not pay.

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

    def __init__(self, directory: str | os.PathLike[str] | None, app: str | None = None) -> None:
        self.path: str | None = None
        """The file; None if the state is in memory."""
        if directory is not None:
            self.path = os.path.join(os.fspath(directory), FILE_NAME)
            if not os.path.isabs(self.path):
                # Absolute from the start: the app may change its working directory.
                self.path = os.path.join(os.getcwd(), self.path)
        self.app = app
        self.failure: StateError | None = None
        """Why the state cannot be trusted; None while it can."""
        self._connection: sqlite3.Connection | None = None
        self._lock = Lock()
        self._forking = False
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
        deadline = time.monotonic() + self.patience
        with self._lock.held(self.patience):
            self._refuse_failed()
            opened = self._connection
            try:
                connection = opened or self._connect(deadline)
                wait_until(connection, deadline)
                connection.execute("BEGIN IMMEDIATE")
                if opened is None:
                    self._check(connection)
                yield connection
                wait_until(connection, deadline)
                connection.execute("COMMIT")
            except BaseException as error:
                self._abandon()
                self.failure = distrust(error)
                self._refuse_failed()
                raise
            self._wipe(connection, deadline)

    def _wipe(self, connection: sqlite3.Connection, deadline: float) -> None:
        """Overwrite the journal, which has pages as they were before the transaction.

        A transaction that writes nothing keeps other processes from using the journal meanwhile.
        If that is not possible now, or after a crash, the next transaction overwrites it.
        """
        if self.path is None:
            return
        with suppress(OSError, sqlite3.Error):
            journal = f"{os.path.realpath(self.path)}-journal"  # as SQLite names it
            if not os.path.getsize(journal):
                return
            wait_until(connection, deadline)
            try:
                connection.execute("BEGIN IMMEDIATE")
                with open(journal, "r+b") as file:
                    file.write(bytes(os.path.getsize(journal)))
                    file.flush()
                    os.fsync(file.fileno())
                    file.truncate(0)
            finally:
                connection.rollback()

    def _refuse_failed(self) -> None:
        # Not the stored error, which would keep the frames that it has passed, and their values.
        if self.failure is not None:
            raise StateError(str(self.failure), damaged=self.failure.damaged) from None

    def _connect(self, deadline: float) -> sqlite3.Connection:
        if self.path is None:
            connection = _open(MEMORY)
            _create_tables(connection, self.app)
            self._connection = connection
            return connection
        if not may_be_there(self.path):
            _create_file(self.path, self.app)
        with suppress(FileNotFoundError):
            _refuse_empty(self.path)
        # A file that has vanished meanwhile is not made anew, which would be an empty one.
        self._connection = _open(f"{_address(self.path)}?mode=rw")
        for setting in _SETTINGS:
            wait_until(self._connection, deadline)
            self._connection.execute(setting)
        return self._connection

    def _check(self, connection: sqlite3.Connection) -> None:
        """Refuse a file that is foreign, another app's, newer or damaged."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if application != _APPLICATION:
            raise StateError("the state file is not one of deniable's: name another state_dir")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != _VERSION:
            raise StateError(
                f"the state file has version {version}, and this deniable reads {_VERSION}: "
                "upgrade it"
            )
        # Not quick_check, which misses damage in an index; a row might then not be found.
        if connection.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
            raise StateError(f"the state file is damaged{_LEAVE}", damaged=True)
        (owner,) = connection.execute("SELECT app FROM device").fetchone()
        if self.app is not None and owner is not None and self.app != owner:
            raise StateError(
                f"the state file belongs to the app {owner!r}, and the registry is of "
                f"{self.app!r}: give each app a state_dir of its own"
            )

    def withdraw(self) -> None:
        """Delete the values of open windows and the reports that were not acknowledged.

        The list of sent reports stays, for the owner to see. So do the keys of memos, which are
        independent of any value: with another key, the same value would be revealed a second time.
        """
        with self.transaction() as connection:
            connection.execute("DELETE FROM open_values")
            connection.execute("DELETE FROM refusals")
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
        """Wait for the running transaction and close the file: a connection must not be forked.
        Each client of the state asks for it."""
        if not self._forking:
            self._lock.lock.acquire()
            self._forking = True
            if self.path is not None:
                self._disconnect()

    def after_fork(self, *, child: bool) -> None:
        """Continue, in both processes. Only the parent can use a state in memory."""
        if child:
            self.until = None  # another thread of the parent may be closing its client
        if child and self.path is None:
            # With a copied ledger, two processes would report the same window.
            self.failure = StateError("a state in memory cannot be used after a fork")
        if self._forking:
            self._forking = False
            self._lock.lock.release()

    def _abandon(self) -> None:
        if self._connection is None:
            return
        # A cursor that somebody still holds would keep a transaction that is only closed.
        with suppress(sqlite3.Error):
            self._connection.rollback()
        if self.path is not None:
            self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _open(database: str) -> sqlite3.Connection:
    return sqlite3.connect(
        database,
        uri=database != MEMORY,
        timeout=PATIENCE,
        isolation_level=None,
        check_same_thread=False,  # State's lock lets one thread in at a time
    )


def wait_until(connection: sqlite3.Connection, deadline: float) -> None:
    """Let each of the next statements wait for other processes until the deadline at most."""
    left = max(0, int(1000 * (deadline - time.monotonic())))
    connection.execute(f"PRAGMA busy_timeout = {left}")


def _address(path: str) -> str:
    """An absolute path as the address that SQLite opens (https://www.sqlite.org/uri.html)."""
    for each in "%?#":
        path = path.replace(each, f"%{ord(each):02X}")
    return f"file://{path}" if path.startswith("/") else f"file:{path}"


def may_be_there(path: str) -> bool:
    """Whether there is such a file, or none can be seen because the directory may not be read.
    `os.path.exists` would take such a directory for an empty one."""
    try:
        os.stat(path)
    except OSError as error:
        return not isinstance(error, (FileNotFoundError, NotADirectoryError))
    return True


def _refuse_empty(path: str) -> None:
    """Use no file that another process may just be placing; one that stays empty is damaged."""
    found = os.stat(path)
    if found.st_size:
        return
    if abs(time.time() - found.st_mtime) < PLACED_WITHIN:
        raise BlockingIOError(
            "the state file is empty, as if another process were making it: try again in a minute"
        )
    raise StateError(f"the state file is damaged (it is empty){_LEAVE}", damaged=True)


def _create_file(path: str, app: str | None) -> None:
    """Create a complete file under another name, and then give it the final name.

    So a crash never leaves a partial file, and if two processes start at once, one of them wins.
    Where there are no hard links, a crash within the two steps of `place` leaves an empty file:
    also then no second ledger is begun.
    """
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True, mode=0o700)
    draft = f"{path}.new-{os.getpid()}"
    with suppress(FileNotFoundError):
        os.unlink(draft)
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        with closing(_open(_address(draft))) as connection:
            connection.execute("PRAGMA journal_mode = OFF")  # nobody uses a draft that is partial
            _create_tables(connection, app)
        with suppress(FileExistsError):
            place(draft, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft)
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _create_tables(connection: sqlite3.Connection, app: str | None) -> None:
    marks = f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {_VERSION}"
    tables = (_TABLES, ledger.TABLES, open_windows.TABLES, outbox.TABLES)
    connection.executescript(";".join(("BEGIN", marks, *tables)))
    connection.execute("INSERT INTO device VALUES (?, NULL)", (app,))
    connection.execute("COMMIT")


def distrust(error: BaseException) -> StateError | None:
    """What an error says against the file; None if the trouble may pass, like a full disk."""
    if isinstance(error, StateError):
        return StateError(str(error), damaged=error.damaged)
    if isinstance(error, UnicodeDecodeError):
        told = ""  # even SQLite's message about the damage is not text
    else:
        # Python's own errors, about a misuse of the module, carry no code.
        code = getattr(error, "sqlite_errorcode", 0)
        # Operational errors are of what is around the file: its locks, the disk, permissions. But
        # a table that is missing is told by one too, as SQLITE_ERROR.
        around = isinstance(error, sqlite3.OperationalError) and code & 0xFF != sqlite3.SQLITE_ERROR
        if not code or around or not isinstance(error, sqlite3.DatabaseError):
            return None
        told = f" ({error})"
    return StateError(f"the state file is damaged{told}{_LEAVE}", damaged=True)
