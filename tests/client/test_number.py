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
from deniable.protocol.mechanisms.number_range import TOP, NumberRange, number_text
from deniable.protocol.types.number import Number

from .conftest import metrics_toml

LARGEST = sys.float_info.max
VECTORS = json.loads(
    (Path(__file__).parents[2] / "client" / "vectors" / "numbers.json").read_text(encoding="utf-8")
)
SPECIAL = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def metric(**keys):
    """A metric of numbers from 0 to 10."""
    usual = {"type": "number", "low": 0, "high": 10, "ask": "mean"}
    return Registry.parse(metrics_toml(m={**usual, **keys}))["m"]


def test_a_number_is_declared():
    """Every key arrives; what is left out has its default."""
    plain = metric().type
    assert plain == Number(NumberRange("0", "10"), ("mean",))
    assert isinstance(plain, Number)
    assert (plain.unit, plain.cells, plain.values, plain.needs_candidates) == (None, 256, (), False)
    assert metric(
        low=0.001, high=50.5, unit="s", scale="log", ask=["distribution", "mean"], cells=64
    ).type == Number(NumberRange("0.001", "50.5", "log"), ("mean", "distribution"), "s", 64)
    whole = metric(low=-3, high=4.0, integer=True).type
    assert whole == Number(NumberRange("-3", "4", integer=True), ("mean",))


@pytest.mark.parametrize("ask", ["mean", "distribution", ["mean", "distribution"]])
def test_a_scheme_of_numbers_is_read_back(ask):
    """From its definition; it has no values, and no shares of them."""
    scheme = metric(ask=ask).scheme
    again = Scheme.from_definition(json.loads(scheme.canonical()))
    assert again.fingerprint == scheme.fingerprint
    assert (again.values, type(again.mechanism)) == ((), type(scheme.mechanism))
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


def test_positions_are_those_published(stays):
    """The position of each number in each range, or why a range is refused: `ranges.txt` has the
    sentences."""
    told = []
    for case in VECTORS["positions"]:
        bounds = (case["low"], case["high"], case["scale"], bool(case["integer"]))
        try:
            numbers = NumberRange(*bounds)
        except SchemeError as error:
            told.append(f"{json.dumps(bounds)}: {error}")
            continue
        for value, position in case["values"]:
            assert numbers.position(float(value)) == position
    assert len(told) == sum("error" in case for case in VECTORS["positions"])
    stays("ranges.txt", told)


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
