"""Tokens for programs: each with a name, the digest of its secret, and what it may read.

Only digests are kept, so neither the file nor this process can tell a token. They are
digests of 256 random bits, which no search finds; a password would need more than that.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Any

from deniable import Metric
from deniable_estimator.files import TomlChecker, read_text

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
_MOST = 10_000
_ADVICE = (
    "write it as `deniable dashboard token new` does, or name its file with "
    "DENIABLE_API_TOKENS_FILE"
)


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
    import tomlkit

    given = {each.name: getattr(token, each.name) for each in fields(token)}
    given["scopes"] = sorted(token.scopes)
    return tomlkit.dumps({"tokens": [{key: each for key, each in given.items() if each}]})


def parse_tokens(text: str, source: str = "DENIABLE_API_TOKENS") -> tuple[ApiToken, ...]:
    """The tokens of a TOML text: any number of `[[tokens]]` tables.

    Raises:
        CheckedFileError: it has mistakes (all of them are listed). None quotes a digest.
    """
    if not text.strip():
        return ()
    checker = TomlChecker(text, source, _ADVICE)
    checker.check_keys((), checker.document, ("tokens",))
    tokens = [_read(checker, *each) for each in checker.tables("tokens", _MOST)]
    for key in ("name", "sha256"):
        seen = [getattr(each, key) for each in tokens]
        if len(set(seen)) < len(seen):
            told = f"has two tokens of one {key}: make another token for each use"
            checker.report(("tokens",), told)
    checker.finish()
    return tuple(tokens)


def read_tokens(path: Path) -> tuple[ApiToken, ...]:
    """The tokens of a file, with the same errors."""
    return parse_tokens(read_text(path), str(path))


def _read(checker: TomlChecker, path: tuple[str, str], table: dict[str, Any]) -> ApiToken:
    checker.check_keys(path, table, [each.name for each in fields(ApiToken)])
    name, digest, settled = table.get("name"), table.get("sha256"), table.get("settled", False)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        checker.report((*path, "name"), "must be up to 64 letters, digits and _ . -")
    if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        checker.report((*path, "sha256"), "must be 64 hexadecimal digits in lower case")
    scopes, metrics, tags = (
        _texts(checker, (*path, key), table.get(key)) for key in ("scopes", "metrics", "tags")
    )
    if not scopes or set(scopes) - set(SCOPES):
        checker.report((*path, "scopes"), f"must be some of {', '.join(SCOPES)}")
    if not isinstance(settled, bool):
        checker.report((*path, "settled"), "must be true or false")
    return ApiToken(str(name), str(digest), frozenset(scopes), metrics, tags, settled is True)


def _texts(checker: TomlChecker, path: Sequence[str], found: Any) -> tuple[str, ...]:
    if found is None:
        return ()
    if not isinstance(found, list) or not all(
        isinstance(each, str) and _PATTERN.fullmatch(each) for each in found
    ):
        checker.report(path, "must be a list of texts")
        return ()
    if not found:
        # It would read as "none", and an absent one means "all".
        checker.report(path, "is empty: name some, or leave the key out")
    return tuple(found)
