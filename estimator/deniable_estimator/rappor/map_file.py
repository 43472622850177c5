"""The map.csv: each candidate string with the bits that it sets, cohort by cohort.

A line has the candidate and h * m positions cohort * k + bit + 1: the first h belong to cohort
0, and so on, in any order within their cohort. If two hashes collide, the position is listed
twice. Such files have tens of megabytes, so a plain one is parsed as whole arrays. Anything
else is read again line by line.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.analyses.cohorts.design import Design
from deniable_estimator.rappor.errors import RapporFileError
from deniable_estimator.rappor.params import Params
from deniable_estimator.rappor.text import decode_text, read_bytes

__all__ = ["CandidateMap", "read_map"]

_BLOCK = 1 << 16
"""Bytes parsed at a time, so that the arrays fit into the processor's cache."""
_CHECKED = 1 << 15
"""Positions checked at a time, for the same reason."""
_COMMA, _NEWLINE = ord(","), ord("\n")
_QUOTED = re.compile(rb'"(?:[^"]|"")*"')
_MOST_DIGITS = 8
"""The most digits of a position, as many as in the largest table."""


class CandidateMap(NamedTuple):
    """M candidates in the file's order, and their design.

    `direct` means that each candidate has its own bit, the same in every cohort: the identity map
    of basic RAPPOR, with which no other string can be encoded.
    """

    candidates: list[str]
    design: Design
    direct: bool


class _MapLines(NamedTuple):
    """The content of the file: candidates, positions of shape (M, h * m), line numbers."""

    candidates: list[str]
    positions: NDArray[np.int32]
    lines: list[int]


def read_map(path: Path, params: Params) -> CandidateMap:
    """Read map.csv.

    Raises:
        RapporFileError: no candidate, a candidate twice, another number of columns than
            h * m + 1, or a position outside its cohort's block of k.
    """
    data = read_bytes(path)
    width = params.h * params.m
    found = _by_array(path, data, width) or _by_line(path, data, width)
    del data
    if not found.candidates:
        raise RapporFileError(path, None, "holds no candidate; list at least one")
    _check_twice(path, found)
    positions = found.positions.reshape(-1, params.m, params.h)
    first = (np.arange(params.m, dtype=np.int32) * params.k + 1)[:, None]
    step = max(1, _CHECKED // width)
    for start in range(0, len(positions), step):
        some = positions[start : start + step]
        some -= first
        # As an unsigned number, a negative position is above all others.
        if (some.view(np.uint32) >= params.k).any():
            raise _wrong_position(path, found.lines[start : start + step], some, params)
    return CandidateMap(
        found.candidates, Design.of(positions, params.k), _is_direct(positions, params.k)
    )


def _by_array(path: Path, data: bytes, width: int) -> _MapLines | None:
    """Parse the plain form (only digits after a candidate without commas); None for others."""
    # One byte is found much faster than two.
    text = data.replace(b"\r\n", b"\n") if b"\r" in data else data
    if not text.endswith(b"\n"):
        text += b"\n"
    names: list[bytes] = []
    parsed: list[NDArray[np.int32]] = []
    start = 0
    while start < len(text):
        end = text.index(b"\n", min(start + _BLOCK, len(text) - 1)) + 1
        block = np.frombuffer(text, np.uint8, end - start, start)
        stops = np.flatnonzero((block == _COMMA) | (block == _NEWLINE))
        if len(stops) % (width + 1):
            return None
        fields = stops.reshape(-1, width + 1)
        ends = block.take(stops).reshape(fields.shape)
        if (ends[:, :-1] != _COMMA).any() or (ends[:, -1] != _NEWLINE).any():
            return None
        numbers = _parse(block, fields)
        if numbers is None:
            return None
        parsed.append(numbers)
        begins = [start, *(fields[:-1, -1] + (start + 1)).tolist()]
        names += [
            text[begin:stop]
            for begin, stop in zip(begins, (fields[:, 0] + start).tolist(), strict=True)
        ]
        start = end
    for at in [at for at, name in enumerate(names) if name.startswith(b'"')]:
        if not _QUOTED.fullmatch(names[at]):
            return None
        names[at] = names[at][1:-1].replace(b'""', b'"')
    candidates = decode_text(path, b"\n".join(names)).split("\n")
    return _MapLines(candidates, np.concatenate(parsed), list(range(1, len(names) + 1)))


def _parse(block: NDArray[np.uint8], fields: NDArray[np.intp]) -> NDArray[np.int32] | None:
    """The whole numbers that end at each place of `fields` but the first of a line."""
    lengths = np.diff(fields, axis=1) - 1
    longest = int(lengths.max(initial=0))
    if lengths.min(initial=1) < 1 or longest > _MOST_DIGITS:
        return None
    values = np.zeros(lengths.shape, np.int32)
    digit = fields[:, 1:].copy()
    for place in range(longest):
        digit -= 1
        digits = block.take(digit, mode="clip") - np.uint8(ord("0"))
        digits *= lengths > place
        if digits.max() > 9:
            return None
        values += digits * np.int32(10**place)
    return values


def _by_line(path: Path, data: bytes, width: int) -> _MapLines:
    """Any CSV, line by line, with an error for what is wrong."""
    candidates, lines = [], []
    positions: list[NDArray[np.int32]] = []
    rows = csv.reader(io.StringIO(decode_text(path, data), newline=""), strict=True)
    try:
        for row in rows:
            if not row:
                continue
            line = rows.line_num
            if len(row) != width + 1:
                raise RapporFileError(
                    path,
                    line,
                    f"has {len(row)} columns; with h * m = {width} in params.csv there must be "
                    f"{width + 1}. A candidate that holds a comma needs quotes",
                )
            candidates.append(row[0])
            numbers = [_position(path, line, at, text) for at, text in enumerate(row[1:], start=2)]
            positions.append(np.array(numbers, np.int32))
            lines.append(line)
    except csv.Error as error:
        raise RapporFileError(path, rows.line_num, f"is not CSV: {error}") from None
    table = np.array(positions, np.int32).reshape(-1, width)
    return _MapLines(candidates, table, lines)


def _position(path: Path, line: int, column: int, text: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS):
        raise RapporFileError(
            path, line, f"column {column} must be a position, 1 or more, not {text[:40]!r}"
        )
    return int(digits)


def _wrong_position(
    path: Path, lines: list[int], positions: NDArray[np.int32], params: Params
) -> RapporFileError:
    """The error for the first of these positions that is outside its cohort's bits."""
    wrong = np.nonzero((positions < 0) | (positions >= params.k))
    candidate, cohort, hashed = (int(at[0]) for at in wrong)
    first, last = cohort * params.k + 1, (cohort + 1) * params.k
    value = int(positions[candidate, cohort, hashed]) + first
    return RapporFileError(
        path,
        lines[candidate],
        f"column {cohort * params.h + hashed + 2} must be a position of cohort {cohort}, "
        f"from {first} to {last}, not {value}; hash the candidates with these parameters",
    )


def _check_twice(path: Path, found: _MapLines) -> None:
    if len(set(found.candidates)) == len(found.candidates):
        return
    seen: dict[str, int] = {}
    for candidate, line in zip(found.candidates, found.lines, strict=True):
        if candidate in seen:
            raise RapporFileError(
                path, line, f"repeats {candidate!r} of line {seen[candidate]}; remove one"
            )
        seen[candidate] = line


def _is_direct(positions: NDArray[np.int32], k: int) -> bool:
    """Whether bit i belongs to candidate i, or each of the k bits to one candidate."""
    count, _, hashes = positions.shape
    if hashes > 1 or count < 2 or (positions != positions[:, :1]).any():
        return False
    bits = positions[:, 0, 0]
    if count <= k and np.array_equal(bits, np.arange(count)):
        return True
    return count == k and len(np.unique(bits)) == k
