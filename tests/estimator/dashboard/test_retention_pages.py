"""Who comes back on pages, in the API, in pictures, on a board and in an overview."""

from dataclasses import replace
from datetime import timedelta
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.registries import declared

from deniable import Registry
from deniable.protocol import windows
from deniable_estimator.development.crowd import fold_tally
from deniable_estimator.planning.retention_crowd import Life, tallies_of

from .conftest import NOW, browser_of, dashboard_of, program_of, text_of

pytestmark = pytest.mark.campaign

DEVICES = 200_000
LAST = windows.last_complete("week", NOW)
DAYS = f"from={LAST - timedelta(weeks=13, days=6)}&to={LAST}"
WEEKS = windows.span("week", LAST - timedelta(weeks=13), LAST)


@pytest.fixture
def registry():
    return Registry.parse(
        declared(
            back={"type": "retention", "lifetime_epsilon": 4.0},
            growing={"type": "retention", "asks": ["lifecycle"], "lifetime_epsilon": 4.0},
            few={"type": "retention", "asks": ["cohorts"], "ages": 3, "lifetime_epsilon": 4.0},
        )
    )


@pytest.fixture
def store(empty_store, registry):
    """Fourteen weeks; of `few` of 12 devices, whose cohorts cannot be told from none."""
    for name, devices in {"back": DEVICES, "growing": DEVICES, "few": 12}.items():
        metric, life = registry[name], Life.steady(devices)
        lives = [replace(life, back=0.5)] * len(WEEKS)
        drawn = tallies_of(metric, WEEKS, lives, np.random.default_rng(2), older=devices - life.new)
        for tally, _ in drawn:
            fold_tally(empty_store, metric, tally, 0, windows.end(tally.windows[0]) - 1)
    return empty_store


def test_the_page_has_the_heat_map_its_average_and_growth(store, registry):
    page = text_of(browser_of(dashboard_of(store, registry)), f"/metric/back?{DAYS}")
    assert "of new devices are active in the week after their first" in page
    assert page.count('<tr><th scope="row">2026-W') >= 2 * 12  # cohorts, and growth
    assert 'class="average"' in page
    assert "new or back for each one that was lost" in page
    assert "an app that is installed again" in page.lower()


def test_the_page_of_a_lifecycle_alone_has_no_cohorts(store, registry):
    page = text_of(browser_of(dashboard_of(store, registry)), "/metric/growing")
    assert "stayed from the week before" in page
    assert "Each cohort" not in page


def test_a_crowd_that_is_too_small_is_told_as_such(store, registry):
    page = text_of(browser_of(dashboard_of(store, registry)), f"/metric/few?{DAYS}")
    assert "Too few new devices have reported to tell how many come back." in page
    assert "nan" not in page.lower().replace("nannte", "")


@pytest.mark.parametrize("name", ["back", "growing", "few"])
def test_every_form_of_it_can_be_had(store, registry, name):
    """Files, pictures, the trend, the comparison, the day before and after, and the API."""
    app = dashboard_of(store, registry)
    reader, program = browser_of(app), program_of(app)
    for path in (
        *(f"/metric/{name}.{form}?{DAYS}" for form in ("csv", "json", "png")),
        *(f"/metric/{name}/trend.{form}?{DAYS}" for form in ("csv", "json", "svg")),
        f"/metric/{name}/compare",
        f"/metric/{name}?value={'age+1' if name == 'few' else 'new'}&by=week",
        "/",
    ):
        assert reader.get(path).status_code == 200, path
    drawn = ElementTree.fromstring(reader.get(f"/metric/{name}.svg?{DAYS}").data)
    texts = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert ("All" in texts) == (name != "growing")
    for path in ("estimate", "trend", "comparison", "anomalies"):
        found = program.get(f"/api/v1/metrics/{name}/{path}")
        assert found.status_code == 200, (path, found.text)
    assert program.get(f"/api/v1/metrics/{name}/estimate").get_json()["kind"] == "retention"


def test_a_board_draws_it(store, registry, tmp_path, monkeypatch):
    folder = tmp_path / "boards"
    folder.mkdir()
    items = "".join(
        f'[[items]]\nmetric = "{name}"\nview = "{view}"\ndays = 91\n'
        for name in ("back", "growing")
        for view in ("shares", "trend", "headline", "table")
    )
    (folder / "return.toml").write_text(f'schema = 1\ntitle = "Return"\n{items}')
    app = dashboard_of(store, registry, boards=folder)
    page = text_of(browser_of(app), "/boards/return")
    assert page.count("Which?") >= 8
    assert "Each cohort" in page
    assert "stayed from the week before" in page


def test_the_pages_are_told_in_chinese(store, registry):
    app = dashboard_of(store, registry)
    page = text_of(browser_of(app), f"/metric/back?{DAYS}&lang=zh-Hans")
    for english in ("new devices", "Each cohort", "Growth", "came back", "% interval"):
        assert english not in page, english
