"""The plan of a number in a terminal: its cost, and how well mean and quantiles are seen."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deniable.coded_message import counted
from deniable.mechanisms.number_range import number_text
from deniable_estimator.answers.units import SHARES, NumberUnit
from deniable_estimator.planning.numbers import NumberPlan, QuantilePlan
from deniable_estimator.terminal.tables import lifetime_words

__all__ = ["number_plan_view", "reach_words"]


def number_plan_view(plan: NumberPlan) -> RenderableType:
    """The plan as a table; for a distribution a second one of its quantiles."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, text in _lines(plan):
        table.add_row(name, Text(text))
    parts: list[RenderableType] = [table]
    if plan.quantiles:
        parts += ["", _quantiles(plan)]
        parts += [Text(each, style="yellow") for each in _too_few(plan)]
    what = "the median has both limits" if plan.quantiles else "the mean is told from the range"
    verdict = Text(f"Usable: {what}.", style="green")
    if not plan.usable:
        verdict = Text(
            "No usable signal: noise hides even the middle of the range. Ask more devices, or "
            "declare a larger epsilon.",
            style="bold red",
        )
    return Group(*parts, verdict)


def reach_words(quantile: QuantilePlan) -> str:
    """Between which quantiles of the truth an interval will lie."""
    low, high = (
        None if end is None else f"p{100 * end:.3g}" for end in (quantile.low, quantile.high)
    )
    if low and high:
        return f"between {low} and {high}"
    if low:
        return f"from {low} on, with no upper limit"
    return f"up to {high}, with no lower limit" if high else "nowhere: no limit on either side"


def _lines(plan: NumberPlan) -> Iterator[tuple[str, str]]:
    mean, unit = plan.mean, NumberUnit(plan.unit)
    log = plan.scale == "log"

    def width(number: float) -> str:
        return f"{SHARES.full(number, number)} of it" if log else unit.full(number, number)

    name = "geometric mean" if log else "mean"
    whole = " (whole numbers)" if plan.integer else ""
    ends = " to ".join(number_text(float(each)) for each in (plan.low, plan.high))
    yield "range", f"{ends} {plan.unit or ''}".rstrip() + f", {plan.scale} scale{whole}"
    yield "mechanism", plan.mechanism
    yield "why", plan.reason
    yield "epsilon", f"{plan.epsilon!r}, exact; declared {plan.declared_epsilon:g}"
    yield "report", counted(plan.report_bytes, "byte")
    yield "tally", counted(plan.tally_cells, "cell")
    out_of = f", out of {counted(plan.devices, 'device')}" if plan.sample_rate < 1 else ""
    yield "reports", f"{plan.reports:,.0f} a window{out_of}"
    yield name, f"±{width(mean.half_width)} (95% interval), standard error {width(mean.std_error)}"
    if mean.devices is None:
        devices = (
            f"no number of devices: the width of the cells alone leaves ±{width(mean.rounding)}"
        )
    else:
        devices = counted(mean.devices, "device")
    yield f"for ±{width(mean.desired)}", devices
    if plan.share_half_width is not None:
        half = SHARES.text(plan.share_half_width, plan.share_half_width)
        yield "share below a limit", f"±{half} points (95% interval), on average over the range"
    yield (
        f"{plan.fakes * 100:.3g}% fakes",
        f"could add up to {width(mean.fakes_gain)} to a {name} in the middle of the range",
    )
    if plan.fakes_share is not None:
        yield "", f"and up to {100 * plan.fakes_share:.3g} points to the share below a limit"
    if plan.lifetime is not None:
        yield "lifetime", lifetime_words(plan.lifetime)


def _quantiles(plan: NumberPlan) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("quantile", vertical="bottom")
    table.add_column("95% interval, in\nquantiles of the truth", no_wrap=True)
    for name in ("devices for\nboth limits", "devices for a\nuseful interval"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in plan.quantiles:
        cells = [f"p{100 * each.p:g}", reach_words(each)]
        cells += [f"{count:,}" for count in (each.devices_for_limits, each.devices_to_promise)]
        table.add_row(*map(Text, cells), style=None if each.promised else "dim")
    return table


def _too_few(plan: NumberPlan) -> Iterator[str]:
    """The quantiles that such a crowd does not bound usefully."""
    for each in plan.quantiles:
        if not each.promised:
            needed = counted(each.devices_to_promise, "device")
            yield f"p{100 * each.p:g} cannot be promised below {needed}."
