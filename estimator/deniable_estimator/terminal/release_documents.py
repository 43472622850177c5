"""Releases as documents for a terminal: tables, what one would cost, and the ledger."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from deniable.protocol.coded_message import counted
from deniable_estimator.document.document import Column, Document, Fact, Frame, Note
from deniable_estimator.document.terminal import MOST_ROWS, printable
from deniable_estimator.document.units import SHARES
from deniable_estimator.releasing.charge import ReleaseAccount, ReleasesSpent
from deniable_estimator.releasing.making import Release, charge_after, id_of
from deniable_estimator.releasing.manifest import ManifestError
from deniable_estimator.releasing.preparing import Prepared
from deniable_estimator.releasing.release_ledger import KeptRelease, ReleaseLedger
from deniable_estimator.releasing.words import (
    epsilon_text,
    pair_part,
    released_frame,
    statement,
    verdict,
)


def release_document(found: Release, out: Path | None) -> Document:
    """The numbers, if they are not written to a file, and what they reveal."""
    whole = json.loads(found.document)
    manifest = whole["manifest"]
    frames = () if out else (released_frame(manifest, whole["data"], MOST_ROWS),)
    notes = [
        f"Wrote {out}" if out else "",
        statement(manifest),
        "This was released before: the same numbers, at no charge." if found.again else "",
    ]
    verdict = Note(f"Release {found.id}. {_spent(found.spent)}", "quiet")
    told = tuple(Note(each) for each in notes if each)
    return Document("release", _heading(manifest), verdict, frames=frames, notes=told)


def release_plan_document(prepared: Prepared, ledger: ReleaseLedger) -> Document:
    """What a release would cost in accuracy, and of the budget.

    Raises:
        EstimateError: beside the earlier charges it is not allowed.
    """
    epsilon, delta = prepared.guarantee()
    widest = prepared.widest()
    earlier = ledger.charges()
    free = ledger.holds(id_of(prepared))
    charges = earlier if free else [*earlier, charge_after(prepared, earlier)]
    after = ReleasesSpent.of(charges, ledger.delta, ledger.budget)
    first, last = prepared.labels[0], prepared.labels[-1]
    rests_on = (
        f"{prepared.n:,} reports of {counted(len(prepared.labels), 'window')}, {first} to "
        f"{last}, at most {prepared.reports} of one device"
    )
    told = {
        "method": prepared.request.kind,
        "epsilon": f"{epsilon_text(epsilon)} at delta = {delta:g}, for one device",
    }
    if widest is not None:
        *halves, unit = widest
        own, both = (
            f"± {unit.text(each, each)} points" if unit is SHARES else f"± {unit.full(each, each)}"
            for each in halves
        )
        told["widest interval"] = f"{own} without the noise, {both} with it"
    costs = f"With this release, {_spent(after)}"
    if free:
        costs = f"This release is charged already: to make it again costs nothing. {_spent(after)}"
    elif after.refused:
        costs += " The budget does not allow it."
    return Document(
        "release plan",
        f"Plan of a release of {prepared.metric.name}",
        Note(f"{verdict(prepared)}\n{costs}"),
        tuple(Fact(name, name, text, text) for name, text in told.items()),
        notes=(Note(rests_on, "quiet"),),
    )


_SHORT = 12
"""Characters of an id that tell releases apart; --json has the whole."""


def releases_data(kept: Sequence[KeptRelease], account: ReleaseAccount) -> dict[str, Any]:
    """The releases of a ledger, and what they reveal together, for JSON."""
    rows = []
    for each in kept:
        manifest, charge = each.manifest, asdict(each.charge)
        del charge["sums"]
        known = {"id": each.id, "made": each.made.isoformat(), "finished": bool(manifest)}
        told = {"released": manifest.get("metric"), "pair": manifest.get("pair")}
        rows.append({**known, **told, **charge})
    return {"releases": rows, **account.to_dict()}


def releases_document(kept: Sequence[KeptRelease], account: ReleaseAccount) -> Document:
    """The same for people."""
    columns = (
        *(Column(each, each, "words") for each in ("id", "made", "metric", "windows", "method")),
        Column("epsilon", "epsilon charged"),
        Column("delta", "delta"),
    )
    rows = []
    for each in kept:
        charge = each.charge
        first, last = charge.windows[0], charge.windows[-1]
        rows.append(
            (
                each.id[:_SHORT],
                each.made.isoformat(),
                _name_of(each),
                first if first == last else f"{first} to\n{last}",
                charge.kind if each.document is not None else f"{charge.kind} (not finished)",
                epsilon_text(charge.epsilon),
                f"{charge.delta:g}",
            )
        )
    by_metric = account.metrics.items() if len(account.metrics) > 1 else ()
    notes = [f"{printable(name)} by itself: {_total(own)}" for name, own in by_metric]
    if account.unfinished:
        notes.append(
            f"{account.unfinished:,} of them {'was' if account.unfinished == 1 else 'were'} "
            "charged and not finished: the same command finishes them at no further charge."
        )
    frames = (Frame("releases", "", columns, rows),) if rows else ()
    told = tuple(Note(each, "quiet") for each in notes)
    return Document("releases", _spent(account.total), Note(""), frames=frames, notes=told)


def _name_of(kept: KeptRelease) -> str:
    """The metric that was released, with its pair: of a metric that devices report as a part of a
    pair, the ledger charges the pair."""
    manifest = kept.manifest
    name = printable(manifest.get("metric", kept.charge.metric))
    part = pair_part(manifest)
    return f"{name}\n{printable(part)}" if part else name


def verified_document(manifest: Mapping[str, Any], *, signed: bool, by_key: bool) -> Document:
    """What was found to be true of a document.

    Raises:
        ManifestError: the manifest lacks something, or has a thing of another kind.
    """
    try:
        heading, line = _heading(manifest), statement(dict(manifest))
    except (KeyError, TypeError, ValueError, AttributeError, AssertionError):
        raise ManifestError(
            "the manifest is not whole: deniable has not written it so. Ask for the document again"
        ) from None
    signature = "It is not signed: anybody can have written it."
    if by_key:
        signature = "It is signed with this key."
    elif signed:
        signature = "It is signed; name the signer's public key with --key to check whose."
    notes = Note("The numbers are those of the manifest."), Note(signature)
    return Document("verified", heading, Note(line), notes=notes)


def _heading(manifest: Mapping[str, Any]) -> str:
    windows = manifest["windows"]
    first, last = windows["first"], windows["last"]
    days = first if first == last else f"{first} to {last}"
    where = "".join(f", {name} = {value}" for name, value in manifest["where"].items())
    part = f", {pair}" if (pair := pair_part(manifest)) else ""
    name = printable(manifest["metric"])
    return f"{name}  {days}{where}{part}, {manifest['reports']:,} reports"


def _total(spent: ReleasesSpent) -> str:
    return "more than delta allows" if math.isinf(spent.epsilon) else epsilon_text(spent.epsilon)


def _spent(spent: ReleasesSpent) -> str:
    total = _total(spent)
    of = "" if spent.budget is None else f" of {spent.budget:g}"
    one = spent.releases == 1
    count = "1 release reveals" if one else f"{spent.releases:,} releases together reveal"
    return f"{count} epsilon {total}{of} of one device, at delta = {spent.delta:g}."
