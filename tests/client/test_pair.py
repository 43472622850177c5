"""Pairs: what may be declared, how a device joins two values, and what it charges."""

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable import Client, MetricError, Registry, RegistryError, SchemeError
from deniable.protocol import compiled
from deniable.protocol.types import MAX_PAIR_CELLS
from deniable.protocol.types.pair import cell_text, margins_of
from deniable.tools.commands import remarks

MakeClient = Callable[..., Client]

BASE = """
schema = 1
app = "editor"
[defaults]
owner = "growth@acme.example"
expires = 2030-06-30
aggregate = "first"

[metrics.plan]
type = "category"
description = "The plan."
values = ["free", "pro", "team", "other"]
epsilon = 1.0
lifetime_epsilon = 8.0

[metrics.dark_mode]
type = "boolean"
description = "Dark mode is on."
epsilon = 0.5
lifetime_epsilon = 8.0

[metrics.seconds]
type = "number"
description = "How long the app takes to start."
low = 0
high = 60
ask = "mean"
epsilon = 1.0
lifetime_epsilon = 8.0

[metrics.word]
type = "string"
description = "A word."
epsilon = 1.0
lifetime_epsilon = 8.0
"""

PAIR_TABLE = """
[metrics.plan_by_mode]
type = "pair"
of = ["plan", "dark_mode"]
description = "How plan and dark mode go together."
epsilon = 2.0
lifetime_epsilon = 8.0
"""


def declared(pair=PAIR_TABLE, base=BASE):
    return Registry.parse(base + pair)


def mistakes(pair, base=BASE):
    with pytest.raises(RegistryError) as caught:
        declared(pair, base)
    return [f"{each.where}: {each.message}" for each in caught.value.problems]


def with_keys(*lines, of='["plan", "dark_mode"]'):
    text = PAIR_TABLE.replace('["plan", "dark_mode"]', of)
    return text + "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (with_keys(of='["plan", "plan"]'), "of: names plan twice"),
        (with_keys(of='["plan", "plan_by_mode"]'), "of: names plan_by_mode, which is a pair"),
        (with_keys(of='["plan", "colour"]'), "of: names colour, which is not declared"),
        (with_keys(of='["plan", "word"]'), "of: word is a string, which has no list"),
        (with_keys(of='["plan"]'), "of: must name two metrics"),
        (PAIR_TABLE.replace("of =", "tags ="), "lacks of"),
        (with_keys(of='["plan", "seconds"]'), "of: seconds is a number: say where to cut it"),
        (with_keys("bins = { plan = [1] }"), "bins: cuts plan, which is a category"),
        (with_keys("bins = { word = [1] }"), "bins: cuts word, which the pair is not of"),
        (
            with_keys("bins = { seconds = [5, 1] }", of='["plan", "seconds"]'),
            "bins: must list rising numbers for seconds",
        ),
        (
            with_keys("bins = { seconds = [0, 1] }", of='["plan", "seconds"]'),
            "bins: cuts seconds outside of its range, 0 to 60",
        ),
        (with_keys('bins = "x"'), "bins: must say where each number is cut"),
        (with_keys('window = "week"'), "of: plan has windows of a day, and the pair of a week"),
        (with_keys("expires = 2031-01-01"), "of: plan expires on 2030-06-30, before the pair"),
        (with_keys('aggregate = "last"'), "aggregate: does not belong to a pair: the two metrics"),
        (with_keys('answer = "at_once"'), "answer: does not belong to a pair: it is joined"),
        (with_keys('values = ["a", "b"]'), "values: does not belong to a pair: its values are"),
        (with_keys('forget = "all"'), "forget: must be one of marginals"),
        (with_keys('mechanism = "hadamard_response"'), "mechanism: there is no mechanism"),
        (with_keys('longitudinal = "memoize"'), "longitudinal: is memoize, but a pair has no"),
    ],
)
def test_what_makes_no_pair_is_refused(pair, expected):
    """Each mistake is named by its key, with the reason; the metrics that it is of may be fine."""
    assert any(expected in each for each in mistakes(pair)), mistakes(pair)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("lifetime_epsilon = 8.0", 'lifetime_epsilon = 8.0\nanswer = "at_once"'), "at once"),
        (
            ("lifetime_epsilon = 8.0", 'lifetime_epsilon = 8.0\nlongitudinal = "memoize"'),
            "plan is memoized",
        ),
        (('"team"', '"te×am"'), "plan has a value with '×'"),
        (('"The plan."', '"The plan."\nexpires = 2029-01-01'), "plan expires on 2029-01-01"),
    ],
)
def test_a_metric_that_cannot_be_paired_is_refused(change, expected):
    """Metrics that are answered at once, memoized, or that their pair outlives make no pair."""
    assert any(expected in each for each in mistakes(PAIR_TABLE, BASE.replace(*change, 1)))


def test_a_pair_of_different_platforms_is_refused():
    """No device records both, so nothing would ever be reported."""
    base = BASE.replace('"The plan."', '"The plan."\nplatform = "web"')
    base = base.replace('"Dark mode is on."', '"Dark mode is on."\nplatform = "python"')
    assert any("no device has both" in each for each in mistakes(PAIR_TABLE, base))


@pytest.mark.parametrize(("size", "fine"), [(30, True), (31, False)])
def test_the_limit_of_cells(size, fine):
    """30 x 30 cells are taken, and one list more is refused with the limit."""
    assert MAX_PAIR_CELLS == 900
    values = json.dumps([f"v{each}" for each in range(size)])
    base = BASE.replace('["free", "pro", "team", "other"]', values)
    edges = json.dumps(list(range(1, 30)))
    pair = with_keys(f"bins = {{ seconds = {edges} }}", of='["plan", "seconds"]')
    if fine:
        assert len(declared(pair, base)["plan_by_mode"].values) == 900
    else:
        assert any("930 cells, above the limit of 900" in each for each in mistakes(pair, base))


def test_margins_are_read_back():
    """The names and values of both metrics are in the texts of the cells; others are refused."""
    cells = declared()["plan_by_mode"].values
    names, margins = margins_of(cells)
    assert names == ("plan", "dark_mode")
    assert margins == (("free", "pro", "team", "other"), ("true", "false"))
    for broken in ((), ("a", "b"), cells[:-1], cells[::-1][1:], ("a=1 × b=2",)):
        with pytest.raises(SchemeError):
            margins_of(broken)


_names = st.from_regex(re.compile(r"[a-z][a-z0-9_]{0,8}", re.ASCII), fullmatch=True)
_texts = st.text(st.characters(exclude_characters="×", exclude_categories=("Cc", "Cs")), min_size=1)
_lists = st.lists(_texts, min_size=2, max_size=4, unique=True)


@given(_names, _lists, _names, _lists)
def test_any_values_are_read_back(one, ones, two, twos):
    """Texts with spaces, equal signs or letters of any script stay apart."""
    cells = [cell_text(one, a, two, b) for a in ones for b in twos]
    assert margins_of(cells) == ((one, two), (tuple(ones), tuple(twos)))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("of", ["plan", "plan"]),
        ("of", ["plan"]),
        ("bins", None),
        ("forget", "x"),
        ("values", ["a", "b"]),
        ("values", None),
        ("other", "x"),
        ("mechanism", "projective_geometry"),
        ("longitudinal", "memoize"),
        ("window", "week"),
        ("expires", "2031-01-01"),
    ],
)
def test_a_compiled_pair_with_a_fault_is_refused(key, value):
    """The reader of a compiled registry trusts no key of a pair."""
    document = compiled.to_document(declared())
    document["metrics"]["plan_by_mode"][key] = value
    with pytest.raises(RegistryError):
        compiled.from_document(document)


def test_a_pair_is_not_recorded(make_client):
    """`record` names the two metrics to record instead."""
    client = make_client(registry=declared(), strict=True, on_trouble=lambda error: None)
    with pytest.raises(MetricError, match="record plan and dark_mode"):
        client.record("plan_by_mode", "free")
    assert client.counters == {"mistake": 1}


def test_lint_says_what_adds_up():
    """Reports about the same values add up: lint names them with the sum of their epsilons."""
    registry = declared()
    told = [
        each.message for each in remarks(registry, None) if each.where == "metrics.plan_by_mode"
    ]
    assert any("(plan, dark_mode, plan_by_mode)" in each for each in told)
    assert any("add up to 3.5" in each for each in told)


VECTORS = json.loads(
    (Path(__file__).parents[2] / "client" / "vectors" / "pairs.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_the_vectors(case):
    """Each compiled registry gives the cells, and joins the two texts of a window to the cell that
    the file says, or to none."""
    registry = compiled.from_document(case["registry"])
    (metric,) = [each for each in registry if each.type.of]
    assert list(metric.values) == case["cells"]
    for row in case["joined"]:
        found = metric.type.joined(row["texts"])
        assert (None if found is None else metric.item(found)) == row["cell"]


def test_a_pair_before_an_edit_has_other_cells():
    """What an edit costs says that other cells are not added up."""
    old = declared()["plan_by_mode"].type
    new = declared(base=BASE.replace('"team", ', ""))["plan_by_mode"].type
    assert "cells differ" in new.combines(old)
    assert new.combines(dataclasses.replace(new)) == "combine both schemes"


SEGMENTED = BASE.replace(
    "[metrics.plan]", '[segments.place]\nvalues = ["home", "work"]\n\n[metrics.plan]'
)


def test_a_pair_is_not_counted_by_segments():
    """Segments would multiply its cells."""
    pair = with_keys('segments = ["place"]')
    assert any(
        "segments: does not belong to a pair: it is not counted" in each
        for each in mistakes(pair, SEGMENTED)
    )


def test_segments_are_not_forgotten():
    """The shares of a segment cannot come from a pair, which tells no segment."""
    base = SEGMENTED.replace('"The plan."', '"The plan."\nsegments = ["place"]')
    told = mistakes(with_keys('forget = "marginals"'), base)
    assert any("of: plan is counted by segments, which the pair does not" in each for each in told)
