"""Digests of the data of a result: equal digests mean equal results.

Stores tell the versions of their tallies without reading them (`Store.version`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache

from deniable import DeniableError
from deniable.value_list import read_values
from deniable_estimator.dashboard.searching import SearchedValues
from deniable_estimator.messages import message

MOST_STRINGS = 100_000
"""The most strings in a list that a reader sends, if the operator says nothing else."""

_SIZE = 20


def digest(*parts: object) -> bytes:
    """A digest of plain values, by their `repr`."""
    return _hash(parts).digest()


def digest_of_bytes(content: bytes) -> bytes:
    """The same of a long content, without making a text of it."""
    return hashlib.blake2b(content, digest_size=_SIZE).digest()


class Listed(list[str]):
    """Candidates with their digest, which of a million takes a while to find.

    `path` is the operator's file that they stand in; None if a reader has sent them.
    """

    def __init__(self, strings: Iterable[str], path: str | None = None) -> None:
        super().__init__(strings)
        self.digest = _digest_of(self)
        self._path = path

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The same strings, as estimates hold them."""
        return tuple(self)

    @cached_property
    def searched(self) -> SearchedValues:
        """The same strings, as a search looks at them."""
        return SearchedValues.of(self)

    @property
    def source(self) -> tuple[str, bytes] | list[str]:
        """What another process needs to have the same strings, as `reread` takes it."""
        return list(self) if self._path is None else (self._path, self.digest)


def reread(source: tuple[str, bytes] | list[str]) -> Listed:
    """The strings of a `Listed.source`. The file that was read last is kept in memory.

    Raises:
        DeniableError: the file has changed meanwhile.
    """
    return Listed(source) if isinstance(source, list) else _reread(*source)


@lru_cache(maxsize=1)
def _reread(path: str, digest: bytes) -> Listed:
    found = Listed(read_values(path), path)
    if found.digest != digest:
        raise DeniableError(message("The list of strings has just been changed. Ask again."))
    return found


def digest_of_candidates(candidates: Sequence[str] | None) -> bytes:
    """A digest of the requested strings, in their order."""
    if isinstance(candidates, Listed):
        return candidates.digest
    return digest(None) if candidates is None else _digest_of(candidates)


def _digest_of(candidates: Sequence[str]) -> bytes:
    content = _hash((len(candidates),))
    # No candidate contains a line break, so different lists differ when joined.
    content.update("\n".join(candidates).encode())
    return content.digest()


def _hash(parts: Sequence[object]) -> hashlib.blake2b:
    return hashlib.blake2b(_bytes_of(*parts), digest_size=_SIZE)


def _bytes_of(*parts: object) -> bytes:
    return repr(parts).encode("utf-8", "surrogatepass")
