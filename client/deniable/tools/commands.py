"""The SDK's subcommands: `deniable lint` for those who declare metrics, `deniable sent` for the
owner of a device."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import click

from deniable.device.sent import OwnerLanguage
from deniable.protocol import windows
from deniable.protocol.errors import Problem, RegistryError, Severity
from deniable.protocol.lasting import Lasting, lasting, remedies, today
from deniable.protocol.mechanisms import AUTO, MAX_MEMO_EPSILON, FrequencyOracle, Memoizing
from deniable.protocol.mechanisms.choice import loss
from deniable.protocol.metric import Metric
from deniable.protocol.registry import Registry
from deniable.tools import edits, sent_command
from deniable.tools.command_line import (
    MISSING,
    command,
    forecasts,
    installed,
    json_option,
    print_json,
    registry_argument,
)


@command("deniable lint --explain")
@registry_argument
@click.option("--explain", is_flag=True, help="Say why each metric has its mechanism.")
@click.option(
    "--since",
    type=click.Path(path_type=Path),
    metavar="OLD",
    help="An earlier metrics.toml: say what each edit costs on devices that have reported.",
)
@json_option
@click.option(
    "--notice",
    "as_notice",
    is_flag=True,
    help="Print a privacy notice and a question for consent, as Markdown.",
)
@click.option(
    "--lang",
    type=click.Choice(get_args(OwnerLanguage)),
    default="en",
    show_default=True,
    help="The language of --notice.",
)
def lint(
    path: Path,
    explain: bool,
    since: Path | None,
    as_json: bool,
    as_notice: bool,
    lang: OwnerLanguage,
) -> None:
    """Report every mistake in PATH (metrics.toml) with its line; exit 1 if there is one.

    A registry without mistakes is shown as a table: the metrics, how much their reports
    reveal, for how long a device reports, and their mechanisms. Warnings name what cannot work: a
    metric that has expired, or whose devices fall silent before it expires, or whose expected
    `devices` are too few to detect a 5% share, or whose lifetime epsilon would tell at least twice
    as much if it was divided otherwise. Notes say that devices are too few to detect a 1% share,
    which strings a discovery finds, that another division of the lifetime epsilon would tell at
    least 1.5 times as much, and what an edit costs: for each metric with memos, and with --since
    for each change.

    Where the estimator is installed, the dashboard's files are checked too: those that
    DENIABLE_DATA and DENIABLE_BOARDS name.
    """
    registry, problems = examined(path, None if since is None else Registry.load(since))
    if as_notice:
        _print_notice(registry, problems, str(path), lang)
        return
    # Other files of an operator, as installed packages check them.
    checks = installed("deniable.lint") if registry else ()
    files = {name: found for check in checks for name, found in check(registry, os.environ)}
    metrics = _facts(registry) if registry else []
    if as_json:
        document = {
            "source": str(path),
            "problems": [dataclasses.asdict(problem) for problem in problems],
            "metrics": metrics,
            "files": [
                {"source": name, "problems": [dataclasses.asdict(each) for each in found]}
                for name, found in files.items()
            ],
        }
        print_json(document)
    else:
        print_problems(problems, str(path))
        if registry and not _wrong(problems):
            _print_metrics(registry, metrics)
            for facts in metrics if explain else ():
                lasts = f" {facts['lasting']['text'].capitalize()}." if facts["lasting"] else ""
                click.echo(f"{facts['name']}: {facts['explanation']}{lasts}")
        for name, found in files.items():
            print_problems(found, name)
            if not found:
                click.echo(f"{name}: no mistakes")
    if any(map(_wrong, (problems, *files.values()))):
        raise SystemExit(1)


def _print_notice(
    registry: Registry | None, problems: Sequence[Problem], source: str, lang: OwnerLanguage
) -> None:
    """The notice on the standard output, if nothing is wrong; what is wrong, beside it."""
    from deniable.tools.notice import notice, unnamed

    problems = [each for each in problems if each.severity != "note"]
    if registry and not _wrong(problems):
        problems = [*unnamed(registry)] or problems
    print_problems(problems, source)
    if registry is None or _wrong(problems):
        raise SystemExit(1)
    click.echo(notice(registry, lang), nl=False)


def _wrong(problems: Iterable[Problem]) -> bool:
    return any(each.severity == "error" for each in problems)


@command(
    sent_command.EXAMPLE,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def sent(arguments: tuple[str, ...]) -> None:
    """Run the command that also works without click."""
    raise SystemExit(sent_command.main(arguments))


def examined(
    path: Path, before: Registry | None = None
) -> tuple[Registry | None, Sequence[Problem]]:
    """The registry in a file, with the remarks about it; none if the file has mistakes, with
    these."""
    try:
        registry = Registry.load(path)
    except RegistryError as error:
        return None, error.problems
    return registry, remarks(registry, before)


def remarks(registry: Registry, before: Registry | None = None) -> list[Problem]:
    """What can be read but protects nothing (an error), what will not work (a warning), and what
    edits cost, in the order of the file."""
    found = expired(registry)
    crowd = forecasts()
    if crowd is None:
        found.append(Problem(None, "", MISSING, "note"))
    lasts = lasting(registry, today())
    for metric in registry:
        if metric.name in registry.unasked:
            continue  # a pair is reported in its place
        told = _remarked(metric, registry, lasts.get(metric.name), crowd)
        found += [registry.problem(metric, *each) for each in told]
    found += edits.foresee(registry) if before is None else edits.compare(before, registry)
    return sorted(found, key=lambda problem: problem.line or 0)


def _remarked(
    metric: Metric, registry: Registry, lasts: Lasting | None, crowd: Any
) -> Iterator[tuple[str, Severity] | tuple[str, Severity, str]]:
    """What to know of a metric that devices report: a sentence, how bad it is, and perhaps the key
    that it is about."""
    if unprotected := _unprotected(metric, registry):
        yield unprotected, "error", "lifetime_epsilon"
    elif crowd is not None:
        yield from crowd.remarks(metric, registry.lifetime_epsilon)
    for message in _on_the_web(metric):
        yield message, "note"
    cost, cap = metric.scheme.mechanism.cost, registry.lifetime_epsilon
    beyond = cap is not None and cost > cap
    if lasts and lasts.silent is not None and not beyond:
        yield _silence(metric, registry, lasts, crowd), "warning"
    if short := _short(metric):
        yield short, "warning", "lifetime_epsilon"
    if metric.type.of:
        yield _added_up(metric, registry), "note"
    if beyond:
        yield (
            f"one report costs {cost:.4g}, above the registry's lifetime_epsilon {cap:g}, so no "
            "device can ever report",
            "warning",
        )
    if life := metric.type.life(metric.memo_limit):
        yield life, "note"
    if metric.answer == "at_once":
        # By the time of its reports.
        yield (
            "is answered at_once, so the network sees, to within ten seconds, when a device that "
            f"takes part first records it in a {metric.window}. Record it in every case: otherwise "
            "a report also says that there was such a case",
            "note",
        )


def print_problems(problems: Iterable[Problem], source: str) -> None:
    """Print each problem with its place, as errors are printed."""
    for problem in problems:
        click.echo(problem.describe(source), err=True)


def load_registry(path: Path) -> Registry:
    """The registry of a command that needs a good one; metrics that have expired are warned of.

    Raises:
        RegistryError: it has mistakes.
    """
    registry = Registry.load(path)
    print_problems(expired(registry), str(path))
    return registry


def expired(registry: Registry) -> list[Problem]:
    """A warning for each metric whose last day is over."""
    first = today()
    return [
        registry.problem(
            metric,
            f"expired on {metric.expires}: it is neither recorded nor accepted",
            "warning",
        )
        for metric in registry
        if metric.expires < first
    ]


def _on_the_web(metric: Metric) -> Iterator[str]:
    """What a browser's storage and its visitors change, for a metric that is recorded there."""
    if "web" not in metric.platform:
        return
    anew = (
        "Safari deletes it after 7 days without a visit, people clear it, and a private window "
        "begins without it"
    )
    if metric.longitudinal == "memoize":
        yield (
            "is memoized and recorded on the web: when a browser's storage is deleted, the keys of "
            f"memos are lost, and the same value gets a second memo ({anew}). So lifetime_epsilon "
            "bounds one life of the storage"
        )
    else:
        yield (
            "is recorded on the web, where lifetime_epsilon bounds one life of a browser's "
            f"storage: {anew}"
        )
    if metric.answer == "at_close":
        yield (
            f"is recorded on the web and reported after its {metric.window} has ended: a visitor "
            "who does not come back then never reports. Where the first value of a "
            f'{metric.window} is enough, set answer = "at_once" and aggregate = "first"'
        )


def _silence(metric: Metric, registry: Registry, told: Lasting, crowd: Any) -> str:
    """That devices fall silent before a metric expires, with lines to paste."""
    budget = f"lifetime_epsilon {metric.lifetime_epsilon:g}"
    if told.capped:
        budget = f"the registry's lifetime_epsilon {registry.lifetime_epsilon:g}"
    warning = (
        f"{told.text} until it expires, as {budget} is spent then; from then on only newer devices "
        "report"
    )
    options = []
    for lines, made, then in remedies(metric, registry, today()):
        shows = None if crowd is None else crowd.shows(made)
        comment = then.text + (f"; {shows}" if shows else "")
        options.append(f"    {lines}  # {comment}".replace("\n", "\n    "))
    if not options:
        return f"{warning}. Make the epsilons smaller, the windows longer, or the budget larger"
    these = "this" if len(options) == 1 else f"one of these {len(options)}"
    return "\n".join((f"{warning}. Write {these}:", *options))


def _added_up(metric: Metric, registry: Registry) -> str:
    """What a pair and its metrics reveal of the same values in one window."""
    about = registry.about(metric)
    total = float(sum(Fraction(each.scheme.mechanism.epsilon) for each in about))
    if len(about) == 1:
        spared = " and ".join(name for name in metric.type.of if name in registry.unasked)
        return (
            f"{spared} are not reported by themselves: one report of a window is about their "
            f"values, of epsilon {total:.4g}, and their shares have wider intervals"
        )
    told = (
        f"up to {len(about)} reports of a window are about the same values "
        f"({', '.join(each.name for each in about)}): their epsilons add up to {total:.4g}"
    )
    if metric.type.forget is None:
        told += '. forget = "marginals" spares those of the two metrics alone'
    return told


def _unprotected(metric: Metric, registry: Registry) -> str | None:
    """An error if the reports of a usual year together have no bound that means anything. With
    memos the bound of a memo stands, which the registry limits to the same epsilon."""
    if metric.longitudinal == "memoize":
        return None
    epsilon = Fraction(metric.scheme.mechanism.epsilon)
    limits = [metric.lifetime_epsilon, registry.lifetime_epsilon or metric.lifetime_epsilon]
    allowed = Fraction(Fraction(min(limits)) // epsilon)
    taken = Fraction(windows.IN_A_YEAR[metric.window] * metric.rate)
    year = float(min(allowed, taken) * epsilon)
    if year <= MAX_MEMO_EPSILON:
        return None
    rate = float(MAX_MEMO_EPSILON / windows.IN_A_YEAR[metric.window] / epsilon)
    # A metric has one of the two keys.
    fewer = f"sample_rate = {_down(rate)} at most"
    if metric.one_in is not None:
        fewer = f"one_in = {math.ceil(1 / rate)} at least"
    return (
        f"is {metric.lifetime_epsilon:g}, so the reports of a usual year together reveal epsilon "
        f"{year:.4g}: above {MAX_MEMO_EPSILON:g} that protects nothing. Set lifetime_epsilon = "
        f"{MAX_MEMO_EPSILON:g} at most, or {fewer}"
    )


def _short(metric: Metric) -> str | None:
    """That a lifetime has room for less than its decimals say, which floats are not exactly: for
    what a report or a memo is charged."""
    mechanism, memo = metric.scheme.mechanism, metric.longitudinal == "memoize"
    one = metric.memo_limit if memo else metric.epsilon
    charged = mechanism.lifetime_epsilon if isinstance(mechanism, Memoizing) else mechanism.cost
    parts = Decimal(repr(metric.lifetime_epsilon)), Decimal(repr(one))
    meant = int(parts[0] // parts[1])
    room = Fraction(metric.lifetime_epsilon) // Fraction(charged)
    if room >= meant:
        return None
    digits = 1 - min(int(each.as_tuple().exponent) for each in parts)
    return (
        f"{meant} x {one:g} is a little more than {metric.lifetime_epsilon:g} in binary floats, so "
        f"there is room for {room} {'memos' if memo else 'reports'}: write lifetime_epsilon = "
        f"{parts[0] + Decimal(1).scaleb(-digits)}"
    )


def _down(rate: float) -> str:
    """A rate with two digits that matter, not above it."""
    digits = 1 - math.floor(math.log10(rate))
    return f"{math.floor(rate * 10**digits) / 10**digits:.{max(digits, 0)}f}"


def _explanation(metric: Metric) -> str:
    """Why a metric has its mechanism, and how much variance that costs."""
    if metric.mechanism != AUTO:
        reason = f"{metric.mechanism.replace('_', ' ')} is named in the registry"
    else:
        memo = metric.memo_limit if metric.longitudinal == "memoize" else None
        reason = metric.type.explain(metric.name, metric.epsilon, memo)
    mechanism = metric.scheme.mechanism
    if not metric.values or not isinstance(mechanism, FrequencyOracle):
        return f"{reason}."
    lost = loss(mechanism, len(metric.values), metric.epsilon)
    return f"{reason}. Its variance is {lost:.3f} times the least possible."


def _facts(registry: Registry) -> list[dict[str, Any]]:
    """What is shown of each metric; `reported_by` is the pair that devices report in its place."""
    lasts = lasting(registry, today())
    facts = []
    for metric in registry:
        mechanism, told = metric.scheme.mechanism, lasts.get(metric.name)
        pair = registry.unasked.get(metric.name)
        facts.append({
            "name": metric.name,
            "type": metric.type.name,
            "values": len(metric.values) or None,
            "epsilon": mechanism.epsilon,
            "lifetime_epsilon": metric.lifetime_epsilon,
            "longitudinal": metric.longitudinal,
            "lasting": None if told is None else {"text": told.text, **told._asdict()},
            "lifetime_reports": None
            if metric.longitudinal == "memoize"
            else Fraction(metric.lifetime_epsilon) // Fraction(mechanism.epsilon),
            "mechanism": mechanism.name,
            "parameters": mechanism.parameters(),
            "report_bytes": max(row.report_bytes for row in mechanism.rows),
            "scheme": metric.scheme.fingerprint,
            "explanation": _explanation(metric),
            "reported_by": None if pair is None else pair.name,
        })  # fmt: skip
    return facts


def _print_metrics(registry: Registry, metrics: Iterable[Mapping[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{registry.source}: no mistakes", title_justify="left")
    for heading in ("metric", "values", "epsilon", "lifetime", "mechanism", "bytes", "scheme"):
        right = heading in ("values", "epsilon", "lifetime", "bytes")
        table.add_column(
            heading,
            justify="right" if right else "left",
            no_wrap=heading == "scheme",
            overflow="fold",
        )
    for metric, facts in zip(registry, metrics, strict=True):
        k = facts["parameters"].get("k")
        lifetime = facts["lasting"]["text"].removeprefix("a device ") if facts["lasting"] else ""
        if pair := facts["reported_by"]:
            # Its own epsilon is never spent: the pair's is.
            lifetime = f"by {pair}"
        table.add_row(
            f"{metric.name}\n[dim]{metric.type.name}[/dim]",
            metric.type.domain,
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
