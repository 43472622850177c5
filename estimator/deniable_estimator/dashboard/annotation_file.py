"""The file of annotations that is in force, and what is wrong with it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from flask import Flask, current_app

from deniable import Metric
from deniable_estimator.annotations import Annotation, between, load_annotations
from deniable_estimator.files import LastGood
from deniable_estimator.messages import message

_MOST_MISTAKES = 5
"""So many mistakes are shown; the log and `deniable lint` have all."""

_EXTENSION = "deniable_annotations"


def keep_annotations(app: Flask, path: str) -> None:
    """Let the application read the file of annotations, if it is told of one."""
    nothing: tuple[Annotation, ...] = ()
    file = LastGood(Path(path) if path else None, load_annotations, nothing)
    app.extensions[_EXTENSION] = file
    # Mistakes are logged when the dashboard starts, not with the first reader.
    _ = file.value


def current_annotations() -> tuple[Annotation, ...] | None:
    """All annotations that are in force; None without a folder of data."""
    file = _file()
    return None if file.path is None else file.value


def annotations_of(metric: Metric, first: date, last: date) -> tuple[Annotation, ...] | None:
    """Those of a metric from the first to the last day; None where there is no file."""
    known = current_annotations()
    return None if known is None else between(known, first, last, metric.name)


def file_mistakes() -> tuple[str, ...]:
    """What is wrong with the file, a line for each; the name of its folder is not told."""
    error = _file().mistakes
    if error is None:
        return ()
    told = [each.describe(Path(error.source).name) for each in error.problems]
    if (rest := len(told) - _MOST_MISTAKES) > 0:
        told[_MOST_MISTAKES:] = [message("and {count} more", count=rest)]
    return tuple(told)


def _file() -> LastGood[tuple[Annotation, ...]]:
    file: LastGood[tuple[Annotation, ...]] = current_app.extensions[_EXTENSION]
    return file
