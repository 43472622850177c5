"""Strings whose candidates come later: how many true ones are found among 100,000."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from deniable import Scheme
from deniable.mechanisms import AUTO, design_string
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import estimate
from deniable_estimator.planning.population import zipf_shares
from oracles.accuracy import ZIPF
from oracles.tables import Cell, Goal, Measured, Result
from oracles.timing import cpu_seconds

__all__ = ["found_strings"]

CANDIDATES = 100_000
DEVICES = 1_000_000
EPSILON = 2.0
TRUE_STRINGS = 200
LISTED = 180
FOUND, FALSE_SHARE, SECONDS = 35, 0.05, 2.0
NOMINAL = (0.05,)


def found_strings(runs: int, progress: Callable[[str], None]) -> Result:
    """True strings found, false discoveries, coverage, error and time.

    Of the strings that devices have, one in ten is not among the candidates.
    """
    rng = np.random.default_rng(20261126)
    shares = zipf_shares(TRUE_STRINGS, ZIPF)
    unlisted = np.arange(5, TRUE_STRINGS, TRUE_STRINGS // (TRUE_STRINGS - LISTED))
    there = [f"there-{number}.example" for number in range(TRUE_STRINGS)]
    listed = [string for index, string in enumerate(there) if index not in set(unlisted)]
    absent = [f"absent-{number}.example" for number in range(CANDIDATES - LISTED)]
    candidates = listed + absent
    truth = np.concatenate([np.delete(shares, unlisted), np.zeros(len(absent))])
    found: dict[float, list[int]] = {level: [] for level in NOMINAL}
    false: dict[float, list[int]] = {level: [] for level in NOMINAL}
    covered, top, seconds, ratio = [], [], [], []
    for run in range(runs):
        progress(f"strings, run {run + 1} of {runs}")
        # Another metric, another salt: hash functions are part of the luck.
        scheme = Scheme("string", design_string(AUTO, f"domains_{run}", EPSILON), ())
        counts = rng.multinomial(DEVICES, shares)
        tally = sample_tally(scheme, counts, rng, values=there)
        seconds.append(cpu_seconds(partial(estimate, tally, scheme, candidates), 1))
        answer = estimate(tally, scheme, candidates)
        for level in NOMINAL:
            detected = answer.p_adjusted <= level
            found[level].append(int((detected & (truth > 0)).sum()))
            false[level].append(int((detected & (truth == 0)).sum()))
        covered.append(float(((answer.low <= truth) & (truth <= answer.high)).mean()))
        error = answer.share - truth
        top.append(float(np.sqrt(np.square(error[:30]).mean())))
        e = np.exp(EPSILON)
        ratio.append(DEVICES * float(np.square(error).mean()) / (4 * e / (e - 1) ** 2))
    rows: list[dict[str, Cell]] = []
    for level in NOMINAL:
        pooled = _pooled(found[level], false[level])
        met = float(np.mean(found[level])) >= FOUND
        # The Monte-Carlo error must not decide.
        calibrated = pooled.value <= FALSE_SHARE + 2 * pooled.error
        rows += [
            {
                "figure": f"true strings found in a run, at nominal {100 * level:g}%",
                "deniable": _mean(found[level]),
                "goal": Goal(f"≥ {FOUND}", met),
            },
            {
                "figure": f"false discoveries, pooled, at nominal {100 * level:g}%",
                "deniable": pooled,
                "goal": Goal(f"≤ {FALSE_SHARE}", bool(calibrated)),
            },
        ]
    rows += [
        {
            "figure": "CPU seconds, smallest run",
            "deniable": min(seconds),
            "goal": Goal(f"≤ {SECONDS:g}", min(seconds) <= SECONDS),
        },
        {
            "figure": "coverage of the 95% intervals, all candidates",
            "deniable": _mean(covered),
            "goal": Goal("0.94 to 0.96", 0.94 <= float(np.mean(covered)) <= 0.96),
        },
        {
            "figure": "root mean squared error of the 30 commonest",
            "deniable": _mean(top),
            "goal": None,
        },
        {
            "figure": "n × mean squared error over the best possible",
            "deniable": _mean(ratio),
            "goal": None,
        },
    ]
    return Result(
        "strings",
        f"Hashed strings: {DEVICES:,} devices, Zipf {ZIPF} over {TRUE_STRINGS} strings "
        f"({TRUE_STRINGS - LISTED} of them not listed), {CANDIDATES:,} candidates, "
        f"epsilon {EPSILON:g}",
        rows,
        f"{runs} runs with fresh salts. The peers have no oracle for strings that come later.",
    )


def _pooled(found: list[int], false: list[int]) -> Measured:
    """The false part of all discoveries, as a binomial share."""
    every = max(1, sum(found) + sum(false))
    share = sum(false) / every
    return Measured(share, (share * (1 - share) / every) ** 0.5)


def _mean(values: list[float] | list[int]) -> Measured:
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return Measured(float(np.mean(values)), spread / len(values) ** 0.5)
