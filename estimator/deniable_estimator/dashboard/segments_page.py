"""The page that shows a metric by segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

from flask import Blueprint, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import BadRequest, NotFound

from deniable import Metric
from deniable.protocol import windows
from deniable_estimator.asking.comparison import chosen_series, compare
from deniable_estimator.asking.query import Days, check_where
from deniable_estimator.asking.segments import check_names as check_segments
from deniable_estimator.asking.segments import not_segmented
from deniable_estimator.asking.trend import GROUPS
from deniable_estimator.dashboard.about import planner_address
from deniable_estimator.dashboard.annotation_file import annotated
from deniable_estimator.dashboard.calculations import file_text
from deniable_estimator.dashboard.exports import RAW, Text, file_of, of_segments
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.pages import answer_page, keep_form, requested, with_strings
from deniable_estimator.dashboard.pictures import rows_picture, send_picture
from deniable_estimator.dashboard.ranges import before
from deniable_estimator.dashboard.recent import uneven_words
from deniable_estimator.dashboard.source import current_source, declared_metric
from deniable_estimator.dashboard.timeline import Timeline, grouping, timeline_of_segments
from deniable_estimator.dashboard.view import period_input
from deniable_estimator.document.plot.marks import MOST_LINES
from deniable_estimator.errors import EstimateError
from deniable_estimator.inputs import DAYS, DIVIDED, WHERE, Asked, Input, as_given, each_once
from deniable_estimator.kinds.base import ChangeTest
from deniable_estimator.kinds.formats import series_name
from deniable_estimator.kinds.segments import Segmented, shown_series
from deniable_estimator.kinds.segments.words import finding, leading_series, segment_frames
from deniable_estimator.messages import counted, isolated, message

segments = Blueprint("segments", __name__)

_INPUTS = (
    *(*DAYS, replace(DIVIDED, default=()), WHERE, RAW),
    *(Input(each, as_given, default="") for each in ("against", "series")),
    Input("over", each_once, default=(), many=MOST_LINES),
)

_MOST_ROWS = 240
"""The most lines of all panels: with 32 segments, 7 series are shown."""

_MOST_PANELS = 12

_MOST_CELLS = 30_000
"""Segments times periods times values that are estimated without being asked for: about a second
of calculation."""


@segments.get("/metric/<name>/segments")
def segments_page(name: str) -> ResponseReturnValue:
    """A metric by segments."""
    source, metric = current_source(), declared_metric(name)
    found, refused, obstacle, moved, drawn = None, None, None, None, None
    shown, ignored, by = list[str](), "", _default(metric)
    reading = PageReading(source, metric, source.read_days(metric, {}))
    kind = grouping(metric, reading.days.around)
    try:
        if not metric.segments:
            raise BadRequest(message("{mistake}.", mistake=not_segmented(metric)))
        reading, by, asked = requested_segments(metric, request.args)
        reading, against = with_strings(reading), asked["against"]
        given = _against(reading, by, against)
        if against and given is None:
            ignored = message(
                "“{segment}” has too few reports here or is no segment: compared with the largest "
                "one",
                segment=isolated(against),
            )
        for segment in asked["where"].keys() & by:
            # The form sends what the page stayed within before it divided by it.
            ignored = message(
                "“{limit}” is left out, because the page divides by {segment}",
                limit=isolated(f"{segment}={asked['where'][segment]}"),
                segment=segment,
            )
        found = reading.segmented(by, given).answer
        moved = _moved_most(reading, found)
        shown = _panels_shown(found) if found.total.n else []
        if shown and found.groups:
            kind = asked["period"] or grouping(metric, reading.days.around)
            drawn = _drawn(reading, found, shown, kind, asked)
    except BadRequest as error:
        obstacle = error.description
    except EstimateError as error:
        refused = keep_form(error)
    days, where = reading.days, reading.where
    return answer_page(
        "segments.html",
        reading,
        refused,
        by=by,
        where=where,
        choices=_choices(metric),
        others=[each for each in metric.segments if each.name not in by],
        found=found,
        panels=segment_frames(found, shown) if found and shown else (),
        headline=finding(found) if found else None,
        ignored=ignored,
        drawn=drawn,
        shown=shown,
        period=kind,
        groups=GROUPS[metric.window],
        obstacle=obstacle,
        moved=moved,
        noted=annotated(metric, days.around, source.today, drawn.trend.periods) if drawn else None,
        query=_query(days, by, where, found),
        planner=_planner(source.registry.unasked.get(name, metric), found) if found else None,
    )


def _drawn(
    reading: PageReading, found: Segmented, shown: Sequence[str], by: windows.Kind, asked: Asked
) -> Timeline | None:
    """The trends of the series that is chosen; of the first, if they take little calculation."""
    days, metric = reading.days.around, reading.metric
    series = _series(found, asked["series"] or shown[0])
    periods = len(windows.span(by, days.first, days.last))
    cells = periods * len(found.groups) * len(found.total.series.names)
    if not asked["series"] and (cells > _MOST_CELLS or metric.needs_candidates):
        return None
    trends = reading.over(days).segment_trends(found, by)
    return timeline_of_segments(trends, series, asked["over"])


@segments.get("/metric/<name>/segments.<any(svg, png):form>")
def segments_picture(name: str, form: str) -> ResponseReturnValue:
    """One series in all segments: the one that is asked for, or that the headline tells of."""
    reading, by, asked = requested_segments(declared_metric(name), request.args)
    reading = with_strings(reading)
    found = reading.segmented(by, _against(reading, by, asked["against"])).answer
    shown = _panels_shown(found) if found.total.n else []
    if not shown:
        raise NotFound(message("There are no reports in these days, so there is nothing to draw."))
    series = _series(found, asked["series"] or leading_series(found) or shown[0])
    (panel,) = segment_frames(found, [series])
    text = rows_picture(reading.metric, found.total, finding(found), panel)
    return send_picture(text, f"{name}-segments", form)


@segments.get("/metric/<name>/segments.<any(csv, json):form>")
def segments_file(name: str, form: str) -> ResponseReturnValue:
    """The same as a file, with every series."""
    metric = declared_metric(name)
    reading, by, asked = requested_segments(metric, request.args)
    reading, against = with_strings(reading), asked["against"]
    if "period" in request.args:
        around = reading.over(reading.days.around)
        by_period = asked["period"] or grouping(metric, around.days)
        trends = around.segment_trends(reading.segmented(by).answer, by_period)
        text = Text(partial(file_text, found=trends, head=reading.days.told))
        return file_of(reading, text, f"{name}-segments-trend", form)
    given = _against(reading, by, against)
    if against and given is None:
        raise EstimateError(
            message(
                "“{segment}” has too few reports here or is no segment: leave `against` out, or "
                "name another",
                segment=isolated(against),
            ),
            "against",
        )
    return file_of(reading, of_segments(reading, by, given), f"{name}-segments", form)


def _panels_shown(found: Segmented) -> list[str]:
    """The series that there is room for."""
    lines = len(found.groups) + 2
    return shown_series(found, max(1, min(_MOST_PANELS, _MOST_ROWS // lines)))


def _moved_most(reading: PageReading, found: Segmented) -> str | None:
    """The segment and the series that stand out furthest from the noise of their change, in a
    sentence, or why none is named; None where the days were not asked by what happened before them.

    Segments share 1 minus the level, and so do the series of each (Bonferroni): on average at most
    one page in 20 names a segment where none changed.

    Raises:
        StillDecoding, TooManyDecodes: it takes longer than one may wait.
    """
    days = reading.days
    if not days.since or not found.groups:
        return None
    earlier = before(days, reading.metric.window)
    test = ChangeTest(adjust="bonferroni", alpha=(1 - found.level) / len(found.groups))
    segmented = reading.over(earlier).segmented(found.by).answer
    old = {each.key: each.answer for each in segmented.groups}
    changes = []
    for group in found.groups:
        if group.key in old:
            told = compare(old[group.key], group.answer, test)
            if uneven := uneven_words(told, earlier, days):
                return uneven
            place, _ = chosen_series(told)
            if told.values and told.changed[place]:
                score = abs(float(told.difference[place] / told.std_error[place]))
                changes.append((score, group.name, told, place))
    moment = isolated(days.since)
    if not changes:
        return message("Since {moment}: no segment changed by more than noise.", moment=moment)
    _, name, told, place = max(changes, key=lambda each: each[0])
    return counted(
        "Since {moment}, {count} segment changed beyond noise, {segment}: {series} {change}.",
        "Since {moment}, {count} segments changed beyond noise, most clearly {segment}: {series} "
        "{change}.",
        len(changes),
        moment=moment,
        segment=isolated(name),
        series=series_name(told.after, told.values[place]),
        change=told.describe(place),
    )


def _planner(metric: Metric, found: Segmented) -> str | None:
    """The address of the planner for the smallest segment, folded or not, by its part of the
    reports; None where nothing tells how large it is."""
    sizes = [each.answer.n for each in (*found.groups, *found.small)]
    if len(sizes) < 2:
        return None
    devices = found.total.n / max(1, len(found.total.windows)) / metric.rate
    share = min(sizes) / (found.total.n - found.unsplit)
    return planner_address(metric, metric.devices or round(devices), share)


def _default(metric: Metric) -> tuple[str, ...]:
    return tuple(each.name for each in metric.segments[:1])


def requested_segments(
    metric: Metric, arguments: Mapping[str, str]
) -> tuple[PageReading, tuple[str, ...], Asked]:
    """What is asked of some segments, the segments to divide by, and the rest.

    Raises:
        EstimateError: the address asks for what there is not.
    """
    reading, asked = requested(metric, arguments, (*_INPUTS, period_input("period", metric)))
    by = asked["by"] or _default(metric)
    check_segments(metric, by)
    where = {name: value for name, value in asked["where"].items() if name not in by}
    check_where(metric, where)
    return replace(reading, where=where), by, asked


def _series(found: Segmented, asked: str) -> str:
    """The series that is drawn.

    Raises:
        EstimateError: it is none of these segments'.
    """
    if asked not in found.names:
        raise EstimateError(
            message("There is no series {series} in all segments.", series=isolated(asked[:100])),
            "series",
        )
    return asked


def _against(reading: PageReading, by: Sequence[str], name: str) -> dict[str, str] | None:
    """The segment of that key, to compare with; None if it is not chosen or has too few reports."""
    groups = reading.segmented(by).answer.groups if name else ()
    return next((dict(each.labels) for each in groups if each.key == name), None)


def _choices(metric: Metric) -> list[tuple[str, str]]:
    """What can be divided by: the value in the address, and its text."""
    names = [each.name for each in metric.segments]
    found = [*((each,) for each in names), *combinations(names, 2)]
    return [(",".join(each), " × ".join(each)) for each in found]


def _query(
    days: Days, by: Sequence[str], where: Mapping[str, str], found: Segmented | None
) -> dict[str, object]:
    """What the page shows, as an address carries it."""
    return {
        **days.query,
        "by": ",".join(by),
        "where": [f"{name}={value}" for name, value in where.items()] or None,
        "against": found.reference.key if found and found.reference else None,
    }
