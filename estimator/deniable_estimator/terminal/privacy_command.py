"""`deniable plan privacy`: what reports reveal of a device, and what published sums do.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.tools.command_line import command
from deniable_collector.options import registry_option
from deniable_estimator.terminal.options import Real, as_json, reported

if TYPE_CHECKING:
    from deniable import Metric, Registry

# numpy and rich take longer to import than `deniable --help` should.


@command("deniable plan privacy browser")
@click.argument("metric", required=False)
@registry_option
@click.option(
    "--household",
    default=1,
    show_default=True,
    type=click.IntRange(1, 10**6),
    help="How many devices have the same value, so that one reveals the others'.",
)
@click.option(
    "--outsider",
    is_flag=True,
    help="Show what published sums reveal to a reader who sees nothing else.",
)
@click.option(
    "--delta",
    type=Real(1e-30, 1e-3),
    help="With --outsider: the probability with which a bound may fail; by default 1e-8.",
)
@click.option(
    "--reports",
    type=click.IntRange(1, 10**12),
    help="With --outsider: how many reports each published sum has at least, of a segment if the "
    "metric has segments; by default 1000.",
)
@click.option(
    "--report",
    "page",
    is_flag=True,
    help="Write the guarantee of all metrics as a page of HTML to be printed: deniable plan "
    "privacy --report > privacy.html.",
)
@as_json
@reported
def privacy(
    metric: str | None,
    registry: Path,
    household: int,
    outsider: bool,
    delta: float | None,
    reports: int | None,
    page: bool,
    form: str | None,
) -> None:
    """Show what the reports of METRIC reveal about a device at most; without METRIC, those of all
    metrics together.

    Every figure is computed from the probabilities in force, and rounded up.
    """
    from deniable import Registry
    from deniable_estimator.asking.query import find_metric

    if not (outsider or page) and (delta is not None or reports is not None):
        raise click.UsageError("--delta and --reports belong to --outsider and --report")
    if page and (metric is not None or outsider or household != 1 or form is not None):
        raise click.UsageError(
            "--report is one page of all metrics: only --registry, --reports and --delta go with it"
        )
    if outsider and household != 1:
        raise click.UsageError(
            "--household is of a device's own guarantee: leave it out with --outsider"
        )
    declared = Registry.load(registry)
    if page:
        from deniable_estimator.privacy.outsider import DELTA, LEAST_REPORTS
        from deniable_estimator.privacy.report import report

        asked = reports or LEAST_REPORTS, DELTA if delta is None else delta
        click.echo(report(declared, *asked))
        return
    chosen = None if metric is None else find_metric(declared, metric)
    document: dict[str, Any]
    view: Any
    if outsider:
        document, view = _outsider(declared, chosen, reports, delta)
    else:
        document, view = _guarantee(declared, chosen, household)
    if form == "json":
        click.echo(json.dumps(document, ensure_ascii=False, allow_nan=False))
        return
    from rich.console import Console

    Console().print(view)


def _guarantee(declared: Registry, metric: Metric | None, household: int) -> tuple[Any, Any]:
    """What reports reveal, for JSON and for a terminal."""
    from deniable_estimator.privacy import guarantee_in, together
    from deniable_estimator.terminal.privacy_view import guarantee_view, together_view

    if metric is None:
        whole = together(declared, household)
        return whole.to_dict(), together_view(whole)
    one = guarantee_in(declared, metric, household)
    return one.to_dict(), guarantee_view(one)


def _outsider(
    declared: Registry, metric: Metric | None, reports: int | None, delta: float | None
) -> tuple[Any, Any]:
    """What published sums reveal, for JSON and for a terminal."""
    from deniable_estimator.privacy.outsider import (
        DELTA,
        LEAST_REPORTS,
        outsider_of,
        outsider_together,
    )
    from deniable_estimator.terminal.privacy_view import outsider_view

    asked = reports or LEAST_REPORTS, DELTA if delta is None else delta
    if metric is None:
        found = outsider_together(declared, *asked)
    else:
        found = outsider_of(declared, metric, *asked)
    return found.to_dict(), outsider_view(found)
