"""Pages of released numbers, and links and frames that show nothing else."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flask import Flask

from deniable import Registry
from deniable_collector.stores import Store
from deniable_collector.upkeep.retention import SETTLED
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.released_views import line_of, view_of
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.releasing.charge import Charge
from deniable_estimator.releasing.ledger import KeptRelease, ReleaseLedger
from deniable_estimator.releasing.looking import ListedRelease
from deniable_estimator.releasing.making import Release, release
from deniable_estimator.releasing.preparing import prepare
from deniable_estimator.releasing.request import ReleaseRequest
from deniable_estimator.terminal.release import release as release_command

from .conftest import NOW, TOKEN, Clock

LATER = NOW + SETTLED + 86_400


def text_of(page: str) -> str:
    """The words of a page, without its tags."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", page)))


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "releases.sqlite"


@pytest.fixture
def make(store: Store, registry: Registry, ledger: Path) -> Callable[..., Release]:
    """Releases a metric, as the command does."""

    def made(metric: str, **more: Any) -> Release:
        request = ReleaseRequest(metric, **{"epsilon": Fraction(1, 2), **more})
        kept = ReleaseLedger(ledger, 1e-6, None)
        try:
            return release(prepare(store, registry, request, LATER), kept, now=LATER)
        finally:
            kept.close()

    return made


@pytest.fixture
def new_app(store: Store, registry: Registry, tmp_path: Path, ledger: Path) -> Callable[..., Flask]:
    def new(**more: Any) -> Flask:
        settings = DashboardSettings(
            dashboard_token=TOKEN,
            dashboard_links=str(tmp_path / "links.db"),
            releases=str(ledger),
            public_url="https://d.example",
            dashboard_frame_ancestors="https://site.example",
            **more,
        )
        return create_app(settings, store=store, registry=registry, clock=Clock(LATER))

    return new


def get(app: Flask, path: str, token: str | None = TOKEN) -> Any:
    client = app.test_client()
    headers = {"Accept": "text/html"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return client.get(path, headers=headers)


def shared(app: Flask, path: str, query: str = "") -> str:
    """The path that opens a link to this view."""
    _, secret = app.extensions["deniable_links"].make(
        path,
        query,
        maker="",
        note="",
        today=app.extensions["deniable_source"].today,
        days=5,
        unfinished=False,
    )
    return f"/shared/{secret}"


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE releases SET document = replace(document, '0.', '7.')",
        "UPDATE releases SET csv = replace(csv, '0.', '7.')",
        "UPDATE releases SET document = 'no document'",
    ],
)
def test_a_document_that_the_disk_changed_is_not_shown(
    new_app: Callable[..., Flask], make: Callable[..., Release], ledger: Path, change: str
) -> None:
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


def test_a_release_has_a_page_and_its_files(
    new_app: Callable[..., Flask], make: Callable[..., Release]
) -> None:
    """The page shows the released numbers with the manifest's line; the files are the document and
    the table, byte by byte."""
    made = make("browser")
    app = new_app()
    page = text_of(get(app, f"/releases/{made.id}").text)
    assert "Released with noise: epsilon 0.500, delta 0 for one device" in page
    first = made.data["rows"][0]
    assert f"{first[1]:.2%}" in page
    assert "<script>alert(1)" not in get(app, f"/releases/{made.id}").text
    assert get(app, f"/releases/{made.id}.json").text == made.document
    assert get(app, f"/releases/{made.id}.csv").get_data() == made.csv.encode()
    assert made.id in get(app, "/releases").text
    assert get(app, f"/releases/{made.id}.exe").status_code == 404
    assert get(app, "/releases/nothing").status_code == 404


def test_no_release_is_seen_without_signing_in(
    new_app: Callable[..., Flask], make: Callable[..., Release]
) -> None:
    """Releases are for the world when the operator publishes them, not before."""
    made = make("browser")
    app = new_app()
    for path in (
        "/releases",
        f"/releases/{made.id}",
        f"/releases/{made.id}.json",
        "/released/browser",
    ):
        assert get(app, path, None).status_code in (302, 303, 401)


def test_a_link_can_show_a_release(
    new_app: Callable[..., Flask], make: Callable[..., Release]
) -> None:
    """A link to a release opens its page and its files, and no other release."""
    made, other = make("browser"), make("dark_mode")
    app = new_app()
    link = shared(app, f"/releases/{made.id}")
    page = get(app, link, None)
    assert page.status_code == 200
    assert "Released with noise" in text_of(page.text)
    assert f"{link}/releases/{made.id}.csv" in page.text
    assert get(app, f"{link}/releases/{made.id}.json", None).text == made.document
    assert get(app, f"{link}/releases/{other.id}.json", None).status_code == 404
    assert get(app, f"{link}/metric/browser", None).status_code == 404


def test_links_draw_from_releases_if_the_operator_says_so(
    new_app: Callable[..., Flask], make: Callable[..., Release]
) -> None:
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


def test_a_leader_or_a_segment_does_not_take_the_place_of_a_table(
    new_app: Callable[..., Flask], make: Callable[..., Release]
) -> None:
    """The newest table of all reports is shown; a leader has a page of its own."""
    make("browser")
    led = make("browser", form="leader", epsilon=Fraction(1, 5))
    app = new_app(share_releases=True)
    assert "epsilon 0.500" in text_of(get(app, shared(app, "/metric/browser"), None).text)
    assert led.data["rows"][0][0] in get(app, f"/releases/{led.id}").text


def test_frames_draw_from_releases_too(
    new_app: Callable[..., Flask], make: Callable[..., Release]
) -> None:
    """A chart in a frame becomes the released table; a metric without a release and a board show
    nothing."""
    make("browser")
    app = new_app(share_releases=True)
    found = get(app, shared(app, "/embed/metric/browser"), None)
    assert "Released with noise: epsilon 0.500" in text_of(found.text)
    assert "https://site.example" in found.headers["Content-Security-Policy"]
    assert get(app, shared(app, "/embed/metric/dark_mode"), None).status_code == 404
    assert get(app, "/embed/board/example", None).status_code == 403


def test_a_ledger_that_cannot_be_read_is_told(new_app: Callable[..., Flask], ledger: Path) -> None:
    """A missing file holds no releases; a broken one is an error of the server, in words."""
    app = new_app()
    assert "Nothing was released yet" in get(app, "/releases").text
    ledger.write_text("this is no database, but a text that is long enough to be taken for one")
    broken = get(app, "/releases")
    assert broken.status_code == 503
    assert "Releases cannot be read now" in broken.text


def test_without_a_ledger_pages_say_which_setting_is_missing(
    store: Store, registry: Registry
) -> None:
    """The page exists, and the header has no link to it."""
    settings = DashboardSettings(dashboard_token=TOKEN)
    app = create_app(settings, store=store, registry=registry, clock=Clock(LATER))
    assert "DENIABLE_RELEASES" in get(app, "/releases").text
    assert 'href="/releases"' not in get(app, "/").text


def test_the_list_tells_a_trend_from_a_table(
    new_app: Callable[..., Flask], make: Callable[..., Release]
) -> None:
    """Releases of the same windows differ in the list by their form."""
    make("browser")
    make("browser", form="trend")
    page = get(new_app(), "/releases").text
    assert page.count("Laplace noise") == 2
    assert page.count("one table for each window") == 1


def test_the_page_of_a_release_says_how_to_verify_it(
    new_app: Callable[..., Flask], make: Callable[..., Release], tmp_path: Path
) -> None:
    """Its command, run over the files that the page links to, passes; it fails over others."""
    made = make("browser")
    app = new_app()
    page = get(app, f"/releases/{made.id}").text
    found = re.search(r"deniable (release verify \S+ --table \S+)</code>", page)
    assert found
    _, verify, document, option, table = found[1].split()
    for file, form in ((document, "json"), (table, "csv")):
        answer = get(app, f"/releases/{made.id}.{form}")
        assert answer.headers["Content-Disposition"] == f"attachment; filename={file}"
        (tmp_path / file).write_bytes(answer.get_data())
    words = [verify, str(tmp_path / document), option, str(tmp_path / table)]
    assert CliRunner().invoke(release_command, words).exit_code == 0
    (tmp_path / table).write_bytes(b"value,estimate\n")
    assert CliRunner().invoke(release_command, words).exit_code == 1
    text = text_of(page)
    assert made.manifest["data_sha256"] in text
    assert "Laplace noise standard deviation" in text
    assert "readers who know all other reports" in text


def test_the_list_shows_what_is_spent_of_the_budget(
    new_app: Callable[..., Flask], make: Callable[..., Release]
) -> None:
    """In all and by metric, in words and as bars of one scale; without a budget the page names the
    setting, and beyond it the page says that nothing more is released."""
    make("browser")
    make("dark_mode", epsilon=Fraction(1, 4))
    page = get(new_app(release_budget=3.0), "/releases").text
    text = text_of(page)
    assert "ε 0.750 of 3" in text
    assert "2 releases together, over all metrics, at delta 1e-06." in text
    bars = re.findall(r'<rect class="bar" width="([0-9.]+)%"', page)
    assert list(map(float, bars)) == [25.0, 16.67, 8.33]
    assert "There is no budget" not in text
    assert "There is no budget: DENIABLE_RELEASE_BUDGET sets one." in text_of(
        get(new_app(), "/releases").text
    )
    assert "This is more than the budget" in text_of(
        get(new_app(release_budget=0.5), "/releases").text
    )


def test_a_charge_without_a_release_is_named(new_app: Callable[..., Flask], ledger: Path) -> None:
    """It spends, so the page counts it, and it says what finishes it. Names from the file are
    text, and deltas beyond the dashboard's leave no epsilon to be stated."""
    kept = ReleaseLedger(ledger, 1e-3, None)
    name = '<script>alert(1)</script>\u202e"'
    kept.charged(
        "a", date(2026, 11, 2), Charge(name, ("2026-11-01",), 8, "laplace", 0.25, 0.0, 0.25)
    )
    page = get(new_app(), "/releases").text
    assert "<script>alert" not in page
    assert "1 of them was charged and not published" in text_of(page)
    assert "ε 0.250" in text_of(page)
    kept.charged("b", date(2026, 11, 3), Charge("x", ("2026-11-01",), 8, "exact", 0.1, 1e-5))
    kept.close()
    assert "No epsilon can be stated" in text_of(get(new_app(), "/releases").text)


def test_a_long_list_says_how_many_are_not_shown(
    new_app: Callable[..., Flask],
    make: Callable[..., Release],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The newest are shown, and the others are counted."""
    monkeypatch.setattr("deniable_estimator.dashboard.released.MOST_LISTED", 1)
    first, second = make("browser"), make("browser", epsilon=Fraction(1, 4))
    page = get(new_app(), "/releases").text
    assert second.id in page
    assert first.id not in page
    assert "1 older release is not shown" in text_of(page)


def test_the_form_says_what_the_link_will_open(
    new_app: Callable[..., Flask], make: Callable[..., Release]
) -> None:
    """Where links show released numbers alone, the form promises no days of a metric, and offers no
    windows that still take reports; of a view that opens nothing it says so."""
    made = make("browser")
    newest, nothing = "It shows the newest release", "a link to this view opens nothing"
    one, unfinished = "the numbers of this release", "windows that still take reports"
    days = "It shows the latest complete period"
    for alone, view, told in (
        (True, "/metric/dark_mode", newest),
        (True, "/metric/browser/compare", nothing),
        (True, f"/releases/{made.id}", one),
        (False, f"/releases/{made.id}", one),
        (False, "/released/browser", newest),
        (False, "/metric/browser", days),
    ):
        form = text_of(get(new_app(share_releases=alone), f"/share?view={view}").text)
        found = [text for text in (newest, nothing, one, days) if text in form]
        assert found == [told], view
        assert (unfinished in form) == (told == days), view


def test_a_link_to_released_numbers_promises_no_windows(
    new_app: Callable[..., Flask], make: Callable[..., Release]
) -> None:
    """Above the page of a link stands when its numbers change: those of one release never, those of
    the newest with the next, days of a metric seven days after their end."""
    made = make("browser")
    never, next_, days = "stay as they are", "newest release", "seven days after it ends"
    for alone, view, told in (
        (False, f"/releases/{made.id}", never),
        (True, f"/releases/{made.id}", never),
        (False, "/released/browser", next_),
        (True, "/metric/browser", next_),
        (False, "/metric/browser", days),
    ):
        app = new_app(share_releases=alone)
        page = text_of(get(app, shared(app, view), None).text)
        assert [text for text in (never, next_, days) if text in page] == [told], view


def test_the_html_of_a_frame_says_what_the_frame_will_show(
    new_app: Callable[..., Flask], make: Callable[..., Release], tmp_path: Path
) -> None:
    """Where frames show released numbers alone, neither a metric's page nor a board's promises
    days."""
    make("browser")
    folder = tmp_path / "boards"
    folder.mkdir()
    (folder / "week.toml").write_text('schema = 1\ntitle = "Week"\n[[items]]\nmetric = "browser"\n')
    for alone, metric, board in (
        (False, "the latest period that takes no more reports", "the board as it is"),
        (True, "the newest release of the metric", "this frame shows nothing"),
    ):
        app = new_app(share_releases=alone, boards=str(folder))
        assert f"This frame shows {metric}" in text_of(get(app, "/metric/browser").text)
        assert board in text_of(get(app, "/boards/week").text)


def test_the_list_and_the_page_name_the_metrics_of_a_pair() -> None:
    """Of a pair its two metrics, of a metric that is reported with another the pair; of others, and
    of releases from before manifests said it, nothing."""
    manifest = {"metric": "both", "method": "exact", "form": "table", "epsilon": 0.1}
    pair = {"name": "both", "of": ["browser", "plan"]}

    def part(**more: Any) -> str | None:
        return line_of(ListedRelease("a", date(2026, 11, 1), {**manifest, **more})).part

    assert part(pair=pair) == "the pair of browser and plan"
    assert part(pair=pair, metric="plan") == "reported as a part of both"
    assert part(pair=None) is None
    assert part() is None


def test_what_rounds_to_zero_has_no_sign() -> None:
    """A share a little below zero is 0.00%."""
    manifest = {
        "unit": None,
        "type": "boolean",
        "estimates": "shares",
        "method": "exact",
        "epsilon": 0.1,
        "delta": 1e-8,
        "reports": 1000,
        "reports_of_a_device": 1,
        "noise": None,
        "form": "table",
    }
    data = {"columns": ["value", *"abcd"], "rows": [["true", -1e-6, 0.1, -0.2, 0.2]]}
    document = json.dumps({"manifest": manifest, "data": data})
    charge = Charge("a", ("2026-11-01",), 1, "exact", 0.1, 0.0)
    kept = KeptRelease("a", date(2026, 11, 1), charge, document, "")
    (row,) = view_of(kept, 1).rows
    assert (row.estimate, row.low) == ("0.00%", "-20.00%")
