"""What was planted in the weeks before, beside what the tallies say of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
from rich.table import Table

from deniable import Registry
from deniable_demo.coming_back import weeks_since
from deniable_demo.history import DAYS, complete_days, grown_numbers
from deniable_demo.made_up import CRASHES, DRIFT, GROWTH, LEAVING, RELEASED
from deniable_estimator.asking.comparison import compare
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.reading import read
from deniable_estimator.asking.since import SinceDays
from deniable_estimator.planning.population import Crowd


@dataclass(frozen=True)
class Planted:
    """A change from the days before RELEASED to as many days after it; of `weeks`, from the
    cohorts before their own release to as many after it."""

    metric: str
    series: str
    truth: float
    """In points of a share (0.01 is one), or in the metric's unit."""
    where: Mapping[str, str] | None = None
    weeks: bool = False


def planted() -> list[Planted]:
    """What changed, and what did not."""
    after = complete_days(RELEASED)
    crashes = {
        group: (percent, now - CRASHES.before.get(group, now))
        for group, (percent, now) in CRASHES.percent.items()
    }
    every = sum(percent for percent, _ in crashes.values())
    more = sum(percent / every * change for percent, change in crashes.values()) / 100
    (broken,) = (group for group, (_, change) in crashes.items() if change)
    # The two ranges' middles are so many days apart, and the value drifts evenly.
    drifted = DRIFT.percent / 100 * (after + 1) / DAYS
    slowest = [
        Crowd.of(
            np.concatenate([grown_numbers(1 - ago / DAYS) for ago in range(last, last + after)])
        ).quantile(0.95)
        for last in (after + 1, 0)
    ]
    return [
        Planted(CRASHES.metric, "true", more),
        Planted(CRASHES.metric, "true", crashes[broken][1] / 100, {CRASHES.segment: broken}),
        Planted(DRIFT.metric, DRIFT.after, drifted),
        Planted(GROWTH.metric, "p95", slowest[1] - slowest[0]),
        Planted(LEAVING.metric, "age 1", LEAVING.after - LEAVING.before, weeks=True),
        Planted("language", "english", 0.0),
        Planted("dark_mode", "true", 0.0),
    ]


def compare_planted(reader: Reader, registry: Registry, newest: date) -> list[dict[str, Any]]:
    """For each planted change the truth, the estimate and what a page says of it, as {"metric",
    "series", "label", "segment", "truth", "estimate", "low", "high", "unit", "says"}."""
    after = complete_days(RELEASED)
    day = timedelta(days=1)
    middle = newest - after * day
    days = SinceDays(middle + day, newest, middle - after * day, middle - day)
    compared = []
    for each in planted():
        asked = weeks_since(newest) if each.weeks else days
        before, since = (
            read(reader, registry, each.metric, first, last, where=each.where)
            for first, last in (
                (asked.before_first, asked.before_last),
                (asked.first, asked.last),
            )
        )
        found = compare(before, since)
        place = found.values.index(each.series)
        numbers = (column[place] for column in (found.difference, found.low, found.high))
        estimate, low, high = (float(x) if math.isfinite(x) else None for x in numbers)
        compared.append(
            {
                "metric": each.metric,
                "series": each.series,
                "label": since.unit.label(each.series),
                "segment": dict(each.where) if each.where else None,
                "truth": each.truth,
                "estimate": estimate,
                "low": low,
                "high": high,
                "says": found.describe(place),
                "unit": registry[each.metric].type.unit,
            }
        )
    return compared


def _change(truth: float, unit: str | None) -> str:
    """A planted change in words."""
    if not truth:
        return "no change"
    size = abs(truth)
    told = f"{100 * size:.1f} points" if unit is None else f"{size:,.0f} {unit}"
    return f"{'up' if truth > 0 else 'down'} {told}"


def planted_table(compared: list[dict[str, Any]]) -> Table:
    """The table for a terminal."""
    table = Table(
        title=f"Since {RELEASED}, as many days after it as before",
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 2, 0, 0),
    )
    table.add_column("", style="cyan")
    table.add_column("planted", justify="right")
    table.add_column("deniable says")
    table.add_column("")
    for row in compared:
        of = "".join(f", {segment}={group}" for segment, group in (row["segment"] or {}).items())
        since = f", cohorts since {LEAVING.release}" if row["metric"] == LEAVING.metric else ""
        low = -math.inf if row["low"] is None else row["low"]
        high = math.inf if row["high"] is None else row["high"]
        inside = low <= row["truth"] <= high
        table.add_row(
            f"{row['metric']} {row['label']}{of}{since}",
            _change(row["truth"], row["unit"]),
            row["says"],
            "[green]holds the truth[/]" if inside else "[yellow]misses it[/]",
        )
    return table
