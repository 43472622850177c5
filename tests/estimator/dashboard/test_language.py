"""Pages in Chinese: whole, chosen by whoever reads them, and never instead of English data."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po
from flask import Flask
from flask.testing import FlaskClient

import deniable
from deniable import Registry
from deniable.mechanisms import all_names
from deniable_collector.stores import Store, open_store
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.language import LANGUAGES, TRANSLATIONS
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.dashboard.texts import files, template
from deniable_estimator.dashboard.words import mechanism_words
from deniable_estimator.messages import message, translated

from .conftest import TOKEN, YESTERDAY, browser_of, dashboard_of, fill, fill_numbers

CHINESE = LANGUAGES["zh-Hans"]

NAMES = frozenset(
    (
        *("deniable", "CSV", "JSON", "SVG", "PNG", "HTML", "English", "TLS", "UTF-8", "MiB"),
        *("epsilon", "sample_rate", "DENIABLE_CANDIDATES_DIR", "DENIABLE_STORE"),
        *("DENIABLE_DASHBOARD_MEMORY", "DENIABLE_DASHBOARD_SECONDS"),
        *("RAPPOR", "basic", "one-time", "Hadamard", "Count", "Mean", "Sketch", "odds"),
        # What a registry may say.
        *("scale", "log"),
        # What an address may say.
        *("share", "declared", "day", "week", "month"),
    )
)
"""What is the same in every language."""

REGISTRY = """
schema = 1
app = "example"
[defaults]
owner = "队@例"
expires = 2027-06-30

[metrics.m1]
epsilon = 1.0
lifetime_epsilon = 8.0
type = "category"
description = "问题一"
values = ["甲", "乙", "丙", "丁", "戊"]
sample_rate = 0.1
devices = 100
tags = ["标"]

[metrics.m2]
epsilon = 1.0
type = "boolean"
description = "问题二"
sample_rate = 0.02
lifetime_epsilon = 1.0

[metrics.m3]
epsilon = 1.0
lifetime_epsilon = 8.0
type = "boolean"
description = "问题三"
expires = 2026-11-01
window = "week"

[metrics.m4]
epsilon = 1.0
lifetime_epsilon = 8.0
type = "boolean"
description = "问题四"
expires = 2026-12-01
window = "month"

[metrics.m5]
epsilon = 1.0
lifetime_epsilon = 8.0
type = "string"
description = "问题五"

[metrics.m6]
epsilon = 1.0
type = "category"
description = "问题六"
values = ["甲", "乙", "丙"]
longitudinal = "memoize"
lifetime_epsilon = 4.0

[metrics.m7]
epsilon = 1.0
lifetime_epsilon = 8.0
type = "string"
description = "问题七"

[metrics.m8]
epsilon = 1.0
lifetime_epsilon = 8.0
type = "category"
description = "问题八"
values = ["甲", "乙", "丙", "丁", "戊", "己", "庚", "辛"]

[metrics.n1]
epsilon = 2.0
lifetime_epsilon = 8.0
type = "number"
description = "问题九"
low = 0.01
high = 1
unit = "秒"
scale = "log"
ask = "distribution"

[metrics.n2]
epsilon = 2.0
lifetime_epsilon = 8.0
type = "number"
description = "问题十"
low = 0
high = 50
unit = "个"
integer = true
ask = "mean"

[metrics.n3]
epsilon = 2.0
lifetime_epsilon = 8.0
type = "number"
description = "问题十一"
low = 1
high = 100
scale = "log"
ask = "mean"

[metrics.n4]
epsilon = 2.0
lifetime_epsilon = 8.0
type = "number"
description = "问题十二"
low = 0
high = 20
integer = true
ask = ["mean", "distribution"]
"""

PAGES = (
    "/", "/?q=%E6%97%A0", "/metric/m1",
    "/metric/m1?shares=normalized&order=declared&lines=all&value=%E4%B9%99&by=week",
    "/metric/m1?from=2020-01-01&to=2020-01-02", "/metric/m2", "/metric/m3", "/metric/m4",
    "/metric/m5?by=day", "/metric/m6", "/metric/m7", "/metric/m8",
    "/metric/n1?limit=0.5&value=p95&by=week", "/metric/n1?limit=%E4%B8%80",
    "/metric/n1?from=2026-11-18&to=2026-11-18", "/metric/n2", "/metric/n4?limit=2.5",
    "/metric/n1/compare?from=2026-11-20&to=2026-11-20&before_from=2026-11-19&before_to=2026-11-19",
    "/metric/m1/compare?from=2026-11-20&to=2026-11-20&before_from=2026-11-19&before_to=2026-11-19",
    "/metric/m1/compare?before_from=2026-11-01&before_to=2026-11-20", "/metric/m6/compare",
    "/plan", "/plan?size=two&epsilon=-1", "/plan/number", "/plan/lifetime",
    "/metric/m1?from=soon", "/metric/browser", "/boards", "/releases", "/links",
    "/share?view=/metric/m1",
)  # fmt: skip


class _Words(HTMLParser):
    """What a page says to people: its text, and the attributes that are read aloud or shown."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.silent += tag in ("code", "pre", "textarea")
        for name, text in attrs:
            if name in ("aria-label", "title", "placeholder", "alt") and text:
                self.said.append(text)

    def handle_endtag(self, tag: str) -> None:
        self.silent -= tag in ("code", "pre", "textarea")

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.said.append(data)


def english(page: str) -> list[str]:
    """The pieces of a page with words in them that are not Chinese, nor names."""
    words = _Words()
    words.feed(page)
    found = []
    for said in words.said:
        told = re.sub(r"`[^`]*`|“[^”]*”", "", said)
        told = re.sub(r"\b[mn]\d(\.txt)?\b|\bp\d\d\b|(2026-)?W\d+|\d+e[-+]?\d+|\d[kMB]\b", "", told)
        for word in re.findall(r"[A-Za-z][\w-]+", told):
            if word not in NAMES and word not in ("true", "false"):
                found.append(said.strip())
                break
    return found


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flask]:
    """A dashboard with a metric of each kind and state."""
    tmp_path = tmp_path_factory.mktemp("rich")
    registry = Registry.parse(REGISTRY)
    store = open_store(f"sqlite:///{tmp_path}/rich.db")
    store.publish({metric.name: [metric.scheme] for metric in registry})
    for day, shift in (("2026-11-18", 0.0), ("2026-11-19", 0.1), ("2026-11-20", 0.0)):
        fill(store, registry, "m1", [0.4 - shift, 0.3 + shift, 0.2, 0.1, 0.0], 20_000, day)
        fill(store, registry, "m2", [0.2 + shift, 0.8 - shift], 20_000, day)
        fill(store, registry, "m6", [0.5, 0.3, 0.2], 5_000, day)
    fill(store, registry, "m3", [0.2, 0.8], 20, "2026-W44")
    fill(store, registry, "m4", [0.2, 0.8], 20_000, "2026-10")
    fill(store, registry, "m8", [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, -0.2, -0.2], 20_000)
    fill_numbers(store, registry, "n1", [0.1, 0.2], "2026-11-18")
    for day, factor in (("2026-11-19", 1), (YESTERDAY, 2)):
        fill_numbers(store, registry, "n1", [0.05 * factor, 0.1, 0.2, 3] * 5_000, day)
        fill_numbers(store, registry, "n2", [3 * factor, 5, 7, 9] * 5_000, day)
        fill_numbers(store, registry, "n3", [2 * factor, 5, 7, 9] * 5_000, day)
        fill_numbers(store, registry, "n4", [2 * factor, 3, 3, 4] * 5_000, day)
    (tmp_path / "m5.txt").write_text("北京\n上海\n", encoding="utf-8")
    yield dashboard_of(
        store,
        registry,
        candidates_dir=str(tmp_path),
        dashboard_frame_ancestors="https://other.example",
    )
    store.close()


@pytest.fixture
def reader(rich: Flask) -> FlaskClient:
    """Somebody who has signed in with a browser that asks for Chinese."""
    client = rich.test_client()
    client.environ_base["HTTP_ACCEPT"] = "text/html"
    client.environ_base["HTTP_ACCEPT_LANGUAGE"] = "zh-CN,zh;q=0.9,en;q=0.5"
    assert client.post("/login", data={"token": TOKEN}).status_code == 303
    return client


@pytest.mark.campaign
def test_no_page_in_chinese_has_english_in_it(reader: FlaskClient) -> None:
    """Every sentence of every page, of errors and of what is read aloud, is translated."""
    found = {}
    for path in PAGES:
        response = reader.get(path)
        assert response.headers["Content-Language"] == "zh-Hans"
        assert '<html lang="zh-Hans">' in response.text
        found[path] = english(response.text)
    assert {path: said for path, said in found.items() if said} == {}


def test_the_language_is_chosen_by_link_cookie_and_browser_in_this_order(rich: Flask) -> None:
    """A choice in the address wins and is remembered; without any it is the browser's."""
    client = rich.test_client()

    def language(path: str, accepts: str = "") -> str:
        answer = client.get(path, headers={"Accept-Language": accepts} if accepts else {})
        return answer.headers["Content-Language"]

    assert language("/login") == "en"
    assert language("/login", "de, fr") == "en"
    assert language("/login", "en-GB, zh;q=0.5") == "en"
    for accepts in ("zh", "zh-CN", "zh-Hans-SG, en;q=0.1", "zh-SG", "de, zh-Hans;q=0.3"):
        assert language("/login", accepts) == "zh-Hans"
    assert language("/login?lang=zh-Hans") == "zh-Hans"
    assert language("/login", "en") == "zh-Hans"
    assert language("/login?lang=xx", "en") == "zh-Hans"
    assert language("/login?lang=en", "zh") == "en"
    assert language("/login", "zh") == "en"


def test_the_footer_leads_to_the_same_page_in_the_other_language(reader: FlaskClient) -> None:
    """The switch works without a script and keeps what the address asks for."""
    path = "/metric/m1?from=2026-11-19&to=2026-11-20&shares=normalized"
    page = reader.get(path).get_data(as_text=True)
    found = re.search(r'<a href="([^"]+)" lang="en" hreflang="en"', page)
    assert found
    address = found[1].replace("&amp;", "&")
    assert address == path + "&lang=en"
    answer = reader.get(address)
    assert answer.headers["Content-Language"] == "en"
    assert "normalized share (sums to 100%)" in answer.get_data(as_text=True)
    assert reader.get(path).headers["Content-Language"] == "en"


def test_a_cache_cannot_mix_languages(reader: FlaskClient) -> None:
    """A page says what its language depended on, and may not be stored."""
    answer = reader.get("/")
    assert {"Accept-Language", "Cookie"} <= set(answer.vary)
    assert answer.headers["Cache-Control"] == "no-store"


def test_the_catalogues_are_up_to_date() -> None:
    """After a change of a text `make texts` has been run, and its result committed."""
    for path, content in files():
        assert path.read_bytes() == content, f"{path.name}: run make texts"


def _catalog() -> Catalog:
    with (TRANSLATIONS / "zh_Hans.po").open("rb") as file:
        return read_po(file, locale="zh_Hans")


def test_every_text_is_translated() -> None:
    """No text is missing, empty or waiting to be looked at."""
    catalog = _catalog()
    assert len(list(template())) == len(list(catalog)) > 400
    for each in catalog:
        if each.id:
            texts = each.string if isinstance(each.string, tuple) else (each.string,)
            assert all(texts), each.id
            assert not each.fuzzy, each.id


def _placeholders(text: str) -> set[str]:
    """What is to be filled in, with how it is written; and the elements of HTML."""
    braces = {
        f"{name}:{spec}!{conversion}"
        for _, name, spec, conversion in string.Formatter().parse(text.replace("%(", "%%("))
        if name
    }
    return braces | set(re.findall(r"%\(\w+\)s", text)) | set(re.findall(r"</?\w+[^>]*>", text))


def test_translations_fill_in_what_the_english_does() -> None:
    """Placeholders, formats and elements of HTML are the same on both sides."""
    for each in _catalog():
        if each.id:
            one = each.id if isinstance(each.id, str) else each.id[0]
            told = each.string if isinstance(each.string, str) else each.string[0]
            assert _placeholders(one) == _placeholders(told), one


def test_a_message_is_its_english_text() -> None:
    """Whoever knows nothing of languages sees a str; whoever does finds its template."""
    from deniable_estimator.messages import counted, joined

    made = message("too few reports (only {n}) to draw conclusions about all devices", n=7)
    assert made == "too few reports (only 7) to draw conclusions about all devices"
    assert str(ValueError(made)) is made
    assert translated(made, LANGUAGES["en"]) == made
    assert translated(made, CHINESE) == "只有 7 份上报：太少，无法推断全部设备的情况"
    assert translated("browser", CHINESE) == "browser"
    assert counted("{count} a", "{count} b", 1) == "1 a"
    assert counted("{count} a", "{count} b", 2) == "2 b"
    assert joined(["a", "b", "c"]) == "a; b; c"
    assert translated(joined(["a", "b"]), CHINESE) == "a；b"


def test_sentences_of_the_client_package_are_translated() -> None:
    """Of every sentence that the client package says with a code, and of every mechanism's name,
    the catalogue has the template."""
    catalog = _catalog()
    found = 0
    for path in sorted(Path(deniable.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "CodedMessage":
                template = ast.literal_eval(node.args[1])
                assert template in catalog, template
                assert catalog[template].string, template
                found += 1
    assert found > 30
    for name in all_names():
        assert english(translated(mechanism_words(name), CHINESE)) == []


def test_a_hostile_text_is_escaped_in_every_language(store: Store, registry: Registry) -> None:
    """What a translation is filled with is no more trusted than what a template is."""
    app = create_app(DashboardSettings(dashboard_token=TOKEN), store=store, registry=registry)
    client = browser_of(app)
    for path in ("/metric/browser", "/metric/browser/compare", f"/metric/{quote('<script>')}"):
        page = client.get(f"{path}?lang=zh-Hans").get_data(as_text=True)
        assert "<script" not in page
