"""`deniable plan simulate` of a retention: many windows of a crowd that comes, stays and goes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from deniable.protocol.types import Retention

if TYPE_CHECKING:
    from numpy.random import Generator

    from deniable import Metric

_FIRST = "2026-01-05"
"""A Monday, on which the first window begins; of months, the first of them."""


def simulate_retention(
    declared: Metric,
    devices: int,
    lives: tuple[float, float, float, float, int],
    rng: Generator,
    form: str | None,
) -> None:
    """Print what is estimated of a crowd of which `devices` are active in a window, beside the
    truth. `lives` are the rates of `Life`, by how much the new devices grow in each window, and how
    many windows there are."""
    from deniable.protocol import windows
    from deniable_estimator.analyses.retention import WindowedTally
    from deniable_estimator.answers import answer_of
    from deniable_estimator.planning.retention_crowd import Life, tallies_of, true_series
    from deniable_estimator.statistics.participation import Participation
    from deniable_estimator.terminal.options import progress

    back, stays, returns, growth, count = lives
    base = Life.steady(devices, back=back, stays=stays, returns=returns)
    lived = [replace(base, new=base.new * (1 + growth) ** at) for at in range(count)]
    first = windows.window_at(declared.window, windows.start(_FIRST))
    labels = [windows.shifted(first, place) for place in range(count)]
    older = max(0.0, devices - base.new)
    with progress(f"Simulating {count} windows"):
        drawn = list(tallies_of(declared, labels, lived, rng, older=older))
        tallies = [tally for tally, _ in drawn]
        rows = tuple(
            sum(same[1:], same[0]) for same in zip(*(each.rows for each in tallies), strict=True)
        )
        whole = WindowedTally(
            *(declared.name, declared.scheme.fingerprint, tuple(labels), rows), each=tuple(tallies)
        )
        participation = Participation(
            {each.windows[0]: each.reports for each in tallies}, declared.rate
        )
        answer = answer_of(whole, declared.scheme, participation=participation)
    assert isinstance(declared.type, Retention)
    truth = true_series([window for _, window in drawn], declared.type.ages)
    if form == "json":
        report: dict[str, Any] = {"devices": devices, **answer.to_dict()}
        for row in report["series"]:
            row["truth"] = truth.get(row["series"])
        click.echo(json.dumps(report, ensure_ascii=False))
        return
    from deniable_estimator.document.terminal import show
    from deniable_estimator.terminal.answers import answer_document

    show(answer_document(answer, truth))
