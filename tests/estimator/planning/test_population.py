"""Simulated populations: Zipf shares, crowds of numbers, and their files."""

import math

import numpy as np
import pytest
from tests.registries import declared

from deniable import Registry
from deniable.protocol.errors import ValueListError
from deniable_estimator.planning.population import Crowd, read_population, zipf_shares

METRICS = Registry.parse(
    declared(
        listed={"type": "category", "values": ["a", "b, c", "d"]},
        other={"type": "category", "values": ["x", "y"]},
        pair={"type": "pair", "of": ["listed", "other"]},
        any={"type": "string"},
        number={"type": "number", "low": 0, "high": 10, "ask": "mean"},
    )
)


def test_zipf():
    """Shares fall as a power of the rank and sum to one; exponent 0 is even."""
    assert zipf_shares(3, 1.0) == pytest.approx([6 / 11, 3 / 11, 2 / 11])
    assert zipf_shares(4, 0.0) == pytest.approx([0.25] * 4)


def test_a_file_of_shares(tmp_path):
    """Weights are scaled, quoted values read, and values that are not named have none. A line of a
    number may have no weight; without one it is 1."""
    file = tmp_path / "shares.csv"
    file.write_text('"b, c",3\n\na,1\n')
    assert read_population(file, METRICS["listed"]).shares == pytest.approx([0.25, 0.75, 0])
    file.write_text("cafe\u0301,3\nx,1\n", encoding="utf-8")
    found = read_population(file, METRICS["any"])
    assert (found.values, found.shares.tolist()) == (["caf\u00e9", "x"], [0.75, 0.25])
    file.write_text("3\n\n-1e2,2.5\n0.5,0\n")
    found = read_population(file, METRICS["number"])
    assert [float(each) for each in found.values] == [3, -100, 0.5]
    assert found.shares * 3.5 == pytest.approx([1, 2.5, 0])


@pytest.mark.parametrize(
    ("metric", "content", "line", "message"),
    [
        ("listed", b"a,1\nx,2\n", 2, "does not declare"),
        ("listed", b"a,1\na,2\n", 2, "a second time"),
        ("listed", b"a,1\nd\n", 2, "value,weight"),
        ("listed", b"a,-1\n", 1, "at least 0"),
        ("listed", b"a,0\n", None, "no value a weight"),
        ("listed", b"", None, "no value a weight"),
        ("listed", b"\xff\xfe", 1, "UTF-8"),
        ("any", b"a,1\na,2\n", 2, "names 'a' a second time"),
        ("pair", b"a,3\n", 1, "value,value,weight"),
        ("pair", b"a,y,1\nd,z,3\n", 2, "names 'z', which the metric does not declare"),
        ("pair", b"a,x,1\na,x,1\n", 2, "names 'a' with 'x' a second time"),
        ("pair", b"a,x,0\n", None, "no cell a weight above 0"),
        ("number", b"1\nmany\n", 2, "no finite number"),
        ("number", b"inf\n", 1, "no finite number"),
        ("number", b"1,-1\n", 1, "at least 0"),
        ("number", b"1,0\n", None, "a weight above 0"),
    ],
)
def test_mistakes_in_the_file(metric, content, line, message, tmp_path):
    """Every mistake is refused with its line and what to write instead."""
    file = tmp_path / "shares.csv"
    file.write_bytes(content)
    with pytest.raises(ValueListError, match=message) as caught:
        read_population(file, METRICS[metric])
    assert caught.value.line == line


def test_a_crowd_knows_its_truth():
    """Quantiles are the smallest numbers that enough devices do not exceed; means are weighted."""
    crowd = Crowd.of(np.array([4.0, 1.0, 2.0]), np.array([1.0, 2.0, 1.0]))
    assert [crowd.quantile(p) for p in (0.25, 0.5, 0.51, 0.75, 0.76, 0.99)] == [1, 1, 2, 2, 4, 4]
    assert crowd.mean() == crowd.series("mean") == 2
    assert crowd.geometric_mean() == crowd.series("geometric mean") == pytest.approx(8**0.25)
    assert crowd.series("p95") == 4
    assert (crowd.share_below(2), crowd.share_below(2.1)) == (0.5, 0.75)
    tenths = Crowd.of(np.arange(10.0))
    assert [tenths.quantile(p / 10) for p in range(1, 10)] == list(range(9))
    assert math.isnan(tenths.geometric_mean())
