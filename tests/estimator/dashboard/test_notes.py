"""What a page warns of, and what stands below it as a footnote."""

from __future__ import annotations

import re

from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import Store
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings

from .conftest import NOW, TOKEN, fill
from .test_overview import REGISTRY, visit


def notes(page: str) -> list[str]:
    """The warnings of a page, each as text."""
    return re.findall(r'<p class="note">(.*?)</p>', page)


def test_what_always_stands_is_a_footnote(
    browser: FlaskClient, store: Store, registry: Registry
) -> None:
    """That the same devices may have reported on several days is true of every longer range: it
    is told below the chart and is no warning, on the metric's page and on the comparison."""
    for day in ("2026-11-12", "2026-11-13", "2026-11-19"):
        fill(store, registry, "browser", [0.3, 0.69, 0.01, 0.0], 20_000, day)
    two_days = "from=2026-11-19&to=2026-11-20"
    for path in (
        f"/metric/browser?{two_days}",
        f"/metric/browser/compare?{two_days}&before_from=2026-11-12&before_to=2026-11-13",
    ):
        page = browser.get(path).text
        assert notes(page) == []
        (footnote,) = re.findall(r'<p class="legend footnote">(.*?)</p>', page)
        assert footnote.startswith("rests on 40,000 reports from 2 windows")
        assert footnote.endswith(".")


def test_the_page_warns_as_the_card_does(empty_store: Store) -> None:
    """Too few devices, nothing but noise, silence and expiry: what a card warns of stands on the
    metric's page as well, word for word."""
    registry = Registry.parse(REGISTRY)
    client = visit(empty_store, registry)
    fill(empty_store, registry, "large_text", [0.5, 0.5], 10)
    fill(empty_store, registry, "crash", [0.5, 0.5], 10, "2026-11-10")
    overview = client.get("/").text.split('<li class="card metric">')[1:]
    for name, card in zip(("dark_mode", "large_text", "crash"), overview, strict=True):
        warned = notes(card)
        assert bool(warned) == (name != "dark_mode")
        assert set(warned) <= set(notes(client.get(f"/metric/{name}").text))
    page = notes(client.get("/metric/large_text").text)
    assert any(each.startswith("Few devices are expected: ") for each in page)


def test_too_few_devices_are_told_before_any_reports(empty_store: Store) -> None:
    """A metric that can never show anything says so on its page while it waits for reports."""
    settings = DashboardSettings(dashboard_token=TOKEN)
    registry = Registry.parse(REGISTRY)
    app = create_app(settings, store=empty_store, registry=registry, clock=lambda: NOW)
    client = app.test_client()
    client.post("/login", data={"token": TOKEN})
    page = client.get("/metric/large_text").text
    assert "No device has reported yet" in page
    assert any(each.startswith("Few devices are expected: ") for each in notes(page))
