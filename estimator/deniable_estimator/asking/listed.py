"""Lists of strings that somebody names: with a digest, and as a search looks at them.

To another process a list of a file travels as the file's name, and back from there any list as its
digest; so do its `values` in what was calculated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self
from weakref import WeakValueDictionary

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
        self.came = False
        """Whether another process has sent it, which so has it."""

    def __reduce__(self) -> tuple[Any, ...]:
        _KNOWN[self.digest] = self
        return _listed, (self.digest, None if self.came else self._path or list(self))

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The same strings, as estimates hold them."""
        return _Values(self)

    @cached_property
    def searched(self) -> SearchedValues:
        """The same strings, as a search looks at them."""
        return SearchedValues.of(self)


class _Values(tuple[str, ...]):
    """The strings of a list that is known to be theirs."""

    listed: Listed

    def __new__(cls, listed: Listed) -> Self:
        made = super().__new__(cls, listed)
        made.listed = listed
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _values, (self.listed,)


_KNOWN: WeakValueDictionary[bytes, Listed] = WeakValueDictionary()
"""The lists that were sent to other processes or came from them, by their digest."""

_LATEST: list[Listed] = []
"""The list that came last from another process."""


def _listed(digest: bytes, source: str | list[str] | None) -> Listed:
    """The list of another process: its file, or its strings; None of one that was sent there.

    Raises:
        DeniableError: its file has changed meanwhile.
    """
    found = _KNOWN.get(digest)
    if found is None and source is not None:
        found = Listed(source) if isinstance(source, list) else Listed(read_values(source), source)
    if found is None or found.digest != digest:
        raise DeniableError(message("The list of strings has just been changed. Ask again."))
    if source is not None:
        _KNOWN[digest] = found
        _LATEST[:] = [found]
        found.came = True
    return found


def _values(listed: Listed) -> tuple[str, ...]:
    return listed.values


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
