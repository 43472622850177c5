"""The words and tables of the page, around figures that are handed in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

from deployed.simulation import CANDIDATES, DEVICES, LISTED, TRUE, ZIPF, Outcome
from deployed.systems import (
    CMS_HASHES,
    DENIABLE_STRING,
    EMOJI,
    RAPPOR,
    RAPPOR_EPSILON,
    SYSTEMS,
)
from deployed.timings import REPORTS, Times
from oracles.tables import number

__all__ = ["page"]

_WORDS = Path(__file__).with_name("page.md.in")


def page(
    outcomes: Mapping[tuple[str, float], Outcome], measured: Mapping[str, Times], runs: int
) -> str:
    """The page in Markdown: page.md.in with these figures."""
    half = RAPPOR.f / 2
    return Template(_WORDS.read_text(encoding="utf-8")).substitute(
        settings=_settings(),
        errors=_errors(),
        simulated=_simulated(outcomes),
        costs=_costs(measured),
        rappor_epsilon=f"{RAPPOR_EPSILON:.4f}",
        rappor_lifetime=f"{2 * RAPPOR.h * math.log((1 - half) / half):.2f}",
        devices=f"{DEVICES:,}",
        candidates=f"{CANDIDATES:,}",
        true=TRUE,
        listed=LISTED,
        unlisted=TRUE - LISTED,
        zipf=ZIPF,
        emoji=f"{EMOJI:,}",
        reports=f"{REPORTS:,}",
        runs=runs,
        hashed_billions=f"{CANDIDATES * CMS_HASHES / 1e9:.1f}",
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _settings() -> str:
    rows = []
    for system in SYSTEMS:
        epsilons = ", ".join(f"{each:.4g}" for each in system.epsilons)
        rows.append([system.name, system.parameters, epsilons])
    return _table(["system", "settings", "epsilon of one report"], rows)


def _errors() -> str:
    rows = []
    for epsilon in DENIABLE_STRING.epsilons:
        ours = DENIABLE_STRING.channel(epsilon).variance
        e = math.exp(epsilon)
        figures = [
            (system.name, system.channel(epsilon).variance)
            for system in SYSTEMS
            if epsilon in system.epsilons
        ]
        for name, variance in [*figures, ("*best possible*", 4 * e / (e - 1) ** 2)]:
            rows.append(
                [
                    name,
                    f"{epsilon:.4g}",
                    f"{100 * math.sqrt(variance / DEVICES):.4f}",
                    f"{DEVICES * variance / ours:,.0f}",
                    f"{variance / ours:.2f}",
                ]
            )
    header = ["system", "epsilon", "standard error, points", "devices needed", "times deniable's"]
    return _table(header, rows)


def _simulated(outcomes: Mapping[tuple[str, float], Outcome]) -> str:
    rows = []
    for (name, epsilon), outcome in sorted(outcomes.items(), key=lambda each: each[0][1]):
        rows.append(
            [
                name,
                f"{epsilon:.4g}",
                f"{outcome.found:.1f}",
                f"{100 * outcome.false:.1f}%",
                f"{100 * outcome.rmse:.3f}",
            ]
        )
    header = [
        "system",
        "epsilon",
        "strings found",
        "false discoveries",
        "error of the 30 commonest, points",
    ]
    return _table(header, rows)


def _costs(measured: Mapping[str, Times]) -> str:
    rows = []
    for system in SYSTEMS:
        channels = [system.channel(epsilon) for epsilon in system.epsilons]
        sizes = sorted({math.ceil(each.bits / 8) for each in channels})
        size = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
        cells = max(each.cells for each in channels)
        each = measured[system.name]
        rows.append(
            [
                system.name,
                size,
                f"{cells:,}",
                number(each.device_us),
                number(each.fold_us),
                number(each.estimate_seconds),
            ]
        )
    header = [
        "system",
        "report, bytes",
        "tally, cells",
        "device, μs",
        "fold, μs a report",
        "estimate, s",
    ]
    return _table(header, rows)
