"""Truth and estimate side by side: as data, and as tables for a terminal."""

from __future__ import annotations

import math
from typing import Any

from rich.table import Table

from deniable import Registry
from deniable_collector.stores import Store
from deniable_demo.population import PERCENTILES, POPULARITIES, Population
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.units import NumberUnit, half_width
from deniable_estimator.questions.reading import read

__all__ = ["compare", "compare_shares", "tables"]


def compare(store: Store, registry: Registry, population: Population) -> list[dict[str, Any]]:
    """For each metric, the truth and the estimates from the collector's tallies.

    Each is {"metric", "kind", "n", "epsilon", "unit", "values"}, with values as {"value", "truth",
    "estimate", "std_error", "low", "high"}. Shares are fractions, the largest truth first, and
    have no unit. Of numbers a value is what "p95" or "geometric mean" says, and null is an end
    without a limit.
    """
    compared = [compare_shares(store, registry, population, each.metric) for each in POPULARITIES]
    for number in PERCENTILES:
        answer, crowd = read(store, registry, number.metric), population.crowd(number.metric)
        found = _compared(answer, {name: crowd.series(name) for name in answer.series.names})
        compared.append({**found, "unit": registry[number.metric].type.unit})
    return compared


def compare_shares(
    store: Store, registry: Registry, population: Population, metric: str
) -> dict[str, Any]:
    """The same for one metric of shares."""
    answer, truth = read(store, registry, metric), population.shares(metric)
    found = _compared(answer, {name: truth.get(name, 0.0) for name in answer.series.names})
    found["values"].sort(key=lambda row: -row["truth"])
    return found


def tables(compared: list[dict[str, Any]]) -> list[Table]:
    """One table for each metric."""
    return [_table(metric) for metric in compared]


def _compared(answer: Answer, truth: dict[str, float]) -> dict[str, Any]:
    series = answer.series
    columns = (series.value, series.std_error, series.low, series.high)
    return {
        "metric": answer.metric,
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
        ],
    }


def _finite(number: float) -> float | None:
    return float(number) if math.isfinite(number) else None


def _table(metric: dict[str, Any]) -> Table:
    table = Table(
        title=f"{metric['metric']}  [dim]{metric['n']:,} reports, ε {metric['epsilon']:.2f}[/]",
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 2, 0, 0),
    )
    shares = metric["kind"] == "shares"
    table.add_column("value" if shares else "", style="cyan", min_width=12)
    for name in ("truth", "estimate", "95% interval"):
        table.add_column(name, justify="right")
    table.add_column("")
    for row in metric["values"]:
        low = -math.inf if row["low"] is None else row["low"]
        high = math.inf if row["high"] is None else row["high"]
        inside = low <= row["truth"] <= high
        table.add_row(
            row["value"],
            *(_share_cells(row) if shares else _number_cells(row, low, high, metric["unit"])),
            "[green]holds the truth[/]" if inside else "[yellow]misses it[/]",
        )
    return table


def _share_cells(row: dict[str, Any]) -> tuple[str, str, str]:
    interval = f"{row['low']:.1%} to {row['high']:.1%}"
    return f"{row['truth']:.1%}", f"{row['estimate']:.1%}", interval


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
