"""Estimates in a terminal: tables with a bar for each interval."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deniable.protocol.coded_message import counted
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.basis import Basis
from deniable_estimator.answers.shares import Shares
from deniable_estimator.answers.units import Unit
from deniable_estimator.asking.history import History
from deniable_estimator.statistics.intervals import FloatArray

MOST_ROWS = 40
"""How many values a table shows; CSV and JSON have all of them."""

_WIDTH = 20
_NAMED = 5


@singledispatch
def estimate_view(
    answer: Answer, truth: Any = None, limits: Any = (), given: Any = None
) -> RenderableType:
    """An answer as its kind is shown.

    `truth` is what is known of a simulated crowd. Of a number, `limits` are those below which
    shares are shown (`deniable_estimator.terminal.numbers`). Of a pair, `given` is the list that
    conditionals are given (`deniable_estimator.terminal.pairs`).
    """
    raise NotImplementedError(answer.kind)


@estimate_view.register
def _(estimate: Shares, truth: FloatArray | None = None, limits: Any = ()) -> RenderableType:
    """The largest shares first and ghosts last; with `truth`, shape (d,), beside them."""
    parts: list[RenderableType] = [heading(estimate)]
    if estimate.n:
        shown = np.lexsort((-estimate.share, estimate.ghosts))[:MOST_ROWS]
        parts.append(_shares_table(estimate, shown, truth))
        rest = len(estimate.values) - len(shown)
        if rest:
            parts.append(
                Text(f"and {counted(rest, 'more value')}: --csv or --json shows all", style="dim")
            )
        if not estimate.detected.all():
            note = "Dim: not distinguishable from a value that nobody has."
            parts.append(Text(note, style="dim"))
        parts.append(Text(_budget(estimate.fakes, estimate.budget), style="dim"))
    if estimate.impossible.any():
        names = ", ".join(printable(estimate.values[at]) for at in estimate.strange[:_NAMED])
        more = ", ..." if len(estimate.strange) > _NAMED else ""
        text = f"Impossible: {names}{more}. No honest crowd has such a share; do not rely on it."
        parts.append(Text(text, style="bold red"))
    parts += [Text(f"Note: {warning}.", style="yellow") for warning in estimate.warnings]
    parts += alarms(estimate)
    return Group(*parts)


def _budget(fakes: float, most: float) -> str:
    return (
        f"Poisoning budget: {fakes * 100:.3g}% fake devices could add up to {percent(most)} "
        "points to any one value."
    )


def alarms(estimate: Answer) -> Iterator[Text]:
    """What honest reports cannot explain, and what to do about it."""
    for figure in estimate.verdict.alarms(estimate.alarm_level):
        yield Text(f"Anomalous: {figure.text} (p = {figure.p_adjusted:.1g}).", style="bold red")
    if estimate.anomalous:
        yield Text(
            "Honest devices do not report like this. See which windows it comes from with "
            f"`deniable estimate anomalies {estimate.metric}` and leave them out; do not correct "
            f"the {estimate.unit.heading[0]}s.",
            style="red",
        )


def history_view(history: History) -> RenderableType:
    """Each window, what is strange about it, and what to do."""
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("window", no_wrap=True)
    table.add_column("reports", justify="right", no_wrap=True)
    table.add_column("smallest\nadjusted p", justify="right", no_wrap=True)
    table.add_column("what is strange", overflow="fold")
    for window in history.windows:
        alarms = window.verdict.alarms(history.alarm_level)
        least = min((each.p_adjusted for each in window.verdict.figures), default=None)
        strange = "; ".join(printable(each.text) for each in alarms)
        if least is None:
            strange = "too little to judge by"
        table.add_row(
            Text(window.label),
            Text(f"{window.n:,}"),
            Text("" if least is None else f"{least:.2g}"),
            Text(strange),
            style="bold red" if alarms else "dim" if least is None else None,
        )
    if not history.anomalous:
        return Group(table, Text("Nothing here is unlike honest reports.", style="green"))
    advice = (
        "Leave such windows out of what you decide by (--without), and find out why: fakes, a "
        "faulty app, or an event. Do not correct the estimates."
    )
    return Group(table, Text(advice, style="red"))


def heading(estimate: Basis) -> Text:
    """The metric, its reports, its windows and its epsilon."""
    windows = estimate.windows
    if len(windows) > 1:
        when, what = f"{len(windows)} windows, {windows[0]} to {windows[-1]}", "reports"
    else:
        when = windows[0] if windows else "no window"
        what = "device" if estimate.n == 1 else "devices"
    text = Text.assemble((estimate.metric, "bold"), f"  {estimate.n:,} {what}  ·  {when}")
    return text.append(f"  ·  epsilon {estimate.epsilon:.4g}")


def _shares_table(estimate: Shares, shown: NDArray[np.intp], truth: FloatArray | None) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("value", overflow="fold", vertical="bottom")
    if truth is not None:
        table.add_column("truth\n%", justify="right", no_wrap=True)
    table.add_column("share\n%", justify="right", no_wrap=True)
    interval = f"{estimate.level * 100:.3g}% interval"
    table.add_column(f"{interval}\n%", justify="right", no_wrap=True)
    top = max(float(np.max(estimate.high[shown])), 1e-12)
    scale = f"0{percent(top):>{_WIDTH - 1}}"
    table.add_column(f"\n{scale}", no_wrap=True)
    total = "sums to" if estimate.complete else "at most"
    table.add_column(f"normalized\n({total}\n100%)", justify="right", no_wrap=True)
    table.add_column("adjusted\np", justify="right", no_wrap=True)
    detected, moved, impossible = estimate.detected, estimate.moved, estimate.impossible
    for i in shown:
        share, low, high = estimate.share[i], estimate.low[i], estimate.high[i]
        cells = [Text(printable(estimate.values[i]))]
        if truth is not None:
            cells.append(Text(percent(truth[i])))
        cells += [
            Text(percent(share)),
            Text(f"{percent(low)} .. {percent(high)}"),
            picture(float(low), float(share), float(high), top),
            Text(percent(estimate.normalized[i]) + ("*" if moved[i] else " ")),
            Text(f"{estimate.p_adjusted[i]:.2g}"),
        ]
        table.add_row(*cells, style="bold red" if impossible[i] else None if detected[i] else "dim")
    if moved[shown].any():
        table.caption = "* moved by more than its standard error"
        table.caption_justify = "left"
    return table


def interval(unit: Unit, low: float, high: float, spread: float) -> str:
    """The ends of an interval in words, which may have no limit on a side."""
    if math.isfinite(low) and math.isfinite(high):
        return f"{unit.text(low, spread)} .. {unit.text(high, spread)}"
    if math.isfinite(low):
        return f"at least {unit.text(low, spread)}"
    if math.isfinite(high):
        return f"at most {unit.text(high, spread)}"
    return "unknown"


def picture(low: float, share: float, high: float, top: float) -> Text:
    """A bar from 0 to `top`: solid up to `low`, then shaded up to `high`, a mark at the share."""
    ends = [round(min(max(x / top, 0.0), 1.0) * _WIDTH) for x in (low, high)]
    solid, shaded = ends[0], ends[1] - ends[0]
    mark = min(max(round(share / top * _WIDTH), 0), _WIDTH - 1)
    bar = list("█" * solid + "▒" * shaded + " " * (_WIDTH - solid - shaded))
    bar[mark] = "┃"
    text = Text("".join(bar), style="cyan")
    text.stylize("bold white", mark, mark + 1)
    return text


def percent(share: float) -> str:
    """A share in percent, with as many digits as a small one needs."""
    digits = 2 if abs(share) >= 0.001 or share == 0 else 4
    return f"{share * 100:.{digits}f}"


def printable(value: str) -> str:
    """The value without control characters for the terminal."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in value
    )
