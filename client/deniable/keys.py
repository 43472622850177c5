"""The keys of a metric in `metrics.toml`, and which values each accepts."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date
from typing import Any, TypeAlias

from deniable import windows
from deniable.mechanisms import MAX_EPSILON, MAX_MEMO_EPSILON
from deniable.metric import LONGITUDINAL, TYPES

__all__ = [
    "DEFAULTS",
    "KEYS",
    "MAX_DEVICES",
    "MAX_LIFETIME_EPSILON",
    "MIN_SAMPLE_RATE",
    "REQUIRED",
    "SCHEME_KEYS",
    "TOP_KEYS",
    "Check",
    "is_number",
    "positive",
]

TOP_KEYS = ("schema", "app", "lifetime_epsilon", "defaults", "metrics")
"""The keys at the top of the file."""

Check: TypeAlias = Callable[[Any], str | None]
"""Says what is wrong with a value, or nothing."""


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) and value.strip() else "must be text that is not empty"


def _day(value: Any) -> str | None:
    return None if type(value) is date else "must be a date without quotes, like 2027-06-30"


def positive(limit: float) -> Check:
    def check(value: Any) -> str | None:
        if not is_number(value) or not 0 < value <= limit:
            return f"must be a number above 0 and at most {limit:g}"
        return None

    return check


def _one_of(choices: tuple[str, ...]) -> Check:
    return lambda value: None if value in choices else f"must be one of {', '.join(choices)}"


def _texts(value: Any) -> str | None:
    fine = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return None if fine else 'must be a list of texts, like ["checkout", "mobile"]'


MAX_DEVICES = 10**12
"""More than there can be; larger numbers are slips."""

MIN_SAMPLE_RATE = 1e-9
"""One device in a billion."""


def _tags(value: Any) -> str | None:
    return _texts(value) or (None if all(value) else "must not hold an empty text")


def _count(value: Any) -> str | None:
    fine = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_DEVICES
    return None if fine else f"must be a whole number above 0 and at most {MAX_DEVICES:,}"


def _rate(value: Any) -> str | None:
    if not is_number(value) or not MIN_SAMPLE_RATE <= value <= 1:
        return f"must be a number above 0 and at most 1, and not below {MIN_SAMPLE_RATE:g}"
    return None


def is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) <= MAX_DEVICES


MAX_LIFETIME_EPSILON = 10_000.0
"""The largest lifetime epsilon; a number near it protects nothing."""

KEYS: dict[str, Check] = {
    "type": _one_of(TYPES),
    "description": _text,
    "owner": _text,
    "expires": _day,
    "epsilon": positive(MAX_EPSILON),
    "lifetime_epsilon": positive(MAX_LIFETIME_EPSILON),
    "memo_epsilon": positive(MAX_MEMO_EPSILON),
    "values": _texts,
    "values_file": _text,
    "other": _text,
    "window": _one_of(windows.KINDS),
    "aggregate": _text,  # checked with the type
    "sample_rate": _rate,
    "longitudinal": _one_of(LONGITUDINAL),
    "mechanism": _text,  # checked when the scheme is built
    "tags": _tags,
    "devices": _count,
}
REQUIRED = ("type", "description", "owner", "expires", "epsilon", "lifetime_epsilon")
DEFAULTS = ("owner", "expires", "window", "sample_rate", "tags", "devices", "aggregate")
"""The keys of [defaults]. Not the epsilons, which each metric must state."""
SCHEME_KEYS = (
    "type",
    "epsilon",
    "lifetime_epsilon",
    "memo_epsilon",
    "values",
    "values_file",
    "longitudinal",
    "mechanism",
)
"""What a metric's mechanism is made from."""
