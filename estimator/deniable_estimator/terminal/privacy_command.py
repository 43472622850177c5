"""`deniable plan privacy`: what reports reveal of a device, and what published sums do.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from deniable.tools.command_line import command
from deniable_collector.options import registry_option
from deniable_estimator.terminal.options import Real, as_json, say

if TYPE_CHECKING:
    from deniable_estimator.privacy.guarantees import Guarantee, Together
    from deniable_estimator.privacy.outsider import Outsider

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
    from deniable_estimator.document.document import plain
    from deniable_estimator.privacy.computing import guarantee_in, together
    from deniable_estimator.privacy.outsider import DELTA, LEAST_REPORTS, outsider_of
    from deniable_estimator.terminal.privacy_document import privacy_document

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
    asked = reports or LEAST_REPORTS, DELTA if delta is None else delta
    if page:
        from deniable_estimator.privacy.report import report

        click.echo(report(declared, *asked))
        return
    chosen = None if metric is None else find_metric(declared, metric)
    found: Guarantee | Together | Outsider
    if outsider:
        found = outsider_of(declared, chosen, *asked)
    elif chosen:
        found = guarantee_in(declared, chosen, household)
    else:
        found = together(declared, household)
    say(form, lambda: plain(found), lambda: privacy_document(found))
