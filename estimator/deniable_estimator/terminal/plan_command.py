"""`deniable plan`: what a metric will detect, computed before it is declared.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call.
"""

from __future__ import annotations

from typing import Literal

import click

from deniable import windows
from deniable.types.discovery import DEFAULT_LENGTH, MAX_LENGTH
from deniable_estimator.forecasting.lifetime_split import SMALL_SHARE
from deniable_estimator.terminal import planned
from deniable_estimator.terminal.options import as_json, fakes_option, reported
from deniable_estimator.terminal.real_numbers import AnyReal, Real

# numpy and rich take longer to import than `deniable --help` should.

_part = Real(1e-9, 1)
"""One device in a billion; below that, the numbers of a plan overflow."""

_DEVICES = 100_000
"""With --years figures depend on the number of devices by a factor alone, so it has a default."""


@click.command()
@click.option("--size", "--values", type=click.IntRange(2, 10**9), help="How many values.")
@click.option("--number", is_flag=True, help="Plan a number in place of values.")
@click.option(
    "--pair", metavar="ROWSxCOLUMNS", help="Plan a pair of lists of so many values, like 6x4."
)
@click.option(
    "--effect",
    type=Real(0, 1),
    help="With --pair: how strongly the two go together, as Cramér's V; by default 0.1.",
)
@click.option("--discovery", is_flag=True, help="Plan a discovery of strings that nobody listed.")
@click.option(
    "--max-length",
    type=click.IntRange(2, MAX_LENGTH),
    help=f"With --discovery: bytes of its strings, an even number; by default {DEFAULT_LENGTH}.",
)
@click.option(
    "--retention",
    type=click.Choice(["lifecycle", "cohorts", "both"]),
    help="Plan a retention that asks this; --share is then the part of the devices that is new.",
)
@click.option(
    "--ages", type=click.IntRange(1, 52), help="With --retention: how many windows back; 12."
)
@click.option("--low", type=AnyReal(), help="With --number: the smallest number to tell apart.")
@click.option("--high", type=AnyReal(), help="With --number: the largest one.")
@click.option(
    "--ask",
    type=click.Choice(["mean", "distribution", "both"]),
    help="With --number: what is asked of it.",
)
@click.option(
    "--scale", type=click.Choice(["linear", "log"]), help="With --number; by default linear."
)
@click.option("--integer", is_flag=True, help="With --number: numbers are whole.")
@click.option("--unit", help="With --number: its unit.")
@click.option(
    "--epsilon",
    type=Real(0.001),
    help="What one report may reveal at most; with --years only to compare with.",
)
@click.option(
    "--devices",
    type=click.IntRange(1, 10**12),
    help=f"How many devices; with --years {_DEVICES:,} if not given.",
)
@click.option(
    "--share",
    type=_part,
    help="The share of interest; 1/size if not given, with --years 0.01.",
)
@click.option(
    "--half-width",
    type=Real(1e-9),
    help="The desired half width of the 95% interval: of the share (0.01 if not given), or of the "
    "mean, in its unit (a hundredth of the range) or, on a log scale, as a part of it (0.05).",
)
@click.option(
    "--sample-rate",
    default=1.0,
    show_default=True,
    type=_part,
    help="The probability that a device reports in a window.",
)
@click.option(
    "--lifetime-epsilon",
    "--lifetime",
    type=Real(0.001, 10_000),
    help="The limit for all reports of a device together; with --memoize, for all of one value.",
)
@click.option(
    "--memoize",
    is_flag=True,
    help='Memoize noise (longitudinal = "memoize").',
)
@click.option(
    "--years",
    type=Real(0.003, 20),
    help="List the ways to divide the lifetime epsilon over so many years.",
)
@click.option(
    "--turnover",
    type=Real(0, 0.99),
    help="With --years: the part of the devices that is replaced in a year; by default 0.",
)
@click.option(
    "--window",
    type=click.Choice(windows.KINDS),
    help="With --years: what a report is about, by default day; with --retention, week.",
)
@click.option("--mechanism", default="auto", show_default=True, help="As the registry names it.")
@click.option(
    "--segment-share",
    type=_part,
    metavar="SHARE",
    help="Plan for a segment with this part of the devices, like the smallest one.",
)
@fakes_option
@as_json
@click.pass_context
@reported
def plan(
    context: click.Context,
    size: int | None,
    number: bool,
    pair: str | None,
    effect: float | None,
    discovery: bool,
    max_length: int | None,
    retention: str | None,
    ages: int | None,
    low: float | None,
    high: float | None,
    ask: str | None,
    scale: Literal["linear", "log"] | None,
    integer: bool,
    unit: str | None,
    epsilon: float | None,
    devices: int | None,
    share: float | None,
    half_width: float | None,
    sample_rate: float,
    lifetime_epsilon: float | None,
    memoize: bool,
    years: float | None,
    turnover: float | None,
    window: windows.Kind | None,
    mechanism: str,
    segment_share: float | None,
    fakes: float,
    form: str | None,
) -> None:
    """Compute what a metric can detect, before it is declared: --size for values, --number for a
    number, --pair for two lists, --discovery for strings that nobody listed, --retention for who
    comes back.

    With --years, list the ways to divide a lifetime epsilon: few reports with a large epsilon, or
    many with a small one."""
    if pair is not None:
        planned.pair(context, pair, effect)
        return
    if discovery:
        planned.discovery(context, max_length or DEFAULT_LENGTH)
        return
    if retention is not None:
        planned.retention(context, retention, ages)
        return
    if ages is not None:
        raise click.UsageError("--ages is for --retention: give it as well")
    if max_length is not None:
        raise click.UsageError("--max-length is for --discovery: give it as well")
    if effect is not None:
        raise click.UsageError("--effect is for --pair: give it as well")
    of_numbers = {
        "--low": low,
        "--high": high,
        "--ask": ask,
        "--scale": scale,
        "--unit": unit,
        "--integer": integer or None,
    }
    given = [name for name, value in of_numbers.items() if value is not None]
    if number:
        planned.check_number(size, share, memoize, given)
    elif size is None:
        raise click.UsageError(
            "say --size for values, --number for a number, --pair, --discovery, or --retention"
        )
    elif given:
        raise click.UsageError(f"{', '.join(given)}: only with --number, in place of --size")
    if segment_share is not None and years is not None:
        raise click.UsageError("--segment-share: not with --years")
    if years is not None:
        lifetime = planned.check_lifetime(context, lifetime_epsilon)
        from deniable_estimator.terminal.lifetime_plan import print_lifetime

        print_lifetime(
            size or (low, high, ask, scale or "linear", integer, unit),
            *(lifetime, years, devices or _DEVICES, form),
            turnover=turnover or 0.0,
            window=window or "day",
            epsilon=epsilon,
            share=share or SMALL_SHARE,
            mechanism=mechanism,
        )
        return
    if turnover is not None or window is not None:
        raise click.UsageError("--turnover and --window are for --years: give it as well")
    if epsilon is None or devices is None:
        raise click.UsageError(
            "say --epsilon and --devices; or --lifetime and --years, to divide a lifetime epsilon"
        )
    segment = None
    if segment_share is not None:
        from deniable_estimator.planning.plan import PlannedSegment

        segment = PlannedSegment(segment_share, devices)
        devices = segment.devices
    if number:
        planned.number(
            *(low, high, ask, epsilon, devices),
            form,
            segment,
            scale=scale or "linear",
            integer=integer,
            unit=unit,
            mechanism=mechanism,
            half_width=half_width,
            sample_rate=sample_rate,
            lifetime_epsilon=lifetime_epsilon,
            fakes=fakes,
        )
        return
    assert size is not None
    if half_width is not None and half_width > 1:
        raise click.UsageError("--half-width of a share is a part of 1")
    if memoize and lifetime_epsilon is None:
        raise click.UsageError("--memoize needs --lifetime-epsilon: it limits what a memo reveals")
    from deniable_estimator.planning import plan as planning

    made = planning.plan(
        size,
        epsilon,
        devices,
        mechanism=mechanism,
        share=share,
        half_width=0.01 if half_width is None else half_width,
        sample_rate=sample_rate,
        lifetime_epsilon=lifetime_epsilon,
        memoize=memoize,
        fakes=fakes,
    )
    from deniable_estimator.terminal.plan_views import plan_view

    planned.show(made, plan_view, form, segment)
