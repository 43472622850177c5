"""The parameters of a RAPPOR collection, and the params.csv that holds them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from deniable_estimator.rappor.errors import RapporFileError
from deniable_estimator.rappor.text import read_text

__all__ = ["MOST_CELLS", "Params", "read_params"]

HEADER = ["k", "h", "m", "p", "q", "f"]

MOST_CELLS = 1 << 24
"""The most cells of a table, m * k: more than any collection has, and within memory."""


@dataclass(frozen=True)
class Params:
    """Erlingsson, Pihur and Korolova (CCS 2014): m cohorts, filters of k bits with h hashes.

    The permanent response replaces a bit with probability f by a fair coin; a report sets
    a bit with probability q where the permanent response has it, and p where not::

        p11 = q (1 - f/2) + p f/2,   p01 = p (1 - f/2) + q f/2
    """

    k: int
    h: int
    m: int
    p: Fraction
    q: Fraction
    f: Fraction

    @property
    def p11(self) -> Fraction:
        """The probability that a report sets a bit that the value's filter sets."""
        return self.q * (1 - self.f / 2) + self.p * self.f / 2

    @property
    def p01(self) -> Fraction:
        """The probability that a report sets a bit that the value's filter does not set."""
        return self.p * (1 - self.f / 2) + self.q * self.f / 2

    @property
    def density(self) -> float:
        """The share of the bits that a random filter sets."""
        return 1 - (1 - 1 / self.k) ** self.h


def read_params(path: Path) -> Params:
    """Read params.csv: the header k,h,m,p,q,f and one line of values.

    Raises:
        RapporFileError: the file has another form, or impossible values.
    """
    rows = csv.reader(read_text(path).splitlines())
    lines = [(rows.line_num, [cell.strip() for cell in row]) for row in rows if any(row)]
    if not lines or lines[0][1] != HEADER:
        line = lines[0][0] if lines else 1
        raise RapporFileError(path, line, "the header must be k,h,m,p,q,f")
    if len(lines) != 2:
        raise RapporFileError(
            path, lines[-1][0], f"one line of values must follow the header, not {len(lines) - 1}"
        )
    line, cells = lines[1]
    if len(cells) != len(HEADER):
        raise RapporFileError(
            path, line, f"there must be {len(HEADER)} values (k,h,m,p,q,f), not {len(cells)}"
        )
    k, h, m = (
        _whole(path, line, name, text, lowest)
        for name, text, lowest in zip("khm", cells, (2, 1, 1), strict=False)
    )
    p, q, f = (
        _probability(path, line, name, text) for name, text in zip("pqf", cells[3:], strict=True)
    )
    if p == q:
        raise RapporFileError(path, line, "p equals q, so the reports hold no information")
    if f == 1:
        raise RapporFileError(path, line, "f is 1, so the reports hold no information")
    if m * k > MOST_CELLS:
        raise RapporFileError(path, line, f"m * k must be at most {MOST_CELLS:,}, not {m * k:,}")
    return Params(k, h, m, p, q, f)


def _whole(path: Path, line: int, name: str, text: str, lowest: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and int(text) >= lowest):
        raise RapporFileError(
            path, line, f"{name} must be a whole number, {lowest} or more, not {text!r}"
        )
    return int(text)


def _probability(path: Path, line: int, name: str, text: str) -> Fraction:
    try:
        value = Fraction(text) if "/" not in text else Fraction(-1)
    except ValueError:
        value = Fraction(-1)
    if not 0 <= value <= 1:
        raise RapporFileError(path, line, f"{name} must be a number from 0 to 1, not {text!r}")
    return value
