"""What the noise of a release costs: the variance that `deniable release` adds, in percent of the
variance of the devices' own noise, which is the baseline.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from common.tables import Cell, Table, run
from deniable import Scheme
from deniable.protocol.mechanisms.compatible import UnaryEncoding
from deniable.protocol.mechanisms.number_range import NumberRange
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.kinds.basis import Part
from deniable_estimator.releasing.noise import Method, noise_of
from deniable_estimator.releasing.statistic import statistic_of
from deniable_estimator.statistics.participation import Participation

REPORTS = (10**3, 10**5, 10**7)
EPSILONS = (Fraction(1, 2), Fraction(1, 5), Fraction(1, 20))
DELTA = 1e-8
METHODS: tuple[Method, ...] = ("laplace", "gaussian")
MECHANISMS = {
    "boolean": ("boolean", SubsetSelection.design(2, 1.0), 2),
    "category, 10 values": ("category", SubsetSelection.design(10, 1.0), 10),
    "category, 100 values": ("category", SubsetSelection.design(100, 1.0), 100),
    "category, 1000 values": ("category", ProjectiveGeometry.design(1000, 1.0), 1000),
    "unary encoding, 10": ("category", UnaryEncoding.optimized(10, 1.0), 10),
    "mean of a number": ("number", SlidingWindow.design(NumberRange("0", "10"), 1.0), 0),
}


def variance(quick: bool) -> Iterator[Table]:
    table = Table(
        "release-variance", "Variance added in a window, % of the devices' own at epsilon 1"
    )
    for name, (kind, mechanism, size) in MECHANISMS.items():
        scheme = Scheme(kind, mechanism, tuple(f"v{i}" for i in range(size)))
        for reports in REPORTS:
            rows = [TallyRow(reports, np.zeros(row.width, np.int64)) for row in mechanism.rows]
            tally = Tally("metric", scheme.fingerprint, ("2026-11-01",), tuple(rows))
            part = Part(tally, scheme, None, Participation.evenly(tally))
            row: dict[str, Cell] = {"metric": name, "reports": reports}
            for epsilon in EPSILONS:
                for method in METHODS:
                    statistic = statistic_of(part, method)
                    noise = noise_of(method, epsilon, DELTA, statistic.sensitivity)
                    own, added = statistic.variances(noise.variance)
                    row[f"{method}, {float(epsilon):g}"] = 100 * added / own
            table.rows.append(row)
    table.note = f"Columns: method and epsilon of the release; Gaussian noise at delta = {DELTA:g}."
    yield table


if __name__ == "__main__":
    run(__doc__, {"variance": variance})
