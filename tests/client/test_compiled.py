"""Compiled registries: what is written, what is read, and what is refused."""

import copy
import json
import math
import re
from contextlib import suppress
from pathlib import Path

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable import Registry, RegistryError
from deniable.protocol.exact import exp_below
from deniable.protocol.keys import FORMAT, PEOPLE_KEYS
from deniable.protocol.mechanisms import MECHANISMS, Memoizing, design
from deniable.protocol.types import TYPES
from deniable.tools.compile_command import to_text

from . import compiled_cases
from .compiled_cases import REGISTRY, SEGMENTED

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads(
    (ROOT / "client/deniable/protocol/compiled.schema.json").read_text(encoding="utf-8")
)
FORM = jsonschema_rs.Draft202012Validator(SCHEMA)
VECTORS = json.loads(compiled_cases.FILE.read_text(encoding="utf-8"))
RETENTION = json.loads(compiled_cases.FILE.with_name("memoized_retention.json").read_text())
CASES = VECTORS["cases"] + RETENTION["compiled"]
GOOD = [case for case in CASES if "error" not in case]
BAD = [case for case in CASES if "error" in case]


def refused(document):
    """The paths of the mistakes of a document; empty if it is taken."""
    try:
        Registry.from_document(document)
    except RegistryError as error:
        return {problem.where for problem in error.problems}
    return set()


def test_what_is_compiled_is_what_was():
    """Registries with every kind of metric, and with segments, compile to the published ones."""
    for name, text in (("every kind of metric", REGISTRY), ("segments", SEGMENTED)):
        (published,) = [case["document"] for case in GOOD if case["name"] == name]
        declared = Registry.parse(text)
        assert declared.compile() == published
        # Both are read alike: a number's range and cells, also where only its mechanism tells them.
        read = Registry.from_document(published)
        assert [metric.type for metric in read] == [metric.type for metric in declared]


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case["name"])
def test_good_documents_are_taken(case):
    """A good document has the published form, and gives a registry that compiles to it again."""
    FORM.validate(case["document"])
    registry = Registry.from_document(case["document"])
    again = registry.compile()
    assert to_text(again) == to_text(case["document"])


@pytest.mark.parametrize("case", BAD, ids=lambda case: case["name"])
def test_bad_documents_are_refused(case):
    """A document with a mistake is refused, and the mistake is named by its path."""
    assert case["error"] in refused(case["document"])


def test_what_no_schema_can_say_is_refused():
    """Of another format nothing else is judged; half of a surrogate pair is no text."""
    assert refused({"format": 2, "app": 7}) == {"format"}
    document = compiled_cases.document("browser")
    document["metrics"]["browser"]["description"] = "\ud800"
    assert refused(document) == {"metrics.browser.description"}


def test_what_the_schema_refuses_is_refused():
    """No document that breaks the published form is taken; some are refused for more than form."""
    broken = [case for case in BAD if not FORM.is_valid(case["document"])]
    assert len(broken) > 60
    assert len(BAD) - len(broken) > 20


def test_the_schema_has_every_key():
    """The schema has the keys and types of the code, and takes the name of each mechanism."""
    metric = SCHEMA["$defs"]["metric"]
    assert SCHEMA["required"] == list(WHOLE)
    assert set(SCHEMA["properties"]) == {*WHOLE, *PEOPLE_KEYS, "segments"}
    tables = [table for case in GOOD for table in case["document"]["metrics"].values()]
    assert metric["required"] == [key for key in tables[0] if all(key in each for each in tables)]
    more = {"of", "bins", "forget", "deny", "minimum_share"}  # of pairs and discoveries
    assert set(metric["properties"]) == more.union(*tables, {"keep"})  # that for collectors alone
    segment = SCHEMA["$defs"]["segment"]
    assert list(segment["properties"]) == segment["required"] == ["values", "other"]
    assert metric["properties"]["type"]["enum"] == list(TYPES)
    pattern = metric["properties"]["mechanism"]["pattern"]
    assert all(re.fullmatch(pattern, name) for name in MECHANISMS)
    assert SCHEMA["properties"]["format"]["const"] == FORMAT


@pytest.mark.parametrize("figure", ["report", "memo", "fresh"])
def test_a_figure_is_the_exact_one(figure):
    """A figure one step of a float too small understates; one too large would be charged by some
    SDKs and not by others. Both are refused."""
    for towards in (0.0, math.inf):
        document = compiled_cases.document("cookies")
        reveals = document["metrics"]["cookies"]["reveals"]
        reveals[figure] = math.nextafter(reveals[figure], towards)
        assert f"metrics.cookies.reveals.{figure}" in refused(document)


def places(value, path=()):
    """The path of every leaf of a document."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from places(each, (*path, key))
    elif isinstance(value, list) and value:
        for place, each in enumerate(value):
            yield from places(each, (*path, place))
    else:
        yield path


WHOLE = GOOD[0]["document"]
PLACES = list(places(WHOLE))
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["web", "at_once", "memoize", "fresh", "first", "number", "other"]),
    st.lists(st.integers(0, 9), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)


@given(st.sampled_from(PLACES), LEAVES | st.integers(-3, 3).map(lambda step: ("step", step)))
def test_no_change_reveals_more_than_declared(place, change):
    """Whatever is put in the place of whatever leaf, also with figures and fingerprint made to
    fit: the document is refused, or its mechanisms keep within what it declares."""
    document = copy.deepcopy(WHOLE)
    if place[0] == "metrics":
        document["metrics"] = {place[1]: document["metrics"][place[1]]}
    table = document
    for key in place[:-1]:
        table = table[key]
    if isinstance(change, tuple):
        old = table[place[-1]]
        number = isinstance(old, (int, float)) and not isinstance(old, bool)
        change = old + change[1] * max(1, abs(old) // 1000) if number else old
    table[place[-1]] = change
    variants = [document]
    if place[0] == "metrics":
        forged = copy.deepcopy(document)
        with suppress(Exception):  # of some changes nothing can be built
            compiled_cases.consistent(forged["metrics"][place[1]])
            variants.append(forged)
    for each in variants:
        if refused(each):
            continue
        FORM.validate(each)
        for metric in Registry.from_document(each):
            mechanism = metric.scheme.mechanism
            assert mechanism.odds <= exp_below(metric.epsilon)
            assert metric.epsilon <= metric.lifetime_epsilon
            if isinstance(mechanism, Memoizing):
                assert mechanism.lifetime_odds <= exp_below(metric.memo_limit)
                assert metric.memo_limit <= metric.lifetime_epsilon


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from([*SCHEMA["properties"], "x"]) | st.text(max_size=3),
                inner,
                max_size=4,
            )
        ),
    )
)
def test_any_json_is_refused_in_words(document):
    """What is no compiled registry at all gives a RegistryError, and no other error."""
    assert refused(document)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "schema = 1",
        '{"format": 1, "format": 1}',
        '{"format": NaN}',
        "[" * 100_000,
        "1" * 10_000,
        "\ufeff{}",
    ],
    ids=["empty", "TOML", "twice", "NaN", "deep", "long", "mark"],
)
def test_what_is_no_json_is_refused(text, tmp_path):
    """A file that holds no JSON, or one with repeated keys, gives a RegistryError that names it."""
    path = tmp_path / "metrics.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RegistryError, match="not JSON") as caught:
        Registry.load(path)
    assert caught.value.source == str(path)


def test_who_receives_reports_is_compiled():
    """Recipient and contact are in the compiled registry where they are declared, and refused
    where they are no line of text."""
    text = REGISTRY.replace("[", 'recipient = "Acme Ltd"\ncontact = "a@acme.example"\n[', 1)
    document = Registry.parse(text).compile()
    FORM.validate(document)
    registry = Registry.from_document(document)
    assert (registry.recipient, registry.contact) == ("Acme Ltd", "a@acme.example")
    assert registry.compile()["contact"] == "a@acme.example"
    for wrong in (None, "", "a\nb", "x" * 201, 7):
        with pytest.raises(RegistryError, match="contact"):
            Registry.from_document({**document, "contact": wrong})


def test_a_compiled_registry_ignores_a_better_design(monkeypatch):
    """The mechanism of a compiled registry is the compiled one, whatever `auto` would take now."""
    document = compiled_cases.document("browser")
    other = design("randomized_response", 6, 1.0)
    document["metrics"]["browser"].update(mechanism=other.name, parameters=other.parameters())
    compiled_cases.consistent(document["metrics"]["browser"])
    metric = Registry.from_document(document)["browser"]
    assert metric.scheme.mechanism.parameters() == other.parameters()
    assert metric.scheme.mechanism.parameters() != design("auto", 6, 1.0).parameters()
