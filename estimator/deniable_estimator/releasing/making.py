"""Makes a release: charges it, draws its noise, keeps its document, and only then hands it out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from deniable.protocol.randomness import Bits
from deniable_estimator.asking.discoveries import finds_of
from deniable_estimator.document.csv_files import csv_text
from deniable_estimator.kinds.base import Answer
from deniable_estimator.privacy.outsider import DELTA
from deniable_estimator.releasing.charge import ReleasesSpent
from deniable_estimator.releasing.manifest import FORMAT, document, signed
from deniable_estimator.releasing.noise import BufferedBits, leader
from deniable_estimator.releasing.prepared import Piece, Prepared, registry_digest
from deniable_estimator.releasing.release_ledger import KeptRelease, ReleaseLedger, checked
from deniable_estimator.releasing.statistic import LEVEL, SupportCounts
from deniable_estimator.releasing.words import assumed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


_NUMBERS = ("estimate", "std_error", "low", "high")


@dataclass(frozen=True, slots=True)
class Release:
    """A release as it is handed out.

    Attributes:
        again: whether it was made before and is the same document, at no charge.
        document: JSON text.
        csv: the table alone.
    """

    id: str
    again: bool
    document: str
    csv: str
    spent: ReleasesSpent


def release(
    prepared: Prepared,
    ledger: ReleaseLedger,
    key: Ed25519PrivateKey | None = None,
    now: float | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> Release:
    """Make a release, or find the one that was made before.

    Raises:
        LedgerError: the budget does not allow it, or the ledger cannot be used. Nothing was
            released then.
        EstimateError: a value cannot be estimated, or a reader could subtract earlier releases.
    """
    known = prepared.id
    progress("Charging")
    today = datetime.fromtimestamp(time.time() if now is None else now, UTC).date()
    kept = ledger.charged(known, today, prepared.charge_after)
    again = kept.document is not None
    if not again:
        progress("Drawing noise" if prepared.noise is not None else "Estimating")
        kept = ledger.keep(known, lambda: _made(prepared, kept))
    kept = checked(kept)
    assert kept.document is not None
    assert kept.csv is not None
    # The document is kept without a signature, so that any key can sign it later.
    text = kept.document if key is None else signed(kept.document, key)
    return Release(known, again, text, kept.csv, ledger.spent())


def _made(prepared: Prepared, kept: KeptRelease) -> tuple[str, str]:
    """The document of a release, and its table, with fresh noise."""
    columns, rows = _columns_and_rows(prepared, BufferedBits())
    data = {"columns": columns, "rows": rows}
    csv = csv_text(columns, rows)
    return document(_manifest(prepared, kept), data, csv), csv


def _columns_and_rows(prepared: Prepared, bits: Bits) -> tuple[list[str], list[list[Any]]]:
    if prepared.noise is not None and prepared.noise.method == "exponential":
        statistic = prepared.pieces[0].statistic
        assert isinstance(statistic, SupportCounts)
        place = leader(statistic.exact(), prepared.noise.rate, bits)
        return ["leader"], [[statistic.values[place]]]
    trend = prepared.request.form == "trend"
    first = "value" if _of_shares(prepared) else "series"
    columns = [*(["window", "n"] if trend else []), first, *_NUMBERS]
    rows = []
    for piece in prepared.pieces:
        before = [piece.labels[0], piece.n] if trend else []
        answer = _answer(prepared, piece, bits)
        rows += [[*before, *row] for row in answer.series.lines()] if answer else []
    return columns, rows


def _of_shares(prepared: Prepared) -> bool:
    """Whether the estimates are shares: those of a number are, if a pair of it is reported."""
    pairs = [part for piece in prepared.pieces for part in piece.question.pair]
    return prepared.metric.type.name != "number" or any(part.tally.reports for part in pairs)


def _answer(prepared: Prepared, piece: Piece, bits: Bits) -> Answer | None:
    if prepared.noise is None:
        if prepared.metric.type.name == "discovery":
            return finds_of(piece.question, prepared.metric, level=LEVEL).shares
        return piece.question.estimate(level=LEVEL)
    assert piece.statistic is not None
    exact = piece.statistic.exact()
    drawn = prepared.noise.draw(len(exact), bits)
    noisy = [count + each for count, each in zip(exact, drawn, strict=True)]
    return piece.statistic.answer(noisy, prepared.noise.variance)


def _manifest(prepared: Prepared, kept: KeptRelease) -> dict[str, Any]:
    request, given = prepared.request, prepared.given
    epsilon, delta = prepared.guarantee()
    one, _ = prepared.guarantee(1)
    labels, pair = prepared.labels, prepared.source
    kind, noise = request.kind, prepared.noise
    told: dict[str, Any] | None = None
    if noise is not None and kind == "exponential":
        told = {"distribution": "exponential mechanism", "rate": str(noise.rate)}
    elif noise is not None:
        told = {
            "distribution": f"discrete {kind}",
            "scale" if kind == "laplace" else "variance": str(noise.scale),
            "std_dev": math.sqrt(noise.variance),
            "sensitivity_of_a_report": asdict(noise.each),
            "variance_added": prepared.added(),
        }
    private = noise is not None
    sums = prepared.outsider.epsilon.epsilon
    return {
        "deniable_release": FORMAT,
        "id": kept.id,
        "made": kept.made.isoformat(),
        "app": prepared.registry.app,
        "metric": prepared.metric.name,
        "description": prepared.metric.description,
        "type": prepared.metric.type.name,
        "pair": {"name": pair.name, "of": list(pair.type.of)} if pair.type.of else None,
        "estimates": "shares" if _of_shares(prepared) else "numbers",
        "unit": None if _of_shares(prepared) else prepared.metric.type.unit,
        "mechanism": given.mechanism,
        "schemes": sorted(
            {
                part.scheme.fingerprint
                for piece in prepared.pieces
                for part in piece.question.parts
                if part.tally.reports
            }
        ),
        "registry_sha256": registry_digest(prepared.registry),
        "form": request.form,
        "windows": {"kind": given.window, "first": labels[0], "last": labels[-1], "labels": labels},
        "where": dict(request.query.where),
        "reports": prepared.n,
        "level": LEVEL,
        "method": kind,
        "unit_of_privacy": "device",
        "reports_of_a_device": prepared.reports,
        "epsilon": epsilon,
        "delta": delta,
        "holds_against": "who knows all other reports" if private else "readers of sums",
        "epsilon_of_one_report": one if private else None,
        "reader_of_sums": {
            "epsilon": min(sums, epsilon) if private else sums,
            "delta": DELTA,
        },
        "devices_own_epsilon": prepared.outsider.device.epsilon,
        "noise": told,
        "assumed": list(assumed(kind, prepared.reports)),
    }
