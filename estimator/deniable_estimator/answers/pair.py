"""The answer to how two closed lists go together: its margins, its files, and how it is made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable.protocol.types.pair import Pair, margins_of
from deniable_estimator.analyses import oracle_analysis
from deniable_estimator.analyses.base import Exposure, Finding
from deniable_estimator.analyses.pairs.covariance import Covariance
from deniable_estimator.analyses.pairs.poisoning import Fake
from deniable_estimator.answers.base import ChangeTest, Comparison, number_change
from deniable_estimator.answers.basis import Basis, Part, vars_of
from deniable_estimator.answers.files import Table, plain, records
from deniable_estimator.answers.pair_estimate import PairEstimate, names_of_series
from deniable_estimator.answers.shares import Shares
from deniable_estimator.answers.shares_making import estimate_shares, infer
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import counted, message
from deniable_estimator.statistics.intervals import Noise, interval_of_difference
from deniable_estimator.statistics.participation import overlap
from deniable_estimator.statistics.significance import Adjustment

_SHARE = ("share", "std_error", "low", "high")
_JOINT = (*_SHARE, "p_value", "p_adjusted", "detected", "normalized")
_GIVEN = ("share", "low", "high", "too_few")
_APART = ("shrunken", "residual", "residual_std_error", "residual_p", "carries")


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
        (found,) = infer(
            [basis],
            tuple(margin.values[place] for place in places.tolist()),
            Finding.of(margin.share[places], noise),
            exposure,
            [self.verdict.figures],
            margin.level,
            margin.adjustment,
            complete=False,
        )
        return replace(found, warnings=(*found.warnings, note))

    def alike(self, other: PairAnswer) -> bool:
        return self.joint.values == other.joint.values

    def left_out(self, count: int) -> str:
        return counted(
            "the values have changed: {count:,} report under other lists is left out; choose "
            "days before the change to see it",
            "the values have changed: {count:,} reports under other lists are left out; choose "
            "days before the change to see them",
            count,
        )

    def change_from(self, before: PairAnswer, test: ChangeTest) -> Comparison:
        """A series has changed if the interval of its change at the level of the test, shared by
        all series (Bonferroni), does not hold zero. A conditional is a ratio: its interval at one
        level is not to be had by stretching that of another.
        """
        found = number_change(before, self, test)
        family = max(1, len(found.values)) if test.together else 1
        tested = 1 - test.level_at(self.level) / family
        ends = []
        for answer in (before, self):
            series = answer.series_at(tested)
            places = [series.names.index(name) for name in found.values]
            ends.append((series.value[places], series.low[places], series.high[places]))
        low, high = interval_of_difference(*ends)
        shown = (found.low > 0) | (found.high < 0)
        return replace(found, changed=shown & ((low > 0) | (high < 0)))

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
            for each in self.conditionals.values()
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


def estimate_pair(part: Part, level: float, adjust: Adjustment) -> PairAnswer:
    """What a tally of one scheme says of two lists.

    Raises:
        EstimateError: the tally does not belong to the scheme, or candidates were given.
    """
    if part.candidates is not None:
        raise EstimateError(message("a pair has no candidates: leave them out"))
    (joint,) = estimate_shares([part], level, adjust)
    names, values = margins_of(part.scheme.values)
    mechanism = part.scheme.mechanism
    assert isinstance(mechanism, SubsetSelection)
    covariance = Covariance.of(mechanism, joint.n, part.repeats) if joint.n else None
    shape = len(values[0]), len(values[1])
    analysis, table = oracle_analysis(mechanism), joint.share.reshape(shape)
    exposures = [
        analysis.exposure(table.sum(axis=1 - axis), targets=shape[1 - axis]) for axis in (0, 1)
    ]
    fake = Fake.of(mechanism) if joint.n else None
    return _made(joint, names, values, covariance, exposures, fake)


def _made(
    joint: Shares,
    names: tuple[str, str],
    values: tuple[tuple[str, ...], tuple[str, ...]],
    covariance: Covariance | None,
    exposures: Iterable[Exposure],
    fake: Fake | None,
) -> PairAnswer:
    basis = Basis(**vars_of(joint))
    shape = len(values[0]), len(values[1])
    margins = []
    for axis, exposure in enumerate(exposures):
        size = shape[axis]
        share = joint.share.reshape(shape).sum(axis=1 - axis)
        noise = replace(Noise.none(size), a=np.full(size, math.inf))
        if covariance is not None:
            noise = covariance.noise(shape[1 - axis], size)
        found = Finding.of(share, noise)
        asked = joint.level, joint.adjustment
        margins += infer([basis], values[axis], found, exposure, [()], *asked, complete=True)
    return PairAnswer(
        **vars_of(basis),
        level=joint.level,
        verdict=joint.verdict,
        warnings=joint.warnings,
        names=names,
        joint=joint,
        margins=(margins[0], margins[1]),
        covariance=covariance,
        fake=fake,
    )


def combine_pairs(parts: Sequence[PairAnswer]) -> PairAnswer:
    """The average of pairs with the same cells, by inverse variance. Every cell has the same
    weights, so that the cells still sum to 1."""
    first = parts[0]
    models = [each.covariance for each in parts if each.covariance is not None]
    precision = np.array([1 / (each.own + each.all) for each in models])
    weights = precision / precision.sum()
    # The cost of a device that reported under several schemes is bounded for the same weights.
    matrix = overlap([each.participation for each in parts])
    alone = float((weights**2 / np.array([each.n for each in parts])).sum())
    covariance = models[0].weighted(float(weights[0]))
    for weight, model in zip(weights[1:].tolist(), models[1:], strict=True):
        covariance += model.weighted(weight)
    covariance = replace(covariance, kept=max(0.0, float(weights @ matrix @ weights) - alone))
    share = sum(w * each.joint.share for w, each in zip(weights, parts, strict=True))
    basis = Basis.merged(parts)

    def exposed(found: Sequence[Exposure]) -> Exposure:
        """Fakes report under the scheme that moves the average most."""
        rates = [w * basis.n / each.n for w, each in zip(weights, parts, strict=True)]
        sides = zip(*found, strict=True)
        return Exposure(
            *(
                np.max([r * each for r, each in zip(rates, side, strict=True)], axis=0)
                for side in sides
            )
        )

    (joint,) = infer(
        [basis],
        first.joint.values,
        Finding.of(np.asarray(share), covariance.noise(1, len(first.joint.values))),
        exposed([each.joint.exposure for each in parts]),
        [[figure for each in parts for figure in each.verdict.figures]],
        first.level,
        first.joint.adjustment,
        complete=True,
    )
    values = first.margins[0].values, first.margins[1].values
    exposures = [exposed([each.margins[axis].exposure for each in parts]) for axis in (0, 1)]
    fakes = [
        replace(each.fake, rate=float(w * basis.n / each.n))
        for w, each in zip(weights, parts, strict=True)
        if each.fake is not None
    ]
    worst = max(fakes, key=lambda fake: fake.rate * (fake.inside - fake.outside))
    return _made(joint, first.names, values, covariance, exposures, worst)
