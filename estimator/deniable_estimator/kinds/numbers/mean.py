"""The mean of a number, in its unit; on a logarithmic scale its geometric mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np

from deniable.protocol.mechanisms.number_range import NumberRange
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.anomalies import Figure, Verdict
from deniable_estimator.analyses.base import FAKES
from deniable_estimator.analyses.numbers import Attack, MeanEstimate, NumberAnalysis
from deniable_estimator.document.units import NumberUnit
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.base import Answer, ChangeTest, Comparison, Series, number_change
from deniable_estimator.kinds.basis import Basis, Part, caveats, vars_of
from deniable_estimator.messages import message
from deniable_estimator.statistics.participation import overlap, together


def number_analysis(part: Part) -> NumberAnalysis[Any]:
    """What a tally of numbers is analysed with.

    Raises:
        EstimateError: candidates were given.
    """
    if part.candidates is not None:
        raise EstimateError(message("a number has no candidates: leave them out"))
    analysis = analysis_of(part.scheme.mechanism)
    assert isinstance(analysis, NumberAnalysis)
    return analysis


def axis_of(numbers: NumberRange) -> tuple[float, float]:
    """Where the range begins on its scale, and half of its extent."""
    if numbers.scale == "log":
        start, end = math.log(numbers.start), math.log(numbers.end)
    else:
        start, end = numbers.start, numbers.end
    return start, (end - start) / 2


def mean_name(numbers: NumberRange) -> str:
    """What the series of a mean is called."""
    return "geometric mean" if numbers.scale == "log" else "mean"


@dataclass(frozen=True, eq=False, kw_only=True)
class Mean(Answer):
    """The average of a number over devices."""

    kind = "mean"

    name: str | None = None
    """The unit of the numbers."""
    range: NumberRange
    """Where the numbers lie; of several schemes, that of the first with reports."""
    mean: MeanEstimate
    """On the scale of the range: in the unit, or in logarithms of it. NaN without reports."""
    mean_attack: Attack
    """By how much `FAKES` of all reports, if they are fake, move it there at most."""

    other = message("the range or the cells have changed")

    @property
    def log(self) -> bool:
        """Whether the mean is a geometric one."""
        return self.range.scale == "log"

    @property
    def unit(self) -> NumberUnit:
        return NumberUnit(self.name, self.log)

    @property
    def leading(self) -> str:
        return mean_name(self.range)

    @property
    def series(self) -> Series:
        return Series((self.leading,), *(np.array([each]) for each in self.mean_row))

    @property
    def mean_row(self) -> tuple[float, float, float, float]:
        """The mean in the unit, its standard error (of a geometric mean to first order), and the
        ends of its interval."""
        value = self.in_unit(self.mean.mean)
        if not math.isfinite(self.mean.variance):
            return value, math.nan, -math.inf, math.inf
        error = self.mean.std_error * value if self.log else self.mean.std_error
        low, high = self.mean.interval(self.level)
        return value, error, self.in_unit(low), self.in_unit(high)

    @property
    def budget(self) -> float:
        """The most that so many fake devices add to the mean."""
        return self.mean_reach[1] - self.in_unit(self.mean.mean) if self.n else math.nan

    @property
    def mean_reach(self) -> tuple[float, float]:
        """Between which numbers so many fakes could put the mean; in proportion to their number."""
        part, mean = self.fakes / FAKES, self.mean.mean
        ends = mean - self.mean_attack.loss * part, mean + self.mean_attack.gain * part
        return self.in_unit(ends[0]), self.in_unit(ends[1])

    def in_unit(self, x: float) -> float:
        """A place on the scale in the unit."""
        if not self.log:
            return x
        return math.exp(x) if x < 709 else math.inf

    def alike(self, other: Self) -> bool:
        """Whether both have the same range: what lies outside of one counts as its end."""
        return self.range == other.range

    def change_from(self, before: Self, test: ChangeTest) -> Comparison:
        return number_change(before, self, test, None if self.alike(before) else {})

    def numbers(self) -> dict[str, Any]:
        """`unit`, `range` (`low`, `high`, `scale`, `integer`), and `series`."""
        found = {
            "low": self.range.start,
            "high": float(self.range.high),
            "scale": self.range.scale,
            "integer": self.range.integer,
        }
        return {"unit": self.name, "range": found, **super().numbers()}


AnyNumber = TypeVar("AnyNumber", bound=Mean)


def estimate_mean(part: Part, level: float) -> Mean:
    """The mean that a tally of one scheme says.

    Raises:
        EstimateError: candidates were given.
    """
    analysis = number_analysis(part)
    found = analysis.mean(part.tally.rows, part.repeats)
    (seen,) = analysis.figures([part.tally], [1.0])
    return number_answer(Mean, part, level, found, seen)


def number_answer(
    kind: type[AnyNumber],
    part: Part,
    level: float,
    mean: MeanEstimate,
    seen: Sequence[Figure],
    **more: Any,
) -> AnyNumber:
    """The answer of a mean from -1 to 1 that is estimated already; `seen` says how honest the
    reports look, and `more` is what a distribution adds."""
    analysis = number_analysis(part)
    numbers = analysis.mechanism.range
    start, half = axis_of(numbers)
    attack = analysis.attack(mean.mean, FAKES)
    scaled = replace(
        mean,
        mean=start + half * (1 + mean.mean) if mean.reports else math.nan,
        noise=half**2 * mean.noise,
        kept=half**2 * mean.kept,
        rounding=half * mean.rounding,
    )
    return kind(
        **vars_of(part.basis),
        level=level,
        verdict=Verdict.of(seen),
        warnings=caveats(part.basis),
        name=part.unit,
        range=numbers,
        mean=scaled,
        mean_attack=Attack(half * attack.gain, half * attack.loss),
        **more,
    )


def combine_means(informed: Sequence[AnyNumber]) -> AnyNumber:
    """A single answer from those of several schemes of one metric, which have reports and the same
    range, by their reports (`deniable_estimator.kinds.shares.making`): all of it but what a
    distribution adds."""
    # A few reports of which no row has enough tell nothing, and take nothing from the others.
    known = [each for each in informed if math.isfinite(each.mean.variance)] or [*informed]
    weight = np.array([each.participation.n for each in known], np.float64)
    weight /= weight.sum()
    participations, found = zip(*((each.participation, each.mean) for each in known), strict=True)
    same = together(participations, weight[:, None], overlap(participations))

    def total(numbers: Sequence[float], power: int = 1) -> float:
        return float(np.array(numbers) @ weight**power)

    basis = Basis.merged(informed)
    return replace(
        informed[0],
        **vars_of(basis),
        mean=MeanEstimate(
            total([each.mean for each in found]),
            total([each.variance for each in found], 2),
            sum(each.reports for each in found),
            float(same[0]),
            max(each.kept for each in found),
            total([each.rounding for each in found]),
        ),
        mean_attack=Attack(*map(max, zip(*(each.mean_attack for each in informed), strict=True))),
        verdict=Verdict.of([each for part in informed for each in part.verdict.figures]),
        warnings=caveats(basis),
    )
