"""Segments: public groups of devices, like platforms. Each metric says by which it is counted.

A segment is not private. A report names the segment of its device in clear, as part of its row:
row = combination * (rows of the mechanism) + (row of the mechanism), where combinations count
through the values of the metric's segments, the last segment fastest. What holds is the
conditional guarantee: for a device of segment s and any two values x, y ::

    P(report | x, s) <= e**epsilon * P(report | y, s)

Whatever the segment says about the value by itself is told in clear.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from deniable.protocol import checks
from deniable.protocol.checks import Check, Report, accepted
from deniable.protocol.errors import SchemeError, SegmentError
from deniable.protocol.frozen import frozen
from deniable.protocol.value_list import listed_value, report_mistakes

MAX_COMBINATIONS = 32
"""The most combinations of segments that a metric may be counted by."""

MAX_SEGMENTS = 2
"""The most segments of one metric."""

LEAST_REPORTS = 100
"""With fewer reports in a window a segment says nothing, and its devices hide in a small crowd."""

SEGMENT_KEYS: Mapping[str, Check] = {
    "values": checks.texts,
    # A compiled registry also says that there is none.
    "other": lambda value: None if value is None else checks.text(value),
    "why": checks.text,
}
"""What [segments.NAME] may hold."""

_NAMES = (
    r"(?a)(^|_)"
    r"(id|ids|uid|uuid|guid|user|users|username|email|mail|account|customer|session|serial|"
    r"imei|mac|ip|address|phone|token|hash|fingerprint|device|hostname|birthday)($|_)"
)
"""Words in the name of a segment that say who somebody is. Like the patterns below it is compiled
when it is first used, because few registries have segments."""

_VALUES: tuple[tuple[str, str], ...] = (
    (r"[^@\s]+@[^@\s]+\.[^@\s]+", "an e-mail address"),
    (r"(?i)[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", "a UUID"),
    (r"(19|20)\d\d[-/.]?[01]?\d[-/.]?[0-3]?\d([T ].*)?", "a date"),
    (r"[vV]?\d+(\.\d+){3,}\S*|[vV]?\d+(\.\d+){2}[-+.]\S+", "a version with its build"),
    (r"(?i)(?=[0-9a-f]*\d)[0-9a-f]{8,}", "a hash or an identifier"),
    (r"\+?[\d\s()-]{6,}", "a long number"),
    (r"(?i)([0-9a-f]{0,4}:){2,}[0-9a-f]{0,4}", "an address"),
)
"""Texts that name one device or a few, and what they look like."""


@frozen
class Segment:
    """One declared segment.

    Attributes:
        name: as the registry calls it.
        values: its values in their declared order, in Unicode normal form C.
        other: the value that stands for every text that is not declared, and for a device that
            was not told its segment; None: such values are refused.
        why: why the registry keeps it although it could single devices out.
    """

    name: str
    values: tuple[str, ...]
    other: str | None = None
    why: str | None = None

    def __eq__(self, other: object) -> bool:
        # The rows of a tally depend on nothing else.
        return isinstance(other, Segment) and (self.name, self.values) == (other.name, other.values)

    def __hash__(self) -> int:
        return hash((self.name, self.values))

    def text(self, value: object) -> str:
        """The declared value that an app's value stands for.

        Raises:
            SegmentError: it is no text, or is not declared. The message does not repeat it.
        """
        try:
            return listed_value(value, self.values, self.other)
        except ValueError as error:
            why = str(error)
        # Not in the handler: there the error before would stay in `__context__`, and its frames
        # hold the value.
        raise SegmentError(self.name, why)


def combinations(segments: Iterable[Segment]) -> int:
    """How many combinations of values there are; 1 without segments."""
    return math.prod(len(each.values) for each in segments)


def check_segments(segments: Sequence[Segment]) -> int:
    """How many combinations of their values there are, if a tally may have so many.

    Raises:
        SchemeError: there are too many segments, or combinations of them.
    """
    count = combinations(segments)
    if len(segments) > MAX_SEGMENTS or count > MAX_COMBINATIONS:
        raise SchemeError.of(
            "segment_combinations",
            "the segments have {count:,} combinations; a metric may have {segments} segments, and "
            "{most} combinations: drop a segment, or group values",
            count=count,
            segments=MAX_SEGMENTS,
            most=MAX_COMBINATIONS,
        )
    return count


def labels(segments: Sequence[Segment]) -> list[dict[str, str]]:
    """Every combination in the order of the rows: the name of each segment with its value."""
    found: list[dict[str, str]] = [{}]
    for segment in segments:
        found = [{**each, segment.name: value} for each in found for value in segment.values]
    return found


def told(segments: Iterable[Segment], given: Mapping[str, str]) -> dict[str, str]:
    """The value of each segment that is known: what the device was told, else `other`. A value that
    has left the list counts as `other`, too."""
    found = {}
    for each in segments:
        value = given[each.name] if given.get(each.name) in each.values else each.other
        if value is not None:
            found[each.name] = value
    return found


def place(segments: Sequence[Segment], given: Mapping[str, str]) -> int | None:
    """The number of a combination, from 0; None if it is not known."""
    values = told(segments, given)
    return labels(segments).index(values) if len(values) == len(segments) else None


def read_segment(name: str, table: Mapping[str, Any], report: Report) -> Segment | None:
    """The segment that a table declares; None, after reports, if it cannot be one."""
    unknown = f"is unknown; a segment may hold {', '.join(SEGMENT_KEYS)}"
    held = accepted(table, SEGMENT_KEYS, unknown, report)
    if "values" not in table:
        report(None, 'lacks values: list them, like ["ios", "android", "other"]')
    if "values" not in held:
        return None
    values = [unicodedata.normalize("NFC", value) for value in held["values"]]
    other = held.get("other", "other" if "other" in values else None)
    if other is not None:
        other = unicodedata.normalize("NFC", other)
        values += [other] if other not in values else []
    if not 2 <= len(values) <= MAX_COMBINATIONS:
        report(
            "values",
            f"must list from 2 to {MAX_COMBINATIONS} values, not {len(values)}: group the rare "
            'ones under other = "other"',
        )
        return None
    report_mistakes("values", values, report)
    return Segment(name, tuple(values), other, held.get("why"))


def segments_of(tables: Any) -> tuple[Segment, ...]:
    """The segments that the definition of a scheme names, each with its values.

    Raises:
        SchemeError: it names none in this form.
    """
    if not isinstance(tables, list) or not all(
        isinstance(each, Mapping)
        and set(each) == {"name", "values"}
        and isinstance(each["name"], str)
        for each in tables
    ):
        raise SchemeError("the scheme's segments must be a list of names with their values")
    if len({each["name"] for each in tables}) < len(tables):
        raise SchemeError("the scheme names a segment twice")
    found = [read_segment(each["name"], {"values": each["values"]}, _refuse) for each in tables]
    return tuple(Segment(each.name, each.values) for each in found if each is not None)


def _refuse(key: str | None, message: str) -> NoReturn:
    raise SchemeError(f"a segment of the scheme {message}")


def identifying(segment: Segment) -> str | None:
    """Why a segment looks as if it named single devices; None if it does not."""
    if found := re.search(_NAMES, segment.name):
        return f"is named like an identifier ({found[2]})"
    for value in segment.values:
        for pattern, looks in _VALUES:
            if re.fullmatch(pattern, value):
                return f"lists {value[:40]!r}, which looks like {looks}"
    return None
