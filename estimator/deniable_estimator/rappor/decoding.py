"""From the three files to estimates of every candidate."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np

from deniable_estimator.analyses.cohorts.decoder import Decoding, decode
from deniable_estimator.rappor.counts_file import BitCounts, read_counts
from deniable_estimator.rappor.map_file import CandidateMap, read_map
from deniable_estimator.rappor.params import Params, read_params
from deniable_estimator.statistics.intervals import FloatArray

__all__ = ["Decoded", "decode_counts", "decode_files"]

_COLUMNS = ("string", "share", "std_error", "low", "high", "p_value", "detected")

_DECIMALS = 10
"""Much smaller than any standard error, and twice as fast to write as all digits."""


@dataclass(frozen=True, eq=False)
class Decoded:
    """A decoding with its strings, in the order of the map."""

    candidates: list[str]
    decoding: Decoding
    crowded: bool
    """Whether one hashed cohort has more candidates than bits, so that strings hide each other."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the estimates, one sentence each."""
        return tuple(_warnings(self))

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """One row for each candidate: string, share, std_error, low, high, p_value, detected.

        A number that the counts do not determine is None. Shares are rounded to 1e-10.
        """
        found = self.decoding
        columns = [_nullable(column) for column in (*self._rounded, found.p_value)]
        return zip(self.candidates, *columns, found.detected.tolist(), strict=True)

    @property
    def _rounded(self) -> list[FloatArray]:
        """share, std_error, low and high, as they are written."""
        found = self.decoding
        columns = found.share, found.std_error, found.low, found.high
        return [np.round(column, _DECIMALS) for column in columns]

    def write_json(self, out: IO[str]) -> None:
        """The result as one line of JSON."""
        found, encode = self.decoding, json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
        columns = (
            map(encode, self.candidates),
            *map(_texts, (*self._rounded, found.p_value)),
            ["true" if each else "false" for each in found.detected.tolist()],
        )
        form = "{" + ", ".join(f'"{name}": %s' for name in _COLUMNS) + "}"
        lines = ", ".join(map(form.__mod__, zip(*columns, strict=True)))
        whole = {"n": found.n, "explained_share": found.explained_share}
        out.write(f'{encode(whole)[:-1]}, "candidates": [{lines}]}}\n')

    def write_csv(self, out: IO[str]) -> None:
        """The candidates as CSV with a header."""
        lines = csv.writer(out)
        lines.writerow(_COLUMNS)
        lines.writerows((*row[:-1], "true" if row[-1] else "false") for row in self.rows())


def decode_files(params: Path, counts: Path, candidate_map: Path, **options: float) -> Decoded:
    """Read the files and decode them; `options` are those of `decode_counts`.

    Raises:
        RapporFileError: a file is malformed, or contradicts another.
    """
    read = read_params(params)
    return decode_counts(read, read_counts(counts, read), read_map(candidate_map, read), **options)


def decode_counts(
    params: Params,
    counts: BitCounts,
    candidate_map: CandidateMap,
    *,
    fdr: float = 0.05,
    level: float = 0.95,
) -> Decoded:
    """Estimate every candidate of the map, at that false discovery rate and level."""
    decoding = decode(
        counts.bits,
        counts.reports,
        candidate_map.design,
        float(params.p01),
        float(params.p11),
        background=0.0 if candidate_map.direct else params.density,
        fdr=fdr,
        level=level,
    )
    crowded = params.m == 1 and not candidate_map.direct and len(candidate_map.design) > params.k
    return Decoded(candidate_map.candidates, decoding, crowded)


def _nullable(column: FloatArray) -> list[float | None]:
    values: list[float | None] = column.tolist()
    for at in np.flatnonzero(~np.isfinite(column)).tolist():
        values[at] = None
    return values


def _texts(column: FloatArray) -> list[str]:
    """The numbers as JSON, as the json module writes them; null for one that is not finite.

    msgspec is several times as fast, and writes the same digits. Only the numbers that Python
    writes with an exponent look different there.
    """
    texts = msgspec.json.Encoder().encode_lines(column.tolist()).decode().split("\n")[:-1]
    size = np.abs(column)
    exponent = np.isfinite(size) & (size > 0) & ((size < 1e-4) | (size >= 1e16))
    for at in np.flatnonzero(exponent).tolist():
        texts[at] = repr(float(column[at]))
    return texts


def _warnings(decoded: Decoded) -> Iterator[str]:
    found, names = decoded.decoding, decoded.candidates
    if found.n == 0:
        yield "no cohort has a report, so nothing can be estimated yet"
        return
    alike = np.flatnonzero(found.same_as != np.arange(len(names)))
    if len(alike):
        pairs = [f"{names[at]!r} like {names[found.same_as[at]]!r}" for at in alike[:3].tolist()]
        more = f" and {len(alike) - 3:,} more" if len(alike) > 3 else ""
        yield (
            f"candidates with the same hashes in every cohort share one estimate, for all of them "
            f"together: {', '.join(pairs)}{more}"
        )
    unknown = int(np.isnan(found.share).sum())
    if unknown:
        yield (
            f"{unknown:,} candidates cannot be distinguished from others in so small a table: "
            "collect with more cohorts or more bits"
        )
    if decoded.crowded:
        yield (
            "one cohort cannot distinguish more candidates than it has bits, so more of those "
            "detected are false than --fdr says: use fewer candidates, or collect with more cohorts"
        )
    if not found.detected.any():
        yield "no candidate is distinguishable from noise: collect from more devices, or for longer"
