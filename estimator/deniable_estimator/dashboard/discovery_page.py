"""The page of a discovery: which strings occur, how common they are, and who follows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from flask import Blueprint, redirect, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from deniable import Metric
from deniable.protocol import windows
from deniable.protocol.types.discovery import Discovery
from deniable_estimator.asking.trend import GROUPS
from deniable_estimator.dashboard.annotation_file import annotated
from deniable_estimator.dashboard.calculations import file_text, trend_text
from deniable_estimator.dashboard.exports import RAW, Text, file_of
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.overview.summary import standing_notes
from deniable_estimator.dashboard.pages import answer_page, head_of, keep_form, requested
from deniable_estimator.dashboard.pictures import rows_picture, send_picture
from deniable_estimator.dashboard.source import current_source, declared_metric
from deniable_estimator.dashboard.timeline import grouping, plain_timeline
from deniable_estimator.dashboard.view import period_input
from deniable_estimator.document.document import Column, Frame
from deniable_estimator.errors import EstimateError
from deniable_estimator.inputs import DAYS, Input, as_given
from deniable_estimator.kinds.discovery.finds import Finds
from deniable_estimator.kinds.discovery.words import finds_document, headline
from deniable_estimator.messages import message

discovering = Blueprint("discovering", __name__)

_FIND = Input("find", as_given, default="")

_DRAWN = 40
"""The most strings of a picture."""

MOST_SHOWN = 500
"""The most strings of the table; the files have all."""

_TAKERS = ("string", "category")
"""The types of metrics that finds can be promoted to."""


@discovering.get("/metric/<name>/strings")
def finds_page(name: str) -> ResponseReturnValue:
    """What was found, and the trend of one find."""
    source, metric = current_source(), declared_metric(name)
    if not isinstance(metric.type, Discovery):
        return redirect(url_for("pages.metric_page", name=name))
    refused, found, timeline = None, None, None
    reading, by, chosen = _requested(metric, {})
    try:
        reading, by, chosen = _requested(metric, request.args)
        found = reading.finds().answer
        if chosen:
            trend = reading.trend_of_find(by, found, chosen).answer
            timeline = plain_timeline(trend, [chosen])
    except EstimateError as error:
        refused = keep_form(error)
    document = finds_document(found, MOST_SHOWN) if found else None
    days = reading.days
    return answer_page(
        "discovery.html",
        reading,
        refused,
        **head_of(reading),
        by=by,
        groups=GROUPS[metric.window],
        chosen=chosen,
        query={**days.query, **({"find": chosen} if chosen else {}), "by": by},
        found=found,
        document=document,
        table=document and _with_trends(document.frames[0]),
        alarms=found.verdict.alarms(found.alarm_level) if found else (),
        target=_target(found) if found else None,
        takers=any(each.type.name in _TAKERS for each in source.registry),
        timeline=timeline,
        noted=annotated(metric, days, source.today, timeline.trend.periods) if timeline else None,
        notes=list(standing_notes(metric, source.newest(metric), source.seen_until)),
    )


@discovering.get("/metric/<name>/strings.<any(svg, png):form>")
def finds_picture(name: str, form: str) -> ResponseReturnValue:
    """The commonest strings that were found."""
    reading, *_ = _requested(declared_metric(name), request.args)
    found = reading.finds().answer
    if not found.finds:
        raise NotFound(message("No string was found in these days, so there is nothing to draw."))
    table = finds_document(found, _DRAWN).frames[0]
    text = rows_picture(reading.metric, found, headline(found), table)
    return send_picture(text, f"{name}-strings", form)


@discovering.get("/metric/<name>/strings.<any(csv, json):form>")
def finds_file(name: str, form: str) -> ResponseReturnValue:
    """What was found as a file; with `find`, the trend of that string."""
    reading, by, chosen = _requested(declared_metric(name), request.args)
    found, head = reading.finds().answer, reading.days.told
    if not chosen:
        text = Text(partial(file_text, found=found, head=head))
        return file_of(reading, text, f"{name}-strings", form)
    trend = reading.trend_of_find(by, found, chosen).answer
    text = Text(partial(trend_text, found=trend, head=head))
    return file_of(reading, text, f"{name}-string-trend", form)


def _requested(
    metric: Metric, arguments: Mapping[str, str]
) -> tuple[PageReading, windows.Kind, str]:
    """What an address asks of a discovery: with the period of a trend, and the find whose it is.

    Raises:
        EstimateError: it asks for what there is not.
    """
    inputs = (*DAYS, period_input("by", metric), _FIND, RAW)
    reading, asked = requested(metric, arguments, inputs)
    return reading, asked["by"] or grouping(metric, reading.days), asked["find"]


def _with_trends(frame: Frame) -> Frame:
    """The same with a column that leads to the trend of each."""
    columns = (*frame.columns, Column("trend", message("Over time")))
    return replace(frame, columns=columns, rows=[(*row, row[0].text) for row in frame.rows])


def _target(found: Finds) -> str | None:
    """The metric that a find is most likely promoted to: the one that follows the most of them
    already. None if no metric follows any: the others may measure something else."""
    following = Counter(name for each in found.finds for name in each.followed)
    return next((name for name, _ in following.most_common(1)), None)
