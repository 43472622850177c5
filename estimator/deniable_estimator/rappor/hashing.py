"""Which bits a string sets in each cohort, as google/rappor's clients hash it.

The MD5 digest of the cohort (four bytes, big-endian) followed by the string's UTF-8
gives h hashes: its first h bytes, each modulo k. Hashes may collide in one bit. The hash only
spreads strings over filters; it hides nothing, because anybody can compute it.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

from deniable_estimator.errors import EstimateError
from deniable_estimator.rappor.errors import RapporFileError
from deniable_estimator.rappor.params import Params
from deniable_estimator.rappor.text import read_text

__all__ = ["bloom_bits", "check_hashable", "read_candidates", "write_map"]

MOST_HASHES = 16
MOST_BITS = 256


def check_hashable(params: Params) -> None:
    """One byte of an MD5 digest names each bit.

    Raises:
        EstimateError: there are more hashes or bits than that allows.
    """
    if params.h > MOST_HASHES or params.k > MOST_BITS:
        raise EstimateError(
            f"this hashing has at most {MOST_HASHES} hashes into {MOST_BITS} bits, but "
            f"params.csv says h = {params.h} and k = {params.k}; hash the strings yourself"
        )


def bloom_bits(value: str, cohort: int, params: Params) -> list[int]:
    """The h bits, from 0, that a string sets in a cohort; a bit may be listed twice."""
    digest = hashlib.md5(cohort.to_bytes(4, "big") + value.encode(), usedforsecurity=False)
    return [byte % params.k for byte in digest.digest()[: params.h]]


def read_candidates(path: Path) -> list[str]:
    """The strings of a file, one on each line, without the white space around them.

    Blank lines are ignored. Strings are hashed without normalization, because the clients hash the
    bytes that they have.

    Raises:
        RapporFileError: the file cannot be read, holds no string, or one twice.
    """
    seen: dict[str, int] = {}
    for line, text in enumerate(read_text(path).split("\n"), start=1):
        candidate = text.strip()
        if candidate in seen:
            raise RapporFileError(
                path, line, f"repeats {candidate!r} of line {seen[candidate]}; remove one"
            )
        if candidate:
            seen[candidate] = line
    if not seen:
        raise RapporFileError(path, None, "holds no candidate; write one on each line")
    return list(seen)


def write_map(params: Params, candidates: Iterable[str], out: IO[str]) -> None:
    """Write map.csv: each candidate, then its h * m positions cohort * k + bit + 1.

    Raises:
        EstimateError: this hashing does not support such parameters.
    """
    check_hashable(params)
    lines = csv.writer(out)
    for candidate in candidates:
        lines.writerow([candidate, *_positions(candidate, params)])


def _positions(candidate: str, params: Params) -> Sequence[int]:
    return [
        cohort * params.k + bit + 1
        for cohort in range(params.m)
        for bit in bloom_bits(candidate, cohort, params)
    ]
