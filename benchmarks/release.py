"""What the noise of a release costs, beside the noise of the devices themselves.

python benchmarks/release.py

For each metric, number of reports and epsilon: the variance that `deniable release` adds, in
percent of the variance of the devices' own noise, for one window. Measured with the samplers of
the command: the mean square of the noise over what the formula says, and the time of a draw beside
that of numpy's float noise, which is not private.
"""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np

from deniable import Scheme
from deniable.mechanisms import ProjectiveGeometry, SlidingWindow, SubsetSelection, UnaryEncoding
from deniable.mechanisms.number_range import NumberRange
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.questions.reading import Part
from deniable_estimator.releasing.noise import AddedNoise, BufferedBits, Method, gaussian, laplace
from deniable_estimator.releasing.preparing import statistic_of
from deniable_estimator.statistics.participation import Participation

_REPORTS = (10**3, 10**4, 10**5, 10**6, 10**7)
_EPSILONS = (Fraction(1, 2), Fraction(1, 5), Fraction(1, 20))
_DELTA = 1e-8
_METHODS: tuple[Method, ...] = ("laplace", "gaussian")
_MECHANISMS = {
    "boolean": ("boolean", SubsetSelection.design(2, 1.0), 2),
    "category, 10 values": ("category", SubsetSelection.design(10, 1.0), 10),
    "category, 100 values": ("category", SubsetSelection.design(100, 1.0), 100),
    "category, 1000 values": ("category", ProjectiveGeometry.design(1000, 1.0), 1000),
    "unary encoding, 10": ("category", UnaryEncoding.optimized(10, 1.0), 10),
    "mean of a number": ("number", SlidingWindow.design(NumberRange("0", "10"), 1.0), 0),
}


def _costs() -> None:
    print("Variance added, in % of the devices' own (epsilon 1), for one window, delta = 1e-8")
    heads = [f"{float(epsilon):g} {kind}" for epsilon in _EPSILONS for kind in ("L", "G")]
    print(f"{'metric':24}{'reports':>12}" + "".join(f"{head:>12}" for head in heads))
    for name, (kind, mechanism, size) in _MECHANISMS.items():
        scheme = Scheme(kind, mechanism, tuple(f"v{i}" for i in range(size)))
        for reports in _REPORTS:
            rows = [TallyRow(reports, np.zeros(row.width, np.int64)) for row in mechanism.rows]
            tally = Tally("metric", scheme.fingerprint, ("2026-11-01",), tuple(rows))
            part = Part(tally, scheme, None, Participation.evenly(tally))
            shown = []
            for epsilon in _EPSILONS:
                for method in _METHODS:
                    statistic = statistic_of(part, 0.95, None, method)
                    each = statistic.sensitivity
                    if method == "laplace":
                        noise = laplace(epsilon, each)
                    else:
                        noise = gaussian(epsilon, _DELTA, each)
                    own, added = statistic.variances(noise.variance)
                    shown.append(100 * added / own)
            print(f"{name:24}{reports:>12,}" + "".join(f"{each:>12.3g}" for each in shown))


def _draws() -> None:
    print()
    print("Draws of noise: mean square over the variance, and microseconds a draw beside numpy's")
    print(f"{'noise':30}{'square':>8}{'us':>8}{'numpy us':>10}")
    count, rng = 20_000, np.random.default_rng(1)
    for noise in (
        AddedNoise("laplace", Fraction(4)),
        AddedNoise("laplace", Fraction(400, 3)),
        AddedNoise("gaussian", Fraction(100)),
        AddedNoise("gaussian", Fraction(10**6, 7)),
    ):
        start = time.perf_counter()
        drawn = np.array(list(noise.draw(count, BufferedBits())), np.float64)
        ours = time.perf_counter() - start
        start = time.perf_counter()
        for _ in range(count):
            rng.laplace(0.0, 4.0)
        theirs = time.perf_counter() - start
        square = float(np.mean(drawn**2)) / noise.variance
        name = f"{noise.method}, scale {float(noise.scale):.4g}"
        print(f"{name:30}{square:>8.3f}{ours / count * 1e6:>8.1f}{theirs / count * 1e6:>10.2f}")


if __name__ == "__main__":
    _costs()
    _draws()
