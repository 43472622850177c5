"""How far a coin is from a fair one: the share of heads minus that of tails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deniable_estimator.document.document import Frame, Picture
from deniable_estimator.document.units import NumberUnit, Unit
from deniable_estimator.kinds.base import Answer, Series
from deniable_estimator.kinds.basis import Part, vars_of
from deniable_estimator.kinds.formats import estimate_of
from deniable_estimator.kinds.kind import Kind, Shown
from deniable_estimator.kinds.numbers.words import series_frame
from deniable_estimator.kinds.shares.charts import bar_chart
from deniable_estimator.kinds.shares.making import combine, estimate_shares
from deniable_estimator.kinds.shares.shares import Shares
from deniable_estimator.statistics.significance import Adjustment


@dataclass(frozen=True, eq=False, kw_only=True)
class Coin(Answer):
    """The lean of a coin, from -1 to 1."""

    kind = "coin"
    sides: Shares

    @property
    def unit(self) -> Unit:
        return NumberUnit()

    @property
    def series(self) -> Series:
        share, low, high = self.sides.series.at("true")
        numbers = (2 * share - 1, 2 * self.sides.std_error[0], 2 * low - 1, 2 * high - 1)
        return Series(("lean",), *(np.array([each]) for each in numbers))

    @property
    def leading(self) -> str:
        return "lean"

    @property
    def budget(self) -> float:
        return 2 * self.sides.budget


def _coin(sides: Shares) -> Coin:
    basis = vars_of(sides)
    return Coin(
        **basis, level=sides.level, verdict=sides.verdict, warnings=sides.warnings, sides=sides
    )


class CoinKind(Kind[Coin]):
    """How a coin is told."""

    answer = Coin
    types = frozenset({"coin"})
    series_of = staticmethod(lambda metric_type: ("lean",))

    def make(self, parts: Sequence[Part], level: float, adjust: Adjustment) -> list[Coin]:
        return [_coin(sides) for sides in estimate_shares(parts, level, adjust)]

    @staticmethod
    def combine(answers: Sequence[Any]) -> Coin:
        return _coin(combine([each.sides for each in answers]))

    def headline(self, answer: Coin) -> str:
        return f"The coin leans by {estimate_of(answer.unit, *answer.series.at('lean')).text}."

    def frames(self, answer: Coin, shown: Shown) -> tuple[Frame, ...]:
        return (series_frame(answer, shown, "Coin"),)

    def reading(self, answer: Coin) -> tuple[str, ...]:
        return ("A fair coin leans by 0.",)

    def pictures(self, answer: Coin, shown: Shown, limit: int) -> tuple[Picture, ...]:
        return (Picture(replace(bar_chart(answer.sides), title="A coin")),)

    def over_time(self, answer: Coin, chosen: Sequence[str]) -> list[str]:
        return ["lean"]
