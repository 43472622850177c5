"""The overview: what needs attention, changes and sparklines, list, order, pages and search."""

import html
import re
import threading
import time
from datetime import date, timedelta

import pytest
from tests import registries

from deniable import Registry
from deniable_collector.stores import StoreUnavailable
from deniable_estimator.dashboard.overview import cache
from deniable_estimator.dashboard.overview.listing import PAGE_SIZE
from deniable_estimator.dashboard.overview.summary import summarize

from .conftest import Clock, browser_of, dashboard_of, fill, text_of

TODAY = date(2026, 11, 21)
VALUES = ["Firefox", "chrome", "<script>alert(1)</script>"]
SHARES = [0.3, 0.6, 0.1]


def declared(*names, more=""):
    """Metrics over three values; `more` is a further line of the last one."""
    one = {"type": "category", "values": VALUES}
    return Registry.parse(registries.declared(**dict.fromkeys(names, one)) + more)


def visit(store, registry, folder=""):
    """A signed-in browser at a dashboard that has calculated nothing."""
    store.publish((metric.name, metric.scheme) for metric in registry)
    return browser_of(dashboard_of(store, registry, candidates_dir=str(folder)))


def names(page):
    """The metrics of the cards or of the list, in their order."""
    results = page.partition('<div id="results">')[2]
    return re.findall(r'(?:<h2>|<th scope="row">)<a href="/metric/(\w+)', results)


def strip(page):
    """metric -> the code and the text of what needs attention."""
    part = page.partition('id="strip"')[2].partition("</section>")[0]
    lines = re.findall(r'<li class="(\w+)"><a href="[^"]*">(\w+)</a> <span>(.*?)</span>', part)
    return {name: (code, html.unescape(text)) for code, name, text in lines}


@pytest.mark.parametrize("last", [2, 8])
def test_a_week_is_compared_with_four_weeks_before(empty_store, last):
    """A change of a whole week is found against all of the four weeks before it, though reports
    are judged a day late, and though the newest are as old as news may be."""
    registry = declared("moved")
    client = visit(empty_store, registry)
    for ago in range(last, last + 35):
        shares = [0.311, 0.589, 0.1] if ago < last + 7 else SHARES
        fill(empty_store, registry, "moved", shares, 20_000, (TODAY - timedelta(ago)).isoformat())
    code, text = strip(text_of(client, "/"))["moved"]
    assert code == "change"
    assert "vs 28 earlier windows" in text


def test_many_metrics_have_pages(empty_store):
    """A page has 50 metrics; the next one has the rest, and a page beyond the last is the last.
    The strip tells of all metrics, whatever the page."""
    every = [f"m_{place:03}" for place in range(120)]
    registry = declared(*every, more="expires = 2026-12-01\n")
    client = visit(empty_store, registry)
    first = text_of(client, "/")
    assert names(first) == every[:PAGE_SIZE]
    assert list(strip(first)) == ["m_119"]
    assert "Page 1 of 3" in first
    assert 'rel="next" href="/?page=2"' in first
    last = text_of(client, "/?page=99")
    assert names(last) == every[100:]
    assert 'rel="prev" href="/?page=2"' in last
    assert names(text_of(client, "/?page=3&state=expires")) == ["m_119"]
    assert len(first) < 150_000


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("q=FIREFOX", ["browser"]),
        ("q=fire+which", ["browser"]),
        ("q=a.example", ["site"]),
        ("q=%C3%A9", ["site"]),
        ("q=e%CC%81", ["site"]),
        ("q=nowhere.example", []),
        ("type=string", ["site"]),
        ("type=category&platform=web", ["browser"]),
        ("platform=python", ["site"]),
        ("state=waiting", ["site"]),
        ("q=%3Cscript%3E", ["browser"]),
        ("q=%E2%80%AE", []),
    ],
)
def test_a_search_finds_values(empty_store, tmp_path, query, wanted):
    """A word is found in declared values and listed strings, in any case and normal form; type,
    platform and state narrow it. A metric without a platform is on all of them."""
    text = registries.declared(
        browser={"type": "category", "values": VALUES, "platform": "web"},
        site={"type": "string", "description": "Where?"},
    )
    registry = Registry.parse(text)
    (tmp_path / "site.txt").write_text(
        "a.example\ncaf\u00e9.example\nb.example\n", encoding="utf-8"
    )
    client = visit(empty_store, registry, tmp_path)
    fill(empty_store, registry, "browser", SHARES, 20_000)
    page = text_of(client, f"/?{query}")
    assert names(page) == wanted
    assert "<script>" not in page


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("state=sad", "“state”: Choose one of attention, anomaly"),
        ("sort=up", "“sort”: Choose one of registry, name"),
        ("view=pie", "“view”: Choose one of cards, list"),
        ("page=٣", "“page”: Write a whole number"),
        ("from=soon", "“from”: Write year"),
        ("from=2026-11-20&to=2026-11-01", "Swap the two dates"),
        ("stat=calm", "Did you mean “state”?"),
    ],
)
def test_a_wrong_address_is_told(empty_store, query, told):
    """What cannot be shown is named with what can, and the page shows all metrics."""
    client = visit(empty_store, declared("well", "fine"))
    page = client.get(f"/?{query}")
    assert page.status_code == 400
    assert told in html.unescape(page.text)
    assert names(page.text) == ["well", "fine"]


def test_reports_are_shown_at_once_and_old_windows_later(empty_store, monkeypatch):
    """New reports of a window that still takes some are on the next page. A window of last month,
    which only an operator changes, is looked at again after ten minutes."""
    registry = declared("well", "fine")
    client = visit(empty_store, registry)
    clock = Clock()
    monkeypatch.setattr(cache, "monotonic", clock)
    assert "20,000 reports" not in text_of(client, "/")
    fill(empty_store, registry, "well", SHARES, 20_000, "2026-11-13")
    assert "20,000 reports" in text_of(client, "/")
    fill(empty_store, registry, "well", SHARES, 20_000, "2026-10-30")
    assert "20,000 reports" in text_of(client, "/")
    clock.now = 601
    text_of(client, "/")
    while "40,000 reports" not in text_of(client, "/"):
        time.sleep(0.01)


def test_a_long_round_is_followed_by_a_rest(empty_store, monkeypatch):
    """While reports arrive without end, calculations take a fifth of a core: after a long round the
    page shows what is known, says how much of it is older, and the next round waits."""
    registry = declared("well", "fine")
    client = visit(empty_store, registry)
    clock = Clock()
    for name in ("monotonic", "thread_time"):
        monkeypatch.setattr(cache, name, clock)
    real = cache.summarize

    def slow(*arguments, **more):
        clock.now += 1.0
        return real(*arguments, **more)

    monkeypatch.setattr(cache, "summarize", slow)
    text_of(client, "/")
    fill(empty_store, registry, "well", SHARES, 20_000)
    page = client.get("/")
    assert page.status_code == 200
    assert "20,000 reports" not in page.text
    assert "1 metric is being calculated" in page.text
    clock.now += 7.9
    assert "20,000 reports" not in client.get("/").text
    clock.now += 0.2
    assert "20,000 reports" in client.get("/").text


def test_a_store_that_is_away_is_told(empty_store, monkeypatch):
    """Where the store cannot be read the page says so, also if that happens in the background."""
    client = visit(empty_store, declared("well", "fine"))

    def away(*arguments):
        raise StoreUnavailable("it is away")

    for name in ("versions", "windows"):
        with monkeypatch.context() as patch:
            patch.setattr(empty_store, name, away)
            assert client.get("/").status_code == 503, name
    assert client.get("/").status_code == 200


def test_a_store_that_was_away_is_not_told_later(empty_store, monkeypatch):
    """A round that failed after its page was sent is no error of the next page."""
    client = visit(empty_store, declared("well", "fine"))
    asked, failed = threading.Event(), threading.Event()

    def away(*arguments, **more):
        asked.wait(120)
        failed.set()
        raise StoreUnavailable("it is away")

    with monkeypatch.context() as patch:
        patch.setattr("deniable_estimator.dashboard.overview.page.PAGE_PATIENCE", 0.0)
        patch.setattr(cache, "summarize", away)
        assert client.get("/").status_code == 202
        asked.set()
        assert failed.wait(120)
        jobs = client.application.extensions["deniable_source"].results._jobs
        while not all(each.future.done() for each in list(jobs.values())):
            time.sleep(0.01)
    assert client.get("/").status_code == 200


def test_a_first_day_is_said_to_lack_a_week_and_not_reports(empty_store):
    """A metric whose only reports are younger than the newest complete week has nothing to be
    compared with; its reports are there, and the forecast gives way to them."""
    registry = declared("young", more="devices = 50\n")
    client = visit(empty_store, registry)
    assert "Few devices are expected" in text_of(client, "/")
    fill(empty_store, registry, "young", SHARES, 40_000)
    page = text_of(client, "/")
    assert "40,000 reports" in page
    assert "no reports in these days" not in page
    assert "nothing to compare: no reports in the newest complete week" in page
    assert "Few devices are expected" not in page


def test_what_is_missing_is_marked_to_be_filled_in(empty_store):
    """Parts of a cold overview are looked for again, by a script or by a refresh without one, until
    they are there."""
    registry = declared(*(f"m_{place}" for place in range(3)))
    client = visit(empty_store, registry)
    for name in registry.metrics:
        fill(empty_store, registry, name, SHARES, 1000)
    refresh = '<noscript><meta http-equiv="refresh" content="2"></noscript>'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("deniable_estimator.dashboard.overview.page.PAGE_PATIENCE", 0.0)
        shown = threading.Event()

        def later(*asked, **options):
            shown.wait()
            return summarize(*asked, **options)

        patch.setattr("deniable_estimator.dashboard.overview.cache.summarize", later)
        cold = client.get("/")
    shown.set()
    assert cold.status_code == 202
    assert refresh in cold.text
    assert cold.text.count(" data-waiting") == 2
    assert "being calculated, and appears here" in cold.text
    page = text_of(client, "/")
    assert refresh not in page
    assert " data-waiting" not in page
