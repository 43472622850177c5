"""The parameters of the read API, which of them each address takes, and what a request asks with
them: days, segments and strings of a metric. What only the API takes means what stands in
`schemas.toml`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import get_args

import msgspec
from flask import request

from deniable import Metric
from deniable.protocol.types.number import Number
from deniable.protocol.types.pair import Pair
from deniable.protocol.types.retention import Retention
from deniable.protocol.value_list import value_texts
from deniable_estimator.dashboard.access.caller import require_role
from deniable_estimator.dashboard.access.people import Role
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.exports import RAW
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.overview.filters import OWNER, PLATFORM, STATE, TAG, TYPE, Q
from deniable_estimator.dashboard.overview.listing import SORT
from deniable_estimator.dashboard.problems import invalid, refusal
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.dashboard.uploads import sent_list
from deniable_estimator.inputs import (
    AGAINST,
    BEFORE_FROM,
    BEFORE_TO,
    DIVIDED,
    FROM,
    MIN_SHARE,
    SINCE,
    TO,
    WHERE,
    WITHOUT,
    Asked,
    Input,
    as_given,
    choice,
    each_once,
)
from deniable_estimator.kinds.registry import series_of
from deniable_estimator.privacy.outsider import DELTA, LEAST_REPORTS, MOST_DELTA, SMALLEST_DELTA
from deniable_estimator.statistics.significance import Adjustment

_METRIC = Input("metric", each_once, default=(), many=100)
_VALUE = Input("value", each_once, default=(), many=1000)
_BY, _PERIOD = (choice(each, ("day", "week", "month")) for each in ("by", "period"))
_LEVEL = Input("level", float, default=0.95, low=0.5, high=0.9999)
_LIMIT = Input("limit", int, default=None, low=1, high=100_000)

COMMON = (choice("format", ("json", "csv")), RAW)
"""What every address takes."""

RANGED = (FROM, TO)
SEARCHED = (
    *RANGED,
    *(Q, OWNER, TAG),
)
OVERVIEW = (*SEARCHED, SINCE, TYPE, PLATFORM, STATE, SORT)
ANNOTATIONS = (*RANGED, _METRIC)
RELEASES = (_METRIC, replace(_LIMIT, default=100, high=1000))
WINDOWS = (*RANGED, WITHOUT)
COMPARISON = (*WINDOWS, SINCE, _LEVEL, _VALUE, BEFORE_FROM, BEFORE_TO)
WITHIN = (*WINDOWS, SINCE, _LEVEL, _VALUE, WHERE)
SEGMENTS = (*WITHIN, DIVIDED, AGAINST)
SEGMENTS_TREND = (*WITHIN, DIVIDED, _PERIOD)
ESTIMATE = (
    *(*WITHIN, choice("adjust", get_args(Adjustment), "storey"), _LIMIT),
    Input("below", float, default=None),
)
TREND = (*WITHIN, _BY)
FINDS = (*WINDOWS, _LEVEL, MIN_SHARE)
FINDS_TREND = (*FINDS, Input("find", as_given), _BY)
PRIVACY = (Input("household", int, default=1, low=1, high=10**6),)
OUTSIDER = (
    Input("reports", int, default=LEAST_REPORTS, low=1, high=10**12),
    Input("delta", float, default=DELTA, low=SMALLEST_DELTA, high=MOST_DELTA),
)


MAX_VALUES = 100_000
"""The most values of one response; of longer lists, `limit` asks for the largest."""

_NAMED = 20
"""The most series that an error names."""

MAX_CELLS = 1_000_000
"""The most values times periods of one trend."""


def asked_reading(metric: Metric, asked: Asked) -> PageReading:
    """What the request asks of a metric, without its strings."""
    source = current_source()
    days = source.read_range(metric, asked)
    given = {name: asked[name] for name in ("level", "adjust", "where") if name in asked}
    return PageReading(source, metric, days, **given)


def asked_candidates(reading: PageReading, values: Sequence[str]) -> PageReading:
    """The same of the strings to decode: those sent, those named, or those that the operator has
    listed."""
    source, metric = reading.source, reading.metric
    if not metric.needs_candidates:
        _check_values(source, metric, values)
        return reading
    if request.method == "POST":
        return reading.asking(_sent(source))
    if values:
        # A list in the address is a list that is sent, which the table of routes cannot see.
        require_role(Role.ANALYST)
        return reading.asking(value_texts(values, "The list of values"))
    if (listed := source.candidates(metric)) is not None:
        return reading.asking(listed)
    raise refusal(
        400,
        "candidates-missing",
        f"The strings of {metric.name} must be named to be estimated: name them with value=, "
        "send a list with POST, or put one into the folder that DENIABLE_CANDIDATES_DIR names.",
    )


def asked_below(metric: Metric, below: float | None) -> None:
    """Refuse `below` for what is no distribution, and what lies outside of the range.

    Raises:
        ApiProblem: it cannot be answered.
    """
    if below is None:
        return
    kind = metric.type
    if not isinstance(kind, Number) or "distribution" not in kind.ask:
        raise invalid(
            f"below asks for a share of a distribution, which {metric.name} does not have: leave "
            'it out, or declare a number with ask = "distribution"'
        )
    if not kind.range.start <= below <= kind.range.end:
        raise invalid(
            f"below must lie in the range of {metric.name}, {kind.range.low} to "
            f"{kind.range.high}: how numbers are spread outside of it is not known"
        )


def asked_limit(metric: Metric, limit: int | None) -> None:
    """Refuse `limit` for what has no list to shorten.

    Raises:
        ApiProblem: it is given.
    """
    if limit is not None and isinstance(metric.type, Pair | Retention | Number):
        told = (
            f"limit counts the values of a list, and {metric.name} is a {metric.type.name}: leave "
            "it out, or name the series that you want with value="
        )
        if isinstance(metric.type, Number):
            told += ", or ask with below= for the share below a limit"
        raise invalid(told)


def bound(reading: PageReading, values: Collection[str], periods: int | None = None) -> None:
    """Refuse a response of too many lines before it is calculated; of what has periods or segments,
    there is a line for each value in each.

    Raises:
        ApiProblem: it would be too large.
    """
    lines = (periods or 1) * len(values or reading.candidates or reading.metric.values)
    most = MAX_VALUES if periods is None else MAX_CELLS
    if lines > most:
        raise refusal(
            400,
            "response-too-large",
            f"The response would have {lines:,} lines, more than {most:,}. Name some values with "
            "value=, ask for the largest of an estimate with limit=, or for a trend's weeks or "
            "months with by=.",
        )


def _sent(source: DataSource) -> Sequence[str]:
    """The list in the body."""
    kind = request.mimetype
    if kind == "text/plain":
        return sent_list(source, request.get_data(), "The list")
    if kind == "application/json":
        try:
            sent = msgspec.json.decode(request.get_data(), type=_SentList)
        except msgspec.DecodeError as error:
            raise refusal(400, "invalid-body", f"{error}.") from None
        return sent_list(source, sent.candidates, "The list")
    raise refusal(
        415,
        "unsupported-media-type",
        'Send the list as text/plain, one string on each line, or as JSON: {"candidates": [...]}.',
    )


def _check_values(source: DataSource, metric: Metric, values: Sequence[str]) -> None:
    """Refuse values, or series, that a metric does not have.

    Raises:
        ApiProblem: the request sends a list, or names what there is not.
    """
    name, known = metric.name, series_of(metric, source.registry)
    lists = not isinstance(metric.type, Pair | Retention | Number)
    if request.method == "POST":
        if lists:
            told = f"{name} lists its values: ask by GET."
            raise refusal(409, "values-declared", told)
        raise refusal(409, "no-values", f"{name} has no list of values to send: ask by GET.")
    unknown = sorted(set(values).difference(known))
    if not unknown:
        return
    told = (
        f"{name} does not list {len(unknown)} of the values that are asked for. "
        f"/api/v1/metrics/{name} says which it lists."
    )
    if not lists:
        told = f"{name} has no {unknown[0][:40]!r}: value= can be {', '.join(known[:_NAMED])}"
        told += ", ..." if len(known) > _NAMED else "."
    raise refusal(400, "unknown-value", told)


class _SentList(msgspec.Struct, forbid_unknown_fields=True):
    candidates: list[str]
