"""Dates that people want to see beside a metric: a release, an outage, a campaign.

They stand in one TOML file, which is read whole, or refused with a list of every mistake. An
annotation is a neighbour in time and nothing more: nothing here says that it caused a change.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from deniable.protocol.errors import Problem
from deniable_estimator.files import (
    FileEditError,
    TomlChecker,
    alone,
    is_plain_text,
    nearest,
    read_text,
    replace_file,
)
from deniable_estimator.messages import isolated

SCHEMA = 1
"""The version of the format."""

MOST_ANNOTATIONS = 2_000
MOST_TEXT = 200
MOST_LINK = 2_000
MOST_PATTERNS = 100
YEARS = (2000, 2199)

TOP_KEYS = ("schema", "annotations")
KEYS = ("date", "text", "link", "metrics")
"""The keys of an entry."""

_LINK = re.compile(r"https?://(?:(?![\"<>\\^`{|}])[\x21-\x7e])+")
"""ASCII, but for what a link must quote (RFC 3986)."""
_TEXT = f"a line of 1 to {MOST_TEXT} characters, without control characters"
_PATTERN = re.compile(r"[A-Za-z0-9_*?\[\]!-]{1,128}")
_HEAD = f"# What happened when, drawn beside the metrics. docs/how-to/watch.md\nschema = {SCHEMA}\n"


@dataclass(frozen=True, slots=True)
class Annotation:
    """What happened on a day."""

    number: int
    """Its place in the file, from 1."""
    day: date
    """The day (UTC)."""
    time: datetime | None
    """The time (UTC), if the file gives one."""
    text: str
    link: str | None
    metrics: tuple[str, ...]
    """Names or patterns as a shell has them; none means every metric."""

    @property
    def when(self) -> str:
        """Day, or day and time, for people."""
        return f"{self.time:%Y-%m-%d %H:%M} UTC" if self.time else self.day.isoformat()

    @property
    def date(self) -> str:
        """The same for programs (RFC 3339)."""
        return f"{self.time:%Y-%m-%dT%H:%M:%SZ}" if self.time else self.day.isoformat()

    @property
    def hours(self) -> float:
        """How many hours of the day had passed; of a day without a time, half of it."""
        return 12.0 if self.time is None else self.time.hour + self.time.minute / 60

    def concerns(self, metric: str) -> bool:
        """Whether it belongs beside this metric."""
        return not self.metrics or any(fnmatchcase(metric, each) for each in self.metrics)

    def told(self) -> str:
        """One line for people, safe in a terminal."""
        return f"{self.when}: {isolated(self.text)}"

    def to_dict(self) -> dict[str, Any]:
        """The annotation as JSON."""
        return {
            "number": self.number,
            "date": self.date,
            "text": self.text,
            "link": self.link,
            "metrics": list(self.metrics),
        }


def between(
    annotations: Iterable[Annotation],
    first: date | None,
    last: date | None,
    metric: str | None = None,
) -> tuple[Annotation, ...]:
    """Those from the first to the last day, both included, that concern a metric; None is no
    limit."""
    return tuple(
        each
        for each in annotations
        if (first is None or first <= each.day)
        and (last is None or each.day <= last)
        and (metric is None or each.concerns(metric))
    )


def load_annotations(path: Path) -> tuple[Annotation, ...]:
    """Read the annotations from a file, the earliest first; a file that does not exist has none.

    Raises:
        CheckedFileError: the file cannot be read, or has mistakes (all of them are listed).
    """
    return parse_annotations(read_text(path), str(path)) if path.exists() else ()


def parse_annotations(text: str, source: str = "annotations.toml") -> tuple[Annotation, ...]:
    """Read the annotations from TOML text, the earliest first.

    Raises:
        CheckedFileError: the text has mistakes (all of them are listed).
    """
    checker = TomlChecker(text, source)
    if checker.document:
        checker.check_schema(SCHEMA)
    checker.check_keys((), checker.document, TOP_KEYS)
    found = [
        _entry(checker, path, table)
        for path, table in checker.tables("annotations", MOST_ANNOTATIONS)
    ]
    checker.finish()
    return tuple(sorted(filter(None, found), key=lambda each: (each.day, each.hours, each.number)))


def warnings_of(annotations: Sequence[Annotation], metrics: Collection[str]) -> tuple[Problem, ...]:
    """A warning for each name or pattern that fits no metric of the registry. A metric may have
    been removed since, so it is no mistake."""
    return tuple(
        Problem(None, f"annotations.{each.number}.metrics", told, "warning")
        for each in annotations
        for pattern in each.metrics
        if (told := no_metric(pattern, metrics))
    )


def no_metric(pattern: str, metrics: Collection[str]) -> str | None:
    """That no metric is meant, and which may be; None if one is."""
    if any(fnmatchcase(name, pattern) for name in metrics):
        return None
    return f"{pattern} fits no metric of the registry{nearest(pattern, metrics)}"


def _entry(checker: TomlChecker, path: tuple[str, str], table: dict[str, Any]) -> Annotation | None:
    before = len(checker.problems)
    checker.check_keys(path, table, KEYS)
    day, time = _date(checker, path, table.get("date"))
    text, link, metrics = table.get("text"), table.get("link"), table.get("metrics", [])
    if not is_plain_text(text, MOST_TEXT):
        what = "is missing: say what happened" if text is None else f"must be {_TEXT}"
        checker.report((*path, "text"), what)
    if link is not None and (wrong := _bad_link(link)):
        checker.report((*path, "link"), wrong)
    if not isinstance(metrics, list) or len(metrics) > MOST_PATTERNS or not all(
        isinstance(each, str) and _PATTERN.fullmatch(each) for each in metrics
    ):  # fmt: skip
        checker.report(
            (*path, "metrics"),
            f'must be a list of up to {MOST_PATTERNS} metrics, like ["browser", "checkout_*"]',
        )
    elif "metrics" in table and not metrics:
        # An empty list would read as "none", and an absent one means "all".
        checker.report((*path, "metrics"), "is empty: name some, or leave the key out for all")
    if len(checker.problems) > before or day is None:
        return None
    return Annotation(int(path[1]) + 1, day, time, str(text).strip(), link, tuple(metrics))


def _date(
    checker: TomlChecker, path: tuple[str, str], value: Any
) -> tuple[date | None, datetime | None]:
    """The day and, if there is one, the time, both in UTC."""
    time = None
    if isinstance(value, datetime):
        with suppress(OverflowError):
            time = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    day = time.date() if time else value
    if type(day) is date and YEARS[0] <= day.year <= YEARS[1]:
        return day, time
    what = "is missing: write" if value is None else "must be"
    years = f"from {YEARS[0]} to {YEARS[1]}"
    checker.report(
        (*path, "date"),
        f"{what} a day {years} like 2026-11-20, or a time like 2026-11-20T14:30:00Z, "
        "without quotes",
    )
    return None, None


def _bad_link(value: Any) -> str | None:
    """What is wrong with a link; nothing but the web may be linked, so that no link runs a
    script."""
    if isinstance(value, str) and len(value) <= MOST_LINK and _LINK.fullmatch(value):
        with suppress(ValueError):
            parts = urlsplit(value)
            if parts.username is not None or parts.password is not None:
                return (
                    "must not hold a name or a password: everybody who sees the page sees the link"
                )
            # A port that is no number is found by asking for it.
            if parts.hostname and parts.port != 0:
                return None
    return (
        f"must begin with https:// or http:// and name a host, in at most {MOST_LINK:,} ASCII "
        "characters without spaces"
    )


def add_annotation(
    path: Path,
    text: str,
    when: date | datetime,
    link: str | None = None,
    metrics: Sequence[str] = (),
) -> Annotation:
    """Append an entry to the file, which is made if it does not exist; comments and order stay.

    The text is edited, not a parsed document, and the result is read again before it is written: it
    must say exactly what is meant, or nothing is changed.

    Raises:
        CheckedFileError: the file has mistakes, or the new entry has.
        FileEditError: the file cannot be written.
    """
    from deniable.tools.starting.new_metric import toml_value

    # A time is written in UTC and without an offset, so it reads as it is shown.
    at = f"{when:%Y-%m-%dT%H:%M:%SZ}" if isinstance(when, datetime) else when.isoformat()
    keys = [f"date = {at}", f"text = {toml_value(text)}"]
    if link is not None:
        keys.append(f"link = {toml_value(link)}")
    if metrics:
        keys.append(f"metrics = {toml_value(list(metrics))}")
    # By itself first: a mistake in it has no line of the file.
    parse_annotations("\n".join([f"schema = {SCHEMA}", "[[annotations]]", *keys]), "the entry")
    with alone(path):
        before = read_text(path) if path.exists() else ""
        known = parse_annotations(before, str(path))
        end = "\r\n" if "\r\n" in before else "\n"
        body = before or _HEAD
        gap = "" if body.endswith(("\n\n", "\r\n\r\n")) else end
        entry = end.join(["[[annotations]]", *keys, ""])
        after = f"{body if body.endswith(chr(10)) else body + end}{gap}{entry}"
        found = parse_annotations(after, str(path))
        newest = max(found, key=lambda each: each.number)
        # Both are in the order of their days.
        if tuple(each for each in found if each is not newest) != known:
            raise FileEditError(
                f"{path} was not changed: its entries are not written as [[annotations]] tables, "
                "one after the other. Edit it by hand"
            )
        replace_file(path, after, None)  # others may read it
    return newest
