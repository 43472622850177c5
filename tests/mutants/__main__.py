"""Put faults into the product, one at a time, and see whether `make test` notices (`make mutants`).

The tests run once without a fault, and what each executes is measured. Then each mutant of a random
sample is judged by the tests that execute its statement.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import click

from .judging import Judges, preload
from .mutants import Mutant, mutants_of

ROOT = Path(__file__).parents[2]
MAP = ROOT / ".make" / "mutants"
ROOMS = ("client/deniable", "collector/deniable_collector", "estimator/deniable_estimator")
LEAST_NOTICED = 0.8
"""About 6 of 100 faults change nothing that anybody can see, and a sample errs by 4 of 100."""


@click.command()
@click.argument("words", nargs=-1)
@click.option("--sample", type=int, default=300, help="How many mutants are tried.")
@click.option("--seed", type=int, default=1, help="Draw another sample.")
@click.option("--tests", default="tests", help="Judge by the tests of this folder alone.")
@click.option("--again", is_flag=True, help="Use the last measurement of what each test executes.")
def main(words: tuple[str, ...], sample: int, seed: int, tests: str, again: bool) -> None:
    """Judge a sample of all mutants, or of those whose paths hold one of these WORDS.

    Ends with 1 if fewer than 80% are noticed.
    """
    every = [
        mutant
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*"))
        if path.suffix in (".py", ".lua")
        if not words or any(word in str(path.relative_to(ROOT)) for word in words)
        for mutant in mutants_of(path)
    ]
    chosen = random.Random(seed).sample(every, min(sample, len(every)))
    print(f"{len(chosen)} of {len(every)} mutants, seed {seed}", flush=True)
    if not again:
        measure(tests)
    preload()
    global _judges, _mutants
    _judges, _mutants = Judges(MAP), chosen
    if _judges.judge(chosen[0]._replace(make=chosen[0].path.read_text)) not in (
        "survived",
        "unseen",
    ):
        sys.exit(f"the tests of {chosen[0].path} fail without a fault")
    verdicts: dict[str, Counter[str]] = {room: Counter() for room in ROOMS}
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("fork")) as pool:
        found = zip(chosen, pool.map(_verdict, range(len(chosen))), strict=True)
        for number, (mutant, verdict) in enumerate(found, 1):
            path = mutant.path.relative_to(ROOT)
            verdicts["/".join(path.parts[:2])][verdict] += 1
            if verdict in ("survived", "unseen"):
                print(f"{number} {verdict}: {mutant._replace(path=path)}", flush=True)
    print("\n| room | tried | noticed | survived | share |\n| --- | --- | --- | --- | --- |")
    for room, counts in verdicts.items():
        print(_row(room, counts))
    total = sum(verdicts.values(), Counter())
    print(_row("all", total))
    sys.exit(_noticed(total) < LEAST_NOTICED * total.total())


def measure(tests):
    """Run `make test` with a plugin that notes what each test executes."""
    shutil.rmtree(MAP, ignore_errors=True)
    MAP.mkdir(parents=True)
    command = [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "worksteal", "-q"]
    # A plugin of -p would be imported by pytest's workers after the first conftest.
    environ = {"PYTEST_PLUGINS": "tests.mutants.watching", "MUTANTS_FOLDER": str(MAP)}
    command += ["-m", "not campaign", tests]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **environ}, check=False)


def _verdict(place):
    return _judges.judge(_mutants[place])


def _noticed(counts):
    return counts["noticed"] + counts["timeout"]


def _row(name, counts):
    """A line of the table."""
    tried, noticed = counts.total(), _noticed(counts)
    share = f"{noticed / tried:.1%}" if tried else ""
    return f"| {name} | {tried} | {noticed} | {tried - noticed} | {share} |"


_judges: Judges
_mutants: list[Mutant]

if __name__ == "__main__":
    main()
