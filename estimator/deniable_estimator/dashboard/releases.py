"""Releases as pages show them: the numbers of one with their intervals drawn, words of its
manifest, and what all of them spend.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from deniable_estimator.answers.range_names import cell_words, value_words
from deniable_estimator.answers.units import NumberUnit
from deniable_estimator.dashboard import words
from deniable_estimator.document.plot.marks import BarRow, DrawnLine, LineChart, RuleLine
from deniable_estimator.document.plot.ticks import Label, Tick, levels_from_zero
from deniable_estimator.messages import message
from deniable_estimator.releasing.ledger import KeptRelease
from deniable_estimator.releasing.looking import ListedRelease, ReleaseAccount
from deniable_estimator.releasing.words import (
    added_noise,
    assumed,
    figure,
    form_name,
    holds_against,
    method_name,
    of_shares,
    pair_part,
    statement,
)


@dataclass(frozen=True, slots=True)
class ReleasedRow:
    """One number as the page has it."""

    window: str
    row: BarRow


@dataclass(frozen=True, slots=True)
class ListedView:
    """A release as the list shows it."""

    id: str
    made: date
    manifest: Mapping[str, Any]

    @property
    def epsilon(self) -> str:
        """In figures."""
        return figure(self.manifest["epsilon"])

    @property
    def method(self) -> str:
        """How it was made private."""
        return method_name(self.manifest["method"])

    @property
    def form(self) -> str:
        """What was published."""
        return form_name(self.manifest["form"])

    @property
    def part(self) -> str | None:
        """Of which pair its numbers are, if of one."""
        return pair_part(self.manifest)


@dataclass(frozen=True, slots=True)
class ReleasedView(ListedView):
    """A release as its page shows it."""

    rows: tuple[ReleasedRow, ...]
    more: int
    leader: str | None
    trend: bool

    @property
    def statement(self) -> str:
        """The line beneath its numbers."""
        return statement(self.manifest)

    @property
    def assumed(self) -> tuple[str, ...]:
        """What must hold for its guarantee."""
        return tuple(assumed(self.manifest["method"], self.manifest["reports_of_a_device"]))

    @property
    def noise(self) -> str | None:
        """How large its noise is, if it adds to numbers."""
        return added_noise(self.manifest["noise"])

    @property
    def against(self) -> str:
        """Against whom its guarantee holds."""
        return holds_against(self.manifest["method"])


def view_of(found: KeptRelease, most: int) -> ReleasedView:
    """The release with its first rows, or of a trend its newest."""
    assert found.document is not None
    whole = json.loads(found.document)
    manifest, data = whole["manifest"], whole["data"]
    columns, rows = data["columns"], data["rows"]
    leader = rows[0][0] if columns == ["leader"] else None
    trend = columns[0] == "window"
    shown = [] if leader is not None else rows[:most]
    # The newest windows of a trend matter most.
    if trend:
        shown = rows[-most:] if most else []
    shares = of_shares(manifest)
    return ReleasedView(
        found.id,
        found.made,
        manifest,
        tuple(_rows(shown, manifest, trend=trend, shares=shares)),
        0 if leader is not None else len(rows) - len(shown),
        leader,
        trend,
    )


def line_of(found: ListedRelease) -> ListedView:
    """The release as a line of the list."""
    return ListedView(found.id, found.made, found.manifest)


def _rows(
    rows: list[list[Any]], manifest: Mapping[str, Any], *, trend: bool, shares: bool
) -> list[ReleasedRow]:
    told = [row[2:] if trend else row for row in rows]
    ends = [each for row in told for each in (row[1], row[3], row[4]) if each is not None]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    span = (high - low) or 1.0

    def text(value: float | None) -> str:
        return _number_text(value, shares=shares, unit=manifest["unit"])

    def at(value: float | None, missing: float) -> float:
        place: float = missing if value is None else value
        return float(round(100 * (place - low) / span, 2))

    found = []
    for row, (name, estimate, _, start, end) in zip(rows, told, strict=True):
        places = at(estimate, low), at(start, low), at(end, high)
        texts = text(start), text(end)
        drawn = BarRow(_name(manifest, name), text(estimate), *places, *texts)
        found.append(ReleasedRow(row[0] if trend else "", drawn))
    return found


def _name(manifest: Mapping[str, Any], name: str) -> str:
    """What people call a row: that of a pair, or of a number that a pair cuts, in words."""
    pair = manifest.get("pair")
    if pair is None:
        return NumberUnit().label(name) if not of_shares(manifest) else name
    return value_words(name) if pair["name"] != manifest["metric"] else cell_words(name)


def _number_text(value: float | None, *, shares: bool, unit: str | None) -> str:
    if value is None:
        return "?"
    return f"{value:z.2%}" if shares else f"{value:.4g}{f' {unit}' if unit else ''}"


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
        line=_spent_line(account, today),
    )


def _figure(epsilon: float) -> str:
    return figure(epsilon) if math.isfinite(epsilon) else "?"


def _spent_line(account: ReleaseAccount, today: date) -> LineChart | None:
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
