"""Plans in a terminal: what each kind of metric costs, and what it can detect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import click
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deniable.coded_message import counted
from deniable.mechanisms.number_range import number_text
from deniable_estimator.answers.units import SHARES, NumberUnit
from deniable_estimator.forecasting.detection import LEVEL, POWER
from deniable_estimator.forecasting.retention_forecast import USEFUL
from deniable_estimator.planning.discovery_plan import DiscoveryPlan
from deniable_estimator.planning.numbers import NumberPlan, QuantilePlan
from deniable_estimator.planning.pairs import MOVE, PairPlan
from deniable_estimator.planning.plan import Lifetime, Plan
from deniable_estimator.planning.retention_plan import RetentionPlan
from deniable_estimator.terminal.tables import percent

_HOPELESS = 0.5
"""If half of the strings take a larger share, there is nothing to find."""


def plan_view(plan: Plan) -> RenderableType:
    """The plan as a table of what it costs and what it can detect."""
    verdict = Text("Usable: a large share stands out from the noise.", style="green")
    if not plan.usable:
        verdict = Text(
            "No usable signal: noise alone can look like a share of 50% or more. "
            "Ask more devices, or declare a larger epsilon.",
            style="bold red",
        )
    return Group(_facts_table(_plan_facts(plan)), verdict)


def _plan_facts(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "mechanism", _mechanism(plan)
    yield "why", plan.reason
    yield "loss", f"{plan.loss:.3f} times the least possible variance"
    yield _epsilon(plan)
    yield "report", counted(plan.report_bytes, "byte")
    yield "tally", counted(plan.tally_cells, "cell")
    yield "reports", _reports(plan)
    yield "standard error", f"{percent(plan.std_error)}% at a share of {percent(plan.share)}%"
    if plan.detectable_share is None:
        yield "smallest detectable", "none: not even a share of 100%"
    else:
        yield (
            "smallest detectable",
            f"a share of {percent(plan.detectable_share)}% (power {POWER:g}, "
            f"level {LEVEL:g} over all {plan.size:,} values)",
        )
    yield (
        f"{plan.fakes * 100:.3g}% fakes",
        f"could add up to {percent(plan.fakes_gain)} points to any one value",
    )
    half, share = f"{percent(plan.half_width)}%", f"{percent(plan.share)}%"
    yield (
        f"for ±{half}",
        f"{counted(plan.devices_for_half_width, 'device')} (95% interval at {share})",
    )
    yield f"to detect {share}", counted(plan.devices_to_detect, "device")
    if plan.memory is not None:
        memory = plan.memory
        yield (
            "memory",
            f"all reports of one value reveal at most {memory.memo_epsilon!r}; each further one "
            f"of any history adds at most {memory.fresh_epsilon!r}",
        )
        yield (
            "over many windows",
            f"never below a standard error of {percent(memory.lasting_std_error)}% at a share "
            f"of {percent(plan.share)}%, if the same devices report",
        )
    if plan.lifetime is not None:
        yield "lifetime", _lifetime_words(plan.lifetime)


def read_shape(text: str) -> tuple[int, int]:
    """The numbers of values of both lists, from a text like "6x4".

    Raises:
        click.UsageError: it is none.
    """
    found = re.fullmatch(r"([0-9]{1,4}) *[x×] *([0-9]{1,4})", text)
    if found is None:
        raise click.UsageError("the shape says how many values both lists have: write it like 6x4")
    return int(found[1]), int(found[2])


def pair_plan_view(plan: PairPlan) -> RenderableType:
    """The plan as a table."""
    if plan.least_effect is None:
        verdict = Text(
            "No usable signal: not even the strongest dependence is found reliably. Ask more "
            "devices, merge rare values, or declare a larger epsilon.",
            style="bold red",
        )
    else:
        verdict = Text(
            f"A dependence of Cramér's V {plan.least_effect:.2f} or more is found with power "
            f"{POWER:g}.",
            style="green",
        )
    return Group(_facts_table(_pair_facts(plan)), verdict)


def _pair_facts(plan: PairPlan) -> Iterator[tuple[str, str]]:
    yield "cells", f"{plan.rows} x {plan.columns} = {plan.tally_cells}"
    yield "mechanism", _mechanism(plan)
    yield _epsilon(plan)
    yield "report", counted(plan.report_bytes, "byte")
    yield "reports", f"{_reports(plan)}, of devices that have both values"
    found = f"{100 * plan.power:.0f}% of the time (test of independence at {100 * LEVEL:g}%)"
    yield f"Cramér's V {plan.effect:g}", f"is found {found}"
    needed = plan.devices_to_detect
    told = "no number of devices" if needed is None else counted(needed, "device")
    yield "", f"{told} find it {100 * POWER:.0f}% of the time"
    yield "standard error of a cell", f"{_points(plan.cell_std_error)} points"
    one, two = map(_points, plan.margin_std_errors)
    yield "of a value alone", f"{one} points of the first list, {two} of the second"
    one, two = map(_points, plan.conditional_half_widths)
    yield (
        "conditional shares",
        f"±{one} points of the second list given the first, ±{two} the reverse (95% interval)",
    )
    ends = [
        "of no value" if each is None else f"from {_points(each)}% on" for each in plan.shown_from
    ]
    yield (
        "they are shown",
        f"{ends[0]} of the first list, {ends[1]} of the second: given a value that so many have",
    )
    yield (
        f"{plan.fakes * 100:.3g}% fakes",
        f"could add up to {_points(plan.fakes_gain)} points to any one cell and "
        f"{_points(plan.fakes_conditional)} to a conditional share, and bring a Cramér's V of "
        f"{plan.fakes_effect:.2f} to independent lists",
    )
    if plan.fakes_to_move is not None:
        yield (
            f"{plan.fakes_to_move * 100:.2g}% fakes",
            f"add {100 * MOVE:g} points to a conditional share",
        )
    yield (
        f"{plan.fakes_to_reject * 100:.2g}% fakes",
        "are enough for the test to call independent lists dependent",
    )
    if plan.lifetime is not None:
        yield "lifetime", _lifetime_words(plan.lifetime)


def _points(share: float) -> str:
    return SHARES.text(share, share)


def discovery_plan_view(plan: DiscoveryPlan) -> RenderableType:
    """The plan as a table."""
    if plan.reach.half_text > _HOPELESS:
        verdict = Text(
            "No string will surface. Ask more devices, or declare a larger epsilon.",
            style="bold red",
        )
    else:
        verdict = Text(
            f"Strings above {_share(plan.reach.sure_text)} of the devices will surface.",
            style="green",
        )
    return Group(_facts_table(_discovery_facts(plan)), verdict)


def _discovery_facts(plan: DiscoveryPlan) -> Iterator[tuple[str, str]]:
    reach = plan.reach
    yield "strings", f"the first {counted(plan.max_length, 'byte')}"
    yield "mechanism", _mechanism(plan)
    yield _epsilon(plan)
    yield "report", f"{counted(plan.report_bytes, 'byte')} and its row"
    yield "tally", counted(plan.tally_cells, "counter")
    yield "reports", _reports(plan)
    yield "like common text", _found(reach.half_text, reach.sure_text)
    yield "random characters", _found(reach.half_any, reach.sure_any)
    yield (
        "hidden",
        f"below {_share(reach.hidden)} of the devices; none of 180 such strings was found when "
        "that was measured"
        if reach.hidden < 1
        else "every string, whatever part of the devices has it",
    )
    yield (
        f"a share of {_share(plan.share)}",
        f"takes {counted(plan.devices_to_find, 'device')} to be found half of the time",
    )
    put = "puts a string of its own" if reach.fakes == 1 else "put a string of theirs"
    yield "fakes", f"{counted(reach.fakes, 'fake device')} {put} on the list half of the time"
    yield (
        f"{plan.fakes * 100:.3g}% fakes",
        f"could add up to {100 * plan.fakes_gain:.3g} points to any one string",
    )
    if plan.lifetime is not None:
        yield "lifetime", _lifetime_words(plan.lifetime)


def retention_plan_view(plan: RetentionPlan) -> RenderableType:
    """The plan as a table."""
    tells = plan.tells
    width = tells.lifecycle if tells.average is None else tells.average
    if width is None or width > USEFUL:
        verdict = Text(
            "Little to be seen. Ask more devices, or declare a larger epsilon.", style="bold red"
        )
    else:
        verdict = Text("Usable: what changes by more than this is seen.", style="green")
    return Group(_facts_table(_retention_facts(plan)), verdict)


def _retention_facts(plan: RetentionPlan) -> Iterator[tuple[str, str]]:
    tells = plan.tells
    yield "asks", " and ".join(plan.asks)
    yield _epsilon(plan)
    yield "memos", f"epsilon {plan.memo_epsilon!r} for all reports of one answer, for ever"
    yield "reports", _reports(plan)
    if len(plan.asks) > 1:
        yield "each question", f"{tells.reports:,.0f} reports: each device answers one for ever"
    if tells.exact is not None and tells.lifecycle is not None:
        yield (
            "lifecycle",
            f"±{_points(tells.exact)} points from an exact count of these devices at most, "
            f"±{_points(tells.lifecycle)} for all devices like them (95%)",
        )
    if tells.cohort is not None and tells.average is not None:
        known = f"±{_points(tells.cohort)} points" if tells.cohort < 1 / 2 else "nothing"
        yield (
            "one cohort",
            f"{known} of a retention of {plan.back:.0%}, if {plan.new:.0%} of the "
            f"devices are new in each {plan.window}",
        )
        average = f"±{_points(tells.average)} points" if tells.average < 1 / 2 else "nothing"
        yield "average", f"{average} over {counted(plan.ages, 'cohort')}"


def _found(half: float, sure: float) -> str:
    if half > 1:
        return "never found"
    if sure > 1:
        return f"half of them found from {_share(half)} of the devices on"
    return f"half of them found from {_share(half)} of the devices on, 95% from {_share(sure)} on"


def _share(share: float) -> str:
    return f"{100 * share:.3g}%"


def number_plan_view(plan: NumberPlan) -> RenderableType:
    """The plan as a table; for a distribution a second one of its quantiles."""
    parts: list[RenderableType] = [_facts_table(_number_facts(plan))]
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


def _reach_words(quantile: QuantilePlan) -> str:
    """Between which quantiles of the truth an interval will lie."""
    low, high = (
        None if end is None else f"p{100 * end:.3g}" for end in (quantile.low, quantile.high)
    )
    if low and high:
        return f"between {low} and {high}"
    if low:
        return f"from {low} on, with no upper limit"
    return f"up to {high}, with no lower limit" if high else "nowhere: no limit on either side"


def _number_facts(plan: NumberPlan) -> Iterator[tuple[str, str]]:
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
    yield _epsilon(plan)
    yield "report", counted(plan.report_bytes, "byte")
    yield "tally", counted(plan.tally_cells, "cell")
    yield "reports", _reports(plan)
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
        yield "lifetime", _lifetime_words(plan.lifetime)


def _quantiles(plan: NumberPlan) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("quantile", vertical="bottom")
    table.add_column("95% interval, in\nquantiles of the truth", no_wrap=True)
    for name in ("devices for\nboth limits", "devices for a\nuseful interval"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in plan.quantiles:
        cells = [f"p{100 * each.p:g}", _reach_words(each)]
        cells += [f"{count:,}" for count in (each.devices_for_limits, each.devices_to_promise)]
        table.add_row(*map(Text, cells), style=None if each.promised else "dim")
    return table


def _too_few(plan: NumberPlan) -> Iterator[str]:
    """The quantiles that such a crowd does not bound usefully."""
    for each in plan.quantiles:
        if not each.promised:
            needed = counted(each.devices_to_promise, "device")
            yield f"p{100 * each.p:g} cannot be promised below {needed}."


def _lifetime_words(lifetime: Lifetime) -> str:
    """How long the budget of a device lasts."""
    times, windows = counted(lifetime.reports, "time"), counted(round(lifetime.windows), "window")
    turns = "" if lifetime.turns is None else f"; one_in = {lifetime.turns} makes them last 365"
    return f"each device reports {times}, over about {windows}, and then falls silent{turns}"


def _facts_table(facts: Iterable[tuple[str, str]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, text in facts:
        table.add_row(name, Text(text))
    return table


def _mechanism(plan: Plan | PairPlan | DiscoveryPlan) -> str:
    parameters = ", ".join(f"{name} {value}" for name, value in plan.parameters.items())
    return f"{plan.mechanism} ({parameters})"


def _epsilon(plan: Plan | NumberPlan | PairPlan | DiscoveryPlan | RetentionPlan) -> tuple[str, str]:
    return "epsilon", f"{plan.epsilon!r}, exact; declared {plan.declared_epsilon:g}"


def _reports(plan: Plan | NumberPlan | PairPlan | DiscoveryPlan | RetentionPlan) -> str:
    out_of = f", out of {counted(plan.devices, 'device')}" if plan.sample_rate < 1 else ""
    return f"{plan.reports:,.0f} a window{out_of}"
