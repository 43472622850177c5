"""Pairs: how exact the joint of two lists is, whether its intervals and its test hold, and what the
planner promises of them.

joint     total variation, beside epsilon split in halves over the two values
coverage  how often 95% intervals hold the truth
size      how often the test of independence calls independent lists dependent
power     how often a dependence is found, beside what `deniable plan pair` promises

The baseline of the joint is what multi-freq-ldpy does: a message of generalized randomized response
for each of the two values. Somebody has to fit a joint to the pairs of messages: here by
expectation maximization (EM), and of subset selection as well where the patterns can be enumerated.
All tallies and messages are drawn from their exact distribution.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from common.tables import Measured, Table, run
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.pairs import Covariance, conditionals
from deniable_estimator.analyses.pairs.dependence import effect, independence, residuals, shrunken
from deniable_estimator.kinds.pairs.plan import power_of, strongest_effect
from deniable_estimator.planning.population import pair_shares, zipf_shares
from deniable_estimator.statistics.counts import share_interval
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.normalization import normalize
from deniable_estimator.statistics.significance import adjust_p, share_p_values

JOINT = tuple(
    (size, n, epsilon)
    for size, n in ((6, 100_000), (6, 1_000_000), (20, 1_000_000))
    for epsilon in (1.0, 2.0, 4.0)
)
"""values of each list, reports, epsilon"""

COVERED = (
    # rows, columns, epsilon, reports
    (2, 2, 1.0, 2_000),
    (2, 2, 1.0, 100_000),
    (3, 4, 1.0, 10_000),
    (6, 6, 1.0, 100_000),
    (6, 6, 4.0, 10_000),
    (10, 10, 2.0, 100_000),
    (20, 20, 2.0, 1_000_000),
)

SIZES = (
    (2, 2, 1.0, 2_000),
    (3, 4, 1.0, 2_000),
    (6, 6, 1.0, 10_000),
    (6, 6, 4.0, 10_000),
    (10, 10, 2.0, 100_000),
    (20, 20, 2.0, 100_000),
    (30, 30, 1.0, 100_000),
)

POWERS = (
    # rows, columns, epsilon, reports, Cramer's V
    (2, 2, 1.0, 5_000, 0.06),
    (3, 4, 1.0, 10_000, 0.1),
    (6, 6, 1.0, 50_000, 0.09),
    (6, 6, 4.0, 5_000, 0.08),
    (10, 10, 2.0, 50_000, 0.09),
)

EM_STEPS = 2000


def truth(rows: int, columns: int, dependence: float = 0.3) -> FloatArray:
    """A table with the margins of Zipf's law, in which some rise together."""
    shares = zipf_shares(rows, 1.0), zipf_shares(columns, 1.0)
    return pair_shares(*shares, dependence).reshape(rows, columns)


def drawn(
    mechanism: SubsetSelection, table: FloatArray, n: int, rng: np.random.Generator
) -> FloatArray:
    counts = rng.multinomial(n, table.ravel())
    (row,) = analysis_of(mechanism).sample_rows(range(table.size), counts, rng)
    p, q = float(mechanism.p), float(mechanism.q)
    found: FloatArray = ((row.cells / n - q) / (p - q)).reshape(table.shape)
    return found


def joint(quick: bool) -> Iterator[Table]:
    table = Table("pairs-joint", "Total variation of the joint (goal: a third of the best of EM)")
    for size, n, epsilon in JOINT:
        rng = np.random.default_rng(size + n)
        f = truth(size, size)
        errors = [
            [
                *(apart(each, f) for each in ours(size, epsilon, n, f, rng)),
                split_responses(f, epsilon, n, rng),
                split_sets(f, epsilon, n, rng) if size <= 6 else math.nan,
            ]
            for _ in range(1 if quick else 4)
        ]
        normalized, shrunk, grr, sets = np.mean(errors, axis=0).tolist()
        best = float(np.nanmin([grr, sets]))
        peers = {"split GRR + EM": grr, "split SS + EM": None if math.isnan(sets) else sets}
        row = {"lists": f"{size} x {size}", "reports": n, "epsilon": epsilon}
        row |= {"normalized": normalized, "shrunken": shrunk, **peers}
        row |= {"normalized / best": normalized / best, "shrunken / best": shrunk / best}
        table.rows.append(row)
    yield table


def ours(
    size: int, epsilon: float, n: int, f: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Our cells, normalized and shrunken, as the answer has them."""
    mechanism = SubsetSelection.design(size * size, epsilon)
    found, model = drawn(mechanism, f, n, rng), Covariance.of(mechanism, n)
    share, noise = found.ravel(), model.noise(1, found.size)
    detected = adjust_p(share_p_values(share, noise), "storey") <= 0.05
    normalized = normalize(share, detected, complete=True).reshape(f.shape)
    return normalized, shrunken(found, residuals(found, model))


def split_responses(f: FloatArray, epsilon: float, n: int, rng: np.random.Generator) -> float:
    """EM on pairs of messages: randomized response with half of epsilon for each value."""
    size, e = len(f), math.exp(epsilon / 2)
    channel = (np.eye(size) * (e - 1) + 1) / (e + size - 1)
    sent = rng.multinomial(n, (channel @ f @ channel.T).ravel())
    return apart(fitted(sent.reshape(f.shape), channel), f)


def split_sets(f: FloatArray, epsilon: float, n: int, rng: np.random.Generator) -> float:
    """EM on pairs of sets: subset selection with half of epsilon for each value."""
    size = len(f)
    mechanism = SubsetSelection.design(size, epsilon / 2)
    patterns = list(combinations(range(size), mechanism.k))
    p, k = float(mechanism.p), mechanism.k
    held, lacking = p / math.comb(size - 1, k - 1), (1 - p) / math.comb(size - 1, k)
    channel = np.array([[held if i in each else lacking for i in range(size)] for each in patterns])
    sent = rng.multinomial(n, (channel @ f @ channel.T).ravel())
    return apart(fitted(sent.reshape(len(patterns), len(patterns)), channel), f)


def fitted(sent: Any, channel: FloatArray) -> FloatArray:
    """The joint that explains pairs of messages best, by expectation maximization."""
    size = channel.shape[1]
    f = np.full((size, size), 1 / size**2)
    seen = sent / sent.sum()
    for _ in range(EM_STEPS):
        f = f * (channel.T @ (seen / (channel @ f @ channel.T)) @ channel)
    return f


def apart(found: FloatArray, f: FloatArray) -> float:
    return float(np.abs(found - f).sum() / 2)


def coverage(quick: bool) -> Iterator[Table]:
    """Of cells, margins, known conditionals in both directions, and Cramer's V."""
    table = Table("pairs-coverage", "Coverage of 95% intervals, % (goal: 93.5 to 97)")
    for rows, columns, epsilon, n in COVERED:
        rng = np.random.default_rng(rows * n)
        mechanism, f = SubsetSelection.design(rows * columns, epsilon), truth(rows, columns)
        model = Covariance.of(mechanism, n)
        some = runs_of(quick, rows)
        inside = np.zeros((some, 4))
        for turn in range(some):
            found = drawn(mechanism, f, n, rng)
            inside[turn] = (
                held(found.ravel(), f.ravel(), model, 1),
                held(found.sum(axis=1), f.sum(axis=1), model, columns),
                held_given(found, f, model),
                held_effect(found, f, model),
            )
        cells, margins, given, v = 100 * np.nanmean(inside, axis=0)
        table.rows.append(
            {
                "lists": f"{rows} x {columns}",
                "epsilon": epsilon,
                "reports": n,
                "cells": float(cells),
                "margins": float(margins),
                "conditionals": float(given),
                "Cramér's V": Measured(float(v), 100 * math.sqrt(0.05 * 0.95 / some)),
            }
        )
    yield table


def runs_of(quick: bool, rows: int) -> int:
    """Tallies of a setting: fewer of large tables, which take long."""
    return 100 if quick else 250 if rows >= 20 else 1000


def held(found: FloatArray, f: FloatArray, model: Covariance, cells: int) -> float:
    low, high = share_interval(found, model.noise(cells, len(found)), 0.95)
    return float(((low <= f) & (f <= high)).mean())


def held_given(found: FloatArray, f: FloatArray, model: Covariance) -> float:
    held, known = [], []
    for one, other in ((found, f), (found.T, f.T)):
        given = conditionals(one, model, 0.95)
        share = other / other.sum(axis=1, keepdims=True)
        held.append(((given.low <= share) & (share <= given.high)).ravel())
        known.append(given.known.ravel())
    return float(np.concatenate(held)[np.concatenate(known)].mean())


def held_effect(found: FloatArray, f: FloatArray, model: Covariance) -> float:
    """Against the V of the true table, lumped in the same way."""
    told = effect(found, model, 0.95)
    small = f
    for axis, places in enumerate(told.lumped):
        kept = np.setdiff1d(np.arange(f.shape[axis]), places)
        rest = small.take(places, axis).sum(axis=axis, keepdims=True)
        parts = [small.take(kept, axis), *((rest,) if places else ())]
        small = np.concatenate(parts, axis=axis)
    product = np.outer(small.sum(axis=1), small.sum(axis=0))
    least = min(small.shape) - 1
    if least < 1:
        return math.nan
    v = math.sqrt(float(((small - product) ** 2 / product).sum()) / least)
    return float(told.low <= v <= told.high)


def size(quick: bool) -> Iterator[Table]:
    table = Table("pairs-size", "Size of the test of independence at 5%, % (goal: 3 to 6)")
    for rows, columns, epsilon, n in SIZES:
        some = runs_of(quick, rows)
        found = called(truth(rows, columns, 0.0), epsilon, n, some)
        table.add(
            lists=f"{rows} x {columns}", epsilon=epsilon, reports=n, size=percent(found, some)
        )
    yield table


def reached(quick: bool) -> Iterator[Table]:
    table = Table("pairs-power", "Power, % (goal: found within 5 points of what is promised)")
    for rows, columns, epsilon, n, v in POWERS:
        one, two = (np.full(size, 1 / size) for size in (rows, columns))
        f = pair_shares(one, two, v / strongest_effect(rows, columns)).reshape(rows, columns)
        some = runs_of(quick, rows)
        model = Covariance.of(SubsetSelection.design(rows * columns, epsilon), n)
        table.rows.append(
            {
                "lists": f"{rows} x {columns}",
                "epsilon": epsilon,
                "reports": n,
                "Cramér's V": v,
                "promised": 100 * power_of(v, rows, columns, model),
                "found": percent(called(f, epsilon, n, some), some),
            }
        )
    yield table


def percent(share: float, runs: int) -> Measured:
    return Measured(100 * share, 100 * math.sqrt(share * (1 - share) / runs))


def called(f: FloatArray, epsilon: float, n: int, runs: int) -> float:
    """The part of the tallies that are called dependent."""
    rng = np.random.default_rng(f.size + n)
    mechanism = SubsetSelection.design(f.size, epsilon)
    model = Covariance.of(mechanism, n)
    found = [independence(drawn(mechanism, f, n, rng), model).p_value for _ in range(runs)]
    return float(np.mean(np.array(found) <= 0.05))


PARTS = {"joint": joint, "coverage": coverage, "size": size, "power": reached}

if __name__ == "__main__":
    run(__doc__, PARTS)
