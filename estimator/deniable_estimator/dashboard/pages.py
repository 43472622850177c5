"""The pages: the overview of all metrics, one metric, and its numbers as files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import BadRequest

from deniable import Metric, ValueListError
from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.types.discovery import Discovery
from deniable_estimator.asking.history import History
from deniable_estimator.asking.trend import GROUPS
from deniable_estimator.dashboard.about import about, visible
from deniable_estimator.dashboard.access.caller import for_people
from deniable_estimator.dashboard.annotation_file import annotated
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.exports import RAW, file_of, of_estimate, of_trend
from deniable_estimator.dashboard.metric_view import PageReading, check_listed
from deniable_estimator.dashboard.overview.page import overview_page
from deniable_estimator.dashboard.overview.summary import answer_notes, standing_notes
from deniable_estimator.dashboard.privacy_label import sums_label
from deniable_estimator.dashboard.ranges import presets, since_presets
from deniable_estimator.dashboard.recent import recent
from deniable_estimator.dashboard.source import current_source, declared_metric, settings_in_force
from deniable_estimator.dashboard.timeline import grouping, timeline
from deniable_estimator.dashboard.uploads import forget_list, keep_list, kept_list, sent_list
from deniable_estimator.dashboard.view import ALL_LINES, View, inputs_of, read_view, view_of
from deniable_estimator.document.plot.marks import MOST_LINES
from deniable_estimator.errors import EstimateError
from deniable_estimator.inputs import LONGEST_SEARCH, Asked, Input, read_inputs
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.numbers.distribution import Distribution
from deniable_estimator.kinds.registry import kind_of
from deniable_estimator.messages import message
from deniable_estimator.privacy.computing import guarantee_in

pages = Blueprint("pages", __name__)


@pages.get("/")
def overview() -> ResponseReturnValue:
    """What needs attention, and all metrics, or those that were looked for."""
    try:
        return overview_page(None)
    except EstimateError as error:
        return overview_page(keep_form(error))


@pages.get("/metric/<name>")
def metric_page(name: str) -> ResponseReturnValue:
    """One metric: its chart, its trend, its table and its privacy label. A discovery has a page of
    its own."""
    metric = declared_metric(name)
    if isinstance(metric.type, Discovery):
        # A view of shares, as boards link to it, names a comparison that this page has not.
        kept = [each for each in request.args.items(multi=True) if each[0] != "change"]
        chosen = urlencode(kept)
        at = url_for("discovering.finds_page", name=name)
        return redirect(f"{at}?{chosen}" if chosen else at)
    # Of pages that list every value, few are made at a time.
    every = request.args.get("lines") == "all"
    with current_source().results.large() if every else nullcontext():
        return _shown(metric)


def _shown(metric: Metric) -> tuple[str, int]:
    """What the address asks of a metric; or a mistake in it, with the usual days."""
    mistake = None
    try:
        reading, view = requested_view(metric, request.args)
        try:
            reading = reading.asking(listed(metric))
        except ValueListError as error:
            mistake = str(error)
        return _page(reading, view, mistake=mistake)
    except EstimateError as error:
        return _page(*requested_view(metric, {}), refused=keep_form(error))


@pages.post("/metric/<name>")
def metric_upload(name: str) -> ResponseReturnValue:
    """Keep the strings that a file names for the session, and lead to the page that has them."""
    source, metric = current_source(), declared_metric(name)
    view = read_view(request.args, metric, source)
    if not metric.needs_candidates:
        raise BadRequest(message("{name} lists its values; it takes no others.", name=name))
    if request.authorization is not None:
        raise BadRequest(
            message(
                "A list is kept for the session of a browser. Send it to "
                "/api/v1/metrics/{name}/estimate instead.",
                name=name,
            )
        )
    file = request.files.get("candidates")
    try:
        if file is None or not file.filename:
            missing = CodedMessage("missing", "is missing; choose a file")
            raise ValueListError(message("The list"), None, missing)
        sent = file.stream.read()
        sent_list(source, sent, message("Your list"))
    except ValueListError as error:
        return _page(PageReading(source, metric, view.days), view, mistake=str(error))[0], 400
    keep_list(metric, sent)
    # A line of another list, or a string of it, says nothing about this one.
    rest = replace(view, asked={**view.asked, "value": (), "line": ()})
    kept = urlencode(rest.query(), doseq=True)
    return redirect(f"{url_for('pages.metric_page', name=name)}?{kept}", 303)


@pages.post("/metric/<name>/forget")
def forget_upload(name: str) -> ResponseReturnValue:
    """Forget the strings that the session has sent."""
    forget_list(declared_metric(name))
    return redirect(url_for("pages.metric_page", name=name), 303)


def _page(
    reading: PageReading,
    view: View,
    *,
    mistake: str | None = None,
    refused: EstimateError | None = None,
) -> tuple[str, int]:
    """The page and its status."""
    metric, estimate = reading.metric, None if refused else reading.answer
    answered = estimate if estimate and estimate.n else None
    alarm = reading.alarm(answered)
    told = _told(reading, view, answered, alarm) if answered else {}
    return answer_page(
        "metric.html",
        reading,
        refused,
        400 if told.get("wrong_limit") else 200,
        **head_of(reading),
        **told,
        view=view,
        estimate=estimate,
        alarm=alarm,
        most_lines=MOST_LINES,
        all_lines=ALL_LINES,
        longest_search=LONGEST_SEARCH,
        by=view.asked["by"] or grouping(metric, view.days.around),
        groups=GROUPS[metric.window],
        notes=_notes(reading.source, metric, estimate),
        upload_limit=settings_in_force().dashboard_upload / (1 << 20),
        mistake=mistake,
    )


def _told(
    reading: PageReading, view: View, answer: Answer, alarm: History | None
) -> dict[str, Any]:
    """What the page says of reports."""
    metric, kind = reading.metric, kind_of(answer)
    view.check_values(answer.series.names)
    unsound = kind.unsound(answer)
    changes = None if alarm or unsound else recent(reading, view, answer)
    limits, wrong = _limits(view, answer)
    if wrong is not None:
        keep_form(wrong)
    shown = view.shown(changes.comparison if changes else None, limits)
    document = kind.document(answer, shown)
    # Decoding strings takes about a second each time: their trend waits until it is asked for.
    over_time = not metric.needs_candidates or view.asked["by"] is not None
    found = timeline(reading, view, answer, alarm) if over_time else None
    periods = found.trend.periods if found else ()
    headline = (changes and changes.headline) or document.verdict.text
    return {
        "kind": kind,
        "document": document,
        "headline": alarm.text if alarm else headline,
        "alarming": bool(alarm or unsound),
        "recent": changes,
        "visible": None if unsound else visible(metric, answer),
        "wrong_limit": wrong,
        "timeline": found,
        "noted": annotated(metric, view.days.around, reading.source.today, periods),
        "over_time": over_time,
    }


def _limits(view: View, answer: Answer) -> tuple[tuple[float, ...], EstimateError | None]:
    """The limit that is asked for, and what is wrong with it."""
    if view.asked["limit"] is None or not isinstance(answer, Distribution):
        return (), None
    try:
        limit = float(view.asked["limit"])
    except ValueError:
        limit = math.nan
    if not math.isfinite(limit):
        told = message("“limit” is not a number. Write one like 2.5, without its unit.")
        return (), EstimateError(told, "limit")
    try:
        answer.share_below(limit)
    except EstimateError as error:
        return (), EstimateError(message("“limit”: {mistake}.", mistake=str(error)), "limit")
    return (limit,), None


@pages.get("/metric/<name>.<any(csv, json):form>")
def metric_file(name: str, form: str) -> ResponseReturnValue:
    """The estimate as a file."""
    reading, _ = asked_answer(name, RAW)
    return file_of(reading, of_estimate(reading), name, form)


@pages.get("/metric/<name>/trend.<any(csv, json):form>")
def trend_file(name: str, form: str) -> ResponseReturnValue:
    """The trend of every value as a file."""
    reading, view = asked_answer(name, RAW)
    reading = reading.over(view.days.around)
    by = view.asked["by"] or grouping(reading.metric, reading.days)
    return file_of(reading, of_trend(reading, by), f"{name}-trend", form)


def answer_page(
    template: str,
    reading: PageReading,
    refused: EstimateError | None,
    status: int = 200,
    **more: Any,
) -> tuple[str, int]:
    """A page about a metric over some days, and its status: with the days that there are, and the
    form as it was sent if that is refused."""
    source, metric, days = reading.source, reading.metric, reading.days
    now, running = source.seen_until, source.running(metric)
    given = {
        "metric": metric,
        "days": days,
        "newest": source.newest(metric),
        "running": running,
        "presets": [
            *presets(now, metric, running),
            *since_presets(metric, now, source.first_day(metric)),
        ],
        "refused": refused,
        "asked": request.args if refused else days.told,
    }
    return render_template(template, **{**given, **more}), 400 if refused else status


def head_of(reading: PageReading) -> dict[str, Any]:
    """What a page says of the metric itself, whatever was reported."""
    source, metric = reading.source, reading.metric
    return {
        "about": about(source, metric),
        "reported": source.registry.unasked.get(metric.name, metric),
        "label": guarantee_in(source.registry, metric),
        "published": sums_label(source, metric),
    }


def keep_form(error: EstimateError, *fields: str) -> EstimateError:
    """The mistake, for a page that shows the form again as it was sent; `fields` are at fault if
    it names none.

    Raises:
        EstimateError: it, for what is no page.
    """
    if not for_people():
        raise error
    return error if error.fields else EstimateError(str(error), *fields)


def requested(
    metric: Metric, arguments: Mapping[str, str], inputs: Sequence[Input]
) -> tuple[PageReading, Asked]:
    """What an address asks of a metric by these inputs.

    Raises:
        EstimateError: it asks for what there is not.
    """
    source, asked = current_source(), read_inputs(inputs, arguments)
    return PageReading(source, metric, source.read_days(metric, asked)), asked


def requested_view(
    metric: Metric, arguments: Mapping[str, str], *more: Input
) -> tuple[PageReading, View]:
    """The same with the view; `more` are inputs beside those of a view."""
    reading, asked = requested(metric, arguments, (*inputs_of(metric), *more))
    return reading, view_of(asked, reading.days).of_list(kept_list(metric))


def asked_answer(name: str, *more: Input) -> tuple[PageReading, View]:
    """The same of the metric of that name for a file, and of what is listed."""
    reading, view = requested_view(declared_metric(name), request.args, *more)
    return with_strings(reading), view


def with_strings(reading: PageReading) -> PageReading:
    """The same of what is listed, if the metric does not list its values itself.

    Raises:
        BadRequest: nobody has listed any strings, or their list has a mistake.
    """
    metric = reading.metric
    try:
        check_listed(metric)
        candidates = listed(metric)
    except EstimateError as error:
        raise BadRequest(str(error)) from None
    except ValueListError as error:
        raise BadRequest(message("{mistake}.", mistake=str(error))) from None
    if metric.needs_candidates and candidates is None:
        raise BadRequest(
            message(
                "This metric takes any string. Upload a list of those to look for on its page, or "
                "put them into {metric}.txt in the folder that DENIABLE_CANDIDATES_DIR names.",
                metric=metric.name,
            )
        )
    return reading.asking(candidates)


def listed(metric: Metric) -> Sequence[str] | None:
    """The strings that the reader has listed, or else the operator; None if nobody has.

    Raises:
        ValueListError: the operator's list cannot be read or has a mistake.
    """
    own = kept_list(metric)
    return current_source().candidates(metric) if own is None else own


def _notes(source: DataSource, metric: Metric, estimate: Answer | None) -> list[str]:
    """What a careful reader should know before believing the picture."""
    notes = estimate.notes if estimate and estimate.n else ()
    standing = standing_notes(metric, source.newest(metric), source.seen_until)
    return [*notes, *standing, *answer_notes(source, metric, estimate)]
