"""Bloom filters of strings in public cohorts: h of k bits, by other hash functions in each cohort.

Bit number i of a string in cohort c is `hash64(salt, c*h + i, string) % k`. Hashes of a
string may meet in one bit, so a filter has at most h bits set, and the filters of two
strings differ in at most 2h (Bloom, Comm. ACM 1970; cohorts: Erlingsson et al., CCS 2014).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Self

from deniable.protocol.errors import SchemeError
from deniable.protocol.frozen import frozen
from deniable.protocol.hashing import hash64
from deniable.protocol.mechanisms.base import Cell, Packing, Row
from deniable.protocol.mechanisms.limits import MAX_CELLS, check_parameters

MAX_BITS = 1 << 12
"""The longest bitmap: a report of 512 bytes."""

MAX_COHORTS = 1 << 16
MAX_HASHES = 64


@frozen
class Bloom:
    """Filters of `k` bits with `h` hashes, in `cohorts` cohorts under `salt`.

    Raises:
        SchemeError: an empty salt, more than MAX_CELLS bits in all, or fewer than 2h bits in
            a filter, which two strings need to differ in all of their hashes.
    """

    salt: str
    cohorts: int
    k: int
    h: int

    def __post_init__(self) -> None:
        if not self.salt or "\0" in self.salt:
            raise SchemeError("salt must be a text without zero bytes")
        if self.k < 2 * self.h:
            raise SchemeError(f"a filter of k = {self.k} bits is too short for h = {self.h} hashes")
        if self.cohorts * self.k > MAX_CELLS:
            raise SchemeError(
                f"{self.cohorts} cohorts of k = {self.k} bits are above {MAX_CELLS:,} cells in "
                "all; take fewer"
            )

    @classmethod
    def from_parameters(cls, mechanism: str, parameters: Mapping[str, Any]) -> Self:
        """The filters that `parameters` describe for a mechanism of that name.

        Raises:
            SchemeError: a parameter is missing, unknown or out of range.
        """
        numbers = {name: value for name, value in parameters.items() if name != "salt"}
        salt = parameters.get("salt")
        if not isinstance(salt, str):
            raise SchemeError(f"{mechanism}: salt must be a text, not {salt!r}")
        return cls(
            salt,
            *check_parameters(
                mechanism,
                numbers,
                cohorts=(1, MAX_COHORTS),
                k=(2, MAX_BITS),
                h=(1, MAX_HASHES),
            ),
        )

    def parameters(self) -> dict[str, int | str]:
        """What `from_parameters` reads."""
        return {"salt": self.salt, "cohorts": self.cohorts, "k": self.k, "h": self.h}

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of a tally of filters: one for each cohort."""
        return (Row(self.k, Packing.BITMAP, None),) * self.cohorts

    def positions(self, cohort: int, text: str) -> list[int]:
        """The bit of each hash, in their order; some may be the same.

        Raises:
            ValueError: the string is not valid Unicode.
        """
        first = cohort * self.h
        return [hash64(self.salt, first + each, text) % self.k for each in range(self.h)]

    def filter(self, cohort: int, text: str) -> int:
        """The string's filter in a cohort, as a bitmap.

        Raises:
            ValueError: the string is not valid Unicode.
        """
        bitmap = 0
        for number in range(cohort * self.h, (cohort + 1) * self.h):
            bitmap |= 1 << hash64(self.salt, number, text) % self.k
        return bitmap

    def cells(self, text: str) -> Iterator[Cell]:
        """The bits of the string in all cohorts, each once."""
        for cohort in range(self.cohorts):
            for position in sorted(set(self.positions(cohort, text))):
                yield Cell(cohort, position)
