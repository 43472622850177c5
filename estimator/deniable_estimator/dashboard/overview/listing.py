"""The overview as an address asks for it: which metrics, in which order, and which page of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from deniable import Metric, ValueListError
from deniable.protocol import windows
from deniable_estimator.asking.listed import Listed, SearchedValues
from deniable_estimator.asking.query import Days
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.overview.cache import (
    bring,
    known_summary,
    latest_days,
    summary_key,
)
from deniable_estimator.dashboard.overview.filters import (
    FILTERS,
    admits,
    declared_values,
    found_values,
    read_filters,
    words_of,
)
from deniable_estimator.dashboard.overview.summary import ORDER, MetricSummary, reasons_of
from deniable_estimator.dashboard.overview.week import WeekChange
from deniable_estimator.dashboard.ranges import is_ranged, read_range
from deniable_estimator.errors import EstimateError
from deniable_estimator.inputs import FROM, SINCE, TO, Asked, Input, choice
from deniable_estimator.judging.findings import MetricFinding
from deniable_estimator.messages import message

PAGE_SIZE = 50
"""So many metrics are on one page: with more it would not stay below 150 KB."""

SORT_NAMES = {
    "registry": message("as declared"),
    "name": message("name"),
    "attention": message("attention"),
    "change": message("largest change"),
    "reports": message("most reports"),
    "newest": message("newest reports"),
}

SORT = Input("sort", str, default=None, choices=SORT_NAMES)
INPUTS = (
    *(*FILTERS, SINCE, FROM, TO, SORT),
    choice("view", ("cards", "list"), "cards"),
    Input("page", int, default=1, low=1, high=999_999),
)
"""What the overview can be asked."""

_OF_DAYS = ("since", "from", "to")


@dataclass(frozen=True, slots=True)
class OverviewView:
    """The choices of a reader, which are all in the address."""

    filters: Mapping[str, str]
    days: Days | None
    """None for the latest complete windows of each metric."""
    layout: str
    sort: str
    page: int
    """From 1."""

    def query(self, **changes: str | None) -> dict[str, str]:
        """The view as an address carries it, with some choices changed, or left away by None. A
        change of anything but the page leads to the first one."""
        chosen = {
            **self.filters,
            **(self.days.query if self.days and changes.keys().isdisjoint(_OF_DAYS) else {}),
            "view": None if self.layout == "cards" else self.layout,
            "sort": None if self.sort == _usual_sort(self.days) else self.sort,
            "page": None if self.page == 1 or changes else str(self.page),
            **changes,
        }
        return {name: text for name, text in chosen.items() if text}


@dataclass(frozen=True, slots=True)
class OverviewEntry:
    """One metric of the list."""

    metric: Metric
    summary: MetricSummary | None
    """None while it is being calculated."""
    reasons: tuple[MetricFinding, ...]
    found: tuple[str, ...] = ()
    """The values in which the search was found."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The metrics that are asked for."""

    attention: tuple[OverviewEntry, ...]
    """All metrics that need attention, the most pressing first, whatever the filters."""
    entries: tuple[OverviewEntry, ...]
    """Those of this page."""
    count: int
    """How many the filters admit."""
    pages: int
    outdated: int
    """How many summaries have changed meanwhile, and are still being calculated."""
    wanted: int
    """How many summaries the page needs."""
    blank: int
    """How many of them cannot be shown yet."""
    waiting: bool
    """Whether no metric at all has a report."""
    compared: int
    """Of how many of those that the filters admit it is known whether they changed."""
    changed: int
    """How many of these did, by more than noise."""


def read_overview(asked: Asked, now: float) -> OverviewView:
    """The view that is asked for.

    Raises:
        EstimateError: days that cannot be shown.
    """
    days = read_range(asked, now) if is_ranged(asked) else None
    return OverviewView(
        filters=read_filters(asked),
        days=days,
        layout=asked.get("view", "cards"),
        sort=asked.get("sort") or _usual_sort(days),
        page=asked.get("page", 1),
    )


def list_metrics(
    source: DataSource,
    view: OverviewView,
    patience: float,
    *,
    reachable: Sequence[Metric] | None = None,
    whole: bool = False,
) -> Listing:
    """The metrics of a view.

    Args:
        patience: how many seconds to wait for summaries that have changed.
        reachable: the metrics that may be shown; by default all of the registry.
        whole: of all pages, and with every summary up to date if patience allows.

    Raises:
        StoreUnavailable: the store cannot answer now.
    """
    metrics = list(source.registry) if reachable is None else list(reachable)
    days = {kind: latest_days(source, kind) for kind in ("day", "week", "month")}
    latest = {each.name: PageReading(source, each, days[each.window]) for each in metrics}
    asked = latest
    if view.days is not None:
        asked = {name: _over(view.days, each) for name, each in latest.items()}
    values = partial(_searched, source)
    admitted = [metric for metric in metrics if admits(view.filters, metric, values)]
    known = _known(latest)
    found = _found(admitted, asked, known, view)
    # What the page shows comes first; then what the order of other days and the strip need.
    shown = [each.metric.name for each in (found if whole else _page(found, view)[0])]
    if view.days is not None and view.sort in ("change", "reports"):
        shown += [each.name for each in admitted]
    readings = (*(asked[name] for name in shown), *latest.values())
    wanted = {summary_key(each): each for each in readings}
    outdated, blank, again = bring(source, list(wanted.values()), patience)
    if again:
        known = _known(latest)
        found = _found(admitted, asked, known, view)
    page, pages = (found, 1) if whole else _page(found, view)
    if words := words_of(view.filters):
        page = [
            replace(each, found=tuple(found_values(each.metric, words, values(each.metric))))
            for each in page
        ]
    changes = [each.summary.change for each in found if each.summary]
    compared = [each for each in changes if isinstance(each, WeekChange)]
    return Listing(
        compared=len(compared),
        changed=sum(each.changed for each in compared),
        attention=tuple(sorted((each for each in known.values() if each.reasons), key=_pressing)),
        entries=tuple(page),
        count=len(found),
        pages=pages,
        outdated=outdated,
        wanted=len(wanted),
        blank=blank,
        waiting=bool(known)
        and all(each.summary and each.summary.newest is None for each in known.values()),
    )


def _usual_sort(days: Days | None) -> str:
    """The order where none is asked for: since something happened, what changed comes first."""
    return "change" if days and days.since else "registry"


def _over(days: Days, latest: PageReading) -> PageReading:
    """A metric over these days: those after what happened, if they are asked by it.
    Where no window after it is complete, they stay as they are (`week_change` says so)."""
    if days.since:
        with suppress(EstimateError):
            days = latest.source.read_range(latest.metric, {"since": days.since})
    return latest.over(days)


def _known(latest: Mapping[str, PageReading]) -> dict[str, OverviewEntry]:
    """What is known of each metric, of the latest days."""
    found = {}
    for name, each in latest.items():
        summary, now = known_summary(each), each.source.seen_until
        found[name] = OverviewEntry(each.metric, summary, reasons_of(each.metric, summary, now))
    return found


def _found(
    admitted: Sequence[Metric],
    asked: Mapping[str, PageReading],
    known: Mapping[str, OverviewEntry],
    view: OverviewView,
) -> list[OverviewEntry]:
    """The metrics that the filters admit, of the days that are asked for, in order."""
    found = [known[each.name] for each in admitted]
    found = [each for each in found if _in_state(each, view.filters["state"])]
    if view.days is not None:
        found = [replace(each, summary=known_summary(asked[each.metric.name])) for each in found]
    return _sorted(found, view.sort)


def _page(found: Sequence[OverviewEntry], view: OverviewView) -> tuple[list[OverviewEntry], int]:
    """The metrics of the page, and how many pages there are. A page beyond the last is the last."""
    pages = max(1, math.ceil(len(found) / PAGE_SIZE))
    start = (min(view.page, pages) - 1) * PAGE_SIZE
    return list(found[start : start + PAGE_SIZE]), pages


def _in_state(entry: OverviewEntry, state: str) -> bool:
    codes = {each.kind for each in entry.reasons}
    if state == "attention":
        return bool(codes)
    if state == "calm":
        return not codes
    if state == "waiting":
        return entry.summary is not None and entry.summary.newest is None
    return not state or state in codes


def _pressing(entry: OverviewEntry) -> tuple[int, str]:
    first = ORDER.index(entry.reasons[0].kind) if entry.reasons else len(ORDER)
    return first, entry.metric.name


def _sorted(found: list[OverviewEntry], sort: str) -> list[OverviewEntry]:
    """In the order that is asked for; what is equal stays in the order of the registry."""

    def change(entry: OverviewEntry) -> tuple[bool, float]:
        told = entry.summary.change if entry.summary else None
        if not isinstance(told, WeekChange):
            return True, 0.0
        return not told.changed, -told.score

    def reports(entry: OverviewEntry) -> float:
        return -(entry.summary.n or 0) if entry.summary else 1

    def newest(entry: OverviewEntry) -> float:
        label = entry.summary.newest if entry.summary else None
        return -windows.end(label) if label else math.inf

    keys = {
        "name": lambda entry: entry.metric.name,
        "attention": _pressing,
        "change": change,
        "reports": reports,
        "newest": newest,
    }
    return found if sort == "registry" else sorted(found, key=keys[sort])


def _searched(source: DataSource, metric: Metric) -> SearchedValues:
    """The values that a search looks at: those declared, or the strings of the operator's list."""
    if not metric.needs_candidates:
        return declared_values(metric)
    try:
        found = source.candidates(metric)
    except ValueListError:
        found = None
    if isinstance(found, Listed):
        return found.searched
    return SearchedValues.of(())
