"""How often fakes of one day are noticed among 28 days, beside the sum of the days.

    python benchmarks/alarms.py [--pages 40]

A page shows 28 days and compares them with up to 28 days before. A day has 20,000 honest devices,
12 values at epsilon 1, shares falling as 1/rank; fakes all push one value, and fill their reports
up at random. *Sum* is what the tally of all days together shows, which is all that a page of the
sum could know; *own* looks at each day by itself; *before* compares it with the days before as
well, as the pages do. In the second part shares and reports vary by a tenth from day to day, and
one value is twice as frequent on weekends. The rows without fakes count false alarms, of ten times
as many pages. Alarms are at .001, and at .05 in the last row. Seed 1.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from deniable import Scheme
from deniable.mechanisms import SubsetSelection
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import estimate
from deniable_estimator.questions.history import inspect
from deniable_estimator.questions.looks import Look, look
from deniable_estimator.questions.reading import Part, Question
from deniable_estimator.statistics.participation import Participation

SIZE, DEVICES, DAYS, TARGET = 12, 20_000, 28, 5
SCHEME = Scheme(
    "category", SubsetSelection.design(SIZE, 1.0), tuple(f"v{number}" for number in range(SIZE))
)
_rng = np.random.default_rng(1)


def day(number: int, fakes: int, *, varying: bool) -> TallyRow:
    """The reports of one day."""
    shares: NDArray[np.float64] = 1 / np.arange(1, SIZE + 1)
    devices = float(DEVICES)
    if varying:
        shares = shares * np.exp(_rng.normal(0, 0.1, SIZE))
        shares[2] *= 2 if number % 7 > 4 else 1
        devices *= float(np.exp(_rng.normal(0, 0.1)))
    counts = _rng.multinomial(_rng.poisson(devices), shares / shares.sum())
    (row,) = sample_tally(SCHEME, counts, _rng).rows
    others = np.delete(np.arange(SIZE), TARGET)
    chosen = _rng.permuted(np.tile(others, (fakes, 1)), axis=1)[:, : SCHEME.mechanism.k - 1]
    cells = np.bincount(chosen.ravel(), minlength=SIZE)
    cells[TARGET] += fakes
    return row + TallyRow(fakes, cells)


def looked(label: str, row: TallyRow) -> Look:
    tally = Tally("m", SCHEME.fingerprint, (label,), (row,))
    found = look(label, Question((Part(tally, SCHEME, None, Participation.evenly(tally)),)))
    assert found is not None
    return found


def page(fakes: int, level: float, *, varying: bool) -> tuple[bool, bool, bool]:
    """Whether an alarm is raised by the sum, by the days themselves, and with those before."""
    odd = int(_rng.integers(DAYS, 2 * DAYS))
    rows = {
        f"{number:02}": day(number, fakes if number == odd else 0, varying=varying)
        for number in range(2 * DAYS)
    }
    looks = [looked(label, row) for label, row in rows.items()]
    shown = [f"{number:02}" for number in range(DAYS, 2 * DAYS)]
    total = sum((rows[label] for label in shown[1:]), rows[shown[0]])
    tally = Tally("m", SCHEME.fingerprint, tuple(shown), (total,))
    alone = [inspect("m", [each], level) for each in looks if each.label in shown]
    # Each day has two figures of its own, of which the page's level is kept by Bonferroni.
    own = any(each.windows[0].verdict.alarms(level / DAYS) for each in alone)
    return (
        bool(estimate(tally, SCHEME).verdict.alarms(level)),
        own,
        bool(inspect("m", looks, level, shown=shown).anomalous),
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=40)
    pages = parser.parse_args().pages
    table = Table(title="Part of pages with an alarm")
    for name in ("days", "fakes in one day", "sum", "own", "before"):
        table.add_column(name, justify="left" if name == "days" else "right")
    for varying in (False, True):
        for fakes, level in (
            *((number, 0.001) for number in (6000, 3000, 1500, 750, 400, 0)),
            (0, 0.05),
        ):
            count = pages if fakes else 10 * pages
            found = np.mean([page(fakes, level, varying=varying) for _ in range(count)], axis=0)
            told = f"{fakes:,}" if fakes else f"none, at {level:g}"
            table.add_row(
                "varying" if varying else "steady", told, *(f"{each:.3g}" for each in found)
            )
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
