"""Uploaded lists of strings: kept for one session, within limits, and told to nobody."""

import csv
import html
import io
import logging
import re

import pytest

from deniable_collector.operation.events import EventFormatter
from deniable_estimator.dashboard.metric_view import PageReading
from deniable_estimator.dashboard.uploads import KEPT_SECONDS, MOST_OF_ONE, Uploads

from .conftest import NOW, TOKEN, Clock, browser_of, dashboard_of
from .test_candidates import client, folder, registry

__all__ = ["client", "folder", "registry"]
ME, YOU = "1" * 32, "2" * 32


@pytest.fixture
def clock():
    return Clock(NOW)


@pytest.fixture
def uploads(clock):
    return Uploads(clock, 11_000)


def kept(uploads):
    """The bytes of each list that is kept."""
    return [len(each) for each in uploads._lists.values()]


def test_a_list_is_forgotten_on_request(uploads):
    """One list, or all of a session's, leave the memory; those of others stay. A list is found for
    its metric alone, and a new one replaces it."""
    for session in (ME, YOU):
        for metric in ("site", "page"):
            uploads.keep(session, metric, b"b")
            uploads.keep(session, metric, b"a")
    assert uploads.find(ME, "other") is None
    uploads.forget(ME, "site")
    assert uploads.find(ME, "site") is None
    assert uploads.find(ME, "page") == b"a"
    uploads.forget(ME)
    assert uploads.find(ME, "page") is None
    assert uploads.find(YOU, "site") == uploads.find(YOU, "page") == b"a"
    assert len(kept(uploads)) == 2


def test_a_list_is_forgotten_after_a_time(uploads, clock):
    """To look at a list keeps it; after the time without that it is given to nobody, and the next
    request of anybody deletes it."""
    uploads.keep(ME, "site", b"a")
    uploads.keep(YOU, "site", b"b")
    clock.now += KEPT_SECONDS - 1
    assert uploads.find(ME, "site") == b"a"
    clock.now += 2
    assert uploads.find(YOU, "site") is None
    assert uploads.find(ME, "site") == b"a"
    clock.now += KEPT_SECONDS + 1
    uploads.sweep()
    assert kept(uploads) == []


def test_one_session_has_a_bounded_number(uploads, clock):
    """One more than the most pushes out the one that was looked at the longest ago, of the same
    session alone."""
    uploads.keep(YOU, "site", b"y")
    for number in range(MOST_OF_ONE):
        clock.now += 1
        uploads.keep(ME, f"metric{number}", b"a")
    clock.now += 1
    assert uploads.find(ME, "metric0") == b"a"
    uploads.keep(ME, "one_more", b"a")
    found = [uploads.find(ME, f"metric{number}") for number in range(MOST_OF_ONE)]
    assert found == [b"a", None, *[b"a"] * (MOST_OF_ONE - 2)]
    assert uploads.find(YOU, "site") == b"y"


def test_all_sessions_have_a_bounded_size(uploads):
    """However many sessions there are, no more bytes are kept than the most, and the smallest lists
    count as more than their text: those go first that were looked at the longest ago."""
    for number in range(20):
        uploads.keep(f"{number:032}", "site", b"a")
    assert len(kept(uploads)) == 10
    assert uploads.find(f"{9:032}", "site") is None
    assert uploads.find(f"{19:032}", "site") == b"a"
    uploads.keep(ME, "site", b"m" * 6_000)
    assert sum(kept(uploads)) <= 11_000
    uploads.keep(YOU, "site", b"y" * 4_000)
    assert kept(uploads) == [4_000]


# The dashboard


def send(client, data, query=""):
    """Upload a list as the page does; where its answer leads."""
    form = {"candidates": (io.BytesIO(data), "secret-name.txt")}
    answer = client.post(f"/metric/site{query}", data=form, content_type="multipart/form-data")
    assert answer.status_code == 303, answer.text
    return str(answer.headers["Location"])


def links(page):
    return [html.unescape(each) for each in re.findall(r'(?:href|action|src)="([^"]*)"', page)]


def test_an_uploaded_list_stays(client):
    """After one upload every view of the metric has its strings: other days, the trend, order,
    comparison, files and pictures; until it is forgotten."""
    target = send(client, b"b.example\na.example\n", "?from=2026-11-01&to=2026-11-20")
    assert target == "/metric/site?from=2026-11-01&to=2026-11-20"
    page = client.get(target).text
    assert "a.example leads with 7" in page
    assert "your list of 2 strings" in page
    week = next(each for each in links(page) if "by=week" in each)
    for path in ("/metric/site", week, "/metric/site?order=declared&shares=normalized"):
        assert "a.example leads with 7" in client.get(path).text
    rows = list(csv.DictReader(io.StringIO(client.get("/metric/site.csv").text)))
    assert [row["value"] for row in rows] == ["b.example", "a.example"]
    assert client.get("/metric/site.json").json["n"] == 20_000
    assert "a.example" in client.get("/metric/site.svg").text
    assert client.get("/metric/site/trend.csv").text.count("a.example") == 1
    (away,) = [each for each in links(page) if each.endswith("/forget")]
    gone = client.post(away)
    assert gone.status_code == 303
    assert "Which strings?" in client.get("/metric/site").text
    assert client.get("/metric/site.csv").status_code == 400


def test_it_is_preferred_to_the_operators(client, folder):
    """Over the operator's list the reader's own holds, for that reader, and not on the overview or
    in the API; forgotten, the operator's is there again."""
    (folder / "site.txt").write_text("b.example\n")
    send(client, b"a.example\n")
    assert "a.example has 7" in client.get("/metric/site").text
    assert "a.example" not in client.get("/").text
    values = client.get("/api/v1/metrics/site/estimate?from=2026-11-01").json["values"]
    assert [each["value"] for each in values] == ["b.example"]
    client.post("/metric/site/forget")
    assert "b.example has 2" in client.get("/metric/site").text


def test_another_person_in_one_browser_does_not_see_it(empty_store, registry):
    """Whom a proxy names sees no list that somebody else has sent from the same browser."""
    app = dashboard_of(
        empty_store, registry, dashboard_proxies=("127.0.0.1",),
        dashboard_user_header="X-User", dashboard_role_header="X-Role",
    )  # fmt: skip
    browser = app.test_client()
    told = {"ACCEPT": "text/html", "X_ROLE": "analyst", "SEC_FETCH_SITE": "same-origin"}
    browser.environ_base.update({f"HTTP_{name}": text for name, text in told.items()})
    for name, sends, sees in (("Ana", True, True), ("Bob", False, False), ("Ana", False, True)):
        browser.environ_base["HTTP_X_USER"] = name
        if sends:
            send(browser, b"a.example\n")
        assert ("your list of 1 string" in browser.get("/metric/site").text) is sees
    browser.post("/logout")
    assert kept(app.extensions["deniable_uploads"]) == []


def test_another_reader_does_not_see_it(client):
    """A list is one session's: another browser with the same token does not have it, nor does the
    same one after signing out."""
    send(client, b"a.example\n")
    other = browser_of(client.application, accept="")
    assert "Which strings?" in other.get("/metric/site").text
    bearer = client.application.test_client()
    token = {"Authorization": f"Bearer {TOKEN}"}
    assert bearer.get("/metric/site.csv", headers=token).status_code == 400
    client.post("/logout")
    client.post("/login", data={"token": TOKEN})
    assert "Which strings?" in client.get("/metric/site").text


def test_nothing_of_it_is_in_an_address(client):
    """Neither the answer to the upload nor any link of any page has a string of the list, not even
    to choose whose trend is drawn: that is told by its line."""
    pages = [send(client, b"nobody.example\na.example\nb.example\n")]
    pages += [*pages, "/metric/site?by=day", "/metric/site?by=day&order=declared"]
    found = []
    for path in pages:
        page = client.get(path).text
        found += links(page)
    assert not any("example" in each and "deniable" not in each for each in found)
    assert not any("secret-name" in each for each in found)
    picture = client.get("/metric/site.svg?line=3").text
    assert "a.example" in picture
    for line in ("0", "4", "-1", "x", "٣"):
        answer = client.get(f"/metric/site?line={line}")
        assert answer.status_code == 400
        assert answer.json["detail"].startswith("“line” can be a whole number from 1 to 3")
    mistaken = client.get("/metric/site?line=9", headers={"Accept": "text/html"}).text
    assert any(each.endswith("/forget") for each in links(mistaken))
    client.post("/metric/site/forget")
    gone = client.get("/metric/site?line=1", headers={"Accept": "text/html"})
    assert gone.status_code == 400
    assert "none is kept here" in gone.text
    assert 'type="file"' in gone.text


def test_nothing_of_it_is_in_a_log(client, monkeypatch):
    """Whatever happens, also a failure whose text names a string, no line of the log does."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(EventFormatter("json"))
    root = logging.getLogger()
    monkeypatch.setattr(root, "level", logging.DEBUG)
    root.addHandler(handler)
    try:
        send(client, b"a.example\nb.example\n")
        client.get("/metric/site?by=day")
        bad = {"candidates": (io.BytesIO(b"a.example\na.example"), "secret-name.txt")}
        client.post("/metric/site", data=bad, content_type="multipart/form-data")

        def fail(*arguments, **more):
            raise RuntimeError("a.example cannot be counted")

        monkeypatch.setattr(PageReading, "estimate", fail)
        assert client.get("/metric/site").status_code == 500
    finally:
        root.removeHandler(handler)
    assert "a page failed" in text.getvalue()
    assert "example" not in text.getvalue().replace("deniable", "")
    assert "secret-name" not in text.getvalue()
