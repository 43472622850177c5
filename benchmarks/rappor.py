"""Decoding RAPPOR at its published setting, beside the published decoder, in the same run.

m = 64, k = 128, h = 2, f = .5, p = .5, q = .75; 200 true strings whose shares fall
exponentially (by e over 20 strings), 10% of them not in the map, at random. Every run
draws new strings, hashes, devices and noise from the operating system's entropy. The other
decoder is the published one: non-negative lasso with an intercept down to 500 strings, then least
squares, then Benjamini and Hochberg over the map (Erlingsson, Pihur and Korolova, CCS 2014; the
limit is that of google/rappor).

found: true strings detected in a run. false: of all detected in all runs. RMSE: over the
30 most common strings, those in the map. coverage: of the 95% intervals, over all
candidates that get one (all of the map; for the lasso, those that it selects).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from common.tables import Measured, Table, run
from deniable_estimator.analyses.cohorts.decoder import decode
from deniable_estimator.analyses.cohorts.table import Design

COHORTS, BITS, HASHES = 64, 128, 2
P01, P11 = 0.5625, 0.6875
DENSITY = 1 - (1 - 1 / BITS) ** HASHES
STRINGS, OUTSIDE, SCALE = 200, 20, 20
DEVICES = 1_000_000
TOP = 30
LASSO_LIMIT = 500

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """One drawn collection: counts, the map and the truth about its candidates."""

    counts: NDArray[np.int64]
    reports: NDArray[np.int64]
    positions: NDArray[np.int32]
    truth: Floats
    top: NDArray[np.intp]
    """The most common strings that the map holds, out of the TOP most common of all."""


@dataclass
class Score:
    """What a decoder got right, run by run."""

    found: list[int] = field(default_factory=list)
    false: list[int] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    covered: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Answer:
    share: Floats
    std_error: Floats
    detected: NDArray[np.bool_]


def draw(rng: np.random.Generator, candidates: int) -> World:
    """A million devices and their counts."""
    shares = np.exp(-np.arange(STRINGS) / SCALE)
    shares /= shares.sum()
    inside = rng.permutation(STRINGS) >= OUTSIDE
    positions = rng.integers(0, BITS, (candidates + OUTSIDE, COHORTS, HASHES), np.int32)
    place = np.empty(STRINGS, np.intp)
    place[inside] = rng.choice(candidates, STRINGS - OUTSIDE, replace=False)
    place[~inside] = candidates + np.arange(OUTSIDE)
    reports = rng.multinomial(DEVICES, np.full(COHORTS, 1 / COHORTS))
    counts = np.empty((COHORTS, BITS), np.int64)
    for cohort in range(COHORTS):
        sets = np.zeros((STRINGS, BITS), np.int64)
        sets[np.arange(STRINGS)[:, None], positions[place, cohort]] = 1
        true = rng.multinomial(reports[cohort], shares) @ sets
        counts[cohort] = rng.binomial(true, P11) + rng.binomial(reports[cohort] - true, P01)
    truth = np.zeros(candidates)
    truth[place[inside]] = shares[inside]
    top = place[:TOP][inside[:TOP]]
    return World(counts, reports, positions[:candidates], truth, top)


def ours(world: World, design: Design) -> Answer:
    """The product's decoder."""
    found = decode(world.counts, world.reports, design, P01, P11, background=DENSITY)
    return Answer(found.share, found.std_error, found.detected)


def published(world: World, design: Design) -> Answer:
    """Lasso selects, least squares estimate and test."""
    y = ((world.counts / world.reports[:, None] - P01) / (P11 - P01)).ravel()
    selected = np.array(sorted(lasso(y - y.mean(), design)), np.intp)
    dense = np.column_stack([np.ones(design.size), design.take(selected).filters()])
    inverse = np.linalg.pinv(dense.T @ dense, hermitian=True)
    beta = inverse @ (dense.T @ y)
    noise = float(np.sum((y - dense @ beta) ** 2)) / (design.size - dense.shape[1])
    share, std_error = np.zeros(len(design)), np.zeros(len(design))
    share[selected] = beta[1:]
    std_error[selected] = np.sqrt(noise * np.diag(inverse)[1:])
    p = norm.sf(beta[1:] / std_error[selected])
    order = np.argsort(p)
    passing = np.flatnonzero(p[order] <= 0.05 * np.arange(1, len(p) + 1) / len(design))
    detected = np.zeros(len(design), bool)
    if len(passing):
        detected[selected[order[: passing[-1] + 1]]] = True
    return Answer(share, std_error, detected)


def lasso(y: Floats, design: Design) -> set[int]:
    """The strings of the lasso path's last step with at most LASSO_LIMIT of them.

    Coordinate descent on the strings whose gradient has ever exceeded the penalty.
    """
    sums = design.sums(y) / design.size
    penalty = float(sums.max())
    working: list[int] = []
    columns = np.empty((design.size, 0))
    beta = np.empty(0)
    chosen: set[int] = set()
    for _ in range(60):
        penalty *= 0.93
        while True:
            gradient = design.sums(y - columns @ beta) / design.size
            gradient[working] = -np.inf
            violating = np.flatnonzero(gradient > penalty)
            if not len(violating):
                break
            violating = violating[np.argsort(-gradient[violating])][:50]
            fresh = design.take(violating).filters()
            columns = np.column_stack([columns, fresh - fresh.mean(axis=0)])
            beta = np.append(beta, np.zeros(len(violating)))
            working += violating.tolist()
            beta = descend(columns, y, beta, penalty)
        beta = descend(columns, y, beta, penalty)
        active = {working[at] for at in np.flatnonzero(beta > 0)}
        if len(active) > LASSO_LIMIT:
            break
        chosen = active
    return chosen


def descend(columns: Floats, y: Floats, start: Floats, penalty: float) -> Floats:
    beta = start.copy()
    gram = columns.T @ columns / len(y)
    gradient = columns.T @ y / len(y) - gram @ beta
    diagonal = np.diag(gram)
    for _ in range(200):
        largest = 0.0
        for at in np.flatnonzero((beta > 0) | (gradient > penalty)):
            step = max(0.0, beta[at] + (gradient[at] - penalty) / diagonal[at]) - beta[at]
            if step:
                beta[at] += step
                gradient -= gram[at] * step
                largest = max(largest, abs(step))
        if largest < 1e-6:
            break
    return beta


def judge(score: Score, world: World, answer: Answer, seconds: float) -> None:
    true = world.truth > 0
    score.found.append(int((answer.detected & true).sum()))
    score.false.append(int((answer.detected & ~true).sum()))
    score.error.append(float(np.mean((answer.share - world.truth)[world.top] ** 2)))
    # The lasso gives no interval for what it leaves out.
    given = answer.std_error > 0
    inside = np.abs(answer.share - world.truth) <= 1.96 * answer.std_error
    score.covered.append(float(np.mean(inside[given])))
    score.seconds.append(seconds)


def decoding(quick: bool) -> Iterator[Table]:
    table = Table("rappor-decoding", "RAPPOR at its published setting, a million devices")
    rng = np.random.default_rng()
    for candidates, runs in ((10_000, 2 if quick else 40), (100_000, 1 if quick else 4)):
        scores = {name: Score() for name in DECODERS}
        for _ in range(runs):
            world = draw(rng, candidates)
            design = Design.of(world.positions, BITS)
            for name, decoder in DECODERS.items():
                start = time.process_time()
                answer = decoder(world, design)
                judge(scores[name], world, answer, time.process_time() - start)
        for name, score in scores.items():
            finds = max(1, sum(score.found) + sum(score.false))
            rate = sum(score.false) / finds
            error = float(np.std(score.found)) / np.sqrt(runs)
            table.rows.append(
                {
                    "candidates": candidates,
                    "decoder": name,
                    "runs": runs,
                    "found": Measured(float(np.mean(score.found)), error),
                    "false, %": Measured(100 * rate, 100 * np.sqrt(rate * (1 - rate) / finds)),
                    "RMSE x 1e-3": 1e3 * float(np.sqrt(np.mean(score.error))),
                    "coverage, %": 100 * float(np.mean(score.covered)),
                    "CPU seconds": min(score.seconds),
                }
            )
    table.note = "Goals with 10,000 candidates: 28 found, 5% false, RMSE 3.3, coverage 93 to 97%."
    yield table


DECODERS: dict[str, Callable[[World, Design], Answer]] = {
    "deniable": ours,
    "lasso, least squares": published,
}

if __name__ == "__main__":
    run(__doc__, {"decoding": decoding})
