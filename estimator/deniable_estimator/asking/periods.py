"""The answers of many ranges of days of one metric, read and calculated together, for a trend."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date

from deniable import Registry
from deniable_estimator.answers import Answer
from deniable_estimator.asking.query import windows_within
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.reading import estimated, select, unfinished
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
    labels = windows_within(whole.labels, whole.metric, ranges)
    values = len(candidates if candidates is not None else whole.metric.values)
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
