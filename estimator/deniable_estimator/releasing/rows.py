"""The rows of a ledger of releases, and the check that none was changed or lost.

Each row has a link: the SHA-256 of its charge together with the link of the row before it. So a
bit that flips on a disk, or a row that is lost between others, is noticed, and does not change what
was spent silently. The links are no signature: whoever may write the file can compute them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any

from deniable import DeniableError
from deniable_estimator.releasing.charge import Charge
from deniable_estimator.releasing.manifest import ManifestError, canonical, digest, verify

__all__ = [
    "COLUMNS",
    "DAMAGED",
    "KeptRelease",
    "LedgerError",
    "charges_of",
    "checked",
    "kept_of",
    "link_of",
]

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
