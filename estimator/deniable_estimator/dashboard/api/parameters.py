"""The parameters of the read API with their bounds, which of them each address takes, and what a
request asks with them: days, segments and strings of a metric. What they mean stands in
`schemas.toml`."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection, Sequence
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import msgspec
from flask import request
from msgspec import Meta
from werkzeug.datastructures import MultiDict

from deniable import Metric
from deniable.protocol import windows
from deniable.protocol.types.number import Number
from deniable.protocol.types.pair import Pair
from deniable.protocol.types.retention import Retention
from deniable.protocol.value_list import value_texts
from deniable_estimator.asking.query import segments_in
from deniable_estimator.dashboard.access.caller import require_role
from deniable_estimator.dashboard.access.people import Role
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.overview.filters import STATE_NAMES
from deniable_estimator.dashboard.overview.listing import SORT_NAMES
from deniable_estimator.dashboard.problems import invalid, refusal
from deniable_estimator.dashboard.ranges import LONGEST_SEARCH, read_range
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.dashboard.uploads import sent_list
from deniable_estimator.inputs import REQUIRED, Asked
from deniable_estimator.kinds.registry import series_of
from deniable_estimator.planning.inputs import PlanKind
from deniable_estimator.privacy.outsider import DELTA, LEAST_REPORTS, MOST_DELTA, SMALLEST_DELTA
from deniable_estimator.statistics.significance import Adjustment


class Parameter(NamedTuple):
    """What an address may give under a name."""

    name: str
    type: Any = str
    default: Any = ""
    help: str = ""
    """What it means, if `schemas.toml` does not say it."""


_WHERE, _AGAINST = (
    Parameter(name, Annotated[list[str], Meta(max_length=2)], []) for name in ("where", "against")
)
_METRIC = Parameter("metric", Annotated[list[str], Meta(max_length=100)], [])
_VALUE = Parameter("value", Annotated[list[str], Meta(max_length=1000)], [])
_SPLIT = Parameter("by", Annotated[list[str], Meta(min_length=1, max_length=2)], REQUIRED)
_BY, _PERIOD = (Parameter(name, windows.Kind, None) for name in ("by", "period"))
_LEVEL = Parameter("level", Annotated[float, Meta(ge=0.5, le=0.9999)], 0.95)
_SINCE = Parameter("since", Annotated[str, Meta(max_length=200)])

COMMON = (Parameter("format", Literal["json", "csv"], None), Parameter("raw", bool, False))
"""What every address takes."""

RANGED = (Parameter("from"), Parameter("to"))
SEARCHED = (
    *RANGED,
    Parameter("q", Annotated[str, Meta(max_length=LONGEST_SEARCH)]),
    Parameter("owner"),
    Parameter("tag"),
)
OVERVIEW = (
    *(*SEARCHED, _SINCE, Parameter("type"), Parameter("platform")),
    Parameter("state", Literal[tuple(STATE_NAMES)], None),
    Parameter("sort", Literal[tuple(SORT_NAMES)], "registry"),
)
ANNOTATIONS = (*RANGED, _METRIC)
RELEASES = (_METRIC, Parameter("limit", Annotated[int, Meta(ge=1, le=1000)], 100))
WINDOWS = (*RANGED, Parameter("without"))
COMPARISON = (
    *(*WINDOWS, _SINCE, _LEVEL, _VALUE),
    *(Parameter("before_from"), Parameter("before_to")),
)
WITHIN = (*WINDOWS, _SINCE, _LEVEL, _VALUE, _WHERE)
SEGMENTS = (*WITHIN, _SPLIT, _AGAINST)
SEGMENTS_TREND = (*WITHIN, _SPLIT, _PERIOD)
ESTIMATE = (
    *(*WITHIN, Parameter("adjust", Adjustment, "storey")),
    *(Parameter("limit", Annotated[int, Meta(ge=1, le=100_000)], None),),
    *(Parameter("below", float, None),),
)
TREND = (*WITHIN, _BY)
FINDS = (*WINDOWS, _LEVEL, Parameter("min_share", Annotated[float, Meta(ge=0, lt=1)], None))
FINDS_TREND = (*FINDS, Parameter("find", str, REQUIRED), _BY)
PRIVACY = (Parameter("household", Annotated[int, Meta(ge=1, le=10**6)], 1),)
OUTSIDER = (
    Parameter("reports", Annotated[int, Meta(ge=1, le=10**12)], LEAST_REPORTS),
    Parameter("delta", Annotated[float, Meta(ge=SMALLEST_DELTA, le=MOST_DELTA)], DELTA),
)


def parameters_of(plan: PlanKind) -> tuple[Parameter, ...]:
    """The inputs of a plan as the parameters of its address."""
    found = []
    for each in plan.inputs:
        if "api" not in each.places:
            continue
        kind: Any = each.read
        if each.choices:
            kind = Literal[tuple(each.choices)]
        elif each.read is str:
            kind = Annotated[str, Meta(max_length=int(each.high))]
        elif each.read is not bool:
            most = each.high if each.served is None else each.served
            kind = Annotated[kind, Meta(ge=each.low, le=most)]
        found.append(Parameter(each.name, kind, each.default, str.__str__(each.help)))
    return tuple(found)


def read_parameters(parameters: Sequence[Parameter], arguments: MultiDict[str, str]) -> Asked:
    """What an address gives for each of these parameters; texts of which there may be several are
    in normal form C, as values are.

    Raises:
        ApiProblem: one is missing, unknown, given twice or out of bounds; the message names it.
    """
    known = {each.name: each for each in parameters}
    found = {each.name: each.default for each in parameters}
    for name, texts in arguments.lists():
        if name not in known:
            raise invalid(f"The request contains unknown field `{name}`")
        kind = known[name].type
        several = get_origin(getattr(kind, "__origin__", None)) is list
        if not several and len(texts) > 1:
            raise invalid(f"{name} is given {len(texts)} times: give it once")
        try:
            value = msgspec.convert(texts if several else texts[0], kind, strict=False)
        except msgspec.ValidationError as error:
            parts = (kind, *get_args(kind))
            choices = [
                text for each in parts if get_origin(each) is Literal for text in get_args(each)
            ]
            choose = f": write {' or '.join(choices)}" if choices else ""
            raise invalid(f"{error} - at `{name}`{choose}") from None
        if isinstance(value, float) and not math.isfinite(value):
            raise invalid(f"Expected a finite number - at `{name}`")
        found[name] = [unicodedata.normalize("NFC", each) for each in value] if several else value
    for name, value in found.items():
        if value is REQUIRED:
            raise invalid(f"The request lacks the field `{name}`")
    return found


MAX_VALUES = 100_000
"""The most values of one response; of longer lists, `limit` asks for the largest."""

_NAMED = 20
"""The most series that an error names."""

MAX_CELLS = 1_000_000
"""The most values times periods of one trend."""


def asked_reading(metric: Metric, asked: Asked) -> PageReading:
    """What the request asks of a metric, without its strings."""
    source = current_source()
    days = read_range(asked, source.seen_until, metric.window, metric)
    where = asked_segments("where", asked.get("where", ()))
    given = {name: asked[name] for name in ("level", "adjust") if name in asked}
    return PageReading(source, metric, days, where=where, **given)


def asked_segments(name: str, texts: Sequence[str]) -> dict[str, str]:
    """The segments of a parameter, each written like platform=web.

    Raises:
        ApiProblem: one is not.
    """
    try:
        return segments_in(texts)
    except ValueError:
        told = f"{name} takes a segment with its value, like platform=web, each once"
        raise invalid(told) from None


def asked_candidates(reading: PageReading, values: Sequence[str]) -> PageReading:
    """The same of the strings to decode: those sent, those named, or those that the operator has
    listed."""
    return reading.asking(_candidates(reading.source, reading.metric, values))


def _candidates(source: DataSource, metric: Metric, values: Sequence[str]) -> Sequence[str] | None:
    if not metric.needs_candidates:
        _check_values(source, metric, values)
        return None
    if request.method == "POST":
        return _sent(source, "The list")
    if values:
        # A list in the address is a list that is sent, which the table of routes cannot see.
        require_role(Role.ANALYST)
        return value_texts(values, "The list of values")
    if (listed := source.candidates(metric)) is not None:
        return listed
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


def _sent(source: DataSource, name: str) -> Sequence[str]:
    """The list in the body."""
    kind = request.mimetype
    if kind == "text/plain":
        return sent_list(source, request.get_data(), name)
    if kind == "application/json":
        try:
            sent = msgspec.json.decode(request.get_data(), type=_SentList)
        except msgspec.DecodeError as error:
            raise refusal(400, "invalid-body", f"{error}.") from None
        return sent_list(source, sent.candidates, name)
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
