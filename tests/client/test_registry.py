"""The registry: good files become metrics, bad ones a list of every mistake with its line."""

import json
from collections import defaultdict
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from deniable import MetricError, Registry, RegistryError, SchemeError
from deniable.protocol.keys import all_keys
from deniable.protocol.value_list import MAX_VALUE_BYTES

from .conftest import metrics_toml

REGISTRIES = Path(__file__).parent / "registries"
GOOD = REGISTRIES / "good.toml"


@pytest.fixture(scope="module")
def registry():
    return Registry.load(GOOD)


def test_a_good_file_becomes_metrics(registry, stays):
    """Every key arrives where it belongs, own settings before defaults before ours: `good.txt` has
    them."""
    keys = ("type", "owner", "expires", "epsilon", "lifetime_epsilon", "window", "sample_rate")
    keys += ("aggregate", "tags", "values")
    told = [f"{each.name}.{key}: {getattr(each, key)}" for each in registry for key in keys]
    stays("good.txt", [f"lifetime_epsilon: {registry.lifetime_epsilon}", *told])
    for each in registry:
        line = registry.problem(each, "is looked for", "note").line
        assert GOOD.read_text(encoding="utf-8").splitlines()[line - 1] == f"[metrics.{each.name}]"


@pytest.mark.parametrize("path", sorted(REGISTRIES.glob("*mistake*.toml")), ids=lambda p: p.stem)
def test_every_mistake_is_reported_at_its_line(path):
    """All mistakes of a file come at once, each at the line that a person must mend."""
    expected = [
        (number, part.strip())
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if "#!" in line
        for part in line.partition("#!")[2].split(" | ")
    ]
    with pytest.raises(RegistryError) as caught:
        Registry.load(path)
    problems = list(caught.value.problems)
    assert [each.line for each in problems] == sorted(each.line for each in problems)
    for number, part in expected:
        match = next((p for p in problems if p.line == number and part in p.message), None)
        assert match is not None, f"line {number} should say {part!r}"
        problems.remove(match)
    assert problems == []


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("schema = 1\napp = 'example'\n[metrics.a\n", 3, "is not TOML"),
        ("schema = 1\napp = 'example'\n", None, "holds no metric"),
        ("schema = 1\napp = 'example'\nmetrics = 3\n", 3, "holds no metric"),
        ("schema = 1\napp = 'example'\nmetrics = 1.5\n[segments.a]\n", 3, "holds no metric"),
        ("schema = 1\napp = 'example'\n[metrics]\na = 3\n", 4, "must be a table"),
        ("schema = 1\napp = 'example'\nsegments = 3\n", 3, "write [segments.NAME]"),
        ("schema = 1\n", None, "must name the app"),
        (f"schema = {'1' * 5_000}\n", None, "is not TOML"),
        (f"a = {'[' * 2_000}{']' * 2_000}\n", None, "is not TOML"),
        ("schema = 1\napp = 'The Editor'\n", 2, "must name the app"),
        ("schema = 1\napp = '../editor'\n", 2, "must name the app"),
        ("schema = 1\napp = 7\n", 2, "must name the app"),
        (
            "schema = 1\napp = 'example'\ndefaults = 3\n[metrics.a]\ntype = 'boolean'\n",
            3,
            "must be a table",
        ),
        ("", None, "must be 1"),
    ],
)
def test_a_file_of_the_wrong_shape(text, line, message):
    """What is not TOML, or not tables of metrics, is said with its line where it has one."""
    with pytest.raises(RegistryError) as caught:
        Registry.parse(text)
    assert any(p.line == line and message in p.message for p in caught.value.problems)


def test_a_file_that_cannot_be_read(tmp_path):
    """A missing or undecodable file is a registry error that names the file."""
    with pytest.raises(RegistryError, match=r"absent\.toml: error: cannot be read: No such file"):
        Registry.load(tmp_path / "absent.toml")
    (tmp_path / "latin.toml").write_bytes(b"schema = 1 # caf\xe9\n")
    with pytest.raises(RegistryError, match="not UTF-8"):
        Registry.load(tmp_path / "latin.toml")


def category(values, **keys):
    """A registry with one category, m."""
    usual = {"type": "category", "values": values, "lifetime_epsilon": 3.0}
    return Registry.parse(metrics_toml(m={**usual, **keys}))["m"]


LISTED = metrics_toml(m={"type": "category", "values_file": "words.txt"})


def test_limits_of_values(tmp_path, monkeypatch):
    """A list over MAX_VALUES and a value over MAX_VALUE_BYTES are refused; the limits pass."""
    longest = "é" * (MAX_VALUE_BYTES // 2)
    assert category(["a", longest]).values == ("a", longest)
    with pytest.raises(RegistryError, match=f"is longer than {MAX_VALUE_BYTES} bytes"):
        category(["a", f"{longest}e"])
    monkeypatch.setattr("deniable.protocol.types.texts.MAX_VALUES", 100)
    (tmp_path / "words.txt").write_text("\n".join(f"{n:x}" for n in range(101)))
    with pytest.raises(RegistryError, match="from 2 to 100 values"):
        Registry.parse(LISTED, folder=tmp_path)
    (tmp_path / "words.txt").write_text("\n".join(f"{n:x}" for n in range(100)))
    assert len(Registry.parse(LISTED, folder=tmp_path)["m"].values) == 100


def test_values_from_a_file(tmp_path):
    """A long list may stand in a file beside the registry; its mistakes name its own line."""
    (tmp_path / "metrics.toml").write_text(LISTED)
    (tmp_path / "words.txt").write_text("one\ntwo\nthree\n")
    assert Registry.load(tmp_path / "metrics.toml")["m"].values == ("one", "two", "three")
    (tmp_path / "words.txt").write_text("one\ntwo\none\n")
    with pytest.raises(RegistryError, match=r"toml:11: .*words\.txt, line 3: repeats line 1"):
        Registry.load(tmp_path / "metrics.toml")
    with pytest.raises(RegistryError, match="has both values and values_file"):
        Registry.parse(LISTED + "values = ['a', 'b']\n")


def test_an_unknown_metric(registry):
    """Asking for an undeclared metric says where to declare it."""
    with pytest.raises(MetricError, match=r"'colour'.*is not declared in .*good\.toml") as caught:
        registry["colour"]
    assert caught.value.metric == "colour"


def test_a_mechanism_for_strings_takes_the_texts_of_a_list():
    """Over a closed list the texts are hashed, and a text that is not listed is still refused."""
    kept = {"longitudinal": "memoize", "lifetime_epsilon": 3.0}
    metric = category(["a", "b"], **kept, mechanism="memoized_local_hashing")
    assert [metric.item(value) for value in ("a", "b")] == ["a", "b"]
    assert list(metric.scheme.items) == ["a", "b"]
    with pytest.raises(KeyError):
        metric.item("c")
    plain = category(["a", "b"], **kept)
    assert [plain.item(value) for value in ("a", "b")] == [0, 1] == list(plain.scheme.items)
    with pytest.raises(SchemeError, match="domain is open"):
        Registry.parse(metrics_toml(m={**kept, "type": "string"}))["m"].scheme.items  # noqa: B018


@pytest.mark.parametrize(
    ("name", "refused", "told", "taken"),
    [
        ("dark_mode", [Fraction(1)], "not fractions.Fraction", {True: "true"}),
        ("dark_mode", [1, 0, None, "true", 1.0], "takes True or False", {True: "true"}),
        ("browser", [True, 7], "takes a string", {"netscape": "other"}),
        *((name, [True, 1, None, b"tea"], "takes a string", {}) for name in ("drink", "homepage")),
    ],
)
def test_what_a_recorded_value_becomes(registry, name, refused, told, taken):
    """A boolean takes no stand-in for True; what is not listed is the declared other, if it is a
    text."""
    for value, text in taken.items():
        assert registry[name].normalize(value) == text
    for value in refused:
        with pytest.raises(MetricError, match=told):
            registry[name].normalize(value)


def test_an_unlisted_value_without_other():
    """Without an other the call fails, and the message does not repeat the value."""
    metric = category(["a", "b"])
    with pytest.raises(MetricError) as caught:
        metric.normalize("secret-value")
    assert "secret-value" not in str(caught.value)


THINGS: tuple[object, ...] = (
    *(True, -1, 0, 1, 1.5, 53, 1e400, 10**16, "", "a", "a" * 300, "a\nb", "1.0.0", "day", "mean"),
    *([], [None], [""], ["a"], ["a", "a"], ["a", "b"], ["a", "b", "c"], ["mean", "distribution"]),
    *(["a" * 300], ["web", "ios"], [f"v{number}" for number in range(70)], [1, 2], [2, 1]),
    *({}, {"a": "b"}, {"a": ["b"]}, {"a": [1]}, {"a": [1, 2]}, {"a": [2, 1]}, {"a": []}),
    *({"a": [*range(63)]}, {"a": [*range(64)]}, {"a": [*range(65)]}, {"a b": [1]}, {"": [1]}),
    *(date(2026, 11, 20), datetime(2026, 11, 20, 9, tzinfo=UTC)),
)


def test_what_each_key_may_be(stays):
    """Which things a key may be, and what is said of others: `keys.txt` has the sentences."""
    told = []
    for key, check in sorted(all_keys().items()):
        groups = defaultdict(list)
        for thing in THINGS:
            groups[check(thing)].append(f"{str(thing)[:40]!r}")
        told += [f"{key}, {', '.join(of)}: {said or 'fine'}" for said, of in groups.items()]
    stays("keys.txt", told)


def test_the_last_day_is_one_whose_windows_end(tmp_path):
    """After the year 9998 the windows of a last day would not end in the calendar: it is refused in
    either form of a registry, and nothing fails in an app."""
    fine = Registry.parse(metrics_toml(m={"expires": "9998-12-31"}))
    assert fine["m"].ends == datetime(9999, 1, 1, tzinfo=UTC).timestamp()
    with pytest.raises(RegistryError, match=r"m\.expires: must be before the year 9999"):
        Registry.parse(metrics_toml(m={"expires": "9999-01-01"}))
    file = tmp_path / "metrics.json"
    file.write_text(json.dumps(fine.compile()).replace("9998-12-31", "9999-12-31"))
    with pytest.raises(RegistryError, match="must be before the year 9999"):
        Registry.load(file)
