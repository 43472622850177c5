"""Pages of released numbers, and links and frames that show nothing else."""

import json
import re
import sqlite3
from datetime import timedelta
from fractions import Fraction
from html import unescape

import pytest

from deniable_collector.upkeep.keeper import SETTLED
from deniable_estimator.asking.query import Query
from deniable_estimator.asking.reader import Reader
from deniable_estimator.dashboard.sharing.links import SharedLink
from deniable_estimator.releasing.making import release
from deniable_estimator.releasing.preparing import ReleaseRequest, prepare
from deniable_estimator.releasing.release_ledger import ReleaseLedger

from .conftest import NOW, TOKEN, Clock, dashboard_of, program_of

LATER = NOW + SETTLED + 86_400


def text_of(page):
    """The words of a page, without its tags."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", page)))


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "releases.sqlite"


@pytest.fixture
def make(store, registry, ledger):
    """Releases a metric, as the command does."""

    def made(metric, epsilon=Fraction(1, 2)):
        request = ReleaseRequest(Query(metric), epsilon=epsilon)
        kept = ReleaseLedger(ledger, 1e-6, None)
        return release(prepare(Reader(store), registry, request, LATER), kept, now=LATER)

    return made


@pytest.fixture
def new_app(store, registry, tmp_path, ledger):
    def new(**more):
        return dashboard_of(
            store,
            registry,
            clock=Clock(LATER),
            data=str(tmp_path),
            releases=str(ledger),
            public_url="https://d.example",
            dashboard_frame_ancestors="https://site.example",
            **more,
        )

    return new


def get(app, path, token=TOKEN):
    client = program_of(app, token) if token else app.test_client()
    return client.get(path, headers={"Accept": "text/html"})


def shared(app, path):
    """The path that opens a link to this view."""
    today = app.extensions["deniable_source"].today
    link = SharedLink(path, today, today + timedelta(5))
    return app.extensions["deniable_links"].make(link).opened_at


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE releases SET document = replace(document, '0.', '7.')",
        "UPDATE releases SET csv = replace(csv, '0.', '7.')",
        "UPDATE releases SET document = 'no document'",
    ],
)
def test_a_document_that_the_disk_changed_is_not_shown(new_app, make, ledger, change):
    """No page, file, link or program gets numbers of which the manifest says that others were
    released."""
    made = make("browser")
    app = new_app(share_releases=True)
    link = shared(app, "/metric/browser")
    asked = [
        "/releases/{}",
        "/releases/{}.csv",
        "/released/browser",
        "/api/v1/releases/{}?format=json",
    ]
    paths = [each.format(made.id) for each in asked]
    for path in (*paths, link):
        assert get(app, path).status_code == 200, path
    with sqlite3.connect(ledger) as opened:
        opened.execute(change)
    opened.close()
    for path in (*paths, link):
        assert get(app, path).status_code == 503, path


def test_a_ledger_that_is_not_there(new_app, make, ledger):
    """The page says so, before the first release and where the file has gone."""
    client = program_of(new_app())
    told = "There is no ledger where"
    assert told in client.get("/releases").text
    make("browser")
    assert told not in client.get("/releases").text
    ledger.unlink()
    assert told in client.get("/releases").text


def test_links_draw_from_releases_if_the_operator_says_so(new_app, make):
    """With DENIABLE_SHARE_RELEASES a link to a metric shows its newest release, whatever the link
    names besides; one without a release, a comparison and a metric's own files open nothing."""
    made = make("browser")
    plain = shared(new_app(), "/metric/browser")
    assert "Released with noise" not in text_of(get(new_app(), plain, None).text)
    app = new_app(share_releases=True)
    page = get(app, plain, None)
    assert page.status_code == 200
    assert "Released with noise: epsilon 0.500" in text_of(page.text)
    assert get(app, f"{plain}/released/browser.json", None).text == made.document
    for path in ("/metric/browser.csv", "/metric/browser.json", "/metric/browser/trend.csv"):
        assert get(app, f"{plain}{path}", None).status_code == 404
    assert get(app, shared(app, "/metric/dark_mode"), None).status_code == 404
    assert get(app, shared(app, "/metric/browser/compare"), None).status_code == 404
    newer = make("browser", epsilon=Fraction(1, 4))
    assert "epsilon 0.250" in text_of(get(app, plain, None).text)
    assert json.loads(newer.document)["manifest"]["epsilon"] == 0.25


def test_frames_draw_from_releases_too(new_app, make):
    """A chart in a frame becomes the released table; a metric without a release and a board show
    nothing."""
    make("browser")
    app = new_app(share_releases=True)
    found = get(app, shared(app, "/embed/metric/browser"), None)
    assert "Released with noise: epsilon 0.500" in text_of(found.text)
    assert "https://site.example" in found.headers["Content-Security-Policy"]
    assert get(app, shared(app, "/embed/metric/dark_mode"), None).status_code == 404
    assert get(app, shared(app, "/embed/board/example"), None).status_code == 404
