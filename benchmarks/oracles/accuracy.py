"""How exact the estimates are: error over the best possible, coverage, false discoveries.

The best possible is the total variance of subset selection with the best k, which no other
mechanism undercuts (Ye and Barg, IEEE Trans. Inf. Theory 2018). Our tallies are drawn from
their exact distribution (a chi-square test ties it to the randomizer), so that a million
devices cost milliseconds; the peers randomize every report. Populations follow Zipf's law.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from deniable import Scheme
from deniable.mechanisms import AUTO, SubsetSelection, design, explain, total_variance
from deniable_estimator.analyses.candidates import support_counts
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import estimate
from deniable_estimator.planning.population import zipf_shares
from deniable_estimator.statistics.intervals import FloatArray, debias
from oracles.peers import LIBRARIES, Request
from oracles.tables import Cell, Goal, Measured, Result

__all__ = [
    "PEER_FLOOR",
    "category",
    "error_over_optimum",
    "error_requests",
    "errors",
    "floor_requests",
    "floors",
    "optimum",
    "trust",
]

ZIPF = 1.1
MOST_LOSS = 1.05
Answers = dict[Request, dict[str, Any]]


def category(size: int, epsilon: float) -> Scheme:
    """What `auto` takes for a closed domain."""
    values = tuple(map(str, range(size)))
    return Scheme("category", design(AUTO, size, epsilon), values)


def optimum(size: int, epsilon: float) -> float:
    """The least possible n times total variance."""
    best = SubsetSelection.design(size, epsilon)
    return float(total_variance(best.p, best.q, size))


def error_over_optimum(
    scheme: Scheme,
    epsilon: float,
    n: int,
    repetitions: int,
    rng: np.random.Generator,
    normalized: bool = False,
) -> Measured:
    """n times the squared error summed over all values, over the best possible.

    Of the unbiased shares, or of the normalized ones, which are non-negative and sum to 1.
    """
    shares = zipf_shares(len(scheme.values), ZIPF)
    best = optimum(len(shares), epsilon)
    p, q = scheme.mechanism.p, scheme.mechanism.q
    ratios = []
    for _ in range(repetitions):
        counts = rng.multinomial(n, shares)
        tally = sample_tally(scheme, counts, rng)
        if normalized:
            answer = estimate(tally, scheme).normalized
        else:
            support = support_counts(tally, scheme)
            answer = debias(support.counts, support.reports, p, q)
        error = answer - counts / n
        ratios.append(n * float(error @ error) / best)
    return _mean(ratios, len(shares))


def _mean(ratios: list[float], values: int) -> Measured:
    """Their mean with its standard error.

    Few ratios do not tell their own spread: it is then taken to be that of a sum of squares
    of so many independent normal errors.
    """
    mean = float(np.mean(ratios))
    spread = float(np.std(ratios, ddof=1)) if len(ratios) >= 8 else _spread(mean, values)
    return Measured(mean, spread / math.sqrt(len(ratios)))


def _average(figures: Sequence[float]) -> Measured:
    return Measured(float(np.mean(figures)), float(np.std(figures, ddof=1)) / len(figures) ** 0.5)


def _spread(mean: float, values: int) -> float:
    return mean * math.sqrt(2 / max(1, values - 1))


def _repetitions(size: int, precision: float, least: int) -> int:
    """How many bring the relative Monte-Carlo error to `precision`, about."""
    return max(least, math.ceil(2 / (size - 1) / precision**2))


_LEAST_REPORTS = 1000
_AFFORDABLE = {
    # library: oracle -> (largest domain, CPU microseconds for a report and a value, about)
    "pure-ldp": {
        "GRR": (10**5, 0.0),
        "OUE": (10**5, 0.03),
        "OLH": (1024, 0.6),
        "HR": (10**6, 0.0),
    },
    "multi-freq-ldpy": {
        "GRR": (10**6, 0.004),
        "SS": (1024, 0.05),
        "OUE": (1024, 0.03),
        "OLH": (100, 0.6),
    },
}


def error_requests(
    sizes: Iterable[int], epsilons: Iterable[float], seconds: float
) -> Iterator[Request]:
    """What the peers are asked for `errors`: each oracle at the sizes that it can do."""
    epsilons = tuple(epsilons)
    for library in LIBRARIES:
        for size in sizes:
            for oracle, (largest, cost) in _AFFORDABLE[library].items():
                if size <= largest:
                    for epsilon in epsilons:
                        yield Request(
                            library,
                            oracle,
                            size,
                            epsilon,
                            _reports(library, size, cost, seconds),
                            10_000,
                            seconds,
                            1,
                            ZIPF,
                        )


def _reports(library: str, size: int, cost: float, seconds: float) -> int:
    """How many reports a round has.

    For an unbiased oracle it does not matter, and many rounds tell the error best. Where
    the answers are biased, more reports are fairer, as far as five rounds fit.
    """
    fitting = seconds * 1e6 / 5 / (10 + cost * size)
    if library == "pure-ldp":
        return _LEAST_REPORTS
    return min(max(_LEAST_REPORTS, 1000 * int(fitting / 1000)), 10_000)


def errors(
    sizes: Iterable[int],
    epsilons: Iterable[float],
    answers: Answers,
    precision: float,
    progress: Callable[[str], None],
) -> Result:
    """n times mean squared error over the best possible, `auto`, for all sizes and epsilons."""
    rng = np.random.default_rng(20261121)
    n = 1_000_000
    rows: list[dict[str, Cell]] = []
    epsilons = tuple(epsilons)
    for size in sizes:
        for epsilon in epsilons:
            progress(f"error of auto, {size:,} values, epsilon {epsilon:g}")
            scheme = category(size, epsilon)
            exact = explain(size, epsilon).loss
            repetitions = _repetitions(size, precision, least=2 if size > 10**5 else 8)
            measured = error_over_optimum(scheme, epsilon, n, repetitions, rng)
            row: dict[str, Cell] = {
                "values": size,
                "epsilon": epsilon,
                "mechanism": scheme.mechanism.name,
                "exact": exact,
                "measured": measured,
                # The exact figure decides, and the measured one must not contradict it.
                "goal": Goal(
                    f"≤ {MOST_LOSS}",
                    exact <= MOST_LOSS and measured.value - 3 * measured.error <= MOST_LOSS,
                ),
            }
            for library in LIBRARIES:
                row[library] = _best_peer(answers, library, size, epsilon)
            rows.append(row)
    return Result(
        "error",
        "n × mean squared error over the best possible (1 is the best)",
        rows,
        f"deniable: n = {n:,}. Peers: their best oracle at this size, with the n and rounds that "
        "they can do.\nmulti-freq-ldpy clips and renormalizes: biased answers that shrink towards "
        "0, so at small n it gets\nbelow the noise, and cannot be compared with unbiased ones; the "
        "table of growing n has both kinds.",
        {
            "peers": [
                {**request._asdict(), **answer, "over_optimum": _over_optimum(request, answer)[0]}
                for request, answer in answers.items()
            ]
        },
    )


def _over_optimum(request: Request, answer: dict[str, Any]) -> Measured:
    scale = request.reports / optimum(request.size, request.epsilon)
    value = answer["total_squared_error"] * scale
    if answer["repetitions"] >= 8:
        return Measured(value, answer["monte_carlo_error"] * scale)
    spread = _spread(value, min(request.size, 1000))
    return Measured(value, spread / math.sqrt(answer["repetitions"]))


def _best_peer(answers: Answers, library: str, size: int, epsilon: float) -> str | None:
    found = [
        (_over_optimum(request, answer), request)
        for request, answer in answers.items()
        if (request.library, request.size, request.epsilon) == (library, size, epsilon)
        # Not those that were asked for other tables: few reports, or one oracle alone.
        and request.oracle in _AFFORDABLE[library]
        and request.reports >= _LEAST_REPORTS
    ]
    if not found:
        return None
    # The luckiest of many noisy figures is not the best oracle.
    ratio, request = min(found, key=lambda each: each[0].value + 2 * each[0].error)
    biased = ", biased" if library == "multi-freq-ldpy" else ""
    return f"{ratio}  {request.oracle}, n = {request.reports:,}{biased}"


PEER_FLOOR = (
    # (library, oracle, values, numbers of reports)
    ("pure-ldp", "FLH", 1024, (1_000, 10_000, 100_000, 1_000_000)),
    ("multi-freq-ldpy", "SS", 1024, (1_000, 10_000, 100_000)),
)
_FLOOR_EPSILON = 2.0


def floor_requests(most: int, seconds: float) -> Iterator[Request]:
    """What the peers are asked for `floors`, up to `most` reports."""
    for library, oracle, size, numbers in PEER_FLOOR:
        for n in numbers:
            if n <= most:
                yield Request(library, oracle, size, _FLOOR_EPSILON, n, 20, seconds, 2, ZIPF)


def floors(
    numbers: Iterable[int],
    sizes: Iterable[int],
    answers: Answers,
    precision: float,
    progress: Callable[[str], None],
) -> Result:
    """The same ratio as n grows: bias would show as a ratio that grows with n."""
    rng = np.random.default_rng(20261122)
    numbers = tuple(numbers)
    rows: list[dict[str, Cell]] = []
    for size, normalized in [*((size, False) for size in sizes), (1024, True)]:
        scheme = category(size, _FLOOR_EPSILON)
        row: dict[str, Cell] = {
            "oracle": f"deniable {scheme.mechanism.name}{', normalized' if normalized else ''}",
            "values": size,
        }
        figures = []
        for n in numbers:
            progress(f"error of auto, {size:,} values, {n:,} devices")
            repetitions = _repetitions(size, precision, least=4)
            figures.append(
                error_over_optimum(scheme, _FLOOR_EPSILON, n, repetitions, rng, normalized)
            )
            row[f"n = {n:,}"] = figures[-1]
        met = all(each.value - 3 * each.error <= MOST_LOSS for each in figures)
        rows.append({**row, "goal": Goal(f"≤ {MOST_LOSS}", met)})
    for library, oracle, size, _ in PEER_FLOOR:
        row = {"oracle": f"{library} {oracle}", "values": size}
        for n in numbers:
            found = [
                _over_optimum(request, answer)
                for request, answer in answers.items()
                if (request.library, request.oracle, request.size, request.reports)
                == (library, oracle, size, n)
            ]
            row[f"n = {n:,}"] = found[0] if found else None
        rows.append({**row, "goal": None})
    return Result(
        "floor",
        f"n × mean squared error over the best possible as n grows, epsilon {_FLOOR_EPSILON:g}",
        rows,
        "Where it grows with n, an error stays that no number of devices averages out: the "
        "collisions of FLH's 500 hashes.\n`normalized` shares are shown beside the unbiased ones; "
        "multi-freq-ldpy's are of that kind: at large n their bias\nstays while noise does not.",
    )


def trust(
    sizes: Iterable[int], epsilon: float, answers: int, progress: Callable[[str], None]
) -> Result:
    """Coverage of nominal 95% intervals and realized false discoveries at nominal 5%.

    Half of the values exist (Zipf), half do not; `answers` values are judged for each size.
    """
    rng = np.random.default_rng(20261123)
    n = 1_000_000
    rows: list[dict[str, Cell]] = []
    for size in sizes:
        progress(f"intervals and discoveries, {size:,} values")
        scheme = category(size, epsilon)
        shares: FloatArray = np.zeros(size)
        shares[: size // 2] = zipf_shares(size // 2, ZIPF)
        covered, false, found = [], [], []
        for _ in range(max(10, answers // size)):
            counts = rng.multinomial(n, shares)
            answer = estimate(sample_tally(scheme, counts, rng), scheme)
            covered.append(float(((answer.low <= shares) & (shares <= answer.high)).mean()))
            wrong = int((answer.detected & (shares == 0)).sum())
            found.append(int(answer.detected.sum()) - wrong)
            false.append(wrong / max(1, wrong + found[-1]))
        coverage, fdr = _average(covered), _average(false)
        coverage_met = 0.94 <= coverage.value <= 0.96
        rows.append(
            {
                "values": size,
                "mechanism": scheme.mechanism.name,
                "coverage": coverage,
                "goal ": Goal("0.94 to 0.96", coverage_met),
                "false discoveries": fdr,
                # Its own Monte-Carlo error must not decide.
                "goal": Goal("≤ 0.05", bool(fdr.value <= 0.05 + 2 * fdr.error)),
                "found": _average(found),
                "repetitions": len(covered),
            }
        )
    return Result(
        "trust",
        f"Intervals at 95% and discoveries at 5%, epsilon {epsilon:g}, n = {n:,}",
        rows,
        "Coverage is over all values, those that nobody has included. The peers give no intervals.",
    )
