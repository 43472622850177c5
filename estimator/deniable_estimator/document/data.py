"""A document as JSON: the values of its facts and frames under their keys, and its sentences."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from deniable_estimator.document.document import Document, Frame, WordedValue


def to_data(document: Document) -> dict[str, Any]:
    """The document as JSON can carry it."""
    return {
        "kind": document.kind,
        "subtitle": document.subtitle,
        "verdict": document.verdict.text,
        "notes": [each.text for each in document.notes],
        **{name: plain(each) for name, each in document.about.items()},
        **{each.key: plain(each.value) for each in document.facts},
        **{each.key: _rows(each) for each in document.frames},
    }


def to_json(document: Document) -> str:
    """The same as text, in which a number that is none may not stand."""
    return json.dumps(to_data(document), ensure_ascii=False, allow_nan=False)


def _rows(frame: Frame) -> list[dict[str, Any]]:
    keys = [each.key for each in frame.columns]
    return [
        {
            key: plain(value.value if isinstance(value, WordedValue) else value)
            for key, value in zip(keys, row, strict=True)
        }
        for row in frame.rows
    ]


def plain(value: Any) -> Any:
    """The value of objects, maps, lists, texts and numbers: an object that knows better says its
    own `to_dict`."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, tuple | list) else value
