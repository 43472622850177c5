"""The parameters of the read API with their bounds, and which of them each address takes; what they
mean stands in `schemas.toml`."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import msgspec
from msgspec import Meta
from werkzeug.datastructures import MultiDict

from deniable.protocol import windows
from deniable_estimator.dashboard.overview.filters import STATE_NAMES
from deniable_estimator.dashboard.overview.listing import SORT_NAMES
from deniable_estimator.dashboard.problems import invalid
from deniable_estimator.dashboard.ranges import LONGEST_SEARCH
from deniable_estimator.inputs import REQUIRED, Asked
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
