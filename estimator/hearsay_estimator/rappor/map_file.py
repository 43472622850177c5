"""The map.csv: each candidate string with the bits that it sets, cohort by cohort.

A line holds the candidate and h * m positions cohort * k + bit + 1: the first h belong to
cohort 0, and so on, in any order within their cohort; where two hashes meet, the position
stands twice. Such files reach tens of megabytes, so a plain one is parsed by whole
arrays; whatever that does not understand is read again line by line.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hearsay_estimator.cohort_design import Design
from hearsay_estimator.rappor.errors import RapporFileError
from hearsay_estimator.rappor.params import Params
from hearsay_estimator.rappor.text import decode_text, read_bytes

__all__ = ["CandidateMap", "read_map"]

_BLOCK = 1 << 17
"""Bytes parsed at a time: the arrays stay in the processor's cache."""
_QUOTED = re.compile(rb'"((?:[^"]|"")*)",(.*)')
_MOST_DIGITS = 8
"""Of a position: the largest table has that many."""


class CandidateMap(NamedTuple):
    """M candidates in the file's order, and their design.

    `direct` says that each candidate has a bit of its own, the same in every cohort: the
    identity map of basic RAPPOR, with which no other string can be encoded.
    """

    candidates: list[str]
    design: Design
    direct: bool


class _Lines(NamedTuple):
    """What stands in the file: candidates, positions of shape (M, h * m), line numbers."""

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
    positions -= (np.arange(params.m, dtype=np.int32) * params.k + 1)[:, None]
    wrong = (positions < 0) | (positions >= params.k)
    if wrong.any():
        candidate, cohort, hashed = (int(at[0]) for at in np.nonzero(wrong))
        first, last = cohort * params.k + 1, (cohort + 1) * params.k
        value = int(positions[candidate, cohort, hashed]) + first
        raise RapporFileError(
            path,
            found.lines[candidate],
            f"column {cohort * params.h + hashed + 2} must be a position of cohort {cohort}, "
            f"from {first} to {last}, not {value}; hash the candidates with these parameters",
        )
    return CandidateMap(
        found.candidates, Design.of(positions, params.k), _is_direct(positions, params.k)
    )


def _by_array(path: Path, data: bytes, width: int) -> _Lines | None:
    """The plain form, digits alone behind the candidate in each line; else None."""
    names, rests, lines = [], [], []
    for number, line in enumerate(data.split(b"\n"), start=1):
        plain = line.rstrip(b"\r")
        if not plain:
            continue
        if plain.startswith(b'"'):
            quoted = _QUOTED.fullmatch(plain)
            if quoted is None:
                return None
            name, rest = quoted[1].replace(b'""', b'"'), quoted[2]
        else:
            name, _, rest = plain.partition(b",")
        if rest.count(b",") != width - 1:
            return None
        names.append(name)
        rests.append(rest)
        lines.append(number)
    numbers = _parse(b",".join(rests))
    if numbers is None or len(numbers) != len(names) * width:
        return None
    text = decode_text(path, b"\n".join(names))
    return _Lines(text.split("\n") if names else [], numbers.reshape(-1, width), lines)


def _parse(text: bytes) -> NDArray[np.int32] | None:
    """Whole numbers between commas; None where there is anything else."""
    parsed, start = [], 0
    while start < len(text):
        end = text.find(b",", start + _BLOCK)
        end = len(text) if end < 0 else end
        digits = np.frombuffer(text, np.uint8, end - start, start) - np.uint8(ord("0"))
        commas = np.flatnonzero(digits > 9)
        if (digits[commas] != np.uint8(ord(",") - ord("0") + 256)).any():
            return None
        stops = np.append(commas, len(digits))
        lengths = np.diff(stops, prepend=-1) - 1
        if lengths.min() < 1 or lengths.max() > _MOST_DIGITS:
            return None
        values = digits[stops - 1].astype(np.int32)
        for place in range(1, lengths.max()):
            digit = digits.take(stops - 1 - place, mode="clip")
            values += np.where(lengths > place, digit, 0).astype(np.int32) * np.int32(10**place)
        parsed.append(values)
        start = end + 1
    return np.concatenate(parsed) if parsed else np.empty(0, np.int32)


def _by_line(path: Path, data: bytes, width: int) -> _Lines:
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
    return _Lines(candidates, table, lines)


def _position(path: Path, line: int, column: int, text: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS):
        raise RapporFileError(
            path, line, f"column {column} must be a position, 1 or more, not {text[:40]!r}"
        )
    return int(digits)


def _check_twice(path: Path, found: _Lines) -> None:
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
