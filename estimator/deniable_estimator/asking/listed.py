"""Lists of strings that somebody names: with a digest, as a search looks at them, and as another
process has them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple, Self

from deniable import DeniableError, Metric
from deniable.protocol.value_list import read_values
from deniable_estimator.messages import message

MOST_STRINGS = 100_000
"""The most strings in a list that a reader sends, if the operator says nothing else."""

_SIZE = 20


def list_path(metric: Metric, folder: Path | None) -> Path | None:
    """The operator's list of the strings to look for, METRIC.txt in that folder; None if there is
    none."""
    if not metric.needs_candidates or folder is None:
        return None
    # A metric's name is made of letters, digits and underscores: it cannot lead elsewhere.
    path = folder / f"{metric.name}.txt"
    return path if path.is_file() else None


def listed_strings(metric: Metric, folder: Path | None) -> list[str] | None:
    """The strings of that list.

    Raises:
        ValueListError: it cannot be read or has a mistake.
    """
    path = list_path(metric, folder)
    return None if path is None else read_values(path)


class SearchedValues(NamedTuple):
    """The values of a metric, and all of them in one text, one a line, in which a search through a
    million of them takes a hundredth of a second."""

    values: Sequence[str]
    text: str

    @classmethod
    def of(cls, values: Sequence[str]) -> Self:
        """These values."""
        return cls(values, "\n".join(values).casefold())

    def having(self, word: str) -> Iterator[str]:
        """Those in which a word occurs."""
        place, line, counted = self.text.find(word), 0, 0
        while place >= 0:
            line += self.text.count("\n", counted, place)
            yield self.values[line]
            counted = place
            end = self.text.find("\n", place)
            place = -1 if end < 0 else self.text.find(word, end)


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
    """A digest of the requested strings, in their order; of none, if nobody has named any."""
    if isinstance(candidates, Listed):
        return candidates.digest
    return b"" if candidates is None else _digest_of(candidates)


def _digest_of(candidates: Sequence[str]) -> bytes:
    content = hashlib.blake2b(b"%d\n" % len(candidates), digest_size=_SIZE)
    # No candidate contains a line break, so different lists differ when joined.
    content.update("\n".join(candidates).encode())
    return content.digest()
