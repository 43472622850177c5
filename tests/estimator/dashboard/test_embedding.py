"""Charts in frames of other sites: who may open which, and for how long."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest
from flask.testing import FlaskClient

from deniable import Registry
from deniable_collector.settings import SettingsError
from deniable_collector.stores import Store
from deniable_collector.upkeep.retention import SETTLED
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.settings import DashboardSettings

from .conftest import NOW, TOKEN, fill

SITE = "https://wiki.acme.example"
HERE = "http://localhost"
DAY = 86_400
SETTLED_NOW = NOW + SETTLED
"""When the windows of the store take no more reports."""
STILL_TAKES = "2026-11-21"
"""A window that has ended by then, and still takes late reports."""

Visit = Callable[..., FlaskClient]


@pytest.fixture
def visit(store: Store, registry: Registry) -> Visit:
    """Opens a browser: visit(now, token=..., origins=..., public_url=..., signed_in=...)."""

    def visit(
        now: float = SETTLED_NOW,
        *,
        token: str = TOKEN,
        origins: str = SITE,
        public_url: str = HERE,
        signed_in: bool = False,
    ) -> FlaskClient:
        settings = DashboardSettings(
            dashboard_token=token, dashboard_frame_ancestors=origins, public_url=public_url
        )
        app = create_app(settings, store=store, registry=registry, clock=lambda: now)
        client = app.test_client()
        client.environ_base["HTTP_ACCEPT"] = "text/html"
        if signed_in:
            client.post("/login", data={"token": token})
        return client

    return visit


def link_on(client: FlaskClient, path: str) -> str:
    """The link in the HTML that a page offers to copy."""
    page = html.unescape(html.unescape(client.get(path).text))
    found = re.search(rf'<iframe src="{HERE}(/embed/[^"]+)"', page)
    assert found is not None
    return found[1]


def test_a_link_opens_its_chart_for_everybody(visit: Visit) -> None:
    """Without signing in the frame holds chart, caption, reports, risk and a link, no script."""
    link = link_on(visit(signed_in=True), "/metric/browser")
    answer = visit().get(link)
    assert answer.status_code == 200
    for part in ("Which browser opens links?", "chrome leads", "20,000 reports", "at most 73.2"):
        assert part in answer.text
    assert '<div class="chart large"' in answer.text
    assert 'href="/metric/browser?' in answer.text
    assert "<script" not in answer.text


def test_only_named_sites_may_frame_it(visit: Visit) -> None:
    """The chart may be framed by the sites named; every other page by nobody."""
    client = visit(signed_in=True)
    policy = client.get(link_on(client, "/metric/browser")).headers["Content-Security-Policy"]
    assert f"frame-ancestors {SITE};" in policy
    assert "default-src 'none'" in policy
    for path in ("/", "/metric/browser", "/login"):
        assert "frame-ancestors 'none'" in client.get(path).headers["Content-Security-Policy"]


def test_a_link_opens_nothing_else(visit: Visit) -> None:
    """Another metric, another view, a later end, a doubled name or no signature is refused."""
    link = link_on(visit(signed_in=True), "/metric/browser?from=2026-11-20&to=2026-11-20")
    browser = visit()
    assert browser.get(link).status_code == 200
    for changed in (
        link.replace("/metric/browser", "/metric/dark_mode"),
        link.replace("from=2026-11-20", "from=2026-11-19"),
        re.sub(r"until=[0-9-]+", "until=2030-01-01", link),
        link + "&order=declared",
        link + "&from=2026-11-01",
        link.partition("&signature")[0],
        link.partition("?")[0],
    ):
        assert changed != link
        answer = browser.get(changed)
        assert answer.status_code == 403, changed
        assert "opens no chart" in answer.text
        assert "chrome" not in answer.text
    for path in ("/", "/metric/browser", "/metric/browser.svg"):
        assert browser.get(f"{path}?{link.partition('?')[2]}").status_code in (303, 401)


def test_a_frame_never_counts_a_window_that_takes_reports(
    visit: Visit, store: Store, registry: Registry
) -> None:
    """Otherwise two readings of it would publish the sum of the few reports in between."""
    link = link_on(visit(signed_in=True), f"/metric/browser?from=2026-11-14&to={STILL_TAKES}")
    before = visit().get(link).text
    assert "20,000 reports" in before
    fill(store, registry, "browser", [1.0, 0.0, 0.0, 0.0], 5_000, STILL_TAKES)
    assert visit().get(link).text == before
    assert "25,000 reports" in visit(SETTLED_NOW + DAY).get(link).text


def test_a_link_ends(visit: Visit) -> None:
    """It opens for 90 days, not longer; a new token, or no site to show it, ends it at once."""
    link = link_on(visit(signed_in=True), "/metric/browser")
    assert visit(SETTLED_NOW + 90 * DAY).get(link).status_code == 200
    late = visit(SETTLED_NOW + 91 * DAY).get(link)
    assert late.status_code == 403
    assert "ended on 2027-02-26" in late.text
    assert visit(token="another token altogether").get(link).status_code == 403
    off = visit(origins="").get(link)
    assert off.status_code == 403
    assert "frame-ancestors 'none'" in off.headers["Content-Security-Policy"]


def test_without_a_site_no_link_is_made(visit: Visit) -> None:
    """The page says which setting names the sites, and offers nothing."""
    page = visit(origins="", signed_in=True).get("/metric/browser").text
    assert "DENIABLE_DASHBOARD_FRAME_ANCESTORS" in page
    assert "iframe" not in page


def test_a_link_never_names_the_host_of_a_request(visit: Visit) -> None:
    """Whoever sends a request chooses its Host and, without a trusted proxy, its forwarded ones;
    the link names the address of the setting. Without it there is no link, and the page says what
    to set."""
    here = "https://deniable.acme.example"
    app = visit(public_url=here).application
    anybody = app.test_client(use_cookies=False)
    cookie = anybody.post("/login", data={"token": TOKEN}).headers["Set-Cookie"].partition(";")[0]
    for host in ("evil.example", "localhost"):
        headers = {"Host": host, "X-Forwarded-Host": "evil.example", "Cookie": cookie}
        page = html.unescape(html.unescape(anybody.get("/metric/browser", headers=headers).text))
        assert f'<iframe src="{here}/embed/metric/browser?' in page
        assert "evil.example" not in page
    without = visit(public_url="", signed_in=True).get("/metric/browser").text
    assert "iframe" not in without
    assert "DENIABLE_PUBLIC_URL" in without


def test_a_link_follows_the_calendar_unless_it_names_days(visit: Visit) -> None:
    """Without days in the address the frame shows the last 30; with them, always those."""
    client = visit(signed_in=True)
    rolling = link_on(client, "/metric/browser")
    fixed = link_on(client, "/metric/browser?from=2026-11-20&to=2026-11-20&shares=normalized")
    later = visit(SETTLED_NOW + 60 * DAY)
    assert "no reports in these days" in later.get(rolling).text
    assert "normalized shares" in later.get(fixed).text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FRAME_ANCESTORS", "*"),
        ("FRAME_ANCESTORS", "https://*.acme.example"),
        ("FRAME_ANCESTORS", "https://a.example; script-src *"),
        ("FRAME_ANCESTORS", "wiki.acme.example"),
        ("EMBED_DAYS", "0"),
        ("EMBED_DAYS", "99999"),
    ],
)
def test_only_whole_origins_and_days_are_taken(name: str, value: str) -> None:
    """Wildcards, bare hosts and what would add to the policy are refused at the start."""
    with pytest.raises(SettingsError, match=f"DENIABLE_DASHBOARD_{name}"):
        DashboardSettings.from_env({f"DENIABLE_DASHBOARD_{name}": value})


def test_what_lacks_for_frames_is_named_alone(store: Store, registry: Registry) -> None:
    """With sites but without the dashboard's own address the page asks for the address, and does
    not say that no site may show charts; the other way round it asks for sites."""
    pages = {}
    for sites, address in (("https://wiki.example", ""), ("", "https://stats.example")):
        settings = DashboardSettings(
            dashboard_token=TOKEN, dashboard_frame_ancestors=sites, public_url=address
        )
        app = create_app(settings, store=store, registry=registry, clock=lambda: NOW)
        page = app.test_client().get(
            "/metric/browser", headers={"Authorization": f"Bearer {TOKEN}", "Accept": "text/html"}
        )
        pages[sites] = page.text
    assert "its own address is not known" in pages["https://wiki.example"]
    assert "No site may show" not in pages["https://wiki.example"]
    assert "DENIABLE_PUBLIC_URL" not in pages[""]
    assert "No site may show" in pages[""]
