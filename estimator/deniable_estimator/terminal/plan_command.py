"""`deniable plan`: what a metric will detect, computed before it is declared.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol

import click

from deniable import windows
from deniable.command_line import command
from deniable.types.discovery import DEFAULT_LENGTH, MAX_LENGTH
from deniable_collector.options import Function
from deniable_estimator.terminal.options import AnyReal, Real, as_json, assumed_fakes, reported

if TYPE_CHECKING:
    from deniable.types import Number
    from deniable_estimator.planning.plan import PlannedSegment

# numpy and rich take longer to import than `deniable --help` should.

_part = Real(1e-9, 1)
"""One device in a billion; below that, the numbers of a plan overflow."""

_size = click.IntRange(2, 10**9)
_devices = click.IntRange(1, 10**12)

_epsilon_option = click.option(
    "--epsilon", required=True, type=Real(0.001), help="What one report may reveal at most."
)
_devices_option = click.option("--devices", required=True, type=_devices, help="How many devices.")
_rare_option = click.option(
    "--share", type=_part, default=0.01, show_default=True, help="The share of interest."
)
_half_width_option = click.option(
    "--half-width",
    type=Real(1e-9),
    help="The desired half width of the 95% interval: of the share (0.01 if not given), or of the "
    "mean, in its unit (a hundredth of the range) or, on a log scale, as a part of it (0.05).",
)
_sample_rate_option = click.option(
    "--sample-rate",
    default=1.0,
    show_default=True,
    type=_part,
    help="The probability that a device reports in a window.",
)
_lifetime_option = click.option(
    "--lifetime-epsilon",
    type=Real(0.001, 10_000),
    help="The limit for all reports of a device together; with --memoize, for all of one value.",
)
_mechanism_option = click.option(
    "--mechanism", default="auto", show_default=True, help="As the registry names it."
)
_segment_option = click.option(
    "--segment-share",
    type=_part,
    metavar="SHARE",
    help="Plan for a segment with this part of the devices, like the smallest one.",
)
_ASK, _SCALE = click.Choice(["mean", "distribution", "both"]), click.Choice(["linear", "log"])


class _Made(Protocol):
    """A plan of any kind."""

    def to_dict(self) -> dict[str, Any]: ...


def _number_options(*, required: bool) -> Callable[[Function], Function]:
    """The options --low, --high, --ask and --scale, which declare a number."""

    def with_options(function: Function) -> Function:
        for option in (
            click.option("--scale", type=_SCALE, default="linear", help="linear, or log."),
            click.option("--ask", type=_ASK, required=required, help="What is asked of a number."),
            click.option("--high", type=AnyReal(), required=required, help="The largest number."),
            click.option(
                "--low",
                type=AnyReal(),
                required=required,
                help="The smallest number.",
            ),
        ):
            function = option(function)
        return function

    return with_options


def _show(
    made: _Made, view: Callable[[Any], Any], form: str | None, segment: PlannedSegment | None = None
) -> None:
    """Print a plan as JSON, or as `view` shows it, with the segment that it is made for."""
    if form == "json":
        more = segment.to_dict() if segment else {}
        click.echo(json.dumps({**made.to_dict(), **more}, ensure_ascii=False))
        return
    from rich.console import Console

    words = [segment.words] if segment else []
    Console().print(*words, view(made), sep="\n")


def _in_segment(share: float | None, devices: int) -> tuple[PlannedSegment | None, int]:
    """The segment that is planned for, if it is one, and how many devices it has."""
    if share is None:
        return None, devices
    from deniable_estimator.planning.plan import PlannedSegment

    segment = PlannedSegment(share, devices)
    return segment, segment.devices


@command("deniable plan --size 5 --epsilon 1 --devices 100000")
@click.option("--size", required=True, type=_size, help="How many values.")
@_epsilon_option
@_devices_option
@click.option("--share", type=_part, help="The share of interest; 1/size if not given.")
@_half_width_option
@_sample_rate_option
@_lifetime_option
@click.option("--memoize", is_flag=True, help='Memoize noise (longitudinal = "memoize").')
@_mechanism_option
@_segment_option
@as_json
@reported
def plan(
    size: int,
    epsilon: float,
    devices: int,
    share: float | None,
    half_width: float | None,
    sample_rate: float,
    lifetime_epsilon: float | None,
    memoize: bool,
    mechanism: str,
    segment_share: float | None,
    form: str | None,
) -> None:
    """Compute what a metric of --size values can detect, before it is declared.

    The commands below do so for numbers, pairs and strings that nobody listed.
    """
    if half_width is not None and half_width > 1:
        raise click.UsageError("--half-width of a share is a part of 1")
    if memoize and lifetime_epsilon is None:
        raise click.UsageError("--memoize needs --lifetime-epsilon: it limits what a memo reveals")
    from deniable_estimator.planning import plan as planning
    from deniable_estimator.terminal.plan_views import plan_view

    segment, devices = _in_segment(segment_share, devices)
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
        fakes=assumed_fakes(),
    )
    _show(made, plan_view, form, segment)


@command("deniable plan number --low 0 --high 20 --ask mean --epsilon 1 --devices 100000")
@_number_options(required=True)
@click.option("--integer", is_flag=True, help="Numbers are whole.")
@_epsilon_option
@_devices_option
@_half_width_option
@_sample_rate_option
@_lifetime_option
@_segment_option
@as_json
@reported
def number(
    low: float,
    high: float,
    ask: str,
    scale: Literal["linear", "log"],
    integer: bool,
    epsilon: float,
    devices: int,
    half_width: float | None,
    sample_rate: float,
    lifetime_epsilon: float | None,
    segment_share: float | None,
    form: str | None,
) -> None:
    """Compute what a number of new noise in each report can detect.

    docs/how-to/numbers.md says how many reports a distribution with memos takes.
    """
    from deniable_estimator.planning.numbers import plan_number
    from deniable_estimator.terminal.plan_views import number_plan_view

    segment, devices = _in_segment(segment_share, devices)
    made = plan_number(
        *(low, high, ask, epsilon, devices),
        scale=scale,
        integer=integer,
        half_width=half_width,
        sample_rate=sample_rate,
        lifetime_epsilon=lifetime_epsilon,
        fakes=assumed_fakes(),
    )
    _show(made, number_plan_view, form, segment)


@command("deniable plan pair 3x4 --epsilon 1 --devices 100000")
@click.argument("shape", metavar="ROWSxCOLUMNS")
@click.option(
    "--effect",
    type=Real(0, 1),
    default=0.1,
    show_default=True,
    help="How strongly the two go together, as Cramér's V.",
)
@_epsilon_option
@_devices_option
@_sample_rate_option
@_lifetime_option
@as_json
@reported
def pair(
    shape: str,
    effect: float,
    epsilon: float,
    devices: int,
    sample_rate: float,
    lifetime_epsilon: float | None,
    form: str | None,
) -> None:
    """Compute which dependence between two lists of so many values can be detected."""
    from deniable_estimator.planning.pairs import plan_pair
    from deniable_estimator.terminal.plan_views import pair_plan_view, read_shape

    made = plan_pair(
        *read_shape(shape),
        epsilon,
        devices,
        effect=effect,
        sample_rate=sample_rate,
        lifetime_epsilon=lifetime_epsilon,
        fakes=assumed_fakes(),
    )
    _show(made, pair_plan_view, form)


@command("deniable plan discovery --epsilon 4 --devices 1000000")
@click.option(
    "--max-length",
    type=click.IntRange(2, MAX_LENGTH),
    default=DEFAULT_LENGTH,
    show_default=True,
    help="Bytes of its strings, an even number.",
)
@_epsilon_option
@_devices_option
@_rare_option
@_sample_rate_option
@_lifetime_option
@as_json
@reported
def discovery(
    max_length: int,
    epsilon: float,
    devices: int,
    share: float,
    sample_rate: float,
    lifetime_epsilon: float | None,
    form: str | None,
) -> None:
    """Compute how common a string that nobody listed must be to be found."""
    if max_length % 2:
        raise click.UsageError("--max-length must be even: strings are cut to pairs of bytes")
    from deniable_estimator.planning.discovery_plan import plan_discovery
    from deniable_estimator.terminal.plan_views import discovery_plan_view

    made = plan_discovery(
        max_length,
        epsilon,
        devices,
        share=share,
        sample_rate=sample_rate,
        lifetime_epsilon=lifetime_epsilon,
        fakes=assumed_fakes(),
    )
    _show(made, discovery_plan_view, form)


@command("deniable plan lifetime --size 5 --lifetime-epsilon 8 --years 2")
@click.option("--size", type=_size, help="How many values; for a number --low, --high and --ask.")
@_number_options(required=False)
@click.option(
    "--lifetime-epsilon",
    required=True,
    type=Real(0.001, 10_000),
    help="The limit for all reports of a device together, which is divided.",
)
@click.option(
    "--years", required=True, type=Real(0.003, 20), help="Over so many years it is divided."
)
@click.option(
    "--turnover",
    type=Real(0, 0.99),
    default=0.0,
    show_default=True,
    help="The part of the devices that is replaced in a year.",
)
@click.option(
    "--window",
    type=click.Choice(windows.KINDS),
    default="day",
    show_default=True,
    help="What a report is about.",
)
@click.option(
    "--devices", type=_devices, default=100_000, show_default=True, help="How many devices."
)
@_rare_option
@as_json
@reported
def lifetime(
    size: int | None,
    low: float | None,
    high: float | None,
    ask: str | None,
    scale: Literal["linear", "log"],
    lifetime_epsilon: float,
    years: float,
    turnover: float,
    window: windows.Kind,
    devices: int,
    share: float,
    form: str | None,
) -> None:
    """List the ways to divide a lifetime epsilon: few reports with a large epsilon each, or many
    with a small one."""
    from deniable_estimator.planning.lifetime import plan_lifetime
    from deniable_estimator.planning.numbers import number_type
    from deniable_estimator.terminal.lifetime_plan import lifetime_plan_view

    asked: int | Number
    if size is not None:
        if (low, high, ask) != (None, None, None):
            raise click.UsageError("--low, --high and --ask are for a number: leave --size out")
        asked = size
    elif low is None or high is None or ask is None:
        raise click.UsageError("say --size for values, or --low, --high and --ask for a number")
    else:
        asked = number_type(low, high, ask, scale)
    made = plan_lifetime(
        *(asked, lifetime_epsilon, years, devices), turnover=turnover, window=window, share=share
    )
    _show(made, lifetime_plan_view, form)
