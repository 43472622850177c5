"""Files that people write and commands edit, and the folder in which a dashboard keeps them.

Annotations, boards, people and rules are TOML files: checked whole, with the line of every mistake,
and read anew when they change. A dashboard must not lose them because somebody saves a file half
way through an edit, so `LastGood` keeps what was read last without mistakes. A command that edits
one is alone with it, and replaces it in one step.
"""

from __future__ import annotations

import difflib
import fcntl
import logging
import os
import re
import sqlite3
import threading
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from deniable import DeniableError
from deniable.protocol.errors import MistakesError, Problem
from deniable.protocol.toml_lines import line_of, locate
from deniable.whole_files import written
from deniable_collector.settings import SettingsError

DATA_SETTING = "DENIABLE_DATA"
DATA_FOLDER = "deniable-data"
"""In the working directory, unless the setting names another."""

ANNOTATIONS = "annotations.toml"
PEOPLE = "people.toml"
LINKS = "links.db"
SESSIONS = "sessions.db"
"""What a dashboard keeps in its folder: all that people have entered."""

MAX_FILE = 1 << 20
"""The largest file in bytes: each change of it is read while a page waits."""

_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Control characters, and what ends a line: they could rewrite what a terminal has shown."""

_T = TypeVar("_T")

_log = logging.getLogger("deniable.dashboard")


class CheckedFileError(MistakesError):
    """A file has mistakes; `problems` holds all of them, in file order."""

    def __init__(self, problems: Iterable[Problem], source: str) -> None:
        super().__init__(sorted(problems, key=lambda each: each.line or 0), source)


def file_in_folder(name: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Where a dashboard with this environment keeps a file."""
    return Path(environ.get(DATA_SETTING) or DATA_FOLDER) / name


def read_text(path: Path) -> str:
    """The text of a file, with the line ends that it has.

    Raises:
        CheckedFileError: it cannot be read, is no UTF-8, or is larger than `MAX_FILE`.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE + 1)
        if len(content) > MAX_FILE:
            reason = f"it is larger than {MAX_FILE:,} bytes"
        else:
            return content.decode("utf-8")
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    except OSError as error:
        reason = error.strerror or type(error).__name__
    raise CheckedFileError([Problem(None, "", f"cannot be read: {reason}")], str(path))


def is_plain_text(value: Any, most: int) -> bool:
    """Whether this is a line of text that is not blank, of at most so many characters."""
    return (
        isinstance(value, str)
        and 0 < len(value) <= most
        and not value.isspace()
        and _UNFIT.search(value) is None
    )


def nearest(name: str, known: Collection[str]) -> str:
    """A question about the known name that is most like this one; empty if none is."""
    # Names longer than any real one would only take time.
    found = difflib.get_close_matches(name[:200], known, n=1)
    return f"; did you mean {found[0]}?" if found else ""


class TomlChecker:
    """The document of a file, and all problems that its reader reports instead of the first one.

    Args:
        advice: what to do where the text is not TOML, for a file with secrets: the parser quotes
            what it cannot read.

    Raises:
        CheckedFileError: the text is not TOML.
    """

    def __init__(self, text: str, source: str, advice: str = "") -> None:
        self.source = source
        self.problems: list[Problem] = []
        try:
            self.document = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            found = re.search(r"line (\d+)", str(error))
            # What the parser quotes may be anything.
            told = advice or _UNFIT.sub("\N{REPLACEMENT CHARACTER}", str(error))
            problem = Problem(int(found[1]) if found else None, "", f"is not TOML: {told}")
            raise CheckedFileError([problem], source) from None
        self._lines = locate(text)

    def report(self, path: Sequence[str], what: str) -> None:
        """Note a mistake at a path of keys; tables of an array are counted from "0"."""
        self.problems.append(Problem(line_of(self._lines, tuple(path)), _where(path), what))

    def check_keys(self, path: Sequence[str], table: Collection[str], known: Iterable[str]) -> None:
        """Report the keys that are not known."""
        names = tuple(known)
        for key in table:
            if key not in names:
                told = nearest(key, names) or f"; it may hold {', '.join(names)}"
                self.report((*path, key), f"is unknown{told}")

    def check_schema(self, version: int) -> None:
        """Report a missing or another version of the format."""
        schema = self.document.get("schema")
        if type(schema) is not int or schema != version:
            self.report(("schema",), f"must be {version}: write `schema = {version}` at the top")

    def table(self, key: str) -> dict[str, Any]:
        """The table of this name at the top; what is none is reported, and read as empty."""
        found = self.document.get(key, {})
        if isinstance(found, dict):
            return found
        self.report((key,), f"must be a table: write [{key}]")
        return {}

    def tables(self, key: str, most: int) -> list[tuple[tuple[str, str], dict[str, Any]]]:
        """The tables of an array, each with its path; what is none is reported."""
        listed = self.document.get(key, [])
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            self.report((key,), f"must be tables: write [[{key}]] above each")
            return []
        if len(listed) > most:
            self.report((key,), f"are {len(listed):,}, more than {most:,}")
            return []
        return [((key, str(place)), each) for place, each in enumerate(listed)]

    def finish(self) -> None:
        """End the check.

        Raises:
            CheckedFileError: there were mistakes.
        """
        if self.problems:
            raise CheckedFileError(self.problems, self.source)


def _where(path: Sequence[str]) -> str:
    """The path as people write it, with tables of an array counted from 1."""
    told = [str(int(each) + 1) if each.isdigit() and place else each for place, each in
            enumerate(path)]  # fmt: skip
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", ".".join(told))[:200]


class LastGood(Generic[_T]):
    """What a file says, read anew when it has changed; with mistakes in it, what it said before.

    No file, or one that does not exist, says `nothing`. Threads may share it.
    """

    def __init__(self, path: Path | None, read: Callable[[Path], _T], nothing: _T) -> None:
        self.path = path
        self._read = read
        self._nothing = nothing
        self._lock = threading.Lock()
        self._seen: tuple[object, _T, CheckedFileError | None] = (None, nothing, None)

    @property
    def value(self) -> _T:
        """What is in force."""
        return self._look()[1]

    @property
    def mistakes(self) -> CheckedFileError | None:
        """What is wrong with the file as it is now."""
        return self._look()[2]

    @property
    def current(self) -> _T | None:
        """What the file says as it is now; None if there is none, or it has mistakes."""
        status, value, mistakes = self._look()
        return None if status is None or mistakes else value

    def tell(self, error: CheckedFileError | None) -> None:
        """Log what is wrong with the file; None: it is gone."""
        if error is not None:
            _log.warning("%s", error)

    def _look(self) -> tuple[object, _T, CheckedFileError | None]:
        key = status_of(self.path)
        with self._lock:
            if key != self._seen[0]:
                # What changes after this look has another status, and is read again.
                self._seen = (key, *self._read_again(None if key is None else self.path))
            return self._seen

    def _read_again(self, path: Path | None) -> tuple[_T, CheckedFileError | None]:
        if path is None:
            self.tell(None)
            return self._nothing, None
        try:
            return self._read(path), None
        except CheckedFileError as error:
            self.tell(error)
            return self._seen[1], error


class SmallDatabase:
    """An SQLite file for its owner alone, which all processes of a dashboard share; for "" the
    memory of this process. Threads may share it. `begin` are statements that make its tables.

    Raises:
        SettingsError: it cannot be opened.
    """

    def __init__(self, path: str, *begin: str) -> None:
        self._path, self._begin = path, begin
        self._lock = threading.Lock()
        self._process = 0
        self._connection: sqlite3.Connection | None = None
        try:
            if path:
                # For its owner alone, from the beginning.
                os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self.run("SELECT 1 FROM sqlite_master")
        except (OSError, sqlite3.Error) as error:
            told = error.strerror if isinstance(error, OSError) else error
            raise SettingsError([f"{DATA_SETTING}: {path} cannot be opened: {told}"]) from None

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows that a statement finds."""
        with self._lock:
            if self._connection is None or self._process != os.getpid():
                # A connection cannot be taken along into a process that was forked.
                where = self._path or ":memory:"
                self._connection = sqlite3.connect(
                    where, timeout=10, isolation_level=None, check_same_thread=False
                )
                for each in self._begin:
                    self._connection.execute(each)
                self._process = os.getpid()
            return self._connection.execute(statement, values).fetchall()


def status_of(path: Path | None) -> object:
    """Something that is another when the file has changed; None: there is none."""
    if path is None:
        return None
    try:
        found = path.stat()
    except (FileNotFoundError, ValueError):
        # A file that another one names may have a name that no file can have.
        return None
    except OSError as error:
        return error.errno
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


class FileEditError(DeniableError):
    """The file was not changed; the message says why."""


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until no other command changes a file in the folder of this one. A symbolic link stays
    a link: the folder is that of the file that it names, and is made if only it is missing.

    Raises:
        FileEditError: the file or its folder cannot be written.
    """
    # The lock is the folder's, because replacing a file takes a lock of the file itself away.
    try:
        path.resolve().parent.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(path.resolve().parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
    except OSError as error:
        raise FileEditError(
            f"{path} cannot be written ({error.strerror}): its folder must exist, and this user "
            "must be able to write to the folder, because the file is replaced in one step"
        ) from None


def replace_file(path: Path, text: str, mode: int | None) -> None:
    """Write the file anew. Its mode and owner stay; a new file gets `mode`, or with None what this
    process's mask lets others do."""
    with written(path, mode) as file:
        file.write(text.encode())
