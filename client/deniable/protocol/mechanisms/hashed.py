"""Open domains by salted hash tables: any string is hashed to a value of a closed mechanism.

A device draws one of R rows uniformly, hashes its string with that row's salt to one of
w values, and reports that value through a mechanism over them (the *channel*). Over the
public hash functions, under which two strings meet in a row with probability 1/w::

    p = channel.p
    q = p/w + (1 - 1/w) channel.q
    e**epsilon = channel's: the row does not depend on the string
    n * Var(share f) = r (1-r) / (p-q)**2,  r = q + f (p-q)

so that estimates are unbiased over the draw of the hash functions, collisions and all.
For the hash functions in force, a string that collides with another in one of the R rows is
estimated too high by 1/R of that other's share, and all others slightly too low. Over the
hash functions this adds a variance of (sum of all f**2) / (R (w-1)), which does not shrink
with the number of reports. It is concentrated on a few *ghosts*, whose rows disagree.

The row is drawn afresh for each report. With a fixed row, the reports of a device would share
log2(R) bits that link them, without any gain in accuracy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Self

from deniable.protocol.errors import SchemeError
from deniable.protocol.hashing import hash64
from deniable.protocol.mechanisms.base import Cell, FrequencyOracle, Report
from deniable.protocol.mechanisms.limits import MAX_CELLS, check_parameters
from deniable.protocol.randomness import Bits, below, system_bits

MAX_ROWS = 1 << 16


class Hashed(FrequencyOracle[str]):
    """A channel over the hash values of strings, in `hashes` rows under the salt `salt`.

    Raises:
        SchemeError: an empty salt, no rows, or more than MAX_CELLS cells in all.
    """

    channel_class: ClassVar[type[FrequencyOracle[int]]]
    size: None

    def __init__(self, salt: str, hashes: int, channel: FrequencyOracle[int]) -> None:
        if not salt or "\0" in salt:
            raise SchemeError(f"{self.name}: salt must be a text without zero bytes")
        (row,) = channel.rows
        assert channel.size is not None
        if not 1 <= hashes <= min(MAX_ROWS, MAX_CELLS // row.width):
            raise SchemeError(
                f"{self.name}: {hashes} rows of {row.width:,} cells are none, or above "
                f"{MAX_CELLS:,} cells in all; take fewer"
            )
        self.salt, self.hashes, self.channel = salt, hashes, channel
        self.size, self.width = None, channel.size
        self.rows = (row,) * hashes
        self.p = channel.p
        self.q = channel.p / self.width + (1 - Fraction(1, self.width)) * channel.q
        self.odds = channel.odds

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        rest = {name: value for name, value in parameters.items() if name not in ("salt", "rows")}
        salt = parameters.get("salt")
        if not isinstance(salt, str):
            raise SchemeError(f"{cls.name}: salt must be a text, not {salt!r}")
        (hashes,) = check_parameters(cls.name, {"rows": parameters.get("rows")}, rows=(1, MAX_ROWS))
        return cls(salt, hashes, cls.channel_class.from_parameters(rest))

    def parameters(self) -> dict[str, int | str]:
        return {"salt": self.salt, "rows": self.hashes, **self.channel.parameters()}

    def place(self, row: int, text: str) -> int:
        """Which value of the channel a string stands for in a row.

        Raises:
            ValueError: the string is not valid Unicode.
        """
        # 2**64 values over at most 2**23 places are even to one part in 2**41.
        return hash64(self.salt, row, text) % self.width

    def randomize(self, item: str, bits: Bits = system_bits) -> Report:
        row = below(self.hashes, bits)
        return Report(row, self.channel.randomize(self.place(row, item), bits).columns)

    def likelihood(self, report: Report, item: str) -> Fraction:
        place = self.place(report.row, item)
        return self.channel.likelihood(Report(0, report.columns), place) / self.hashes

    def support(self, item: str) -> Iterator[Cell]:
        for row in range(self.hashes):
            for cell in self.channel.support(self.place(row, item)):
                yield Cell(row, cell.column)
