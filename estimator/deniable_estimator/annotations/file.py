"""Reads `annotations.toml`: all annotations, or a list of every mistake in the file."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from deniable.protocol.errors import Problem
from deniable_estimator.annotations.annotation import Annotation
from deniable_estimator.files import (
    TomlChecker,
    is_plain_text,
    nearest,
    read_text,
)

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

_LINK = re.compile(r"https?://[\x21-\x7e]+")
_UNQUOTED = re.compile(r"[\"<>\\^`{|}]")
_PATTERN = re.compile(r"[A-Za-z0-9_*?\[\]!-]{1,128}")


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
        Problem(None, f"annotations.{each.number}.metrics", no_metric(pattern, metrics), "warning")
        for each in annotations
        for pattern in each.metrics
        if not any(_only(each, pattern).concerns(name) for name in metrics)
    )


def no_metric(pattern: str, metrics: Collection[str]) -> str:
    """That no metric is meant, and which may be."""
    return f"{pattern} fits no metric of the registry{nearest(pattern, metrics)}"


def _only(annotation: Annotation, pattern: str) -> Annotation:
    day = annotation.day
    return Annotation(0, day, None, "", None, (pattern,))


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


_TEXT = f"a line of 1 to {MOST_TEXT} characters, without control characters"


def _date(
    checker: TomlChecker, path: tuple[str, str], value: Any
) -> tuple[date | None, datetime | None]:
    """The day and, if there is one, the time, both in UTC."""
    if isinstance(value, datetime):
        try:
            time = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        except OverflowError:
            time = None
        if time is not None and YEARS[0] <= time.year <= YEARS[1]:
            return time.date(), time
    elif isinstance(value, date) and YEARS[0] <= value.year <= YEARS[1]:
        return value, None
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
    fine = isinstance(value, str) and len(value) <= MOST_LINK and _LINK.fullmatch(value)
    if fine and not _UNQUOTED.search(value):
        try:
            parts = urlsplit(value)
            # A port that is no number is found by asking for it.
            fine = bool(parts.hostname) and parts.port != 0
        except ValueError:
            fine = False
        if fine and (parts.username is not None or parts.password is not None):
            return "must not hold a name or a password: everybody who sees the page sees the link"
        if fine:
            return None
    return (
        f"must begin with https:// or http:// and name a host, in at most {MOST_LINK:,} ASCII "
        "characters without spaces"
    )
