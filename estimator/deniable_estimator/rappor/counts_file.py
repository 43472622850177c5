"""The counts.csv: for each cohort its reports, then how often each of the k bits was set."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.rappor.errors import RapporFileError
from deniable_estimator.rappor.params import Params
from deniable_estimator.rappor.text import read_text

__all__ = ["BitCounts", "read_counts", "write_counts"]

_MOST_DIGITS = 15


class BitCounts(NamedTuple):
    """`bits` has shape (m, k) and `reports` shape (m,), both int64."""

    bits: NDArray[np.int64]
    reports: NDArray[np.int64]


def read_counts(path: Path, params: Params) -> BitCounts:
    """Read m lines without a header: the cohort's reports, then k bit counts.

    Raises:
        RapporFileError: another number of lines or columns than params.csv says, something
            that is no count, or a bit set more often than there were reports.
    """
    table: list[list[int]] = []
    rows = csv.reader(read_text(path).splitlines())
    for row in rows:
        if not row:
            continue
        line = rows.line_num
        if len(table) == params.m:
            raise RapporFileError(path, line, f"params.csv says m = {params.m} cohorts, no more")
        if len(row) != params.k + 1:
            raise RapporFileError(
                path,
                line,
                f"has {len(row)} columns; with k = {params.k} in params.csv there must be "
                f"{params.k + 1}: the cohort's reports, then its bits",
            )
        counts = [_count(path, line, column, text) for column, text in enumerate(row, start=1)]
        reports = counts[0]
        for bit, count in enumerate(counts[1:], start=1):
            if count > reports:
                raise RapporFileError(
                    path,
                    line,
                    f"bit {bit} (column {bit + 1}) was set {count} times in {reports} reports; "
                    "count the reports again",
                )
        table.append(counts)
    if len(table) != params.m:
        raise RapporFileError(
            path, None, f"has {len(table)} cohorts; params.csv says m = {params.m}"
        )
    counts_array = np.array(table, np.int64)
    return BitCounts(counts_array[:, 1:], counts_array[:, 0])


def _count(path: Path, line: int, column: int, text: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS):
        advice = " (counts.csv has no header)" if line == 1 else ""
        raise RapporFileError(
            path, line, f"column {column} must be a count, 0 or more, not {text[:40]!r}{advice}"
        )
    return int(digits)


def write_counts(counts: BitCounts, out: IO[str]) -> None:
    """Write them as `read_counts` reads them."""
    csv.writer(out).writerows(np.column_stack([counts.reports, counts.bits]).tolist())
