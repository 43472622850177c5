"""`deniable plan simulate` of a retention: many windows of a crowd that comes, stays and goes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from numpy.random import Generator

    from deniable import Metric

_FIRST = "2026-01-05"
"""A Monday, on which the first window begins; of months, the first of them."""


def simulate_retention(
    declared: Metric,
    devices: int,
    windows_count: int,
    rates: dict[str, float],
    growth: float,
    rng: Generator,
    level: float,
    form: str | None,
) -> None:
    """Print what is estimated of a crowd of which `devices` are active in a window, beside the
    truth. In each window there are `growth` more new devices, as a part of those before."""
    import numpy as np

    from deniable import windows
    from deniable.mechanisms import MemoizedRetention
    from deniable_collector.tally import Tally
    from deniable_estimator.analyses.retention import WindowedTally
    from deniable_estimator.answers import answer_of
    from deniable_estimator.planning.retention_crowd import Life, reported, windows_of
    from deniable_estimator.statistics.participation import Participation
    from deniable_estimator.terminal.options import progress

    mechanism = declared.scheme.mechanism
    assert isinstance(mechanism, MemoizedRetention)
    channels = dict(zip(mechanism.asks, mechanism.channels, strict=True))
    base = Life.steady(devices, **rates)
    lives = [replace(base, new=base.new * (1 + growth) ** at) for at in range(windows_count)]
    label = windows.window_at(declared.window, windows.start(_FIRST))
    labels, tallies, seen = [], [], []
    with progress(f"Simulating {windows_count} windows"):
        for window in windows_of(
            lives,
            channels.get("lifecycle"),
            channels.get("cohorts"),
            rng,
            first=windows.number(label),
            older=max(0.0, devices - base.new),
            sample_rate=declared.rate,
        ):
            memos = {"lifecycle": window.lifecycle_memos, "cohorts": window.cohort_memos}
            rows = tuple(reported(channels[each], memos[each], rng) for each in mechanism.asks)
            tallies.append(Tally(declared.name, declared.scheme.fingerprint, (label,), rows))
            labels.append(label)
            seen.append(window)
            label = windows.window_at(declared.window, windows.end(label))
        rows = tuple(
            sum(same[1:], same[0]) for same in zip(*(each.rows for each in tallies), strict=True)
        )
        whole = WindowedTally(
            *(declared.name, declared.scheme.fingerprint, tuple(labels), rows), each=tuple(tallies)
        )
        participation = Participation(
            {each.windows[0]: each.reports for each in tallies}, declared.rate
        )
        answer = answer_of(whole, declared.scheme, level=level, participation=participation)
    truth: dict[str, float] = {}
    if "lifecycle" in channels:
        lived = np.sum([each.lifecycle for each in seen], axis=0)
        truth |= dict(
            zip(("new", "stayed", "returned"), (lived / lived.sum()).tolist(), strict=True)
        )
    if "cohorts" in channels:
        cohorts = np.array([each.cohorts for each in seen], np.float64)
        for age in range(1, min(mechanism.ages, windows_count - 1) + 1):
            truth[f"age {age}"] = float(cohorts[age:, age].sum() / cohorts[:-age, 0].sum())
    if form == "json":
        report: dict[str, Any] = {"devices": devices, **answer.to_dict()}
        for row in report["series"]:
            row["truth"] = truth.get(row["series"])
        click.echo(json.dumps(report, ensure_ascii=False))
        return
    from rich.console import Console

    # Registers how a retention is shown.
    from deniable_estimator.terminal import retention  # noqa: F401
    from deniable_estimator.terminal.tables import estimate_view

    Console().print(estimate_view(answer, truth))
