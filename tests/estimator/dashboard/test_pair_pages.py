"""Pages and API of pairs: the heat map in both directions, its words, files, and bad addresses."""

from __future__ import annotations

import csv
import io
import json
import re
import secrets
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path

import jsonschema_rs
import numpy as np
import pytest
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import Store, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_collector.upkeep.retention import SETTLED
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.dashboard import api, create_app
from deniable_estimator.dashboard.released_views import view_of
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.releasing.ledger import ReleaseLedger
from deniable_estimator.releasing.making import release
from deniable_estimator.releasing.preparing import prepare
from deniable_estimator.releasing.request import ReleaseRequest

from .conftest import NOW, TOKEN, YESTERDAY

SCRIPT = "<script>alert(1)</script>"
PAIRS = f"""
schema = 1
app = "example"
[defaults]
owner = "growth@acme.example"
expires = 2027-06-30

[metrics.plan]
type = "category"
description = "Which plan is it?"
values = ["free", "pro", "{SCRIPT}"]
epsilon = 1.0
lifetime_epsilon = 8.0

[metrics.dark_mode]
type = "boolean"
description = "Is dark mode on?"
epsilon = 1.0
lifetime_epsilon = 8.0

[metrics.plan_by_mode]
type = "pair"
of = ["plan", "dark_mode"]
description = "Do plan and dark mode go together?"
epsilon = 2.0
lifetime_epsilon = 100.0
"""
DAYS = ("2026-11-13", "2026-11-18", "2026-11-19", YESTERDAY)
TABLE = np.array([[0.30, 0.20], [0.10, 0.35], [0.021, 0.029]])


def fill_pair(store: Store, registry: Registry, day: str, n: int, seed: int) -> None:
    metric = registry["plan_by_mode"]
    rng = np.random.default_rng(seed)
    tally = sample_tally(
        metric.scheme, rng.multinomial(n, TABLE.ravel()), rng, metric=metric.name, window=day
    )
    (row,) = tally.rows
    key = TallyRowKey(TallyKey(metric.name, tally.scheme, day), 0)
    cells = Increment(len(row.cells), row.reports, range(len(row.cells)), row.cells.tolist())
    store.fold(Commit((secrets.token_hex(16),), {key: cells}), NOW)


@pytest.fixture
def pair_text() -> str:
    return PAIRS


@pytest.fixture
def pair_store(tmp_path: Path, pair_text: str) -> Iterator[Store]:
    registry = Registry.parse(pair_text)
    store = open_store(f"sqlite:///{tmp_path}/pairs.db")
    store.publish({metric.name: [metric.scheme] for metric in registry})
    for seed, day in enumerate(DAYS):
        fill_pair(store, registry, day, 3000, seed)
    yield store
    store.close()


def reader_of(store: Store, text: str) -> FlaskClient:
    settings = DashboardSettings(dashboard_token=TOKEN)
    app = create_app(settings, store=store, registry=Registry.parse(text), clock=lambda: NOW)
    client = app.test_client()
    client.environ_base["HTTP_ACCEPT"] = "text/html"
    assert client.post("/login", data={"token": TOKEN}).status_code == 303
    return client


@pytest.fixture
def pair_reader(pair_store: Store, pair_text: str) -> FlaskClient:
    return reader_of(pair_store, pair_text)


def heading(page: str) -> str:
    found = re.search(r'<table class="heat"[^>]*>\s*<thead><tr><th scope="col">([^<]*)</th>', page)
    assert found
    return found[1]


def test_the_page_says_whether_there_is_anything(pair_reader: FlaskClient) -> None:
    """The headline is the verdict; the heat map has figures in its cells, fades what is uncertain,
    and says "too few" where the condition hardly occurs."""
    page = pair_reader.get("/metric/plan_by_mode").text
    assert "plan and dark_mode depend on each other" in page
    assert heading(page) == "plan"
    assert re.search(r'<td class="carries up4">[\d.]+%<small>', page)
    assert 'class="faded"' in page
    assert SCRIPT not in page
    assert escape(SCRIPT) in page
    assert "Beyond chance, points" in page


def test_the_page_leads_to_the_planner(pair_reader: FlaskClient) -> None:
    """The planner for pairs opens with the sizes of both lists and the crowd."""
    page = pair_reader.get("/metric/plan_by_mode").text
    found = re.search(r'href="(/plan/pair[^"]*)"', page)
    assert found is not None
    planner = pair_reader.get(found[1].replace("&amp;", "&"))
    assert planner.status_code == 200
    for name, text in (("rows", "3"), ("columns", "2"), ("devices", "3000")):
        assert re.search(f'name="{name}" value="{text}"', planner.text)


def test_the_direction_is_in_the_address(pair_reader: FlaskClient) -> None:
    """given=dark_mode turns the map round; the link to it keeps the days."""
    page = pair_reader.get("/metric/plan_by_mode?given=dark_mode&from=2026-11-19").text
    assert heading(page) == "dark_mode"
    assert re.search(r'<a href="[^"]*from=2026-11-19[^"]*given=plan', page)


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/metric/plan_by_mode?given=browser", 400),
        ("/metric/plan?given=plan", 400),
        ("/metric/plan_by_mode?limit=3", 400),
        ("/metric/plan_by_mode?value=nothing", 400),
    ],
)
def test_a_wrong_address_is_refused(pair_reader: FlaskClient, address: str, status: int) -> None:
    """Another metric, a direction of what is no pair, and keys of other kinds are mistakes."""
    assert pair_reader.get(address).status_code == status


def test_one_conditional_over_time(pair_reader: FlaskClient) -> None:
    """The trend of a conditional is drawn, and others are offered."""
    page = pair_reader.get("/metric/plan_by_mode").text
    assert "Over time: " in page
    assert "given plan=free" in page
    name = "plan=pro given dark_mode=true"
    chosen = pair_reader.get("/metric/plan_by_mode", query_string={"value": name})
    assert chosen.status_code == 200
    assert name in chosen.text


def test_files_and_pictures(pair_reader: FlaskClient) -> None:
    """Every file of the page can be downloaded, in both directions."""
    for name in ("plan_by_mode", "plan_by_mode/trend"):
        for form in ("csv", "json"):
            assert pair_reader.get(f"/metric/{name}.{form}").status_code == 200, (name, form)
    for given in ("plan", "dark_mode"):
        svg = pair_reader.get(f"/metric/plan_by_mode.svg?given={given}")
        assert svg.status_code == 200
        assert SCRIPT not in svg.text
    assert pair_reader.get("/metric/plan_by_mode.png").data.startswith(b"\x89PNG")
    assert pair_reader.get("/metric/plan_by_mode/trend.svg").status_code == 200


def test_overview_and_comparison(pair_reader: FlaskClient) -> None:
    """The card has the verdict and one conditional; two periods can be compared."""
    page = pair_reader.get("/").text
    assert "depend on each other" in page
    compared = pair_reader.get(f"/metric/plan_by_mode/compare?from={YESTERDAY}&to={YESTERDAY}")
    assert compared.status_code == 200
    assert "dark_mode=true given plan=free" in compared.text


def test_the_label_adds_up(pair_reader: FlaskClient) -> None:
    """The privacy label of a pair, and of its metrics, says the sum of the epsilons."""
    page = pair_reader.get("/metric/plan_by_mode").text
    assert "at most epsilon 4.000" in page
    assert "recorded both metrics in the window" in page
    assert "at most epsilon 3.000" in pair_reader.get("/metric/plan").text


def test_an_empty_pair(tmp_path: Path) -> None:
    """Without reports the page says so, and nothing fails."""
    registry = Registry.parse(PAIRS)
    store = open_store(f"sqlite:///{tmp_path}/empty.db")
    store.publish({metric.name: [metric.scheme] for metric in registry})
    reader = reader_of(store, PAIRS)
    assert "No reports in these days" in reader.get("/metric/plan_by_mode").text
    assert reader.get("/").status_code == 200
    store.close()


def test_few_reports(tmp_path: Path) -> None:
    """With fewer reports than the test takes, the page says how many it takes."""
    registry = Registry.parse(PAIRS)
    store = open_store(f"sqlite:///{tmp_path}/few.db")
    store.publish({metric.name: [metric.scheme] for metric in registry})
    fill_pair(store, registry, YESTERDAY, 40, 1)
    page = reader_of(store, PAIRS).get("/metric/plan_by_mode").text
    assert "40 reports are too few for the test of independence" in page
    store.close()


def test_a_large_pair_fits_into_a_page(tmp_path: Path) -> None:
    """900 cells take a page of less than 250 KB: figures without intervals, and 100 lines."""
    values = [f"value {each}" for each in range(30)]
    text = PAIRS.replace(f'["free", "pro", "{SCRIPT}"]', str(values).replace("'", '"'))
    text = text.replace(
        'type = "boolean"', 'type = "number"\nlow = 0\nhigh = 60\nask = "mean"'
    ).replace('"dark_mode"]', f'"dark_mode"]\nbins = {{ dark_mode = {list(range(1, 30))} }}')
    registry = Registry.parse(text)
    store = open_store(f"sqlite:///{tmp_path}/large.db")
    store.publish({metric.name: [metric.scheme] for metric in registry})
    metric = registry["plan_by_mode"]
    rng = np.random.default_rng(1)
    counts = rng.multinomial(50_000, np.full(900, 1 / 900))
    tally = sample_tally(metric.scheme, counts, rng, metric=metric.name, window=YESTERDAY)
    cells = tally.rows[0].cells
    key = TallyRowKey(TallyKey(metric.name, tally.scheme, YESTERDAY), 0)
    found = Increment(900, 50_000, range(900), cells.tolist())
    store.fold(Commit((secrets.token_hex(16),), {key: found}), NOW)
    page = reader_of(store, text).get("/metric/plan_by_mode")
    assert page.status_code == 200
    assert len(page.data) < 250_000
    assert "800 cells nearer to independence are not listed" in page.text
    store.close()


FORGOTTEN = PAIRS + 'forget = "marginals"\n'


@pytest.mark.parametrize("pair_text", [FORGOTTEN])
def test_the_page_of_a_forgotten_metric(pair_reader: FlaskClient) -> None:
    """Its page shows the shares that the pair gives, says so, and has its files."""
    page = pair_reader.get("/metric/plan").text
    assert "the shares come from the reports of plan_by_mode" in page
    assert "its shares come from the reports of plan_by_mode" in page
    assert "12,000 reports" in page
    assert pair_reader.get("/metric/dark_mode").status_code == 200
    assert pair_reader.get("/metric/plan.csv").status_code == 200
    assert pair_reader.get("/").status_code == 200


@pytest.mark.parametrize("pair_text", [FORGOTTEN])
def test_a_forgotten_metric_has_the_epsilon_of_its_pair(pair_reader: FlaskClient) -> None:
    """What one report reveals of such a metric is that of the pair, which devices report in its
    place: on its page, in the overview and beside a comparison. So are the days with data."""
    page = pair_reader.get("/metric/plan").text
    assert "2 per report, 100 in a lifetime" in page
    assert "nothing reported yet" not in page
    assert "Data since" in page
    days = {"from": DAYS[2], "to": DAYS[2], "before_from": DAYS[1], "before_to": DAYS[1]}
    compared = pair_reader.get("/metric/plan/compare", query_string=days)
    assert compared.status_code == 200
    overview = pair_reader.get("/").text
    for text in (page, overview, compared.text):
        assert "88.1%" in text
        assert "73.2%" not in text
    assert "</abbr> 1.0</span>" not in overview


@pytest.mark.parametrize("pair_text", [FORGOTTEN])
def test_the_planner_of_a_forgotten_metric(pair_reader: FlaskClient) -> None:
    """Its page leads to the planner of the pair, with the pair's epsilon: devices report that."""
    links = [
        re.search(r'href="(/plan[^"]*[?][^"]*)"', pair_reader.get(f"/metric/{name}").text)
        for name in ("plan", "plan_by_mode")
    ]
    assert links[0] is not None
    assert links[1] is not None
    assert links[0][1] == links[1][1]
    assert "?epsilon=2&" in links[0][1].replace("&amp;", "&")


RANGES = (
    FORGOTTEN.replace(
        'type = "boolean"\n', 'type = "number"\nlow = 0\nhigh = 60\nunit = "min"\nask = "mean"\n'
    )
    .replace("dark_mode", "minutes")
    .replace('"minutes"]', '"minutes"]\nbins = { minutes = [15] }')
)


@pytest.mark.parametrize("pair_text", [RANGES])
def test_the_page_of_a_forgotten_number(pair_reader: FlaskClient) -> None:
    """Its page shows the shares of the pair's ranges, by day and by week, and its files open. It is
    compared with days before the first report, too."""
    page = pair_reader.get("/metric/minutes")
    assert page.status_code == 200
    assert "the shares come from the reports of plan_by_mode" in page.text
    assert "15 or more" in page.text
    for more in ("?by=week", "/trend.csv", "/compare", ".csv"):
        at = f"/metric/minutes{more}"
        assert pair_reader.get(at).status_code == 200, at


@pytest.mark.parametrize("pair_text", [RANGES])
def test_the_api_names_the_ranges_of_a_forgotten_number(pair_reader: FlaskClient) -> None:
    """`value=` takes the ranges whose shares the answer has, and a wrong one is refused with
    them."""
    ask = pair_reader.application.test_client()
    base = "/api/v1/metrics/minutes"
    for path in ("estimate", "trend", "comparison"):
        given = {"value": "below 15"}
        found = ask.get(f"{base}/{path}", headers=AUTHORIZED, query_string=given)
        assert found.status_code == 200, path
        assert "below 15" in found.text
        assert "15 or more" not in found.text
    refused = ask.get(f"{base}/estimate", headers=AUTHORIZED, query_string={"value": "15"})
    assert refused.status_code == 400
    assert "below 15, 15 or more, mean" in refused.get_json()["detail"]


def test_a_forgotten_number_is_released_as_shares(tmp_path: Path) -> None:
    """Its released numbers are shares of ranges: a table of values, in percent and without the
    number's unit, in files and on pages."""
    registry = Registry.parse(RANGES)
    store = open_store(f"sqlite:///{tmp_path}/pairs.db")
    store.publish({metric.name: [metric.scheme] for metric in registry})
    for place, day in enumerate(DAYS):
        fill_pair(store, registry, day, 3000, place)
    later = NOW + SETTLED + 86_400
    ledger = ReleaseLedger(tmp_path / "releases.sqlite", 1e-6, None)
    made = release(prepare(store, registry, ReleaseRequest("minutes"), later), ledger, now=later)
    assert made.data["columns"][0] == "value"
    assert (made.manifest["estimates"], made.manifest["unit"]) == ("shares", None)
    (kept,) = ledger.listed()
    ledger.close()
    store.close()
    rows = view_of(kept, 10).rows
    assert [row.name for row in rows] == ["below 15", "15 or more"]
    assert rows[0].estimate == f"{made.data['rows'][0][1]:.2%}"


AUTHORIZED = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json"}


def test_the_api_of_a_pair(pair_reader: FlaskClient) -> None:
    """Estimates, trends and privacy of a pair by the API; some series by name; wrong ones are
    refused with what there is."""
    ask = pair_reader.application.test_client()
    base = "/api/v1/metrics/plan_by_mode"
    found = ask.get(f"{base}/estimate", headers=AUTHORIZED).get_json()
    assert found["kind"] == "pair"
    assert len(found["cells"]) == 6
    description = json.loads(Path(api.__file__).with_name("openapi.json").read_text("utf-8"))
    schema = {
        "$ref": "#/components/schemas/Estimate",
        "components": description["components"],
    }
    assert jsonschema_rs.Draft202012Validator(schema).is_valid(found)
    name = "dark_mode=true given plan=free"
    some = ask.get(f"{base}/estimate", query_string={"value": name}, headers=AUTHORIZED).get_json()
    assert [each["series"] for each in some["series"]] == [name]
    assert "cells" not in some
    lines = ask.get(
        f"{base}/estimate", query_string={"value": name, "format": "csv"}, headers=AUTHORIZED
    ).text
    (line,) = csv.DictReader(io.StringIO(lines))
    assert line["series"] == name
    trend = ask.get(f"{base}/trend", query_string={"value": name}, headers=AUTHORIZED).get_json()
    assert [each["n"] for each in trend["periods"]][-3:] == [3000] * 3
    wrong = ask.get(f"{base}/estimate", query_string={"value": "x"}, headers=AUTHORIZED)
    assert wrong.status_code == 400
    assert name in wrong.get_json()["detail"]
    for query in ({"limit": "3"}, {"below": "3"}):
        assert (
            ask.get(f"{base}/estimate", query_string=query, headers=AUTHORIZED).status_code == 400
        )
    label = ask.get(f"{base}/privacy", headers=AUTHORIZED).get_json()
    assert label["same_values"]["epsilon"] == pytest.approx(4.0)
    listed = ask.get("/api/v1/metrics", headers=AUTHORIZED).get_json()
    (pair,) = [each for each in listed["metrics"] if each["name"] == "plan_by_mode"]
    assert pair["of"] == ["plan", "dark_mode"]


def test_a_pair_in_a_frame(pair_store: Store) -> None:
    """The heat map can be embedded in another page, in the direction of the link."""
    settings = DashboardSettings(
        dashboard_token=TOKEN,
        dashboard_frame_ancestors="https://wiki.example",
        public_url="https://stats.example",
    )
    registry = Registry.parse(PAIRS)
    app = create_app(settings, store=pair_store, registry=registry, clock=lambda: NOW)
    reader, anybody = app.test_client(), app.test_client()
    for client in (reader, anybody):
        client.environ_base["HTTP_ACCEPT"] = "text/html"
    assert reader.post("/login", data={"token": TOKEN}).status_code == 303
    page = unescape(unescape(reader.get("/metric/plan_by_mode").text))
    link = re.search(r'<iframe src="https://stats.example(/embed/[^"]+)"', page)
    assert link
    framed = anybody.get(link[1])
    assert framed.status_code == 200
    assert heading(framed.text) == "plan"


def test_a_pair_on_a_board(pair_store: Store, tmp_path: Path) -> None:
    """A board shows the verdict, the heat map, one conditional over time, and a table."""
    folder = tmp_path / "boards"
    folder.mkdir()
    items = "".join(
        f'[[items]]\nmetric = "plan_by_mode"\nview = "{view}"\n'
        for view in ("headline", "shares", "trend", "table")
    )
    (folder / "both.toml").write_text(f'schema = 1\ntitle = "Both"\n{items}', encoding="utf-8")
    settings = DashboardSettings(dashboard_token=TOKEN, boards=str(folder))
    registry = Registry.parse(PAIRS)
    app = create_app(settings, store=pair_store, registry=registry, clock=lambda: NOW)
    reader = app.test_client()
    reader.environ_base["HTTP_ACCEPT"] = "text/html"
    assert reader.post("/login", data={"token": TOKEN}).status_code == 303
    page = reader.get("/boards/both")
    assert page.status_code == 200
    assert page.text.count('class="heat"') == 1
    assert page.text.count("depend on each other") >= 1
    assert "dark_mode=true given plan=free" in page.text
