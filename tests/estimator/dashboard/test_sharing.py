"""Links that share one view: who makes them, what they open, and everything that they do not."""

import re
from html import unescape
from io import BytesIO
from itertools import product
from urllib.parse import urlsplit

import pytest

from deniable import Registry
from deniable.protocol import windows
from deniable_collector.settings import SettingsError
from deniable_collector.upkeep.keeper import SETTLED
from deniable_estimator.dashboard.access.people import hash_token
from deniable_estimator.dashboard.sharing.opening import MOST_ADDRESS

from .conftest import NOW, TOKEN, Clock, browser_of, dashboard_of, fill, text_of
from .test_candidates import REGISTRY as SITE

STILL_TAKES = "2026-11-21"
"""A window that has ended at the clock of these tests, and still takes late reports."""
RUNNING = "2026-11-28"
PEOPLE = "schema = 1\n" + "".join(
    f'[people.{name}]\nrole = "{role}"\ntoken = "{hash_token(f"token of {name}")}"\n'
    for name, role in (("Ana", "analyst"), ("Bob", "analyst"), ("Rea", "reader"))
)


@pytest.fixture
def clock():
    """A week later, when the windows of the store take no more reports."""
    return Clock(NOW + SETTLED)


@pytest.fixture
def new_app(store, registry, tmp_path, clock):
    """Makes dashboards with one file of links."""
    (tmp_path / "people.toml").write_text(PEOPLE)

    def new(**more):
        return dashboard_of(store, registry, clock, **{"data": str(tmp_path), **more})

    return new


@pytest.fixture
def app(new_app):
    return new_app()


@pytest.fixture
def ana(app):
    return browser_of(app, "token of Ana")


@pytest.fixture
def stranger(app):
    return browser_of(app, "")


def shared(client, view, **more):
    """The address of a new link to this view."""
    page = client.post("/share", data={"view": view, "days": "30", **more})
    assert page.status_code == 200, page.text
    found = re.search(r'id="address"[^>]* value="([^"]+)"', page.text)
    assert found is not None
    assert found[1].startswith("http://localhost/shared/")
    return urlsplit(found[1]).path


def addresses(page):
    """Everything that a page leads to, or loads."""
    return {unescape(each) for each in re.findall(r'(?:href|src|action)="([^"]*)"', page)}


VIEW_PAGES = {
    "/metric/browser": {
        "/metric/browser.csv", "/metric/browser.json", "/metric/browser.svg",
        "/metric/browser.png", "/metric/browser/trend.csv", "/metric/browser/trend.json",
        "/metric/browser/trend.svg", "/metric/browser/trend.png",
    },
    "/metric/browser/compare": {"/metric/browser/compare.csv", "/metric/browser/compare.json"},
}  # fmt: skip


def test_a_link_says_what_it_holds_back(empty_store, registry):
    """Where all windows still take reports, the form warns and says from when on the link shows
    something; the page says what it holds back and never that no device has reported."""
    empty_store.publish((metric.name, metric.scheme) for metric in registry)
    fill(empty_store, registry, "dark_mode", [0.5, 0.5], 20_000, "2026-11-20")
    app = dashboard_of(empty_store, registry)
    client, stranger = browser_of(app), browser_of(app, "")
    form = client.get("/share", query_string={"view": "/metric/dark_mode"}).text
    assert "the link shows nothing before 28 Nov 2026" in form
    page = stranger.get(shared(client, "/metric/dark_mode")).text
    assert "No device has reported yet" not in page
    assert "seven days after its end" in page
    assert "now those up to 13 Nov 2026" in page
    assert "What is reported today is shown from 29 Nov 2026" in page
    whole = stranger.get(shared(client, "/metric/dark_mode", unfinished="1")).text
    assert "20,000 devices reported" in whole
    fill(empty_store, registry, "dark_mode", [0.5, 0.5], 20_000, "2026-11-01")
    assert "shows nothing before" not in client.get("/share?view=/metric/dark_mode").text


def test_a_link_since_a_day_says_what_it_shows(ana):
    """Not the latest days, and not the same ones whenever it is opened."""
    asked = "/share?view=/metric/dark_mode%3Fsince%3D2026-11-10"
    assert "It shows the days since then that take no more reports" in ana.get(asked).text


@pytest.mark.parametrize("view", VIEW_PAGES)
def test_a_link_opens_its_view_and_nothing_else(app, ana, stranger, store, registry, view):
    """Every address on the page is the link's own, static or of the page, and opens; every other
    address of the dashboard is shut: other views, files of other metrics, the API, the list. It
    has no form, and does not say who has made the link or why."""
    for day in ("2026-11-13", "2026-10-30", "2026-11-12"):
        fill(store, registry, "browser", [0.5, 0.49, 0.01, 0.0], 20_000, day)
        fill(store, registry, "dark_mode", [0.5, 0.5], 20_000, day)
    link = shared(ana, f"{view}?from=2026-11-12&to=2026-11-20", note="for the board")
    page = stranger.get(link).text
    led = addresses(page)
    own = {each for each in led if each.startswith("/shared/")}
    assert led - own <= {
        *("#content", "/static/icon.svg", "/static/dashboard.css?v=0.1.0"),
        "/static/pages.js?v=0.1.0",
    }
    files = {each.removeprefix(link) for each in own} - {"?lang=zh-Hans"}
    assert files == VIEW_PAGES[view]
    for each in own:
        assert stranger.get(each).status_code == 200, each
    assert "简体中文" in page
    assert not any(each in page for each in ("<form", "for the board", ">Ana<"))
    assert 'lang="zh-Hans"' in stranger.get(f"{link}?lang=zh-Hans").text
    shut = set()
    for rule in app.url_map.iter_rules():
        for name, form in product(("browser", "dark_mode"), ("csv", "json", "svg", "png")):
            path = re.sub(r"<([^>]+:)?name>", name, rule.rule)
            path = re.sub(r"<([^>]+:)?form>", form, path)
            shut.add(re.sub(r"<[^>]+>", "x", path))
    shut -= files
    assert len(shut) > 40
    for path in shut:
        assert stranger.get(link + path).status_code == 404, path
        assert "chrome" not in stranger.get(link + path).text


def test_the_links_own_choices_hold(ana, stranger):
    """What the address adds to the link changes nothing, on pages and in files."""
    link = shared(ana, "/metric/browser?from=2026-11-20&to=2026-11-20&shares=normalized")
    page = stranger.get(link).text
    for more in ("?from=2026-01-01", "?shares=unbiased", "?lines=all", "?made=up"):
        assert stranger.get(link + more).text == page
    file = stranger.get(f"{link}/metric/browser.json").get_data()
    assert stranger.get(f"{link}/metric/browser.json?from=2026-01-01").get_data() == file


def test_all_links_that_open_nothing_look_the_same(app, ana, stranger, clock):
    """Ended, revoked, made up, cut short, of a metric that is gone, for a file that is not of the
    view, with another method: one page, status and header."""
    links = app.extensions["deniable_links"]
    ended, revoked, open_ = (shared(ana, "/metric/browser", days=each) for each in "193")
    gone = shared(ana, "/metric/dark_mode?value=true", days="3")
    (nine,) = (each for each in links.listed() if str(each.until) == "2026-12-07")
    assert ana.post(f"/links/{nine.id}/revoke").status_code == 303
    registry = app.extensions["deniable_source"].registry
    del registry.metrics["dark_mode"]
    clock.now += 2 * 86_400
    found = [
        stranger.get(path)
        for path in (
            *(ended, revoked, gone, "/shared/made-up", open_[:-1], f"{open_}/metric/dark_mode.csv"),
            *("/shared/\u00fc/x", "/shared/x/metric/browser.csv"),
        )
    ]
    known = {(each.status_code, each.text, str(each.headers)) for each in found}
    assert len(known) == 1
    assert found[0].status_code == 404
    assert "This link opens nothing" in found[0].text
    assert "dark_mode" not in found[0].text
    assert stranger.get(open_).status_code == 200


def test_who_has_the_most_links_is_told(ana, monkeypatch):
    """The form stays as it was."""
    monkeypatch.setattr("deniable_estimator.dashboard.sharing.links.MOST_OF_ONE", 1)
    shared(ana, "/metric/browser")
    sent = {"view": "/metric/browser", "days": "9", "note": "for Bob"}
    refused = ana.post("/share", data=sent)
    assert (refused.status_code, "You have 1 link" in refused.text) == (409, True)
    assert 'value="for Bob"' in refused.text


def test_people_see_and_end_their_own_links(app, ana):
    """Of others' they learn nothing; an operator sees and ends all; a reader has none."""
    links = app.extensions["deniable_links"]
    shared(ana, "/metric/browser", note="Ana's note")
    (kept,) = links.listed()
    bob = browser_of(app, "token of Bob")
    assert "Ana" not in bob.get("/links").text
    assert bob.post(f"/links/{kept.id}/revoke").status_code == 404
    reader = browser_of(app, "token of Rea")
    for refused in (
        reader.get("/links"), reader.get("/share?view=/metric/browser"),
        reader.post("/share", data={"view": "/metric/browser", "days": "1"}),
        reader.post(f"/links/{kept.id}/revoke"),
    ):  # fmt: skip
        assert refused.status_code == 403
    assert "/share?" not in reader.get("/metric/browser").text
    operator = browser_of(app)
    listed = operator.get("/links").text
    assert "<bdi>Ana</bdi>" in listed
    assert "Ana&#39;s note" in listed
    assert links.listed() == [kept]
    assert operator.post(f"/links/{kept.id}/revoke").status_code == 303
    assert links.listed() == []


@pytest.mark.parametrize(
    ("view", "told"),
    [
        ("/", "This page cannot be shared"),
        ("/metric/browser.csv", "This page cannot be shared"),
        ("https://evil.example/metric/browser", "This page cannot be shared"),
        ("//evil.example/metric/browser", "This page cannot be shared"),
        ("/metric/browser\n", "This page cannot be shared"),
        ("/metric/" + "b" * MOST_ADDRESS, "This page cannot be shared"),
        ("/metric/nothing", "There is no such view"),
        ("/metric/browser?from=soon", "“from”: Write year"),
        ("/metric/browser?form=2026-11-01", "Did you mean “from”"),
        ("/metric/browser?from=2026-11-01&from=2026-11-02", "names a parameter twice"),
        ("/metric/browser?line=1", "is yours alone"),
        ("/metric/browser/compare?before_from=x", "Write year"),
    ],
)
def test_what_cannot_be_shared_is_said(app, ana, view, told):
    """By the form and when it is sent; nothing is kept."""
    for page in (
        ana.get("/share", query_string={"view": view}),
        ana.post("/share", data={"view": view, "days": "30"}),
    ):
        assert page.status_code == 400
        assert told in unescape(page.text)
    assert app.extensions["deniable_links"].listed() == []


@pytest.mark.parametrize(
    ("field", "text", "told"),
    [
        ("days", "0", "must be a whole number of days from 1 to 90"),
        ("days", "91", "must be a whole number of days from 1 to 90"),
        ("days", "٣", "must be a whole number"),
        ("days", "9" * 5000, "must be a whole number"),
        ("note", "x" * 201, "must be one line of up to 200 characters"),
        ("note", "\u202eevil", "must be one line"),
    ],
)
def test_mistakes_in_the_form_are_named(app, ana, field, text, told):
    """At their field, with all else as it was sent; nothing is kept."""
    sent = {"view": "/metric/browser", "days": "7", "note": "kept", "unfinished": "1", field: text}
    page = ana.post("/share", data=sent)
    assert page.status_code == 400
    assert told in page.text
    assert 'aria-invalid="true"' in page.text
    assert 'name="unfinished" value="1" checked' in page.text
    assert app.extensions["deniable_links"].listed() == []


def test_the_limit_of_days_is_a_setting(new_app):
    """The form proposes no more than is allowed."""
    client = browser_of(new_app(dashboard_link_days=7))
    assert 'value="7"' in client.get("/share?view=/metric/browser").text
    sent = {"view": "/metric/browser", "days": "8"}
    assert "from 1 to 7" in client.post("/share", data=sent).text


def test_links_are_told_to_nobody(ana, stranger):
    """Of a link's pages, files and refusals no other site learns, no search engine keeps and no
    cache stores anything."""
    link = shared(ana, "/metric/browser")
    for path in (link, f"{link}/metric/browser.csv", f"{link}/metric/browser.png", "/shared/none"):
        headers = stranger.get(path).headers
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Robots-Tag"] == "noindex, nofollow, noarchive"
        assert headers["Cache-Control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "Set-Cookie" not in headers


def test_a_link_knows_nobody(app, ana):
    """Whoever opens it, signed in or with a token, sees what everybody sees; nobody is asked for a
    token, slowed for a wrong one, or signed out by it."""
    link = shared(ana, "/metric/browser")
    page = browser_of(app, "").get(link).text
    assert ana.get(link).text == page
    for shown in (TOKEN, "wrong"):
        bearer = {"Authorization": f"Bearer {shown}"}
        assert browser_of(app, "").get(link, headers=bearer).text == page
    assert ana.get("/").status_code == 200


@pytest.mark.parametrize("growing", [STILL_TAKES, RUNNING])
def test_only_settled_windows_are_shown(ana, stranger, store, registry, clock, growing):
    """What reports add to a window that runs, or that has ended and still takes late reports,
    changes nothing that the link shows, on the page and in its files, so nobody can subtract; a
    link that was made for it does show it. Seven days after its end everybody sees it."""
    days = f"/metric/browser?from=2026-11-20&to={growing}"
    settled, running = shared(ana, days), shared(ana, days, unfinished="1")
    files = [f"{settled}/metric/browser.{form}" for form in ("csv", "json", "svg")]
    files += [f"{settled}/metric/browser/trend.{form}" for form in ("csv", "json")]

    def seen():
        return [stranger.get(each).get_data() for each in (settled, *files)]

    before, with_it = seen(), stranger.get(running).text
    assert "20,000 devices reported" in before[0].decode()
    fill(store, registry, "browser", [1.0, 0.0, 0.0, 0.0], 5_000, growing)
    assert seen() == before
    assert "25,000 reports" in stranger.get(running).text
    assert "25,000 reports" not in with_it
    clock.now = windows.end(growing) + SETTLED - 1
    assert "25,000 reports" not in stranger.get(settled).text
    clock.now += 1
    assert "25,000 reports" in stranger.get(settled).text


@pytest.mark.parametrize("view", ["/metric/browser?from=2026-11-14&to=2026-11-21", "/boards/main"])
def test_a_chart_alone_can_be_shared(new_app, tmp_path, store, registry, view):
    """In a frame of the sites that may show charts, and of no other; without one, or without the
    dashboard's address, by itself; it has no file and no way to the dashboard, shows no window
    that takes reports, and ends when it is revoked. The page that opens nothing is framed too."""
    boards = tmp_path / "boards"
    boards.mkdir()
    (boards / "main.toml").write_text(
        'schema = 1\ntitle = "T"\n[[items]]\nmetric = "browser"\nfrom = 2026-11-14\n'
        "to = 2026-11-21\n"
    )
    site, here, nobody = "https://wiki.acme.example", "https://d.example", "'none'"
    for origins, public_url, lack in (
        (site, here, ""), ("", here, "FRAME_ANCESTORS"), (site, "", "DENIABLE_PUBLIC_URL"),
    ):  # fmt: skip
        app = new_app(dashboard_frame_ancestors=origins, public_url=public_url, boards=str(boards))
        client, stranger = browser_of(app), browser_of(app, "")
        form = client.get("/share", query_string={"view": view}).text
        assert (lack in form) if lack else ("No site may show" not in form)
        sent = {"view": view, "days": "9", "part": "chart"}
        forwarded = {"X-Forwarded-Host": "evil.example"}
        page = unescape(unescape(client.post("/share", data=sent, headers=forwarded).text))
        found = re.search(r'id="address"[^>]* value="([^"]+)"', page)
        assert found is not None
        assert found[1].startswith(f"{public_url or 'http://localhost'}/shared/")
        assert (f'<iframe src="{found[1]}"' in page) is not bool(lack)
        link = urlsplit(found[1]).path
        before = stranger.get(link)
        assert before.status_code == 200
        assert "chrome" in before.text
        assert addresses(before.text) <= {"/static/dashboard.css?v=0.1.0"}
        fill(store, registry, "browser", [1.0, 0.0, 0.0, 0.0], 5_000, STILL_TAKES)
        assert stranger.get(link).text == before.text
        (kept,) = app.extensions["deniable_links"].listed()
        client.post(f"/links/{kept.id}/revoke")
        closed = stranger.get(link)
        assert closed.status_code == 404
        for answer in (before, closed):
            policy = answer.headers["Content-Security-Policy"]
            assert f"frame-ancestors {origins or nobody};" in policy
        assert "frame-ancestors 'none'" in client.get("/").headers["Content-Security-Policy"]


def test_strings_of_a_session_are_not_shared(empty_store, clock):
    """A page with the reader's own list offers no link; whoever opens a link sees the operator's
    list or none, also with a list of one's own."""
    registry = Registry.parse(SITE)
    empty_store.publish([("site", registry["site"].scheme)])
    app = dashboard_of(empty_store, registry, clock)
    client = browser_of(app)
    assert "/share?" in text_of(client, "/metric/site")
    link = shared(client, "/metric/site")
    client.post("/metric/site", data={"candidates": (BytesIO(b"a.example\nb.example\n"), "l.txt")})
    page = text_of(client, "/metric/site")
    assert "your list of 2" in page
    assert "/share?" not in page
    opened = text_of(client, link)
    assert "Which strings?" in opened
    assert "your list" not in opened


def test_a_file_that_cannot_be_used(new_app, tmp_path):
    """At the start it is named; one that breaks later gives 503, not the page of a link that has
    ended."""
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=r"DENIABLE_DATA: the folder .* cannot be made"):
        new_app(data=str(tmp_path / "file"))
    app = new_app()
    client = browser_of(app)
    (tmp_path / "links.db").write_text("no database " * 200)
    for answer in (
        client.get("/links"), client.get("/shared/x"),
        client.post("/share", data={"view": "/metric/browser", "days": "1"}),
        client.post("/links/x/revoke"),
    ):  # fmt: skip
        assert answer.status_code == 503


@pytest.mark.parametrize("path", ["/share", "/links/0123456789ab/revoke"])
def test_other_sites_make_and_revoke_nothing(app, ana, path):
    """A form of another site is refused, and so is whoever has not signed in."""
    sent = {"view": "/metric/browser", "days": "1"}
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        assert ana.post(path, data=sent, headers=headers).status_code == 403
    assert browser_of(app, "").post(path, data=sent).status_code == 303
    assert app.extensions["deniable_links"].listed() == []
