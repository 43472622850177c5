"""The file of people: who may sign in, with which role, and the hash of each one's token; and what
each role may do.

A token is 256 random bits, so no search finds it from its hash, however fast the hash is. The
hash is HMAC-SHA256 under a random salt of each person, so that equal tokens cannot be recognized.
"""

from __future__ import annotations

import hmac
import re
import secrets
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from deniable.protocol.errors import Problem
from deniable_collector.operation.events import tell
from deniable_estimator.files import CheckedFileError, LastGood, TomlChecker, read_text

SCHEMA = 1
"""The version of the format."""

MOST_PEOPLE = 1000
NAME_LENGTH = 64
"""The most people in a file, and the most characters of a name."""

_HASH = re.compile(r"hmac-sha256:([0-9a-f]{32}):([0-9a-f]{64})")
_ENTRY = re.compile("[0-9a-f]{16}")
_KEYS = ("role", "token", "entry")
_MARKS = " .@_+'-"


class Role(IntEnum):
    """A role may do whatever the roles before it may."""

    READER = 1
    ANALYST = 2
    OPERATOR = 3

    @property
    def word(self) -> str:
        """As files, headers and commands write it."""
        return self.name.lower()


ROLES = tuple(each.word for each in Role)
"""The roles, as files, headers and commands write them."""

ROOMS: dict[str, Role | None] = {
    # Before anybody has signed in.
    **dict.fromkeys(("static", "healthz", "access", "api.openapi"), None),
    # What a link opens is let in before this table (`sharing/opening.py`); all else is this page.
    "nothing_shared": None,
    **dict.fromkeys(("pages", "pictures", "segments", "discovering", "boards"), Role.READER),
    **dict.fromkeys(("released", "embedding"), Role.READER),
    # Some of its addresses ask for more (`api/__init__.py`).
    "api": Role.READER,
    # To share a view takes an analyst, and so do links. Operators revoke those of others too.
    **dict.fromkeys(("comparing", "planner", "sharing"), Role.ANALYST),
}
"""The least role for the routes of each blueprint, or for one endpoint; None opens to everybody. A
room that is missing here opens to operators only."""

SAFE = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing."""


def needed_role(method: str, endpoint: str | None) -> Role | None:
    """The least role that a request needs, an analyst's to send something; None if it needs nobody
    to have signed in.

    Addresses that do not exist need a reader, so that a stranger cannot tell them from others.
    """
    if endpoint is None:
        return Role.READER
    room = endpoint if endpoint in ROOMS else endpoint.partition(".")[0]
    needed = ROOMS.get(room, Role.OPERATOR)
    return needed if needed is None or method in SAFE else max(needed, Role.ANALYST)


def role_of(word: object) -> Role | None:
    """The role that is written like this; None if there is none."""
    return Role[word.upper()] if isinstance(word, str) and word in ROLES else None


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who has signed in. Whoever holds the dashboard's own token has no name."""

    name: str
    role: Role
    hashed: str = ""
    """The hash of the person's token; "" for one whom only a proxy can name."""
    by_proxy: bool = False
    """A reverse proxy has named this person."""
    entry: str | None = None
    """A random text: who is removed and added again has another one. "" if the file has none, and
    None for whoever is not in it."""


def hash_token(token: str, salt: str = "") -> str:
    """What the file keeps of a token, with a new salt of 128 random bits unless one is given."""
    salt = salt or secrets.token_hex(16)
    shown = token.encode("utf-8", "surrogatepass")
    return f"hmac-sha256:{salt}:{hmac.digest(bytes.fromhex(salt), shown, 'sha256').hex()}"


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
        CheckedFileError: it cannot be read, or has mistakes (all of them are listed).
    """
    if not path.exists():
        advice = "does not exist: `deniable dashboard people add NAME --role operator` makes it"
        raise CheckedFileError([Problem(None, "", advice)], str(path))
    return parse_people(read_text(path), str(path))


def parse_people(text: str, source: str = "people.toml") -> dict[str, Person]:
    """The people of a TOML text, by name: `schema = 1`, and a table [people.NAME] for each.

    Raises:
        CheckedFileError: it has mistakes (all of them are listed). None quotes a hash.
    """
    checker = TomlChecker(text, source, "write it as `deniable dashboard people add` does")
    checker.check_keys((), checker.document, ("schema", "people"))
    checker.check_schema(SCHEMA)
    tables = checker.table("people")
    if len(tables) > MOST_PEOPLE:
        checker.report(("people",), f"lists {len(tables)} people; {MOST_PEOPLE} are the most")
        tables = {}
    people: dict[str, Person] = {}
    spelled: dict[str, str] = {}
    hashes: dict[str, str] = {}
    for name, table in tables.items():
        person = _person(checker, name, table)
        # Two names that people read as one would make the wrong one lose a role.
        if (other := spelled.setdefault(name.casefold(), name)) != name:
            checker.report(("people", name), f"is another way to write {other}: choose another")
        if person and person.hashed and (first := hashes.setdefault(person.hashed, name)) != name:
            checker.report(("people", name, "token"), f"is that of {first}: make another token")
        if person:
            people[name] = person
    checker.finish()
    return people


def _person(checker: TomlChecker, name: str, table: Any) -> Person | None:
    path = ("people", name)
    if wrong := check_name(name):
        checker.report(path, wrong)
        return None
    if not isinstance(table, dict):
        checker.report(path, "must be a table with a role, and a token if there is one")
        return None
    checker.check_keys(path, table, _KEYS)
    role, hashed, entry = role_of(table.get("role")), table.get("token", ""), table.get("entry", "")
    if role is None:
        checker.report((*path, "role"), f"must be one of {', '.join(ROLES)}")
    if "token" in table and not (isinstance(hashed, str) and _HASH.fullmatch(hashed)):
        what = "must be a hash that `deniable dashboard people add` made, never the token itself"
        checker.report((*path, "token"), what)
        return None
    if "entry" in table and not (isinstance(entry, str) and _ENTRY.fullmatch(entry)):
        what = "must be as `deniable dashboard people add` wrote it, or left out"
        checker.report((*path, "entry"), what)
        return None
    return None if role is None else Person(name, role, hashed, entry=entry)


def find_person(people: Iterable[Person], token: str) -> Person | None:
    """The last one whose token this is. All are compared, each in constant time."""
    found = None
    for person in people:
        if person.hashed:
            salt = person.hashed.split(":")[1]
            if hmac.compare_digest(hash_token(token, salt), person.hashed):
                found = person
    return found


class PeopleFile(LastGood[Mapping[str, Person]]):
    """The people of a file, by name, read anew when it changes. "" is no file, and holds nobody.

    A file that is not there, or has mistakes from the beginning, holds nobody: to delete it is to
    let nobody in.
    """

    def __init__(self, path: str) -> None:
        super().__init__(Path(path) if path else None, load_people, {})
        # Mistakes are logged at the start, and not with the first request.
        _ = self.value

    def tell(self, error: CheckedFileError | None) -> None:
        if error is None:
            tell("warning", "people-gone", "the file of people is gone: nobody in it is let in")
        else:
            tell(
                "error",
                "people-refused",
                "the file of people has mistakes: only people read since the start, if any, and "
                "the dashboard's token are let in; `deniable lint` names the mistakes",
                mistakes=len(error.problems),
            )
