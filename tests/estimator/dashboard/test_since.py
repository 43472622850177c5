"""What changed since an annotation: pages, files, pictures, links and the read API."""

from __future__ import annotations

import re
from datetime import date, timedelta
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.stores import Store, open_store

from .conftest import REGISTRY, SEGMENTED, browser_of, dashboard_of, fill, text_of

RELEASE = date(2026, 11, 10)


@pytest.fixture
def since_app(empty_store: Store, registry: Registry, tmp_path: Path) -> Flask:
    """Three weeks before and ten days after a release, with which dark mode rose from 20 to 32%.
    Nothing else changed, and a second annotation has no complete day after it."""
    for ago in range(31):
        day = date(2026, 11, 20) - timedelta(ago)
        yes = 0.32 if day > RELEASE else 0.2
        fill(empty_store, registry, "dark_mode", [yes, 1 - yes], 20_000, day.isoformat())
        fill(empty_store, registry, "browser", [0.25, 0.74, 0.01, 0], 20_000, day.isoformat())
    path = tmp_path / "annotations.toml"
    path.write_text(
        f'schema = 1\n[[annotations]]\ndate = {RELEASE}\ntext = "Release 4.2"\n'
        '[[annotations]]\ndate = 2026-11-20\ntext = "Release 4.3"\n'
    )
    return dashboard_of(empty_store, registry, data=str(tmp_path))


@pytest.fixture
def reader(since_app: Flask) -> FlaskClient:
    return browser_of(since_app)


def test_the_page_says_what_changed(reader: FlaskClient) -> None:
    """Each annotation with a complete day after it is a choice beside the days; the headline says
    what changed since, and no alarm takes its place."""
    page = text_of(reader, "/metric/dark_mode")
    assert "since=Release+4.2" in page or "since=Release%204.2" in page
    assert "since Release 4.3" not in page
    page = text_of(reader, "/metric/dark_mode?since=Release+4.2")
    (headline,) = re.findall(r'<h2 id="estimate" class="headline">([^<]+)<', page)
    told = re.fullmatch(
        r"dark_mode: 32\.\d%, up 1[12]\.\d points \(95% CI \+(1\d\.\d) to \+(1\d\.\d)\) since "
        r"Release 4\.2",
        headline,
    )
    assert told
    assert float(told[1]) < 12 < float(told[2])
    assert "11 Nov 2026 to 20 Nov 2026 vs 28 Oct 2026 to 6 Nov 2026" in page
    assert "7 Nov 2026 to 10 Nov 2026 is in neither" in page
    assert "A step of +12" in page
    assert "most likely on 11 Nov 2026 (95% CI 11 Nov 2026 to 11 Nov 2026)" in page
    assert "Noted then: Release 4.2." in page
    assert 'aria-current="true">since Release 4.2' in page


def test_a_day_can_be_named(reader: FlaskClient) -> None:
    """In place of an annotation."""
    page = text_of(reader, "/metric/dark_mode?since=2026-11-10")
    assert "since 2026-11-10</h2>" in page


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("since=Release+4.1", "did you mean Release 4."),
        ("since=Release+4.3", "no day after Release 4.3 is complete yet"),
        ("since=Release+4.2&from=2026-11-01", "takes the place of"),
    ],
)
def test_what_cannot_be_asked_is_refused(reader: FlaskClient, query: str, told: str) -> None:
    """On the page and by the overview, in a sentence."""
    for address in ("/metric/dark_mode", "/"):
        answer = reader.get(f"{address}?{query}")
        assert answer.status_code == 400
        assert told in answer.text


def test_the_segment_that_moved_most_is_named(tmp_path: Path) -> None:
    """The platform in which a theme became common, and no other, with its trend over both
    periods."""
    registry = Registry.parse(REGISTRY + SEGMENTED)
    store = open_store(f"sqlite:///{tmp_path}/segments.db")
    store.publish({metric.name: [metric.scheme] for metric in registry})
    for ago in range(21):
        day = date(2026, 11, 20) - timedelta(ago)
        for segment in (0, 1):
            light = 0.4 if segment and day > RELEASE else 0.6
            fill(store, registry, "theme", [light, 1 - light], 9_000, day.isoformat(), segment)
    reader = browser_of(dashboard_of(store, registry))
    page = text_of(reader, "/metric/theme/segments?since=2026-11-10")
    assert "Since 2026-11-10, 1 segment changed beyond noise, desktop:" in page
    store.close()
