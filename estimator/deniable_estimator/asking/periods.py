"""The answers of many ranges of days of one metric, read and calculated together, for a trend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date

from deniable import Registry
from deniable_estimator.answers.base import Answer
from deniable_estimator.asking.query import Query, windows_within
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.reading import estimated, select, unfinished
from deniable_estimator.errors import OnlyLongerError

_VALUES = 1 << 17
"""Values of all answers that are calculated at once: some columns of a megabyte each."""


def read_ranges(
    reader: Reader,
    registry: Registry,
    query: Query,
    ranges: Sequence[tuple[date, date]],
    *,
    level: float = 0.95,
    now: float,
) -> Iterator[Answer]:
    """What `reading.read` says of each of these ranges in place of the days that are asked for, in
    their order, with its errors. An error comes in place of the range that has it."""
    if not ranges:
        return
    first, last = min(each[0] for each in ranges), max(each[1] for each in ranges)
    whole = select(reader, registry, replace(query, first=first, last=last))
    labels = windows_within(whole.labels, whole.metric, ranges)
    values = len(whole.metric.values if query.candidates is None else query.candidates)
    at_once = max(1, min(whole.at_once, _VALUES // max(1, values)))
    for begin in range(0, len(ranges), at_once):
        some = labels[begin : begin + at_once]
        try:
            answers = iter(estimated(whole.read_each(some), level))
        except OnlyLongerError:
            # The others can be read, and this one says which it is.
            answers = (whole.read_each([one])[0].estimate(level=level) for one in some)
        for answer in answers:
            yield answer.marked(unfinished(answer.windows, now))
