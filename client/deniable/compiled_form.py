"""The form of a compiled registry: its keys, and which values each accepts."""

from __future__ import annotations

import re
from datetime import date
from typing import Any, cast

from deniable import windows
from deniable.checks import (
    Check,
    count,
    is_number,
    line,
    one_in,
    one_of,
    or_null,
    positive,
    rate,
    text,
)
from deniable.keys import APP, MAX_LIFETIME_EPSILON, PEOPLE_KEYS
from deniable.mechanisms import MAX_EPSILON, MAX_MEMO_EPSILON
from deniable.metric import ANSWERS, LONGITUDINAL, PLATFORMS
from deniable.types import TYPES

FORMAT = 1
"""The version of the compiled registry's format."""

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _unicode(value: Any) -> str | None:
    if wrong := text(value):
        return wrong
    try:
        cast(str, value).encode()
    except UnicodeEncodeError:
        return "is not valid Unicode"
    return None


def _day(value: Any) -> str | None:
    if isinstance(value, str) and _DAY.fullmatch(value):
        try:
            date.fromisoformat(value)
        except ValueError:
            pass
        else:
            return None
    return "must be a day, like 2027-06-30"


def _matches(pattern: re.Pattern[str], advice: str) -> Check:
    return lambda value: (
        None if isinstance(value, str) and pattern.fullmatch(value) else f"must be {advice}"
    )


def _texts(value: Any) -> str | None:
    fine = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return None if fine else "must be a list of texts"


def _named(choices: tuple[str, ...]) -> Check:
    def check(value: Any) -> str | None:
        fine = _texts(value) is None and len(set(value)) == len(value)
        if fine and all(each in choices for each in value):
            return None
        return f"must be a list of {', '.join(choices)}, each once at most"

    return check


def _object(value: Any) -> str | None:
    return None if isinstance(value, dict) else "must be an object"


def _some(value: Any) -> str | None:
    return _object(value) or (None if value else "holds no metric")


def _figure(value: Any) -> str | None:
    return None if is_number(value) and value >= 0 else "must be a number, not below 0"


TOP: dict[str, Check] = {
    "format": lambda value: None if type(value) is int and value == FORMAT else f"must be {FORMAT}",
    "app": _matches(APP, "a lower-case letter and up to 63 more of a-z, 0-9, _ and -"),
    "lifetime_epsilon": or_null(positive(MAX_LIFETIME_EPSILON)),
    "metrics": _some,
}

PEOPLE: dict[str, Check] = dict.fromkeys(PEOPLE_KEYS, line)
"""What there is in addition at the top, each where it is declared."""

METRIC: dict[str, Check] = {
    "type": one_of(tuple(TYPES)),
    "description": _unicode,
    "expires": _day,
    "window": one_of(windows.KINDS),
    "aggregate": text,
    "answer": one_of(ANSWERS),
    "sample_rate": rate,
    "one_in": or_null(one_in),
    "longitudinal": one_of(LONGITUDINAL),
    "epsilon": positive(MAX_EPSILON),
    "lifetime_epsilon": positive(MAX_LIFETIME_EPSILON),
    "memo_epsilon": or_null(positive(MAX_MEMO_EPSILON)),
    "values": or_null(_texts),
    "other": or_null(text),
    "mechanism": text,
    "parameters": _object,
    "scheme": _matches(re.compile(r"[0-9a-f]{12}"), "12 hexadecimal digits"),
    "reveals": _object,
    "platform": _named(PLATFORMS),
    "unit": or_null(_unicode),
}
"""What a metric of any type holds; some types have more (`MetricType.compiled_checks`)."""

SEGMENTED_TOP = TOP | {"segments": _object}
"""The same where there are segments."""

SEGMENTED_METRIC = METRIC | {"segments": _texts, "rows": count}

SEGMENT: dict[str, Check] = {"values": _texts, "other": or_null(text)}

REVEALS: dict[str, Check] = {
    "report": _figure,
    "memo": or_null(_figure),
    "fresh": or_null(_figure),
}
