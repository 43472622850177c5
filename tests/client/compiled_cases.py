"""The cases of client/vectors/compiled.json: good documents, and each of them with one fault."""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deniable import Registry, Scheme, compiled
from deniable.mechanisms import Memoizing, SubsetSelection, rebuild

FILE = Path(__file__).parents[2] / "client" / "vectors" / "compiled.json"

ABOUT = (
    "Compiled registries (docs/device.md, client/deniable/compiled.schema.json). A document with "
    "an `error` must be refused; it is the path of one mistake, and a reader may report others. "
    "What is refused for its `epsilon` or `memo_epsilon` is consistent, but reveals more than it "
    "declares."
)

REGISTRY = """
schema = 1
app = "editor"
lifetime_epsilon = 40.0
[defaults]
owner = "growth@acme.example"
expires = 2027-06-30
tags = ["desktop"]
[metrics.dark_mode]
type = "boolean"
description = "Dark mode is on."
epsilon = 1.0
lifetime_epsilon = 8.0
sample_rate = 0.02
aggregate = "max"
devices = 1000
[metrics.browser]
type = "category"
description = "Le navigateur utilisé."
values = ["firefox", "chrome", "safari", "edge", "søk", "other"]
epsilon = 1.0
lifetime_epsilon = 8.0
platform = "web"
answer = "at_once"
aggregate = "first"
[metrics.plan]
type = "category"
description = "The plan."
values = ["free", "team", "firm"]
epsilon = 0.5
lifetime_epsilon = 2.0
platform = ["web", "python"]
mechanism = "symmetric_unary_encoding"
window = "week"
[metrics.country]
type = "category"
description = "The country."
values = ["no", "se", "dk", "fi", "is", "de", "fr", "it"]
epsilon = 2.0
lifetime_epsilon = 8.0
mechanism = "projective_geometry"
[metrics.cookies]
type = "category"
description = "Which cookies are kept."
values = ["all", "some", "none"]
epsilon = 1.0
memo_epsilon = 2.5
lifetime_epsilon = 6.0
longitudinal = "memoize"
[metrics.theme]
type = "category"
description = "The theme, by its text."
values = ["light", "dark", "system"]
epsilon = 1.0
lifetime_epsilon = 4.0
longitudinal = "memoize"
mechanism = "memoized_local_hashing"
[metrics.plugin]
type = "string"
description = "A plugin in use."
epsilon = 1.0
lifetime_epsilon = 8.0
window = "month"
aggregate = "any"
[metrics.homepage]
type = "string"
description = "The homepage."
epsilon = 1.1
lifetime_epsilon = 8.0
longitudinal = "memoize"
mechanism = "rappor_paper"
[metrics.photos]
type = "number"
description = "Photos taken."
low = 0
high = 40
integer = true
ask = "mean"
aggregate = "count"
epsilon = 1.0
lifetime_epsilon = 8.0
[metrics.startup]
type = "number"
description = "How long the start took."
low = 0.05
high = 20
unit = "s"
scale = "log"
ask = ["mean", "distribution"]
aggregate = "mean"
cells = 64
epsilon = 1.0
lifetime_epsilon = 8.0
[metrics.width]
type = "number"
description = "The width of the window."
low = 0
high = 4000
unit = "px"
ask = "distribution"
epsilon = 3.0
lifetime_epsilon = 9.0
"""

SEGMENTED = """
schema = 1
app = "editor"
[defaults]
owner = "growth@acme.example"
expires = 2027-06-30
[segments.platform]
values = ["ios", "android", "søk"]
other = "other"
[segments.plan]
values = ["free", "paid"]
[metrics.dark_mode]
type = "boolean"
description = "Dark mode is on."
epsilon = 1.0
lifetime_epsilon = 8.0
segments = ["platform", "plan"]
[metrics.plugin]
type = "string"
description = "A plugin in use."
epsilon = 1.0
lifetime_epsilon = 8.0
longitudinal = "memoize"
segments = ["platform"]
[metrics.photos]
type = "number"
description = "Photos taken."
low = 0
high = 40
ask = ["mean", "distribution"]
epsilon = 1.0
lifetime_epsilon = 8.0
"""

Edit = Callable[[dict[str, Any]], None]


@functools.cache
def _whole() -> dict[str, Any]:
    """All metrics in one document."""
    return compiled.to_document(Registry.parse(REGISTRY))


def document(*names: str) -> dict[str, Any]:
    """A document with these metrics alone."""
    whole = copy.deepcopy(_whole())
    return {**whole, "metrics": {name: whole["metrics"][name] for name in names}}


def _put(*path: str, value: Any) -> Edit:
    def edit(table: dict[str, Any]) -> None:
        for key in path[:-1]:
            table = table[key]
        table[path[-1]] = value

    return edit


def _drop(*path: str) -> Edit:
    def edit(table: dict[str, Any]) -> None:
        for key in path[:-1]:
            table = table[key]
        del table[path[-1]]

    return edit


def consistent(metric: dict[str, Any]) -> None:
    """Make a metric's figures and fingerprint those of its parameters, as a forger would."""
    mechanism = rebuild(metric["mechanism"], metric["parameters"])
    scheme = Scheme(metric["type"], mechanism, tuple(metric["values"] or ()))
    metric["scheme"] = scheme.fingerprint
    metric["reveals"]["report"] = mechanism.epsilon
    if isinstance(mechanism, Memoizing):
        metric["reveals"]["memo"] = mechanism.lifetime_epsilon
        metric["reveals"]["fresh"] = mechanism.fresh_epsilon


def _forged(*path: str, value: Any) -> Edit:
    def edit(metric: dict[str, Any]) -> None:
        _put(*path, value=value)(metric)
        consistent(metric)

    return edit


def _of_lists(metric: dict[str, Any]) -> None:
    made = SubsetSelection.design(3, 1.0)
    metric["mechanism"], metric["parameters"] = made.name, made.parameters()
    consistent(metric)


def _forged_level(metric: dict[str, Any]) -> None:
    metric["parameters"]["thresholds"][0] = 2**53 - 2**40
    consistent(metric)


def _smaller(metric: dict[str, Any]) -> None:
    scheme = metric["scheme"]
    _forged("parameters", "threshold", value=5_000_000_000_000_000)(metric)
    metric["scheme"] = scheme


TOP_FAULTS: list[tuple[str, str, Edit]] = [
    ("another format", "format", _put("format", value=2)),
    ("a format that is a text", "format", _put("format", value="1")),
    ("no format", "format", _drop("format")),
    ("no app", "app", _drop("app")),
    ("an app that is no name", "app", _put("app", value="My Editor")),
    ("no cap", "lifetime_epsilon", _drop("lifetime_epsilon")),
    ("a cap of zero", "lifetime_epsilon", _put("lifetime_epsilon", value=0)),
    ("a cap that is a text", "lifetime_epsilon", _put("lifetime_epsilon", value="40")),
    ("a cap above the largest", "lifetime_epsilon", _put("lifetime_epsilon", value=10_001)),
    ("no metrics", "metrics", _drop("metrics")),
    ("an empty table of metrics", "metrics", _put("metrics", value={})),
    ("a list of metrics", "metrics", _put("metrics", value=[])),
    ("an unknown key", "owner", _put("owner", value="growth@acme.example")),
    ("a metric that is no object", "metrics.more", _put("metrics", "more", value=None)),
]

SEGMENT_FAULTS: list[tuple[str, str, Edit]] = [
    ("no segments", "metrics.dark_mode.segments", _drop("segments")),
    ("segments that are a list", "segments", _put("segments", value=[])),
    ("a segment's name", "segments.Plan", _put("segments", "Plan", value={})),
    ("a segment that is no object", "segments.plan", _put("segments", "plan", value=None)),
    ("a segment without other", "segments.plan.other", _drop("segments", "plan", "other")),
    ("an unknown key of a segment", "segments.plan.why", _put("segments", "plan", "why", value="")),
    (
        "a segment of one value",
        "segments.plan.values",
        _put("segments", "plan", "values", value=["a"]),
    ),
    (
        "a segment of 33 values",
        "segments.plan.values",
        _put("segments", "plan", "values", value=[str(each) for each in range(33)]),
    ),
    (
        "a segment's value twice",
        "segments.plan.values",
        _put("segments", "plan", "values", value=["free", "free"]),
    ),
    (
        "a segment's value not in normal form",
        "segments.plan.values",
        _put("segments", "plan", "values", value=["free", "a\u030a"]),
    ),
    (
        "an other that is no value",
        "segments.plan.other",
        _put("segments", "plan", "other", value="x"),
    ),
    (
        "a metric of an unknown segment",
        "metrics.dark_mode.segments",
        _put("metrics", "dark_mode", "segments", value=["shoe"]),
    ),
    (
        "a metric of one segment twice",
        "metrics.dark_mode.segments",
        _put("metrics", "dark_mode", "segments", value=["plan", "plan"]),
    ),
    (
        "a metric without segments",
        "metrics.dark_mode.segments",
        _drop("metrics", "dark_mode", "segments"),
    ),
    (
        "segments in another order",
        "metrics.dark_mode.scheme",
        _put("metrics", "dark_mode", "segments", value=["plan", "platform"]),
    ),
    (
        "more than 32 combinations",
        "metrics.dark_mode.segments",
        _put("segments", "plan", "values", value=[str(each) for each in range(9)]),
    ),
    ("no rows", "metrics.plugin.rows", _drop("metrics", "plugin", "rows")),
    ("rows that are none", "metrics.plugin.rows", _put("metrics", "plugin", "rows", value=0)),
]

FAULTS: dict[str, list[tuple[str, str, Edit]]] = {
    "browser": [
        *((f"no {key}", key, _drop(key)) for key in _whole()["metrics"]["browser"]),
        ("an unknown key", "owner", _put("owner", value="growth@acme.example")),
        ("an unknown type", "type", _put("type", value="colour")),
        ("an empty description", "description", _put("description", value=" ")),
        ("a day that is none", "expires", _put("expires", value="2027-02-30")),
        ("a day without zeros", "expires", _put("expires", value="2027-6-30")),
        ("an unknown window", "window", _put("window", value="hour")),
        ("an aggregate of another type", "aggregate", _put("aggregate", value="max")),
        ("at once with the last value", "answer", _put("aggregate", value="last")),
        ("an unknown answer", "answer", _put("answer", value="later")),
        ("a rate of zero", "sample_rate", _put("sample_rate", value=0)),
        ("a rate above 1", "sample_rate", _put("sample_rate", value=1.5)),
        ("a rate that is a text", "sample_rate", _put("sample_rate", value="0.5")),
        ("an unknown longitudinal", "longitudinal", _put("longitudinal", value="never")),
        ("memos that are none", "longitudinal", _put("longitudinal", value="memoize")),
        ("an epsilon of zero", "epsilon", _put("epsilon", value=0)),
        ("an epsilon above the largest", "epsilon", _put("epsilon", value=10.5)),
        ("an epsilon that is a text", "epsilon", _put("epsilon", value="1")),
        ("an epsilon that is true", "epsilon", _put("epsilon", value=True)),
        ("an epsilon below the one in force", "epsilon", _put("epsilon", value=0.9)),
        ("a lifetime below one report", "lifetime_epsilon", _put("lifetime_epsilon", value=0.5)),
        ("a memo where there is none", "memo_epsilon", _put("memo_epsilon", value=2.0)),
        ("no list of values", "values", _put("values", value=None)),
        ("a value that is a number", "values", _put("values", value=[1, 2, 3, 4, 5, 6])),
        ("a value too few", "values", _put("values", value=["firefox", "chrome", "other"])),
        ("a value twice", "values", _put("values", value=[*"aabcd", "other"])),
        ("a control character", "values", _put("values", value=[*"abcd", "\u0007", "other"])),
        (
            "a value not in normal form",
            "values",
            _put("values", value=[*"abcd", "a\u030a", "other"]),
        ),
        ("values in another order", "scheme", _put("values", value=[*"edcba", "other"])),
        ("an other that is no value", "other", _put("other", value="none")),
        ("an unknown mechanism", "parameters", _put("mechanism", value="magic")),
        ("auto", "parameters", _put("mechanism", value="auto")),
        ("a mechanism with other parameters", "parameters", _put("mechanism", value="rappor")),
        ("parameters that are a list", "parameters", _put("parameters", value=[6, 2])),
        ("a parameter too few", "parameters", _drop("parameters", "k")),
        ("a parameter too many", "parameters", _put("parameters", "seed", value=1)),
        ("a threshold of one", "parameters", _put("parameters", "threshold", value=2**53)),
        ("a threshold below zero", "parameters", _put("parameters", "threshold", value=-1)),
        ("a threshold that is a text", "parameters", _put("parameters", "threshold", value="1")),
        (
            "a threshold that is no integer",
            "parameters",
            _put("parameters", "threshold", value=0.5),
        ),
        (
            "a larger threshold",
            "reveals.report",
            _put("parameters", "threshold", value=5189199575106478),
        ),
        (
            "a larger threshold, consistent",
            "epsilon",
            _forged("parameters", "threshold", value=5_200_000_000_000_000),
        ),
        (
            "a smaller threshold",
            "scheme",
            _smaller,
        ),
        ("another fingerprint", "scheme", _put("scheme", value="0123456789ab")),
        ("a fingerprint in upper case", "scheme", _put("scheme", value="0123456789AB")),
        ("figures without memo", "reveals.memo", _drop("reveals", "memo")),
        ("an unknown figure", "reveals.total", _put("reveals", "total", value=1.0)),
        ("figures that are a number", "reveals", _put("reveals", value=1.0)),
        ("a figure that is too small", "reveals.report", _put("reveals", "report", value=0.5)),
        ("no figure of a report", "reveals.report", _put("reveals", "report", value=None)),
        ("a figure of memos", "reveals.memo", _put("reveals", "memo", value=2.0)),
        ("a platform that is a text", "platform", _put("platform", value="web")),
        ("a platform twice", "platform", _put("platform", value=["web", "web"])),
        ("an unknown platform", "platform", _put("platform", value=["fridge"])),
        ("a unit", "unit", _put("unit", value="ms")),
    ],
    "dark_mode": [
        ("values in another order", "values", _put("values", value=["false", "true"])),
        ("an other", "other", _put("other", value="false")),
        (
            "a mechanism over three values",
            "values",
            _forged("parameters", value={"size": 3, "k": 1, "threshold": 4_000_000_000_000_000}),
        ),
    ],
    "cookies": [
        ("no limit of memos", "memo_epsilon", _put("memo_epsilon", value=None)),
        ("memos above the lifetime", "memo_epsilon", _put("lifetime_epsilon", value=2.0)),
        ("memos above the limit", "memo_epsilon", _put("memo_epsilon", value=2.4)),
        ("memos below a report", "memo_epsilon", _put("memo_epsilon", value=1.0)),
        ("memos without memory", "longitudinal", _put("longitudinal", value="fresh")),
        ("a figure of memos that is too small", "reveals.memo", _put("reveals", "memo", value=1.0)),
        (
            "a figure of fresh noise that is too small",
            "reveals.fresh",
            _put("reveals", "fresh", value=0.1),
        ),
        ("no figure of memos", "reveals.memo", _put("reveals", "memo", value=None)),
        (
            "larger memos, consistent",
            "memo_epsilon",
            _forged("parameters", "memo", value=2**53 - 2**40),
        ),
        (
            "less fresh noise, consistent",
            "epsilon",
            _forged("parameters", "fresh", value=2**53 - 2**40),
        ),
    ],
    "plugin": [
        ("a list of values", "values", _put("values", value=["a", "b"])),
        ("an other", "other", _put("other", value="a")),
        ("no salt", "parameters", _drop("parameters", "salt")),
        ("a mechanism of lists", "mechanism", _of_lists),
        (
            "a larger threshold, consistent",
            "epsilon",
            _forged("parameters", "threshold", value=2**53 - 2**40),
        ),
    ],
    "photos": [
        ("a list of values", "values", _put("values", value=["a", "b"])),
        ("an unknown aggregate", "aggregate", _put("aggregate", value="median")),
        ("a bound that is a number", "parameters", _put("parameters", "low", value=0)),
        ("bounds the wrong way round", "parameters", _put("parameters", "low", value="41")),
        ("memos", "longitudinal", _put("longitudinal", value="memoize")),
        ("levels that fall", "parameters", lambda metric: metric["parameters"]["levels"].reverse()),
        (
            "a wider window, consistent",
            "epsilon",
            _forged("parameters", "threshold", value=2**53 - 2**40),
        ),
    ],
    "startup": [
        ("an empty unit", "unit", _put("unit", value="")),
        (
            "weights above 16",
            "parameters",
            lambda metric: metric["parameters"]["weights"].append(1),
        ),
        (
            "a larger threshold in one level, consistent",
            "epsilon",
            _forged_level,
        ),
        (
            "a larger threshold of the mean, consistent",
            "epsilon",
            _forged("parameters", "mean_threshold", value=2**53 - 2**40),
        ),
    ],
}


def cases() -> list[dict[str, Any]]:
    """All cases, as the file holds them."""
    whole = _whole()
    found: list[dict[str, Any]] = [{"name": "every kind of metric", "document": whole}]
    uncapped = document("browser")
    uncapped["lifetime_epsilon"] = None
    found.append({"name": "without a cap", "document": uncapped})
    listed = document("browser")
    listed["metrics"]["browser"]["other"] = None
    found.append({"name": "no value for the rest", "document": listed})
    for why, error, edit in TOP_FAULTS:
        made = document("dark_mode")
        edit(made)
        found.append({"name": why, "document": made, "error": error})
    renamed = document("dark_mode")
    renamed["metrics"] = {"Dark mode": renamed["metrics"]["dark_mode"]}
    found.append({"name": "a metric's name", "document": renamed, "error": "metrics.Dark mode"})
    joint = compiled.to_document(Registry.parse(SEGMENTED))
    found.append({"name": "segments", "document": joint})
    for why, error, edit in SEGMENT_FAULTS:
        made = copy.deepcopy(joint)
        edit(made)
        found.append({"name": f"segments: {why}", "document": made, "error": error})
    for name, faults in FAULTS.items():
        for why, error, edit in faults:
            made = document(name)
            edit(made["metrics"][name])
            path = f"metrics.{name}.{error}"
            found.append({"name": f"{name}: {why}", "document": made, "error": path})
    return found


def text() -> str:
    """The text of the file: one case on a line."""
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases())
    return f'{{\n"about": {json.dumps(ABOUT)},\n"cases": [\n{lines}\n]\n}}\n'
