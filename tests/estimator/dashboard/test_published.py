"""What a label says about published sums: the figures of the API, found without a page waiting."""

from __future__ import annotations

import math
import re
import threading
import time
from html import unescape
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import open_store
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.published import SIZES
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.privacy import outsider

from .conftest import NOW, REGISTRY, TOKEN

MORE = """
[metrics.editor]
type = "category"
description = "Which editor?"
values = ["vim", "emacs"]
epsilon = 1.0
lifetime_epsilon = 4.0
longitudinal = "memoize"
window = "week"

[metrics.both]
type = "pair"
of = ["browser", "dark_mode"]
description = "Do these browsers have a dark mode?"
epsilon = 1.0
lifetime_epsilon = 8.0
forget = "marginals"

[metrics.plugin]
type = "string"
description = "Which plugin?"
mechanism = "rappor"
epsilon = 1.0
lifetime_epsilon = 4.0
longitudinal = "memoize"
"""


@pytest.fixture
def visitor(tmp_path: Path) -> FlaskClient:
    """A browser on a dashboard with metrics of all sorts, and no report."""
    registry = Registry.parse(REGISTRY + MORE)
    store = open_store(f"sqlite:///{tmp_path}/more.db")
    store.publish({metric.name: [metric.scheme] for metric in registry})
    settings = DashboardSettings(dashboard_token=TOKEN)
    app = create_app(settings, store=store, registry=registry, clock=lambda: NOW)
    client = app.test_client()
    client.environ_base["HTTP_ACCEPT"] = "text/html"
    assert client.post("/login", data={"token": TOKEN}).status_code == 303
    return client


def table(client: FlaskClient, name: str) -> dict[str, list[str]]:
    """The rows of a label's table, by their heads."""
    deadline = time.monotonic() + 60
    # On a busy machine the page comes before its figures, and asks to be loaded again.
    while True:
        page = client.get(f"/metric/{name}").text
        found = re.search(r'<table class="published">.*?</table>', page, re.DOTALL)
        if found is not None:
            break
        assert time.monotonic() < deadline
        time.sleep(0.1)
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', found[0])
    return {unescape(head): re.findall(r"<td>(.*?)</td>", rest) for head, rest in rows}


@pytest.mark.parametrize("name", ["browser", "dark_mode", "editor", "plugin"])
def test_label_has_the_figures_of_the_api(visitor: FlaskClient, name: str) -> None:
    """Each figure is that of the API for as many reports, rounded up, and stands beside what the
    device's own reports reveal."""
    shown = table(visitor, name)
    words = {"window": "one window", "month": "a month", "year": "a year", "lifetime": "a lifetime"}
    for place, size in enumerate(SIZES):
        address = f"/api/v1/metrics/{name}/privacy/outsider?reports={size}"
        told = visitor.get(address, headers={"Accept": "application/json"}).json
        for span, found in told["spans"].items():
            count, device, *readers = shown[words[span]]
            assert count == str(found["windows"])
            for text, exact in (
                (device, found["device_epsilon"]),
                (readers[place], found["epsilon"]),
            ):
                digits = 4 if exact < 0.1 else 3 if exact < 100 else 0
                assert exact <= float(text.replace(",", "")) < exact + 1.001 * 10**-digits
            steady = shown.get(f"{words[span]}, of a value that never changes")
            assert (steady is None) == (found["steady_epsilon"] is None or found["windows"] < 2)
            if steady is not None:
                assert float(steady[1]) <= 4.0
                assert found["steady_epsilon"] <= float(steady[2 + place]) <= float(steady[1])


def test_metric_of_a_pair_has_the_figures_of_the_pair(visitor: FlaskClient) -> None:
    """Devices report the pair in its place."""
    assert table(visitor, "browser") == table(visitor, "both")


def test_what_has_no_end_has_no_figure(visitor: FlaskClient) -> None:
    """With memos the reports of a lifetime have no limit, and where no bound for changing values
    is known, the label says so."""
    assert table(visitor, "editor")["a lifetime"] == ["", "no bound", "", "", ""]
    page = visitor.get("/metric/plugin").text
    assert "no smaller bound is known for values that change" in page
    assert "no smaller bound is known" not in visitor.get("/metric/dark_mode").text


def test_assumptions_stand_beside_the_figures(visitor: FlaskClient) -> None:
    """The label says who learns more, and which sums are meant."""
    page = unescape(visitor.get("/metric/dark_mode").text)
    assert "delta = 1e-8" in page
    registry = Registry.parse(REGISTRY + MORE)
    for told in outsider.outsider_of(registry, registry["dark_mode"]).to_dict()["assumed"]:
        assert f"<li>{told}</li>" in page


def test_a_page_does_not_wait_for_long(
    visitor: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the figures are calculated the page is there, and says so; they come with the next."""
    goes_on = threading.Event()
    real = outsider.outsider_of

    def slow(*arguments: object) -> object:
        goes_on.wait(60)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("deniable_estimator.dashboard.published.outsider_of", slow)
    monkeypatch.setattr("deniable_estimator.dashboard.source.PAGE_PATIENCE", 0.01)
    page = visitor.get("/metric/old")
    assert page.status_code == 200
    assert "is being calculated. Load the page again" in page.text
    assert '<table class="published">' not in page.text
    goes_on.set()
    monkeypatch.setattr("deniable_estimator.dashboard.source.PAGE_PATIENCE", 60.0)
    assert len(table(visitor, "old")) == 4


def test_figures_are_found_once(visitor: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second page calculates nothing."""
    before = table(visitor, "silent")
    monkeypatch.delattr("deniable_estimator.dashboard.published.outsider_of")
    assert table(visitor, "silent") == before
    assert all(math.isfinite(float(each)) for row in before.values() for each in row)
