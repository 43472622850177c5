"""Adds an entry to `annotations.toml`; comments and order stay as they are.

The text is edited, not a parsed document, and the result is read again before it is written: it
must say exactly what is meant, or nothing is changed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path

from deniable.tools.starting.declaring import toml_value
from deniable_estimator.annotations.annotation import Annotation
from deniable_estimator.annotations.file import SCHEMA, parse_annotations
from deniable_estimator.files import FileEditError, alone, read_text, replace_file

_HEAD = f"# What happened when, drawn beside the metrics. docs/how-to/watch.md\nschema = {SCHEMA}\n"


def add_annotation(
    path: Path,
    text: str,
    when: date | datetime,
    link: str | None = None,
    metrics: Sequence[str] = (),
) -> Annotation:
    """Append an entry to the file, which is made if it does not exist.

    Raises:
        CheckedFileError: the file has mistakes, or the new entry has.
        FileEditError: the file cannot be written.
    """
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
        if _by_number(found)[:-1] != _by_number(known):
            raise _by_hand(path)
        replace_file(path, after, _mode())
    return newest


def _by_number(annotations: Sequence[Annotation]) -> list[Annotation]:
    return sorted(annotations, key=lambda each: each.number)


def _by_hand(path: Path) -> FileEditError:
    return FileEditError(
        f"{path} was not changed: its entries are not written as [[annotations]] tables, one after "
        "the other. Edit it by hand"
    )


def _mode() -> int:
    """The mode of a new file that others may read, under this process's mask."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
