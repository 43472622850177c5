"""The file of people: who may sign in, with which role, and the hash of each one's token.

A token is 256 random bits, so no search finds it from its hash, however fast the hash is. The
hash is HMAC-SHA256 under a random salt of each person, so that equal tokens cannot be recognized.
"""

from __future__ import annotations

import hmac
import re
import secrets
import threading
import tomllib
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.errors import MistakesError, Problem
from deniable.toml_lines import line_of, locate
from deniable_collector.operation.events import tell
from deniable_estimator.dashboard.access.roles import ROLES, Role, role_of

SCHEMA = 1
"""The version of the format."""

MOST_PEOPLE = 1000
MOST_BYTES = 1 << 20
NAME_LENGTH = 64
"""The most people in a file, the most bytes of it, and the most characters of a name."""

_HASH = re.compile(r"hmac-sha256:([0-9a-f]{32}):([0-9a-f]{64})")
_ENTRY = re.compile("[0-9a-f]{16}")
_KEYS = ("role", "token", "entry")
_MARKS = " .@_+'-"


class PeopleError(MistakesError):
    """The file of people has mistakes; `problems` holds all of them, in file order."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who has signed in. Whoever holds the dashboard's own token has no name."""

    name: str
    role: Role
    hashed: str = ""
    """The hash of the person's token; "" for one whom only a proxy can name."""
    by_proxy: bool = False
    """A reverse proxy has named this person."""
    entry: str = ""
    """A random text: who is removed and added again has another one."""


def hash_token(token: str, salt: str = "") -> str:
    """What the file keeps of a token, with a new salt of 128 random bits unless one is given."""
    salt = salt or secrets.token_hex(16)
    shown = token.encode("utf-8", "surrogatepass")
    return f"hmac-sha256:{salt}:{hmac.digest(bytes.fromhex(salt), shown, 'sha256').hex()}"


def find_by_token(people: Mapping[str, Person], token: str) -> Person | None:
    """The one whose token this is. All are compared, each in constant time."""
    found = None
    for person in people.values():
        if person.hashed:
            salt = person.hashed.split(":")[1]
            if hmac.compare_digest(hash_token(token, salt), person.hashed):
                found = person
    return found


def check_name(name: str) -> str | None:
    """What is wrong with a person's name; None if it is good."""
    fine = (
        0 < len(name) <= NAME_LENGTH
        and name == name.strip()
        and all(
            each.isalnum() or each in _MARKS or unicodedata.category(each).startswith("M")
            for each in name
        )
    )
    if not fine:
        return f"must be a name of up to {NAME_LENGTH} letters, digits, spaces and . @ _ + ' -"
    if unicodedata.normalize("NFC", name) != name:
        return "must be in Unicode's normal form C"
    return None


def load_people(path: Path) -> dict[str, Person]:
    """The people in a file, by name.

    Raises:
        PeopleError: it cannot be read, or has mistakes (all of them are listed).
    """
    try:
        with path.open("rb") as file:
            sent = file.read(MOST_BYTES + 1)
        if len(sent) > MOST_BYTES:
            raise PeopleError([Problem(None, "", f"holds over {MOST_BYTES} bytes")], str(path))
        text = sent.decode("utf-8")
    except FileNotFoundError:
        advice = "does not exist: `deniable dashboard people add NAME --role operator` makes it"
        raise PeopleError([Problem(None, "", advice)], str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise PeopleError([Problem(None, "", f"cannot be read: {reason}")], str(path)) from None
    return parse_people(text, str(path))


def parse_people(text: str, source: str = "people.toml") -> dict[str, Person]:
    """The people of a TOML text, by name: `schema = 1`, and a table [people.NAME] for each.

    Raises:
        PeopleError: it has mistakes (all of them are listed). None quotes a hash.
    """
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # The parser's message may quote the text.
        found = re.search(r"line (\d+)", str(error))
        line = int(found[1]) if found else None
        problem = Problem(line, "", "is not TOML: write it as `deniable dashboard people add` does")
        raise PeopleError([problem], source) from None
    reader = _PeopleReader(document, locate(text))
    people = reader.read()
    if reader.problems:
        reader.problems.sort(key=lambda problem: problem.line or 0)
        raise PeopleError(reader.problems, source)
    return people


class _PeopleReader:
    """Collects all problems of one document instead of stopping at the first."""

    def __init__(self, document: Mapping[str, Any], lines: Mapping[tuple[str, ...], int]) -> None:
        self.document, self.lines = document, lines
        self.problems: list[Problem] = []

    def report(self, path: tuple[str, ...], told: str) -> None:
        shown = ".".join(each if each.isprintable() else ascii(each) for each in path)
        where = shown if len(shown) <= 2 * NAME_LENGTH else f"{shown[:NAME_LENGTH]}..."
        self.problems.append(Problem(line_of(self.lines, path), where, told))

    def read(self) -> dict[str, Person]:
        for key in self.document:
            if key not in ("schema", "people"):
                self.report((key,), "is unknown; the file may hold schema and people")
        schema = self.document.get("schema")
        if type(schema) is not int or schema != SCHEMA:
            self.report(("schema",), f"must be {SCHEMA}: write `schema = {SCHEMA}` at the top")
        tables = self.document.get("people", {})
        if not isinstance(tables, dict):
            self.report(("people",), "must hold a table for each person: write [people.NAME]")
            return {}
        if len(tables) > MOST_PEOPLE:
            self.report(("people",), f"lists {len(tables)} people; {MOST_PEOPLE} are the most")
            return {}
        people: dict[str, Person] = {}
        spelled: dict[str, str] = {}
        hashes: dict[str, str] = {}
        for name, table in tables.items():
            person = self._person(name, table)
            # Two names that people read as one would make the wrong one lose a role.
            if (other := spelled.setdefault(name.casefold(), name)) != name:
                self.report(("people", name), f"is another way to write {other}: choose another")
            if (
                person
                and person.hashed
                and (first := hashes.setdefault(person.hashed, name)) != name
            ):
                self.report(("people", name, "token"), f"is that of {first}: make another token")
            if person:
                people[name] = person
        return people

    def _person(self, name: str, table: Any) -> Person | None:
        path = ("people", name)
        if wrong := check_name(name):
            self.report(path, wrong)
            return None
        if not isinstance(table, dict):
            self.report(path, "must be a table with a role, and a token if there is one")
            return None
        for key in table:
            if key not in _KEYS:
                self.report((*path, key), f"is unknown; it may hold {' and '.join(_KEYS)}")
        role, hashed = role_of(table.get("role")), table.get("token", "")
        if role is None:
            known = ", ".join(ROLES)
            self.report((*path, "role"), f"must be one of {known}")
        if "token" in table and not (isinstance(hashed, str) and _HASH.fullmatch(hashed)):
            self.report(
                (*path, "token"),
                "must be a hash that `deniable dashboard people add` made, never the token itself",
            )
            return None
        entry = table.get("entry", "")
        if "entry" in table and not (isinstance(entry, str) and _ENTRY.fullmatch(entry)):
            self.report(
                (*path, "entry"), "must be as `deniable dashboard people add` wrote it, or left out"
            )
            return None
        return None if role is None else Person(name, role, hashed, entry=entry)


def _ignore(people: Mapping[str, Person]) -> None:
    """What happens when the file is read: nothing, unless somebody says."""


class PeopleFile:
    """The people of a file, read anew when it changes. "" is no file, and holds nobody.

    A file with mistakes leaves the last good one in force, and `mistake` says so. A file that is
    not there holds nobody: to delete it is to let nobody in.

    Raises:
        PeopleError: at the start, the file has mistakes.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None
        self._lock = threading.Lock()
        self.on_read: Callable[[Mapping[str, Person]], None] = _ignore
        """Called with the people of the file each time when it has been read anew. Nobody is gone
        while the file is away: it may be away for a moment."""
        self._people: Mapping[str, Person] = {}
        self._seen: tuple[int, ...] | None = None
        self.mistake = False
        if self._path is not None and (seen := self._status()) is not None:
            self._seen, self._people = seen, load_people(self._path)

    def __bool__(self) -> bool:
        """Whether there is a file."""
        return self._path is not None and self._seen is not None

    def current(self) -> Mapping[str, Person]:
        """The people in force, by name."""
        if self._path is None:
            return self._people
        seen = self._status()
        with self._lock:
            if seen != self._seen:
                self._read_again(self._path, seen)
            return self._people

    def by_token(self, token: str) -> Person | None:
        """The one whose token this is."""
        return find_by_token(self.current(), token)

    def _read_again(self, path: Path, seen: tuple[int, ...] | None) -> None:
        # What changes after this look has another status, and is read again.
        self._seen, self.mistake = seen, False
        if seen is None:
            self._people = {}
            tell("warning", "people-gone", "the file of people is gone: nobody in it is let in")
            return
        try:
            self._people = load_people(path)
            self.on_read(self._people)
        except PeopleError as error:
            self.mistake = True
            tell(
                "error",
                "people-refused",
                "the file of people has mistakes, and the people read before stay in force: "
                "`deniable lint` names the mistakes",
                mistakes=len(error.problems),
            )

    def _status(self) -> tuple[int, ...] | None:
        assert self._path is not None
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        except OSError:
            return (0,)
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
