"""Writes docs/deployed-systems.md and its chart: every figure on the page is computed here.

Run: python docs/deployed_systems.py [--quick]
"""

from __future__ import annotations

import sys
from pathlib import Path

# The page measures as the benchmarks do.
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import click
from rich.console import Console

from deployed.chart import bars
from deployed.page import page
from deployed.simulation import Outcome, simulate
from deployed.systems import DENIABLE_CATEGORY, DENIABLE_STRING, SYSTEMS
from deployed.timings import times

HERE = Path(__file__).parent
SEED = 20261121


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Three runs of each simulation, not twenty.")
def main(quick: bool) -> None:
    runs = 3 if quick else 20
    outcomes: dict[tuple[str, float], Outcome] = {}
    with Console(stderr=True).status("Starting") as status:
        for system in SYSTEMS:
            if system is not DENIABLE_CATEGORY:
                for epsilon in system.epsilons:
                    status.update(f"Simulating {system.name}, epsilon {epsilon:.3g} ...")
                    outcomes[system.name, epsilon] = simulate(system, epsilon, runs, SEED)
        measured = {}
        for system in SYSTEMS:
            status.update(f"Timing {system.name} ...")
            measured[system.name] = times(system)
    groups = []
    for epsilon in DENIABLE_STRING.epsilons:
        ours = DENIABLE_STRING.channel(epsilon).variance
        members = [
            (system.name, system.channel(epsilon).variance / ours, system is DENIABLE_STRING)
            for system in SYSTEMS
            if epsilon in system.epsilons and system is not DENIABLE_CATEGORY
        ]
        groups.append((f"epsilon {epsilon:.4g}", members))
    (HERE / "images").mkdir(exist_ok=True)
    chart = bars("Devices needed for the same error, as a multiple of deniable's", groups)
    (HERE / "images" / "deployed-systems.svg").write_text(chart, encoding="utf-8")
    (HERE / "deployed-systems.md").write_text(page(outcomes, measured, runs), encoding="utf-8")


if __name__ == "__main__":
    main()
