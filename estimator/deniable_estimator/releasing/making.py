"""Makes a release: charges it, draws its noise, keeps its document, and only then hands it out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from deniable.protocol.randomness import Bits
from deniable_estimator.asking.discoveries import finds_of
from deniable_estimator.document.csv_files import csv_text
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.base import Answer
from deniable_estimator.privacy.outsider import DELTA, LEAST_REPORTS, released_sums
from deniable_estimator.releasing.charge import Charge, ReleasesSpent, SumCell, cells
from deniable_estimator.releasing.manifest import FORMAT, canonical, digest, document, signed
from deniable_estimator.releasing.noise import BufferedBits, leader
from deniable_estimator.releasing.preparing import Piece, Prepared, squared
from deniable_estimator.releasing.release_ledger import KeptRelease, ReleaseLedger, checked
from deniable_estimator.releasing.statistic import LEVEL, SupportCounts
from deniable_estimator.releasing.words import assumed

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


_NUMBERS = ("estimate", "std_error", "low", "high")

_NAMED = 2
"""An error names so many windows; of more, their number of reports says enough."""


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
    known = id_of(prepared)
    progress("Charging")
    today = datetime.fromtimestamp(time.time() if now is None else now, UTC).date()
    kept = ledger.charged(known, today, lambda earlier: charge_after(prepared, earlier))
    again = kept.document is not None
    if not again:
        progress("Drawing noise" if prepared.noise is not None else "Estimating")
        columns, rows = _columns_and_rows(prepared, BufferedBits())
        csv = csv_text(columns, rows)
        data = {"columns": columns, "rows": rows}
        kept = ledger.keep(known, document(_manifest(prepared, kept), data, csv), csv)
    kept = checked(kept)
    assert kept.document is not None
    assert kept.csv is not None
    # The document is kept without a signature, so that any key can sign it later.
    text = kept.document if key is None else signed(kept.document, key)
    return Release(known, again, text, kept.csv, ledger.spent())


def id_of(prepared: Prepared) -> str:
    """Names the release: the same request of the same reports has the same id."""
    request, candidates = prepared.request, prepared.request.query.candidates
    asked: dict[str, Any] = {
        "metric": request.query.metric,
        "registry": _registry_digest(prepared),
        "schemes": [
            part.scheme.fingerprint for piece in prepared.pieces for part in piece.question.parts
        ],
        "windows": [[list(piece.labels), piece.n] for piece in prepared.pieces],
        "where": dict(request.query.where),
        "candidates": None if candidates is None else list(candidates),
        "form": request.form,
        "kind": request.kind,
        "epsilon": str(request.epsilon),
        "delta": DELTA,
        "level": LEVEL,
    }
    return digest(canonical(asked))[:24]


def _registry_digest(prepared: Prepared) -> str:
    """SHA-256 of the compiled registry."""
    return digest(canonical(prepared.registry.compile()))


def charge_after(prepared: Prepared, earlier: Sequence[Charge]) -> Charge:
    """What the release spends if those were made before.

    Raises:
        EstimateError: whoever subtracts them may be left with the sum of too few reports.
    """
    noise, (epsilon, delta) = prepared.noise, prepared.guarantee()
    charge = Charge(
        prepared.given.metric,
        prepared.labels,
        prepared.given.lifetime_reports,
        prepared.request.kind,
        epsilon,
        delta,
        sums=tuple(piece.counted for piece in prepared.pieces),
    )
    exact = [one for each in earlier if each.kind == "exact" for one in each.sums]
    noisy = [one for each in earlier if each.kind != "exact" for one in each.sums]
    if noise is not None:
        before, after = (
            _joint(prepared, cells(exact, charge.sums, each, exact=False))
            for each in (noisy, [*noisy, *charge.sums])
        )
        return replace(
            charge,
            window_epsilon=None if noise.epsilon is None else prepared.guarantee(1)[0],
            window_rho=float(noise.rho) * squared(prepared.pieces, prepared.reports),
            separated=max(0.0, after - before),
        )
    if not earlier:
        return charge
    found = cells(exact, charge.sums, noisy)
    least = min(cell.reports for cell in found)
    if least < LEAST_REPORTS:
        raise EstimateError(
            "earlier releases without noise hold a part of the same reports: whoever subtracts "
            f"them from this one may be left with the sum of {least:,} reports{_of(found, least)}, "
            f"and fewer than {LEAST_REPORTS:,} are not released, because each would hide among "
            "too few. Nothing was released. Of a range that slides, like the last 30 days, "
            "release each window once with --form trend, or a table for each week or month. Or "
            "wait until the new windows have enough reports, or add noise with --epsilon"
        )
    return replace(charge, epsilon=max(epsilon, _joint(prepared, found)))


def _joint(prepared: Prepared, found: Sequence[SumCell]) -> float:
    """What the exact sums of these cells reveal together."""
    if not found:
        return 0.0
    limit = prepared.given.lifetime_reports
    together = frozenset[str]().union(*(cell.windows for cell in found))
    reports = min(
        cell.hiding // max(1, min(len(cell.windows), limit or len(cell.windows))) for cell in found
    )
    joint = released_sums(prepared.registry, prepared.source, len(together), max(1, reports), DELTA)
    return joint.epsilon.epsilon


def _of(found: Sequence[SumCell], least: int) -> str:
    """The windows of the smallest cell, if they are few enough to be named."""
    windows = sorted(next(cell.windows for cell in found if cell.reports == least))
    return f" of {' and '.join(windows)}" if len(windows) <= _NAMED else ""


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
        "registry_sha256": _registry_digest(prepared),
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
