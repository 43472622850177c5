"""The page of the overview: what needs attention, the form, and cards or a list."""

from __future__ import annotations

from typing import Any

from flask import render_template, request
from flask.typing import ResponseReturnValue

from deniable_estimator.asking.comparison import with_others
from deniable_estimator.dashboard.data import PAGE_PATIENCE, DataSource
from deniable_estimator.dashboard.overview.cache import latest_days
from deniable_estimator.dashboard.overview.filters import STATE_NAMES, filter_choices
from deniable_estimator.dashboard.overview.listing import (
    INPUTS,
    SORT_NAMES,
    Listing,
    list_metrics,
    read_overview,
)
from deniable_estimator.dashboard.overview.summary import standing_notes
from deniable_estimator.dashboard.overview.week import WeekChange
from deniable_estimator.dashboard.ranges import presets, since_presets
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.dashboard.words import freshness, type_name
from deniable_estimator.errors import EstimateError
from deniable_estimator.inputs import read_inputs
from deniable_estimator.judging.newest_week import LEVEL, NoChange, why_not
from deniable_estimator.messages import message, sentence

STRIP = 6
"""So many metrics that need attention are shown at once."""
FOLDED = 44
"""So many more are folded below them; the list has them all."""

_NAMED = sentence("{series}: {change}")


def overview_page(refused: EstimateError | None) -> ResponseReturnValue:
    """The page; with `refused`, a mistake in the address, of all metrics."""
    source = current_source()
    now, asked = source.clock(), request.args
    view = read_overview({} if refused else read_inputs(INPUTS, asked), now)
    listing = list_metrics(source, view, PAGE_PATIENCE)
    page = render_template(
        "overview.html",
        mistake=refused,
        asked=asked if refused else view.query(),
        listing=listing,
        view=view,
        days=view.days or _same_days(source, listing),
        total=len(source.registry.metrics),
        unasked=source.registry.unasked,
        presets=[*presets(now), *since_presets(None, now)],
        false_changes=LEVEL,
        states=STATE_NAMES,
        choices=(choices := filter_choices(source.registry)),
        types={name: type_name(name) for name in choices["type"]},
        sorts=SORT_NAMES,
        strip=STRIP,
        folded=FOLDED,
        change=change_text,
        standing=lambda summary: standing_notes(summary.metric, summary.newest, now),
        fresh=lambda newest: freshness(newest, now),
    )
    return page, 400 if refused else 202 if listing.blank else 200


def change_text(change: WeekChange | NoChange, window: str) -> str:
    """A change in words, for the card of a metric with such windows."""
    if not isinstance(change, WeekChange):
        return why_not(change, window)
    label = message("yes") if change.label == "true" else change.label
    return with_others(message(_NAMED, series=label, change=change.text), change.others)


def _same_days(source: DataSource, listing: Listing) -> Any:
    """The days of all cards, if they are the same."""
    kinds = {each.metric.window for each in listing.entries}
    found = {latest_days(source, each) for each in kinds}
    return found.pop() if len(found) == 1 else None
