"""Truth and estimate side by side, of the newest day and of what was planted in the weeks before:
as data, and as tables for a terminal."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import numpy as np
from rich.table import Table

from deniable import Registry
from deniable.protocol.types.pair import Pair
from deniable_demo.history import DAYS, complete_days, grown_numbers, weeks_since
from deniable_demo.population import (
    CRASHES,
    DISCOVERED,
    DRIFT,
    GROWTH,
    LEAVING,
    PERCENTILES,
    POPULARITIES,
    RELEASED,
    USAGE,
    Population,
    conditional_shares,
)
from deniable_estimator.asking import comparison
from deniable_estimator.asking.discoveries import discover
from deniable_estimator.asking.fetch import read
from deniable_estimator.asking.query import Days, Query
from deniable_estimator.asking.reader import Reader
from deniable_estimator.document.units import NumberUnit, half_width
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.pairs.pair import PairAnswer
from deniable_estimator.kinds.pairs.words import verdict_words
from deniable_estimator.planning.population import Crowd


def compare(
    reader: Reader, registry: Registry, population: Population, day: date
) -> list[dict[str, Any]]:
    """For each metric, the truth and the estimates from the collector's tallies of one day.

    Each is {"metric", "segment", "kind", "n", "epsilon", "unit", "values"}, with values as
    {"value", "truth", "estimate", "std_error", "low", "high"}. Shares are fractions, the largest
    truth first, and have no unit. Of numbers a value is what "p95" or "geometric mean" says, and
    null is an end without a limit. A metric that is counted by a segment is there once for each
    group, which "segment" names. Of a pair a value is a conditional share, and null is one of too
    few devices. Of a discovery the values are the strings that were found.
    """
    compared = [
        compare_shares(reader, registry, population, each.metric, day) for each in POPULARITIES
    ]
    for number in PERCENTILES:
        answer = read(reader, registry, Query(number.metric, Days(day, day)))
        crowd = population.crowd(number.metric)
        found = _compared(answer, {name: crowd.series(name) for name in answer.series.names})
        compared.append({**found, "unit": registry[number.metric].type.unit})
    for group in CRASHES.percent:
        where = {CRASHES.segment: group}
        compared.append(compare_shares(reader, registry, population, CRASHES.metric, day, where))
    compared.append(_compare_pair(reader, registry, population, day))
    compared.append(_compare_finds(reader, registry, population, day))
    return compared


def compare_shares(
    reader: Reader,
    registry: Registry,
    population: Population,
    metric: str,
    day: date,
    where: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The same for one metric of shares; for one segment of it, if `where` names one."""
    answer = read(reader, registry, Query(metric, Days(day, day), where=where or {}))
    truth = population.shares(metric, where)
    found = _compared(answer, {name: truth.get(name, 0.0) for name in answer.series.names})
    found["values"].sort(key=lambda row: -row["truth"])
    return {**found, "segment": dict(where) if where else None}


def _compare_pair(
    reader: Reader, registry: Registry, population: Population, day: date
) -> dict[str, Any]:
    """The same for the conditional shares of the pair, given its first metric."""
    answer = read(reader, registry, Query(USAGE.metric, Days(day, day)))
    kind = registry[USAGE.metric].type
    assert isinstance(answer, PairAnswer)
    assert isinstance(kind, Pair)
    first, second = (population.values[part.metric] for part in kind.parts)
    return {
        **_compared(answer, conditional_shares(kind, first, second)),
        "verdict": str(verdict_words(answer)),
    }


def _compare_finds(
    reader: Reader, registry: Registry, population: Population, day: date
) -> dict[str, Any]:
    """The same for the strings that were found."""
    metric = DISCOVERED.metric
    finds = discover(reader, registry, Query(metric, Days(day, day)))
    shares, kind = population.shares(metric), registry[metric].type
    truth: dict[str, float] = defaultdict(float)
    for text, share in shares.items():
        truth[kind.normalize(text)] += share
    return {
        "metric": metric,
        "segment": None,
        "kind": finds.kind,
        "n": finds.n,
        "epsilon": finds.epsilon,
        "unit": None,
        "values": [
            _row(each.text, truth[each.text], each.share, each.std_error, each.low, each.high)
            for each in finds.finds
        ],
        "verdict": f"Nobody listed these {len(finds.finds)} strings: they were found. They explain "
        f"{finds.explained.share:.0%} of all reports; rarer ones stay hidden.",
    }


def _compared(answer: Answer, truth: dict[str, float]) -> dict[str, Any]:
    series = answer.series
    columns = (series.value, series.std_error, series.low, series.high)
    return {
        "metric": answer.metric,
        "segment": None,
        "kind": answer.kind,
        "n": answer.n,
        "epsilon": answer.epsilon,
        "unit": None,
        "values": [
            _row(name, truth[name], *numbers)
            for name, *numbers in zip(series.names, *columns, strict=True)
            if name in truth
        ],
    }


def _row(value: str, truth: float, *numbers: float) -> dict[str, Any]:
    names = "estimate", "std_error", "low", "high"
    return {"value": value, "truth": truth, **dict(zip(names, map(_finite, numbers), strict=True))}


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _titled(title: str, caption: str | None = None) -> Table:
    return Table(
        title=title,
        caption=caption,
        caption_justify="left",
        caption_style="",
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 2, 0, 0),
    )


def _named(row: dict[str, Any]) -> str:
    """The metric's name, with its segment."""
    groups = (row["segment"] or {}).items()
    return f"{row['metric']}" + "".join(f", {segment}={group}" for segment, group in groups)


def _ends(row: dict[str, Any]) -> tuple[float, float, str]:
    """The ends of the interval, and whether it holds the truth."""
    low = -math.inf if row["low"] is None else row["low"]
    high = math.inf if row["high"] is None else row["high"]
    inside = low <= row["truth"] <= high
    return low, high, "[green]holds the truth[/]" if inside else "[yellow]misses it[/]"


def table_of(metric: dict[str, Any]) -> Table:
    """The table of one metric for a terminal."""
    reports = f"{metric['n']:,} reports, ε {metric['epsilon']:.2f}"
    table = _titled(f"{_named(metric)}  [dim]{reports}[/]", metric.get("verdict"))
    shares = metric["kind"] != "distribution"
    table.add_column("value" if shares else "", style="cyan", min_width=12)
    for name in ("truth", "estimate", "95% interval"):
        table.add_column(name, justify="right")
    table.add_column("")
    for row in metric["values"]:
        value, _, condition = row["value"].partition(" given ")
        name = f"{condition}: {value.partition('=')[2]}" if condition else value
        low, high, held = _ends(row)
        if row["estimate"] is None:
            truth = row["truth"]
            unit = NumberUnit(metric["unit"])
            table.add_row(name, f"{truth:.1%}" if shares else unit.full(truth, truth), "too few")
            continue
        if shares:
            interval = f"{row['low']:z.1%} to {row['high']:z.1%}"
            cells = f"{row['truth']:.1%}", f"{row['estimate']:z.1%}", interval
        else:
            cells = _number_cells(row, low, high, metric["unit"])
        table.add_row(name, *cells, held)
    return table


def _number_cells(
    row: dict[str, Any], low: float, high: float, name: str | None
) -> tuple[str, str, str]:
    unit, spread = NumberUnit(name), half_width(row["truth"], low, high)
    interval = f"{unit.text(low, spread)} to {unit.full(high, spread)}"
    if math.isinf(high):
        interval = f"at least {unit.full(low, spread)}"
    elif math.isinf(low):
        interval = f"at most {unit.full(high, spread)}"
    return unit.full(row["truth"], spread), unit.full(row["estimate"], spread), interval


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
    days = Days(middle + day, newest, before=(middle - after * day, middle - day))
    compared = []
    for each in planted():
        asked = weeks_since(newest) if each.weeks else days
        before, since = (
            read(reader, registry, Query(each.metric, period, where=each.where or {}))
            for period in (asked.earlier, asked)
        )
        found = comparison.compare(before, since)
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
    table = _titled(f"Since {RELEASED}, as many days after it as before")
    table.add_column("", style="cyan")
    table.add_column("planted", justify="right")
    table.add_column("deniable says")
    table.add_column("")
    for row in compared:
        since = f", cohorts since {LEAVING.release}" if row["metric"] == LEAVING.metric else ""
        series = {**row, "metric": f"{row['metric']} {row['label']}"}
        truth = _change(row["truth"], row["unit"])
        table.add_row(f"{_named(series)}{since}", truth, row["says"], _ends(row)[-1])
    return table
