"""The parameters of a request of the read API: metric, days and strings."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
from flask import request

from deniable import Metric, windows
from deniable.value_list import value_texts
from deniable_estimator.dashboard.access import require
from deniable_estimator.dashboard.problems import ApiProblem
from deniable_estimator.dashboard.ranges import DayRange, read_range
from deniable_estimator.dashboard.source import DataSource, current_source, declared_metric

__all__ = ["MAX_CELLS", "MAX_VALUES", "asked_candidates", "asked_metric", "asked_range", "bound"]

MAX_VALUES = 100_000
"""The most values of one response; of longer lists, `limit` asks for the largest."""

MAX_CELLS = 1_000_000
"""The most values times periods of one trend."""


def asked_metric(name: str, scope: str) -> tuple[DataSource, Metric]:
    """The metric of that name, if the request's token reaches it."""
    require(scope)
    metric = declared_metric(name)
    require(scope, metric)
    return current_source(), metric


def asked_range(
    source: DataSource, first: str, last: str, without: str = "", kind: windows.Kind = "day"
) -> DayRange:
    """The days from `first` to `last`, as an address has them, and the windows left out."""
    given = {"from": first, "to": last, "without": without}
    return read_range(given, source.clock(), kind)


def asked_candidates(
    source: DataSource, metric: Metric, values: Sequence[str]
) -> Sequence[str] | None:
    """The strings to decode: those sent, those named, or those that the operator has listed."""
    if not metric.needs_candidates:
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
        return source.sent(request.get_data(), name)
    if kind == "application/json":
        try:
            sent = msgspec.json.decode(request.get_data(), type=_Candidates)
        except msgspec.DecodeError as error:
            raise ApiProblem(400, "invalid-body", "Invalid body", f"{error}.") from None
        return source.sent(sent.candidates, name)
    raise ApiProblem(
        415,
        "unsupported-media-type",
        "Unsupported media type",
        'Send the list as text/plain, one string on each line, or as JSON: {"candidates": [...]}.',
    )


class _Candidates(msgspec.Struct, forbid_unknown_fields=True):
    candidates: list[str]
