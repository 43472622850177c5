"""What worker processes are asked to calculate, and how long an answer must be to be theirs.

Each function takes and returns what can be pickled, and knows of no request.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import resvg_py
from numpy.typing import NDArray

from deniable import Registry
from deniable_estimator.annotations import Annotation
from deniable_estimator.asking.fetch import Question
from deniable_estimator.asking.listed import Listed
from deniable_estimator.asking.trend import Trend
from deniable_estimator.asking.trend_words import step_of
from deniable_estimator.document.csv_files import Filed, Table, csv_text, table_of, told_of
from deniable_estimator.document.document import plain
from deniable_estimator.document.document import to_json as document_json
from deniable_estimator.inputs import Asked
from deniable_estimator.kinds import make_plan
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.numbers.distribution import Distribution
from deniable_estimator.kinds.shares.shares import Shares
from deniable_estimator.privacy.outsider import outsider_of
from deniable_estimator.statistics.significance import Adjustment

FONT = Path(__file__).parent / "fonts" / "DejaVuSans.ttf"
"""Bundled, so that text can be drawn on a machine without fonts. Letters that it lacks come from
the fonts of the machine."""

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


def file_text(
    form: str,
    found: Filed,
    head: Mapping[str, Any],
    values: Collection[str] = (),
    more: Mapping[str, Any] | None = None,
) -> str:
    """What was found as a file: `json`, with `head` before it and `more` behind it, `csv`, or `raw`
    for a CSV with texts as they are; of some series alone, if any are named."""
    if form != "json":
        return _table_text(form, table_of(found.csv_table(), values))
    told = found.to_dict()
    return json_text({**head, **(told_of(told, values) if values else told), **(more or {})})


def estimate_text(
    form: str,
    found: Answer,
    head: Mapping[str, Any],
    places: NDArray[np.intp] | None = None,
    values: Collection[str] = (),
    below: float | None = None,
) -> str:
    """An estimate as a file; of the values at `places` alone, if given. Of a number, only the
    series among `values`, if there are any, and the share `below` a limit."""
    if not isinstance(found, Shares):
        return _number_text(form, found, head, values, below)
    if form != "json":
        return _table_text(form, found.based(found.own_table(places)))
    begin, end = json_text({**head, **found.to_dict(np.arange(0))}), "]}"
    assert begin.endswith(f'"values": [{end}')
    rows = (json_text(found.numbers(each)["values"])[1:-1] for each in found.pieces(places))
    return begin.removesuffix(end) + ", ".join(rows) + end


def _number_text(
    form: str,
    found: Answer,
    head: Mapping[str, Any],
    values: Collection[str],
    below: float | None,
) -> str:
    share = found.share_row(below) if isinstance(found, Distribution) and below is not None else {}
    if form == "json":
        return file_text(form, found, head, values, {"share_below": share} if share else {})
    header, lines = table_of(found.series_table(), values) if values else found.own_table()
    if share:
        limit, *numbers = share.values()
        lines = chain(lines, [(f"share below {limit:g}", *numbers)])
    return _table_text(form, found.based((header, lines)))


def _table_text(form: str, table: Table) -> str:
    return csv_text(*table, raw=form == "raw")


def trend_text(
    form: str,
    found: Trend,
    head: Mapping[str, Any],
    values: Collection[str] = (),
    annotations: Sequence[Annotation] | None = None,
) -> str:
    """A trend as a file; of some values alone, if any are named, and with its step and what is
    noted on its days."""
    step = step_of(found, values, annotations or ())
    if form != "json":
        table = found.csv_table(step.column() if step else {}, annotations)
        return _table_text(form, table_of(table, values))
    more: dict[str, Any] = {"step": step and step.to_dict()}
    if annotations is not None:
        # Which other metrics one concerns is no part of this metric.
        more["annotations"] = [
            {"date": each.date, "text": each.text, "link": each.link} for each in annotations
        ]
    return file_text(form, found, head, values, more)


def png(svg: str, *, machine_fonts: bool = True) -> bytes:
    """An SVG of ours as a PNG, twice as large. Drawing holds the interpreter's lock."""
    drawn: bytes = resvg_py.svg_to_bytes(
        svg_string=svg,
        zoom=2,
        font_files=[str(FONT)],
        skip_system_fonts=not machine_fonts,
        font_family="DejaVu Sans",
        serif_family="DejaVu Sans",
        sans_serif_family="DejaVu Sans",
    )
    return drawn


def plan_text(kind: str, asked: Asked) -> str:
    """A plan as JSON."""
    return document_json(make_plan(kind, asked).document)


def outsider_text(registry: Registry, metric: str | None, reports: int, delta: float) -> str:
    """What published sums reveal as JSON, of one metric of the registry or of all together."""
    chosen = None if metric is None else registry[metric]
    return json_text(plain(outsider_of(registry, chosen, reports, delta)))


def json_text(document: Any) -> str:
    """The document as JSON, in which a number that is none may not stand."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False)
