"""The data of the pages, as one request sees it."""

from __future__ import annotations

import difflib
from dataclasses import replace
from datetime import date, timedelta

from flask import current_app, g, request
from werkzeug.exceptions import NotFound

from deniable import Metric
from deniable.protocol import windows
from deniable_collector.upkeep.keeper import SETTLED
from deniable_estimator.dashboard.access.caller import (
    for_people,
    opened_link,
    reader_of,
    token_shown,
)
from deniable_estimator.dashboard.data import PAGE_PATIENCE, DataSource
from deniable_estimator.dashboard.ranges import day_at
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.messages import message

FILE_PATIENCE = 25.0
"""Seconds that programs, files and sent forms wait: shorter than proxies do."""


def current_source() -> DataSource:
    """The source of the current application, for this request."""
    if "source" not in g:
        source: DataSource = current_app.extensions["deniable_source"]
        # A chart in a frame is made once: nobody would look again.
        framed = request.blueprint == "embedding"
        at_once = for_people() and request.method in ("GET", "HEAD") and not framed
        patience = PAGE_PATIENCE if at_once else FILE_PATIENCE
        behind = float(SETTLED) if _is_public() or token_shown().settled else 0.0
        found = replace(source, patience=patience, who=reader_of(), behind=behind)
        until = found.seen_until if behind else None
        g.source = replace(found, reader=source.reader.renewed(until))
    seen: DataSource = g.source
    return seen


def settings_in_force() -> DashboardSettings:
    """Those of the current application."""
    settings: DashboardSettings = current_app.config["DENIABLE_SETTINGS"]
    return settings


def held_until() -> date | None:
    """The last day (UTC) of which a link shows reports, if it holds back windows that still take
    some; None for everybody else."""
    if not _is_public():
        return None
    return day_at(current_source().seen_until) - timedelta(days=1)


def held_from(metric: Metric) -> date:
    """The day (UTC) from which such a link shows the window of today."""
    return settled_day(windows.window_at(metric.window, current_source().clock()))


def settled_day(label: str) -> date:
    """The first day (UTC) on whose morning a window takes no reports any more."""
    return day_at(windows.end(label) + SETTLED + 86_399)


def _is_public() -> bool:
    """Whether the request is for a view that everybody may see: nobody should be able to subtract
    two readings of it, so it has no window that still takes reports."""
    opened = opened_link()
    return opened is not None and not opened.unfinished


def declared_metric(name: str) -> Metric:
    """The metric of that name.

    Raises:
        NotFound: there is none; the message names one that is spelt like it.
    """
    registry = current_source().registry
    if name in registry.metrics:
        return registry[name]
    # Whoever may read some metrics alone does not learn the names of others.
    known = [each.name for each in filter(token_shown().reaches, registry)]
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        raise NotFound(
            message("No metric of that name is declared. Did you mean {name}?", name=near[0])
        )
    raise NotFound(message("No metric of that name is declared. The overview lists all there are."))
