"""Which metrics of the overview are asked for: by search, owner, tag, type, state and platform."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from itertools import islice
from typing import TypeAlias

from deniable import Metric, Registry
from deniable_estimator.asking.listed import SearchedValues
from deniable_estimator.inputs import LONGEST_SEARCH, Asked, Input, as_given
from deniable_estimator.messages import message

STATE_NAMES = {
    "attention": message("needs attention"),
    "anomaly": message("anomalous"),
    "change": message("changed"),
    "stale": message("silent"),
    "expires": message("expires or expired"),
    "few": message("too few reports"),
    "calm": message("needs nothing"),
    "waiting": message("waits for reports"),
}
"""What a metric can be filtered by: that it needs attention for any reason, or for this one; that
it needs none; that it waits for its first report."""

Q = Input("q", str.strip, default="", high=LONGEST_SEARCH)
OWNER, TAG, TYPE, PLATFORM = (
    Input(each, as_given, default="") for each in ("owner", "tag", "type", "platform")
)
STATE = Input("state", str, default="", choices=STATE_NAMES)
FILTERS = (Q, OWNER, TAG, TYPE, STATE, PLATFORM)
"""What metrics are filtered by."""

MOST_FOUND = 3
"""So many of the values that a search has found are named on a card."""

ValuesOf: TypeAlias = Callable[[Metric], SearchedValues]
"""Where a search looks for values."""


def admits(filters: Mapping[str, str], metric: Metric, values: ValuesOf | None = None) -> bool:
    """Whether every word of the search is in the metric's name, description, owner, tags or
    values, and all else is as chosen. The state, which the registry does not tell, is left to
    the caller. `values` gives the values, by default those that the registry lists."""
    return (
        filters["owner"] in ("", metric.owner)
        and (not filters["tag"] or filters["tag"] in metric.tags)
        and filters["type"] in ("", metric.type.name)
        # Without a platform, a metric is recorded anywhere.
        and (
            not (filters["platform"] and metric.platform) or filters["platform"] in metric.platform
        )
        and all(
            word in _about(metric) or word in (values or declared_values)(metric).text
            for word in words_of(filters)
        )
    )


def words_of(filters: Mapping[str, str]) -> list[str]:
    """The words of the search, ready to be compared."""
    return filters["q"].casefold().split()


def read_filters(asked: Asked) -> dict[str, str]:
    """The search and the filters that are asked for, by their names; empty where none is chosen."""
    return {each.name: asked.get(each.name, each.default) for each in FILTERS}


def filter_choices(registry: Registry) -> dict[str, list[str]]:
    """What the filters can be, by their names."""
    return {
        "owner": sorted({metric.owner for metric in registry}),
        "tag": sorted({tag for metric in registry for tag in metric.tags}),
        "type": sorted({metric.type.name for metric in registry}),
        "platform": sorted({each for metric in registry for each in metric.platform}),
    }


def found_values(metric: Metric, words: Collection[str], values: SearchedValues) -> list[str]:
    """The values that a search was found in, at most `MOST_FOUND`; none for words that are in the
    metric's name, description, owner or tags."""
    about = _about(metric)
    found: dict[str, None] = {}
    for word in words:
        if word not in about:
            found.update(dict.fromkeys(islice(values.having(word), MOST_FOUND)))
    return list(found)[:MOST_FOUND]


def declared_values(metric: Metric) -> SearchedValues:
    """The values that the registry lists."""
    return _declared(metric.values)


@lru_cache(maxsize=4096)
def _declared(values: tuple[str, ...]) -> SearchedValues:
    return SearchedValues.of(values)


@lru_cache(maxsize=4096)
def _about_of(*texts: str) -> str:
    return " ".join(texts).casefold()


def _about(metric: Metric) -> str:
    return _about_of(metric.name, metric.description, metric.owner, *metric.tags)
