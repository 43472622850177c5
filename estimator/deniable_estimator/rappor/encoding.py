"""Values to RAPPOR reports, for simulations: the client of google/rappor's own files.

Random bits come from the operating system, and every probability is an exact integer out
of 2**53. A client keeps its permanent response to a value, so that repeating the value
repeats it, and draws the instantaneous response afresh for each report.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from deniable.randomness import PRECISION, Bits, below, flips, system_bits
from deniable_estimator.rappor.counts_file import BitCounts
from deniable_estimator.rappor.errors import RapporFileError
from deniable_estimator.rappor.hashing import bloom_bits, check_hashable
from deniable_estimator.rappor.params import Params
from deniable_estimator.rappor.text import read_text

__all__ = ["Reading", "SimulatedReport", "count", "encode", "read_values", "write_reports"]

_HEADER = ["client", "cohort", "value"]
_ONE = 1 << PRECISION


class Reading(NamedTuple):
    """The value of one client; without a cohort, it reports only this one value."""

    client: str
    cohort: int | None
    value: str


class SimulatedReport(NamedTuple):
    """One report, with what a real client keeps secret, as bitmaps (bit j: j is set)."""

    client: str
    cohort: int
    bloom: int
    permanent: int
    instantaneous: int


def read_values(path: Path, params: Params) -> list[Reading]:
    """Values, one on each line, each of another client; or client,cohort,value as CSV.

    The second form begins with that header.

    Raises:
        RapporFileError: the file cannot be read, holds no value, or names no such cohort.
    """
    rows = csv.reader(read_text(path).splitlines())
    first = next(rows, [])
    if first == _HEADER:
        readings = [_reading(path, rows.line_num, row, params) for row in rows if row]
    else:
        lines = [line.strip() for line in read_text(path).split("\n")]
        held = [line for line in lines if line]
        readings = [Reading(f"c{at}", None, value) for at, value in enumerate(held, start=1)]
    if not readings:
        raise RapporFileError(path, None, "holds no value; write one on each line")
    return readings


def _reading(path: Path, line: int, row: list[str], params: Params) -> Reading:
    if len(row) != len(_HEADER):
        raise RapporFileError(path, line, f"must hold client,cohort,value, not {len(row)} columns")
    client, text, value = row
    cohort = text.strip()
    if not (cohort.isascii() and cohort.isdecimal() and int(cohort) < params.m):
        raise RapporFileError(
            path, line, f"the cohort must be from 0 to {params.m - 1}, not {text[:40]!r}"
        )
    return Reading(client, int(cohort), value)


def encode(
    params: Params, readings: Iterable[Reading], bits: Bits = system_bits
) -> Iterator[SimulatedReport]:
    """One report for each reading; a client that has no cohort draws one.

    Raises:
        EstimateError: the hashing of these files does not support such parameters.
    """
    check_hashable(params)
    memo: dict[tuple[str, int, str], int] = {}

    @lru_cache(maxsize=1 << 16)
    def bloom_of(value: str, cohort: int) -> int:
        bitmap = 0
        for bit in bloom_bits(value, cohort, params):
            bitmap |= 1 << bit
        return bitmap

    def permanent_of(bloom: int) -> int:
        return _flipped(bloom, params.k, 1 - params.f / 2, params.f / 2, bits)

    for client, given, value in readings:
        cohort = below(params.m, bits) if given is None else given
        bloom = bloom_of(value, cohort)
        if given is None:
            permanent = permanent_of(bloom)
        else:
            cell = (client, cohort, value)
            permanent = memo[cell] = memo[cell] if cell in memo else permanent_of(bloom)
        report = _flipped(permanent, params.k, params.q, params.p, bits)
        yield SimulatedReport(client, cohort, bloom, permanent, report)


def _flipped(ones: int, size: int, if_one: Fraction, if_zero: Fraction, bits: Bits) -> int:
    """Each bit is 1 with the probability for its value in `ones`; 0 and 1 need no randomness."""
    heads, tails = round(if_one * _ONE), round(if_zero * _ONE)
    zeros = ones ^ ((1 << size) - 1)
    certain = (ones if heads == _ONE else 0) | (zeros if tails == _ONE else 0)
    return certain | flips(ones, size, min(heads, _ONE - 1), min(tails, _ONE - 1), bits)


def count(params: Params, reports: Iterable[SimulatedReport]) -> BitCounts:
    """Add reports up: how many each cohort sent, and how often each bit was set."""
    bits = np.zeros((params.m, params.k), np.int64)
    sent = np.zeros(params.m, np.int64)
    size = (params.k + 7) // 8
    for report in reports:
        packed = np.frombuffer(report.instantaneous.to_bytes(size, "little"), np.uint8)
        bits[report.cohort] += np.unpackbits(packed, count=params.k, bitorder="little")
        sent[report.cohort] += 1
    return BitCounts(bits, sent)


def write_reports(params: Params, reports: Iterable[SimulatedReport], out: IO[str]) -> None:
    """Write client,cohort,bloom,prr,irr; bitmaps have k digits, the highest bit first."""
    lines = csv.writer(out)
    lines.writerow(["client", "cohort", "bloom", "prr", "irr"])
    for client, cohort, *bitmaps in reports:
        lines.writerow([client, cohort, *(f"{bitmap:0{params.k}b}" for bitmap in bitmaps)])
