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
from deniable.protocol.types.pair import MAX_PAIR_CELLS, cell_text, margins_of

from .conftest import metrics_toml

MakeClient = Callable[..., Client]

PLANS = ["free", "pro", "team", "other"]


def declared(plans=PLANS, of=("plan", "dark_mode"), more=""):
    """A pair, with the metrics that it may be of."""
    text = metrics_toml(
        plan={"type": "category", "values": plans},
        plan_by_mode={"type": "pair", "of": of},  # a pair may stand before its metrics
        dark_mode={},
        seconds={"type": "number", "low": 0, "high": 60, "ask": "mean"},
    )
    return Registry.parse(text.replace("[metrics.dark_mode]", f"{more}\n[metrics.dark_mode]"))


@pytest.mark.parametrize(("size", "fine"), [(30, True), (31, False)])
def test_the_limit_of_cells(size, fine):
    """30 x 30 cells are taken, and one list more is refused with the limit."""
    assert MAX_PAIR_CELLS == 900
    plans = [f"v{each}" for each in range(size)]
    asked = plans, ("plan", "seconds"), f"bins = {{ seconds = {[*range(1, 30)]} }}"
    if fine:
        assert len(declared(*asked)["plan_by_mode"].values) == 900
    else:
        with pytest.raises(RegistryError, match="930 cells, above the limit of 900"):
            declared(*asked)


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
        ("expires", "2041-01-01"),
    ],
)
def test_a_compiled_pair_with_a_fault_is_refused(key, value):
    """The reader of a compiled registry trusts no key of a pair."""
    document = declared().compile()
    document["metrics"]["plan_by_mode"][key] = value
    with pytest.raises(RegistryError):
        Registry.from_document(document)


def test_a_pair_is_not_recorded(make_client):
    """`record` names the two metrics to record instead."""
    client = make_client(registry=declared(), strict=True, on_trouble=lambda error: None)
    with pytest.raises(MetricError, match="record plan and dark_mode"):
        client.record("plan_by_mode", "free")
    assert client.counters == {"mistake": 1}


VECTORS = json.loads(
    (Path(__file__).parents[2] / "client" / "vectors" / "pairs.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_the_vectors(case):
    """Each compiled registry gives the cells, and joins the two texts of a window to the cell that
    the file says, or to none."""
    registry = Registry.from_document(case["registry"])
    (metric,) = [each for each in registry if each.type.of]
    assert list(metric.values) == case["cells"]
    for row in case["joined"]:
        found = metric.type.joined(row["texts"])
        assert (None if found is None else metric.item(found)) == row["cell"]


def test_a_pair_before_an_edit_has_other_cells():
    """What an edit costs says that other cells are not added up."""
    old = declared()["plan_by_mode"].type
    new = declared(["free", "pro", "other"])["plan_by_mode"].type
    assert "tell those of the newest, as their cells differ" in new.combines(old)
    assert new.combines(dataclasses.replace(new)) == "combine both schemes"
