"""Charts that leave their page: those of a metric as self-contained pictures (SVG, PNG), and charts
and boards alone, which a link shows in a frame.

A browser shows them in a frame only of the sites that DENIABLE_DASHBOARD_FRAME_ANCESTORS names.
"""

from __future__ import annotations

from collections.abc import Sequence

from flask import Blueprint, Flask, Response, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import BadRequest

from deniable import Metric
from deniable_estimator.asking.history import History
from deniable_estimator.asking.query import Days
from deniable_estimator.dashboard.access.caller import opened_link
from deniable_estimator.dashboard.annotation_file import AnnotatedTrend, annotated
from deniable_estimator.dashboard.boards.pages import show_board
from deniable_estimator.dashboard.exports import download
from deniable_estimator.dashboard.language import told
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.pages import asked_answer
from deniable_estimator.dashboard.privacy_label import even_guess
from deniable_estimator.dashboard.recent import chart_told, headline_of
from deniable_estimator.dashboard.release_pages import newest_view
from deniable_estimator.dashboard.source import current_source, declared_metric, settings_in_force
from deniable_estimator.dashboard.timeline import timeline
from deniable_estimator.dashboard.view import View, inputs_of, read_view
from deniable_estimator.dashboard.words import windows_left_out
from deniable_estimator.document.document import Frame, cell
from deniable_estimator.document.plot.drawing import draw
from deniable_estimator.document.plot.marks import Bars
from deniable_estimator.document.plot.parts import (
    flags,
    key,
    part_bar,
    picture,
    small_bar,
    small_chart,
    spark,
    strip,
)
from deniable_estimator.document.plot.pens import Page
from deniable_estimator.document.plot.scales import Tick
from deniable_estimator.kinds import formats
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.basis import Result
from deniable_estimator.kinds.registry import kind_of
from deniable_estimator.messages import counted, joined, message, spaced

pictures = Blueprint("pictures", __name__)

_BARS = 40
_ENTRIES = 12
"""The most annotations that are listed below a trend: the latest ones."""


def offer_plots(app: Flask) -> None:
    """Let templates draw charts, in the language of the page."""
    page = Page(told)
    app.jinja_env.globals.update(
        plot=lambda chart: draw(chart, page),
        plot_flags=lambda found, height, name: flags(found, height, page, name),
        small_bar=small_bar,
        sparkline=spark,
        small_chart=lambda chart: small_chart(chart, page),
        strip=strip,
        part_bar=part_bar,
        key=key,
    )
    app.jinja_env.tests["bars"] = lambda chart: isinstance(chart, Bars)


@pictures.get("/metric/<name>.<any(svg, png):form>")
def metric_picture(name: str, form: str) -> ResponseReturnValue:
    """The chart of one metric."""
    reading, view, estimate, alarm = _asked(name)
    metric, kind = reading.metric, kind_of(estimate)
    shown = estimate, view.shown()
    charts = kind.charts(*shown, _BARS)
    if not charts:
        raise BadRequest(message("Nothing of these days can be drawn yet."))
    head = [("title", metric.description), ("said", kind.said(*shown))]
    head.append(("sub", kind.caption(*shown)))
    foot = _foot([kind.footnote(estimate)], view.days, alarm)
    return send_picture(picture(charts, told, head, foot), name, form)


@pictures.get("/metric/<name>/trend.<any(svg, png):form>")
def trend_picture(name: str, form: str) -> ResponseReturnValue:
    """The trend of one of its values."""
    reading, view, estimate, alarm = _asked(name)
    metric = reading.metric
    view.check_values(estimate.series.names)
    found = timeline(reading, view, estimate, alarm)
    if found is None:
        raise BadRequest(
            message("A trend needs reports from two periods at least; these days hold fewer.")
        )
    noted = annotated(metric, view.days.around, reading.source.today, found.trend.periods)
    since = view.days.since and not alarm
    headline = headline_of(reading, view, estimate) if since else ""
    reported = found.trend.reported
    count = sum(each.n for each in reported)
    head = [
        ("title", metric.description),
        (
            "sub",
            headline
            or message(
                "{metric}: {value} by {kind}, with {level}% intervals",
                metric=metric.name,
                value=found.label,
                kind=formats.kind(found.trend.by),
                level=f"{found.trend.level * 100:g}",
            ),
        ),
        (
            "sub",
            counted(
                "{n} report, {first} to {last}",
                "{n} reports, {first} to {last}",
                count,
                n=f"{count:,}",
                first=formats.day(reported[0].first),
                last=formats.day(reported[-1].last),
            ),
        ),
    ]
    foot = [formats.ESTIMATES, message("The scale need not begin at zero.")]
    if found.alarmed:
        foot.append(message("Red: anomalous."))
    lines = [*_foot(foot, view.days), *_entries(noted)]
    flags = noted.flags if noted else ()
    return send_picture(picture((found.chart,), told, head, lines, flags), f"{name}-trend", form)


def rows_picture(metric: Metric, found: Result, headline: str, frame: Frame) -> str:
    """The rows of a table of what was `found` as bars from zero, each a segment or a string; its
    title says which number of the metric it is, if there are several."""
    (at,) = (place for place, each in enumerate(frame.columns) if each.key in frame.bars)
    column, rows = (
        frame.columns[at],
        [row[at].bar(cell(frame.columns[0], row[0])) for row in frame.rows],
    )
    assert column.scale is not None
    zero = 100 * column.zero
    chart = Bars(
        title=headline,
        description=metric.description,
        rows=tuple(rows),
        ticks=(Tick(zero, "0"), Tick(100, column.scale[1])),
        zero=zero,
    )
    caption = formats.caption(found)
    if frame.title:
        caption = joined((caption, frame.title))
    head = [("title", metric.description), ("said", headline), ("sub", caption)]
    return picture((chart,), told, head, [("foot", formats.ESTIMATES)])


def _foot(
    sentences: Sequence[str], days: Days, alarm: History | None = None
) -> list[tuple[str, str]]:
    """What stands below a picture of these days."""
    if which := windows_left_out(days):
        sentences = [*sentences, message("Left out: {which}.", which=which)]
    lines = [("foot", spaced(sentences))]
    return [*lines, ("alarming", alarm.text)] if alarm else lines


def _entries(noted: AnnotatedTrend | None) -> list[tuple[str, str]]:
    """The annotations below a trend, with the numbers of their flags."""
    if noted is None:
        return []
    shown = noted.listed[-_ENTRIES:]
    first = len(noted.listed) - len(shown)
    lines: list[tuple[str, str]] = [
        ("said", f"{number}. {each.told()}") for number, each in enumerate(shown, first + 1)
    ]
    if more := first + noted.left_out:
        told_more = counted(
            "{count} earlier annotation is not listed.",
            "{count} earlier annotations are not listed.",
            more,
        )
        lines.append(("sub", told_more))
    return lines


def send_picture(svg: str, name: str, form: str) -> Response:
    """A picture that is saved, not shown.

    Raises:
        StillDecoding, TooManyDecodes: to draw it takes longer than one may wait.
    """
    drawn = svg if form == "svg" else current_source().picture(svg)
    return download(drawn, name, form)


def _asked(name: str) -> tuple[PageReading, View, Answer, History | None]:
    """What a picture shows."""
    reading, view = asked_answer(name)
    estimate = reading.estimate().answer
    if not estimate.n:
        raise BadRequest(
            message("There are no reports in these days, so there is nothing to draw.")
        )
    return reading, view, estimate, reading.alarm(estimate)


embedding = Blueprint("embedding", __name__)

_FRAMED_BARS = 12

_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'none'; "
    "frame-ancestors {origins}; base-uri 'none'"
)


@embedding.get("/embed/metric/<name>")
def embedded(name: str) -> ResponseReturnValue:
    """The chart of a metric with its caption."""
    source, metric = current_source(), declared_metric(name)
    if settings_in_force().share_releases:
        return render_template("released.html", view=newest_view(name), bare=True)
    known = {each.name for each in inputs_of(metric)}
    # Whoever shows a frame may add names to its address, which say nothing here.
    asked = [each for each in request.args.items(multi=True) if each[0] in known]
    view = read_view(MultiDict(asked), metric, source)
    reading = PageReading(source, metric, view.days, source.candidates(metric))
    return render_template(
        "embed.html",
        metric=metric,
        view=view,
        bars=_FRAMED_BARS,
        guess=even_guess(metric, source.registry),
        **chart_told(reading, view),
    )


@embedding.get("/embed/board/<name>")
def embedded_board(name: str) -> ResponseReturnValue:
    """The charts of a board."""
    return show_board(name, bare=True)


@embedding.after_request
def _framed(response: Response) -> Response:
    return let_in_frames(response) if opened_link() is not None else response


def let_in_frames(response: Response) -> Response:
    """Let the sites that may show charts show this in a frame."""
    if origins := settings_in_force().dashboard_frame_ancestors:
        response.headers["Content-Security-Policy"] = _POLICY.format(origins=origins)
        # It is made to be shown by others, who may ask for this of all that they show.
        response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response
