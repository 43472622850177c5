"""`deniable plan` and `privacy`: what can be computed before the first report.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from deniable import windows
from deniable.lifetime_split import SMALL_SHARE
from deniable.types.discovery import DEFAULT_LENGTH, MAX_LENGTH
from deniable_collector.numeric import Real
from deniable_estimator.terminal.options import (
    as_json,
    fakes_option,
    registry_option,
    reported,
)

if TYPE_CHECKING:
    from deniable import Metric, Registry
    from deniable_estimator.planning.segment import PlannedSegment

# numpy and rich take longer to import than `deniable --help` should.

__all__ = ["plan", "privacy"]

# One device in a billion; below that, the numbers of a plan overflow.
_part = Real(1e-9, 1)

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
@click.option("--low", type=Real(), help="With --number: the smallest number to tell apart.")
@click.option("--high", type=Real(), help="With --number: the largest one.")
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
    help="The desired half width of the 95 % interval: of the share (0.01 if not given), or of the "
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
    help="With --years: what a report is about; by default day.",
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
    number, --pair for two lists, --discovery for strings that nobody listed.

    With --years, list the ways to divide a lifetime epsilon: few reports with a large epsilon, or
    many with a small one."""
    if pair is not None:
        _plan_pair(context, pair, effect)
        return
    if discovery:
        _plan_discovery(context, max_length or DEFAULT_LENGTH)
        return
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
        _check_number(size, share, memoize, [name for name in _NEEDED if name not in given])
    elif size is None:
        raise click.UsageError(
            "say --size for values, --number for a number, --pair, or --discovery"
        )
    elif given:
        raise click.UsageError(f"{', '.join(given)}: only with --number, in place of --size")
    if segment_share is not None and years is not None:
        raise click.UsageError("--segment-share: not with --years")
    if years is not None:
        lifetime = _check_lifetime(context, lifetime_epsilon)
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
        from deniable_estimator.planning.segment import PlannedSegment

        segment = PlannedSegment(segment_share, devices)
        devices = segment.devices
    if number:
        _plan_number(
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
    if form == "json":
        more = segment.to_dict() if segment else {}
        click.echo(json.dumps({**made.to_dict(), **more}))
        return
    from rich.console import Console

    from deniable_estimator.terminal.tables import plan_view

    Console().print(*_told(segment), plan_view(made), sep="\n")


def _told(segment: PlannedSegment | None) -> list[str]:
    if segment is None:
        return []
    return [segment.words]


_OF_PAIRS = frozenset(
    {"pair", "effect", "epsilon", "devices", "sample_rate", "lifetime_epsilon", "fakes", "form"}
)


_OF_DISCOVERIES = (_OF_PAIRS - {"pair", "effect"}) | {"discovery", "max_length", "share"}


def _only(context: click.Context, allowed: frozenset[str], option: str) -> dict[str, Any]:
    """The options, if none is given beside those that are allowed with `option`."""
    given = [
        f"--{name.replace('_', '-')}"
        for name in context.params
        if name not in allowed
        and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"{', '.join(given)}: not with {option}")
    told = context.params
    if told["epsilon"] is None or told["devices"] is None:
        raise click.UsageError(f"say --epsilon and --devices with {option}")
    return told


def _plan_discovery(context: click.Context, max_length: int) -> None:
    """Print the plan of a discovery; refuses the options that have no meaning for it."""
    from deniable_estimator.planning.discoveries import plan_discovery
    from deniable_estimator.terminal.discovery_plan import discovery_plan_view

    told = _only(context, _OF_DISCOVERIES, "--discovery")
    if max_length % 2:
        raise click.UsageError("--max-length must be even: strings are cut to pairs of bytes")
    made = plan_discovery(
        max_length,
        told["epsilon"],
        told["devices"],
        share=0.01 if told["share"] is None else told["share"],
        sample_rate=told["sample_rate"],
        lifetime_epsilon=told["lifetime_epsilon"],
        fakes=told["fakes"],
    )
    if told["form"] == "json":
        click.echo(json.dumps(made.to_dict()))
        return
    from rich.console import Console

    Console().print(discovery_plan_view(made))


def _plan_pair(context: click.Context, pair: str, effect: float | None) -> None:
    """Print the plan of a pair; refuses the options that have no meaning for it."""
    from deniable_estimator.planning.pairs import EFFECT, plan_pair
    from deniable_estimator.terminal.pair_plan import pair_plan_view, read_shape

    told = _only(context, _OF_PAIRS, "--pair")
    made = plan_pair(
        *read_shape(pair),
        told["epsilon"],
        told["devices"],
        effect=EFFECT if effect is None else effect,
        sample_rate=told["sample_rate"],
        lifetime_epsilon=told["lifetime_epsilon"],
        fakes=told["fakes"],
    )
    if told["form"] == "json":
        click.echo(json.dumps(made.to_dict()))
        return
    from rich.console import Console

    Console().print(pair_plan_view(made))


_NEEDED = ("--low", "--high", "--ask")


def _check_number(size: int | None, share: float | None, memoize: bool, lacking: list[str]) -> None:
    """Refuse what has no meaning for a number, and what it lacks."""
    if size is not None:
        raise click.UsageError("--size is for values and --number for a number: give one of them")
    if share is not None:
        raise click.UsageError("--share is for values: leave it out with --number")
    if memoize:
        raise click.UsageError(
            "--number plans fresh reports: leave --memoize out. docs/registry.md says how many "
            "reports a distribution with memos takes"
        )
    if lacking:
        raise click.UsageError(f"--number needs {', '.join(lacking)}")


def _check_lifetime(context: click.Context, lifetime_epsilon: float | None) -> float:
    """The lifetime epsilon to divide; refuses what a list of divisions does not take."""
    given = [
        f"--{name.replace('_', '-')}"
        for name in ("half_width", "sample_rate", "memoize", "fakes")
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"{', '.join(given)}: not with --years, which computes the rate")
    if lifetime_epsilon is None:
        raise click.UsageError("--years needs --lifetime: the lifetime epsilon to divide")
    return lifetime_epsilon


def _plan_number(*question: Any, **options: Any) -> None:
    """Print the plan of a number; the last two of `question` are the form and the segment."""
    from deniable_estimator.planning.numbers import plan_number

    *numbers, form, segment = question
    made = plan_number(*numbers, **options)
    if form == "json":
        more = segment.to_dict() if segment else {}
        click.echo(json.dumps({**made.to_dict(), **more}, ensure_ascii=False))
        return
    from rich.console import Console

    from deniable_estimator.terminal.number_plan import number_plan_view

    Console().print(*_told(segment), number_plan_view(made), sep="\n")


@click.command()
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
    help="Write the guarantee of all metrics as a page of HTML to be printed: deniable privacy "
    "--report > privacy.html.",
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
    from deniable_estimator.questions.reading import find_metric

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
    from deniable_estimator.terminal.outsider_view import outsider_view

    asked = reports or LEAST_REPORTS, DELTA if delta is None else delta
    if metric is None:
        found = outsider_together(declared, *asked)
    else:
        found = outsider_of(declared, metric, *asked)
    return found.to_dict(), outsider_view(found)
