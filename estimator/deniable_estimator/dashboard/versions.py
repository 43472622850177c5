"""Digests of the data of a result: equal digests mean equal results.

Stores tell the versions of their tallies without reading them (`Store.version`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

__all__ = ["Listed", "digest", "digest_of_candidates"]

_SIZE = 20


def digest(*parts: object) -> bytes:
    """A digest of plain values, by their `repr`."""
    return _hash(parts).digest()


class Listed(list[str]):
    """Strings that an operator has listed, with their digest: of a million it takes a while."""

    def __init__(self, strings: Iterable[str]) -> None:
        super().__init__(strings)
        self.digest = _digest_of(self)


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
    return hashlib.blake2b(_told(*parts), digest_size=_SIZE)


def _told(*parts: object) -> bytes:
    return repr(parts).encode("utf-8", "surrogatepass")
