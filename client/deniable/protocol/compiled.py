"""The compiled registry: `metrics.json`, what a device needs of a `metrics.toml`, as JSON.

It holds each mechanism with its integers in force, so that an SDK designs nothing. It ships inside
the app. A reader trusts none of its claims (`deniable.protocol.reading`). `compiled.schema.json`
describes the form, and `client/vectors/compiled.json` holds test vectors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from deniable.protocol.keep import FOREVER
from deniable.protocol.keys import PEOPLE_KEYS
from deniable.protocol.reading import FORMAT, read_document
from deniable.protocol.registry import Registry


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
    segmented = bool(registry.segments)
    metrics = {metric.name: metric.compile(segmented=segmented) for metric in registry}
    for name, table in metrics.items():
        if keep and registry[name].keep:
            table["keep"] = {
                each: FOREVER if days is None else days for each, days in registry[name].keep
            }
    if segmented:
        document["segments"] = {
            each.name: {"values": list(each.values), "other": each.other}
            for each in registry.segments.values()
        }
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
