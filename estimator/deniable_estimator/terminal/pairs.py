"""Pairs in a terminal: whether the two depend on each other, and each cell with its shares.

Importing this file registers how they are shown (`estimate_view`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deniable.protocol.coded_message import counted
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.pair import PairAnswer
from deniable_estimator.answers.pair_estimate import Given
from deniable_estimator.answers.pair_words import fakes_words, remarks, verdict_words
from deniable_estimator.answers.units import CONDITIONALS, half_width
from deniable_estimator.errors import EstimateError
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.terminal.tables import MOST_ROWS, alarms, estimate_view, heading


def direction(answer: Answer, given: str | None) -> Given:
    """Which list the conditionals are given, by the name of its metric; the first if not said.

    Raises:
        EstimateError: the answer is no pair, or not of that metric.
    """
    if given is None:
        return "first"
    if not isinstance(answer, PairAnswer):
        raise EstimateError(f"{answer.metric} is not a pair: leave --given out")
    if given not in answer.names:
        raise EstimateError(
            f"{answer.metric} is a pair of {' and '.join(answer.names)}: give one of them"
        )
    return "first" if given == answer.names[0] else "second"


@estimate_view.register
def _(
    pair: PairAnswer, truth: FloatArray | None = None, limits: Any = (), given: Given = "first"
) -> RenderableType:
    """Each cell with its share, and the share among those with one of its values; with `truth`,
    shape (cells,), beside them."""
    parts: list[RenderableType] = [heading(pair), Text(verdict_words(pair), style="bold")]
    if pair.n:
        shown = _shown(pair)
        parts.append(_heat_table(pair, shown, given, truth))
        rest = len(pair.joint.values) - len(shown)
        if rest:
            parts.append(
                Text(
                    f"and {counted(rest, 'more cell')}, nearer to independence: --csv or --json "
                    "shows all",
                    style="dim",
                )
            )
        if pair.carries.any():
            parts.append(Text("Bold: cells that differ from independence.", style="dim"))
        if not pair.joint.detected.all():
            note = "Dim: not distinguishable from a cell that nobody is in."
            parts.append(Text(note, style="dim"))
        budget = CONDITIONALS.text(pair.budget, pair.budget)
        parts.append(
            Text(
                f"Poisoning budget: {pair.fakes * 100:.3g}% fake devices could add up to "
                f"{budget} points to any one cell.",
                style="dim",
            )
        )
        parts += [Text(each, style="dim") for each in fakes_words(pair)]
    notes = (*remarks(pair), *pair.warnings)
    return Group(*parts, *(Text(f"Note: {each}.", style="yellow") for each in notes), *alarms(pair))


def _shown(pair: PairAnswer) -> NDArray[np.intp]:
    """The places of the cells, in order; of many those furthest from independence first."""
    size = len(pair.joint.values)
    found = pair.residuals
    if size <= MOST_ROWS or found is None:
        return np.arange(size)[:MOST_ROWS]
    return np.argsort(found.p_value.ravel(), kind="stable")[:MOST_ROWS]


def _heat_table(
    pair: PairAnswer, shown: NDArray[np.intp], given: Given, truth: FloatArray | None
) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    for name in pair.names:
        table.add_column(name, overflow="fold", vertical="bottom")
    interval = f"{pair.level * 100:.3g}%\ninterval"
    condition = pair.names[0 if given == "first" else 1]
    headings = [*(("truth\n%",) if truth is not None else ()), "share\n%", interval]
    for each in (*headings, f"of its {condition}\n%", interval, "beyond\nchance\npoints"):
        table.add_column(each, justify="right", vertical="bottom", no_wrap=True)
    columns = pair.shape[1]
    joint, side, apart = pair.joint, pair.conditionals[given], pair.residuals
    detected, carries = joint.detected, pair.carries.ravel()
    for place in shown.tolist():
        at = divmod(place, columns)
        cells = [pair.margins[0].values[at[0]], pair.margins[1].values[at[1]]]
        if truth is not None:
            cells.append(CONDITIONALS.text(float(truth[place]), 0.001))
        cells += _with_interval(*(float(x[place]) for x in (joint.share, joint.low, joint.high)))
        if side.known[at]:
            cells += _with_interval(*(float(x[at]) for x in (side.share, side.low, side.high)))
        else:
            cells += ["too few", ""]
        if apart is None:
            cells.append("")
        else:
            cells.append(CONDITIONALS.signed(float(apart.value[at]), float(apart.std_error[at])))
        style = "bold" if carries[place] else None if detected[place] else "dim"
        table.add_row(*map(Text, cells), style=style)
    return table


def _with_interval(share: float, low: float, high: float) -> list[str]:
    spread = half_width(share, low, high)
    ends = " .. ".join(CONDITIONALS.text(each, spread) for each in (low, high))
    return [CONDITIONALS.text(share, spread), ends]
