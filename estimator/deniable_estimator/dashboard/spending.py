"""What releases spend: a bar for each metric, and a line over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

from deniable_estimator.dashboard import words
from deniable_estimator.document.plot.marks import DrawnLine, LineChart, RuleLine
from deniable_estimator.document.plot.ticks import Label, Tick, levels_from_zero
from deniable_estimator.messages import message
from deniable_estimator.releasing.charge import ReleaseAccount
from deniable_estimator.releasing.words import figure

HEIGHT = 150

MOST_BARS = 30
"""The most metrics that have a bar; the others are counted."""


@dataclass(frozen=True, slots=True)
class SpendingBar:
    """What the releases of one metric spend; the width is in percent."""

    name: str
    releases: int
    epsilon: str
    width: float


@dataclass(frozen=True, slots=True)
class Spending:
    """What all releases spend.

    Attributes:
        epsilon: that of all of them; None if none can be stated.
        part: of the budget, in percent; None without a budget.
        over: whether it is more than the budget, or cannot be stated.
        more: metrics without a bar.
        line: None if everything was released on one day.
    """

    releases: int
    unfinished: int
    epsilon: str | None
    delta: str
    budget: str | None
    part: float | None
    over: bool
    bars: tuple[SpendingBar, ...]
    more: int
    line: LineChart | None


def spending_of(account: ReleaseAccount, today: date) -> Spending:
    """The picture of an account."""
    total = account.total
    known = math.isfinite(total.epsilon)
    metrics = list(account.metrics.items())
    # One scale for all bars: the budget, unless more than that is spent.
    most = max((each.epsilon for _, each in metrics if math.isfinite(each.epsilon)), default=0.0)
    most = max(most, total.budget or 0.0, total.epsilon if known else 0.0) or 1.0

    def part(epsilon: float) -> float:
        return round(100 * min(1.0, epsilon / most), 2)

    return Spending(
        releases=total.releases,
        unfinished=account.unfinished,
        epsilon=figure(total.epsilon) if known else None,
        delta=f"{total.delta:g}",
        budget=None if total.budget is None else f"{total.budget:g}",
        part=None if total.budget is None else part(total.epsilon),
        over=total.refused,
        bars=tuple(
            SpendingBar(name, each.releases, _figure(each.epsilon), part(each.epsilon))
            for name, each in metrics[:MOST_BARS]
        ),
        more=max(0, len(metrics) - MOST_BARS),
        line=_line(account, today),
    )


def _figure(epsilon: float) -> str:
    return figure(epsilon) if math.isfinite(epsilon) else "?"


def _line(account: ReleaseAccount, today: date) -> LineChart | None:
    steps = [(day, epsilon) for day, epsilon in account.steps if math.isfinite(epsilon)]
    if not steps:
        return None
    first, last = steps[0][0], max(today, steps[-1][0])
    spent, budget = max(epsilon for _, epsilon in steps), account.total.budget
    if first == last or not spent:
        return None
    # A budget that is far away would press the line to the ground.
    drawn = budget if budget is not None and budget <= 20 * spent else None
    levels, step = levels_from_zero(max(spent, drawn or 0.0))
    top = max(levels[-1], spent, drawn or 0.0)

    def across(day: date) -> float:
        return round(100 * (day - first).days / (last - first).days, 2)

    def down(epsilon: float) -> float:
        return round(HEIGHT * (1 - epsilon / top), 1)

    digits = max(0, -math.floor(math.log10(step)))
    at = 0.0 if drawn is None else down(drawn)
    return LineChart(
        form="reach",
        name="spent",
        title=message("What had been released by each day"),
        description=message(
            "Epsilon of all releases together: {first} on {day}, {last} by {today}.",
            first=figure(steps[0][1]),
            day=words.day(first),
            last=figure(steps[-1][1]),
            today=words.day(last),
        ),
        height=HEIGHT,
        lines=(DrawnLine(paths=(_path(steps, across, down),)),),
        rules=()
        if drawn is None
        else (RuleLine((0, at), (100, at), message("budget {budget}", budget=f"{budget:g}")),),
        levels=tuple(Tick(down(each), f"{each:.{digits}f}" if each else "") for each in levels),
        ticks=(Label(0.0, words.day(first)), Label(100.0, words.day(last))),
    )


def _path(
    steps: Sequence[tuple[date, float]],
    across: Callable[[date], float],
    down: Callable[[float], float],
) -> str:
    """Stairs: what is spent stays spent."""
    parts = [f"M0 {down(0.0):g}"]
    for day, epsilon in steps:
        parts += [f"H{10 * across(day):g}", f"V{down(epsilon):g}"]
    return "".join([*parts, "H1000"])
