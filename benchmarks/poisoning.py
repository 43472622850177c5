"""How often attacks are noticed: the table of docs/poisoning.md.

    python benchmarks/poisoning.py [--tallies 40]

Each attack is simulated at 1% and 5% of 100,000 reports; honest tallies are drawn from their
exact distribution. Seed 1.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable.mechanisms import ProjectiveGeometry, SubsetSelection, UnaryEncoding
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import estimate

REPORTS = 100_000
_Cells = NDArray[np.int64]
_rng = np.random.default_rng(1)


def subsets(mechanism: SubsetSelection, targets: int, fakes: int) -> _Cells:
    """Fakes that select all targets, and other columns at random."""
    first = mechanism.size // 2
    order = np.argsort(_rng.random((fakes, mechanism.size - targets)), axis=1)
    others = np.concatenate([np.arange(first), np.arange(first + targets, mechanism.size)])
    chosen = others[order[:, : mechanism.k - targets]]
    cells = np.bincount(chosen.ravel(), minlength=mechanism.size)
    cells[first : first + targets] = fakes
    return cells


def bitmaps(mechanism: UnaryEncoding, targets: int, fakes: int, *, padded: bool) -> _Cells:
    """Fakes that set the bits of all targets, and as many others as honest devices, or none."""
    first, rest = mechanism.size // 2, mechanism.size - targets
    wanted = float(mechanism.p + (mechanism.size - 1) * mechanism.q) - targets
    cells = _rng.binomial(fakes, wanted / rest if padded else 0.0, mechanism.size)
    cells[first : first + targets] = fakes
    return cells


def messages(mechanism: ProjectiveGeometry, targets: int, fakes: int) -> _Cells:
    """Fakes that send messages which support as many of some random targets as any does."""
    aims = _rng.choice(mechanism.size, targets, replace=False)
    counts = Counter(cell.column for aim in aims for cell in mechanism.support(int(aim)))
    most = max(counts.values())
    best = [column for column, count in counts.items() if count == most]
    return np.bincount(_rng.choice(best, fakes), minlength=mechanism.messages)


def noticed(
    scheme: Scheme, power: float, part: float, attack: Callable[[int], _Cells], tallies: int
) -> float:
    """The part of attacked tallies that raise an alarm."""
    weights = np.arange(1, len(scheme.values) + 1) ** -power
    fakes = round(REPORTS * part)
    alarms = 0
    for _ in range(tallies):
        counts = _rng.multinomial(REPORTS - fakes, weights / weights.sum())
        honest = sample_tally(scheme, counts, _rng)
        row = TallyRow(REPORTS, honest.rows[0].cells + attack(fakes))
        alarms += estimate(Tally("", scheme.fingerprint, (), (row,)), scheme).anomalous
    return alarms / tallies


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tallies", type=int, default=40)
    tallies = parser.parse_args().tallies
    sets = SubsetSelection.design(100, 1.0)
    unary = UnaryEncoding.optimized(100, 1.0)
    space = ProjectiveGeometry.design(5000, 2.0)
    for name, mechanism, power, attack in (
        ("subset selection, 1 target", sets, 1.5, lambda n: subsets(sets, 1, n)),
        ("5 targets", sets, 1.0, lambda n: subsets(sets, 5, n)),
        ("5 targets, 1/rank^1.5", sets, 1.5, lambda n: subsets(sets, 5, n)),
        ("27 targets, 1/rank^1.5", sets, 1.5, lambda n: subsets(sets, 27, n)),
        ("unary, 1 target, bare", unary, 1.0, lambda n: bitmaps(unary, 1, n, padded=False)),
        ("1 target, padded", unary, 1.0, lambda n: bitmaps(unary, 1, n, padded=True)),
        ("5 targets, padded", unary, 1.0, lambda n: bitmaps(unary, 5, n, padded=True)),
        ("projective geometry, 1 target", space, 1.0, lambda n: messages(space, 1, n)),
        ("2 targets", space, 1.0, lambda n: messages(space, 2, n)),
        ("3 targets", space, 1.0, lambda n: messages(space, 3, n)),
        ("6 targets", space, 1.0, lambda n: messages(space, 6, n)),
    ):
        values = tuple(f"v{number}" for number in range(mechanism.size))
        scheme = Scheme("category", mechanism, values)
        found = [noticed(scheme, power, part, attack, tallies) for part in (0.01, 0.05)]
        print(f"{name:32} {found[0]:.2f} {found[1]:.2f}", flush=True)


if __name__ == "__main__":
    main()
