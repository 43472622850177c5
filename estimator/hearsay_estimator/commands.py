"""`hearsay estimate`, `trend`, `anomalies`, `plan`, `simulate` and `privacy`.

Exit codes: 0 when there is an answer, 1 when something is wrong, 2 for a call that makes
no sense, 3 when nothing has been reported yet, 4 when `hearsay anomalies` raises an alarm.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, ParamSpec, TypeVar

import click

from hearsay import HearsayError
from hearsay_collector.numeric import Real

if TYPE_CHECKING:
    from hearsay import Metric
    from hearsay_collector.stores.base import Store
    from hearsay_estimator.estimate import Estimate

# numpy and rich take longer to import than `hearsay --help` should.

__all__ = ["ALARM", "NO_DATA", "anomalies", "estimate", "plan", "privacy", "simulate", "trend"]

NO_DATA = 3
"""The exit code when the range holds no reports."""

ALARM = 4
"""The exit code when windows look dishonest."""

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Less than a device in a billion: below that, nothing that a plan says is a number any more.
_part = Real(1e-9, 1)
_day = click.DateTime(["%Y-%m-%d"])
_registry = click.option(
    "--registry",
    envvar="HEARSAY_REGISTRY",
    default="metrics.toml",
    show_default=True,
    show_envvar=True,
    type=click.Path(path_type=Path),
    help="The file that declares the metrics.",
)
_store = click.option(
    "--store",
    help="The address of the collector's store; HEARSAY_STORE if not given.",
)
_first = click.option("--from", "first", type=_day, help="First day (UTC) of the range.")
_last = click.option("--to", "last", type=_day, help="Last day (UTC) of the range.")
_candidates = click.option(
    "--candidates",
    type=click.Path(path_type=Path),
    help="A file of the strings to look for, one on each line.",
)
_level = click.option(
    "--level",
    default=0.95,
    show_default=True,
    type=Real(0, 1, min_open=True, max_open=True),
    help="Of the intervals; 1 minus it is the level of detection.",
)
_adjust = click.option(
    "--adjust",
    default="bh",
    show_default=True,
    type=click.Choice(["bh", "bonferroni"]),
    help="For how many values were asked: bh suits lists, bonferroni alerts.",
)
_fakes = click.option(
    "--fakes",
    envvar="HEARSAY_FAKES",
    default=0.01,
    show_default=True,
    show_envvar=True,
    type=Real(0, 1),
    help="The part of all reports that the poisoning budget takes to be fake.",
)
_alarm = click.option(
    "--alarm-level",
    envvar="HEARSAY_ALARM_LEVEL",
    default=0.001,
    show_default=True,
    show_envvar=True,
    type=Real(0, 1, min_open=True, max_open=True),
    help="How often honest reports may be called anomalous.",
)
_json = click.option("--json", "form", flag_value="json", help="Print JSON and nothing else.")
_csv = click.option("--csv", "form", flag_value="csv", help="Print CSV and nothing else.")


def _reported(command: Callable[_P, _R]) -> Callable[_P, _R]:
    """Show hearsay's errors as the command line does: their message, and exit 1."""

    @functools.wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return command(*args, **kwargs)
        except HearsayError as error:
            raise click.ClickException(str(error)) from error

    return run


@contextmanager
def _progress(description: str) -> Iterator[None]:
    """A moving bar on a terminal's standard error, gone when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        progress.add_task(description, total=None)
        yield


@click.command()
@click.argument("metric")
@_first
@_last
@_registry
@_store
@_candidates
@_level
@_adjust
@_fakes
@_alarm
@_json
@_csv
@_reported
def estimate(
    metric: str,
    first: datetime | None,
    last: datetime | None,
    registry: Path,
    store: str | None,
    candidates: Path | None,
    level: float,
    adjust: Literal["bh", "bonferroni"],
    fakes: float,
    alarm_level: float,
    form: str | None,
) -> None:
    """Estimate how devices are spread over the values of METRIC.

    Every window that touches the range counts; without --from and --to, all of them.
    """
    from hearsay import Registry
    from hearsay_estimator.reading import find_metric, read

    declared = Registry.load(registry)
    asked = _read_candidates(find_metric(declared, metric), candidates)
    with _opened(store) as tallies, _progress("Estimating"):
        answer = read(
            tallies,
            declared,
            metric,
            first and first.date(),
            last and last.date(),
            asked,
            level=level,
            adjust=adjust,
        )
    _print(replace(answer, fakes=fakes, alarm_level=alarm_level), form)
    if answer.n == 0:
        _no_data(metric)


@click.command()
@click.argument("metric")
@_first
@_last
@click.option(
    "--by",
    type=click.Choice(["day", "week", "month"]),
    help="Add windows up to these; as the metric's own windows are, if not given.",
)
@click.option(
    "--value",
    help='Show this one; "true", or the largest in the newest period, if not given.',
)
@_registry
@_store
@_candidates
@_level
@_json
@_csv
@_reported
def trend(
    metric: str,
    first: datetime | None,
    last: datetime | None,
    by: Literal["day", "week", "month"] | None,
    value: str | None,
    registry: Path,
    store: str | None,
    candidates: Path | None,
    level: float,
    form: str | None,
) -> None:
    """Show METRIC over time, and which of its changes are more than noise.

    The table shows one value; --json and --csv hold them all.
    """
    from hearsay import Registry
    from hearsay_estimator.reading import find_metric
    from hearsay_estimator.trend import trend as read_trend

    declared = Registry.load(registry)
    asked = _read_candidates(find_metric(declared, metric), candidates)
    with _opened(store) as tallies, _progress("Estimating"):
        answer = read_trend(
            tallies,
            declared,
            metric,
            first and first.date(),
            last and last.date(),
            asked,
            by=by,
            level=level,
        )
    if form == "json":
        click.echo(json.dumps(answer.to_dict(), ensure_ascii=False))
    elif form == "csv":
        click.echo(answer.to_csv(), nl=False)
    elif answer.answered:
        from rich.console import Console

        from hearsay_estimator.trend_view import leading_value, trend_view

        Console().print(trend_view(answer, value or leading_value(answer)))
    if not answer.answered:
        _no_data(metric)


@click.command()
@click.argument("metric")
@_first
@_last
@_registry
@_store
@_candidates
@_alarm
@_json
@_reported
def anomalies(
    metric: str,
    first: datetime | None,
    last: datetime | None,
    registry: Path,
    store: str | None,
    candidates: Path | None,
    alarm_level: float,
    form: str | None,
) -> None:
    """Say which windows of METRIC look unlike honest reports, or unlike the windows before.

    Exits with 4 on an alarm.
    """
    from hearsay import Registry
    from hearsay_estimator.history import inspect
    from hearsay_estimator.reading import find_metric
    from hearsay_estimator.trend import trend as read_trend

    declared = Registry.load(registry)
    asked = _read_candidates(find_metric(declared, metric), candidates)
    days = (first and first.date(), last and last.date())
    with _opened(store) as tallies, _progress("Looking at each window"):
        found = inspect(read_trend(tallies, declared, metric, *days, asked), alarm_level)
    if form == "json":
        click.echo(json.dumps(found.to_dict(), ensure_ascii=False, allow_nan=False))
    elif found.windows:
        from rich.console import Console

        from hearsay_estimator.render import history_view

        Console().print(history_view(found))
    if not found.windows:
        _no_data(metric)
    if found.anomalous:
        sys.exit(ALARM)


@contextmanager
def _opened(address: str | None) -> Iterator[Store]:
    """The store at that address, or where the environment says, closed afterwards."""
    from hearsay_collector.settings import Settings
    from hearsay_collector.stores import store_of

    settings = Settings.from_env()
    store = store_of(replace(settings, store=address) if address else settings)
    try:
        yield store
    finally:
        store.close()


def _no_data(metric: str) -> NoReturn:
    click.echo(
        f"No reports of {metric!r} in that range. Check that --store is the collector's "
        "(HEARSAY_STORE), that the range holds a window that has closed, and that devices "
        "send to the collector: its /v1/registry must show this metric.",
        err=True,
    )
    sys.exit(NO_DATA)


def _read_candidates(metric: Metric, path: Path | None) -> list[str] | None:
    if path is None:
        if metric.values is None:
            raise click.UsageError(
                f"{metric.name!r} takes any string: name those to look for with --candidates FILE"
            )
        return None
    from hearsay.value_list import read_values

    with _progress("Reading the candidates"):
        return read_values(path)


def _print(answer: Estimate, form: str | None) -> None:
    if form == "json":
        click.echo(json.dumps(answer.to_dict(), ensure_ascii=False))
    elif form == "csv":
        click.echo(answer.to_csv(), nl=False)
    else:
        from rich.console import Console

        from hearsay_estimator.render import estimate_view

        Console().print(estimate_view(answer))


@click.command()
@click.option("--size", required=True, type=click.IntRange(2, 10**9), help="How many values.")
@click.option(
    "--epsilon",
    required=True,
    type=Real(0.001),
    help="What one report may reveal at most.",
)
@click.option("--devices", required=True, type=click.IntRange(1, 10**12), help="How many devices.")
@click.option(
    "--share",
    type=_part,
    help="The share of interest; 1/size if not given.",
)
@click.option(
    "--half-width",
    default=0.01,
    show_default=True,
    type=_part,
    help="The half width wished for the 95 % interval.",
)
@click.option(
    "--sample-rate",
    default=1.0,
    show_default=True,
    type=_part,
    help="The chance that a device answers in a window.",
)
@click.option(
    "--lifetime-epsilon",
    type=Real(0.001, 10_000),
    help="What all answers of a device may reveal together; with --memoize, all of one value.",
)
@click.option(
    "--memoize",
    is_flag=True,
    help='Plan for devices that keep their noise (longitudinal = "memoize").',
)
@click.option("--mechanism", default="auto", show_default=True, help="As the registry names it.")
@_fakes
@_json
@_reported
def plan(
    size: int,
    epsilon: float,
    devices: int,
    share: float | None,
    half_width: float,
    sample_rate: float,
    lifetime_epsilon: float | None,
    memoize: bool,
    mechanism: str,
    fakes: float,
    form: str | None,
) -> None:
    """Say what a metric will be able to see, before it is declared."""
    from hearsay_estimator import planning

    if memoize and lifetime_epsilon is None:
        raise click.UsageError("--memoize needs --lifetime-epsilon: it is what a memo may reveal")
    made = planning.plan(
        size,
        epsilon,
        devices,
        mechanism=mechanism,
        share=share,
        half_width=half_width,
        sample_rate=sample_rate,
        lifetime_epsilon=lifetime_epsilon,
        memoize=memoize,
        fakes=fakes,
    )
    if form == "json":
        click.echo(json.dumps(made.to_dict()))
        return
    from rich.console import Console

    from hearsay_estimator.render import plan_view

    Console().print(plan_view(made))


@click.command()
@click.argument("metric")
@_registry
@click.option(
    "--devices", required=True, type=click.IntRange(1, 10**12), help="How many devices run the app."
)
@click.option(
    "--zipf",
    default=1.0,
    show_default=True,
    type=Real(0, 100),
    help="The values' shares fall as 1 / rank**ZIPF.",
)
@click.option(
    "--shares",
    type=click.Path(path_type=Path),
    help="A CSV file of value,weight lines, instead of --zipf.",
)
@_candidates
@click.option("--seed", type=click.IntRange(0), help="Draw the same population every time.")
@_level
@_adjust
@_json
@_reported
def simulate(
    metric: str,
    registry: Path,
    devices: int,
    zipf: float,
    shares: Path | None,
    candidates: Path | None,
    seed: int | None,
    level: float,
    adjust: Literal["bh", "bonferroni"],
    form: str | None,
) -> None:
    """Draw one window's tally of METRIC from an invented population, and estimate it.

    The tally is drawn from its exact distribution, so 1,000,000,000 devices take seconds.
    """
    import numpy as np

    from hearsay import Registry
    from hearsay_estimator.estimate import estimate as estimated
    from hearsay_estimator.population import read_shares, zipf_shares
    from hearsay_estimator.reading import find_metric
    from hearsay_estimator.sampling import sample_tally

    declared = find_metric(Registry.load(registry), metric)
    if candidates and declared.values:
        raise click.UsageError(f"{metric!r} lists its values: leave --candidates out")
    asked = _read_candidates(declared, candidates)
    values = asked or declared.values or ()
    spread = read_shares(shares, values) if shares else zipf_shares(len(values), zipf)
    rng = np.random.default_rng(seed)
    with _progress(f"Simulating {devices:,} devices"):
        counts = rng.multinomial(devices, spread)
        answering = rng.binomial(counts, declared.sample_rate)
        tally = sample_tally(declared.scheme, answering, rng, values=asked, metric=metric)
        answer = estimated(tally, declared.scheme, asked, level=level, adjust=adjust)
    truth = counts / devices
    if form == "json":
        report: dict[str, Any] = {"devices": devices, **answer.to_dict()}
        for row, share in zip(report["values"], truth.tolist(), strict=True):
            row["truth"] = share
        click.echo(json.dumps(report, ensure_ascii=False))
        return
    from rich.console import Console

    from hearsay_estimator.render import estimate_view

    Console().print(estimate_view(answer, truth))


@click.command()
@click.argument("metric", required=False)
@_registry
@click.option(
    "--household",
    default=1,
    show_default=True,
    type=click.IntRange(1, 10**6),
    help="How many devices hold the same value: what is known of one tells of the others.",
)
@_json
@_reported
def privacy(metric: str | None, registry: Path, household: int, form: str | None) -> None:
    """Say what the reports of METRIC reveal of a device at most; of all metrics together if
    no METRIC is named.

    Every figure is computed from the probabilities in force, and rounded against us.
    """
    from hearsay import Registry
    from hearsay_estimator.privacy import guarantee, together
    from hearsay_estimator.privacy_view import guarantee_view, together_view
    from hearsay_estimator.reading import find_metric

    declared = Registry.load(registry)
    if metric is None:
        whole = together(declared, household)
        document, view = whole.to_dict(), together_view(whole)
    else:
        one = guarantee(find_metric(declared, metric), declared.lifetime_epsilon, household)
        document, view = one.to_dict(), guarantee_view(one)
    if form == "json":
        click.echo(json.dumps(document, ensure_ascii=False, allow_nan=False))
        return
    from rich.console import Console

    Console().print(view)
