"""How a number is distributed: quantiles, the shares outside of its range, its mean, a histogram.

Schemes whose cells have the same edges are averaged (`combine_distributions`). Where the range or
the cells have changed, edges cannot be compared; then the scheme with the most reports answers, and
a warning says how many reports it leaves out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from deniable import Scheme
from deniable.mechanisms.number_range import NumberRange
from deniable.number_forecast import QUANTILES
from deniable.types.number import Number
from deniable_collector.tally import Tally
from deniable_estimator.analyses.anomalies import Verdict
from deniable_estimator.analyses.histogram import HistogramAnalysis
from deniable_estimator.analyses.numbers.change import quantile_shift
from deniable_estimator.analyses.numbers.distribution import (
    DistributionEstimate,
    Quantile,
    RangeShare,
    combine_distributions,
)
from deniable_estimator.analyses.numbers.poisoning import Attack, quantile_attack
from deniable_estimator.analyses.numbers.range_fit import range_findings
from deniable_estimator.analyses.numbers.sums import sum_weights
from deniable_estimator.analyses.poisoning import FAKES
from deniable_estimator.answers.base import BASIS_COLUMNS, Answer, Basis, Series
from deniable_estimator.answers.change import Comparison
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
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message, sentence
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.participation import Participation, overlap, together
from deniable_estimator.statistics.significance import Adjustment
from deniable_estimator.statistics.tails import normal_tails

__all__ = ["CellShares", "Distribution", "estimate_distribution", "series_names"]

_EDGE = ("below", "std_error", "low", "high")

_RANGE = {
    "low_too_high": sentence(
        "at least {share:.1%} of the numbers lie below low ({low}): declare a lower one to tell "
        "them apart"
    ),
    "high_too_low": sentence(
        "at least {share:.1%} of the numbers lie at high ({high}) or above: declare a higher one "
        "to tell them apart"
    ),
    "too_wide": sentence(
        "at least {share:.0%} of the numbers lie in {cells} neighbouring cells: a narrower range, "
        'or scale = "log", would tell more'
    ),
}
"""What is said of a range that does not suit the numbers."""


class CellShares(NamedTuple):
    """The cells of a distribution; arrays have shape (d,). The first is what lies below `low`, the
    last what lies at `high` and above."""

    starts: FloatArray
    """Where each cell begins, in the unit; -inf for the first."""
    ends: FloatArray
    """Where it ends; inf for the last."""
    shares: FloatArray
    """Possible shares, none below 0 and with a sum of 1: points to draw, without intervals."""
    below: FloatArray
    """The unbiased share below the end of each cell but the last, shape (d - 1,)."""
    curve: FloatArray
    """The same made monotone, to draw."""
    std_error: FloatArray
    low: FloatArray
    high: FloatArray
    """The ends of the intervals of `below`, made monotone."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Distribution(Answer):
    """How a number is distributed over devices."""

    kind = "distribution"

    name: str | None = None
    """The unit of the numbers."""
    range: NumberRange
    found: DistributionEstimate
    mean: MeanInUnits
    attack: Attack
    """How far `FAKES` of all reports, if they are fake, move the share below an edge at most."""

    @property
    def footnotes(self) -> tuple[str, ...]:
        return number_footnotes(self)

    @property
    def unit(self) -> NumberUnit:
        return NumberUnit(self.name, self.mean.log)

    @property
    def leading(self) -> str:
        return "p50"

    @cached_property
    def quantiles(self) -> tuple[Quantile, ...]:
        """Those that people ask for, in positions."""
        return tuple(self.found.quantile(p) for p in QUANTILES)

    @cached_property
    def series(self) -> Series:
        """Quantiles, then the mean; on a logarithmic scale the geometric mean."""
        rows = [self._in_units(each) for each in self.quantiles]
        names = [f"p{round(100 * each.p)}" for each in self.quantiles]
        low, high = self.mean.interval(self.level)
        rows.append((self.mean.number, low, high))
        value, lows, highs = (np.array(column, np.float64) for column in zip(*rows, strict=True))
        if not self.n:
            value[:] = np.nan
        z = NormalDist().inv_cdf((1 + self.level) / 2)
        with np.errstate(invalid="ignore"):
            errors = (highs - lows) / (2 * z)
        errors[~np.isfinite(errors)] = np.nan
        errors[-1] = self.mean.std_error
        return Series((*names, self.mean.name), value, errors, lows, highs)

    @property
    def budget(self) -> float:
        """The most that so many fake devices add to the mean."""
        return self.mean.most(self.fakes) if self.n else math.nan

    @property
    def below(self) -> RangeShare:
        """The share below `low`."""
        return self.found.below

    @property
    def above(self) -> RangeShare:
        """The share at `high` and above."""
        return self.found.above

    def share_below(self, limit: float) -> RangeShare:
        """The share of numbers below a limit in the unit. Inside of a cell, numbers count as evenly
        spread; the interval holds wherever they are.

        Raises:
            EstimateError: the limit is outside of the range, of whose numbers nothing is known.
        """
        if not self.range.start <= limit <= self.range.end:
            raise EstimateError(
                message(
                    "a limit must lie in the range of the metric, {low} to {high}: how numbers "
                    "are spread outside of it is not known",
                    low=self.range.low,
                    high=self.range.high,
                )
            )
        if self.range.integer:
            limit = math.ceil(limit)
        return self.found.share(None, self.range.position(limit))

    def share_row(self, limit: float) -> dict[str, Any]:
        """The share below a limit, for JSON: `at`, `share`, `std_error`, `low` and `high`; with the
        errors of `share_below`."""
        found = self.share_below(limit)
        error = math.sqrt(found.variance)
        numbers = (found.share, error, found.low, found.high) if self.n else (None,) * 4
        names = ("at", "share", "std_error", "low", "high")
        return dict(zip(names, (limit, *map(_finite, numbers)), strict=True))

    def reach(self, p: float) -> tuple[float, float]:
        """Between which numbers so many fakes could put quantile p; infinite for outside of the
        range."""
        part = self.fakes / FAKES
        moved = Attack(self.attack.gain * part, self.attack.loss * part)
        low, high = quantile_attack(self.found, moved, p)
        return (
            -math.inf if low is None else self.range.value(low),
            math.inf if high is None else self.range.value(high),
        )

    @cached_property
    def cells(self) -> CellShares:
        """The cells, those without width left out."""
        edges = self.found.edges
        kept = np.append(np.diff(edges) > 0, True)
        ends = np.array([self.range.value(int(each)) for each in edges[kept]])
        low, high = self.found.bands
        shares = self.found.histogram()
        groups = np.concatenate([[0], np.flatnonzero(kept) + 1])
        return CellShares(
            np.concatenate([[-np.inf], ends]),
            np.concatenate([ends, [np.inf]]),
            np.add.reduceat(shares, groups),
            self.found.cdf[kept],
            self.found.curve[kept],
            np.sqrt(self.found.variance[kept]),
            low[kept],
            high[kept],
        )

    @classmethod
    def combine(cls, answers: Sequence[Distribution]) -> Distribution:
        informed = [each for each in answers if each.n]
        if len(informed) < 2:
            return informed[0] if informed else answers[0]
        most = max(informed, key=lambda each: each.n)
        alike = [each for each in informed if _same_cells(each, most)]
        if len(alike) > 1:
            combined = _pooled(alike)
        else:
            combined = most
        left = sum(each.n for each in informed) - combined.n
        if not left:
            return combined
        warning = message(
            "the range or the cells have changed: {n:,} reports under others are left out; choose "
            "days before the change to see them",
            n=left,
        )
        return replace(combined, warnings=(*combined.warnings, warning))

    def change_from(
        self, before: Distribution, *, together: bool = True, adjust: Adjustment = "storey"
    ) -> Comparison:
        """Quantiles are tested by the share below the quantile of both periods together, and are
        compared where both have the same cells."""
        names, p_values = self.series.names, {}
        if _same_cells(before, self):
            for name, quantile in zip(names, self.quantiles, strict=False):
                shift = quantile_shift(before.found, self.found, quantile.p)
                p_values[name] = shift.p_value
        apart = self.mean.value - before.mean.value
        error = math.sqrt(self.mean.variance + before.mean.variance)
        slack = self.mean.rounding + before.mean.rounding
        if self.mean.log == before.mean.log:
            score = max(0.0, abs(apart) - slack) / error if error > 0 else 0.0
            p_values[names[-1]] = normal_tails(score) if math.isfinite(score) else 1.0
        return number_change(before, self, together=together, p_values=p_values)

    def numbers(self) -> dict[str, Any]:
        """`unit`, `range` (`low`, `high`, `scale`, `integer`), `series` (as for a mean), `below`
        and `above` (`share`, `low`, `high`: outside of the range), `cells` (`from`, `to` and a
        `share` to draw) and `cdf` (`at`, `below`, `std_error`, `low`, `high`)."""
        found = self.cells
        columns = (found.ends[:-1], found.below, found.std_error, found.low, found.high)
        return {
            "unit": self.name,
            "range": range_dict(self.range),
            "series": series_rows(self.series),
            "below": _share(self.below, self.n),
            "above": _share(self.above, self.n),
            "cells": [
                {"from": _finite(start), "to": _finite(end), "share": float(share)}
                for start, end, share in zip(found.starts, found.ends, found.shares, strict=True)
            ]
            if self.n
            else [],
            "cdf": [
                dict(zip(("at", *_EDGE), map(_finite, row), strict=True))
                for row in zip(*columns, strict=True)
            ]
            if self.n
            else [],
        }

    def to_csv(self) -> str:
        """One line for each series, then one for the share below each edge."""
        basis = self.csv_basis()
        rows = [tuple(each.values()) for each in series_rows(self.series)]
        if self.n:
            found = self.cells
            columns = found.ends[:-1], found.below, found.std_error, found.low, found.high
            rows += [
                (f"share below {number:g}", *map(_finite, numbers))
                for number, *numbers in zip(*columns, strict=True)
            ]
        return csv_text((*NUMBER_COLUMNS, *BASIS_COLUMNS), ((*row, *basis) for row in rows))

    def _in_units(self, quantile: Quantile) -> tuple[float, float, float]:
        point, low, high = quantile.in_units(self.range)
        return point, -math.inf if low is None else low, math.inf if high is None else high


def series_names(kind: Number) -> tuple[str, ...]:
    """What the series of the answer to a metric of this type are called."""
    last = "geometric mean" if kind.range.scale == "log" else "mean"
    if "distribution" not in kind.ask:
        return (last,)
    return (*(f"p{round(100 * p)}" for p in QUANTILES), last)


def estimate_distribution(
    tally: Tally,
    scheme: Scheme,
    candidates: Sequence[str] | None = None,
    *,
    level: float = 0.95,
    adjust: Adjustment = "storey",
    participation: Participation | None = None,
    unit: str | None = None,
) -> Distribution:
    """What a tally of one scheme says of a distribution; the arguments are those of
    `estimate_mean`, with the same errors."""
    analysis, basis = basis_of(tally, scheme, candidates, level, participation)
    assert isinstance(analysis, HistogramAnalysis)
    repeats = basis.participation.repeats
    answer = Distribution(
        **vars_of(basis),
        level=level,
        verdict=Verdict.of(analysis.figures(tally, repeats)),
        name=unit,
        range=analysis.mechanism.range,
        found=analysis.distribution(tally, level, repeats),
        mean=MeanInUnits.of(analysis, analysis.mean(tally, repeats)),
        attack=analysis.curve_attack(FAKES),
    )
    return replace(answer, warnings=_caveats(answer))


def _caveats(answer: Distribution) -> tuple[str, ...]:
    warnings = list(number_caveats(answer))
    if not answer.n:
        return tuple(warnings)
    # Where each whole number has a cell of its own, no range would tell more.
    finest = answer.range.integer and answer.range.span <= answer.found.cells - 2
    for finding in range_findings(answer.found):
        if finest and finding.code == "too_wide":
            continue
        template = _RANGE[finding.code]
        warnings.insert(
            0,
            message(
                template,
                share=finding.share,
                cells=finding.cells,
                low=answer.range.low,
                high=answer.range.high,
            ),
        )
    return tuple(warnings)


def _pooled(parts: Sequence[Distribution]) -> Distribution:
    """The average of distributions with the same cells."""
    participations = [each.participation for each in parts]
    weights = np.array(sum_weights([each.found.sums for each in parts]))
    # The cost of a device that reported under several schemes is bounded for the same weights.
    extra = float(together(participations, weights[:, None], overlap(participations))[0])
    first = parts[0]
    combined = replace(
        first,
        **vars_of(Basis.merged(parts)),
        found=combine_distributions([each.found for each in parts], extra),
        mean=MeanInUnits.pooled([each.mean for each in parts], participations),
        attack=Attack(
            max(each.attack.gain for each in parts), max(each.attack.loss for each in parts)
        ),
        verdict=Verdict.of([each for part in parts for each in part.verdict.figures]),
    )
    return replace(combined, warnings=_caveats(combined))


def _same_cells(one: Distribution, other: Distribution) -> bool:
    return one.range == other.range and np.array_equal(one.found.edges, other.found.edges)


def _share(found: RangeShare, n: int) -> dict[str, Any]:
    numbers = (found.share, found.low, found.high) if n else (None, None, None)
    return dict(zip(("share", "low", "high"), map(_finite, numbers), strict=True))


def _finite(number: float | None) -> float | None:
    return float(number) if number is not None and math.isfinite(number) else None
