"""What pages of answers with series have in common: lines of a table, the worst case."""

from __future__ import annotations

from dataclasses import dataclass

from deniable_estimator.answers.base import Answer, Comparison
from deniable_estimator.answers.units import NumberUnit
from deniable_estimator.dashboard.changes import ChangeText, change_texts
from deniable_estimator.dashboard.words import SeriesText, series_text


@dataclass(frozen=True, slots=True)
class NumberLine:
    """One line of the table."""

    name: str
    text: SeriesText
    change: ChangeText | None = None


def number_lines(answer: Answer, comparison: Comparison | None = None) -> tuple[NumberLine, ...]:
    """Each series of an answer, in its order, with its change in a comparison."""
    series, unit = answer.series, answer.unit
    columns = (series.value, series.low, series.high, series.std_error)
    changes = {} if comparison is None else change_texts(comparison, series.names)
    return tuple(
        NumberLine(unit.label(name), series_text(unit, *map(float, numbers)), changes.get(name))
        for name, *numbers in zip(series.names, *columns, strict=True)
    )


def worst_case(unit: NumberUnit, budget: float) -> str:
    """What fakes add at most, in the unit."""
    return unit.full(budget, budget)
