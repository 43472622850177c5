"""What worker processes are asked to calculate, and how long an answer must be to be theirs.

Each function takes and returns what can be pickled, and knows of no request.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import resvg_py
from numpy.typing import NDArray

from deniable import Registry
from deniable_estimator.annotations import Annotation, by_period
from deniable_estimator.answers.base import Answer, Comparison
from deniable_estimator.answers.distribution import Distribution
from deniable_estimator.answers.files import csv_text, harmless
from deniable_estimator.answers.finds import Finds
from deniable_estimator.answers.pair import PairAnswer
from deniable_estimator.answers.pair_files import series_csv
from deniable_estimator.answers.retention import RetentionAnswer
from deniable_estimator.answers.segmented import Segmented
from deniable_estimator.answers.shares import Shares
from deniable_estimator.asking.comparison import compare
from deniable_estimator.asking.listed import Listed
from deniable_estimator.asking.reading import Question
from deniable_estimator.asking.segment_trends import SegmentTrends
from deniable_estimator.asking.stepping import step_asked
from deniable_estimator.asking.trend import Trend
from deniable_estimator.document.document import to_json as document_json
from deniable_estimator.inputs import Asked
from deniable_estimator.planning.kinds import make
from deniable_estimator.privacy.outsider import outsider_of, outsider_together
from deniable_estimator.statistics.significance import Adjustment

FONT = Path(__file__).parent / "fonts" / "DejaVuSans.ttf"
"""Bundled, so that text can be drawn on a machine without fonts. Letters that it lacks come from
the fonts of the machine."""

_PIECE = 20_000

LIGHT = 1_000
"""Up to so many values or strings an answer is made where it is asked for: that takes some
hundredths of a second, and sending it to another process would take as long."""


def decoded(
    question: Question, level: float, adjust: Adjustment, strings: Listed | None = None
) -> Answer:
    """The estimate; of `strings`, it holds their own tuple, which then need not travel."""
    found = question.estimate(level=level, adjust=adjust)
    if isinstance(found, Shares) and strings is not None and found.values == strings.values:
        found = replace(found, values=strings.values)
    return found


def finds_text(form: str, found: Finds, head: Mapping[str, Any]) -> str:
    """What was found as a file: `json`, `csv`, or `raw` for a CSV with texts as they are."""
    if form != "json":
        return found.to_csv(raw=form == "raw")
    return to_json({**head, **found.to_dict()})


def segment_trends_text(
    form: str, found: SegmentTrends, head: Mapping[str, Any], values: Collection[str] = ()
) -> str:
    """Trends by segment as a file, `csv` or `json`; of some values alone, if any are named."""
    if form != "json":
        return _only(found.to_csv(raw=form == "raw"), values, form)
    told = found.to_dict()
    for each in told["segments"]:
        for period in each["periods"]:
            period["values"] = _named(period["values"], values)
    return to_json({**head, **told})


def segmented_text(
    form: str, found: Segmented, head: Mapping[str, Any], values: Collection[str] = ()
) -> str:
    """An answer by segments as a file, `csv` or `json`; of some values alone, if any are named."""
    if form != "json":
        return _only(found.to_csv(raw=form == "raw"), values, form)
    told = found.to_dict()
    told["tests"] = _named(told["tests"], values)
    rows = told["total"].keys() & {"series", "values"}
    for each in told["differences"]:
        each["values"] = _named(each["values"], values)
    for each in (told["total"], told["rest"], *told["segments"]):
        for name in rows & (each or {}).keys():
            each[name] = _named(each[name], values)
        for name in _CELLS if values else ():
            (each or {}).pop(name, None)
    return to_json({**head, **told})


def compared(before: Answer, after: Answer, strings: Sequence[str] | None = None) -> Comparison:
    """The comparison; of `strings`, it holds their own tuple too."""
    found = compare(before, after)
    if isinstance(strings, Listed) and found.values == strings.values:
        found = replace(found, values=strings.values)
    return found


def estimate_text(
    form: str,
    found: Answer,
    head: Mapping[str, Any],
    places: NDArray[np.intp] | None = None,
    values: Collection[str] = (),
    below: float | None = None,
) -> str:
    """An estimate as a file, `csv` or `json`; of the values at `places` alone, if given.

    Of a number, only the series among `values`, if there are any, and the share `below` a limit.
    It is written in pieces: a million values, all at once, would take a gigabyte.
    """
    if not isinstance(found, Shares):
        return _number_text(form, found, head, values, below)
    asked = np.arange(len(found.values)) if places is None else places
    pieces = [asked[first : first + _PIECE] for first in range(0, len(asked), _PIECE)]
    if form != "json":
        raw = form == "raw"
        header = found.to_csv(asked[:0], raw=raw)
        return header + "".join(found.to_csv(each, raw=raw)[len(header) :] for each in pieces)
    begin, end = to_json({**head, **found.to_dict(asked[:0])}), "]}"
    assert begin.endswith(f'"values": [{end}')
    rows = (to_json(found.to_dict(piece)["values"])[1:-1] for piece in pieces)
    return begin.removesuffix(end) + ", ".join(rows) + end


def _number_text(
    form: str,
    found: Answer,
    head: Mapping[str, Any],
    values: Collection[str],
    below: float | None,
) -> str:
    """The estimate of a number as a file; cells and edges only where no series is named."""
    share = found.share_row(below) if isinstance(found, Distribution) and below is not None else {}
    if form != "json":
        raw = form == "raw"
        told_series = isinstance(found, PairAnswer | RetentionAnswer) and values
        whole = series_csv(found, raw=raw) if told_series else found.to_csv(raw=raw)
        text = _only(whole, values, form)
        if not share:
            return text
        name, *numbers = share.values()
        return text + csv_text((f"share below {name:g}", *numbers, *found.csv_basis()), ())
    told = {**head, **found.to_dict()}
    if values:
        told["series"] = _named(told["series"], values)
        told = {name: each for name, each in told.items() if name not in _CELLS}
    if share:
        told["share_below"] = share
    return to_json(told)


_CELLS = ("cells", "cdf", "margins", "cohorts", "growth")
"""What is left out of an answer with other parts than series where one is named."""


def trend_text(
    form: str,
    found: Trend,
    head: Mapping[str, Any],
    values: Collection[str] = (),
    annotations: Sequence[Annotation] | None = None,
) -> str:
    """A trend as a file; of some values alone, if any are named, and with its step and what is
    noted on its days."""
    step = step_asked(found, values, annotations or ())
    if form != "json":
        noted = None if annotations is None else by_period(found.periods, annotations)
        column = step.column() if step else {}
        return _only(found.to_csv(column, noted, raw=form == "raw"), values, form)
    told = {**found.to_dict(), "step": step and step.to_dict()}
    if annotations is not None:
        # Which other metrics one concerns is no part of this metric.
        told["annotations"] = [
            {"date": each.date, "text": each.text, "link": each.link} for each in annotations
        ]
    for period in told["periods"]:
        period["values"] = _named(period["values"], values)
    return to_json({**head, **told})


def comparison_text(
    form: str,
    found: Comparison,
    head: Mapping[str, Mapping[str, Any]],
    values: Collection[str] = (),
) -> str:
    """A comparison as a file; `head` is what is added to `before` and `after`."""
    if form != "json":
        return _only(found.to_csv(raw=form == "raw"), values, form)
    told = found.to_dict()
    for key, days in head.items():
        told[key] = {**days, **told[key]}
    return to_json({**told, "values": _named(told["values"], values)})


def png(svg: str, scale: int, *, machine_fonts: bool = True) -> bytes:
    """An SVG of ours as a PNG, `scale` times as large. Drawing holds the interpreter's lock."""
    drawn: bytes = resvg_py.svg_to_bytes(
        svg_string=svg,
        zoom=scale,
        font_files=[str(FONT)],
        skip_system_fonts=not machine_fonts,
        font_family="DejaVu Sans",
        serif_family="DejaVu Sans",
        sans_serif_family="DejaVu Sans",
    )
    return drawn


def plan_text(kind: str, asked: Asked) -> str:
    """A plan as JSON."""
    return document_json(make(kind, asked).document)


def outsider_text(registry: Registry, metric: str | None, reports: int, delta: float) -> str:
    """What published sums reveal as JSON, of one metric of the registry or of all together."""
    if metric is None:
        return to_json(outsider_together(registry, reports, delta).to_dict())
    return to_json(outsider_of(registry, registry[metric], reports, delta).to_dict())


def to_json(document: Any) -> str:
    """The document as JSON, in which a number that is none may not stand."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def _named(rows: list[dict[str, Any]], values: Collection[str]) -> list[dict[str, Any]]:
    """The rows of these series; all if there are none."""
    return [row for row in rows if next(iter(row.values())) in values] if values else rows


def _only(text: str, values: Collection[str], form: str) -> str:
    """The header, and the lines whose series is among these; all if there are none."""
    if not values or not text.strip():
        return text
    written = set(values) if form == "raw" else set(map(harmless, values))
    header, *lines = csv.reader(io.StringIO(text, newline=""))
    place = next((header.index(name) for name in ("value", "series") if name in header), None)
    kept = (line for line in lines if place is not None and line[place] in written)
    return csv_text(header, kept, raw=True)
