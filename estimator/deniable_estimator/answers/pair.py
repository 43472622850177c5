"""The answer to how two closed lists go together: its numbers, its margins and its files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from deniable.protocol.types import Pair
from deniable_estimator.analyses.base import Finding
from deniable_estimator.analyses.poisoning import Exposure
from deniable_estimator.answers.base import Comparison
from deniable_estimator.answers.basis import Basis
from deniable_estimator.answers.numbers import number_change, vars_of
from deniable_estimator.answers.pair_estimate import (
    PairEstimate,
    names_of_series,
)
from deniable_estimator.answers.pair_files import pair_csv, pair_numbers
from deniable_estimator.answers.shares import Shares, infer
from deniable_estimator.messages import message
from deniable_estimator.statistics.intervals import interval_of_difference
from deniable_estimator.statistics.significance import Adjustment


@dataclass(frozen=True, eq=False, kw_only=True)
class PairAnswer(PairEstimate):
    """What a pair is answered with. `PairEstimate` has its numbers."""

    def margin_of(self, metric: str, asked: Sequence[str] | None = None) -> Shares:
        """The shares of one of the two lists as the answer of its metric; of the values `asked`
        for alone, if any."""
        margin = self.margins[self.names.index(metric)]
        note = message(
            "the shares come from the reports of {pair}, as devices do not report the metric by "
            "itself: their intervals are wider",
            pair=self.metric,
        )
        warnings = (*margin.warnings, note)
        if asked is None:
            return replace(margin, metric=metric, verdict=self.verdict, warnings=warnings)
        places = margin.places(tuple(value for value in asked if value in margin.values))
        exposure = Exposure(margin.exposure.gain[places], margin.exposure.loss[places])
        noise = margin.noise.taken(places)
        basis = replace(Basis(**vars_of(margin)), metric=metric)
        found = infer(
            basis,
            False,
            tuple(margin.values[place] for place in places.tolist()),
            Finding.of(margin.share[places], noise),
            exposure,
            self.verdict.figures,
            margin.level,
            margin.adjustment,
        )
        return replace(found, warnings=(*found.warnings, note))

    def change_from(
        self,
        before: PairAnswer,
        *,
        together: bool = True,
        adjust: Adjustment = "storey",
        alpha: float | None = None,
    ) -> Comparison:
        """A series has changed if the interval of its change at the level of the test, shared by
        all series (Bonferroni), does not hold zero. A conditional is a ratio: its interval at one
        level is not to be had by stretching that of another.
        """
        found = number_change(before, self, together=together)
        alpha = 1 - self.level if alpha is None else alpha
        tested = 1 - alpha / (max(1, len(found.values)) if together else 1)
        ends = []
        for answer in (before, self):
            series = answer.series_at(tested)
            places = [series.names.index(name) for name in found.values]
            ends.append((series.value[places], series.low[places], series.high[places]))
        low, high = interval_of_difference(*ends)
        shown = (found.low > 0) | (found.high < 0)
        return replace(found, changed=shown & ((low > 0) | (high < 0)))

    def about(self) -> dict[str, Any]:
        """`of`: the two metrics."""
        return {"of": list(self.names)}

    def numbers(self) -> dict[str, Any]:
        return pair_numbers(self)

    def to_csv(self, *, raw: bool = False) -> str:
        return pair_csv(self, raw=raw)


def pair_series(kind: Pair) -> tuple[str, ...]:
    """What the series of the answer to a metric of this type are called."""
    first, second = kind.parts
    return names_of_series((first.metric, second.metric), (first.values, second.values))
