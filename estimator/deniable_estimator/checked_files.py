"""TOML files that an operator writes: checked whole, with the line of every mistake, and read anew.

Annotations and boards are such files. A dashboard must not lose them because somebody saves a file
half way through an edit, so `LastGood` keeps what was read last without mistakes.
"""

from __future__ import annotations

import difflib
import logging
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from deniable.errors import MistakesError, Problem
from deniable.toml_lines import line_of, locate

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

    Raises:
        CheckedFileError: the text is not TOML.
    """

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self.problems: list[Problem] = []
        try:
            self.document = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            found = re.search(r"line (\d+)", str(error))
            # The parser quotes what it cannot read, which may be anything.
            told = _UNFIT.sub("\N{REPLACEMENT CHARACTER}", str(error))
            problem = Problem(int(found[1]) if found else None, "", f"is not TOML: {told}")
            raise CheckedFileError([problem], source) from None
        self._lines = locate(text)

    def report(self, path: Sequence[str], what: str) -> None:
        """Note a mistake at a path of keys; tables of an array are counted from "0"."""
        self.problems.append(Problem(self._line(path), _where(path), what))

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

    def _line(self, path: Sequence[str]) -> int | None:
        return line_of(self._lines, tuple(path))


def _where(path: Sequence[str]) -> str:
    """The path as people write it, with tables of an array counted from 1."""
    told = [str(int(each) + 1) if each.isdigit() and place else each for place, each in
            enumerate(path)]  # fmt: skip
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", ".".join(told))[:200]


class LastGood(Generic[_T]):
    """What a file says, read anew when it has changed; with mistakes in it, what it said before.

    A file that does not exist says `nothing`. Threads may share it.
    """

    def __init__(self, path: Path, read: Callable[[Path], _T], nothing: _T) -> None:
        self.path = path
        self._read = read
        self._nothing = nothing
        self._seen: tuple[object, _T, CheckedFileError | None] = (None, nothing, None)

    @property
    def value(self) -> _T:
        """What is in force."""
        return self._look()[1]

    @property
    def mistakes(self) -> CheckedFileError | None:
        """What is wrong with the file as it is now."""
        return self._look()[2]

    def _look(self) -> tuple[object, _T, CheckedFileError | None]:
        seen = self._seen
        try:
            status = self.path.stat()
            key: object = (status.st_ino, status.st_size, status.st_mtime_ns)
        except FileNotFoundError:
            key = "absent"
        except OSError as error:
            key = f"error {error.errno}"
        if key == seen[0]:
            return seen
        if key == "absent":
            seen = (key, self._nothing, None)
        else:
            try:
                seen = (key, self._read(self.path), None)
            except CheckedFileError as error:
                _log.warning("%s", error)
                seen = (key, seen[1], error)
        # One assignment: another thread sees the old state or the new one.
        self._seen = seen
        return seen
