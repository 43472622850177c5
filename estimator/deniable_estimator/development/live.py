"""The live page: what has arrived, what it says, what is wrong, and the estimates so far."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from flask import Blueprint, Response, current_app, render_template, request

from deniable import Metric, Scheme, ValueListError
from deniable.device.sent import OwnerLanguage
from deniable.protocol import windows
from deniable.protocol.types.discovery import Discovery
from deniable.protocol.wire import SealedReport
from deniable.tools.starting.new_metric import example_of
from deniable_collector.stores import StoreError
from deniable_estimator.asking.query import Days
from deniable_estimator.asking.results import StillDecoding, TooManyDecodes
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.language import current_language
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.development.crowd import SimulatedCrowd
from deniable_estimator.development.meaning import Meaning, meaning_of
from deniable_estimator.development.state import Arrivals, RegistryFile, advice_on
from deniable_estimator.document.document import Document, Frame, plain, to_data
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.discovery.finds import Finds
from deniable_estimator.kinds.discovery.words import finds_document
from deniable_estimator.kinds.kind import Shown
from deniable_estimator.kinds.registry import kind_of
from deniable_estimator.messages import message

LIVE = "deniable_live"
"""Where the dashboard keeps what the live page shows, among its extensions."""

SHOWN = 20
"""How many reports, mistakes and metrics the page shows."""

SERIES = 6
"""How many values of a metric it shows."""

FEWEST = 100
"""From so many reports on, a metric has an estimate. Before, noise alone would be shown as shares
far beyond 100 %, and each report by itself says more."""

WAIT = 20.0
"""Seconds that a request waits for something new."""

PATIENCE = 0.3
"""Seconds that a page waits for all estimates together."""

EVERY = 3.0
"""So many seconds pass before the strings of a metric are looked for again: finding takes about a
second, in the background."""

_TOO_FEW = message("Too few for an estimate. Each report is shown by itself.")
_CALCULATED = message("The answer is being calculated, and appears here.")
_UNNAMED = message(
    "Any string: name those that you look for on its page, or in a file with `--candidates`."
)
_NO_FINDS = message("No string is common enough to be found so far.")
_LATER = message(
    "The newest reports are not counted here yet: strings are looked for every few seconds."
)

live = Blueprint(
    "live",
    __name__,
    template_folder="templates",
    static_folder="static",
    static_url_path="/live/static",
)
live.add_app_template_filter(math.exp, "exp")


@dataclass(frozen=True)
class Live:
    """What the page shows."""

    file: RegistryFile
    arrivals: Arrivals
    crowd: SimulatedCrowd
    clock: Callable[[], float] = time.monotonic
    finds: dict[str, tuple[str, Days, float, Finds]] = field(default_factory=dict)
    """Metric -> its scheme, the days, when its strings were found, and what."""


@dataclass(frozen=True)
class ShownEstimate:
    """The estimate of a metric's window of now."""

    metric: Metric
    window: str
    days: Days
    """Those to which the link to the metric's page leads."""
    n: int
    simulated: int
    """How many of these reports are simulated devices'."""
    document: Document | None = None
    """What they say, with the largest values alone."""
    told: str = ""
    """Why they say nothing, or not all."""
    pending: bool = False
    """Whether they soon say more without another report."""

    @property
    def numbers(self) -> Frame | None:
        """The table of its numbers. Nothing is folded away: the page writes itself anew all the
        time, and would fold it again."""
        if self.document is None:
            return None
        return replace(self.document.frames[0].narrow, folded=0, fold="")


@live.get("/live")
def page() -> Response:
    """The whole page."""
    return Response(render_template("live.html", **_parts(_state())), content_type="text/html")


@live.get("/live/part")
def part() -> Response:
    """What changes on the page, as soon as it is no longer the version that the reader has."""
    state = _state()
    version = request.args.get("after", "")
    if version.isascii() and version.isdigit() and len(version) < 16:
        state.arrivals.wait(int(version), WAIT)
    parts = _parts(state)
    response = Response(render_template("live_part.html", **parts), content_type="text/html")
    response.headers["X-Version"] = str(parts["live_version"])
    return response


@live.get("/live.json")
def document() -> Response:
    """The same for programs, with exact fractions."""
    parts = _parts(_state())
    found = {
        "version": parts["live_version"],
        "reports": [
            {**plain(arrived.report), "bytes": arrived.size, "says": plain(meaning)}
            for arrived, _, meaning in parts["reports"]
        ],
        "mistakes": [
            {**plain(each), "text": told, "advice": advice}
            for each, told, advice in parts["mistakes"]
        ],
        "registry": [each.describe(parts["file"].source) for each in parts["file"].mistakes],
        "estimates": [
            {
                "metric": each.metric.name,
                "window": each.window,
                "n": each.n,
                "simulated": each.simulated,
                "pending": each.pending,
                "answer": each.document and to_data(each.document),
            }
            for each in parts["estimates"]
        ],
    }
    # Fractions are written as they are.
    return Response(json.dumps(found, default=str), content_type="application/json")


def _state() -> Live:
    state: Live = current_app.extensions[LIVE]
    return state


def _parts(state: Live) -> dict[str, Any]:
    """What the templates show. The version is read first: what comes in between is shown again."""
    version = state.arrivals.version
    source = current_source()
    reports, mistakes = state.arrivals.newest()
    registry = source.registry
    return {
        "live_version": version,
        "file": state.file,
        "address": request.host_url.rstrip("/"),
        "example": example_of(registry),
        "metrics": len(registry),
        "reports": [(each, *_meaning(source, state, each.report)) for each in reports[:SHOWN]],
        "arrivals": state.arrivals,
        "mistakes": [(each, *advice_on(each, registry)) for each in mistakes[:SHOWN]],
        "estimates": _estimates(source, state),
        "fewest": FEWEST,
        "crowd": state.crowd,
    }


def _meaning(
    source: DataSource, state: Live, report: SealedReport
) -> tuple[Metric | None, Meaning | None]:
    """The metric of a report, and what it says; None of what is no longer declared."""
    metric = source.registry.metrics.get(report.metric)
    scheme: Scheme | None = None
    if metric is not None and metric.scheme.fingerprint == report.scheme:
        scheme = metric.scheme
    else:
        scheme = source.reader.schemes_of(report.metric).get(report.scheme)
    if scheme is None:
        return metric, None
    strings = () if metric is None else _strings(source, state, metric)
    language: OwnerLanguage = "zh-Hans" if current_language().tag == "zh-Hans" else "en"
    return metric, meaning_of(scheme, report, language, strings)


def _strings(source: DataSource, state: Live, metric: Metric) -> Sequence[str]:
    """The strings to look for: those that the developer has listed, or the simulated devices'."""
    listed = None
    with suppress(ValueListError):
        listed = source.candidates(metric) if metric.needs_candidates else None
    return listed or state.crowd.strings.get(metric.name) or ()


def _estimates(source: DataSource, state: Live) -> list[ShownEstimate]:
    """The metrics with reports of the developer's first, then those of simulated devices alone."""
    counted = state.arrivals.counted
    some = [
        each for each in source.registry if each.name in counted or each.name in state.crowd.now
    ]
    some.sort(key=lambda metric: counted[metric.name] == 0)
    # The reports do not wait for the estimates: what is not there in time is shown when it is.
    deadline = time.monotonic() + PATIENCE
    shown = []
    for metric in some[:SHOWN]:
        patience = max(0.0, deadline - time.monotonic())
        found = _estimate(replace(source, patience=patience), state, metric)
        if found is not None:
            shown.append(found)
    return shown


def _estimate(source: DataSource, state: Live, metric: Metric) -> ShownEstimate | None:
    window = windows.window_at(metric.window, source.clock())
    first = windows.first_day(window)
    # No page asks for days that are still to come.
    days = Days(first, min(windows.last_day(window), source.today))
    simulated = state.crowd.now.get(metric.name, 0)
    n = state.arrivals.counted[metric.name] + simulated
    shown = ShownEstimate(metric, window, days, n, simulated)
    if 0 < n < FEWEST:
        return replace(shown, told=_TOO_FEW)
    look = found_so_far if isinstance(metric.type, Discovery) else _answered
    try:
        shown = look(PageReading(source, metric, days), state, shown)
    except (EstimateError, StoreError, ValueListError):
        return None
    return shown if shown.n else None


def _answered(reading: PageReading, state: Live, shown: ShownEstimate) -> ShownEstimate:
    """What was calculated before is kept, and what takes long is calculated elsewhere."""
    strings = _strings(reading.source, state, shown.metric)
    if shown.metric.needs_candidates and not strings:
        return replace(shown, told=_UNNAMED)
    try:
        answer = reading.asking(strings or None).answer
    except (StillDecoding, TooManyDecodes):
        return replace(shown, told=_CALCULATED, pending=True)
    if answer is None:
        return shown
    told = kind_of(answer).document(answer, Shown(drawn=False, rows=SERIES))
    return replace(shown, n=answer.n, document=told)


def found_so_far(reading: PageReading, state: Live, shown: ShownEstimate) -> ShownEstimate:
    """What a discovery has found, maybe in fewer reports; it is looked for in the background, if it
    is time."""
    metric, scheme = shown.metric, shown.metric.scheme.fingerprint
    n, now, days = reading.n, state.clock(), reading.days
    kept = state.finds.get(metric.name)
    found, age = (kept[3], now - kept[2]) if kept and kept[:2] == (scheme, days) else (None, EVERY)
    if n and (found is None or found.n != n) and age >= EVERY:
        with suppress(StillDecoding, TooManyDecodes):
            found = reading.finds().answer
            state.finds[metric.name] = (scheme, days, now, found)
    shown = replace(shown, n=n, pending=bool(n) and (found is None or found.n != n))
    if found is None:
        return replace(shown, told=_CALCULATED)
    if not found.finds:
        return replace(shown, told=_NO_FINDS)
    told = _LATER if shown.pending else ""
    return replace(shown, document=finds_document(found, SERIES), told=told)
