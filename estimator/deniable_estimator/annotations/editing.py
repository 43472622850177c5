"""Adds an entry to `annotations.toml`, or removes one; comments and order stay as they are.

A TOML library that keeps comments counts those above an entry as part of the entry before it, and
removes them together. So text is edited here, and the result is read again before it is written:
it must say exactly what is meant, or nothing is changed.

The file is replaced in one step, under a lock that is a file of its own, because the replacement
would take a lock of the file itself away.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

from deniable import DeniableError
from deniable.starting.declaring import toml_value
from deniable.toml_lines import locate
from deniable_estimator.annotations.annotation import Annotation
from deniable_estimator.annotations.file import SCHEMA, parse_annotations
from deniable_estimator.checked_files import read_text

__all__ = ["AnnotationEditError", "add_annotation", "remove_annotation"]

_PATIENCE = 10.0
"""Seconds to wait for another edit."""

_HEAD = f"# What happened when, drawn beside the metrics. docs/annotations.md\nschema = {SCHEMA}\n"


class AnnotationEditError(DeniableError):
    """The file was not changed; the message says why."""


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
        AnnotationEditError: the file cannot be written.
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
    with _alone(path) as before:
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
        _write(path, after)
    return newest


def remove_annotation(path: Path, number: int) -> Annotation:
    """Remove the entry at that place (from 1) and its keys; comments above it stay.

    Raises:
        CheckedFileError: the file has mistakes.
        AnnotationEditError: there is no such entry, or the file cannot be written.
    """
    with _alone(path) as before:
        known = _by_number(parse_annotations(before, str(path)))
        if not 1 <= number <= len(known):
            has = f"1 to {len(known)}" if known else "none"
            raise AnnotationEditError(
                f"{path} has no entry {number}: it has {has}, as `deniable annotate --list` shows"
            )
        lines = before.splitlines(keepends=True)
        places = locate(before)
        begin = places.get(("annotations", str(number - 1)))
        if begin is None:
            raise _by_hand(path)
        before_it, behind = lines[: begin - 1], lines[_end(lines, begin) :]
        if not behind and before_it and not before_it[-1].strip():
            del before_it[-1]  # the empty line that was put above it
        after = "".join(before_it + behind)
        left = [each for each in known if each.number != number]
        expected = [replace(each, number=place) for place, each in enumerate(left, 1)]
        if _by_number(parse_annotations(after, str(path))) != expected:
            raise _by_hand(path)
        _write(path, after)
    return known[number - 1]


def _end(lines: Sequence[str], begin: int) -> int:
    """How many lines the file has up to the end of the entry whose header is line `begin`: those
    of its keys, and one empty line."""
    last = begin
    for place in range(begin, len(lines)):
        text = lines[place].strip()
        if text.startswith("["):
            break
        if text and not text.startswith("#"):
            last = place + 1
    return last + 1 if last < len(lines) and not lines[last].strip() else last


def _by_number(annotations: Sequence[Annotation]) -> list[Annotation]:
    return sorted(annotations, key=lambda each: each.number)


def _by_hand(path: Path) -> AnnotationEditError:
    return AnnotationEditError(
        f"{path} was not changed: its entries are not written as [[annotations]] tables, one after "
        "the other. Edit it by hand"
    )


@contextmanager
def _alone(path: Path) -> Iterator[str]:
    """The text of the file, which nobody else edits meanwhile; empty if there is none.

    Raises:
        AnnotationEditError: another edit does not end, or the folder cannot be written.
    """
    lock = path.with_name(f"{path.name}.lock")
    try:
        file = lock.open("a")
    except OSError as error:
        raise _cannot(path, error) from error
    with file:
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise AnnotationEditError(
                        f"another command has edited {path} for {_PATIENCE:g} seconds: wait for it"
                    ) from None
                time.sleep(0.02)
        yield read_text(path) if path.exists() else ""


def _write(path: Path, text: str) -> None:
    # A link stays a link: what it names is replaced.
    target = path.resolve()
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        new = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            _same_rights(target, new)
            new.replace(target)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _cannot(path, error) from error


def _same_rights(old: Path, new: Path) -> None:
    """Give the new file owner and mode of the old one: the dashboard must be able to read it."""
    if old.exists():
        status = old.stat()
        shutil.copymode(old, new)
        with suppress(PermissionError):
            os.chown(new, status.st_uid, status.st_gid)
    else:
        mask = os.umask(0)
        os.umask(mask)
        new.chmod(0o666 & ~mask)


def _cannot(path: Path, error: OSError) -> AnnotationEditError:
    return AnnotationEditError(
        f"{path} cannot be written ({error.strerror}): its folder must exist, and this user must "
        "be able to write to it"
    )
