"""The pages: the overview of all metrics, one metric, and its numbers as files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from flask import Blueprint, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import BadRequest

from deniable import Metric, ValueListError
from deniable.protocol.coded_message import CodedMessage
from deniable.protocol.types.discovery import Discovery
from deniable_estimator.asking.trend import GROUPS
from deniable_estimator.dashboard.about import about, visible
from deniable_estimator.dashboard.access.caller import for_people
from deniable_estimator.dashboard.alarms import alarm_of, left_out
from deniable_estimator.dashboard.annotation_file import annotated
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.exports import file_of, of_estimate, of_trend
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.overview.page import overview_page
from deniable_estimator.dashboard.overview.summary import answer_notes, standing_notes
from deniable_estimator.dashboard.privacy_label import privacy_label, released_sums
from deniable_estimator.dashboard.ranges import (
    LONGEST_SEARCH,
    RangeError,
    check_names,
    presets,
    since_presets,
)
from deniable_estimator.dashboard.recent import recent
from deniable_estimator.dashboard.source import current_source, declared_metric, settings_in_force
from deniable_estimator.dashboard.timeline import grouping, timeline
from deniable_estimator.dashboard.uploads import forget_list, keep_list, kept_list, sent_list
from deniable_estimator.dashboard.view import (
    ALL_LINES,
    View,
    names_of,
    read_view,
)
from deniable_estimator.document.plot.marks import MOST_LINES
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.numbers.distribution import Distribution
from deniable_estimator.kinds.registry import kind_of
from deniable_estimator.messages import message

pages = Blueprint("pages", __name__)


@pages.get("/")
def overview() -> ResponseReturnValue:
    """What needs attention, and all metrics, or those that were looked for."""
    try:
        return overview_page(None)
    except RangeError as error:
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
    mistake = None
    try:
        reading, view = requested_view(metric, request.args)
        try:
            reading = reading.asking(listed(metric))
        except ValueListError as error:
            mistake = str(error)
        page = _page(reading, view, mistake=mistake)
    except (RangeError, EstimateError) as error:
        return _page(*requested_view(metric, {}), refused=keep_form(error))
    return page


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
    kept = urlencode(replace(view, value=(), line=()).query(), doseq=True)
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
    refused: RangeError | None = None,
) -> tuple[str, int]:
    """The page and its status."""
    source, metric = reading.source, reading.metric
    estimate = None if refused else reading.answer
    answered = estimate if estimate and estimate.n else None
    if answered:
        view.check_values(answered.series.names)
    # Decoding strings takes about a second each time: their trend waits until it is asked for.
    quick = not metric.needs_candidates
    over_time = answered is not None and (quick or view.by is not None)
    alarm = alarm_of(reading, answered)
    kind = kind_of(answered) if answered else None
    unsound = kind.unsound(answered) if kind else None
    changes = None
    if answered and not alarm and not unsound:
        changes = recent(reading, view, answered)
    limits, wrong = _limits(view, answered)
    if wrong is not None:
        keep_form(wrong)
    shown = view.shown(changes.comparison if changes else None, limits)
    document = kind.document(answered, shown) if kind and answered else None
    found = timeline(reading, view, answered, alarm) if answered and over_time else None
    periods = found.trend.periods if found else ()
    told = (changes and changes.headline) or (document and document.verdict.text)
    return answer_page(
        "metric.html",
        reading,
        refused,
        400 if wrong else 200,
        **head_of(reading),
        view=view,
        estimate=estimate,
        kind=kind,
        document=document,
        alarm=alarm,
        left_out=left_out(view.days),
        headline=alarm.text if alarm and kind else told,
        alarming=bool(alarm or unsound),
        recent=changes,
        visible=visible(metric, answered) if answered and not unsound else None,
        most_lines=MOST_LINES,
        all_lines=ALL_LINES,
        longest_search=LONGEST_SEARCH,
        wrong_limit=wrong,
        timeline=found,
        noted=annotated(metric, view.days.around, source.today, periods) if answered else None,
        over_time=over_time,
        by=view.by or grouping(metric, view.days.around),
        groups=GROUPS[metric.window],
        notes=_notes(source, metric, estimate),
        upload_limit=settings_in_force().dashboard_upload / (1 << 20),
        mistake=mistake,
    )


def _limits(view: View, answer: Answer | None) -> tuple[tuple[float, ...], RangeError | None]:
    """The limit that is asked for, and what is wrong with it."""
    if view.limit is None or not isinstance(answer, Distribution):
        return (), None
    try:
        limit = float(view.limit)
    except ValueError:
        limit = math.nan
    if not math.isfinite(limit):
        told = message("“limit” is not a number. Write one like 2.5, without its unit.")
        return (), RangeError(told, "limit")
    try:
        answer.share_below(limit)
    except EstimateError as error:
        return (), RangeError(message("“limit”: {mistake}.", mistake=str(error)), "limit")
    return (limit,), None


@pages.get("/metric/<name>.<any(csv, json):form>")
def metric_file(name: str, form: str) -> ResponseReturnValue:
    """The estimate as a file."""
    reading, _ = asked_answer(name, "raw")
    return file_of(reading, of_estimate(reading), name, form)


@pages.get("/metric/<name>/trend.<any(csv, json):form>")
def trend_file(name: str, form: str) -> ResponseReturnValue:
    """The trend of every value as a file."""
    reading, view = asked_answer(name, "raw")
    reading = reading.over(view.days.around)
    by = view.by or grouping(reading.metric, reading.days)
    return file_of(reading, of_trend(reading, by), f"{name}-trend", form)


def answer_page(
    template: str,
    reading: PageReading,
    refused: RangeError | None,
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
        "presets": [*presets(now, metric.window, running), *since_presets(metric, now)],
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
        "label": privacy_label(metric, source.registry),
        "published": released_sums(source, metric),
    }


def keep_form(error: RangeError | EstimateError, *fields: str) -> RangeError:
    """The mistake, for a page that shows the form again as it was sent; `fields` are at fault if
    it names none.

    Raises:
        RangeError, EstimateError: it, for what is no page.
    """
    if not for_people():
        raise error
    return error if isinstance(error, RangeError) else RangeError(str(error), *fields)


def requested_view(
    metric: Metric, arguments: Mapping[str, str], *more: str
) -> tuple[PageReading, View]:
    """What an address asks of a metric; `more` are parameters beside those of a view.

    Raises:
        RangeError: it asks for what there is not.
    """
    check_names(arguments, (*names_of(metric), *more))
    source = current_source()
    view = read_view(arguments, metric, source).of_list(kept_list(metric))
    return PageReading(source, metric, view.days), view


def asked_answer(name: str, *more: str) -> tuple[PageReading, View]:
    """The same of the metric of that name for a file, and of what is listed if the metric does not
    list its values itself.

    Raises:
        BadRequest: nobody has listed any strings.
    """
    metric = declared_metric(name)
    reading, view = requested_view(metric, request.args, *more)
    candidates = listed(metric)
    if metric.needs_candidates and candidates is None:
        raise BadRequest(unlisted(metric))
    return reading.asking(candidates), view


def listed(metric: Metric) -> Sequence[str] | None:
    """The strings that the reader has listed, or else the operator; None if nobody has.

    Raises:
        ValueListError: the operator's list cannot be read or has a mistake.
    """
    own = kept_list(metric)
    return current_source().candidates(metric) if own is None else own


def unlisted(metric: Metric) -> str:
    """What to do where nobody has listed strings."""
    return message(
        "This metric takes any string. Upload a list of those to look for on its page, or put "
        "them into {metric}.txt in the folder that DENIABLE_CANDIDATES_DIR names.",
        metric=metric.name,
    )


def _notes(source: DataSource, metric: Metric, estimate: Answer | None) -> list[str]:
    """What a careful reader should know before believing the picture."""
    notes = estimate.notes if estimate and estimate.n else ()
    standing = standing_notes(metric, source.newest(metric), source.seen_until)
    return [*notes, *standing, *answer_notes(source, metric, estimate)]
