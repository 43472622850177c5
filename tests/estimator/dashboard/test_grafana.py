"""Grafana's panels over the read API: the dashboard that is shipped draws each of them."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from .conftest import program_of

FILE = Path(__file__).parents[3] / "docs" / "grafana" / "deniable.json"
PANELS = [each for each in json.loads(FILE.read_text())["panels"] if each["type"] != "row"]
CHOSEN = {
    "deniable": "",
    "metric": "browser",
    "value": "chrome",
    "number": "load_time",
    "series": "p50",
    "segment": "platform",
    "__from:date:YYYY-MM-DD": "2026-10-24",
    "__to:date:YYYY-MM-DD": "2026-11-20",
}
"""What Grafana puts in: the dashboard's choices, and its range of days."""


def filled(text):
    """The text with Grafana's variables replaced; one that nobody sets is a mistake."""
    return re.sub(r"\$\{([^}]+)\}", lambda found: CHOSEN[found[1]], text)


def cells(query, golden):
    """The table that the data source makes of a query: a row of typed cells for each object
    under the root selector, or for each line."""
    assert (query["source"], query["parser"]) == ("url", "backend")
    options = query["url_options"]
    assert options["method"] == "GET"
    answer = program_of(golden.app).get(
        filled(query["url"]),
        query_string=[(each["key"], filled(each["value"])) for each in options["params"]],
        headers={each["key"]: each["value"] for each in options["headers"]},
    )
    found: Any
    if query["type"] == "csv":
        assert answer.mimetype == "text/csv"
        found = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    else:
        found = answer.json
        if query["root_selector"]:
            found = found[query["root_selector"]]
    if isinstance(found, dict):
        found = [found]
    return [
        {column["text"]: typed(row[column["selector"]], column) for column in query["columns"]}
        for row in found
    ]


def typed(cell, column):
    """The cell, if it has the column's type."""
    kind = column["type"]
    if cell is None or cell == "":
        return None
    if kind == "timestamp":
        # Go's ways to write year, month and day, and a time (RFC 3339).
        if column["timestampFormat"] == "2006-01-02T15:04:05Z07:00":
            return datetime.fromisoformat(cell)
        assert column["timestampFormat"] == "2006-01-02"
        return date.fromisoformat(cell)
    if kind == "number":
        assert not isinstance(cell, bool)
        return float(cell)
    assert isinstance(cell, {"string": str, "boolean": bool}[kind])
    return cell


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: str(panel["id"]))
def test_each_panel_is_drawn(golden, panel):
    """Each query finds its rows, and each column its type."""
    for query in panel["targets"]:
        rows = cells(query, golden)
        assert rows
        for column in query["columns"]:
            assert any(row[column["text"]] is not None for row in rows), column["text"]
