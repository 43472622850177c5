"""The parameters of a request of the read API: metric, days and strings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import msgspec
from flask import request

from deniable import Metric
from deniable.protocol import windows
from deniable.protocol.types import Number, Pair, Retention
from deniable.protocol.value_list import value_texts
from deniable_estimator.answers.distribution import series_names
from deniable_estimator.answers.pair import pair_series
from deniable_estimator.answers.retention import retention_series
from deniable_estimator.asking.trend import GROUPS
from deniable_estimator.dashboard.access import require, require_role
from deniable_estimator.dashboard.access.roles import Role
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.problems import ApiProblem
from deniable_estimator.dashboard.ranges import DayRange, read_range
from deniable_estimator.dashboard.source import current_source, declared_metric
from deniable_estimator.dashboard.uploads import sent_list

MAX_VALUES = 100_000
"""The most values of one response; of longer lists, `limit` asks for the largest."""

_NAMED = 20
"""The most series that an error names."""

MAX_CELLS = 1_000_000
"""The most values times periods of one trend."""


def asked_metric(name: str, scope: str) -> tuple[DataSource, Metric]:
    """The metric of that name, if the request's token reaches it."""
    require(scope)
    metric = declared_metric(name)
    require(scope, metric)
    return current_source(), metric


def asked_range(
    source: DataSource,
    first: str,
    last: str,
    without: str = "",
    metric: Metric | None = None,
    where: Sequence[str] = (),
    since: str = "",
) -> DayRange:
    """The days of a metric from `first` to `last`, or `since` something, as an address has them,
    the windows left out, and the segments that count."""
    kind: windows.Kind = metric.window if metric else "day"
    given = {"since": since, "from": first, "to": last, "without": without}
    days = read_range(given, source.seen_until, kind, metric)
    return replace(days, where=tuple(sorted(asked_segments("where", where).items())))


def asked_segments(name: str, texts: Sequence[str]) -> dict[str, str]:
    """The segments of a parameter, each written like platform=web.

    Raises:
        ApiProblem: one is not.
    """
    found: dict[str, str] = {}
    for each in texts:
        segment, equals, value = each.partition("=")
        if not (segment and equals and value) or segment in found:
            raise _invalid(f"{name} takes a segment with its value, like platform=web, each once")
        found[segment] = value
    return found


def asked_candidates(
    source: DataSource, metric: Metric, values: Sequence[str]
) -> Sequence[str] | None:
    """The strings to decode: those sent, those named, or those that the operator has listed."""
    if not metric.needs_candidates:
        if isinstance(metric.type, Number):
            _check_series(metric.name, _number_names(source, metric.name, metric.type), values)
            return None
        if isinstance(metric.type, Pair):
            _check_series(metric.name, pair_series(metric.type), values)
            return None
        if isinstance(metric.type, Retention):
            _check_series(metric.name, retention_series(metric.type), values)
            return None
        if request.method == "POST":
            raise ApiProblem(
                409,
                "values-declared",
                "Values declared",
                f"{metric.name} lists its values: ask by GET.",
            )
        if unknown := set(values) - set(metric.values):
            raise ApiProblem(
                400,
                "unknown-value",
                "Unknown value",
                f"{metric.name} does not list {len(unknown)} of the values that are asked for. "
                f"/api/v1/metrics/{metric.name} says which it lists.",
            )
        return None
    if request.method == "POST":
        return _sent(source, "The list")
    if values:
        # A list in the address is a list that is sent, which the table of routes cannot see.
        require_role(Role.ANALYST)
        return value_texts(values, "The list of values")
    if (listed := source.candidates(metric)) is not None:
        return listed
    raise ApiProblem(
        400,
        "candidates-missing",
        "Candidates missing",
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
        raise _invalid(
            f"below asks for a share of a distribution, which {metric.name} does not have: leave "
            'it out, or declare a number with ask = "distribution"'
        )
    if not kind.range.start <= below <= kind.range.end:
        raise _invalid(
            f"below must lie in the range of {metric.name}, {kind.range.low} to "
            f"{kind.range.high}: how numbers are spread outside of it is not known"
        )


def asked_grouping(metric: Metric, by: windows.Kind) -> None:
    """Refuse periods that the metric's windows do not add up to.

    Raises:
        ApiProblem: they are shorter than a window.
    """
    if by not in GROUPS[metric.window]:
        known = ", ".join(GROUPS[metric.window])
        raise _invalid(f"by takes {known} here: {metric.name} has windows of a {metric.window}")


def asked_limit(metric: Metric, limit: int | None) -> None:
    """Refuse `limit` for a number, which has no list to shorten.

    Raises:
        ApiProblem: it is given.
    """
    if limit is not None and isinstance(metric.type, Pair | Retention):
        raise _invalid(
            f"limit counts the values of a list, and {metric.name} is a {metric.type.name}: leave "
            "it out, or name the series that you want with value="
        )
    if limit is not None and isinstance(metric.type, Number):
        raise _invalid(
            f"limit counts the values of a list, and {metric.name} is a number: leave it out, name "
            "the numbers that you want with value=, or ask with below= for the share below a limit"
        )


def bound(
    metric: Metric,
    candidates: Sequence[str] | None,
    values: Collection[str],
    most: int,
    periods: int = 1,
) -> None:
    """Refuse a response of more than so many lines before it is calculated.

    Raises:
        ApiProblem: it would be too large.
    """
    lines = periods * len(values or candidates or metric.values)
    if lines > most:
        raise ApiProblem(
            400,
            "response-too-large",
            "Response too large",
            f"The response would have {lines:,} lines, more than {most:,}. Name some values with "
            "value=, ask for the largest of an estimate with limit=, or for a trend's weeks or "
            "months with by=.",
        )


def _sent(source: DataSource, name: str) -> Sequence[str]:
    """The list in the body."""
    kind = request.mimetype
    if kind == "text/plain":
        return sent_list(source, request.get_data(), name)
    if kind == "application/json":
        try:
            sent = msgspec.json.decode(request.get_data(), type=_Candidates)
        except msgspec.DecodeError as error:
            raise ApiProblem(400, "invalid-body", "Invalid body", f"{error}.") from None
        return sent_list(source, sent.candidates, name)
    raise ApiProblem(
        415,
        "unsupported-media-type",
        "Unsupported media type",
        'Send the list as text/plain, one string on each line, or as JSON: {"candidates": [...]}.',
    )


def _number_names(source: DataSource, name: str, kind: Number) -> tuple[str, ...]:
    """The series of a number. If a pair of it is reported in its place, these are the shares of
    the pair's ranges; days on which it was reported by itself still have its own."""
    pair = source.registry.unasked.get(name)
    if pair is None:
        return series_names(kind)
    assert isinstance(pair.type, Pair)
    ranges = next(part.values for part in pair.type.parts if part.metric == name)
    return (*ranges, *series_names(kind))


def _check_series(name: str, known: Sequence[str], values: Sequence[str]) -> None:
    """Refuse what is not asked of a number or a pair, which have these series.

    Raises:
        ApiProblem: the request sends a list, or names a series that there is not.
    """
    if request.method == "POST":
        raise ApiProblem(
            409,
            "no-values",
            "No values",
            f"{name} has no list of values to send: ask by GET.",
        )
    if unknown := sorted(set(values) - set(known)):
        raise ApiProblem(
            400,
            "unknown-value",
            "Unknown value",
            f"{name} has no {unknown[0][:40]!r}: value= can be {', '.join(known[:_NAMED])}"
            f"{', ...' if len(known) > _NAMED else '.'}",
        )


def _invalid(detail: str) -> ApiProblem:
    return ApiProblem(400, "invalid-parameter", "Invalid parameter", f"{detail}.")


class _Candidates(msgspec.Struct, forbid_unknown_fields=True):
    candidates: list[str]
