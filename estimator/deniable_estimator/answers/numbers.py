"""What answers of numbers have in common: what they rest on, their files, warnings and changes."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from deniable import Scheme
from deniable.protocol.mechanisms.number_range import NumberRange
from deniable_collector.tally import Tally
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.candidates import check_tally
from deniable_estimator.analyses.numbers import NumberAnalysis
from deniable_estimator.answers.base import Answer, Comparison, Series, beyond_noise
from deniable_estimator.answers.basis import Basis
from deniable_estimator.answers.files import plain
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message
from deniable_estimator.statistics.intervals import interval_of_difference
from deniable_estimator.statistics.participation import Participation
from deniable_estimator.statistics.tails import upper_tails

NUMBER_COLUMNS = ("series", "estimate", "std_error", "low", "high")
"""What a file says of each series of a number."""

_FEW = 30
"""Fewer reports than this say nothing about the population."""


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
    return analysis, Basis.of(tally, scheme, participation or Participation.evenly(tally))


def range_dict(numbers: NumberRange) -> dict[str, Any]:
    """The range as JSON has it."""
    return {
        "low": numbers.start,
        "high": float(numbers.high),
        "scale": numbers.scale,
        "integer": numbers.integer,
    }


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
    alpha: float | None = None,
) -> Comparison:
    """The change of all series that both answers have, judged by `p_values` where there are any,
    and by the widths of their intervals otherwise; `alpha` is that of `Answer.change_from`."""
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
        wide = high - low
    z = NormalDist().inv_cdf((1 + after.level) / 2)
    std_error = np.where(np.isfinite(wide), wide / 2, np.nan) / z
    difference = now[0] - was[0]
    if p_values is None:
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.minimum(1.0, 2 * upper_tails(np.abs(difference) / std_error))
    else:
        found = np.array([p_values[name] for name in names], np.float64)
    # What is not known in one of the two is not tested.
    family = max(1, int(np.isfinite(difference).sum())) if together else 1
    return Comparison(
        before=before,
        after=after,
        level=after.level,
        together=together,
        values=names,
        old=was[0],
        new=now[0],
        difference=difference,
        std_error=std_error,
        low=low,
        high=high,
        changed=beyond_noise(
            found * family, low, high, 1 - after.level if alpha is None else alpha
        ),
    )


def number_caveats(answer: Answer) -> tuple[str, ...]:
    """The warnings that a statistician would give."""
    if answer.n == 0:
        return (message("no reports yet"),)
    warnings = []
    if answer.n < _FEW:
        warnings.append(
            message("too few reports (only {n}) to draw conclusions about all devices", n=answer.n)
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
