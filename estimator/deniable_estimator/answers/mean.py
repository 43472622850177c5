"""The mean of a number, in its unit; on a logarithmic scale its geometric mean.

Means of several schemes, which may have different ranges, are averaged with weights that depend on
no data: n over the variance that is planned for one report, in the unit. The noise of the schemes
is independent; that the same devices may have used several of them is bounded as for shares
(`deniable_estimator.answers.combination`), with the largest variance of the numbers in place of
f (1 - f).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from deniable import Scheme
from deniable.mechanisms import HierarchicalHistogram, SlidingWindow
from deniable.mechanisms.number_range import NumberRange
from deniable.number_forecast import mean_variance
from deniable_collector.tally import Tally
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.anomalies import Verdict
from deniable_estimator.analyses.candidates import check_tally
from deniable_estimator.analyses.numbers.mean import MeanEstimate
from deniable_estimator.analyses.numbers.planning import MEAN_SPREAD, tree_variances
from deniable_estimator.analyses.poisoning import FAKES
from deniable_estimator.analyses.sliding_window import NumberAnalysis
from deniable_estimator.answers.base import BASIS_COLUMNS, Answer, Basis, Series
from deniable_estimator.answers.change import Comparison, interval_of_difference
from deniable_estimator.answers.files import csv_text, plain
from deniable_estimator.answers.units import NumberUnit
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message
from deniable_estimator.statistics.participation import Participation, overlap, together
from deniable_estimator.statistics.significance import Adjustment

__all__ = [
    "NUMBER_COLUMNS",
    "Mean",
    "MeanInUnits",
    "basis_of",
    "estimate_mean",
    "number_caveats",
    "number_change",
    "number_footnotes",
]

NUMBER_COLUMNS = ("series", "estimate", "std_error", "low", "high")
"""What a file says of each series of a number."""

_FEW = 30


@dataclass(frozen=True)
class MeanInUnits:
    """A mean on the scale of its range: in the unit, or in logarithms of it."""

    value: float
    """NaN without reports."""
    variance: float
    rounding: float
    """By how much the cells of a distribution can move it at most."""
    spread: float
    """A bound of the variance of the numbers over devices, where it matters."""
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
        start, half = _axis(mechanism.range)
        attack = analysis.attack(found.mean, FAKES)
        return cls(
            start + half * (1 + found.mean) if found.reports else math.nan,
            half**2 * found.variance if found.reports else math.inf,
            half * found.rounding,
            half**2 * found.kept,
            half**2 * (_planned(mechanism) + MEAN_SPREAD),
            half * attack.gain,
            half * attack.loss,
            mechanism.range.scale == "log",
        )

    def interval(self, level: float) -> tuple[float, float]:
        """The ends in the unit."""
        if not math.isfinite(self.variance):
            return -math.inf, math.inf
        # As `MeanEstimate.interval`, on the scale of the unit.
        alike = MeanEstimate(self.value, self.variance, 1, rounding=self.rounding)
        low, high = alike.interval(level)
        return self.in_unit(low), self.in_unit(high)

    @property
    def number(self) -> float:
        """The mean in the unit."""
        return self.in_unit(self.value)

    @property
    def std_error(self) -> float:
        """In the unit; of a geometric mean to first order."""
        if not math.isfinite(self.variance):
            return math.nan
        error = math.sqrt(self.variance)
        return error * self.number if self.log else error

    def most(self, fakes: float) -> float:
        """The most that so many fakes add to it, in the unit; in proportion to their number."""
        return self.reach(fakes)[1] - self.number

    def reach(self, fakes: float) -> tuple[float, float]:
        """Between which numbers so many fakes could put it, in the unit."""
        part = fakes / FAKES
        return self.in_unit(self.value - self.loss * part), self.in_unit(
            self.value + self.gain * part
        )

    def in_unit(self, x: float) -> float:
        """A place on the scale in the unit."""
        if not self.log:
            return x
        return math.exp(x) if x < 700 else math.inf

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
        spread = max(each.spread for each in parts) or max(
            each.planned / (1 + MEAN_SPREAD) for each in parts
        )

        def total(numbers: Sequence[float], power: int = 1) -> float:
            return float(np.array(numbers) @ weight**power)

        return MeanInUnits(
            total([each.value for each in parts]),
            total([each.variance for each in parts], 2) + same * spread,
            total([each.rounding for each in parts]),
            spread,
            1 / float(np.sum(1 / np.array([each.planned for each in parts]))),
            max(each.gain for each in parts),
            max(each.loss for each in parts),
            parts[0].log,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Mean(Answer):
    """The average of a number over devices."""

    kind = "mean"

    name: str | None = None
    """The unit of the numbers."""
    found: MeanInUnits

    @property
    def footnotes(self) -> tuple[str, ...]:
        return number_footnotes(self)

    @property
    def unit(self) -> NumberUnit:
        return NumberUnit(self.name)

    @property
    def leading(self) -> str:
        return mean_name(self.found)

    @property
    def series(self) -> Series:
        low, high = self.found.interval(self.level)
        columns = (self.found.number, self.found.std_error, low, high)
        return Series((self.leading,), *(np.array([each]) for each in columns))

    @property
    def budget(self) -> float:
        return self.found.most(self.fakes) if self.n else math.nan

    @classmethod
    def combine(cls, answers: Sequence[Mean]) -> Mean:
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

    def change_from(self, before: Mean, *, together: bool = True) -> Comparison:
        return number_change(before, self, together=together)

    def numbers(self) -> dict[str, Any]:
        """`unit`, and `series`: one object with `series`, `estimate`, `std_error`, `low` and
        `high`."""
        return {"unit": self.name, "series": series_rows(self.series)}

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
    repeats = basis.participation.repeats
    found = MeanInUnits.of(analysis, analysis.mean(tally, repeats))
    answer = Mean(
        **vars_of(basis),
        level=level,
        verdict=Verdict.of(analysis.figures(tally)),
        name=unit,
        found=found,
    )
    return replace(answer, warnings=number_caveats(answer))


def basis_of(
    tally: Tally,
    scheme: Scheme,
    candidates: Sequence[str] | None,
    level: float,
    participation: Participation | None,
) -> tuple[NumberAnalysis[Any], Basis]:
    """What a tally of numbers is analysed with, and what its answer rests on.

    Raises:
        EstimateError: candidates were given, or the tally does not belong to the scheme.
        ValueError: `level` is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    if candidates is not None:
        raise EstimateError(message("a number has no candidates: leave them out"))
    check_tally(tally, scheme)
    analysis = analysis_of(scheme.mechanism)
    assert isinstance(analysis, NumberAnalysis)
    basis = Basis(
        tally.metric,
        (scheme.fingerprint,),
        tally.windows,
        tally.reports,
        participation or Participation.evenly(tally),
        scheme.mechanism.epsilon,
    )
    return analysis, basis


def mean_name(found: MeanInUnits) -> str:
    """What the series of a mean is called."""
    return "geometric mean" if found.log else "mean"


def series_rows(series: Series) -> list[dict[str, Any]]:
    """The series as JSON has them."""
    columns = map(plain, (series.value, series.std_error, series.low, series.high))
    return [
        dict(zip(NUMBER_COLUMNS, row, strict=True))
        for row in zip(series.names, *columns, strict=True)
    ]


def number_change(
    before: Answer,
    after: Answer,
    *,
    together: bool = True,
    p_values: dict[str, float] | None = None,
) -> Comparison:
    """The change of all series that both answers have; those of `p_values` are judged by these
    tests, the others by whether their interval holds zero."""
    old, new = before.series, after.series
    names = tuple(
        name for name in new.names if name in old.names and (p_values is None or name in p_values)
    )
    one = [old.names.index(name) for name in names]
    two = [new.names.index(name) for name in names]
    was = old.value[one], old.low[one], old.high[one]
    now = new.value[two], new.low[two], new.high[two]
    with np.errstate(invalid="ignore"):
        low, high = interval_of_difference(was, now)
    z = NormalDist().inv_cdf((1 + after.level) / 2)
    half = np.where(np.isfinite(high - low), (high - low) / 2, np.nan)
    family = max(1, len(names)) if together else 1
    if p_values is None:
        widened = NormalDist().inv_cdf(1 - (1 - after.level) / family / 2) / z
        difference = now[0] - was[0]
        changed = np.abs(difference) > widened * half
    else:
        least = (1 - after.level) / family
        changed = np.array([p_values[name] <= least for name in names], np.bool_)
    return Comparison(
        before=before,
        after=after,
        level=after.level,
        together=together,
        values=names,
        old=was[0],
        new=now[0],
        difference=now[0] - was[0],
        std_error=half / z,
        low=low,
        high=high,
        changed=changed,
    )


def number_caveats(answer: Answer) -> tuple[str, ...]:
    """The warnings that a statistician would give."""
    if answer.n == 0:
        return (message("no reports yet"),)
    warnings = []
    if answer.n < _FEW:
        warnings.append(
            message("only {n} reports: too few to draw conclusions about all devices", n=answer.n)
        )
    return (*warnings, *number_footnotes(answer))


def number_footnotes(answer: Answer) -> tuple[str, ...]:
    """The caveats that hold however many reports there are."""
    if not answer.n or len(answer.windows) < 2:
        return ()
    return (
        message(
            "rests on {n:,} reports from {windows} windows, in which the same devices may have "
            "reported again: the intervals are for all devices, and count these reports as "
            "{devices:,.0f} devices",
            n=answer.n,
            windows=len(answer.windows),
            devices=answer.devices,
        ),
    )


def vars_of(basis: Basis) -> dict[str, Any]:
    """The fields of a basis, for an answer on it."""
    return {name: getattr(basis, name) for name in Basis.__dataclass_fields__}


def _axis(numbers: NumberRange) -> tuple[float, float]:
    """Where the range begins on its scale, and half of its extent."""
    if numbers.scale == "log":
        start, end = math.log(numbers.start), math.log(numbers.end)
    else:
        start, end = numbers.start, numbers.end
    return start, (end - start) / 2


def _planned(mechanism: SlidingWindow | HierarchicalHistogram) -> float:
    """n times the variance of the mean's noise, between -1 and 1."""
    if isinstance(mechanism, SlidingWindow):
        return mean_variance(mechanism)
    return tree_variances(mechanism).mean
