"""The mean of a number, in its unit; on a logarithmic scale its geometric mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from deniable.protocol.mechanisms.number_range import NumberRange
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.anomalies import Figure, Verdict
from deniable_estimator.analyses.base import FAKES
from deniable_estimator.analyses.numbers.base import EVEN_SPREAD, MeanEstimate, NumberAnalysis
from deniable_estimator.document.units import NumberUnit
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.base import Answer, Series
from deniable_estimator.kinds.basis import Basis, Part, caveats, vars_of
from deniable_estimator.messages import message
from deniable_estimator.statistics.participation import Participation, overlap, together


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


@dataclass(frozen=True)
class MeanInUnits:
    """A mean on the scale of its range: in the unit, or in logarithms of it."""

    found: MeanEstimate
    """On that scale; NaN without reports."""
    planned: float
    """The variance of one report, as planned before any."""
    gain: float
    loss: float
    """By how much `FAKES` of all reports, if they are fake, move it at most, up and down."""
    log: bool

    @classmethod
    def of(cls, analysis: NumberAnalysis[Any], found: MeanEstimate) -> MeanInUnits:
        """That of one scheme."""
        mechanism = analysis.mechanism
        start, half = axis_of(mechanism.range)
        attack = analysis.attack(found.mean, FAKES)
        mean = start + half * (1 + found.mean) if found.reports else math.nan
        scaled = replace(
            found,
            mean=mean,
            noise=half**2 * found.noise,
            kept=half**2 * found.kept,
            rounding=half * found.rounding,
        )
        return cls(
            scaled,
            half**2 * (analysis.planned_mean() + EVEN_SPREAD),
            half * attack.gain,
            half * attack.loss,
            mechanism.range.scale == "log",
        )

    def interval(self, level: float) -> tuple[float, float]:
        """The ends in the unit."""
        if not math.isfinite(self.found.variance):
            return -math.inf, math.inf
        low, high = self.found.interval(level)
        return self.in_unit(low), self.in_unit(high)

    @property
    def name(self) -> str:
        """What its series is called."""
        return "geometric mean" if self.log else "mean"

    @property
    def number(self) -> float:
        """The mean in the unit."""
        return self.in_unit(self.found.mean)

    @property
    def std_error(self) -> float:
        """In the unit; of a geometric mean to first order."""
        if not math.isfinite(self.found.variance):
            return math.nan
        error = self.found.std_error
        return error * self.number if self.log else error

    def most(self, fakes: float) -> float:
        """The most that so many fakes add to it, in the unit; in proportion to their number."""
        return self.reach(fakes)[1] - self.number

    def reach(self, fakes: float) -> tuple[float, float]:
        """Between which numbers so many fakes could put it, in the unit."""
        part = fakes / FAKES
        ends = self.found.mean - self.loss * part, self.found.mean + self.gain * part
        return self.in_unit(ends[0]), self.in_unit(ends[1])

    def in_unit(self, x: float) -> float:
        """A place on the scale in the unit."""
        if not self.log:
            return x
        return math.exp(x) if x < 709 else math.inf

    @staticmethod
    def pooled(
        parts: Sequence[MeanInUnits], participations: Sequence[Participation]
    ) -> MeanInUnits:
        """The average of several schemes' means.

        Raises:
            EstimateError: some are means of logarithms, and others are not.
        """
        if len({each.log for each in parts}) > 1:
            raise EstimateError(
                message(
                    "the scale of the metric has changed from linear to logarithmic or back: "
                    "estimate the windows before and after the change apart"
                )
            )
        weight = np.array(
            [part.n / each.planned for part, each in zip(participations, parts, strict=True)]
        )
        weight /= weight.sum()
        matrix = overlap(participations)
        same = float(together(participations, weight[:, None], matrix)[0])
        found = [each.found for each in parts]

        def total(numbers: Sequence[float], power: int = 1) -> float:
            return float(np.array(numbers) @ weight**power)

        return MeanInUnits(
            MeanEstimate(
                total([each.mean for each in found]),
                total([each.variance for each in found], 2),
                sum(each.reports for each in found),
                same,
                max(each.kept for each in found),
                total([each.rounding for each in found]),
            ),
            1 / float(np.sum(1 / np.array([each.planned for each in parts]))),
            max(each.gain for each in parts),
            max(each.loss for each in parts),
            parts[0].log,
        )


def axis_of(numbers: NumberRange) -> tuple[float, float]:
    """Where the range begins on its scale, and half of its extent."""
    if numbers.scale == "log":
        start, end = math.log(numbers.start), math.log(numbers.end)
    else:
        start, end = numbers.start, numbers.end
    return start, (end - start) / 2


@dataclass(frozen=True, eq=False, kw_only=True)
class Mean(Answer):
    """The average of a number over devices."""

    kind = "mean"

    name: str | None = None
    """The unit of the numbers."""
    range: NumberRange
    """Where the numbers lie; of several schemes, that of the first with reports."""
    mean: MeanInUnits

    @property
    def unit(self) -> NumberUnit:
        return NumberUnit(self.name, self.mean.log)

    @property
    def leading(self) -> str:
        return self.mean.name

    @property
    def series(self) -> Series:
        columns = self.mean.number, self.mean.std_error, *self.mean.interval(self.level)
        return Series((self.mean.name,), *(np.array([each]) for each in columns))

    @property
    def budget(self) -> float:
        """The most that so many fake devices add to the mean."""
        return self.mean.most(self.fakes) if self.n else math.nan

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
    return number_answer(Mean, part, level, found, analysis.figures(part.tally))


def number_answer(
    kind: type[AnyNumber],
    part: Part,
    level: float,
    mean: MeanEstimate,
    seen: Sequence[Figure],
    **more: Any,
) -> AnyNumber:
    """The answer of a mean that is estimated already; `seen` says how honest the reports look, and
    `more` is what a distribution adds."""
    analysis = number_analysis(part)
    return kind(
        **vars_of(part.basis),
        level=level,
        verdict=Verdict.of(seen),
        warnings=caveats(part.basis),
        name=part.unit,
        range=analysis.mechanism.range,
        mean=MeanInUnits.of(analysis, mean),
        **more,
    )


def combine_means(informed: Sequence[AnyNumber]) -> AnyNumber:
    """A single answer from those of several schemes of one metric, which have reports: all of it
    but what a distribution adds."""
    basis = Basis.merged(informed)
    return replace(
        informed[0],
        **vars_of(basis),
        mean=MeanInUnits.pooled(
            [each.mean for each in informed], [each.participation for each in informed]
        ),
        verdict=Verdict.of([each for part in informed for each in part.verdict.figures]),
        warnings=caveats(basis),
    )
