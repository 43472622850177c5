"""Programs that read a running dashboard: Grafana's panels, and a script without any library."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner
from tests.registries import tables

from deniable import Registry
from deniable.tools.command_line import find
from deniable_collector.stores import open_store

from .conftest import REGISTRY, fill, fill_numbers, running_dashboard

pytestmark = pytest.mark.campaign

DOCS = Path(__file__).parents[3] / "docs"
PEOPLE = "c0Yt8nRkV2-hWq5JxZ_e7mDsLbG4uTpA"
PAGE_LOAD = tables(
    page_load={"type": "number", "low": 0, "high": 10, "unit": "s", "ask": "distribution",
               "segments": ["platform"]},
    theme={"type": "category", "values": ["light", "dark"], "segments": ["platform"]},
    plan={"type": "boolean", "window": "month"},
)  # fmt: skip
PAGE_LOAD += '[segments.platform]\nvalues = ["web", "phone"]\n'
GRAFANA: dict[str, Any] = json.loads((DOCS / "grafana" / "deniable.json").read_text())
SHOWN = [each for each in GRAFANA["panels"] if each["type"] != "row"]


@dataclass
class Live:
    """A running dashboard, and a token that may read metrics and estimates."""

    address: str
    token: str

    def get(self, url, **headers):
        """The body's type and text."""
        request = Request(url, headers={"Authorization": f"Bearer {self.token}", **headers})
        with urlopen(request, timeout=120) as answer:
            return answer.headers.get_content_type(), answer.read().decode()


def months_before(today):
    """The first days of the two months before this one, the earlier one first."""
    last = (today.replace(day=1) - timedelta(days=1)).replace(day=1)
    return [(last - timedelta(days=1)).replace(day=1), last]


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """`deniable dashboard` under gunicorn over a SQLite store, on a free port; 20,000 devices
    have reported on each of two days of last week, and on one of last month."""
    folder = tmp_path_factory.mktemp("live")
    (folder / "metrics.toml").write_text((REGISTRY + PAGE_LOAD).replace("2027", "2099"))
    registry = Registry.load(folder / "metrics.toml")
    url = f"sqlite:///{folder}/tallies.db"
    store = open_store(url)
    store.publish({metric.name: [metric.scheme] for metric in registry})
    today = datetime.now(UTC).date()
    for ago, share in ((40, 0.15), (3, 0.25), (2, 0.35)):
        day = (today - timedelta(days=ago)).isoformat()
        fill(store, registry, "browser", [share, 0.99 - share, 0.01, 0.0], 20_000, day)
    fill_numbers(store, registry, "page_load", [0.5 + each % 5 for each in range(20_000)], day)
    fill_numbers(store, registry, "page_load", [0.5 + each % 5 for each in range(5000)], day, 1)
    fill(store, registry, "theme", [0.8, 0.2], 16_000, day)
    fill(store, registry, "theme", [0.4, 0.6], 4_000, day, 1)
    for share, month in zip((0.2, 0.3), months_before(today), strict=True):
        fill(store, registry, "plan", [share, 1 - share], 20_000, f"{month:%Y-%m}")
    store.close()
    options = ["new", "--name", "grafana", "--scope", "read:metrics", "--scope", "read:estimates"]
    made = json.loads(CliRunner().invoke(find("dashboard", "token"), [*options, "--json"]).stdout)
    (folder / "tokens.toml").write_text(made["lines"])
    environ = {
        "DENIABLE_API_TOKENS_FILE": str(folder / "tokens.toml"),
        "DENIABLE_DASHBOARD_TOKEN": PEOPLE,
        "DENIABLE_DATA": str(folder),
        "DENIABLE_RELEASES": str(folder / "releases.db"),
    }
    (folder / "annotations.toml").write_text(
        f'schema = 1\n[[annotations]]\ndate = {datetime.now(UTC).date()}\ntext = "Release 4.2"\n'
        'link = "https://acme.example/releases/4.2"\n'
    )
    with running_dashboard(folder, **environ) as (address, _):
        yield Live(address, made["token"])


def filled(text, variables):
    """The text with Grafana's variables replaced; one that nobody sets is a mistake."""
    return re.sub(r"\$\{([^}]+)\}", lambda found: variables[found[1]], text)


def cells(query, live, variables):
    """The table that the data source makes of a query: a row of typed cells for each object
    under the root selector, or for each line."""
    assert query["source"] == "url"
    assert query["parser"] == "backend"
    options = query["url_options"]
    assert options["method"] == "GET"
    sent = [(each["key"], filled(each["value"], variables)) for each in options["params"]]
    headers = {each["key"]: each["value"] for each in options["headers"]}
    address = f"{filled(query['url'], variables)}?{urlencode(sent)}"
    kind, text = live.get(address, **headers)
    found: Any
    if query["type"] == "csv":
        assert kind == "text/csv"
        found = list(csv.DictReader(io.StringIO(text, newline="")))
    else:
        assert kind == "application/json"
        found = json.loads(text)
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


@pytest.fixture
def variables(live):
    """What Grafana puts in: the dashboard's choices, and its range of 30 days."""
    today = datetime.now(UTC).date()
    return {
        "deniable": live.address,
        "metric": "browser",
        "value": "chrome",
        "number": "page_load",
        "series": "p50",
        "segment": "platform",
        "__from:date:YYYY-MM-DD": (today - timedelta(days=29)).isoformat(),
        "__to:date:YYYY-MM-DD": today.isoformat(),
    }


@pytest.mark.parametrize("panel", SHOWN, ids=lambda panel: str(panel["id"]))
def test_grafana_can_draw_each_panel(live, variables, panel):
    """Each query of the dashboard that is shipped finds its rows, and each column its type."""
    for query in panel["targets"]:
        rows = cells(query, live, variables)
        assert rows
        for column in query["columns"]:
            assert any(row[column["text"]] is not None for row in rows), column["text"]
