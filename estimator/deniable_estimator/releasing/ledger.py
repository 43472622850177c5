"""The ledger of releases: one SQLite file, which all processes share.

A release is charged in one transaction, before any noise is drawn, and its document is kept in a
second one, before anybody sees it. If the process dies in between, the charge stays and nothing was
published; the same request then draws its noise under that charge. Who asks for the same thing
again gets the document that is kept, at no charge: fresh noise would reveal more.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from deniable import DeniableError
from deniable_estimator.releasing.charge import Charge, total
from deniable_estimator.releasing.manifest import ManifestError, canonical, digest, verify

COLUMNS = "id, made, charge, document, csv"

DAMAGED = (ValueError, KeyError, TypeError, AttributeError)
"""What reading a row raises that `deniable release` has not written."""


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


def kept_of(row: tuple[Any, ...]) -> KeptRelease:
    """The release in a row of `COLUMNS`."""
    known, made, charge, document, csv = row
    return KeptRelease(known, date.fromisoformat(made), _charge_of(charge), document, csv)


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


def charges_of(rows: Iterable[tuple[str, str, str, str]]) -> list[Charge]:
    """The charges of all rows (id, day, charge and link), the oldest first.

    Raises:
        ValueError: a row is not as it was written, or one is missing before it.
    """
    found, last = [], ""
    for known, made, charge, link in rows:
        if link != link_of(last, known, made, charge):
            raise ValueError(f"the charge of release {known!r} was changed, or one before it")
        found.append(_charge_of(charge))
        last = link
    return found


def link_of(last: str, known: str, made: str, charge: str) -> str:
    """The link of a row after the one with the link `last`; of the first, after nothing."""
    return digest(canonical([last, known, made, charge]))


def _charge_of(text: str) -> Charge:
    return Charge.from_dict(json.loads(text))


MOST_RELEASES = 100_000
"""The most releases of one ledger: each new one reads the charges of all."""

_ROUNDING = 1e-12

_TABLE = (
    "CREATE TABLE releases (id TEXT PRIMARY KEY, made TEXT NOT NULL, charge TEXT NOT NULL, "
    "chain TEXT NOT NULL, document TEXT, csv TEXT)"
)


@dataclass(frozen=True, slots=True)
class ReleasesSpent:
    """What all releases spend together, and the budget.

    Attributes:
        delta: at which the total is stated.
        budget: the most that the total may be; None without a limit.
    """

    releases: int
    epsilon: float
    delta: float
    budget: float | None

    @classmethod
    def of(cls, charges: Sequence[Charge], delta: float, budget: float | None) -> ReleasesSpent:
        """What these charges come to."""
        return cls(len(charges), total(charges, delta), delta, budget)

    @property
    def refused(self) -> bool:
        """Whether it is more than the budget, or than delta allows."""
        if self.budget is None:
            return math.isinf(self.epsilon)
        # Three times 0.1 is a little more than 0.3 in floats, and is allowed.
        return self.epsilon > self.budget * (1 + _ROUNDING)

    def to_dict(self) -> dict[str, Any]:
        """For JSON; an epsilon that cannot be stated is null."""
        finite = None if math.isinf(self.epsilon) else self.epsilon
        return {
            "releases": self.releases,
            "epsilon": finite,
            "delta": self.delta,
            "budget": self.budget,
        }


class ReleaseLedger:
    """The releases in a file.

    Raises:
        LedgerError: the file cannot be opened or made, or is something else.
    """

    def __init__(self, path: Path, delta: float, budget: float | None) -> None:
        self.path, self.delta, self.budget = path, delta, budget
        try:
            if not path.exists():
                _make(path)
            # SQLite takes a file of up to one byte for a new one, and would forget what was spent.
            if path.stat().st_size <= 1:
                raise LedgerError(
                    f"the ledger {path} is cut off: restore it from a backup. Remove the file only "
                    "if nothing was ever released with it"
                )
            self._connection = sqlite3.connect(path, timeout=30, isolation_level=None)
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("SELECT chain FROM releases LIMIT 0")
        except (OSError, sqlite3.Error) as error:
            raise LedgerError(f"the ledger {path} cannot be used: {error}") from None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def find(self, known: str) -> KeptRelease | None:
        """The release with this id."""
        found = self._releases(f"SELECT {COLUMNS} FROM releases WHERE id = ?", known)
        return found[0] if found else None

    def listed(self) -> list[KeptRelease]:
        """All releases, the newest first.

        Raises:
            LedgerError: a row is not as it was written, or is missing.
        """
        self._charges()
        return self._releases(f"SELECT {COLUMNS} FROM releases ORDER BY made DESC, rowid DESC")

    def spent(self, charge: Charge | None = None) -> ReleasesSpent:
        """What all releases spend together, and `charge` with them if it is given."""
        charges = [*self.charges(), *([charge] if charge else [])]
        return ReleasesSpent.of(charges, self.delta, self.budget)

    def charges(self) -> list[Charge]:
        """Those of all releases, the oldest first."""
        return self._charges()[0]

    def _charges(self) -> tuple[list[Charge], str]:
        """All charges, and the link of the last one."""
        found = self._ask("SELECT id, made, charge, chain FROM releases ORDER BY rowid")
        try:
            return charges_of(found), found[-1][3] if found else ""
        except DAMAGED as error:
            raise LedgerError(f"the ledger {self.path} is damaged: {error!r}") from None

    def charged(
        self, known: str, today: date, charge: Charge | Callable[[Sequence[Charge]], Charge]
    ) -> KeptRelease:
        """The release with this id; if there is none, it is charged first. What it costs may depend
        on all earlier charges.

        Raises:
            LedgerError: the budget does not allow it, or the ledger is full; nothing is charged.
        """
        with self._alone():
            found = self.find(known)
            if found is not None:
                return found
            earlier, last = self._charges()
            charge = charge(earlier) if callable(charge) else charge
            self._allow(charge)
            row = (known, str(today), json.dumps(charge.to_dict()))
            self._ask(
                "INSERT INTO releases (id, made, charge, chain) VALUES (?, ?, ?, ?)",
                *(*row, link_of(last, *row)),
            )
            return KeptRelease(known, today, charge, None, None)

    def keep(self, known: str, make: Callable[[], tuple[str, str]]) -> KeptRelease:
        """The release with this id, with its document and table; `make` makes them if no process
        has done so. Nobody has seen what `make` returns if this fails."""
        document, csv = make()
        with self._alone():
            self._ask(
                "UPDATE releases SET document = ?, csv = ? WHERE id = ? AND document IS NULL",
                *(document, csv, known),
            )
            found = self.find(known)
        assert found is not None
        return found

    def _allow(self, charge: Charge) -> None:
        spent = self.spent(charge)
        if spent.releases > MOST_RELEASES:
            raise LedgerError(
                f"the ledger holds {MOST_RELEASES:,} releases, which is the most: begin a new "
                "file, and keep the old one"
            )
        if not spent.refused:
            return
        before = self.spent()
        if math.isinf(spent.epsilon):
            raise LedgerError(
                "the delta of the releases is spent: with this one their deltas would add up "
                f"to more than {self.delta:g}. Nothing was released. Raise "
                "DENIABLE_RELEASE_DELTA, or release with --noise laplace"
            )
        raise LedgerError(
            f"the budget of releases does not allow this: epsilon {before.epsilon:.3g} is spent "
            f"({before.releases} so far), with this one it would be {spent.epsilon:.3g}, and the "
            f"budget is {self.budget:g} (delta = {self.delta:g}). Nothing was released. Ask for a "
            "smaller --epsilon, or raise DENIABLE_RELEASE_BUDGET"
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One transaction, while no other process writes."""
        self._ask("BEGIN IMMEDIATE")
        try:
            yield
            self._ask("COMMIT")
        except BaseException:
            self._connection.rollback()
            raise

    def _releases(self, statement: str, *values: object) -> list[KeptRelease]:
        found = self._ask(statement, *values)
        try:
            return [kept_of(row) for row in found]
        except DAMAGED as error:
            raise LedgerError(f"the ledger {self.path} is damaged: {error!r}") from None

    def _ask(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise LedgerError(f"the ledger {self.path} cannot be used: {error}") from None


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
