"""The answer to how two closed lists go together: the joint table, both margins, conditional shares
in both directions, and whether there is any dependence at all."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.types.pair import Pair
from deniable_estimator.analyses.base import Exposure, Finding
from deniable_estimator.analyses.pairs import Conditionals, Covariance, conditionals, dependence
from deniable_estimator.analyses.pairs.poisoning import Fake, fakes_to_reject, moved
from deniable_estimator.document.csv_files import Table, plain, records
from deniable_estimator.document.units import CONDITIONALS, Unit
from deniable_estimator.kinds.base import Answer, ChangeTest, Comparison, Series, number_change
from deniable_estimator.kinds.shares.making import infer
from deniable_estimator.kinds.shares.shares import Shares
from deniable_estimator.messages import message
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.significance import CAUTION, step_up

_SHARE = ("share", "std_error", "low", "high")
_JOINT = (*_SHARE, "p_value", "p_adjusted", "detected", "normalized")
_GIVEN = ("share", "low", "high", "too_few")
_APART = ("shrunken", "residual", "residual_std_error", "residual_p", "carries")

LEAST_FOR_TEST = 300
"""With fewer reports the test of independence is not known to keep its level."""


class Side(NamedTuple):
    """A pair seen from one of its lists: a row is a value of it, a column one of the other."""

    names: tuple[str, str]
    """The list whose values are given, and the other one."""
    margins: tuple[Shares, Shares]
    table: FloatArray
    shares: Conditionals
    """Of the devices with the value of a row, the shares of the columns."""
    residuals: dependence.Residuals | None
    carries: NDArray[np.bool_]


@dataclass(frozen=True, eq=False, kw_only=True)
class PairAnswer(Answer):
    """The joint of two lists of k1 and k2 values. Tables have shape (k1, k2).

    `joint` has the cells in the order of the table, row by row. `margins` are the shares of the
    values of both lists. All three are unbiased, with their intervals.
    """

    kind = "pair"
    headings = ("series", "share")
    other = message("the values have changed")

    names: tuple[str, str]
    """The two metrics."""
    joint: Shares
    margins: tuple[Shares, Shares]
    covariance: Covariance | None = field(repr=False)
    """That of the cells; None without reports."""
    fake: Fake | None = field(default=None, repr=False)
    """What a fake report can say of the cells; None without reports."""

    @property
    def unit(self) -> Unit:
        return CONDITIONALS

    @property
    def budget(self) -> float:
        """The most that so many fake devices add to any one cell."""
        return float(self.fakes * self.joint.exposure.gain.max()) if self.n else math.nan

    @cached_property
    def budget_of_conditionals(self) -> float:
        """The most that so many fake devices move any conditional share that is shown, up or down;
        at most to 0 or 1. NaN if none is shown."""
        if self.fake is None:
            return math.nan
        most = math.nan
        for side in self.sides:
            low, high = moved(side.table, self.fake, self.fakes)
            share = np.clip(side.shares.share, 0.0, 1.0)
            up, down = np.minimum(high, 1.0) - share, share - np.maximum(low, 0.0)
            shown = np.maximum(up, down)[side.shares.known]
            most = float(np.fmax(most, shown.max())) if shown.size else most
        return most

    @cached_property
    def fakes_to_reject(self) -> float | None:
        """With which fraction of fakes the test calls lists dependent that are not, in 4 of 5
        cases; None without the test."""
        if self.fake is None or self._tested is None:
            return None
        margins = (np.maximum(each.share, 0.0) for each in self.margins)
        rows, columns = (each / each.sum() for each in margins)
        return fakes_to_reject(rows, columns, self._tested, self.fake, 1 - self.level)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.margins[0].values), len(self.margins[1].values)

    @property
    def table(self) -> FloatArray:
        """The estimated cells."""
        return self.joint.share.reshape(self.shape)

    @cached_property
    def sides(self) -> tuple[Side, Side]:
        """It seen from its first list, and from its second."""
        (first, second), (one, two), apart = self.names, self.margins, self.residuals
        turned = apart and dependence.Residuals(*(each.T for each in apart))
        table, carries = self.table, self.carries
        return (
            Side(self.names, self.margins, table, self._given(table), apart, carries),
            Side((second, first), (two, one), table.T, self._given(table.T), turned, carries.T),
        )

    def seen_from(self, metric: str | None) -> Side:
        """It seen from the list of this metric; from the first if it is not said."""
        return self.sides[metric == self.names[1]]

    @property
    def conditionals(self) -> tuple[Conditionals, Conditionals]:
        """The shares given the first list, and given the second, both in the shape of the table."""
        first, second = self.sides
        return first.shares, Conditionals._make(each.T for each in second.shares)

    def _given(self, table: FloatArray) -> Conditionals:
        if self.covariance is None:
            unknown = np.full(table.shape, math.nan)
            return Conditionals(*(unknown,) * 4, np.zeros(table.shape, np.bool_))
        return conditionals(table, self.covariance, self.level)

    @property
    def _tested(self) -> Covariance | None:
        """The covariance of the cells, where there are reports enough for the test."""
        return self.covariance if self.n >= LEAST_FOR_TEST else None

    @cached_property
    def independence(self) -> dependence.Independence | None:
        """The test of independence; None with too few reports."""
        return None if self._tested is None else dependence.independence(self.table, self._tested)

    @property
    def dependent(self) -> bool:
        """Whether the test finds that the two depend on each other."""
        test = self.independence
        return test is not None and test.p_value <= 1 - self.level

    @cached_property
    def residuals(self) -> dependence.Residuals | None:
        """How far each cell is from independence; None without the test."""
        return None if self._tested is None else dependence.residuals(self.table, self._tested)

    @cached_property
    def shrunken(self) -> FloatArray | None:
        """The table that is likely nearest to the truth: biased towards independence, and without
        intervals; None without the test."""
        return None if self.residuals is None else dependence.shrunken(self.table, self.residuals)

    @cached_property
    def carries(self) -> NDArray[np.bool_]:
        """The cells that differ from independence, with false discoveries controlled; none where
        the test finds no dependence."""
        found = self.residuals
        if found is None or not self.dependent:
            return np.zeros(self.shape, np.bool_)
        carries: NDArray[np.bool_] = CAUTION * step_up(found.p_value.ravel()) <= 1 - self.level
        return carries.reshape(self.shape)

    @cached_property
    def effect(self) -> dependence.Effect | None:
        """Cramer's V; None without the test."""
        tested = self._tested
        return None if tested is None else dependence.effect(self.table, tested, self.level)

    @property
    def lumped(self) -> tuple[str, ...]:
        """The values that the effect size takes together, because they hardly stand out."""
        if self.effect is None:
            return ()
        return tuple(
            f"{name}={margin.values[place]}"
            for name, margin, places in zip(
                self.names, self.margins, self.effect.lumped, strict=True
            )
            for place in places
            if len(places) > 1
        )

    @property
    def own(self) -> Collection[str]:
        cells = 2 * self.joint.share.size
        return self.series.names[:cells]

    @property
    def leading(self) -> str:
        """How often the largest value of the second list occurs with the largest of the first; of
        a boolean, how often it is true."""
        first, second = (
            f"{name}={'true' if margin.boolean else margin.values[int(margin.share.argmax())]}"
            for name, margin in zip(self.names, self.margins, strict=True)
        )
        turned = self.margins[0].boolean and not self.margins[1].boolean
        return f"{first} given {second}" if turned else f"{second} given {first}"

    @cached_property
    def series(self) -> Series:
        """The conditionals given the first list, those given the second, and both margins."""
        parts: list[tuple[FloatArray, ...]] = []
        for found in self.conditionals:
            numbers = (found.share, found.std_error, found.low, found.high)
            parts.append(tuple(np.where(found.known, each, math.nan).ravel() for each in numbers))
        for margin in self.margins:
            share, low, high = margin.at(np.arange(len(margin.values)), self.level)
            parts.append((share, margin.std_error, low, high))
        names = names_of_series(self.names, (self.margins[0].values, self.margins[1].values))
        return Series(names, *(np.concatenate(each) for each in zip(*parts, strict=True)))

    def margin_of(self, metric: str, asked: Sequence[str] | None = None) -> Shares:
        """The shares of one of the two lists as the answer of its metric; of the values `asked`
        for alone, if any."""
        margin = self.margins[self.names.index(metric)]
        kept = margin.values if asked is None else tuple(v for v in asked if v in margin.values)
        places = margin.places(kept)
        note = message(
            "the shares come from the reports of {pair}, as devices do not report the metric by "
            "itself: their intervals are wider",
            pair=self.metric,
        )
        exposure = Exposure(margin.exposure.gain[places], margin.exposure.loss[places])
        noise = margin.noise.taken(places)
        (found,) = infer(
            [replace(margin, metric=metric)],
            kept,
            Finding.of(margin.share[places], noise),
            exposure,
            [self.verdict.figures],
            margin.level,
            margin.adjustment,
            complete=asked is None,
        )
        return replace(found, warnings=(*found.warnings, note))

    def alike(self, other: PairAnswer) -> bool:
        return self.joint.values == other.joint.values

    def change_from(self, before: PairAnswer, test: ChangeTest) -> Comparison:
        """A series has changed if the interval of its change at the level of the test, shared by
        all series (Bonferroni), does not hold zero. A conditional is a ratio: its interval at one
        level is not to be had by stretching that of another.
        """
        found = number_change(before, self, test)
        family = max(1, len(found.values)) if test.together else 1
        tested = 1 - test.level_at(self.level) / family
        strict = number_change(replace(before, level=tested), replace(self, level=tested), test)
        apart = (strict.low > 0) | (strict.high < 0)
        return replace(found, p_value=np.where(apart, 0.0, 1.0))

    def numbers(self) -> dict[str, Any]:
        """`of`: the two metrics. `margins`: for each metric the `values` with `share`, `std_error`,
        `low`, `high`. `cells`: for each cell its `values`, the same numbers, and `p_value`,
        `p_adjusted`, `detected`, `normalized`; `shrunken`, which is biased towards independence,
        but nearer to the truth than `normalized`; `residual` (by how much it is above the product
        of its margins), with `residual_std_error`, `residual_p` and whether the cell `carries` the
        dependence; `given_first` and `given_second`: the conditional `share` with `low` and `high`,
        null where `too_few` devices have the value that is given. `independence`: `statistic`,
        `freedom`, `p_value` and whether they are `dependent`; null with too few reports. `effect`:
        Cramer's `v` with `low` and `high`, and the values `lumped` for it. `fakes`: the most that
        the fakes of `poisoning` move any `conditional` share that is shown, and the fraction of
        fakes with which the test would `reject` the independence of lists that are independent, in
        4 of 5 cases; null where there is none. `series`: as for a mean, what trends and comparisons
        follow."""
        test, effect = self.independence, self.effect
        return {
            "of": list(self.names),
            "margins": {
                name: records(
                    ("value", *_SHARE), margin.values, *(getattr(margin, each) for each in _SHARE)
                )
                for name, margin in zip(self.names, self.margins, strict=True)
            },
            "cells": [
                {
                    "values": dict(zip(self.names, place, strict=True)),
                    **joint,
                    **apart,
                    "given_first": first,
                    "given_second": second,
                }
                for place, joint, apart, first, second in self._cells
            ],
            "independence": test
            and {**test._asdict(), "level": 1 - self.level, "dependent": self.dependent},
            "effect": effect
            and {
                "v": None if math.isnan(effect.v) else effect.v,
                "low": effect.low,
                "high": effect.high,
                "lumped": list(self.lumped),
            },
            "fakes": {
                "conditional": plain([self.budget_of_conditionals])[0],
                "reject": self.fakes_to_reject,
            },
            **super().numbers(),
        }

    def own_table(self) -> Table:
        """One line for each cell, with the names of the metrics over their values."""
        sides = (f"{name}_given_{side}" for side in ("first", "second") for name in _GIVEN)
        lines = (
            (*place, *(each for part in parts for each in part.values()))
            for place, *parts in self._cells
        )
        return (*self.names, *_JOINT, *_APART, *sides), lines

    @property
    def _cells(self) -> Iterator[tuple[Any, ...]]:
        """For each cell its two values, and its numbers under their names, in four parts."""
        found, joint = self.residuals, self.joint
        apart: Sequence[Any] = [[None] * len(joint.values)] * 4
        if found is not None and self.shrunken is not None:
            apart = [each.ravel() for each in (self.shrunken, *found)]
        sides = [
            records(
                _GIVEN,
                *(
                    np.where(each.known, column, math.nan).ravel()
                    for column in (each.share, each.low, each.high)
                ),
                ~each.known.ravel(),
            )
            for each in self.conditionals
        ]
        return zip(
            product(*(each.values for each in self.margins)),
            records(_JOINT, *(getattr(joint, name) for name in _JOINT)),
            records(_APART, *apart, self.carries.ravel()),
            *sides,
            strict=True,
        )


def pair_series(kind: Pair) -> tuple[str, ...]:
    """What the series of the answer to a metric of this type are called."""
    first, second = kind.parts
    return names_of_series((first.metric, second.metric), (first.values, second.values))


def names_of_series(
    names: tuple[str, str], values: tuple[tuple[str, ...], tuple[str, ...]]
) -> tuple[str, ...]:
    """What the series are called: each cell given the first list ("dark_mode=true given
    plan=free"), each given the second, and each value of both lists."""
    first, second = (
        [f"{name}={value}" for value in each] for name, each in zip(names, values, strict=True)
    )
    cells = list(product(first, second))
    return (
        *(f"{column} given {row}" for row, column in cells),
        *(f"{row} given {column}" for row, column in cells),
        *(*first, *second),
    )
