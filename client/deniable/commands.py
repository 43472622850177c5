"""The SDK's subcommands: `deniable lint` for who declares metrics, `deniable sent` for whose
device it is."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from deniable.errors import DeniableError, RegistryError, StateError
from deniable.forecast import forecast
from deniable.mechanisms import AUTO, choice
from deniable.metric import Metric
from deniable.owner_texts import OWNER_TEXTS, OwnerLanguage
from deniable.problem import Problem
from deniable.registry import Registry

if TYPE_CHECKING:
    from deniable.sent import SentReport

__all__ = ["lint", "sent"]


@click.command(short_help="Check a metrics.toml and show what each metric reveals.")
@click.argument("path", default="metrics.toml", type=click.Path(path_type=Path))
@click.option("--explain", is_flag=True, help="Say why each metric has its mechanism.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def lint(path: Path, explain: bool, as_json: bool) -> None:
    """Report every mistake in PATH (metrics.toml) with its line; exit 1 if there is one.

    A registry without mistakes is shown as a table: what each metric asks, how much its
    answers reveal, and which mechanism gives them. A warning says what cannot work: a
    metric that has expired, or whose expected `devices` are too few to see a 1 % share.
    """
    try:
        registry: Registry | None = Registry.load(path)
        problems = _warnings(registry) if registry is not None else ()
    except RegistryError as error:
        registry, problems = None, error.problems
    if as_json:
        document = {
            "source": str(path),
            "problems": [dataclasses.asdict(problem) for problem in problems],
            "metrics": [_facts(metric) for metric in registry or ()],
        }
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        for problem in problems:
            click.echo(problem.describe(str(path)), err=True)
        if registry is not None:
            _print_metrics(registry)
            if explain:
                _print_explanations(registry)
    if registry is None:
        raise SystemExit(1)


@click.command(short_help="Show what this device has reported, in words.")
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="The app's state directory; by default the only one of this user.",
)
@click.option(
    "--registry",
    "registry_path",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The app's metrics.toml; needed in words for metrics with very many values.",
)
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page for a browser, with what the ledger has left.",
)
@click.option(
    "--language",
    type=click.Choice(get_args(OwnerLanguage)),
    default="en",
    show_default=True,
    help="The language of that page.",
)
@click.option(
    "--switch-off",
    "switch",
    flag_value="off",
    help="Report nothing from now on, and erase what waits.",
)
@click.option("--switch-on", "switch", flag_value="on", help="Report again, if the app may.")
@click.option("--erase", is_flag=True, help="Erase values, memories and reports; the ledger stays.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def sent(
    state_dir: Path | None,
    registry_path: Path | None,
    page: Path | None,
    language: OwnerLanguage,
    switch: str | None,
    erase: bool,
    as_json: bool,
) -> None:
    """Show every report of this device that is remembered, the newest first.

    Each line says what was reported, and how often the device would have said the same
    if something else were true. What was spent is never erased: the ledger stays, so that
    nothing can be asked twice.
    """
    try:
        registry = None if registry_path is None else Registry.load(registry_path)
        directory = _find_state(state_dir)
        if switch is not None or erase:
            _change(directory, switch, erase=erase)
            return
        if page is not None:
            page.write_text(_page(directory, registry, language), encoding="utf-8")
            click.echo(f"The page is in {page}.")
            return
        reports = _read_reports(directory, registry)
    except DeniableError as error:
        raise click.ClickException(str(error)) from None
    except (sqlite3.Error, OSError) as error:
        raise click.ClickException(f"the state file is out of reach: {error}") from None
    if as_json:
        click.echo(json.dumps([each.to_dict() for each in reports], indent=2, ensure_ascii=False))
    elif not reports:
        click.echo("This device has not reported anything yet.")
    else:
        _print_reports(reports)


def _warnings(registry: Registry) -> tuple[Problem, ...]:
    """What is allowed and still will not work."""
    today = datetime.now(UTC).date()
    found = []
    for metric in registry:
        messages = [forecast(metric)]
        if metric.expires < today:
            messages.append(f"expired on {metric.expires}: it is neither recorded nor accepted")
        line, where = registry.lines.get(metric.name), f"metrics.{metric.name}"
        found += [Problem(line, where, each, "warning") for each in messages if each]
    return tuple(found)


def _explanation(metric: Metric) -> str:
    """Why a metric has its mechanism, and what the choice costs."""
    if metric.mechanism != AUTO:
        reason = f"{metric.mechanism.replace('_', ' ')} is named in the registry"
    elif metric.longitudinal == "memoize":
        reason = _memory_reason(metric)
    elif metric.values is None:
        reason = "hashed projective geometry takes any string and needs the fewest devices"
    else:
        reason = choice.explain(len(metric.values), metric.epsilon).reason
    if metric.values is None:
        return f"{reason}."
    mechanism, size = metric.scheme.mechanism, len(metric.values)
    loss = choice.loss(mechanism, size, metric.epsilon)
    return f"{reason}. Its variance is {loss:.3f} times the least possible."


def _memory_reason(metric: Metric) -> str:
    if metric.values is None:
        return "cohort local hashing of a memo takes any string"
    lifetime = metric.lifetime_epsilon
    return choice.explain_memoized(len(metric.values), metric.name, metric.epsilon, lifetime).reason


def _facts(metric: Metric) -> dict[str, Any]:
    """What `lint` shows of a metric."""
    mechanism = metric.scheme.mechanism
    epsilon = mechanism.epsilon
    return {
        "name": metric.name,
        "type": metric.type,
        "values": None if metric.scheme.values is None else len(metric.scheme.values),
        "epsilon": epsilon,
        "lifetime_epsilon": metric.lifetime_epsilon,
        "longitudinal": metric.longitudinal,
        "lifetime_answers": None
        if metric.longitudinal == "memoize"
        else Fraction(metric.lifetime_epsilon) // Fraction(epsilon),
        "mechanism": mechanism.name,
        "parameters": mechanism.parameters(),
        "report_bytes": max(row.report_bytes for row in mechanism.rows),
        "scheme": metric.scheme.fingerprint,
        "explanation": _explanation(metric),
    }


def _print_metrics(registry: Registry) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{registry.source}: no mistakes", title_justify="left")
    for heading in ("metric", "values", "epsilon", "lifetime", "mechanism", "bytes", "scheme"):
        table.add_column(
            heading,
            justify="right" if heading in ("values", "epsilon", "lifetime", "bytes") else "left",
            no_wrap=heading == "scheme",
            overflow="fold",
        )
    for metric in registry:
        facts = _facts(metric)
        k = facts["parameters"].get("k")
        answers = facts["lifetime_answers"]
        lifetime = "a memo" if answers is None else f"{answers:,} answers"
        table.add_row(
            f"{metric.name}\n[dim]{metric.type}[/dim]",
            "open" if facts["values"] is None else f"{facts['values']:,}",
            f"{facts['epsilon']:.4g}",
            f"{metric.lifetime_epsilon:g}\n[dim]{lifetime}[/dim]",
            facts["mechanism"].replace("_", " ") + ("" if k is None else f"\n[dim]k = {k}[/dim]"),
            f"{facts['report_bytes']:,}",
            facts["scheme"],
        )
    console = Console()
    console.print(table)
    if registry.lifetime_epsilon is not None:
        console.print(f"All metrics together: lifetime epsilon {registry.lifetime_epsilon:g}")


def _print_explanations(registry: Registry) -> None:
    for metric in registry:
        click.echo(f"{metric.name}: {_explanation(metric)}")


def _find_state(directory: Path | None) -> Path:
    """The directory of the state to read.

    Raises:
        StateError: there is none, or more than one and none was named.
    """
    from deniable.state import FILE_NAME, states_root

    if directory is not None:
        if not (directory / FILE_NAME).exists():
            raise StateError(f"no state of deniable in {directory}")
        return directory
    root = states_root()
    found = sorted(path.parent for path in root.glob(f"*/{FILE_NAME}"))
    if len(found) == 1:
        return found[0]
    if not found:
        raise StateError(f"no app keeps its state under {root}: name one with --state-dir")
    listed = "".join(f"\n  --state-dir {path}" for path in found)
    raise StateError(f"more than one app keeps its state under {root}; choose:{listed}")


def _read_reports(directory: Path, registry: Registry | None) -> list[SentReport]:
    from deniable import outbox
    from deniable.sent import describe_entries
    from deniable.state import State

    state = State(directory)
    try:
        with state.transaction() as connection:
            entries = outbox.entries(connection)
    finally:
        state.close()
    return describe_entries(entries, registry)


def _change(directory: Path, switch: str | None, *, erase: bool) -> None:
    """Switch reporting on or off, and erase, as the owner of the device asks."""
    from deniable import memo, open_windows, outbox
    from deniable.state import State

    state = State(directory)
    try:
        if switch is not None:
            state.switch(on=switch == "on")
        if erase or switch == "off":
            with state.transaction() as connection:
                open_windows.clear(connection)
                memo.clear(connection)
                outbox.clear(connection)
    finally:
        state.close()
    if switch == "off":
        click.echo("Reporting is off, and what waited here is erased.")
    elif switch == "on":
        click.echo("Reporting is on again, if the app may.")
    if erase and switch != "off":
        click.echo("Values, memories and reports on this device are erased; the ledger stays.")


def _page(directory: Path, registry: Registry | None, language: OwnerLanguage) -> str:
    from deniable import outbox, owner
    from deniable.sent import describe_entries
    from deniable.state import State

    state = State(directory)
    try:
        with state.transaction() as connection:
            entries = outbox.entries(connection)
            ledger = owner.accounts(connection, registry)
            waiting = owner.waiting_values(connection)
        sending = not state.switched_off
    finally:
        state.close()
    reports = describe_entries(entries, registry, OWNER_TEXTS[language])
    return owner.owner_page(reports, ledger, waiting, sending=sending, language=language)


def _print_reports(reports: list[SentReport]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="What this device has reported", title_justify="left", show_lines=True)
    for heading in ("window", "question", "status", "in words"):
        table.add_column(heading, overflow="fold")
    for report in reports:
        status = report.status if report.reason is None else f"{report.status}: {report.reason}"
        table.add_row(
            report.window,
            f"{report.metric}\n[dim]{escape(report.description)}[/dim]",
            escape(status),
            escape(report.words),
        )
    Console().print(table)
