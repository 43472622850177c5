"""The read API: what the pages show, for programs, under /api/v1 (docs/api.md, openapi.json)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
from flask import Blueprint, Response, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from deniable import Metric, windows
from deniable.types import Discovery
from deniable_estimator.dashboard.access import may_read, require
from deniable_estimator.dashboard.annotated import annotations_of
from deniable_estimator.dashboard.api.annotations import list_annotations
from deniable_estimator.dashboard.api.asking import (
    MAX_CELLS,
    MAX_VALUES,
    asked_below,
    asked_candidates,
    asked_grouping,
    asked_limit,
    asked_metric,
    asked_range,
    asked_segments,
    bound,
)
from deniable_estimator.dashboard.api.listing import LISTED, LISTED_OF_NUMBERS, chosen, listed
from deniable_estimator.dashboard.api.overview_rows import overview_csv, overview_document
from deniable_estimator.dashboard.api.parameters import (
    AnomaliesParameters,
    ComparisonParameters,
    DeclaredParameters,
    EstimateParameters,
    FindsParameters,
    FindTrendParameters,
    LifetimePlanParameters,
    ListParameters,
    NumberPlanParameters,
    OutsiderParameters,
    OverviewParameters,
    PairPlanParameters,
    PlanParameters,
    PrivacyParameters,
    SegmentsParameters,
    SegmentsTrendParameters,
    TrendParameters,
    read_parameters,
)
from deniable_estimator.dashboard.api.representations import (
    etag,
    form_of,
    represent,
    same_as_known,
    to_csv,
    unchanged,
)
from deniable_estimator.dashboard.calculations import (
    compared,
    comparison_text,
    estimate_text,
    finds_text,
    lifetime_plan_text,
    number_plan_text,
    outsider_text,
    pair_plan_text,
    plan_text,
    segment_trends_text,
    segmented_text,
    to_json,
    trend_text,
)
from deniable_estimator.dashboard.decodes import StillDecoding
from deniable_estimator.dashboard.finds import find_named, finds_at, trend_of_find
from deniable_estimator.dashboard.overview import list_metrics, read_filters, read_overview
from deniable_estimator.dashboard.overview.page import kept_summaries
from deniable_estimator.dashboard.problems import ApiProblem
from deniable_estimator.dashboard.ranges import earlier_range
from deniable_estimator.dashboard.segments_over_time import trends_of_segments
from deniable_estimator.dashboard.source import DataSource, current_source
from deniable_estimator.dashboard.timeline import grouping
from deniable_estimator.dashboard.versions import digest, digest_of_candidates
from deniable_estimator.errors import EstimateError
from deniable_estimator.privacy import guarantee_in, together
from deniable_estimator.questions.comparison import has_memory
from deniable_estimator.questions.segments import check_names

__all__ = ["api"]

api = Blueprint("api", __name__, url_prefix="/api/v1")


@api.get("/openapi.json")
def openapi() -> ResponseReturnValue:
    """The description of this API; nothing in it is secret."""
    text = Path(__file__).with_name("openapi.json").read_text(encoding="utf-8")
    return Response(text, mimetype="application/json")


@api.get("/metrics")
def metrics() -> ResponseReturnValue:
    """All metrics that the token reaches, or those that are looked for."""
    require("read:metrics")
    asked = read_parameters(ListParameters, request.args)
    form = form_of(asked.format, "json", "csv")
    source = current_source()
    days = asked_range(source, asked.first, asked.last)
    filters = read_filters(request.args, source.registry)
    rows = [
        listed(source, metric, days)
        for metric in source.registry
        if may_read(metric) and filters.admit(metric)
    ]
    # The list is cheap to make, so its content itself is the version.
    tag = etag(form, days, rows)
    if same := unchanged(tag):
        return same
    numbers = any(LISTED_OF_NUMBERS[0] in row for row in rows)
    columns = (*LISTED, *LISTED_OF_NUMBERS) if numbers else LISTED
    text = to_csv(columns, rows) if form == "csv" else to_json({**days.query, "metrics": rows})
    return represent(form, text, tag=tag)


@api.get("/overview")
def overview() -> ResponseReturnValue:
    """What the overview says of all metrics that the token reaches, and what needs attention."""
    require("read:estimates")
    asked = read_parameters(OverviewParameters, request.args)
    form = form_of(asked.format, "json", "csv")
    source, kept = current_source(), kept_summaries()
    wanted = {name: text for name, text in request.args.items() if name != "format"}
    view = read_overview(wanted, source.registry, source.clock())
    reachable = [metric for metric in source.registry if may_read(metric)]
    found = list_metrics(source, kept, view, source.patience, reachable=reachable, whole=True)
    if found.blank:
        raise StillDecoding(*kept.progress)
    document = overview_document(found)
    # The summaries are at hand, so the content itself is the version.
    tag = etag(form, document)
    if same := unchanged(tag):
        return same
    text = overview_csv(found) if form == "csv" else to_json(document)
    return represent(form, text, tag=tag)


@api.get("/metrics/<name>")
def metric(name: str) -> ResponseReturnValue:
    """One metric: as it is declared, and what was collected of it."""
    asked = read_parameters(DeclaredParameters, request.args)
    source, metric = asked_metric(name, "read:metrics")
    form = form_of(asked.format, "json")
    schemes = [
        {
            "fingerprint": fingerprint,
            "mechanism": scheme.mechanism.name,
            "epsilon": scheme.mechanism.epsilon,
            "in_force": fingerprint == metric.scheme.fingerprint,
            "windows": source.store.windows(name, fingerprint),
        }
        for fingerprint, scheme in source.store.schemes().get(name, {}).items()
    ]
    known = listed(source, metric, asked_range(source, "", "", kind=metric.window))
    values = list(metric.values) or None
    document = {**known, "values": values, "schemes": schemes}
    tag = etag(form, document)
    return unchanged(tag) or represent(form, to_json(document), tag=tag)


@api.route("/metrics/<name>/estimate", methods=["GET", "POST"])
def estimate(name: str) -> ResponseReturnValue:
    """The share of each value over some days, or what is asked of a number."""
    asked = read_parameters(EstimateParameters, request.args)
    source, metric = asked_metric(name, "read:estimates")
    form = form_of(asked.format, "json", "csv")
    days = asked_range(source, asked.first, asked.last, asked.without, metric.window, asked.where)
    candidates = asked_candidates(source, metric, asked.value)
    asked_limit(metric, asked.limit)
    asked_below(metric, asked.below)
    if asked.limit is None:
        bound(metric, candidates, asked.value, MAX_VALUES)

    def tag(version: bytes) -> str:
        known, settings = digest_of_candidates(candidates), (source.fakes, source.alarm_level)
        return etag(form, metric, asked, days, known, settings, version)

    if same := same_as_known(lambda: tag(source.version(metric, days, candidates))):
        return same
    found = source.estimate_at(metric, days, candidates, level=asked.level, adjust=asked.adjust)
    known = found.answer
    places = chosen(known, asked.value, asked.limit)
    final, head = tag(found.version), {**days.query, "size": len(known.series.names)}
    text = source.written(
        len(known.series.names) if places is None else len(places),
        ("estimate", final),
        *(estimate_text, form, known, head, places, asked.value, asked.below),
        candidates=candidates,
    )
    return represent(form, text, tag=final)


@api.route("/metrics/<name>/segments", methods=["GET", "POST"])
def segments(name: str) -> ResponseReturnValue:
    """The same for each segment, with their differences."""
    asked = read_parameters(SegmentsParameters, request.args)
    source, metric = asked_metric(name, "read:estimates")
    form = form_of(asked.format, "json", "csv")
    days = asked_range(source, asked.first, asked.last, asked.without, metric.window, asked.where)
    if not metric.segments:
        raise ApiProblem(
            409,
            "not-segmented",
            "Not segmented",
            f"{name} is not counted by segments: its registry would declare them.",
        )
    against = asked_segments("against", asked.against) or None
    candidates = asked_candidates(source, metric, asked.value)
    if asked.value and metric.values:
        candidates = asked.value
    try:
        check_names(metric, asked.by)
        bound(metric, candidates, asked.value, MAX_CELLS, len(metric.scheme.combinations))

        def tag(version: bytes) -> str:
            known = digest_of_candidates(candidates)
            return etag(form, metric, asked, days, known, version)

        if same := same_as_known(lambda: tag(source.segmented_version(metric, days, candidates))):
            return same
        found = source.segmented_at(metric, days, asked.by, against, candidates, level=asked.level)
    except EstimateError as error:
        raise ApiProblem(400, "invalid-parameter", "Invalid parameter", f"{error}.") from None
    final = tag(found.version)
    text = source.written(
        len(found.answer.total.series.names) * (len(found.answer.groups) + 2),
        ("segments", final),
        *(segmented_text, form, found.answer, days.query),
        candidates=candidates,
    )
    return represent(form, text, tag=final)


@api.get("/metrics/<name>/segments/trend")
def segments_trend(name: str) -> ResponseReturnValue:
    """The trend of each segment that has enough reports."""
    asked = read_parameters(SegmentsTrendParameters, request.args)
    source, metric = asked_metric(name, "read:estimates")
    form = form_of(asked.format, "json", "csv")
    days = asked_range(source, asked.first, asked.last, asked.without, metric.window, asked.where)
    check_names(metric, asked.by)
    by = asked.period or grouping(metric, days)
    asked_grouping(metric, by)
    candidates = asked_candidates(source, metric, asked.value)
    lines = len(windows.span(by, days.first, days.last)) * len(metric.scheme.combinations)
    bound(metric, candidates, asked.value, MAX_CELLS, lines)
    found = source.segmented_at(metric, days, asked.by, None, candidates, level=asked.level)
    trends = trends_of_segments(
        source, metric, days, found.answer, by, candidates, level=asked.level
    )
    text = segment_trends_text(form, trends, days.query)
    tag = etag(form, metric, asked, days, text)
    return unchanged(tag) or represent(form, text, tag=tag)


@api.get("/metrics/<name>/finds")
def finds(name: str) -> ResponseReturnValue:
    """The strings that a discovery found."""
    asked = read_parameters(FindsParameters, request.args)
    source, metric = _discovery(name)
    form = form_of(asked.format, "json", "csv")
    days = asked_range(source, asked.first, asked.last, asked.without, metric.window)
    found = finds_at(source, metric, days, level=asked.level, minimum_share=asked.min_share)
    tag = etag(form, metric, asked, days, found.version)
    if same := unchanged(tag):
        return same
    return represent(form, finds_text(form, found.answer, days.query), tag=tag)


@api.get("/metrics/<name>/finds/trend")
def finds_trend(name: str) -> ResponseReturnValue:
    """How common one of these strings was in each day, week or month."""
    asked = read_parameters(FindTrendParameters, request.args)
    source, metric = _discovery(name)
    form = form_of(asked.format, "json", "csv")
    days = asked_range(source, asked.first, asked.last, asked.without, metric.window)
    by = asked.by or grouping(metric, days)
    asked_grouping(metric, by)
    known = finds_at(source, metric, days, level=asked.level, minimum_share=asked.min_share).answer
    found = trend_of_find(source, metric, days, by, known, find_named(known, asked.find))
    tag = etag(form, metric, asked, days, found.version)
    if same := unchanged(tag):
        return same
    return represent(form, trend_text(form, found.answer, days.query), tag=tag)


@api.get("/metrics/<name>/anomalies")
def anomalies(name: str) -> ResponseReturnValue:
    """Which windows of some days look dishonest; strings are not decoded for it."""
    asked = read_parameters(AnomaliesParameters, request.args)
    source, metric = asked_metric(name, "read:estimates")
    form = form_of(asked.format, "json")
    days = asked_range(source, asked.first, asked.last, asked.without, metric.window)
    found = source.history(metric, days, source.estimate(metric, days))
    document = {**days.query, **found.to_dict()}
    tag = etag(form, document)
    return unchanged(tag) or represent(form, to_json(document), tag=tag)


@api.route("/metrics/<name>/trend", methods=["GET", "POST"])
def trend(name: str) -> ResponseReturnValue:
    """The same in each day, week or month."""
    asked = read_parameters(TrendParameters, request.args)
    source, metric = asked_metric(name, "read:estimates")
    form = form_of(asked.format, "json", "csv")
    days = asked_range(source, asked.first, asked.last, asked.without, metric.window, asked.where)
    by = asked.by or grouping(metric, days)
    candidates = asked_candidates(source, metric, asked.value)
    periods = len(windows.span(by, days.first, days.last))
    bound(metric, candidates, asked.value, MAX_CELLS, periods)
    noted = annotations_of(metric, days.first, days.last)

    def tag(version: bytes) -> str:
        known = digest_of_candidates(candidates)
        return etag(form, metric, asked, by, days, known, version, noted)

    if same := same_as_known(lambda: tag(source.trend_version(metric, days, by, candidates))):
        return same
    found = source.trend_at(metric, days, by, candidates, level=asked.level)

    final = tag(found.version)
    text = source.written(
        periods * len(candidates or metric.values),
        ("trend", final),
        *(trend_text, form, found.answer, days.query, asked.value, noted),
        candidates=candidates,
    )
    return represent(form, text, tag=final)


@api.route("/metrics/<name>/comparison", methods=["GET", "POST"])
def comparison(name: str) -> ResponseReturnValue:
    """How it has changed between two ranges of days."""
    asked = read_parameters(ComparisonParameters, request.args)
    source, metric = asked_metric(name, "read:estimates")
    form = form_of(asked.format, "json", "csv")
    if has_memory(source.store, metric):
        raise ApiProblem(
            409,
            "periods-not-independent",
            "Periods not independent",
            "Devices report this metric with remembered noise, so no interval of a "
            "difference between two periods can be given.",
        )
    later = asked_range(source, asked.first, asked.last, asked.without, metric.window)
    earlier = earlier_range(
        later, metric.window, asked.before_from, asked.before_to, source.clock()
    )
    candidates = asked_candidates(source, metric, asked.value)
    bound(metric, candidates, asked.value, MAX_VALUES)

    def tag(*versions: bytes) -> str:
        known, days = digest_of_candidates(candidates), (earlier, later)
        return etag(form, metric, asked, days, known, versions)

    if same := same_as_known(
        lambda: tag(*(source.version(metric, d, candidates) for d in (earlier, later)))
    ):
        return same
    old, new = (
        source.estimate_at(metric, days, candidates, level=asked.level) for days in (earlier, later)
    )
    found = compared(old.answer, new.answer, candidates)

    final, head = tag(old.version, new.version), {"before": earlier.query, "after": later.query}
    text = source.written(
        len(found.values),
        ("comparison", final),
        *(comparison_text, form, found, head, asked.value),
        candidates=candidates,
    )
    return represent(form, text, tag=final)


api.add_url_rule("/annotations", "annotations", list_annotations)


@api.get("/metrics/<name>/privacy")
def metric_privacy(name: str) -> ResponseReturnValue:
    """What the reports of one metric can reveal about a device."""
    asked = read_parameters(PrivacyParameters, request.args)
    source, metric = asked_metric(name, "read:metrics")
    form = form_of(asked.format, "json")
    registry = source.registry
    in_place = registry.unasked.get(metric.name)
    about = registry.about(in_place or metric)
    tag = etag(form, metric, registry.lifetime_epsilon, asked.household, about, in_place)
    if same := unchanged(tag):
        return same
    document = guarantee_in(registry, metric, asked.household).to_dict()
    return represent(form, to_json(document), tag=tag)


@api.get("/privacy")
def privacy() -> ResponseReturnValue:
    """What the reports of all metrics together can reveal about a device."""
    require("read:metrics")
    asked = read_parameters(PrivacyParameters, request.args)
    form = form_of(asked.format, "json")
    registry = current_source().registry
    for each in registry:
        require("read:metrics", each)
    tag = etag(form, list(registry), registry.lifetime_epsilon, asked.household)
    if same := unchanged(tag):
        return same
    return represent(form, to_json(together(registry, asked.household).to_dict()), tag=tag)


@api.get("/metrics/<name>/privacy/outsider")
def metric_outsider(name: str) -> ResponseReturnValue:
    """What published sums of one metric reveal of a device to a reader who sees nothing else."""
    asked = read_parameters(OutsiderParameters, request.args)
    _, metric = asked_metric(name, "read:metrics")
    return _outsider([metric], metric.name, asked)


@api.get("/privacy/outsider")
def outsider() -> ResponseReturnValue:
    """What published sums of all metrics together reveal of a device."""
    require("read:metrics")
    asked = read_parameters(OutsiderParameters, request.args)
    metrics = list(current_source().registry)
    for each in metrics:
        require("read:metrics", each)
    if not metrics:
        raise NotFound("The registry declares no metric, so there is nothing to publish.")
    return _outsider(metrics, None, asked)


def _outsider(
    metrics: list[Metric], name: str | None, asked: OutsiderParameters
) -> ResponseReturnValue:
    """The response with what published sums reveal. It takes up to some seconds, so another
    process finds it."""
    form = form_of(asked.format, "json")
    source = current_source()
    registry = source.registry
    in_place = [registry.unasked.get(each.name) for each in metrics]
    tag = etag(form, metrics, in_place, registry.lifetime_epsilon, name, asked)
    if same := unchanged(tag):
        return same
    key = digest("outsider", tag)
    text = source.calculate(key, outsider_text, registry, name, asked.reports, asked.delta)
    return represent(form, text, tag=tag)


@api.get("/plan")
def plan() -> ResponseReturnValue:
    """What a metric can detect, before it is declared."""
    require("plan")
    asked = read_parameters(PlanParameters, request.args)
    return _planned(asked, asked.size, plan_text)


@api.get("/plan/number")
def plan_number() -> ResponseReturnValue:
    """What can be seen of a number, before it is declared."""
    require("plan")
    return _planned(read_parameters(NumberPlanParameters, request.args), 1, number_plan_text)


@api.get("/plan/pair")
def plan_pair() -> ResponseReturnValue:
    """Which dependence of two lists will be found, before a pair is declared."""
    require("plan")
    asked = read_parameters(PairPlanParameters, request.args)
    return _planned(asked, asked.rows * asked.columns, pair_plan_text)


@api.get("/plan/lifetime")
def plan_lifetime() -> ResponseReturnValue:
    """The ways to divide a lifetime epsilon."""
    require("plan")
    asked = read_parameters(LifetimePlanParameters, request.args)
    return _planned(asked, asked.size if asked.ask == "share" else 1, lifetime_plan_text)


@api.route("/<path:unknown>")
def nowhere(unknown: str) -> ResponseReturnValue:
    """The response for unknown addresses."""
    raise NotFound("There is no such address. /api/v1/openapi.json lists all there are.")


def _discovery(name: str) -> tuple[DataSource, Metric]:
    """The discovery of that name."""
    source, metric = asked_metric(name, "read:estimates")
    if not isinstance(metric.type, Discovery):
        raise ApiProblem(
            409,
            "no-discovery",
            "No discovery",
            f"{name} is a {metric.type.name} metric, which discovers nothing: ask for its "
            f"estimate, /api/v1/metrics/{name}/estimate.",
        )
    return source, metric


def _planned(
    asked: PlanParameters | NumberPlanParameters | PairPlanParameters | LifetimePlanParameters,
    size: int,
    text_of: Callable[..., str],
) -> ResponseReturnValue:
    """The response with a plan, which `text_of` writes from the parameters."""
    form = form_of(asked.format, "json")
    tag = etag(form, asked)
    if same := unchanged(tag):
        return same
    numbers = {
        name: number for name, number in msgspec.structs.asdict(asked).items() if name != "format"
    }
    text = current_source().written(size, ("plan", tag), text_of, numbers)
    return represent(form, text, tag=tag)
