"""Truth and estimate side by side: as data, and as tables for a terminal."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from datetime import date
from typing import Any

from rich.table import Table

from deniable import Registry
from deniable.protocol.types.pair import Pair
from deniable_demo.made_up import CRASHES, USAGE, conditional_shares
from deniable_demo.population import DISCOVERED, PERCENTILES, POPULARITIES, Population
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.pair import PairAnswer
from deniable_estimator.answers.pair_words import verdict_words
from deniable_estimator.answers.units import NumberUnit, half_width
from deniable_estimator.asking.discoveries import discover
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.reading import read


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
        answer = read(reader, registry, number.metric, day, day)
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
    answer = read(reader, registry, metric, day, day, where=where)
    truth = population.shares(metric, where)
    found = _compared(answer, {name: truth.get(name, 0.0) for name in answer.series.names})
    found["values"].sort(key=lambda row: -row["truth"])
    return {**found, "segment": dict(where) if where else None}


def _compare_pair(
    reader: Reader, registry: Registry, population: Population, day: date
) -> dict[str, Any]:
    """The same for the conditional shares of the pair, given its first metric."""
    answer, kind = read(reader, registry, USAGE.metric, day, day), registry[USAGE.metric].type
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
    finds = discover(reader, registry, metric, day, day)
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
            {
                "value": each.text,
                "truth": truth[each.text],
                "estimate": _finite(each.share),
                "std_error": _finite(each.std_error),
                "low": _finite(each.low),
                "high": _finite(each.high),
            }
            for each in finds.finds
        ],
        "verdict": f"Nobody listed these {len(finds.finds)} strings: they were found. They explain "
        f"{finds.explained.share:.0%} of all reports; rarer ones stay hidden.",
    }


def tables(compared: list[dict[str, Any]]) -> list[Table]:
    """One table for each metric."""
    return [_table(metric) for metric in compared]


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
            {
                "value": name,
                "truth": truth[name],
                "estimate": _finite(value),
                "std_error": _finite(error),
                "low": _finite(low),
                "high": _finite(high),
            }
            for name, value, error, low, high in zip(series.names, *columns, strict=True)
            if name in truth
        ],
    }


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _table(metric: dict[str, Any]) -> Table:
    of = "".join(f", {segment}={group}" for segment, group in (metric["segment"] or {}).items())
    table = Table(
        title=f"{metric['metric']}{of}  [dim]{metric['n']:,} reports, ε {metric['epsilon']:.2f}[/]",
        caption=metric.get("verdict"),
        caption_justify="left",
        caption_style="",
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 2, 0, 0),
    )
    shares = metric["kind"] != "distribution"
    table.add_column("value" if shares else "", style="cyan", min_width=12)
    for name in ("truth", "estimate", "95% interval"):
        table.add_column(name, justify="right")
    table.add_column("")
    for row in metric["values"]:
        value, _, condition = row["value"].partition(" given ")
        name = f"{condition}: {value.partition('=')[2]}" if condition else value
        low = -math.inf if row["low"] is None else row["low"]
        high = math.inf if row["high"] is None else row["high"]
        if row["estimate"] is None:
            truth = row["truth"]
            unit = NumberUnit(metric["unit"])
            table.add_row(name, f"{truth:.1%}" if shares else unit.full(truth, truth), "too few")
            continue
        inside = low <= row["truth"] <= high
        table.add_row(
            name,
            *(_share_cells(row) if shares else _number_cells(row, low, high, metric["unit"])),
            "[green]holds the truth[/]" if inside else "[yellow]misses it[/]",
        )
    return table


def _share_cells(row: dict[str, Any]) -> tuple[str, str, str]:
    interval = f"{row['low']:z.1%} to {row['high']:z.1%}"
    return f"{row['truth']:.1%}", f"{row['estimate']:z.1%}", interval


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
