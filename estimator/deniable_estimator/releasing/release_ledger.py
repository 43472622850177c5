"""The ledger of releases: one SQLite file, which all processes share.

A release is charged in one transaction, before any noise is drawn, and its document is kept in a
second one, before anybody sees it. If the process dies in between, the charge stays and nothing was
published; the same request then draws its noise under that charge. Who asks for the same thing
again gets the document that is kept, at no charge: fresh noise would reveal more.

Pages, and whoever reads along while `deniable release` charges it, look into the file without
writing.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from deniable import DeniableError
from deniable_estimator.releasing.charge import Charge, ReleaseAccount, ReleasesSpent
from deniable_estimator.releasing.manifest import ManifestError, canonical, digest, verify

MOST_RELEASES = 100_000
"""The most releases of one ledger: each new one reads the charges of all."""

_TABLE = (
    "CREATE TABLE releases (id TEXT PRIMARY KEY, made TEXT NOT NULL, charge TEXT NOT NULL, "
    "chain TEXT NOT NULL, document TEXT, csv TEXT)"
)
_RELEASES = "SELECT id, made, charge, document, csv FROM releases"
_CHARGES = "SELECT id, made, charge, chain, document IS NOT NULL FROM releases ORDER BY rowid"

_Row = tuple[Any, ...]


class LedgerError(DeniableError):
    """The release is refused, or the ledger cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class KeptRelease:
    """A release in the ledger.

    Attributes:
        document: its JSON text; None if it was charged and never finished.
        csv: its table; None with `document`.
    """

    id: str
    made: date
    charge: Charge
    document: str | None
    csv: str | None

    @property
    def manifest(self) -> dict[str, Any]:
        """What its document says of itself; nothing if it was never finished."""
        found: dict[str, Any] = json.loads(self.document)["manifest"] if self.document else {}
        return found


@dataclass(frozen=True, slots=True)
class ListedRelease:
    """A finished release without its numbers."""

    id: str
    made: date
    manifest: Mapping[str, Any]


def checked(kept: KeptRelease) -> KeptRelease:
    """The same release, unless the disk has changed its document: then nobody may see its numbers.

    Raises:
        LedgerError: its numbers are not those of its manifest.
    """
    assert kept.document is not None
    assert kept.csv is not None
    try:
        manifest = verify(kept.document.encode(), kept.csv.encode(), None)
        if manifest["id"] != kept.id:
            raise ManifestError("it is another release's")
    except (ManifestError, KeyError) as error:
        raise LedgerError(
            f"the ledger is damaged: the document of release {kept.id} is not as it was written "
            f"({error}). Restore the ledger from a backup"
        ) from None
    return kept


_Ask: TypeAlias = Callable[..., list[_Row]]
"""Executes a statement with its values."""


@dataclass(frozen=True, slots=True)
class ReleaseLedger:
    """The releases in a file, which is made when the first one is charged: without a file there are
    none.

    Attributes:
        delta: at which what all releases spend together is stated.
        budget: the most that this may be; None without a limit.

    Raises:
        LedgerError: from each method: the file cannot be used, or is not as it was written.
    """

    path: Path
    delta: float
    budget: float | None

    def charges(self) -> list[Charge]:
        """Those of all releases, the oldest first."""
        with self._named():
            return _charges_of(self._read(_CHARGES))

    def spent(self) -> ReleasesSpent:
        """What all releases spend together."""
        return ReleasesSpent.of(self.charges(), self.delta, self.budget)

    def account(self) -> ReleaseAccount:
        """What all releases spend, in all and by metric."""
        with self._named():
            rows = self._read(_CHARGES)
            made = [
                (date.fromisoformat(row[1]), charge, bool(row[4]))
                for row, charge in zip(rows, _charges_of(rows), strict=True)
            ]
        return ReleaseAccount.of(made, self.delta, self.budget)

    def releases(self) -> list[KeptRelease]:
        """All releases, the newest first."""
        with self._named():
            kept = map(_kept_of, self._read(f"{_RELEASES} ORDER BY rowid DESC"))
            return sorted(kept, key=lambda each: each.made, reverse=True)

    def listed(self, most: int, metrics: Sequence[str] = ()) -> list[ListedRelease]:
        """The newest finished releases, of these metrics or of all."""
        asked = ""
        if metrics:
            marks = ", ".join("?" * len(metrics))
            asked = f"AND json_extract(document, '$.manifest.metric') IN ({marks})"
        with self._named():
            found = self._read(
                "SELECT id, made, json_extract(document, '$.manifest') FROM releases "
                f"WHERE document IS NOT NULL {asked} ORDER BY rowid DESC LIMIT ?",
                *(*metrics, most),
            )
            return [
                ListedRelease(known, date.fromisoformat(made), json.loads(manifest))
                for known, made, manifest in found
            ]

    def finished(self, known: str) -> KeptRelease | None:
        """The finished release with this id."""
        return self._finished("id = ?", known)

    def holds(self, known: str) -> bool:
        """Whether the release with this id was charged, finished or not; then it is free."""
        with self._named():
            return bool(self._read("SELECT 1 FROM releases WHERE id = ?", known))

    def newest(self, metric: str) -> KeptRelease | None:
        """The newest finished table or trend of all reports of a metric."""
        return self._finished(
            "json_extract(document, '$.manifest.metric') = ? "
            "AND json_extract(document, '$.manifest.form') != 'leader' "
            "AND json_extract(document, '$.manifest.where') = '{}'",
            metric,
        )

    def stamp(self) -> bytes | None:
        """What differs when the file does: the header of a SQLite file counts its commits
        (https://www.sqlite.org/fileformat.html, 1.3.6). None if there is no file."""
        try:
            with self.path.open("rb") as opened:
                return opened.read(100) + str(os.fstat(opened.fileno()).st_ino).encode()
        except OSError:
            return None

    def charged(
        self, known: str, today: date, charge_after: Callable[[Sequence[Charge]], Charge]
    ) -> KeptRelease:
        """The release with this id; if there is none, it is charged first. What it costs may depend
        on all earlier charges.

        Raises:
            LedgerError: the budget does not allow it, or the ledger is full; nothing is charged.
        """
        with self._alone() as ask:
            with self._named():
                if found := ask(f"{_RELEASES} WHERE id = ?", known):
                    return _kept_of(found[0])
                rows = ask(_CHARGES)
                earlier = _charges_of(rows)
            charge = charge_after(earlier)
            self._allow(earlier, charge)
            row = (known, str(today), charge.to_json())
            link = _link(rows[-1][3] if rows else "", *row)
            ask("INSERT INTO releases (id, made, charge, chain) VALUES (?, ?, ?, ?)", *row, link)
            return KeptRelease(known, today, charge, None, None)

    def keep(self, known: str, document: str, csv: str) -> KeptRelease:
        """The release with this id, with this document and table if no process was first. Nobody
        has seen them if this fails."""
        with self._alone() as ask, self._named():
            ask(
                "UPDATE releases SET document = ?, csv = ? WHERE id = ? AND document IS NULL",
                *(document, csv, known),
            )
            (found,) = ask(f"{_RELEASES} WHERE id = ?", known)
            return _kept_of(found)

    def _allow(self, earlier: Sequence[Charge], charge: Charge) -> None:
        spent = ReleasesSpent.of([*earlier, charge], self.delta, self.budget)
        if spent.releases > MOST_RELEASES:
            raise LedgerError(
                f"the ledger holds {MOST_RELEASES:,} releases, which is the most: begin a new "
                "file, and keep the old one"
            )
        if not spent.refused:
            return
        if math.isinf(spent.epsilon):
            raise LedgerError(
                "the delta of the releases is spent: with this one their deltas would add up "
                f"to more than {self.delta:g}. Nothing was released. Raise "
                "DENIABLE_RELEASE_DELTA, or release with --noise laplace"
            )
        before = ReleasesSpent.of(earlier, self.delta, self.budget)
        raise LedgerError(
            f"the budget of releases does not allow this: epsilon {before.epsilon:.3g} is spent "
            f"({before.releases} so far), with this one it would be {spent.epsilon:.3g}, and the "
            f"budget is {self.budget:g} (delta = {self.delta:g}). Nothing was released. Ask for a "
            "smaller --epsilon, or raise DENIABLE_RELEASE_BUDGET"
        )

    @contextmanager
    def _alone(self) -> Iterator[_Ask]:
        """One transaction, while no other process writes; what fails in it changes nothing."""
        with self._named():
            if not self.path.exists():
                _make(self.path)
            # SQLite takes a file of up to one byte for a new one, and would forget what was spent.
            if self.path.stat().st_size <= 1:
                raise LedgerError(
                    f"the ledger {self.path} is cut off: restore it from a backup. Remove the file "
                    "only if nothing was ever released with it"
                )
            connection = sqlite3.connect(self.path, timeout=30, isolation_level=None)

        def ask(statement: str, *values: object) -> list[_Row]:
            with self._named():
                return connection.execute(statement, values).fetchall()

        with closing(connection):
            ask("PRAGMA synchronous = FULL")
            ask("BEGIN IMMEDIATE")
            yield ask
            ask("COMMIT")

    def _finished(self, which: str, value: str) -> KeptRelease | None:
        """The newest such release that has a document."""
        with self._named():
            found = self._read(
                f"{_RELEASES} WHERE document IS NOT NULL AND {which} ORDER BY rowid DESC LIMIT 1",
                value,
            )
            return checked(_kept_of(found[0])) if found else None

    def _read(self, statement: str, *values: object) -> list[_Row]:
        """What the file says, which is not written to."""
        if not self.path.exists():
            return []
        address = f"file:{quote(str(self.path.absolute()))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=10)) as opened:
            return opened.execute(statement, values).fetchall()

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Errors of the file, and of rows that `deniable release` has not written, name the
        ledger."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise LedgerError(f"the ledger {self.path} cannot be used: {error}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LedgerError(f"the ledger {self.path} is damaged: {error!r}") from None


def _kept_of(row: _Row) -> KeptRelease:
    known, made, charge, document, csv = row
    return KeptRelease(known, date.fromisoformat(made), Charge.from_json(charge), document, csv)


def _charges_of(rows: Sequence[_Row]) -> list[Charge]:
    """The charges of all rows (id, day, charge and link), the oldest first.

    Raises:
        ValueError: a row is not as it was written, or one is missing before it.
    """
    found, last = [], ""
    for known, made, charge, link, *_ in rows:
        if link != _link(last, known, made, charge):
            raise ValueError(f"the charge of release {known!r} was changed, or one before it")
        found.append(Charge.from_json(charge))
        last = link
    return found


def _link(last: str, known: str, made: str, charge: str) -> str:
    """The link of a row after the one with the link `last`; of the first, after nothing."""
    return digest(canonical([last, known, made, charge]))


def _make(path: Path) -> None:
    """Make an empty ledger, whole or not at all, unless another process is first."""
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        # For its owner alone, from the beginning: it holds what is not published yet.
        os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(sqlite3.connect(new, isolation_level=None)) as opened:
            opened.execute(_TABLE)
        with suppress(FileExistsError):
            os.link(new, path)
    finally:
        new.unlink(missing_ok=True)
