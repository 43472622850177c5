"""The parameters of the read API: each endpoint's, with their bounds."""

from __future__ import annotations

import math
import unicodedata
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, field
from werkzeug.datastructures import MultiDict

from deniable.protocol import windows
from deniable_estimator.dashboard.overview.filters import LONGEST_SEARCH, State
from deniable_estimator.dashboard.overview.listing import Sort
from deniable_estimator.dashboard.problems import ApiProblem, refusal
from deniable_estimator.planning.kinds import PlanKind
from deniable_estimator.privacy.outsider import DELTA, LEAST_REPORTS, MOST_DELTA, SMALLEST_DELTA
from deniable_estimator.statistics.significance import Adjustment

_T = TypeVar("_T", bound=Struct)

_Since = Annotated[str, Meta(max_length=200)]

_Level = Annotated[float, Meta(ge=0.5, le=0.9999)]

_SomeSegments = Annotated[list[str], Meta(min_length=1, max_length=2)]
_Segments = Annotated[list[str], Meta(max_length=2)]
_Metrics = Annotated[list[str], Meta(max_length=100)]
_Values = Annotated[list[str], Meta(max_length=1000)]
_LISTS = (_SomeSegments, _Segments, _Metrics, _Values)
"""The types of parameters that may be given several times."""


class Common(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every endpoint takes; a parameter that it does not know is a mistake."""

    format: Literal["json", "csv"] | None = None
    """Wins over the Accept header."""
    raw: bool = False
    """Texts of a CSV as they are, for programs."""


class _Ranged(Common, frozen=True, kw_only=True):
    first: str = field(default="", name="from")
    last: str = field(default="", name="to")


class ListParameters(_Ranged, frozen=True, kw_only=True):
    """Of the list of metrics."""

    q: Annotated[str, Meta(max_length=LONGEST_SEARCH)] = ""
    owner: str = ""
    tag: str = ""


class OverviewParameters(ListParameters, frozen=True, kw_only=True):
    """Of the overview."""

    since: _Since = ""
    """The days after this annotation, or after a day like 2026-11-20, in place of from and to."""
    type: str = ""
    platform: str = ""
    state: State | None = None
    sort: Sort = "registry"


class AnnotationParameters(_Ranged, frozen=True, kw_only=True):
    """Of the annotations; without days, all there are."""

    metric: _Metrics = []
    """Only those that concern one of these."""


class ReleasesParameters(Common, frozen=True, kw_only=True):
    """Of the list of releases."""

    metric: _Metrics = []
    """Only those of one of these."""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


class ReleaseParameters(Common, frozen=True, kw_only=True):
    """Of one release."""


class DeclaredParameters(Common, frozen=True, kw_only=True):
    """Of one metric."""


class AnomaliesParameters(_Ranged, frozen=True, kw_only=True):
    """Of what is strange in windows."""

    without: str = ""
    """Windows to leave out, divided by commas."""


class _Valued(AnomaliesParameters, frozen=True, kw_only=True):
    since: _Since = ""
    """The days after this annotation, or after a day like 2026-11-20, in place of from and to."""
    level: _Level = 0.95
    value: _Values = []
    """Only these; of a string metric, the strings to look for. In normal form C, as values are."""

    def __post_init__(self) -> None:
        normal = [unicodedata.normalize("NFC", each) for each in self.value]
        msgspec.structs.force_setattr(self, "value", normal)


class _Within(_Valued, frozen=True, kw_only=True):
    where: _Segments = []
    """Only the reports of these segments, like platform=web."""


class SegmentsParameters(_Within, frozen=True, kw_only=True):
    """Of an answer by segments."""

    by: _SomeSegments
    """The segments, one or two."""
    against: _Segments = []
    """What the others are compared with, like platform=web; by default the largest."""


class SegmentsTrendParameters(_Within, frozen=True, kw_only=True):
    """Of trends by segment."""

    by: _SomeSegments
    """The segments, one or two."""
    period: windows.Kind | None = None


class EstimateParameters(_Within, frozen=True, kw_only=True):
    """Of an estimate."""

    adjust: Adjustment = "storey"
    limit: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    """So many of the largest, the largest first."""
    below: float | None = None
    """Of a distribution: also the share of the numbers below this one."""


class TrendParameters(_Within, frozen=True, kw_only=True):
    """Of a trend."""

    by: windows.Kind | None = None


class FindsParameters(AnomaliesParameters, frozen=True, kw_only=True):
    """Of what a discovery found."""

    level: _Level = 0.95
    min_share: Annotated[float, Meta(ge=0, lt=1)] | None = None
    """Leave out rarer strings; the registry's minimum_share holds too."""


class FindTrendParameters(FindsParameters, frozen=True, kw_only=True):
    """Of the trend of a find."""

    find: str
    """The string; one that is cut ends in three dots, as one letter."""
    by: windows.Kind | None = None


class ComparisonParameters(_Valued, frozen=True, kw_only=True):
    """Of a comparison."""

    before_from: str = ""
    before_to: str = ""


class PrivacyParameters(Common, frozen=True, kw_only=True):
    """Of a guarantee."""

    household: Annotated[int, Meta(ge=1, le=10**6)] = 1


class OutsiderParameters(Common, frozen=True, kw_only=True):
    """Of what published sums reveal."""

    reports: Annotated[int, Meta(ge=1, le=10**12)] = LEAST_REPORTS
    delta: Annotated[float, Meta(ge=SMALLEST_DELTA, le=MOST_DELTA)] = DELTA


def parameters_of(plan: PlanKind) -> type[Common]:
    """The inputs of a plan as the parameters of its address, with their meanings."""
    fields: list[Any] = []
    for each in plan.inputs:
        if "api" not in each.places:
            continue
        meta: dict[str, Any] = {"description": str.__str__(each.help)}
        kind: Any = each.read
        if each.choices:
            kind = Literal[tuple(each.choices)]
        elif each.read is str:
            meta["max_length"] = int(each.high)
        elif each.read is not bool:
            meta |= {"ge": each.low, "le": each.high if each.served is None else each.served}
        kind = Annotated[kind, Meta(**meta)]
        if each.needed:
            fields.append((each.name, kind))
        else:
            fields.append((each.name, kind | None if each.default is None else kind, each.default))
    name = f"{plan.name.title()}PlanParameters"
    made: Any = msgspec.defstruct(name, fields, bases=(Common,), frozen=True, kw_only=True)
    found: type[Common] = made
    return found


def read_parameters(kind: type[_T], arguments: MultiDict[str, str]) -> _T:
    """The parameters that an address gives.

    Raises:
        ApiProblem: one is missing, unknown, given twice or out of bounds; the message names it.
    """
    known = {each.encode_name: each for each in msgspec.structs.fields(kind)}
    found: dict[str, object] = {}
    for name, texts in arguments.lists():
        if name not in known:
            raise _mistake(f"The request contains unknown field `{name}`")
        several = known[name].type in _LISTS
        if not several and len(texts) > 1:
            raise _mistake(f"{name} is given {len(texts)} times: give it once")
        try:
            value = msgspec.convert(texts if several else texts[0], known[name].type, strict=False)
        except msgspec.ValidationError as error:
            raise _mistake(f"{error} - at `{name}`") from None
        if isinstance(value, float) and not math.isfinite(value):
            raise _mistake(f"Expected a finite number - at `{name}`")
        found[known[name].name] = value
    for name, each in known.items():
        if each.required and each.name not in found:
            raise _mistake(f"The request lacks the field `{name}`")
    return kind(**found)


def _mistake(detail: str) -> ApiProblem:
    return refusal(400, "invalid-parameter", f"{detail}.")
