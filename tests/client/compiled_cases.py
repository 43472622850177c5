"""Registries whose compiled form client/vectors/compiled.json has, and a forger."""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any

from deniable import Registry, Scheme, compiled
from deniable.mechanisms import Memoizing, rebuild

FILE = Path(__file__).parents[2] / "client" / "vectors" / "compiled.json"


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


@functools.cache
def _whole() -> dict[str, Any]:
    """All metrics in one document."""
    return compiled.to_document(Registry.parse(REGISTRY))


def document(*names: str) -> dict[str, Any]:
    """A document with these metrics alone."""
    whole = copy.deepcopy(_whole())
    return {**whole, "metrics": {name: whole["metrics"][name] for name in names}}


def consistent(metric: dict[str, Any]) -> None:
    """Make a metric's figures and fingerprint those of its parameters, as a forger would."""
    mechanism = rebuild(metric["mechanism"], metric["parameters"])
    scheme = Scheme(metric["type"], mechanism, tuple(metric["values"] or ()))
    metric["scheme"] = scheme.fingerprint
    metric["reveals"]["report"] = mechanism.epsilon
    if isinstance(mechanism, Memoizing):
        metric["reveals"]["memo"] = mechanism.lifetime_epsilon
        metric["reveals"]["fresh"] = mechanism.fresh_epsilon
