"""Names and values that mean harm: escaped where they are shown, whole where they are data."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from tests.registries import declared

from deniable import Registry
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store

from .conftest import browser_of, dashboard_of, fill, page_of

VALUES = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>'",
    "{{ 7 * 7 }}{% raw %}",
    '=HYPERLINK("https://evil.example")',
    "\u202e\u2066desrever\u202e",
    "]]></style><svg onload=alert(1)>",
    "x" * 250,
    "中" * 80,
    "&lt;b&gt; ${__from} %s %00",
]
DESCRIPTION = "<script>alert('d')</script> \u202e & \"why\"?"
OWNER = "<b>owner</b>@acme.example"
PAGES = [
    "/",
    "/?q=%3Cscript%3Ealert(2)%3C/script%3E&owner=%22%3E%3Cscript%3E&tag=%27",
    "/metric/hostile",
    "/metric/hostile?value=%3Cscript%3Ealert(3)%3C/script%3E",
    "/metric/hostile?shares=normalized&order=declared",
    "/metric/hostile/compare?from=2026-11-20&before_from=2026-11-13&before_to=2026-11-13",
    "/metric/hostile?lang=zh-Hans",
    "/metric/%3Cscript%3Ealert(4)%3C%2Fscript%3E",
    "/metric/hostile?from=%3Cscript%3E",
    "/metric/hostile?by=%22%3E%3Cscript%3E",
    "/plan?size=%22%3E%3Cscript%3Ealert(5)%3C/script%3E",
    "/plan/number?unit=%22%3E%3Cscript%3Ealert(5)%3C/script%3E",
    "/login?next=/%22%3E%3Cscript%3E",
]
HARMFUL = {"img", "iframe", "object", "embed", "b", "i"}


class Reader(HTMLParser):
    """The elements and texts of a page, as a browser reads them."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.handlers: list[str] = []
        self.scripts: list[str] = []
        self.text = ""
        self.parts: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag == "script":
            self.scripts.append(dict(attrs).get("src") or "inline")

    def handle_data(self, data):
        self.text += data
        self.parts.append(data.strip())


@pytest.fixture(scope="module")
def registry():
    texts = {"description": DESCRIPTION, "owner": OWNER, "tags": ["<i>tag</i>"], "values": VALUES}
    return Registry.parse(declared(hostile={"type": "category", **texts}))


@pytest.fixture(scope="module")
def hostile_app(tmp_path_factory, registry):
    """A dashboard; every value has been reported, the first one most."""
    store = open_store(Settings(store=f"sqlite:///{tmp_path_factory.mktemp('hostile')}/tallies.db"))
    store.publish([("hostile", registry["hostile"].scheme)])
    shares = [0.2, *([0.1] * 8)]
    fill(store, registry, "hostile", shares, 50_000, "2026-11-13")
    fill(store, registry, "hostile", shares[::-1], 50_000, "2026-11-20")
    yield dashboard_of(store, registry)
    store.close()


@pytest.fixture
def client(hostile_app):
    """A signed-in browser."""
    return browser_of(hostile_app, accept="text/html,*/*;q=0.8")


@pytest.mark.parametrize("path", PAGES)
def test_a_page_holds_no_element_that_a_text_has_brought(client, path):
    """No script, picture or handler comes out of a value, a description or an address, and
    the page forbids every script besides the dashboard's own files. A mark that reorders what
    follows stands in no text but that of the value itself; in sentences it is replaced."""
    answer = page_of(client, path)
    assert answer.status_code in (200, 303, 400, 404)
    page = Reader()
    page.feed(answer.text)
    assert not page.tags & HARMFUL
    assert not page.handlers
    assert all(source.startswith("/static/pages.js?") for source in page.scripts)
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert {part for part in page.parts if "\u202e" in part} <= {VALUES[4], DESCRIPTION}
    if path == "/metric/hostile":
        assert "\u2068\ufffd\ufffddesrever\ufffd\u2069: " in page.text


def test_a_page_shows_every_text_as_it_is(client):
    """Escaped is not lost: the reader sees what was declared."""
    page = Reader()
    page.feed(client.get("/metric/hostile").text)
    for text in (DESCRIPTION, OWNER, *VALUES):
        assert text in page.text


def test_a_picture_is_well_formed(client):
    """SVG is XML: it parses, and holds no element but drawing."""
    picture = client.get("/metric/hostile.svg").data
    tags = {each.tag.rpartition("}")[2] for each in ElementTree.fromstring(picture).iter()}
    assert not tags & {"script", "image", "foreignObject", "a", "b", "i"}


@pytest.mark.parametrize(
    "path",
    [
        "/metric/hostile.csv?raw=1",
        "/metric/hostile.json",
        "/api/v1/metrics/hostile/estimate?raw=1&format=csv",
        "/api/v1/metrics/hostile/trend",
    ],
)
def test_files_hold_every_value_whole(client, path):
    """JSON and raw CSV carry the values themselves: quoted, not changed, and not to be sniffed."""
    answer = client.get(path)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.mimetype == ("text/csv" if "csv" in path else "application/json")
    if answer.is_json:
        rows = answer.json.get("values") or answer.json["periods"][-1]["values"]
    else:
        rows = csv.DictReader(io.StringIO(answer.text, newline=""))
    assert {row["value"] for row in rows} == set(VALUES)
