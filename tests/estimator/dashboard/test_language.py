"""Pages in Chinese: whole, chosen by whoever reads them, and never instead of English data."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po
from flask import Flask, render_template
from flask.testing import FlaskClient
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import (
    BadRequest,
    BadRequestKeyError,
    ImATeapot,
    MethodNotAllowed,
    NotFound,
)
from werkzeug.test import TestResponse

import deniable
from deniable import Registry, SchemeError, ValueListError
from deniable.mechanisms import all_names, design_memoized, explain
from deniable.value_list import parse_values
from deniable_collector.stores import Store, open_store
from deniable_estimator.analyses.anomalies import SENTENCES, Figure, Verdict
from deniable_estimator.dashboard import create_app
from deniable_estimator.dashboard.decodes import StillDecoding, TooManyDecodes
from deniable_estimator.dashboard.language import LANGUAGES, TRANSLATIONS
from deniable_estimator.dashboard.problems import ApiProblem, told_error
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.dashboard.texts import files, template
from deniable_estimator.dashboard.words import mechanism_words
from deniable_estimator.dashboard.workers import TooHeavy, WorkersClosed
from deniable_estimator.forecasting.forecast import forecast
from deniable_estimator.messages import Message, message, translated

from .conftest import NOW, TOKEN, YESTERDAY, fill, fill_numbers

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

PAGES = [
    "/",
    "/?q=%E6%97%A0",
    "/?owner=%E9%98%9F@%E4%BE%8B",
    "/metric/m1",
    "/metric/m1?shares=normalized&order=declared&lines=all&value=%E4%B9%99&by=week",
    "/metric/m1?from=2026-11-20&to=2026-11-20",
    "/metric/m1?from=2020-01-01&to=2020-01-02",
    "/metric/m2",
    "/metric/m3",
    "/metric/m4",
    "/metric/m5",
    "/metric/m5?by=day",
    "/metric/m6",
    "/metric/m7",
    "/metric/m8",
    "/metric/n1",
    "/metric/n1?limit=0.5&value=p95&by=week",
    "/metric/n1?limit=0.4321&value=geometric%20mean",
    "/metric/n1?limit=%E4%B8%80",
    "/metric/n1?limit=7",
    "/metric/n1?from=2026-11-18&to=2026-11-18",
    "/metric/n1?from=2020-01-01&to=2020-01-02",
    "/metric/n1/compare?from=2026-11-20&to=2026-11-20&before_from=2026-11-19&before_to=2026-11-19",
    "/metric/n2",
    "/metric/n2/compare?from=2026-11-20&to=2026-11-20&before_from=2026-11-19&before_to=2026-11-19",
    "/metric/n2?limit=3",
    "/metric/n3",
    "/metric/n4?limit=2.5",
    "/metric/m1/compare",
    "/metric/m1/compare?from=2026-11-20&to=2026-11-20&before_from=2026-11-19&before_to=2026-11-19",
    "/metric/m2/compare?from=2026-11-20&to=2026-11-20&before_from=2026-11-19&before_to=2026-11-19",
    "/metric/m1/compare?from=2020-01-01&to=2020-01-02",
    "/metric/m1/compare?before_from=2026-11-01&before_to=2026-11-20",
    "/metric/m6/compare",
    "/metric/m7/compare",
    "/plan",
    "/plan?size=3000&epsilon=0.5&devices=1000000",
    "/plan?size=2&epsilon=3&devices=10&sample_rate=0.001",
    "/plan?size=two&epsilon=-1",
    "/plan?epsilon=4&lifetime_epsilon=2",
    "/metric/m1?from=2026-11-20&to=2026-11-01",
    "/metric/m1?from=1990-01-01",
    "/metric/m1?from=soon",
    "/metric/m1?order=up",
    "/metric/m1?by=year",
    "/metric/m9",
    "/metric/browser",
    "/metric/m1/nothing",
    "/plan/no",
]


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


@pytest.fixture
def rich(tmp_path: Path) -> Iterator[Flask]:
    """A dashboard with a metric of each kind and state."""
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
    settings = DashboardSettings(
        dashboard_token=TOKEN,
        candidates_dir=str(tmp_path),
        dashboard_frame_ancestors="https://other.example",
    )
    yield create_app(settings, store=store, registry=registry, clock=lambda: NOW)
    store.close()


@pytest.fixture
def reader(rich: Flask) -> FlaskClient:
    """Somebody who has signed in with a browser that asks for Chinese."""
    client = rich.test_client()
    client.environ_base["HTTP_ACCEPT"] = "text/html"
    client.environ_base["HTTP_ACCEPT_LANGUAGE"] = "zh-CN,zh;q=0.9,en;q=0.5"
    assert client.post("/login", data={"token": TOKEN}).status_code == 303
    return client


def in_chinese(response: TestResponse) -> str:
    """The page, which says that it is in Chinese and has no English in it."""
    assert response.headers["Content-Language"] == "zh-Hans"
    page = response.get_data(as_text=True)
    assert english(page) == []
    return page


@pytest.mark.parametrize("path", PAGES)
def test_a_page_in_chinese_has_no_english_in_it(reader: FlaskClient, path: str) -> None:
    """Every sentence of every page, of errors and of what is read aloud, is translated."""
    page = in_chinese(reader.get(path))
    assert '<html lang="zh-Hans">' in page


def test_uploads_and_their_mistakes_are_in_chinese(reader: FlaskClient) -> None:
    """A list of strings is answered in Chinese, and so is each mistake in it."""
    import io

    for content in (b"\xe4\xb8\x8a", b"", b"\xff", b"a\n\nb", b"a\na", b"x" * 1100, b"a\x00"):
        file = (io.BytesIO(content), "list.txt")
        answer = reader.post("/metric/m5", data={"candidates": file}, follow_redirects=True)
        in_chinese(answer)
    in_chinese(reader.post("/metric/m5", data={}))
    for mistake in ("from=2026-11-20&to=2026-11-01", "from=soon", "frm=1", "line=9", "value=x"):
        in_chinese(reader.get(f"/metric/m5?{mistake}"))
    in_chinese(reader.post("/metric/m1", data={}))
    in_chinese(reader.post("/plan"))


def test_the_door_is_in_chinese(rich: Flask) -> None:
    """Whoever has not signed in yet is asked for the token in Chinese."""
    client = rich.test_client()
    client.environ_base["HTTP_ACCEPT"] = "text/html"
    for path in ("/login?lang=zh-Hans", "/login?used=1"):
        in_chinese(client.get(path))
    in_chinese(client.post("/login", data={"token": "no"}))


def test_a_framed_chart_is_in_the_language_of_its_link(
    rich: Flask, reader: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The language is no part of what the signature of a link holds together, nor remembered."""
    offered = replace(rich.extensions["deniable_embedding"], public_url="http://localhost")
    monkeypatch.setitem(rich.extensions, "deniable_embedding", offered)
    page = reader.get("/metric/m1").get_data(as_text=True)
    link = re.search(r'src="(http://localhost/embed[^"]*)"', page.replace("&#34;", '"'))
    assert link
    address = link[1].replace("&amp;", "&")
    in_chinese(reader.get(address))
    answer = reader.get(f"{address}&lang=en")
    assert answer.headers["Content-Language"] == "en"
    assert "One report: a 50/50 guess" in answer.get_data(as_text=True)
    assert "deniable_language" not in str(answer.headers)
    in_chinese(reader.get("/embed/metric/m1?lang=zh-Hans"))


def test_pictures_are_in_chinese(reader: FlaskClient) -> None:
    """What is downloaded as a picture from a Chinese page is in Chinese."""
    for path in ("/metric/m1.svg?shares=normalized", "/metric/m1/trend.svg", "/metric/m2.svg"):
        in_chinese(reader.get(path))
    assert reader.get("/metric/m1.png").headers["Content-Language"] == "zh-Hans"


def test_waiting_and_alarms_are_in_chinese(rich: Flask, reader: FlaskClient) -> None:
    """The page of a long decode, and every alarm that a metric can raise, are translated."""
    with rich.test_request_context("/metric/m5?lang=zh-Hans"):
        for progress in (StillDecoding(1, 7, 2.0), StillDecoding(0, 0, 3.0)):
            assert english(render_template("decoding.html", progress=progress)) == []
            assert english(translated(str(progress), CHINESE)) == []
        for yours in (False, True):
            refusal = TooManyDecodes(8, 5, yours=yours)
            assert english(translated(str(refusal), CHINESE)) == []
        for refused in (TooHeavy(1 << 30, 60), WorkersClosed()):
            assert english(translated(str(refused), CHINESE)) == []
        for name in SENTENCES:
            told = translated(Figure(name, "", 0.25, 0.125, 0.0, value="甲").text, CHINESE)
            assert english(told) == []
    assert Verdict.of([Figure("rows", "", 9.0, 1.0, 1e-9)]).alarms()
    assert "异常" in in_chinese(reader.get("/metric/m8"))


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


def test_the_choice_is_remembered_for_a_year_and_sent_nowhere_else(rich: Flask) -> None:
    """The cookie holds the language's tag alone, is SameSite=Lax, and is not set unasked."""
    client = rich.test_client()
    assert "Set-Cookie" not in client.get("/login").headers
    cookie = client.get("/login?lang=zh-Hans", base_url="https://localhost").headers["Set-Cookie"]
    assert cookie.startswith("deniable_language=zh-Hans;")
    for part in ("Max-Age=31536000", "SameSite=Lax", "HttpOnly", "Secure"):
        assert part in cookie
    assert "Set-Cookie" not in client.get("/login?lang=%3Cscript%3E").headers


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


def test_data_stays_in_english(rich: Flask, reader: FlaskClient) -> None:
    """Files and the read API say the same in every language: programs read them."""
    english_reader = rich.test_client()
    for client in (reader, english_reader):
        client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {TOKEN}"
        client.environ_base["HTTP_ACCEPT"] = "*/*"
    for path in (
        "/api/v1/metrics/m1/estimate",
        "/api/v1/metrics/m1/trend",
        "/api/v1/metrics/m1/privacy",
        "/api/v1/metrics/none/estimate",
        "/api/v1/metrics/m1/estimate?from=2026-11-20&to=2026-11-01",
        "/metric/m1.json",
        "/metric/m1.csv",
        "/metric/m1/trend.json",
        "/metric/m1/compare.csv",
    ):
        told, same = reader.get(path), english_reader.get(path)
        assert told.data == same.data
        assert "Content-Language" not in told.headers


def test_dates_and_numbers_follow_the_language(reader: FlaskClient) -> None:
    """Dates are written as the language writes them; digits stay those of the uncertainty."""
    page = reader.get("/metric/m1?from=2026-11-20&to=2026-11-20").get_data(as_text=True)
    assert "2026年11月20日" in page
    assert "20 Nov 2026" not in page
    assert "20,000 台设备上报" in page


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


def test_what_the_client_package_says_is_shown_in_chinese() -> None:
    """Reasons, forecasts and mistakes are the same English text, and wholly Chinese on a page."""
    said: list[str] = [explain(size, 1.0).reason for size in (10, 5000)]
    for window in ("day", "week", "month"):
        for devices in (2, 3000):
            text = REGISTRY.replace("devices = 100", f'devices = {devices}\nwindow = "{window}"')
            warning = forecast(Registry.parse(text)["m1"])
            assert warning is not None
            said.append(warning)
    with pytest.raises(SchemeError) as refused:
        design_memoized("auto", "m1", 10, 2.0, 1.0)
    said.append(str(refused.value))
    for content in (b"", b"\xff", b"a\n\nb", b"a\na", b"x" * 1100, b"a\x00"):
        with pytest.raises(ValueListError) as caught:
            parse_values(content, message("Your list"))
        said.append(str(caught.value))
    for each in said:
        assert translated(each, LANGUAGES["en"]) == each
        told = translated(each, CHINESE).replace("lifetime_epsilon", "")
        assert english(told) == [], each
    assert translated(said[-1], CHINESE) == "您的列表第 1 行含有控制字符；请删除"


def test_a_sentence_inside_another_is_translated_too() -> None:
    """And a name in it that is written from right to left cannot reorder the rest, in English
    either."""
    with pytest.raises(ValueListError) as caught:
        parse_values(b"", "\u05d0\u05d1.txt")
    note = message("{mistake}.", mistake=str(caught.value))
    assert note == "\u2068\u05d0\u05d1.txt\u2069 holds no value; write one on each line."
    assert translated(note, CHINESE) == "\u2068\u05d0\u05d1.txt\u2069没有任何值；请每行写一个。"


def test_an_http_error_speaks_by_its_status() -> None:
    """Where nobody gave it words; words that were given stay, whatever the status."""
    for error in (NotFound, BadRequest, MethodNotAllowed):
        title, detail = told_error(error())
        assert (title, detail) == (error().name, error.description)
        assert isinstance(title, Message)
        assert isinstance(detail, Message)
    assert told_error(NotFound("Nothing here.")) == ("Not Found", "Nothing here.")
    assert not isinstance(told_error(NotFound("Nothing here."))[1], Message)
    with pytest.raises(BadRequestKeyError) as caught:
        MultiDict[str, str]()["x"]
    assert isinstance(told_error(caught.value)[1], Message)
    assert told_error(ImATeapot()) == ("I'm a teapot", ImATeapot.description)
    own = ApiProblem(404, "missing", "Missing", "It is gone.")
    assert told_error(own) == ("Missing", "It is gone.")


def test_a_hostile_text_is_escaped_in_every_language(store: Store, registry: Registry) -> None:
    """What a translation is filled with is no more trusted than what a template is."""
    app = create_app(DashboardSettings(dashboard_token=TOKEN), store=store, registry=registry)
    client = app.test_client()
    client.environ_base["HTTP_ACCEPT"] = "text/html"
    client.post("/login", data={"token": TOKEN})
    for path in ("/metric/browser", "/metric/browser/compare", f"/metric/{quote('<script>')}"):
        page = client.get(f"{path}?lang=zh-Hans").get_data(as_text=True)
        assert "<script" not in page
