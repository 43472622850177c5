"""Releases in a terminal: the table with its statement, what one would cost, and the ledger."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from deniable.protocol.coded_message import counted
from deniable_estimator.isolation import isolated
from deniable_estimator.releasing.charge import Charge, ReleaseAccount, ReleasesSpent
from deniable_estimator.releasing.ledger import KeptRelease, ReleaseLedger
from deniable_estimator.releasing.making import Release
from deniable_estimator.releasing.manifest import ManifestError
from deniable_estimator.releasing.prepared import Prepared
from deniable_estimator.releasing.words import figure, of_shares, pair_part, statement, verdict
from deniable_estimator.terminal.tables import MOST_ROWS, printable


def print_release(found: Release, out: Path | None, *, table: bool) -> None:
    """The numbers, if `table` says so, and what they reveal."""
    console = Console()
    manifest, data = found.manifest, found.data
    if table:
        console.print(_heading(manifest))
        console.print(_release_table(manifest, data))
        console.print()
    elif out is not None:
        console.print(Text(f"Wrote {out}"))
    console.print(Text(statement(manifest)))
    if found.again:
        console.print(Text("This was released before: the same numbers, at no charge."))
    console.print(Text(f"Release {found.id}. {_spent(found.spent)}", style="dim"))


def print_plan(
    prepared: Prepared,
    earlier: Sequence[Charge],
    delta_of_all: float,
    budget: float | None,
) -> None:
    """What a release would cost in accuracy, and of the budget.

    Raises:
        EstimateError: beside the earlier charges it is not allowed.
    """
    epsilon, delta = prepared.guarantee()
    halves = prepared.halves()
    charges = [*earlier, prepared.charge_after(earlier)]
    after = ReleasesSpent.of(charges, delta_of_all, budget)
    console = Console()
    first, last = prepared.labels[0], prepared.labels[-1]
    console.print(Text.assemble("Plan of a release of ", (prepared.metric.name, "bold")))
    console.print(
        Text(
            f"{prepared.n:,} reports of {counted(len(prepared.labels), 'window')}, {first} to "
            f"{last}, at most {prepared.reports} of one device",
            style="dim",
        )
    )
    console.print()
    console.print(Text(f"method    {prepared.kind}"))
    console.print(Text(f"epsilon   {figure(epsilon)} at delta = {delta:g}, for one device"))
    if halves is not None:
        share = prepared.metric.type.unit is None and prepared.metric.type.name != "number"
        unit = "percentage points" if share else "of half the range"
        factor = 100 if share else 1
        console.print(
            Text(
                f"interval  ± {factor * halves[0]:.3g} without the noise, "
                f"± {factor * halves[1]:.3g} with it, {unit}"
            )
        )
    console.print(Text(verdict(prepared)))
    console.print(Text(f"With this release, {_spent(after)}", style="dim"))
    if after.refused:
        console.print(Text("The budget does not allow it.", style="bold"))


_SHORT = 12
"""Characters of an id that tell releases apart; --json has the whole."""


def print_list(ledger: ReleaseLedger, form: str | None) -> None:
    """The releases of a ledger."""
    kept = ledger.listed()
    made = [(each.made, each.charge, each.document is not None) for each in reversed(kept)]
    account = ReleaseAccount.of(made, ledger.delta, ledger.budget)
    if form is not None:
        rows = [
            {
                "id": each.id,
                "made": each.made.isoformat(),
                "finished": each.document is not None,
                "released": _manifest_of(each).get("metric"),
                "pair": _manifest_of(each).get("pair"),
                **{key: value for key, value in each.charge.to_dict().items() if key != "sums"},
            }
            for each in kept
        ]
        click.echo(json.dumps({"releases": rows, **account.to_dict()}, allow_nan=False))
        return
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("id")
    table.add_column("made", no_wrap=True)
    table.add_column("metric", overflow="fold")
    table.add_column("windows", no_wrap=True)
    table.add_column("method")
    table.add_column("epsilon", justify="right")
    table.add_column("delta", justify="right")
    for each in kept:
        charge = each.charge
        first, last = charge.windows[0], charge.windows[-1]
        table.add_row(
            each.id[:_SHORT],
            each.made.isoformat(),
            _name_of(each),
            first if first == last else f"{first} to\n{last}",
            charge.kind if each.document is not None else f"{charge.kind} (not finished)",
            figure(charge.epsilon),
            f"{charge.delta:g}",
        )
    console = Console()
    if kept:
        console.print(table)
    console.print(Text(_spent(account.total)))
    if len(account.metrics) > 1:
        for name, own in account.metrics.items():
            console.print(Text(f"  {printable(name)} by itself: {_total(own)}", style="dim"))
    if account.unfinished:
        console.print(
            Text(
                f"{account.unfinished:,} of them {'was' if account.unfinished == 1 else 'were'} "
                "charged and not finished: the same command "
                "finishes them at no further charge."
            )
        )


def _manifest_of(kept: KeptRelease) -> dict[str, Any]:
    """What the document of a release says of itself; nothing if it was never finished."""
    found: dict[str, Any] = json.loads(kept.document)["manifest"] if kept.document else {}
    return found


def _name_of(kept: KeptRelease) -> Text:
    """The metric that was released, with its pair: of a metric that devices report as a part of a
    pair, the ledger charges the pair."""
    manifest = _manifest_of(kept)
    name = Text(printable(manifest.get("metric", kept.charge.metric)))
    if part := pair_part(manifest):
        name.append(f"\n{printable(part)}", style="dim")
    return name


def print_verified(manifest: Mapping[str, Any], *, signed: bool, by_key: bool) -> None:
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
    console = Console()
    console.print(heading)
    console.print(Text("The numbers are those of the manifest."))
    if by_key:
        console.print(Text("It is signed with this key."))
    elif signed:
        console.print(Text("It is signed; name the signer's public key with --key to check whose."))
    else:
        console.print(Text("It is not signed: anybody can have written it."))
    console.print(Text(line))


def _heading(manifest: Mapping[str, Any]) -> Text:
    windows = manifest["windows"]
    first, last = windows["first"], windows["last"]
    days = first if first == last else f"{first} to {last}"
    where = "".join(f", {name} = {value}" for name, value in manifest["where"].items())
    part = f", {pair}" if (pair := pair_part(manifest)) else ""
    return Text.assemble(
        (printable(manifest["metric"]), "bold"),
        (f"  {days}{where}{part}, {manifest['reports']:,} reports", "dim"),
    )


def _release_table(manifest: Mapping[str, Any], data: Mapping[str, Any]) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    columns = data["columns"]
    for name in columns:
        table.add_column(name, justify="left" if name in _WORDS else "right")
    shares = of_shares(manifest)
    for row in data["rows"][:MOST_ROWS]:
        table.add_row(
            *(_cell(name, value, shares=shares) for name, value in zip(columns, row, strict=True))
        )
    more = len(data["rows"]) - MOST_ROWS
    if more > 0:
        table.add_row(f"... {more:,} more")
    return table


_WORDS = ("window", "value", "series", "leader")


def _cell(name: str, value: Any, *, shares: bool) -> str:
    if isinstance(value, str):
        return isolated(printable(value))
    if value is None:
        return ""
    if name == "n":
        return f"{value:,}"
    return f"{value:z.2%}" if shares else f"{value:.5g}"


def _total(spent: ReleasesSpent) -> str:
    return "more than delta allows" if math.isinf(spent.epsilon) else figure(spent.epsilon)


def _spent(spent: ReleasesSpent) -> str:
    total = _total(spent)
    of = "" if spent.budget is None else f" of {spent.budget:g}"
    one = spent.releases == 1
    count = "1 release reveals" if one else f"{spent.releases:,} releases together reveal"
    return f"{count} epsilon {total}{of} of one device, at delta = {spent.delta:g}."
