"""Put faults into the core, one at a time, and see whether its tests notice (`make mutants`).

`modules.toml` says which tests judge which module, and how many of its mutants are tried; the
mutants that no test can notice are in `equivalents.toml`, each with the reason.
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from .judging import Judges, preload
from .mutants import Mutant, mutants_of, shuffled, written

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

LEAST_KILLED = 0.9
"""Of the mutants that are not equivalent, in every module."""

CHANCE = 0.001
"""A hurried sample fails a module only if so few are noticed at most this often by chance, where
the tests notice LEAST_KILLED of all of its mutants."""


LONGEST = 1800.0
"""Seconds that the tests of a module may take."""


@dataclass
class Result:
    """What became of the mutants of one module, or of several."""

    path: str
    mutants: int
    asked: int
    verdicts: Counter[str] = field(default_factory=Counter)
    survivors: list[Mutant] = field(default_factory=list)

    @classmethod
    def of(cls, results: list[Result]) -> Result:
        """All together."""
        every, asked = sum(each.mutants for each in results), sum(each.asked for each in results)
        return cls("all", every, asked, sum((each.verdicts for each in results), Counter()))

    @property
    def tried(self) -> int:
        """How many were judged, or are known to be equivalent."""
        return self.verdicts.total()

    @property
    def noticed(self) -> int:
        """How many let a test fail, or run without end."""
        return self.verdicts["killed"] + self.verdicts["timeout"]

    @property
    def killed(self) -> float:
        """The share of those noticed among those that are not equivalent; 1 of none."""
        judged = self.tried - self.verdicts["equivalent"]
        return self.noticed / judged if judged else 1.0

    @property
    def by_chance(self) -> float:
        """How often so few or fewer of the mutants tried are noticed, if LEAST_KILLED of all are:
        the lower tail of a binomial distribution."""
        judged = self.tried - self.verdicts["equivalent"]
        return math.fsum(
            math.comb(judged, count) * LEAST_KILLED**count * (1 - LEAST_KILLED) ** (judged - count)
            for count in range(self.noticed + 1)
        )

    @property
    def row(self) -> str:
        """As a line of the report's table."""
        counts = (self.mutants, self.tried, self.noticed, self.verdicts["survived"])
        cells = (self.path, *counts, self.verdicts["equivalent"], f"{self.killed:.1%}")
        return f"| {' | '.join(map(str, cells))} |"


HEAD = """
| module | mutants | tried | killed | survived | equivalent | killed of the others |
| --- | --- | --- | --- | --- | --- | --- |"""


@click.command()
@click.argument("modules", nargs=-1)
@click.option("--sample", type=int, help="Mutants of each module; by default as modules.toml says.")
@click.option("--seed", type=int, help="Draw another sample than that of modules.toml.")
@click.option(
    "--changed",
    metavar="COMMIT",
    help="Only modules that differ from COMMIT; mutants of changed lines come first.",
)
@click.option("--seconds", type=float, help="Try no other mutant after so many seconds.")
def main(
    modules: tuple[str, ...],
    sample: int | None,
    seed: int | None,
    changed: str | None,
    seconds: float | None,
) -> None:
    """Judge the core, or those MODULES whose paths hold one of these words.

    Ends with 1 if a module's tests notice fewer than 90% of its mutants. With --seconds, only if
    they surely do: the mutants that there was time for are a sample.
    """
    settings = tomllib.loads((HERE / "modules.toml").read_text(encoding="utf-8"))
    lines = {} if changed is None else changed_lines(changed)
    asked = [
        each
        for each in settings["module"]
        if (not modules or any(word in each["path"] for word in modules))
        and (changed is None or each["path"] in lines)
    ]
    ends = math.inf if seconds is None else time.monotonic() + seconds
    preload()
    results = []
    for number, module in enumerate(asked):
        if time.monotonic() > ends:
            print(f"\n{module['path']}: left out for want of time")
            continue
        share = (ends - time.monotonic()) / (len(asked) - number)
        plan = {**settings, **module}
        plan["seed"] = settings["seed"] if seed is None else seed
        plan["sample"] = sample or plan["sample"]
        result = judge(plan, lines.get(module["path"], set()), share)
        results.append(result)
        for mutant in result.survivors:
            print(f"  survived ({mutant.operator}) {mutant}")
        if result.tried < result.asked:
            print(f"  left out for want of time: {result.asked - result.tried} mutants")
    print(HEAD)
    for result in results:
        print(result.row)
    print(Result.of(results).row)
    weak = [
        each
        for each in results
        if each.killed < LEAST_KILLED and (seconds is None or each.by_chance <= CHANCE)
    ]
    for each in weak:
        print(f"{each.path}: fewer than {LEAST_KILLED:.0%} of the mutants are noticed")
    sys.exit(1 if weak else 0)


def judge(plan: dict[str, Any], first: set[int], seconds: float) -> Result:
    """Try mutants of a module for so many seconds, those of the lines `first` before others."""
    ends = time.monotonic() + seconds
    name, path = plan["path"], ROOT / plan["path"]
    every = written(path, plan["faults"]) if "faults" in plan else mutants_of(path)
    chosen = shuffled(name, every, plan["seed"])
    chosen.sort(key=lambda mutant: mutant.line not in first)
    chosen = chosen[: plan["sample"]]
    result = Result(name, len(every), len(chosen))
    print(f"\n{name}: {len(chosen)} of {len(every)} mutants", flush=True)
    judges = Judges(path, plan["tests"], plan["limit"])
    try:
        if not judges.measure(min(seconds, LONGEST)):
            return result
    except RuntimeError as error:
        # In a hurry, beside other work, a test may fail for want of time: `make test` is the judge.
        if math.isinf(seconds):
            raise
        print(f"  not judged: {error}")
        return result
    known = equivalents(name)
    for mutant in chosen:
        if time.monotonic() > ends:
            break
        verdict = "equivalent" if mutant.key in known else judges.judge(mutant)
        result.verdicts[verdict] += 1
        if verdict == "survived":
            result.survivors.append(mutant)
    return result


def equivalents(path: str) -> set[tuple[str, str]]:
    """The mutants of a module that no test can notice, as lists in equivalents.toml."""
    document = tomllib.loads((HERE / "equivalents.toml").read_text(encoding="utf-8"))
    return {
        (each["was"], becomes)
        for each in document.get("equivalent", [])
        if each["path"] == path
        for becomes in each["becomes"]
    }


def changed_lines(base: str) -> dict[str, set[int]]:
    """The lines of each file that differ from a commit, as `git diff` numbers them now."""
    command = ["git", "-C", str(ROOT), "diff", "--unified=0", "--no-renames", base]
    found: dict[str, set[int]] = {}
    path = ""
    for line in subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stdout.splitlines():
        if line.startswith("+++ "):
            path = line.removeprefix("+++ b/")
        elif line.startswith("@@"):
            start, _, count = line.split()[2].lstrip("+").partition(",")
            lines = range(int(start), int(start) + int(count or 1))
            found.setdefault(path, set()).update(lines)
    return found


if __name__ == "__main__":
    main()
