"""Pages in Chinese: whole, chosen by whoever reads them, and never instead of English data."""

from __future__ import annotations

import ast
import re
import runpy
import string
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from tests.contract.crowd import STRINGS
from tests.contract.test_complete import KEPT

import deniable
from deniable.protocol.mechanisms import MECHANISMS
from deniable_estimator.dashboard.language import LANGUAGES, TRANSLATIONS
from deniable_estimator.messages import message, translated
from deniable_estimator.planning.words import mechanism_words

from .conftest import browser_of

TEXTS = runpy.run_path(str(Path(__file__).parents[3] / ".ci" / "texts.py"))
CONTRACT = Path(__file__).parents[2] / "contract"
CHINESE = LANGUAGES["zh-Hans"]

NAMES = frozenset(
    (
        *("deniable", "CSV", "JSON", "SVG", "PNG", "HTML", "English", "TLS", "UTF-8", "UTC", "MiB"),
        *("epsilon", "sample_rate", "one_in", "DENIABLE_CANDIDATES_DIR", "DENIABLE_STORE"),
        *("DENIABLE_RELEASE_BUDGET", "annotate", "store", "info", "my_metric", "of", "them"),
        *("RAPPOR", "basic", "one-time", "Hadamard", "Count", "Mean", "Sketch", "odds", "Cram"),
        # What a registry or an address may say, and how facts tell a choice.
        *("scale", "log", "share", "declared", "day", "week", "month", "chosen"),
        *("cohort", "older", "returned", "stayed", "Safari"),
    )
)
"""What is the same in every language."""

CROWD = [*CONTRACT.glob("crowd/**/*.t*"), *CONTRACT.glob("odd/**/*.t*")]
DECLARED = frozenset(
    word
    for text in (str([*STRINGS.values(), *CROWD]), *(each.read_text("utf-8") for each in CROWD))
    for word in re.findall(r"[A-Za-z][\w-]+", text)
)
"""Words of the registries and what goes with them, whose texts are shown as they are."""


def english(said):
    """The words of a text that are not Chinese, nor names."""
    told = re.sub(r"`[^`]*`|“[^”]*”|\w+…|\bp\d\d\b|(2026-)?W\d+|\d+e[-+]?\d+|\d[kMB]\b", "", said)
    return {*re.findall(r"[A-Za-z][\w-]+", told, re.ASCII)} - NAMES - DECLARED


@pytest.fixture
def reader(app):
    """Somebody who has signed in with a browser that asks for Chinese."""
    client = browser_of(app)
    client.environ_base["HTTP_ACCEPT_LANGUAGE"] = "zh-CN,zh;q=0.9,en;q=0.5"
    return client


def test_no_page_in_chinese_has_english_in_it():
    """Every sentence of every page that the contract asks for in Chinese, of errors and of what is
    read aloud, is translated."""
    found = {
        (line, said): english(said)
        for line, facts in KEPT.items()
        if line.startswith("GET ") and "lang=zh-Hans" in line
        for said in facts.splitlines()
        if not re.match(r"status \d|the same as |\w+ = |Redirecting", said)
    }
    assert len(found) > 1_000
    assert {each: words for each, words in found.items() if words} == {}


def test_the_language_is_chosen_by_link_cookie_and_browser_in_this_order(app):
    """A choice in the address wins and is remembered; without any it is the browser's."""
    client = app.test_client()

    def language(path, accepts=""):
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


def test_the_footer_leads_to_the_same_page_in_the_other_language(reader):
    """The switch works without a script and keeps what the address asks for."""
    path = "/metric/browser?from=2026-11-19&to=2026-11-20&shares=normalized"
    page = reader.get(path).get_data(as_text=True)
    found = re.search(r'<a href="([^"]+)" lang="en" hreflang="en"', page)
    assert found
    address = found[1].replace("&amp;", "&")
    assert address == path + "&lang=en"
    answer = reader.get(address)
    assert answer.headers["Content-Language"] == "en"
    assert "normalized share (sums to 100%)" in answer.get_data(as_text=True)
    assert reader.get(path).headers["Content-Language"] == "en"


def test_a_cache_cannot_mix_languages(reader):
    """A page says what its language depended on, and may not be stored."""
    answer = reader.get("/")
    assert {"Accept-Language", "Cookie"} <= set(answer.vary)
    assert answer.headers["Cache-Control"] == "no-store"


def test_the_catalogues_are_up_to_date():
    """After a change of a text `make texts` has been run, and its result committed."""
    for path, content in TEXTS["files"]():
        assert path.read_bytes() == content, f"{path.name}: run make texts"


def _catalog():
    with (TRANSLATIONS / "zh_Hans.po").open("rb") as file:
        return read_po(file, locale="zh_Hans")


def test_every_text_is_translated():
    """No text is missing, empty or waiting to be looked at."""
    catalog = _catalog()
    assert len(list(TEXTS["template"]())) == len(list(catalog)) > 400
    for each in catalog:
        if each.id:
            texts = each.string if isinstance(each.string, tuple) else (each.string,)
            assert all(texts), each.id
            assert not each.fuzzy, each.id


def _placeholders(text):
    """What is to be filled in, with how it is written; and the elements of HTML."""
    braces = {
        f"{name}:{spec}!{conversion}"
        for _, name, spec, conversion in string.Formatter().parse(text.replace("%(", "%%("))
        if name
    }
    return braces | set(re.findall(r"%\(\w+\)s", text)) | set(re.findall(r"</?\w+[^>]*>", text))


def test_translations_fill_in_what_the_english_does():
    """Placeholders, formats and elements of HTML are the same on both sides."""
    for each in _catalog():
        if each.id:
            one = each.id if isinstance(each.id, str) else each.id[-1]
            told = each.string if isinstance(each.string, str) else each.string[0]
            assert _placeholders(one) == _placeholders(told), one


def test_a_message_is_its_english_text():
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


def test_sentences_of_the_client_package_are_translated():
    """Of every sentence that the client package says with a code, and of every mechanism's name,
    the catalogue has the template."""
    catalog, found = _catalog(), 0
    passed_on = "CodedMessage(code, template, **arguments)"  # in `SchemeError.of`
    for path in sorted(Path(deniable.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or ast.unparse(node) == passed_on:
                continue
            if ast.unparse(node.func) in ("CodedMessage", "SchemeError.of"):
                template = ast.literal_eval(node.args[1])
                assert template in catalog, template
                assert catalog[template].string, template
                found += 1
    assert found > 30
    for name in MECHANISMS:
        assert not english(translated(mechanism_words(name), CHINESE))
