"""Truth and estimate side by side: as data, and as tables for a terminal."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from deniable import Registry
from deniable_collector.stores import Store
from deniable_demo.population import POPULARITIES, Population
from deniable_estimator.questions.reading import read

__all__ = ["compare", "tables"]


def compare(store: Store, registry: Registry, population: Population) -> list[dict[str, Any]]:
    """For each metric, the true shares and the estimates from the collector's tallies.

    Each is {"metric", "n", "epsilon", "values"}, with values as {"value", "truth",
    "estimate", "std_error", "low", "high"}, the largest truth first. Shares are fractions.
    """
    compared = []
    for each in POPULARITIES:
        series = (estimate := read(store, registry, each.metric)).series
        truth = population.shares(each.metric)
        values: list[dict[str, Any]] = [
            {
                "value": value,
                "truth": truth.get(value, 0.0),
                "estimate": float(series.value[index]),
                "std_error": float(series.std_error[index]),
                "low": float(series.low[index]),
                "high": float(series.high[index]),
            }
            for index, value in enumerate(series.names)
        ]
        values.sort(key=lambda row: -row["truth"])
        compared.append(
            {
                "metric": each.metric,
                "n": estimate.n,
                "epsilon": estimate.epsilon,
                "values": values,
            }
        )
    return compared


def tables(compared: list[dict[str, Any]]) -> list[Table]:
    """One table for each metric."""
    return [_table(metric) for metric in compared]


def _table(metric: dict[str, Any]) -> Table:
    table = Table(
        title=f"{metric['metric']}  [dim]{metric['n']:,} reports, ε {metric['epsilon']:.2f}[/]",
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 2, 0, 0),
    )
    table.add_column("value", style="cyan", min_width=12)
    for name in ("truth", "estimate", "95% interval"):
        table.add_column(name, justify="right")
    table.add_column("")
    for row in metric["values"]:
        inside = row["low"] <= row["truth"] <= row["high"]
        table.add_row(
            row["value"],
            f"{row['truth']:.1%}",
            f"{row['estimate']:.1%}",
            f"{row['low']:.1%} to {row['high']:.1%}",
            "[green]holds the truth[/]" if inside else "[yellow]misses it[/]",
        )
    return table
