"""A pair as JSON and as CSV."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.basis import BASIS_COLUMNS
from deniable_estimator.answers.files import csv_text, plain
from deniable_estimator.answers.numbers import NUMBER_COLUMNS
from deniable_estimator.answers.pair_estimate import PairEstimate

_SHARE = ("share", "std_error", "low", "high")
_JOINT = (*_SHARE, "p_value", "p_adjusted", "detected", "normalized")
_GIVEN = ("share", "low", "high", "too_few")
_APART = ("shrunken", "residual", "residual_std_error", "residual_p", "carries")


def pair_numbers(pair: PairEstimate) -> dict[str, Any]:
    """What is particular to a pair, for JSON; what cannot be said is null.

    `margins`: for each metric the `values` with `share`, `std_error`, `low`, `high`.
    `cells`: for each cell its `values`, the same numbers, and `p_value`, `p_adjusted`, `detected`,
    `normalized`; `shrunken`, which is biased towards independence, but nearer to the truth than
    `normalized`; `residual` (by how much it is above the product of its margins), with
    `residual_std_error`, `residual_p` and whether the cell `carries` the dependence; `given_first`
    and `given_second`: the conditional `share` with `low` and `high`, null where `too_few` devices
    have the value that is given.
    `independence`: `statistic`, `freedom`, `p_value` and whether they are `dependent`; null with
    too few reports. `effect`: Cramer's `v` with `low` and `high`, and the values `lumped` for it.
    `fakes`: the most that the fakes of `poisoning` move any `conditional` share that is shown, and
    the fraction of fakes with which the test would `reject` the independence of lists that are
    independent, in 4 of 5 cases; null where there is none.
    `series`: as for a mean, what trends and comparisons follow.
    """
    rows = list(_rows(pair))
    test, effect, series = pair.independence, pair.effect, pair.series
    columns = map(plain, (series.value, series.std_error, series.low, series.high))
    return {
        "margins": {
            name: [
                {"value": value, **dict(zip(_SHARE, numbers, strict=True))}
                for value, *numbers in zip(
                    margin.values,
                    *(plain(getattr(margin, column)) for column in _SHARE),
                    strict=True,
                )
            ]
            for name, margin in zip(pair.names, pair.margins, strict=True)
        },
        "cells": [
            {
                "values": dict(zip(pair.names, (row, column), strict=True)),
                **joint,
                **apart,
                "given_first": first,
                "given_second": second,
            }
            for row, column, joint, apart, first, second in rows
        ],
        "independence": None
        if test is None
        else {**test._asdict(), "level": 1 - pair.level, "dependent": pair.dependent},
        "effect": None
        if effect is None
        else {
            "v": effect.v if effect.v == effect.v else None,
            "low": effect.low,
            "high": effect.high,
            "lumped": list(pair.lumped),
        },
        "fakes": {
            "conditional": plain(np.array([pair.budget_of_conditionals]))[0],
            "reject": pair.fakes_to_reject,
        },
        "series": [
            dict(zip(("series", "estimate", *_SHARE[1:]), row, strict=True))
            for row in zip(series.names, *columns, strict=True)
        ],
    }


def pair_csv(pair: PairEstimate, *, raw: bool) -> str:
    """One line for each cell, with the names of the metrics over their values."""
    basis = pair.csv_basis()
    header = (
        *pair.names,
        *_JOINT,
        *_APART,
        *(f"{name}_given_first" for name in _GIVEN),
        *(f"{name}_given_second" for name in _GIVEN),
        *BASIS_COLUMNS,
    )
    lines = (
        (row, column, *(each for part in parts for each in part.values()), *basis)
        for row, column, *parts in _rows(pair)
    )
    return csv_text(header, lines, raw=raw)


def _rows(pair: PairEstimate) -> Any:
    """For each cell: its two values, and its numbers under their names, in four parts."""
    joint = zip(*(plain(getattr(pair.joint, name)) for name in _JOINT), strict=True)
    cells = len(pair.joint.values)
    found = pair.residuals
    apart: list[list[Any]] = [[None] * cells] * 4
    if found is not None and pair.shrunken is not None:
        apart = [plain(each.ravel()) for each in (pair.shrunken, *found)]
    apart.append(plain(pair.carries.ravel()))
    sides = []
    for each in pair.conditionals.values():
        known = each.known.ravel().tolist()
        numbers = zip(
            *(plain(side.ravel()) for side in (each.share, each.low, each.high)), strict=True
        )
        sides.append(
            [
                dict(zip(_GIVEN, (*(row if sure else (None,) * 3), not sure), strict=True))
                for row, sure in zip(numbers, known, strict=True)
            ]
        )
    names = ((row, column) for row in pair.margins[0].values for column in pair.margins[1].values)
    for (row, column), cell, away, first, second in zip(
        names, joint, zip(*apart, strict=True), *sides, strict=True
    ):
        yield (
            row,
            column,
            dict(zip(_JOINT, cell, strict=True)),
            dict(zip(_APART, away, strict=True)),
            first,
            second,
        )


def series_csv(answer: Answer, *, raw: bool) -> str:
    """One line for each series."""
    basis, series = answer.csv_basis(), answer.series
    columns = map(plain, (series.value, series.std_error, series.low, series.high))
    rows = zip(series.names, *columns, strict=True)
    return csv_text((*NUMBER_COLUMNS, *BASIS_COLUMNS), ((*row, *basis) for row in rows), raw=raw)
