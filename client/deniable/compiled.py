"""The compiled registry: `metrics.json`, what a device needs of a `metrics.toml`, as JSON.

It holds each mechanism with its integers in force, so that an SDK designs nothing. It ships inside
the app. A reader trusts none of its claims (`deniable.compiled_reading`). `compiled.schema.json`
describes the form, and `client/vectors/compiled.json` holds test vectors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from deniable.compiled_form import FORMAT
from deniable.compiled_reading import read_document, revealed
from deniable.keep import FOREVER
from deniable.keys import PEOPLE_KEYS
from deniable.mechanisms import Memoizing
from deniable.metric import Metric
from deniable.registry import Registry


def to_document(registry: Registry, *, keep: bool = False) -> dict[str, Any]:
    """The registry as `metrics.json` holds it, with its keys in the order of the format.

    `keep` adds how long windows are kept, for a collector. Devices do not need it.
    """
    cap = registry.lifetime_epsilon
    document = {
        "format": FORMAT,
        "app": registry.app,
        **{key: told for key in PEOPLE_KEYS if (told := getattr(registry, key)) is not None},
        "lifetime_epsilon": None if cap is None else float(cap),
    }
    metrics = {metric.name: _compile(metric) for metric in registry}
    for name, table in metrics.items():
        if keep and registry[name].keep:
            table["keep"] = {
                each: FOREVER if days is None else days for each, days in registry[name].keep
            }
    if registry.segments:
        document["segments"] = {
            each.name: {"values": list(each.values), "other": each.other}
            for each in registry.segments.values()
        }
        for name, table in metrics.items():
            table["segments"] = [each.name for each in registry[name].segments]
            table["rows"] = len(registry[name].scheme.mechanism.rows)
    return {**document, "metrics": metrics}


def to_text(document: Mapping[str, Any]) -> str:
    """The text of `metrics.json`; the same registry always gives the same text."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def from_document(document: Any, source: str = "metrics.json") -> Registry:
    """The registry that `to_document` describes.

    Raises:
        RegistryError: the document holds mistakes, or reveals more than it declares (everything
            that is wrong is listed).
    """
    return Registry(**read_document(document, source))


def _compile(metric: Metric) -> dict[str, Any]:
    mechanism, definition = metric.scheme.mechanism, metric.scheme.definition()
    memoized = isinstance(mechanism, Memoizing)
    return {
        "type": metric.type.name,
        "description": metric.description,
        "expires": metric.expires.isoformat(),
        "window": metric.window,
        "aggregate": metric.aggregate,
        "answer": metric.answer,
        "sample_rate": float(metric.sample_rate),
        "one_in": metric.one_in,
        "longitudinal": metric.longitudinal,
        "epsilon": metric.epsilon,
        "lifetime_epsilon": metric.lifetime_epsilon,
        "memo_epsilon": float(metric.memo_limit) if memoized else None,
        "values": definition["values"],
        "other": metric.type.other,
        "mechanism": definition["mechanism"],
        "parameters": definition["parameters"],
        "scheme": metric.scheme.fingerprint,
        "reveals": revealed(mechanism),
        "platform": list(metric.platform),
        "unit": metric.type.unit,
        **metric.type.compiled_keys(),
    }
