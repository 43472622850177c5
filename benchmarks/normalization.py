"""What normalizing shares costs: the errors of the largest ones and of sums, beside other rules.

Tallies are drawn from their exact distribution and estimated as ever; each rule gets the same
unbiased shares and what is detected of them. Where not all of the crowd is listed, one more value
that is not asked for has the rest. Most other rules are from Wang et al., NDSS 2020.
Run: python benchmarks/normalization.py [--tallies 30]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from deniable import Scheme
from deniable.mechanisms import design
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import Shares, estimate
from deniable_estimator.planning.population import zipf_shares
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.normalization import normalize

SETTINGS = (
    # values, epsilon, reports, population, listed part of the crowd
    (5, 1.0, 10_000, "Zipf 1.1", 1.0),
    (5, 1.0, 10_000, "one heavy", 1.0),
    (20, 1.0, 10_000, "Zipf 1.1", 1.0),
    (100, 1.0, 10_000, "uniform", 1.0),
    (100, 1.0, 100_000, "Zipf 1.1", 1.0),
    (100, 1.0, 100_000, "Zipf 1.1", 0.7),
    (1_000, 1.0, 10_000, "uniform", 1.0),
    (1_000, 1.0, 100_000, "Zipf 1.1", 1.0),
    (1_000, 4.0, 1_000_000, "Zipf 1.3", 0.7),
    (1_000, 2.0, 100_000, "one heavy", 1.0),
    (10_000, 1.0, 1_000_000, "Zipf 1.1", 1.0),
    (10_000, 4.0, 1_000_000, "Zipf 1.1", 0.7),
    (100_000, 2.0, 10_000, "uniform", 1.0),
    (100_000, 1.0, 1_000_000, "Zipf 1.1", 0.7),
    (100_000, 2.0, 1_000_000, "Zipf 1.1", 1.0),
    (100_000, 2.0, 1_000_000, "Zipf 1.1", 0.7),
    (100_000, 1.0, 10_000_000, "Zipf 1.3", 1.0),
)
TOP = 20
SUMS = 10
"""Random halves and ranges for each tally."""

_Mask: TypeAlias = NDArray[np.bool_]


def nearest(share: FloatArray, total: float, weight: FloatArray | None = None) -> FloatArray:
    """The nearest non-negative shares that sum to `total`, by bisection; distances squared are
    divided by `weight`."""
    if total <= 0 or not len(share):
        return np.zeros(len(share))
    weight = np.ones(len(share)) if weight is None else weight / weight.mean()
    low, high = ((share - total) / weight).min(), (share / weight).max()
    for _ in range(100):
        middle = (low + high) / 2
        if np.maximum(share - middle * weight, 0).sum() > total:
            low = middle
        else:
            high = middle
    return np.maximum(share - high * weight, 0)


def norm_sub(answer: Shares, weight: FloatArray | None = None) -> FloatArray:
    """The nearest possible shares."""
    if not answer.complete and np.maximum(answer.share, 0).sum() <= 1:
        return np.maximum(answer.share, 0)
    return nearest(answer.share, 1.0, weight)


def weighted(answer: Shares) -> FloatArray:
    """The same, with each share's distance in its standard errors."""
    return norm_sub(answer, answer.std_error**2)


def norm_cut(answer: Shares) -> FloatArray:
    """The largest shares, until they sum to one."""
    falling = np.argsort(-answer.share)
    cut = np.maximum(answer.share[falling], 0)
    before = np.cumsum(cut) - cut
    result = np.zeros(len(cut))
    result[falling] = np.clip(1 - before, 0, cut)
    return result / result.sum() if answer.complete and result.sum() else result


def base_cut(answer: Shares) -> FloatArray:
    """What is detected."""
    return np.where(answer.detected, answer.share, 0.0)


def threshold(answer: Shares) -> FloatArray:
    """The nearest shares after dropping what is not detected."""
    result = np.zeros(len(answer.share))
    found = answer.share[answer.detected]
    exact = answer.complete or np.maximum(found, 0).sum() > 1
    result[answer.detected] = nearest(found, 1.0) if exact else np.maximum(found, 0)
    return result


def kept(answer: Shares, spread: Callable[[Shares, _Mask, float], FloatArray]) -> FloatArray:
    """The detected as they are, and the others by another rule that knows their sum."""
    result = normalize(answer.share, answer.detected, complete=answer.complete)
    others = ~answer.detected
    if others.any():
        result[others] = spread(answer, others, result[others].sum())
    return result


def even(answer: Shares, others: _Mask, total: float) -> FloatArray:
    """Equal parts."""
    return np.full(others.sum(), total / others.sum())


def shrunk(answer: Shares, others: _Mask, total: float) -> FloatArray:
    """Shares shrunk to their mean (James and Stein, Proc. Fourth Berkeley Symp. 1961)."""
    share = answer.share[others]
    apart = share - share.mean()
    noise = (len(share) - 3) * np.mean(answer.std_error[others] ** 2)
    factor = max(0.0, 1 - noise / (apart @ apart)) if len(share) > 3 else 1.0
    return nearest(total / len(share) + factor * apart, total)


RULES: dict[str, Callable[[Shares], FloatArray]] = {
    "unbiased": lambda answer: answer.share,
    "normalized": lambda answer: answer.normalized,
    "nearest (Norm-Sub)": norm_sub,
    "nearest in std errors": weighted,
    "largest (Norm-Cut)": norm_cut,
    "detected (Base-Cut)": base_cut,
    "nearest of the detected": threshold,
    "detected, rest even": lambda answer: kept(answer, even),
    "detected, rest shrunk": lambda answer: kept(answer, shrunk),
}


def population(name: str, size: int) -> FloatArray:
    """Shares that sum to one, falling."""
    if name == "uniform":
        return np.full(size, 1 / size)
    if name == "one heavy":
        return np.array([0.9] + [0.1 / (size - 1)] * (size - 1))
    return zipf_shares(size, float(name.split()[1]))


def errors(
    size: int, epsilon: float, reports: int, name: str, listed: float, tallies: int
) -> Table:
    rng = np.random.default_rng(1)
    complete = listed == 1
    domain = size if complete else size + 1
    scheme = Scheme("category", design("auto", domain, epsilon), tuple(map(str, range(domain))))
    # Values are declared in any order: ranges hold large and small ones.
    order = rng.permutation(size)
    truth = listed * population(name, size)[order]
    top = np.argsort(order)[:TOP]
    crowd = truth if complete else np.append(truth, 1 - listed)
    asked = None if complete else scheme.values[:size]
    width = max(1, size // 10)
    figures = {rule: np.zeros(5) for rule in RULES}
    detected = 0
    for _ in range(tallies):
        answer = estimate(sample_tally(scheme, rng.multinomial(reports, crowd), rng), scheme, asked)
        detected += int(answer.detected[top].sum())
        halves = [rng.permutation(size)[: size // 2] for _ in range(SUMS)]
        starts = rng.integers(0, size - width + 1, SUMS)
        for rule, make in RULES.items():
            share = make(answer)
            error = share - truth
            sums = np.concatenate([[0.0], np.cumsum(error)])
            inside = (answer.low <= share) & (share <= answer.high)
            figures[rule] += (
                error[top].mean(),
                np.square(error[top]).mean(),
                np.mean([error[half].sum() ** 2 for half in halves]),
                np.square(sums[starts + width] - sums[starts]).mean(),
                inside[top].mean(),
            )
    table = Table(
        title=f"{size:,} values, epsilon {epsilon:g}, {reports:,} reports, {name}, "
        f"{100 * listed:g}% listed: the top {len(top)} have {truth[top].mean():.4f} on average, "
        f"{detected / tallies:.1f} of them are detected"
    )
    table.add_column("")
    for column in ("top, mean error", "top, RMSE", "halves, RMSE", "tenths, RMSE", "top inside"):
        table.add_column(column, justify="right")
    for rule, sums in figures.items():
        mean, *squares, inside = sums / tallies
        roots = [f"{np.sqrt(each):.5f}" for each in squares]
        table.add_row(rule, f"{mean:+.5f}", *roots, f"{inside:.2f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tallies", type=int, default=30)
    tallies = parser.parse_args().tallies
    console = Console(width=100)
    for setting in SETTINGS:
        few = max(3, tallies // 5) if setting[0] >= 100_000 else tallies
        console.print(errors(*setting, few))


if __name__ == "__main__":
    main()
