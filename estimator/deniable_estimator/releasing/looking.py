"""Looks into a ledger of releases without writing: for pages, and for whoever reads along while
`deniable release` charges it.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from deniable_estimator.releasing.charge import Charge
from deniable_estimator.releasing.ledger import (
    COLUMNS,
    DAMAGED,
    KeptRelease,
    LedgerError,
    ReleasesSpent,
    charges_of,
    checked,
    kept_of,
)

MOST_STEPS = 24
"""The most days of which an account says what was spent by then."""

_DONE = "AND document IS NOT NULL"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ReleaseAccount:
    """What the releases of a ledger spend of one device's privacy.

    Attributes:
        total: all of them together.
        metrics: those of each metric alone, the most first. The total is not their sum: each is
            the least of three bounds for its own releases.
        unfinished: how many of them were charged and never published.
        steps: what was spent by the end of a day, of up to `MOST_STEPS` days, the oldest first.
    """

    total: ReleasesSpent
    metrics: Mapping[str, ReleasesSpent]
    unfinished: int
    steps: tuple[tuple[date, float], ...]

    @classmethod
    def of(
        cls, made: Sequence[tuple[date, Charge, bool]], delta: float, budget: float | None
    ) -> ReleaseAccount:
        """That of releases in the order in which they were made: the day of each, its charge, and
        whether it was published."""
        charges = [charge for _, charge, _ in made]
        by_metric: dict[str, list[Charge]] = defaultdict(list)
        for charge in charges:
            by_metric[charge.metric].append(charge)
        found = {name: ReleasesSpent.of(each, delta, None) for name, each in by_metric.items()}
        order = sorted(found, key=lambda name: (-found[name].epsilon, name))
        return cls(
            ReleasesSpent.of(charges, delta, budget),
            {name: found[name] for name in order},
            sum(not finished for *_, finished in made),
            tuple(_steps([day for day, *_ in made], charges, delta)),
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON; an epsilon that cannot be stated is null."""
        metrics = {name: each.to_dict() for name, each in self.metrics.items()}
        told = {
            name: {key: found[key] for key in ("releases", "epsilon")}
            for name, found in metrics.items()
        }
        return {
            "total": {**self.total.to_dict(), "unfinished": self.unfinished},
            "metrics": told,
        }


@dataclass(frozen=True, slots=True)
class ListedRelease:
    """A finished release without its numbers."""

    id: str
    made: date
    manifest: Mapping[str, Any]


def kept_release(path: Path, known: str) -> KeptRelease | None:
    """The finished release with this id in a ledger, which is only read.

    Raises:
        LedgerError: the file cannot be read, or the document is not as it was written.
    """
    found = _releases(path, f"SELECT {COLUMNS} FROM releases WHERE id = ? {_DONE}", known)
    return checked(found[0]) if found else None


def newest_release(path: Path, metric: str) -> KeptRelease | None:
    """The newest finished table or trend of all reports of a metric.

    Raises:
        LedgerError: the file cannot be read, or the document is not as it was written.
    """
    found = _releases(
        path,
        f"SELECT {COLUMNS} FROM releases WHERE json_extract(document, '$.manifest.metric') = ? "
        "AND json_extract(document, '$.manifest.form') != 'leader' "
        "AND json_extract(document, '$.manifest.where') = '{}' "
        f"{_DONE} ORDER BY rowid DESC LIMIT 1",
        metric,
    )
    return checked(found[0]) if found else None


def listed_releases(path: Path, most: int, metrics: Sequence[str] = ()) -> list[ListedRelease]:
    """The newest finished releases of a ledger, of these metrics or of all.

    Raises:
        LedgerError: the file cannot be read.
    """
    asked = ""
    if metrics:
        marks = ", ".join("?" * len(metrics))
        asked = f"AND json_extract(document, '$.manifest.metric') IN ({marks})"
    return _read(
        path,
        "SELECT id, made, json_extract(document, '$.manifest') FROM releases "
        f"WHERE 1 {_DONE} {asked} ORDER BY rowid DESC LIMIT ?",
        *(*metrics, most),
        row_of=lambda row: ListedRelease(row[0], date.fromisoformat(row[1]), json.loads(row[2])),
    )


def account_in(path: Path, delta: float, budget: float | None) -> ReleaseAccount:
    """What all releases of a ledger spend, in all and by metric; at `delta`.

    Raises:
        LedgerError: the file cannot be read.
    """
    rows = _read(
        path,
        "SELECT id, made, charge, chain, document IS NOT NULL FROM releases ORDER BY rowid",
        row_of=lambda row: row,
    )
    try:
        charges = charges_of(row[:4] for row in rows)
        days = [date.fromisoformat(row[1]) for row in rows]
    except DAMAGED as error:
        raise LedgerError(f"the ledger {path} is damaged: {error!r}") from None
    made = [
        (day, charge, bool(row[4])) for day, charge, row in zip(days, charges, rows, strict=True)
    ]
    return ReleaseAccount.of(made, delta, budget)


def ledger_stamp(path: Path) -> bytes | None:
    """What differs when the file does: the header of a SQLite file counts its commits
    (https://www.sqlite.org/fileformat.html, 1.3.6). None if there is no file."""
    try:
        with path.open("rb") as opened:
            return opened.read(100) + str(os.fstat(opened.fileno()).st_ino).encode()
    except OSError:
        return None


def _steps(
    made: Sequence[date], charges: Sequence[Charge], delta: float
) -> Iterator[tuple[date, float]]:
    """What was spent by the end of each day. Of more days than `MOST_STEPS`, some are left out,
    and never the last one."""
    ends: dict[date, int] = {}
    latest = date.min
    for count, day in enumerate(made, 1):
        # After a clock was set back, a release counts on the latest day that there was before.
        latest = max(latest, day)
        ends[latest] = count
    days = list(ends)
    if len(days) > MOST_STEPS:
        last = len(days) - 1
        days = [days[round(place * last / (MOST_STEPS - 1))] for place in range(MOST_STEPS)]
    for day in days:
        yield day, ReleasesSpent.of(charges[: ends[day]], delta, None).epsilon


def _releases(path: Path, statement: str, *values: object) -> list[KeptRelease]:
    return _read(path, statement, *values, row_of=kept_of)


def _read(
    path: Path, statement: str, *values: object, row_of: Callable[[tuple[Any, ...]], _T]
) -> list[_T]:
    if not path.exists():
        return []
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=10)) as opened:
            return [row_of(row) for row in opened.execute(statement, values)]
    except (sqlite3.Error, *DAMAGED) as error:
        raise LedgerError(f"the ledger {path} cannot be read: {error}") from None
