"""The plan of a pair in a terminal: which dependence it shows, and how exact its shares are."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deniable.coded_message import counted
from deniable_estimator.answers.units import SHARES
from deniable_estimator.forecasting.detection import LEVEL, POWER
from deniable_estimator.planning.pairs import MOVE, PairPlan
from deniable_estimator.terminal.tables import lifetime_words

__all__ = ["pair_plan_view", "read_shape"]


def read_shape(text: str) -> tuple[int, int]:
    """The numbers of values of both lists, from a text like "6x4".

    Raises:
        click.UsageError: it is none.
    """
    found = re.fullmatch(r"([0-9]{1,4}) *[x×] *([0-9]{1,4})", text)
    if found is None:
        raise click.UsageError("--pair says how many values both lists have: write it like 6x4")
    return int(found[1]), int(found[2])


def pair_plan_view(plan: PairPlan) -> RenderableType:
    """The plan as a table."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, text in _lines(plan):
        table.add_row(name, Text(text))
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
    return Group(table, verdict)


def _lines(plan: PairPlan) -> Iterator[tuple[str, str]]:
    parameters = ", ".join(f"{name} {value}" for name, value in plan.parameters.items())
    yield "cells", f"{plan.rows} x {plan.columns} = {plan.tally_cells}"
    yield "mechanism", f"{plan.mechanism} ({parameters})"
    yield "epsilon", f"{plan.epsilon!r}, exact; declared {plan.declared_epsilon:g}"
    yield "report", counted(plan.report_bytes, "byte")
    out_of = f", out of {counted(plan.devices, 'device')}" if plan.sample_rate < 1 else ""
    yield "reports", f"{plan.reports:,.0f} a window{out_of}, of devices that have both values"
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
        yield "lifetime", lifetime_words(plan.lifetime)


def _points(share: float) -> str:
    return SHARES.text(share, share)
