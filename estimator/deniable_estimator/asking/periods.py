"""The answers of many ranges of days of one metric, read and calculated together.

A trend asks for them. Tallies of single windows come with one call of the store, those of longer
ranges one by one, with the reports of all their windows at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date

from deniable import Registry
from deniable_estimator.answers import Answer, answers_of_each
from deniable_estimator.asking.query import sliced, windows_within
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.reading import (
    Chosen,
    Part,
    Question,
    Selection,
    select,
    unfinished,
)
from deniable_estimator.errors import OnlyLongerError

_VALUES = 1 << 17
"""Values of all answers that are calculated at once: some columns of a megabyte each."""


def read_ranges(
    reader: Reader,
    registry: Registry,
    metric: str,
    ranges: Sequence[tuple[date, date]],
    candidates: Sequence[str] | None = None,
    *,
    without: Collection[str] = (),
    level: float = 0.95,
    now: float,
    where: Mapping[str, str] | None = None,
) -> Iterator[Answer]:
    """What `reading.read` says of the first to the last day of each of these ranges, in their
    order, with its arguments and errors. An error comes in place of the range that has it."""
    if not ranges:
        return
    first, last = min(each[0] for each in ranges), max(each[1] for each in ranges)
    whole = select(reader, registry, metric, first, last, candidates, without, where=where)
    of_each = [windows_within(each.windows, whole.metric, ranges) for each in whole.chosen]
    values = len(candidates if candidates is not None else whole.metric.values)
    at_once = max(1, min(whole.at_once, _VALUES // max(1, values)))
    reports = [_reports(whole, *each) for each in zip(whole.chosen, of_each, strict=True)]
    for begin in range(0, len(ranges), at_once):
        some = slice(begin, begin + at_once)
        try:
            # Where a pair answers for the metric, other windows are read too.
            together = (
                None if whole.pair else _read(whole, [each[some] for each in of_each], reports)
            )
        except OnlyLongerError:
            # The others can be read, and this one says which it is.
            together = None
        if together is not None:
            answers = iter(_estimated(together, level))
        else:
            answers = (
                select(reader, registry, metric, *days, candidates, without, where=where)
                .read()
                .estimate(level=level)
                for days in ranges[some]
            )
        for answer in answers:
            yield answer.marked(unfinished(answer.windows, now))


def _reports(
    selection: Selection, each: Chosen, ranges: Sequence[Sequence[str]]
) -> Mapping[str, int]:
    """The reports of the windows that are not alone in their range."""
    labels = [label for several in ranges if len(several) > 1 for label in several]
    return selection.reports(each, labels) if labels else {}


def _read(
    selection: Selection,
    of_each: Sequence[Sequence[Sequence[str]]],
    reports: Sequence[Mapping[str, int]],
) -> list[Question]:
    """What is read of each range: of each scheme its windows there, and their reports."""
    columns: list[list[Part]] = []
    for each, ranges, known in zip(selection.chosen, of_each, reports, strict=True):
        alone = selection.tallies(each, [labels[0] for labels in ranges if len(labels) == 1])
        none, column = selection.nothing(each), []
        for labels in ranges:
            if not labels:
                column.append(none)
            elif len(labels) == 1:
                column.append(selection.part(each, alone[labels[0]]))
            else:
                tally = sliced(selection.tally(each, labels), each.scheme, each.places)
                counts = {label: known[label] for label in tally.windows}
                column.append(selection.part(each, tally, counts if len(counts) > 1 else None))
        columns.append(column)
    unit = selection.metric.type.unit
    return [Question(each, unit) for each in zip(*columns, strict=True)]


def _estimated(questions: Sequence[Question], level: float) -> list[Answer]:
    """What each question `estimate` answers. Where only one scheme has reports, the answer is that
    of its tally; such tallies are estimated together."""
    found: list[Answer | None] = [None] * len(questions)
    alike: dict[str, list[tuple[int, Part]]] = {}
    for place, question in enumerate(questions):
        parts = [part for part in question.parts if part.tally.reports]
        if question.margin is None and len(parts) == 1:
            alike.setdefault(parts[0].scheme.fingerprint, []).append((place, parts[0]))
        else:
            found[place] = question.estimate(level=level)
    for same in alike.values():
        part = same[0][1]
        answers = answers_of_each(
            [each.tally for _, each in same],
            part.scheme,
            part.candidates,
            [each.participation for _, each in same],
            level=level,
            unit=questions[0].unit,
        )
        for (place, _), answer in zip(same, answers, strict=True):
            found[place] = answer.lacking(questions[place].unreadable)
    return [each for each in found if each is not None]
