"""Answers as the text of a file or of a response of the read API: of which version, with how many
lines, and what writes it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import NamedTuple

import numpy as np
from flask import Response, request
from numpy.typing import NDArray

from deniable.protocol import windows
from deniable_estimator.asking.comparison import compare, periods_told
from deniable_estimator.asking.query import Days
from deniable_estimator.dashboard.annotation_file import annotations_of
from deniable_estimator.dashboard.calculations import estimate_text, file_text, trend_text
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.inputs import Input
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.shares.shares import Shares

_TYPES = {
    "csv": "text/csv",
    "json": "application/json",
    "svg": "image/svg+xml",
    "png": "image/png",
}


RAW = Input("raw", bool, default=False)
"""Whether a CSV has its texts as they are, which a program asks for."""


class Text(NamedTuple):
    """What is to be written."""

    write: Callable[[str], str]
    """Writes it in a form."""
    lines: int = 0
    version: object = None
    """That of the tallies, and of all else that it is made of."""


def of_estimate(
    reading: PageReading,
    values: Collection[str] = (),
    *,
    limit: int | None = None,
    below: float | None = None,
) -> Text:
    """The estimate: of these values alone, if there are any, and of the `limit` largest."""
    found = reading.estimate()
    answer = found.answer
    places = _chosen(answer, values, limit)
    size = len(answer.series.names)
    head = {**reading.days.told, "size": size}
    write = partial(
        estimate_text, found=answer, head=head, places=places, values=values, below=below
    )
    return Text(write, size if places is None else len(places), found.version)


def of_trend(reading: PageReading, by: windows.Kind, values: Collection[str] = ()) -> Text:
    """The trend with what is noted on its days."""
    metric, days, found = reading.metric, reading.days, reading.trend(by)
    noted, head = annotations_of(metric, days), days.told
    lines = len(found.answer.periods) * len(reading.candidates or metric.values)
    write = partial(trend_text, found=found.answer, head=head, values=values, annotations=noted)
    return Text(write, lines, (found.version, noted))


def of_comparison(reading: PageReading, earlier: Days, values: Collection[str] = ()) -> Text:
    """The change from some days to others."""
    old, new = reading.over(earlier).estimate(), reading.estimate()
    found = compare(old.answer, new.answer)
    periods = periods_told(found, earlier, reading.days)
    write = partial(file_text, found=found, head={}, values=values, more=periods)
    return Text(write, len(found.values), (old.version, new.version))


def of_segments(
    reading: PageReading,
    by: Collection[str],
    against: dict[str, str] | None,
    values: Collection[str] = (),
) -> Text:
    """The answer by segments."""
    found = reading.segmented(tuple(by), against)
    answer = found.answer
    lines = len(answer.total.series.names) * (len(answer.groups) + 2)
    write = partial(file_text, found=answer, head=reading.days.told, values=values)
    return Text(write, lines, found.version)


def _chosen(answer: Answer, values: Collection[str], limit: int | None) -> NDArray[np.intp] | None:
    """The places of these values, and of these the `limit` largest, the largest first; None
    for all as they stand."""
    if not isinstance(answer, Shares):
        return None
    if not values:
        return None if limit is None else answer.order[:limit]
    asked = set(values)
    found = [place for place, value in enumerate(answer.values) if value in asked]
    places = np.array(found, np.intp)
    if limit is not None:
        places = places[np.argsort(-answer.share[places], kind="stable")[:limit]]
    return places


def file_of(reading: PageReading, found: Text, name: str, form: str) -> Response:
    """The file that this request asks for, which is written elsewhere if it is long. A CSV has its
    texts as they are (`raw`) where a program asks for that."""
    key = "file", request.full_path, found.version, reading.strings
    chosen = "raw" if form == "csv" and RAW.parse(request.args.get("raw", ""), blank=True) else form
    return download(reading.source.written(found.lines, key, found.write, chosen), name, form)


def download(content: str | bytes, name: str, form: str) -> Response:
    """A file that is saved, not shown."""
    response = Response(content, mimetype=_TYPES[form])
    response.headers.set("Content-Disposition", "attachment", filename=f"{name}.{form}")
    return response
