"""What published sums reveal: how tight the bounds are, and how long the accounting takes.

python benchmarks/outsider.py

First the bound's delta over the least delta of all reports of a small crowd, enumerated. Then the
bound's epsilon over that of one crowd, in which all others have the same known value: it is exact
for that crowd, so no bound can be below it. Last how long 50 metrics take, beside one metric.
"""

from __future__ import annotations

import math
import time
from itertools import product

import numpy as np
from scipy import stats

from deniable import Registry
from deniable_estimator.privacy.blanket import crowd_epsilon, hidden, within
from deniable_estimator.privacy.outsider import outsider_of, outsider_together

_EPSILONS = (0.0, 0.3, 0.8)


def _binary_exact(odds: float, reports: int, epsilon: float) -> float:
    """The least delta of binary randomized response for the worst crowd of so many devices."""
    truth = odds / (1 + odds)
    worst = 0.0
    for ones in range(reports):
        others = np.convolve(
            stats.binom.pmf(np.arange(ones + 1), ones, truth),
            stats.binom.pmf(np.arange(reports - ones), reports - 1 - ones, 1 - truth),
        )
        first = np.convolve(others, [1 - truth, truth])
        second = np.convolve(others, [truth, 1 - truth])
        for p, q in ((first, second), (second, first)):
            worst = max(worst, float(np.maximum(0, p - math.exp(epsilon) * q).sum()))
    return worst


def _attack(odds: float, reports: int, delta: float) -> float:
    """The least epsilon at delta of binary randomized response among others that all have one."""
    truth = odds / (1 + odds)
    others = stats.binom.pmf(np.arange(reports), reports - 1, truth)
    first = np.convolve(others, [1 - truth, truth])
    second = np.convolve(others, [truth, 1 - truth])

    def found(epsilon: float) -> float:
        pairs = ((first, second), (second, first))
        return max(float(np.maximum(0, p - math.exp(epsilon) * q).sum()) for p, q in pairs)

    below, above = 0.0, math.log(odds)
    for _ in range(40):
        middle = (below + above) / 2
        below, above = (middle, above) if found(middle) > delta else (below, middle)
    return below


def main() -> None:
    """Print the three tables."""
    print("| n | epsilon 0 | epsilon | delta, bound / exact | any mechanism / exact |")
    print("| --- | --- | --- | --- | --- |")
    for reports, own, epsilon in product((1, 2, 4, 8), (0.5, 1.0, 2.0), _EPSILONS):
        exact = _binary_exact(math.exp(own), reports, epsilon)
        if exact > 1e-12:
            bounds = (within(0.5, math.exp(own), own), hidden(own))
            ratios = [each.delta(epsilon, reports) / exact for each in bounds]
            assert min(ratios) >= 1
            print(f"| {reports} | {own} | {epsilon} | {ratios[0]:.3f} | {ratios[1]:.3f} |")
    print("\n| n | epsilon 0 | epsilon at 1e-8 | bound / attack | any mechanism / attack |")
    print("| --- | --- | --- | --- | --- |")
    for reports, own in product((10**3, 10**4, 10**5, 10**6), (0.5, 1.0, 2.0, 4.0)):
        attack = _attack(math.exp(own), reports, 1e-8)
        found = crowd_epsilon(within(0.5, math.exp(own), own), reports, 1e-8)
        loose = crowd_epsilon(hidden(own), reports, 1e-8)
        print(
            f"| {reports:,} | {own} | {found:.5f} | {found / attack:.3f} | {loose / attack:.3f} |"
        )
    head = 'schema = 1\napp = "a"\n[defaults]\nowner = "a@b.example"\nexpires = 2099-01-01\n'
    registry = Registry.parse(
        head
        + "".join(
            f'[metrics.m{i}]\ntype = "category"\ndescription = "A."\nepsilon = {1 + i / 50}\n'
            f"lifetime_epsilon = 1000.0\nvalues = {[f'v{j}' for j in range(i + 2)]}\n"
            for i in range(50)
        )
    )
    print("\n| what | reports | seconds | of the CPU |\n| --- | --- | --- | --- |")
    for reports in (10**4, 10**5):
        for what in ("one metric", "50 metrics"):
            start, busy = time.perf_counter(), time.process_time()
            if what == "one metric":
                outsider_of(registry, registry["m49"], reports, 2e-8)
            else:
                outsider_together(registry, reports)
            took, used = time.perf_counter() - start, time.process_time() - busy
            print(f"| {what}, four spans | {reports:,} | {took:.2f} | {used:.2f} |")


if __name__ == "__main__":
    main()
