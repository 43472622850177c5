"""The plan of a discovery in a terminal: which strings surface, and what fakes could do."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deniable.coded_message import counted
from deniable_estimator.planning.discoveries import DiscoveryPlan
from deniable_estimator.terminal.tables import lifetime_words

__all__ = ["discovery_plan_view"]

_HOPELESS = 0.5
"""If half of the strings take a larger share, there is nothing to find."""


def discovery_plan_view(plan: DiscoveryPlan) -> RenderableType:
    """The plan as a table."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, text in _lines(plan):
        table.add_row(name, Text(text))
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
    return Group(table, verdict)


def _lines(plan: DiscoveryPlan) -> Iterator[tuple[str, str]]:
    reach = plan.reach
    parameters = ", ".join(f"{name} {value}" for name, value in plan.parameters.items())
    yield "strings", f"the first {counted(plan.max_length, 'byte')}"
    yield "mechanism", f"{plan.mechanism} ({parameters})"
    yield "epsilon", f"{plan.epsilon!r}, exact; declared {plan.declared_epsilon:g}"
    yield "report", f"{counted(plan.report_bytes, 'byte')} and its row"
    yield "tally", counted(plan.tally_cells, "counter")
    out_of = f", out of {counted(plan.devices, 'device')}" if plan.sample_rate < 1 else ""
    yield "reports", f"{plan.reports:,.0f} a window{out_of}"
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
        yield "lifetime", lifetime_words(plan.lifetime)


def _found(half: float, sure: float) -> str:
    if half > 1:
        return "never found"
    if sure > 1:
        return f"half of them found from {_share(half)} of the devices on"
    return f"half of them found from {_share(half)} of the devices on, 95% from {_share(sure)} on"


def _share(share: float) -> str:
    return f"{100 * share:.3g}%"
