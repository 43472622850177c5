"""Numbers as a type of metric: what is taken, how records merge, which mechanism is designed."""

import json
import math
import random
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable import MetricError, Registry, Scheme, SchemeError
from deniable.protocol.exact import exp_below
from deniable.protocol.mechanisms.dbitflip import DBitFlip
from deniable.protocol.mechanisms.number_range import TOP, NumberRange, number_text
from deniable.protocol.types.number import Number

LARGEST = sys.float_info.max
VECTORS = json.loads(
    (Path(__file__).parents[2] / "client" / "vectors" / "numbers.json").read_text(encoding="utf-8")
)
SPECIAL = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def declared(**keys):
    """A registry with one metric, m, of numbers from 0 to 10."""
    settings = {
        "type": '"number"',
        "description": '"d"',
        "owner": '"o"',
        "expires": "2099-01-01",
        "epsilon": "1.0",
        "lifetime_epsilon": "8.0",
        "low": "0",
        "high": "10",
        "ask": '"mean"',
    } | keys
    lines = "".join(f"{key} = {value}\n" for key, value in settings.items() if value is not None)
    return Registry.parse(f'schema = 1\napp = "example"\n[metrics.m]\n{lines}')


def metric(**keys):
    return declared(**keys)["m"]


def test_a_number_is_declared():
    """Every key arrives; what is left out has its default."""
    plain = metric().type
    assert plain == Number(NumberRange("0", "10"), ("mean",))
    assert isinstance(plain, Number)
    assert (plain.unit, plain.cells, plain.values, plain.needs_candidates) == (None, 256, (), False)
    assert metric(
        low="1e-3",
        high="50.5",
        unit='"s"',
        scale='"log"',
        ask='["distribution", "mean"]',
        cells="64",
    ).type == Number(NumberRange("0.001", "50.5", "log"), ("mean", "distribution"), "s", 64)
    whole = metric(low="-3", high="4.0", integer="true").type
    assert whole == Number(NumberRange("-3", "4", integer=True), ("mean",))


@pytest.mark.parametrize(
    ("keys", "name", "rows"),
    [
        ({}, "sliding_window", [64]),
        ({"mechanism": '"sliding_window"'}, "sliding_window", [64]),
        ({"mechanism": '"duchi"'}, "sliding_window", [2]),
        ({"ask": '"distribution"'}, "hierarchical_histogram", [4, 40, 121, 364]),
        (
            {"ask": '["mean", "distribution"]'},
            "hierarchical_histogram",
            [4, 40, 121, 364, 64],
        ),
        (
            {"ask": '"distribution"', "mechanism": '"hierarchical_histogram"', "cells": "64"},
            "hierarchical_histogram",
            [4, 40, 121],
        ),
        ({"ask": '"distribution"', "integer": "true"}, "hierarchical_histogram", [4, 40]),
    ],
)
def test_the_question_chooses_the_mechanism(keys, name, rows):
    """A mean has a sliding window, a distribution a hierarchy, and both a hierarchy with a row for
    the mean; the scheme can be read back from its definition."""
    scheme = metric(**keys).scheme
    assert scheme.mechanism.name == name
    assert [row.width for row in scheme.mechanism.rows] == rows
    assert scheme.mechanism.epsilon <= 1
    assert scheme.values == ()
    again = Scheme.from_definition(json.loads(scheme.canonical()))
    assert again.fingerprint == scheme.fingerprint
    assert type(again.mechanism) is type(scheme.mechanism)
    with pytest.raises(SchemeError, match="no shares of values"):
        again.oracle  # noqa: B018


@pytest.mark.parametrize(
    "value",
    [True, "5", b"5", None, math.nan, 1j, [5], np.nan, np.True_, Decimal("NaN"), Decimal(5)],
)
def test_only_numbers_are_taken(value):
    """Neither a bool nor a text nor NaN; the message does not repeat the value."""
    with pytest.raises(MetricError, match=r"takes a number, not|NaN is none") as caught:
        metric().normalize(value)
    assert "5" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.int64(5), "5"),
        (np.uint8(255), "255"),
        (np.float32(0.5), "0.5"),
        (Fraction(1, 4), "0.25"),
        (Fraction(10**400), "1.7976931348623157e+308"),
        (Fraction(-(10**400)), "-1.7976931348623157e+308"),
        (np.float64("-inf"), "-1.7976931348623157e+308"),
    ],
)
def test_every_real_is_a_number(value, text):
    """What `numbers.Real` covers counts as the nearest float, whoever wrote its class."""
    assert metric().normalize(value) == text


@pytest.mark.parametrize("case", VECTORS["records"])
def test_recorded_numbers(case):
    """The text that each recorded number waits as, and the float that it stands for."""
    told = case["recorded"]
    if isinstance(told, str):
        value = SPECIAL[told] if told in SPECIAL else int(told)
    else:
        value = told
    if "error" in case:
        with pytest.raises(MetricError):
            metric().normalize(value)
        return
    text = metric().normalize(value)
    assert float(text).hex() == float(case["number"]).hex()
    assert text == number_text(float(text))


@pytest.mark.parametrize("case", VECTORS["aggregates"])
def test_records_merge_as_published(case):
    """The exact float after each record."""
    kind = metric().type
    aggregate = case["aggregate"]
    texts = [kind.normalize(value) for value in case["records"]]
    value = kind.begin(aggregate, texts[0])
    found = [value]
    for records, text in enumerate(texts[1:], 2):
        value = kind.merge(aggregate, value, text, records, random.Random(1).getrandbits)
        found.append(value)
    assert [float(each) for each in found] == case["values"]


@pytest.mark.parametrize("case", VECTORS["positions"])
def test_positions_are_those_published(case):
    """The position of each number in each range, or the refusal of a range."""
    bounds = (case["low"], case["high"], case["scale"], bool(case["integer"]))
    if "error" in case:
        with pytest.raises(SchemeError):
            NumberRange(*bounds)
        return
    numbers = NumberRange(*bounds)
    for value, position in case["values"]:
        assert numbers.position(float(value)) == position


@pytest.mark.parametrize("text", ["firefox", "true", "", "nan", "inf", "1_0", " 5", "5.0", "+5"])
def test_a_text_that_is_no_number_has_no_item(text):
    """What another type left in the window is not reported."""
    with pytest.raises(KeyError):
        metric().item(text)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False), st.integers(2, 1000))
def test_merging_stays_finite(one, other, records):
    """Whatever is recorded, sums and means are finite numbers whose text reads back."""
    kind = metric().type
    texts = [kind.normalize(each) for each in (one, other)]
    assert kind.merge("max", "firefox", texts[0], 2, random.Random(1).getrandbits) == texts[0]
    for aggregate in ("sum", "mean", "max", "min"):
        merged = kind.merge(aggregate, *texts, records, random.Random(1).getrandbits)
        assert abs(float(merged)) <= LARGEST
        assert kind.item(merged, metric().scheme.mechanism) in range(-1, TOP + 1)


@pytest.mark.parametrize(
    ("settings", "cells", "bits"),
    [
        ({}, 16, 16),
        ({"mechanism": '"dbitflip"'}, 16, 16),
        ({"cells": "64"}, 64, 16),
        ({"cells": "256"}, 256, 16),
        ({"epsilon": "6.0", "cells": "64"}, 64, 1),
        ({"integer": "true"}, 16, 16),
        ({"integer": "true", "high": "1"}, 4, 1),
    ],
)
def test_a_distribution_may_have_memos(settings, cells, bits):
    """`auto` takes dBitFlip, with 16 cells unless others are declared, and keeps within both
    epsilons."""
    memos = {"longitudinal": '"memoize"', "memo_epsilon": "7.0", "lifetime_epsilon": "14.0"}
    made = metric(**{"ask": '"distribution"', **memos, **settings})
    mechanism = made.scheme.mechanism
    assert isinstance(mechanism, DBitFlip)
    assert (mechanism.cells, mechanism.bits) == (cells, bits)
    assert mechanism.odds <= exp_below(made.epsilon)
    assert mechanism.lifetime_odds <= exp_below(7.0)


@pytest.mark.parametrize("ask", [("mean",), ("distribution",), ("mean", "distribution")])
def test_designs_keep_within_any_epsilon(ask):
    """Over 12 random epsilons from 0.0001 to 10, log-uniform, seed 24, the exact epsilon is within
    the declared one and near it; one that 53 bits cannot express is refused."""
    rng = random.Random(24)
    kind = Number(NumberRange("0", "1"), ask)
    for _ in range(12):
        epsilon = 0.0001 * 100_000 ** rng.random()
        mechanism = kind.design("auto", "m", epsilon)
        assert mechanism.odds <= exp_below(epsilon)
        assert epsilon - 1e-6 < mechanism.epsilon <= epsilon + 1e-15
    for epsilon in (0.0, -1.0, math.inf, math.nan, 1e-17, 10.1):
        with pytest.raises(SchemeError, match="epsilon"):
            kind.design("auto", "m", epsilon)
