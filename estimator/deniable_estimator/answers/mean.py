"""The mean of a number, in its unit; on a logarithmic scale its geometric mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deniable import Scheme
from deniable.mechanisms.number_range import NumberRange
from deniable_collector.tally import Tally
from deniable_estimator.analyses.anomalies import Figure, Verdict
from deniable_estimator.analyses.numbers.mean import MeanEstimate
from deniable_estimator.analyses.sliding_window import NumberAnalysis
from deniable_estimator.answers.base import Answer, Comparison, Series
from deniable_estimator.answers.basis import BASIS_COLUMNS, Basis
from deniable_estimator.answers.files import csv_text
from deniable_estimator.answers.mean_in_units import MeanInUnits
from deniable_estimator.answers.numbers import (
    NUMBER_COLUMNS,
    basis_of,
    number_caveats,
    number_change,
    number_footnotes,
    range_dict,
    series_rows,
    vars_of,
)
from deniable_estimator.answers.units import NumberUnit
from deniable_estimator.statistics.participation import Participation
from deniable_estimator.statistics.significance import Adjustment

__all__ = ["Mean", "combine_means", "estimate_mean", "mean_answer"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Mean(Answer):
    """The average of a number over devices."""

    kind = "mean"

    name: str | None = None
    """The unit of the numbers."""
    range: NumberRange
    """Where the numbers lie; of several schemes, that of the first with reports."""
    found: MeanInUnits

    @property
    def footnotes(self) -> tuple[str, ...]:
        return number_footnotes(self)

    @property
    def unit(self) -> NumberUnit:
        return NumberUnit(self.name, self.found.log)

    @property
    def leading(self) -> str:
        return self.found.name

    @property
    def series(self) -> Series:
        low, high = self.found.interval(self.level)
        columns = (self.found.number, self.found.std_error, low, high)
        return Series((self.leading,), *(np.array([each]) for each in columns))

    @property
    def budget(self) -> float:
        return self.found.most(self.fakes) if self.n else math.nan

    def change_from(
        self, before: Mean, *, together: bool = True, adjust: Adjustment = "storey"
    ) -> Comparison:
        return number_change(before, self, together=together)

    def numbers(self) -> dict[str, Any]:
        """`unit`, `range` (`low`, `high`, `scale`, `integer`), and `series`: one object with
        `series`, `estimate`, `std_error`, `low` and `high`."""
        return {
            "unit": self.name,
            "range": range_dict(self.range),
            "series": series_rows(self.series),
        }

    def to_csv(self) -> str:
        rows = (tuple(each.values()) for each in series_rows(self.series))
        basis = self.csv_basis()
        return csv_text((*NUMBER_COLUMNS, *BASIS_COLUMNS), ((*row, *basis) for row in rows))


def estimate_mean(
    tally: Tally,
    scheme: Scheme,
    candidates: Sequence[str] | None = None,
    *,
    level: float = 0.95,
    adjust: Adjustment = "storey",
    participation: Participation | None = None,
    unit: str | None = None,
) -> Mean:
    """The mean that a tally of one scheme says.

    `candidates` and `adjust` have no meaning for a number.

    Raises:
        EstimateError: the tally does not belong to the scheme.
        ValueError: `level` is not between 0 and 1.
    """
    analysis, basis = basis_of(tally, scheme, candidates, level, participation)
    found = analysis.mean(tally, basis.participation.repeats)
    return mean_answer(analysis, basis, level, unit, found, analysis.figures(tally))


def mean_answer(
    analysis: NumberAnalysis[Any],
    basis: Basis,
    level: float,
    unit: str | None,
    found: MeanEstimate,
    seen: Sequence[Figure],
) -> Mean:
    """The answer of a mean that is estimated already; `seen` says how honest the reports look."""
    answer = Mean(
        **vars_of(basis),
        level=level,
        verdict=Verdict.of(seen),
        name=unit,
        range=analysis.mechanism.range,
        found=MeanInUnits.of(analysis, found),
    )
    return replace(answer, warnings=number_caveats(answer))


def combine_means(answers: Sequence[Mean]) -> Mean:
    """A single mean from those of several schemes of one metric."""
    informed = [each for each in answers if each.n]
    if len(informed) < 2:
        return informed[0] if informed else answers[0]
    found = MeanInUnits.pooled(
        [each.found for each in informed], [each.participation for each in informed]
    )
    basis = Basis.merged(informed)
    combined = replace(
        informed[0],
        **vars_of(basis),
        found=found,
        verdict=Verdict.of([each for part in informed for each in part.verdict.figures]),
    )
    return replace(combined, warnings=number_caveats(combined))
