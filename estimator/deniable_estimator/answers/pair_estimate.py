"""How two closed lists go together: the joint table, both margins, conditional shares in both
directions, and whether there is any dependence at all."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.analyses.pairs.conditional import Conditionals, conditionals
from deniable_estimator.analyses.pairs.covariance import Covariance
from deniable_estimator.analyses.pairs.dependence import (
    Effect,
    Independence,
    Residuals,
    effect,
    independence,
    residuals,
    shrunken,
)
from deniable_estimator.analyses.pairs.poisoning import Fake, fakes_to_reject, moved
from deniable_estimator.answers.base import Answer, Series
from deniable_estimator.answers.basis import footnotes
from deniable_estimator.answers.shares import Shares
from deniable_estimator.document.units import CONDITIONALS, Unit
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.significance import CAUTION, step_up

LEAST_FOR_TEST = 300
"""With fewer reports the test of independence is not known to keep its level."""

Given: TypeAlias = Literal["first", "second"]
"""Which of the two lists a conditional share is given."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PairEstimate(Answer):
    """The joint of two lists of k1 and k2 values. Tables have shape (k1, k2).

    `joint` has the cells in the order of the table, row by row. `margins` are the shares of the
    values of both lists. All three are unbiased, with their intervals.
    """

    kind = "pair"
    headings = ("series", "share")

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
    def footnotes(self) -> tuple[str, ...]:
        return footnotes(self, complete=True)

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
        for given, found in self.conditionals.items():
            turned = given == "second"
            ends = moved(self.table.T if turned else self.table, self.fake, self.fakes)
            low, high = (each.T if turned else each for each in ends)
            share = np.clip(found.share, 0.0, 1.0)
            up, down = np.minimum(high, 1.0) - share, share - np.maximum(low, 0.0)
            shown = np.maximum(up, down)[found.known]
            most = float(np.fmax(most, shown.max())) if shown.size else most
        return most

    @cached_property
    def fakes_to_reject(self) -> float | None:
        """With which fraction of fakes the test calls lists dependent that are not, in 4 of 5
        cases; None without the test."""
        if self.fake is None or self.covariance is None or self.independence is None:
            return None
        margins = (np.maximum(each.share, 0.0) for each in self.margins)
        rows, columns = (each / each.sum() for each in margins)
        return fakes_to_reject(rows, columns, self.covariance, self.fake, 1 - self.level)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.margins[0].values), len(self.margins[1].values)

    @property
    def table(self) -> FloatArray:
        """The estimated cells."""
        return self.joint.share.reshape(self.shape)

    @cached_property
    def conditionals(self) -> dict[Given, Conditionals]:
        """For "first": of the devices with the value of a row, the shares of the columns. For
        "second": of the devices with the value of a column, the shares of the rows."""
        return self._conditionals_at(self.level)

    def _conditionals_at(self, level: float) -> dict[Given, Conditionals]:
        if self.covariance is None:
            unknown = np.full(self.shape, math.nan)
            none = Conditionals(*(unknown,) * 4, np.zeros(self.shape, np.bool_))
            return {"first": none, "second": none}
        turned = conditionals(self.table.T, self.covariance, level)
        return {
            "first": conditionals(self.table, self.covariance, level),
            "second": turned.turned(),
        }

    @cached_property
    def independence(self) -> Independence | None:
        """The test of independence; None with too few reports."""
        if self.covariance is None or self.n < LEAST_FOR_TEST:
            return None
        return independence(self.table, self.covariance)

    @property
    def dependent(self) -> bool:
        """Whether the test finds that the two depend on each other."""
        test = self.independence
        return test is not None and test.p_value <= 1 - self.level

    @cached_property
    def residuals(self) -> Residuals | None:
        """How far each cell is from independence; None without the test."""
        if self.covariance is None or self.independence is None:
            return None
        return residuals(self.table, self.covariance)

    @cached_property
    def shrunken(self) -> FloatArray | None:
        """The table that is likely nearest to the truth: biased towards independence, and without
        intervals; None without the test."""
        if self.covariance is None or self.independence is None:
            return None
        return shrunken(self.table, self.covariance)

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
    def effect(self) -> Effect | None:
        """Cramer's V; None without the test."""
        if self.covariance is None or self.independence is None:
            return None
        return effect(self.table, self.covariance, self.level)

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
        row, column = (
            "true" if margin.boolean else margin.values[int(margin.share.argmax())]
            for margin in self.margins
        )
        if self.margins[0].boolean and not self.margins[1].boolean:
            return self.series_name("second", row, column)
        if self.margins[0].boolean:
            row = "true"
        return self.series_name("first", row, column)

    def series_name(self, given: Given, row: str, column: str) -> str:
        """What the conditional of one cell is called: "dark_mode=true given plan=free"."""
        return _conditional(self.names, given, row, column)

    @cached_property
    def series(self) -> Series:
        """The conditionals given the first list, those given the second, and both margins."""
        return self.series_at(self.level)

    def series_at(self, level: float) -> Series:
        """The same with intervals of another level."""
        tables = self.conditionals if level == self.level else self._conditionals_at(level)
        parts: list[tuple[FloatArray, ...]] = []
        for found in tables.values():
            numbers = (found.share, found.std_error, found.low, found.high)
            parts.append(tuple(np.where(found.known, each, math.nan).ravel() for each in numbers))
        for margin in self.margins:
            share, low, high = margin.at(np.arange(len(margin.values)), level)
            parts.append((share, margin.std_error, low, high))
        names = names_of_series(self.names, (self.margins[0].values, self.margins[1].values))
        return Series(names, *(np.concatenate(each) for each in zip(*parts, strict=True)))


def names_of_series(
    names: tuple[str, str], values: tuple[tuple[str, ...], tuple[str, ...]]
) -> tuple[str, ...]:
    """What the series are called: each cell given the first list, each given the second, and each
    value of both lists."""
    cells = [(row, column) for row in values[0] for column in values[1]]
    sides: tuple[Given, Given] = ("first", "second")
    return (
        *(_conditional(names, given, *cell) for given in sides for cell in cells),
        *(f"{name}={value}" for name, each in zip(names, values, strict=True) for value in each),
    )


def _conditional(names: tuple[str, str], given: Given, row: str, column: str) -> str:
    first, second = f"{names[0]}={row}", f"{names[1]}={column}"
    one, two = (second, first) if given == "first" else (first, second)
    return f"{one} given {two}"
