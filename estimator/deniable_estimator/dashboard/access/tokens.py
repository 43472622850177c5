"""Tokens for programs: each with a name, the digest of its secret, and what it may read.

Only digests are kept, so neither the file nor this process can tell a token. They are
digests of 256 random bits, which no search finds; a password would need more than that.
"""

from __future__ import annotations

import hmac
import re
import secrets
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any

from deniable import Metric
from deniable.protocol.errors import Problem
from deniable_estimator.files import CheckedFileError, read_text

SCOPES = {
    "read:metrics": "which metrics are declared, how many reported, what a report can reveal",
    "read:estimates": "estimates, trends and comparisons",
    "read:releases": "numbers that were released, and what all of them spend",
    "plan": "the planner",
}
"""The scopes of a token, and what they allow."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_PATTERN = re.compile(r"[^\x00-\x1f\x7f\"\\]{1,128}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_KEYS = {"name", "sha256", "scopes", "metrics", "tags", "settled"}


class TokenError(ValueError):
    """A key of the token at place `number` (from 1) has a mistake, which `mistake` says."""

    def __init__(self, number: int, mistake: str) -> None:
        self.number = number
        self.mistake = mistake
        super().__init__(f"token {number}: {mistake}")


@dataclass(frozen=True)
class ApiToken:
    """What the holder of one token may read."""

    name: str
    sha256: str
    scopes: frozenset[str]
    metrics: tuple[str, ...] = ()
    """Patterns of names, as a shell has them; with `tags` empty too, every metric is meant."""
    tags: tuple[str, ...] = ()
    settled: bool = False
    """Whether it sees only windows that take no reports any more: two readings of a window then
    never differ by a few late reports."""

    @property
    def limited(self) -> bool:
        """Whether it is limited to some metrics."""
        return bool(self.metrics or self.tags)

    def reaches(self, metric: Metric) -> bool:
        """Whether the metric's name, or one of its tags, is among those it is limited to."""
        return (
            not self.limited
            or any(fnmatchcase(metric.name, pattern) for pattern in self.metrics)
            or any(fnmatchcase(tag, pattern) for tag in metric.tags for pattern in self.tags)
        )


def new_token() -> str:
    """256 bits of the operating system's randomness, under a prefix that leak scanners find."""
    return f"deniable_{secrets.token_urlsafe(32)}"


def digest_of_token(token: str) -> str:
    """The digest that is kept in place of a token."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def find_token(tokens: Sequence[ApiToken], token: str) -> ApiToken | None:
    """The one whose secret this is. All are compared, each in constant time."""
    shown = digest_of_token(token)
    found = None
    for each in tokens:
        if hmac.compare_digest(each.sha256, shown):
            found = each
    return found


def token_lines(token: ApiToken) -> str:
    """The token as it stands in the file."""
    lines = ["[[tokens]]", f'name = "{token.name}"', f'sha256 = "{token.sha256}"']
    lists = {"scopes": sorted(token.scopes), "metrics": token.metrics, "tags": token.tags}
    lines += [f"{key} = [{_quoted(texts)}]" for key, texts in lists.items() if texts]
    lines += ["settled = true"] if token.settled else []
    return "\n".join(lines) + "\n"


def parse_tokens(text: str) -> tuple[ApiToken, ...]:
    """The tokens of a TOML text: any number of `[[tokens]]` tables.

    Raises:
        ValueError: it has a mistake; the message names the token by its number, not its digest.
            A `TokenError` if it is one of a token's keys.
    """
    if not text.strip():
        return ()
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        # The parser's message may quote the text.
        raise ValueError(
            "is not TOML: write it as `deniable dashboard token new` does, or name its file with "
            "DENIABLE_API_TOKENS_FILE"
        ) from None
    listed = document.get("tokens")
    if set(document) != {"tokens"} or not isinstance(listed, list):
        raise ValueError("must hold [[tokens]] tables and nothing else")
    tokens = tuple(_read(number, each) for number, each in enumerate(listed, 1))
    for key in ("name", "sha256"):
        seen = [getattr(each, key) for each in tokens]
        if len(set(seen)) < len(seen):
            raise ValueError(f"has two tokens of one {key}: make another token for each use")
    return tokens


def read_tokens(path: Path) -> tuple[ApiToken, ...]:
    """The tokens of a file.

    Raises:
        CheckedFileError: it cannot be read, or has a mistake.
    """
    try:
        return parse_tokens(read_text(path))
    except ValueError as error:
        raise CheckedFileError([Problem(None, "", str(error))], str(path)) from None


def _read(number: int, table: Any) -> ApiToken:
    if not isinstance(table, dict):
        raise ValueError(f"token {number} is no table")
    if unknown := set(table) - _KEYS:
        raise ValueError(f"token {number} has an unknown key {min(unknown)!r}")
    name, digest = table.get("name"), table.get("sha256")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise TokenError(number, "name must be up to 64 letters, digits and _ . -")
    if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        raise TokenError(number, "sha256 must be 64 hexadecimal digits in lower case")
    scopes = _texts(table, "scopes", number)
    if not scopes or set(scopes) - set(SCOPES):
        raise TokenError(number, f"scopes must be some of {', '.join(SCOPES)}")
    metrics, tags = _texts(table, "metrics", number), _texts(table, "tags", number)
    settled = table.get("settled", False)
    if not isinstance(settled, bool):
        raise TokenError(number, "settled must be true or false")
    return ApiToken(name, digest, frozenset(scopes), metrics, tags, settled)


def _texts(table: dict[str, Any], key: str, number: int) -> tuple[str, ...]:
    found = table.get(key, [])
    if not isinstance(found, list) or not all(
        isinstance(each, str) and _PATTERN.fullmatch(each) for each in found
    ):
        raise TokenError(number, f"{key} must be a list of texts")
    # An empty list would read as "none", and an absent one means "all".
    if key in table and not found:
        raise TokenError(number, f"{key} is empty: name some, or leave the key out")
    return tuple(found)


def _quoted(texts: Sequence[str]) -> str:
    return ", ".join(f'"{each}"' for each in texts)
