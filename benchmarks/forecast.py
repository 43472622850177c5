"""How true the planner's forecast is: the power at the share that it promises to detect.

The baseline is the same promise by normal tails. For closed lists both powers are exact: from the
estimator's own p-values, Bonferroni, and the binomial distribution of a value's support. For
strings they are counted over simulated crowds in which ten strings have the promised share
and a hundred others the rest, by Zipf's law.
Run: python benchmarks/forecast.py [--seconds 30]
"""

from __future__ import annotations

import argparse
import math
import time
from bisect import bisect_left
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

from deniable import Scheme
from deniable.mechanisms import Mechanism, design, design_memoized, design_string
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import estimate
from deniable_estimator.forecasting.detection import (
    LEVEL,
    POWER,
    critical_value,
    detectable_share,
    reports_to_detect,
)
from deniable_estimator.planning.population import zipf_shares
from deniable_estimator.statistics.intervals import Noise, debias
from deniable_estimator.statistics.significance import share_p_values

CLOSED = (
    # values, epsilon, reports
    (200_000, 10.0, 1_000),
    (10_000, 6.0, 2_000),
    (1_000, 4.0, 10_000),
    (1_000, 8.0, 1_000),
    (100, 8.0, 1_000),
    (1_000, 6.0, 10_000),
    (200_000, 6.0, 100_000),
    (100, 4.0, 3_000),
    (1_000, 2.0, 10_000),
    (10, 4.0, 1_000),
    (10, 1.0, 3_000),
    (100, 1.0, 100_000),
    (200_000, 1.0, 10_000_000),
)
_Design: TypeAlias = Callable[[str, float], Mechanism[str]]

STRINGS: tuple[tuple[str, _Design, tuple[tuple[int, float, int], ...]], ...] = (
    (
        "hashed projective geometry",
        lambda salt, epsilon: design_string("auto", salt, epsilon),
        ((1_000, 1.0, 100_000), (1_000, 4.0, 2_000), (10_000, 4.0, 100_000), (10_000, 6.0, 10_000)),
    ),
    (
        "cohort local hashing",
        lambda salt, epsilon: design_string("cohort_local_hashing", salt, epsilon),
        ((1_000, 1.0, 100_000), (10_000, 2.0, 100_000)),
    ),
    (
        "memoized local hashing",
        lambda salt, epsilon: design_memoized(
            "memoized_local_hashing", salt, None, epsilon, 2 * epsilon
        ),
        ((1_000, 1.0, 100_000), (10_000, 2.0, 100_000)),
    ),
)
"""Mechanism, how it is made, and (candidates, epsilon, reports)."""

RUNS = 200
PROBES = 10
OTHERS = 100


def normal_share(mechanism: Mechanism[Any], size: int, reports: int) -> float | None:
    """The smallest detectable share by normal tails: ::

    f (p - q) = z(1 - level/d) sqrt(q(1-q)/n) + z(power) sqrt(r (1-r) / n)
    """
    p, q = float(mechanism.p), float(mechanism.q)
    threshold = q + critical_value(LEVEL, size) * math.sqrt(q * (1 - q) / reports)
    c = NormalDist().inv_cdf(POWER) ** 2 / reports
    half = threshold + c / 2
    root = math.sqrt(max(half**2 - (1 + c) * threshold**2, 0.0))
    rate = (half + root) / (1 + c)
    return (rate - q) / (p - q) if rate <= p else None


def exact_power(
    mechanism: Mechanism[Any], size: int, reports: int, share: float | None
) -> float | None:
    """How often a value of this share is detected among `size`."""
    if share is None:
        return None
    noise = Noise.of(mechanism.p, mechanism.q, reports, 1)

    def detected(count: int) -> bool:
        found = debias(np.array([count]), reports, mechanism.p, mechanism.q)
        return bool(share_p_values(found, noise)[0] * size <= LEVEL)

    count = bisect_left(range(reports + 1), True, key=detected)
    rate = float(mechanism.q) + share * float(mechanism.p - mechanism.q)
    return float(stats.binom.sf(count - 1, reports, rate))


def closed_lists() -> Table:
    table = Table(title="Power at the promised share, exact; what is promised is 0.8")
    for name in ("values", "epsilon", "reports", "by chance"):
        table.add_column(name, justify="right")
    for name in ("share", "power", "normal share", "power"):
        table.add_column(name, justify="right")
    for size, epsilon, reports in CLOSED:
        mechanism = design("auto", size, epsilon)
        cells = [f"{size:,}", f"{epsilon:g}", f"{reports:,}", f"{reports * float(mechanism.q):.3g}"]
        for promise in (detectable_share, normal_share):
            share = promise(mechanism, size, reports)
            power = exact_power(mechanism, size, reports, share)
            cells += ["none" if share is None else f"{share:.5f}"]
            cells += ["" if power is None else f"{power:.3f}"]
        table.add_row(*cells)
    return table


def strings(seconds: float) -> Table:
    table = Table(title=f"The same for strings, over {RUNS} crowds or {seconds:g} seconds")
    table.add_column("mechanism")
    for name in ("candidates", "epsilon", "reports", "share", "power"):
        table.add_column(name, justify="right")
    rng = np.random.default_rng(1)
    for name, make, settings in STRINGS:
        for size, epsilon, reports in settings:
            share = detectable_share(make("plan", epsilon), size, reports)
            assert share is not None
            found = []
            until = time.monotonic() + seconds
            while len(found) < RUNS and time.monotonic() < until:
                scheme = Scheme("string", make(f"salt {len(found)}", epsilon), ())
                answer = _crowd(scheme, size, reports, share, rng)
                found.append(float((answer.p_value[:PROBES] * size <= LEVEL).mean()))
            error = float(np.std(found) / math.sqrt(len(found)))
            table.add_row(
                *(name, f"{size:,}", f"{epsilon:g}", f"{reports:,}", f"{share:.5f}"),
                f"{np.mean(found):.3f} ± {error:.2g}",
            )
    return table


def _crowd(scheme: Scheme, size: int, reports: int, share: float, rng: np.random.Generator) -> Any:
    there = [f"string {n}" for n in range(PROBES + OTHERS)]
    rest = (1 - PROBES * share) * zipf_shares(OTHERS, 1.0)
    counts = rng.multinomial(reports, np.concatenate([np.full(PROBES, share), rest]))
    tally = sample_tally(scheme, counts, rng, values=there)
    nobody = [f"nobody {n}" for n in range(size - len(there))]
    return estimate(tally, scheme, there + nobody)


def speed() -> Table:
    table = Table(title="Microseconds of a forecast")
    for name in ("values", "share of 100,000", "reports for 1%", "share by normal tails"):
        table.add_column(name, justify="right")
    for size in (10, 1_000, 200_000):
        mechanism = design("auto", size, 2.0)
        table.add_row(
            f"{size:,}",
            f"{_microseconds(lambda m=mechanism, d=size: detectable_share(m, d, 100_000)):.1f}",
            f"{_microseconds(lambda m=mechanism, d=size: reports_to_detect(m, d, 0.01)):.1f}",
            f"{_microseconds(lambda m=mechanism, d=size: normal_share(m, d, 100_000)):.1f}",
        )
    return table


def _microseconds(call: Callable[[], object], calls: int = 300) -> float:
    times = []
    for _ in range(3):
        begin = time.process_time()
        for _ in range(calls):
            call()
        times.append(time.process_time() - begin)
    return min(times) / calls * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="for a row of strings, at most")
    seconds = parser.parse_args().seconds
    console = Console(width=100)
    console.print(closed_lists())
    console.print(speed())
    console.print(strings(seconds))


if __name__ == "__main__":
    main()
