"""`deniable estimate rappor`: decode google/rappor's files with the cohort decoder, and hash its
candidates.

Erlingsson, Pihur and Korolova (CCS 2014). The files:

params.csv  the header k,h,m,p,q,f and a line of values: bits, hashes, cohorts, probabilities
counts.csv  for each cohort its reports, then how often each of the k bits was set
map.csv     each candidate, then h * m positions cohort * k + bit + 1, cohort by cohort

Exit codes: 0 for a result, 1 for a mistake in a file, 2 for a wrong call, 3 if nothing has been
reported yet.
"""

from __future__ import annotations

import csv
import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import IO, Any

import click
import numpy as np
from numpy.typing import NDArray

from deniable.protocol.coded_message import counted
from deniable.protocol.errors import ValueListError
from deniable.tools.command_line import command
from deniable_collector.options import Function
from deniable_estimator.analyses.cohorts.decoder import Decoding, decode
from deniable_estimator.analyses.cohorts.table import Design
from deniable_estimator.document.csv_files import csv_rows, csv_text, plain, records, utf8_text
from deniable_estimator.document.document import Column, Document, Frame, Note, Tone
from deniable_estimator.document.terminal import MOST_ROWS
from deniable_estimator.document.units import SHARES
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.formats import SHARE, estimate_of, interval_title, p_value
from deniable_estimator.terminal.options import NO_DATA, Real, as_csv, as_json, say

_HEADER = ["k", "h", "m", "p", "q", "f"]
_COLUMNS = ("string", "share", "std_error", "low", "high", "p_value", "detected")
_MOST_CELLS = 1 << 24
"""The most cells of a table, m * k: more than any collection has, and within memory."""
_MOST_HASHES, _MOST_BITS = 16, 256
"""One byte of an MD5 digest names each bit."""


@dataclass(frozen=True)
class Params:
    """m cohorts, filters of k bits with h hashes.

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


def _is_count(text: str, digits: int) -> bool:
    text = text.strip()
    return text.isascii() and text.isdecimal() and len(text) <= digits


def read_params(path: Path) -> Params:
    """Read params.csv.

    Raises:
        ValueListError: the file has another form, or impossible values.
    """
    wrong = partial(ValueListError, str(path))
    lines = [(line, [cell.strip() for cell in row]) for line, row in csv_rows(path)]
    if not lines or lines[0][1] != _HEADER:
        raise wrong(lines[0][0] if lines else 1, "the header must be k,h,m,p,q,f")
    if len(lines) != 2:
        raise wrong(lines[-1][0], "one line of values must follow the header")
    line, cells = lines[1]
    if len(cells) != len(_HEADER):
        raise wrong(line, f"there must be {len(_HEADER)} values (k,h,m,p,q,f), not {len(cells)}")
    for name, text, lowest in zip("khm", cells, (2, 1, 1), strict=False):
        if not _is_count(text, 9) or int(text) < lowest:
            raise wrong(line, f"{name} must be a whole number, {lowest} or more, not {text!r}")
    k, h, m = map(int, cells[:3])
    p, q, f = (
        _probability(path, line, name, text) for name, text in zip("pqf", cells[3:], strict=True)
    )
    if p == q:
        raise wrong(line, "p equals q, so the reports hold no information")
    if f == 1:
        raise wrong(line, "f is 1, so the reports hold no information")
    if m * k > _MOST_CELLS:
        raise wrong(line, f"m * k must be at most {_MOST_CELLS:,}, not {m * k:,}")
    return Params(k, h, m, p, q, f)


def _probability(path: Path, line: int, name: str, text: str) -> Fraction:
    try:
        value = Fraction(Decimal(text))
    except (ArithmeticError, ValueError):
        value = Fraction(-1)
    if not 0 <= value <= 1:
        raise ValueListError(str(path), line, f"{name} must be a number from 0 to 1, not {text!r}")
    return value


def read_counts(path: Path, params: Params) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read counts.csv: how often each bit was set, shape (m, k), and the reports, shape (m,).

    Raises:
        ValueListError: another number of lines or columns than params.csv says, something
            that is no count, or a bit set more often than there were reports.
    """
    wrong = partial(ValueListError, str(path))
    table: list[list[int]] = []
    for line, row in csv_rows(path):
        if len(table) == params.m:
            raise wrong(line, f"params.csv says m = {params.m} cohorts, no more")
        if len(row) != params.k + 1:
            expected = f"the cohort's reports, then k = {params.k} bits"
            raise wrong(line, f"has {len(row)} columns; there must be {expected}")
        for column, text in enumerate(row, start=1):
            if not _is_count(text, 15):
                advice = f"must be a count (there is no header), not {text[:40]!r}"
                raise wrong(line, f"column {column} {advice}")
        reports, *bits = map(int, row)
        if max(bits) > reports:
            bit = bits.index(max(bits)) + 1
            advice = f"was set {max(bits)} times in {reports} reports; count the reports again"
            raise wrong(line, f"bit {bit} (column {bit + 1}) {advice}")
        table.append([reports, *bits])
    if len(table) != params.m:
        raise wrong(None, f"has {len(table)} cohorts; params.csv says m = {params.m}")
    counts = np.array(table, np.int64)
    return counts[:, 1:], counts[:, 0]


def read_map(path: Path, params: Params) -> tuple[list[str], Design, bool]:
    """Read map.csv: the candidates, their design, and whether it is that of basic RAPPOR.

    If two hashes of a candidate collide, the position is listed twice.

    Raises:
        ValueListError: no candidate, a candidate twice, another number of columns than
            h * m + 1, or a position outside its cohort's block of k.
    """
    wrong = partial(ValueListError, str(path))
    width = params.h * params.m
    first = np.repeat(np.arange(params.m) * params.k + 1, params.h)
    last = first + params.k - 1
    found: dict[str, int] = {}
    positions: list[NDArray[np.int32]] = []
    for line, (candidate, *cells) in csv_rows(path):
        if len(cells) != width:
            expected = f"h * m + 1 = {width + 1}. A candidate that holds a comma needs quotes"
            raise wrong(line, f"has {len(cells) + 1} columns; there must be {expected}")
        if candidate in found:
            raise wrong(line, f"repeats {candidate!r} of line {found[candidate]}; remove one")
        for column, text in enumerate(cells, start=2):
            if not _is_count(text, 8):
                advice = f"must be a position, 1 or more, not {text[:40]!r}"
                raise wrong(line, f"column {column} {advice}")
        bits = np.array(cells, np.int64) - first
        for at in np.flatnonzero((bits < 0) | (bits >= params.k))[:1].tolist():
            place = f"a position of cohort {at // params.h}, from {first[at]} to {last[at]}"
            advice = f"must be {place}, not {cells[at]}; hash the candidates with these parameters"
            raise wrong(line, f"column {at + 2} {advice}")
        found[candidate] = line
        positions.append(bits.astype(np.int32))
    if not found:
        raise wrong(None, "holds no candidate; list at least one")
    table = np.stack(positions).reshape(-1, params.m, params.h)
    return list(found), Design.of(table, params.k), _is_direct(table, params.k)


def _is_direct(positions: NDArray[np.int32], k: int) -> bool:
    """Whether each candidate has its own bit, the same in every cohort: basic RAPPOR.

    Bit i belongs to candidate i, or each of the k bits to one candidate. No other string can be
    encoded then.
    """
    count, _, hashes = positions.shape
    if hashes > 1 or count < 2 or (positions != positions[:, :1]).any():
        return False
    bits = positions[:, 0, 0]
    in_order = count <= k and np.array_equal(bits, np.arange(count))
    return in_order or (count == k and len(np.unique(bits)) == k)


def bloom_bits(value: str, cohort: int, params: Params) -> list[int]:
    """The h bits, from 0, that a string sets in a cohort; a bit may be listed twice.

    The MD5 digest of the cohort (four bytes, big-endian) followed by the string's UTF-8
    gives h hashes: its first h bytes, each modulo k. The hash hides nothing: anybody can compute
    it.
    """
    digest = hashlib.md5(cohort.to_bytes(4, "big") + value.encode(), usedforsecurity=False)
    return [byte % params.k for byte in digest.digest()[: params.h]]


def candidates_in(path: Path) -> list[str]:
    """The strings of a file, one on each line, without the white space around them.

    Strings are hashed without normalization, because the clients hash the bytes that they have.

    Raises:
        ValueListError: the file cannot be read, holds no string, or one twice.
    """
    wrong = partial(ValueListError, str(path))
    seen: dict[str, int] = {}
    for line, text in enumerate(utf8_text(path).split("\n"), start=1):
        candidate = text.strip()
        if candidate in seen:
            raise wrong(line, f"repeats {candidate!r} of line {seen[candidate]}; remove one")
        if candidate:
            seen[candidate] = line
    if not seen:
        raise wrong(None, "holds no candidate; write one on each line")
    return list(seen)


def write_map(params: Params, candidates: Iterable[str], out: IO[str]) -> None:
    """Write map.csv, as `read_map` reads it.

    Raises:
        EstimateError: this hashing does not support such parameters.
    """
    if params.h > _MOST_HASHES or params.k > _MOST_BITS:
        raise EstimateError(
            f"this hashing has at most {_MOST_HASHES} hashes into {_MOST_BITS} bits, but "
            f"params.csv says h = {params.h} and k = {params.k}; hash the strings yourself"
        )
    lines = csv.writer(out)
    for candidate in candidates:
        bits = ((c, bit) for c in range(params.m) for bit in bloom_bits(candidate, c, params))
        lines.writerow([candidate, *(cohort * params.k + bit + 1 for cohort, bit in bits)])


def _columns(names: list[str], found: Decoding) -> tuple[Iterable[Any], ...]:
    """Those of `_COLUMNS`, with a line for each candidate, in the order of the map. Shares are
    rounded to 1e-10."""
    shares = found.share, found.std_error, found.low, found.high
    return names, *(np.round(each, 10) for each in shares), found.p_value, found.detected


def _warnings(names: list[str], found: Decoding, crowded: bool) -> Iterator[str]:
    """Warnings about the estimates, one sentence each; `crowded` says whether one hashed cohort has
    more candidates than bits, so that strings hide each other."""
    if found.n == 0:
        yield "no cohort has a report, so nothing can be estimated yet"
        return
    alike = np.flatnonzero(found.same_as != np.arange(len(names)))
    if len(alike):
        pairs = [f"{names[at]!r} like {names[found.same_as[at]]!r}" for at in alike[:3]]
        more = f" and {len(alike) - 3:,} more" if len(alike) > 3 else ""
        yield (
            "candidates with the same hashes in every cohort share one estimate, for all of "
            f"them together: {', '.join(pairs)}{more}"
        )
    unknown = int(np.isnan(found.share).sum())
    if unknown:
        yield (
            f"{unknown:,} candidates cannot be distinguished from others in so small a table: "
            "collect with more cohorts or more bits"
        )
    if crowded:
        yield (
            "one cohort cannot distinguish more candidates than it has bits, so more of those "
            "detected are false than --fdr says: use fewer candidates, or collect with more "
            "cohorts"
        )
    if not found.detected.any():
        yield (
            "no candidate is distinguishable from noise: collect from more devices, or for longer"
        )


def _document(names: list[str], found: Decoding) -> Document:
    """Detected candidates by share, then the strongest of the others, and the remaining share."""
    count, detected = counted(len(found.share), "candidate"), int(found.detected.sum())
    about = f"{counted(found.n, 'report')}  ·  {count}  ·  {detected:,} detected"
    if not found.n:
        return Document("rappor", about, Note(""))
    order = np.lexsort((np.nan_to_num(-found.share), ~found.detected))[:MOST_ROWS]
    top = max(float(np.nan_to_num(found.high[order]).max()), 1e-12)
    numbers = (found.share, found.low, found.high)
    rows = [
        (
            names[at],
            estimate_of(SHARES, *(float(each[at]) for each in numbers), axis=(0.0, top)),
            p_value(float(found.p_value[at])),
        )
        for at in order.tolist()
    ]
    columns = (
        Column("string", "String", "name"),
        Column(
            *("share", SHARE, "estimate"),
            interval=interval_title(found.level),
            scale=("0", SHARES.full(top, 0.01)),
        ),
        Column("p_value", "p"),
    )
    tones: list[Tone] = ["plain" if each else "quiet" for each in found.detected[order]]
    notes = []
    if hidden := len(found.share) - len(order):
        notes.append(f"and {hidden:,} more candidates: --csv or --json has all")
    if "quiet" in tones:
        notes.append("Dim: not distinguishable from a string that nobody has.")
    low, left, high = found.unexplained
    rest = estimate_of(SHARES, left, low, high)
    told = (
        f"The detected candidates explain {SHARES.full(1 - left, (high - low) / 2)} of the "
        f"devices. The other {rest.text} ({rest.between}) have strings that are not in the map, or "
        "too rare to be distinguished from noise."
    )
    frame = Frame("candidates", "", columns, rows, tones, tuple(notes))
    return Document("rappor", about, Note(told), frames=(frame,))


def _file(name: str, content: str) -> Callable[[Function], Function]:
    """The option --NAME for a file."""
    path = click.Path(path_type=Path)
    return click.option(f"--{name}", f"{name}_file", required=True, type=path, help=content)


_params = _file("params", "params.csv: the header k,h,m,p,q,f and a line of values.")
_open_share = Real(0, 1, min_open=True, max_open=True)


@command(
    "deniable estimate rappor decode --params rappor/params.csv --counts rappor/counts.csv "
    "--map rappor/map.csv"
)
@_params
@_file("counts", "counts.csv: for each cohort its reports, then how often each bit was set.")
@_file("map", "map.csv: each candidate, then the positions that it sets.")
@click.option(
    "--fdr",
    default=0.05,
    show_default=True,
    type=_open_share,
    help="The fraction of the detected candidates that may be false.",
)
@click.option(
    "--level", default=0.95, show_default=True, type=_open_share, help="The level of the intervals."
)
@as_json
@as_csv
def decode_command(
    params_file: Path, counts_file: Path, map_file: Path, fdr: float, level: float, form: str | None
) -> None:
    """Estimate the share of devices that have each candidate string."""
    params = read_params(params_file)
    bits, reports = read_counts(counts_file, params)
    names, design, direct = read_map(map_file, params)
    found = decode(
        bits,
        reports,
        design,
        float(params.p01),
        float(params.p11),
        background=0.0 if direct else 1 - (1 - 1 / params.k) ** params.h,
        fdr=fdr,
        level=level,
    )

    def data() -> dict[str, Any]:
        rows = records(_COLUMNS, *_columns(names, found))
        return {"n": found.n, "explained_share": found.explained_share, "candidates": rows}

    def table() -> str:
        rows = zip(*map(plain, _columns(names, found)), strict=True)
        return csv_text(_COLUMNS, ((*row[:-1], "true" if row[-1] else "false") for row in rows))

    say(form, data, lambda: _document(names, found), table)
    for warning in _warnings(names, found, params.m == 1 and not direct and len(names) > params.k):
        click.secho(f"Note: {warning}.", err=True, fg="yellow")
    if found.n == 0:
        sys.exit(NO_DATA)


@command(
    "deniable estimate rappor hash --params rappor/params.csv --candidates rappor/candidates.txt"
)
@_params
@_file("candidates", "The strings to look for, one on each line.")
def hash_command(params_file: Path, candidates_file: Path) -> None:
    """Print the map.csv of candidate strings, hashed as google/rappor's clients do."""
    write_map(read_params(params_file), candidates_in(candidates_file), sys.stdout)
