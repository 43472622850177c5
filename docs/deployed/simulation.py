"""The same population through each system: what is found, how well, and how fast.

deniable's and RAPPOR's tables are drawn from their exact joint distribution and decoded in
full. Apple's published sketches have 67 and 34 million cells; each candidate's support is
drawn from its own exact distribution over the hash functions instead, and what candidates
have in common is left out: a handful of devices in each row make it negligible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable.mechanisms import AUTO, design_string
from deniable_estimator.analyses.cohorts.decoder import decode
from deniable_estimator.analyses.cohorts.design import Design
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import estimate
from deniable_estimator.planning.population import zipf_shares
from deniable_estimator.rappor import bloom_bits
from deniable_estimator.statistics.intervals import FloatArray, Noise, debias
from deniable_estimator.statistics.significance import adjust_p, share_p_values
from deployed.systems import DENIABLE_STRING, RAPPOR, System

__all__ = [
    "CANDIDATES",
    "DEVICES",
    "LISTED",
    "TRUE",
    "ZIPF",
    "Outcome",
    "candidates",
    "rappor_table",
    "simulate",
]

DEVICES = 1_000_000
CANDIDATES = 100_000
TRUE, LISTED = 200, 180
ZIPF = 1.1
LEVEL = 0.05
COMMONEST = 30

_shares = zipf_shares(TRUE, ZIPF)
_unlisted = np.arange(5, TRUE, TRUE // (TRUE - LISTED))
_there = [f"there-{number}.example" for number in range(TRUE)]
_listed = np.delete(np.arange(TRUE), _unlisted)
_candidates = [_there[index] for index in _listed] + [
    f"absent-{number}.example" for number in range(CANDIDATES - LISTED)
]
_truth = np.concatenate([_shares[_listed], np.zeros(CANDIDATES - LISTED)])


def candidates() -> list[str]:
    """The strings that are looked for; the first of them are there."""
    return list(_candidates)


@dataclass(frozen=True)
class Outcome:
    """Means over the runs; `false` is pooled: false discoveries out of all discoveries."""

    found: float
    false: float
    rmse: float
    """Of the commonest listed strings, in shares."""


def simulate(system: System, epsilon: float, runs: int, seed: int) -> Outcome:
    """Let the population report through the system `runs` times, and look for the candidates."""
    rng = np.random.default_rng(seed)
    found, false, squares = 0, 0, []
    for run in range(runs):
        counts = rng.multinomial(DEVICES, _shares)
        if system.name == "RAPPOR":
            share, detected = _rappor(counts, rng)
        elif system is DENIABLE_STRING:
            share, detected = _deniable(counts, epsilon, f"domains_{run}", rng)
        else:
            share, detected = _apple(system, epsilon, counts, rng)
        found += int((detected & (_truth > 0)).sum())
        false += int((detected & (_truth == 0)).sum())
        squares.append(np.square(share - _truth)[:COMMONEST].mean())
    return Outcome(found / runs, false / max(1, found + false), float(np.sqrt(np.mean(squares))))


_Answer = tuple[FloatArray, NDArray[np.bool_]]


def _deniable(
    counts: NDArray[np.int64], epsilon: float, salt: str, rng: np.random.Generator
) -> _Answer:
    scheme = Scheme("string", design_string(AUTO, salt, epsilon), ())
    tally = sample_tally(scheme, counts, rng, values=_there)
    answer = estimate(tally, scheme, _candidates, level=1 - LEVEL)
    return answer.share, answer.detected


def _apple(
    system: System, epsilon: float, counts: NDArray[np.int64], rng: np.random.Generator
) -> _Answer:
    """The published estimator with the test that its variance allows; the article has none."""
    channel = system.channel(epsilon)
    own = np.concatenate([counts[_listed], np.zeros(CANDIDATES - LISTED, np.int64)])
    supported = rng.binomial(own, float(channel.p)) + rng.binomial(DEVICES - own, float(channel.q))
    share = debias(supported, DEVICES, channel.p, channel.q)
    noise = Noise.of(channel.p, channel.q, DEVICES, CANDIDATES)
    return share, adjust_p(share_p_values(share, noise), "storey") <= LEVEL


def _positions(strings: Sequence[str]) -> NDArray[np.int32]:
    """The bits of each string's filters, shape (strings, cohorts, h)."""
    return np.array(
        [[bloom_bits(each, cohort, RAPPOR) for cohort in range(RAPPOR.m)] for each in strings],
        np.int32,
    )


@cache
def _rappor_design() -> tuple[NDArray[np.int32], Design]:
    return _positions(_there), Design.of(_positions(_candidates), RAPPOR.k)


def rappor_table(
    rng: np.random.Generator, counts: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], Design]:
    """A table after both rounds of noise, shape (m, k), the reports of its cohorts, and the
    cells of the candidates. `counts`: devices with each string that is there.
    """
    counts = rng.multinomial(DEVICES, _shares) if counts is None else counts
    positions, design = _rappor_design()
    cohorts = np.array([rng.multinomial(each, np.full(RAPPOR.m, 1 / RAPPOR.m)) for each in counts])
    ones = np.zeros((RAPPOR.m, RAPPOR.k), np.int64)
    for cohort in range(RAPPOR.m):
        filters = np.zeros((TRUE, RAPPOR.k), np.int64)
        np.put_along_axis(filters, positions[:, cohort], 1, axis=1)
        ones[cohort] = cohorts[:, cohort] @ filters
    reports = cohorts.sum(axis=0)
    table = rng.binomial(ones, float(RAPPOR.p11)) + rng.binomial(
        reports[:, None] - ones, float(RAPPOR.p01)
    )
    return table, reports, design


def _rappor(counts: NDArray[np.int64], rng: np.random.Generator) -> _Answer:
    table, reports, design = rappor_table(rng, counts)
    p01, p11 = float(RAPPOR.p01), float(RAPPOR.p11)
    decoded = decode(table, reports, design, p01, p11, background=RAPPOR.density, fdr=LEVEL)
    return decoded.share, decoded.detected
