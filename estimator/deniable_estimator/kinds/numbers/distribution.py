"""How a number is distributed: quantiles, the shares outside of its range, its mean, and a
histogram.

Schemes whose cells have the same edges are averaged. Where the range or the cells have changed,
edges cannot be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from deniable.protocol.mechanisms.number_range import NumberRange
from deniable.protocol.types.number import Number
from deniable_estimator.analyses.base import FAKES
from deniable_estimator.analyses.numbers import Attack, HistogramAnalysis
from deniable_estimator.analyses.numbers.cell_sums import combine_sums, sum_weights
from deniable_estimator.analyses.numbers.distribution import (
    DistributionEstimate,
    Quantile,
    RangeShare,
)
from deniable_estimator.document.csv_files import Table, plain, records
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.base import (
    NUMBER_COLUMNS,
    ChangeTest,
    Comparison,
    Series,
    number_change,
)
from deniable_estimator.kinds.basis import Part
from deniable_estimator.kinds.numbers.mean import (
    Mean,
    combine_means,
    mean_name,
    number_analysis,
    number_answer,
)
from deniable_estimator.messages import Message, message
from deniable_estimator.statistics.detection import deviations
from deniable_estimator.statistics.expected import QUANTILES
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.participation import overlap, together
from deniable_estimator.statistics.tails import normal_tails

_EDGE = ("below", "std_error", "low", "high")

_CLAMPED = 0.01
"""A larger share outside of the range is worth a note, if it is certain."""


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
class Distribution(Mean):
    """How a number is distributed over devices."""

    kind = "distribution"

    found: DistributionEstimate
    attack: Attack
    """How far `FAKES` of all reports, if they are fake, move the share below an edge at most."""

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
        rows = [each.in_units(self.range) for each in self.quantiles]
        names = [f"p{round(100 * each.p)}" for each in self.quantiles]
        mean, error, low, high = self.mean_row
        rows.append((mean, low, high))
        value, lows, highs = (np.array(column, np.float64) for column in zip(*rows, strict=True))
        if not self.n:
            value[:] = np.nan
        with np.errstate(invalid="ignore"):
            errors = (highs - lows) / (2 * deviations(self.level))
        errors[~np.isfinite(errors)] = np.nan
        errors[-1] = error
        return Series((*names, mean_name(self.range)), value, errors, lows, highs)

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
        numbers = found.share, math.sqrt(found.variance), found.low, found.high
        told = plain(numbers) if self.n else [None] * 4
        return dict(zip(("at", "share", "std_error", "low", "high"), (limit, *told), strict=True))

    def reach(self, p: float) -> tuple[float, float]:
        """Between which numbers so many fakes could put quantile p; infinite for outside of the
        range."""
        part = self.fakes / FAKES
        low, high = self.found.reach(p, self.attack.gain * part, self.attack.loss * part)
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

    def alike(self, other: Distribution) -> bool:
        """Whether both have the same cells, so that they can be averaged and compared."""
        return super().alike(other) and np.array_equal(self.found.edges, other.found.edges)

    def change_from(self, before: Distribution, test: ChangeTest) -> Comparison:
        """Quantiles are tested by the share below the quantile of both periods together, and are
        compared where both have the same cells."""
        names, p_values = self.series.names, {}
        if self.alike(before):
            for name, quantile in zip(names, self.quantiles, strict=False):
                p_values[name] = before.found.p_value_of_change(self.found, quantile.p)
        apart = self.mean.mean - before.mean.mean
        error = math.sqrt(self.mean.variance + before.mean.variance)
        slack = self.mean.rounding + before.mean.rounding
        if self.log == before.log:
            score = max(0.0, abs(apart) - slack) / error if error > 0 else 0.0
            p_values[names[-1]] = normal_tails(score) if math.isfinite(score) else 1.0
        return number_change(before, self, test, p_values)

    def numbers(self) -> dict[str, Any]:
        """`unit`, `range` (`low`, `high`, `scale`, `integer`), `series` (as for a mean), `below`
        and `above` (`share`, `low`, `high`: outside of the range), `cells` (`from`, `to` and a
        `share` to draw) and `cdf` (`at`, `below`, `std_error`, `low`, `high`)."""
        found = self.cells
        cells = found.starts, found.ends, found.shares
        return {
            **super().numbers(),
            "below": _share(self.found.below, self.n),
            "above": _share(self.found.above, self.n),
            "cells": records(("from", "to", "share"), *cells) if self.n else [],
            "cdf": records(("at", *_EDGE), *self._edges) if self.n else [],
        }

    def own_table(self) -> Table:
        """One line for each series, then one for the share below each edge."""
        lines = self.series.lines()
        if self.n:
            edges = zip(*map(plain, self._edges), strict=True)
            lines += [(f"share below {at:g}", *numbers) for at, *numbers in edges]
        return NUMBER_COLUMNS, lines

    @property
    def _edges(self) -> tuple[FloatArray, ...]:
        found = self.cells
        return found.ends[:-1], found.below, found.std_error, found.low, found.high


def series_names(kind: Number) -> tuple[str, ...]:
    """What the series of the answer to a metric of this type are called."""
    last = mean_name(kind.range)
    if "distribution" not in kind.ask:
        return (last,)
    return (*(f"p{round(100 * p)}" for p in QUANTILES), last)


def _share(found: RangeShare, n: int) -> dict[str, Any]:
    told = plain((found.share, found.low, found.high)) if n else [None] * 3
    return dict(zip(("share", "low", "high"), told, strict=True))


def estimate_distribution(part: Part, level: float) -> Distribution:
    """What a tally of one scheme says of a distribution; the arguments are those of
    `estimate_mean`, with the same errors."""
    analysis, tally, repeats = number_analysis(part), part.tally, part.repeats
    assert isinstance(analysis, HistogramAnalysis)
    (seen,) = analysis.figures([tally], [repeats])
    answer = number_answer(
        *(Distribution, part, level, analysis.mean(tally.rows, repeats), seen),
        found=analysis.distribution(tally.rows, level, repeats),
        attack=analysis.curve_attack(FAKES),
    )
    return _noted(answer)


def _noted(answer: Distribution) -> Distribution:
    """The same with notes on its range before its warnings."""
    told = range_notes(answer.found, answer.range) if answer.n else ()
    return replace(answer, warnings=(*told, *answer.warnings))


def range_notes(found: DistributionEstimate, numbers: NumberRange) -> Iterator[Message]:
    """What another range would do better, as far as the tally is certain of it."""
    # Where each whole number has a cell of its own, no range would tell more.
    finest = numbers.integer and numbers.span <= found.cells - 2
    if not finest and found.crowded is not None:
        cells, share = found.crowded
        yield message(
            "at least {share:.0%} of the numbers lie in {cells} neighbouring cells: a narrower "
            'range, or scale = "log", would tell more',
            share=share,
            cells=cells,
        )
    if (share := found.above.low) > _CLAMPED:
        yield message(
            "at least {share:.1%} of the numbers lie at high ({high}) or above: declare a higher "
            "one to tell them apart",
            share=share,
            high=numbers.high,
        )
    if (share := found.below.low) > _CLAMPED:
        yield message(
            "at least {share:.1%} of the numbers lie below low ({low}): declare a lower one to "
            "tell them apart",
            share=share,
            low=numbers.low,
        )


def combine_distributions(parts: Sequence[Distribution]) -> Distribution:
    """The average of distributions with the same cells."""
    participations = [each.participation for each in parts]
    weights = np.array(sum_weights([each.found.sums for each in parts]))
    # The cost of a device that reported under several schemes is bounded for the same weights.
    extra = float(together(participations, weights[:, None], overlap(participations))[0])
    combined = replace(
        combine_means(parts),
        found=replace(
            parts[0].found, sums=combine_sums([each.found.sums for each in parts], extra)
        ),
        attack=Attack(*map(max, zip(*(each.attack for each in parts), strict=True))),
    )
    return _noted(combined)
