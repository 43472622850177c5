"""The pages: the overview of all metrics, one metric, and its numbers as CSV and JSON."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from flask import Blueprint, Response, current_app, render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import BadRequest, NotFound

from hearsay import Metric, Registry
from hearsay_collector.stores.base import Store
from hearsay_estimator.dashboard.charts import BarChart, bar_chart
from hearsay_estimator.dashboard.privacy import privacy_label
from hearsay_estimator.dashboard.ranges import DayRange, RangeError, presets, read_range
from hearsay_estimator.dashboard.table import table
from hearsay_estimator.dashboard.words import freshness, headline
from hearsay_estimator.estimate import Estimate
from hearsay_estimator.reading import read

__all__ = ["Source", "pages"]

pages = Blueprint("pages", __name__)

_CARD_BARS = 5
_CHART_BARS = 40
_TABLE_LINES = 1000


@dataclass(frozen=True)
class Source:
    """Where the pages get their facts."""

    store: Store
    registry: Registry
    clock: Callable[[], float]

    def estimate(self, metric: Metric, days: DayRange) -> Estimate | None:
        """None for a metric that needs a list of candidates."""
        if metric.values is None:
            return None
        return read(self.store, self.registry, metric.name, days.first, days.last)

    def newest(self, metric: Metric) -> str | None:
        """The newest window that holds any answer, whatever the range."""
        schemes = self.store.schemes().get(metric.name, {})
        labels = [
            label for scheme in schemes for label in self.store.windows(metric.name, scheme)[-1:]
        ]
        return max(labels, default=None)


@dataclass(frozen=True)
class Card:
    """One metric on the overview."""

    metric: Metric
    estimate: Estimate | None
    chart: BarChart | None
    freshness: str | None
    notes: list[str]


@pages.get("/")
def overview() -> ResponseReturnValue:
    """All metrics, with their last 30 days."""
    source = _source()
    days = read_range({}, source.clock())
    cards = [_card(source, metric, days) for metric in source.registry]
    return render_template(
        "overview.html",
        cards=cards,
        days=days,
        waiting=all(card.freshness is None for card in cards),
    )


@pages.get("/metric/<name>")
def metric_page(name: str) -> ResponseReturnValue:
    """One metric: its chart, its table and its privacy label."""
    source, metric = _source(), _metric(name)
    days = _range(source)
    estimate = source.estimate(metric, days)
    newest = source.newest(metric)
    now = source.clock()
    return render_template(
        "metric.html",
        metric=metric,
        estimate=estimate,
        chart=bar_chart(estimate, limit=_CHART_BARS) if estimate and estimate.n else None,
        lines=table(estimate, _TABLE_LINES) if estimate else [],
        headline=headline(estimate) if estimate and estimate.n else None,
        label=privacy_label(metric),
        days=days,
        presets=presets(now),
        newest=newest,
        freshness=freshness(newest, now) if newest else None,
        notes=_notes(metric, estimate, now),
    )


@pages.get("/metric/<name>.csv")
def metric_csv(name: str) -> ResponseReturnValue:
    """The table as a file."""
    return _download(_estimate(name).to_csv(), "text/csv", f"{name}.csv")


@pages.get("/metric/<name>.json")
def metric_json(name: str) -> ResponseReturnValue:
    """The estimate as a document."""
    text = json.dumps(_estimate(name).to_dict(), ensure_ascii=False, allow_nan=False)
    return _download(text, "application/json", f"{name}.json")


def _card(source: Source, metric: Metric, days: DayRange) -> Card:
    estimate = source.estimate(metric, days)
    newest = source.newest(metric)
    limit = 1 if metric.type == "boolean" else _CARD_BARS
    now = source.clock()
    return Card(
        metric=metric,
        estimate=estimate,
        chart=bar_chart(estimate, limit=limit) if estimate and estimate.n else None,
        freshness=freshness(newest, now) if newest else None,
        notes=_notes(metric, estimate, now),
    )


def _estimate(name: str) -> Estimate:
    source, metric = _source(), _metric(name)
    estimate = source.estimate(metric, _range(source))
    if estimate is None:
        raise BadRequest(
            f"The strings of {name} must be named to be estimated: use "
            f"`hearsay estimate {name} --candidates FILE`."
        )
    return estimate


def _notes(metric: Metric, estimate: Estimate | None, now: float) -> list[str]:
    """What a careful reader should know before believing the picture."""
    notes = list(estimate.warnings) if estimate and estimate.n else []
    if metric.expires < datetime.fromtimestamp(now, UTC).date():
        notes.append(f"Expired on {metric.expires}: devices have stopped answering.")
    return notes


def _metric(name: str) -> Metric:
    registry = _source().registry
    if name in registry.metrics:
        return registry[name]
    near = difflib.get_close_matches(name, registry.metrics, n=1)
    advice = f" Did you mean {near[0]}?" if near else " The overview lists all there are."
    raise NotFound(f"No metric of that name is declared.{advice}")


def _range(source: Source) -> DayRange:
    try:
        return read_range(request.args, source.clock())
    except RangeError as error:
        raise BadRequest(str(error)) from None


def _download(text: str, mimetype: str, filename: str) -> Response:
    response = Response(text, mimetype=mimetype)
    response.headers.set("Content-Disposition", "attachment", filename=filename)
    return response


def _source() -> Source:
    source: Source = current_app.extensions["hearsay_source"]
    return source
