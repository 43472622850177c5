"""Estimates of shares, one and many, of one scheme or several, and what is said of them."""

import csv
import io
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.estimator.schemes import SCHEMES, SIZE

from deniable import Scheme
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses import sample_tally
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.basis import Part
from deniable_estimator.kinds.registry import answer_of, answers_of
from deniable_estimator.kinds.registry import combine as combine_answers
from deniable_estimator.kinds.shares.making import combine
from deniable_estimator.statistics.participation import Participation


@pytest.fixture
def scheme():
    """p = 3/4 and q = 1/8 exactly, whatever epsilon that is."""
    return Scheme("category", SubsetSelection(3, 1, 3 << 51), ("a", "b", "c"))


def test_csv_round_trip(make_scheme, make_tally):
    """Values with commas and quotes, and all floats, survive CSV exactly; no cell breaks a line."""
    values = ['say "hi", you', "two\nlines", "naïve ☕"]
    scheme = make_scheme(3, 1.0, values=values)
    answer = answer_of(make_tally(scheme, 900, [333, 300, 267]), scheme)
    rows = list(csv.DictReader(io.StringIO(answer.to_csv(), newline="")))
    assert [row["value"] for row in rows] == [each.replace("\n", "\\n") for each in values]
    assert [float(row["share"]) for row in rows] == answer.share.tolist()
    assert [row["detected"] for row in rows] == [str(each) for each in answer.detected.tolist()]


def test_wrong_scheme_is_refused(scheme, make_scheme, make_tally):
    """A tally is never read with another scheme's probabilities."""
    with pytest.raises(EstimateError, match="own scheme"):
        answer_of(make_tally(make_scheme(3, 1.0), 9, [3, 3, 3]), scheme)


def same(one, other):
    """Whether two answers, or parts of them, agree: numbers to 1e-9 of themselves."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.allclose(one, other, 1e-9, 1e-15, equal_nan=True)
    if is_dataclass(one) and not isinstance(one, type):
        names = [each.name for each in fields(one)]
        return type(one) is type(other) and all(
            same(getattr(one, name), getattr(other, name)) for name in names
        )
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return bool(one == pytest.approx(other, rel=1e-9, abs=1e-15, nan_ok=True))
    return bool(one == other)


@settings(max_examples=25)
@given(st.data())
def test_tallies_together_are_as_each_alone(data):
    """Any tallies of any scheme, with few reports, many or none, of devices that have reported once
    or again, and for some values or all, have the same answers together as each has alone."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scheme = data.draw(st.sampled_from(SCHEMES))
    candidates = data.draw(st.sampled_from([None, ["value 3", "value 0"]]))
    parts = []
    for number in range(data.draw(st.integers(1, 6))):
        reports = data.draw(st.sampled_from([0, 1, 7, 40, 999, 1_000, 20_000]))
        counts = rng.multinomial(reports, rng.dirichlet(np.ones(SIZE)))
        tally = sample_tally(scheme, counts, rng, window=f"2026-11-{number + 1:02}")
        windows = data.draw(st.sampled_from([1, 1, 3]))
        each = {str(window): reports / windows for window in range(windows)}
        parts.append(Part(tally, scheme, candidates, Participation(each, 0.5, 8.0, 1.0)))
    levels, ways = st.sampled_from([0.5, 0.95, 0.999]), st.sampled_from(["storey", "bonferroni"])
    asked = data.draw(st.tuples(levels, ways))
    found = answers_of(parts, *asked)
    for part, one in zip(parts, found, strict=True):
        (other,) = answers_of([part], *asked)
        assert same(one, other)
        assert same(one.normalized, other.normalized)


@pytest.fixture
def warn(make_scheme, make_tally):
    """The warnings, as one text, for n reports over so many values."""

    def say(n, size=4, epsilon=1.0, k=None):
        scheme = make_scheme(size, epsilon, k)
        return "; ".join(answer_of(make_tally(scheme, n, [n // size] * size), scheme).warnings)

    return say


def test_what_a_statistician_would_say(warn):
    """Noise that can look like half of the crowd is called no usable signal: of four values at
    epsilon 1 below n = 32 (critical value 2.24, null error 1.26 / sqrt(n)). A handful of reports is
    called that even where their noise is small, and with fewer than four chance supporters of a
    value the numbers are called rough."""
    assert "no usable signal" in warn(30)
    assert "no usable signal" not in warn(34)
    assert "too few reports (only 29)" in warn(29, 2, 6.0)
    assert "too few" not in warn(30, 2, 6.0)
    assert "rough" in warn(350, 100, 1.0, 1)
    assert "rough" not in warn(450, 100, 1.0, 1)


VALUES = ("a", "b", "c", "d", "e", "f")
SCHEME = Scheme("category", SubsetSelection.design(6, 1.0), VALUES)
BOOLEAN = Scheme("boolean", SubsetSelection.design(2, 1.0), ("true", "false"))


def expected(shares, n, scheme=SCHEME):
    """The estimate of a tally with just these shares, of n reports."""
    p, q = float(scheme.mechanism.p), float(scheme.mechanism.q)
    cells = np.array([round(n * (q + share * (p - q))) for share in shares])
    return answer_of(Tally("m", scheme.fingerprint, ("2026-11-20",), (TallyRow(n, cells),)), scheme)


def test_what_lies_beyond_everything_is_impossible():
    """115% and -50% are impossible; -3% and 103% with as wide an interval are not; and what
    is impossible is neither among what stands out nor among the noise."""
    found = expected([1.15, -0.5, 0.2, 0.15, 0.0, 0.0], 5000)
    assert found.impossible.tolist() == [True, True, False, False, False, False]
    assert [each.tolist() for each in found.parted] == [[1, 0, 2, 3], [4, 5]]
    assert found.strange.tolist() == [1, 0]
    assert not expected([1.03, -0.03, 0.0, 0.0, 0.0, 0.0], 5000).impossible.any()
    assert expected([1.2, -0.2], 400, BOOLEAN).impossible.all()
    assert not expected([1.02, -0.02], 400, BOOLEAN).impossible.any()
    assert not answer_of(sample_tally(SCHEME, np.zeros(6, int), np.random.default_rng(1)), SCHEME) \
        .impossible.any()  # fmt: skip


def test_the_same_devices_under_two_schemes(make_scheme, make_tally):
    """In two windows, all devices of the smaller one may be in the larger one too: their shares
    vary together by f (1-f) / 5,000, which is added to the variance. Each scheme counts by its
    reports: what is told is the share of all that reported, however exact each part is."""
    weak, strong = make_scheme(2, 1.0), make_scheme(2, 4.0)
    parts = [
        answer_of(make_tally(weak, 5000, [3000, 2000]), weak),
        answer_of(make_tally(strong, 2000, [1400, 600], ["2026-11-17"]), strong),
    ]
    both = combine(parts)
    f = both.share
    own = np.array([part.noise.at(f) for part in parts])
    weights = np.array([[5 / 7], [2 / 7]])
    assert f == pytest.approx((weights * [part.share for part in parts]).sum(axis=0), abs=1e-4)
    variance = (weights**2 * own).sum(axis=0) + 2 * weights.prod(axis=0) * f * (1 - f) / 5000
    assert both.std_error == pytest.approx(np.sqrt(variance), rel=1e-4)
    assert both.std_error == pytest.approx(np.sqrt(both.noise.at(f)))
    assert both.windows == ("2026-11-16", "2026-11-17")
    assert both.devices == 7000**2 / (7000 + 2 * 2000)
    assert both.p_value[0] < 1e-6


def test_same_scheme_twice_is_one_tally_added(make_scheme, make_tally):
    """Combining halves of a crowd is estimating the whole, for every number there is."""
    scheme = make_scheme(3, 1.0)
    halves = [[240, 150, 110], [230, 160, 110]]
    both = combine([answer_of(make_tally(scheme, 500, half), scheme) for half in halves])
    whole = answer_of(make_tally(scheme, 1000, np.sum(halves, axis=0)), scheme)
    for name in ("share", "std_error", "low", "high", "p_value", "p_adjusted", "normalized"):
        assert getattr(both, name) == pytest.approx(getattr(whole, name)), name


def test_a_ghost_of_one_scheme_is_none_where_another_detects_it(make_scheme, make_tally):
    """What looks like an accident of one scheme's hashes is dropped only if no other shows it."""
    scheme = make_scheme(3, 1.0)
    sure = answer_of(make_tally(scheme, 100_000, [60_000, 20_000, 20_000]), scheme)
    assert sure.detected.tolist() == [True, False, False]
    haunted = replace(sure, ghosts=np.array([True, True, False]))
    both = combine([haunted, sure])
    assert both.ghosts.tolist() == [False, True, False]
    assert both.detected.tolist() == [True, False, False]
    assert combine([haunted, haunted]).ghosts.tolist() == [True, True, False]


def test_values_that_some_schemes_lack(make_scheme, make_tally):
    """A value that one scheme only asks for rests on it alone, and the estimate says so. It takes
    nothing from what is said of the others, whose devices may be the same in both windows."""
    new = make_scheme(3, 1.0, values=["a", "b", "opera"])
    old = make_scheme(2, 1.0, values=["b", "a"])
    parts = [
        answer_of(make_tally(new, 1000, [500, 300, 200]), new),
        answer_of(make_tally(old, 1000, [400, 600], ["2026-11-17"]), old),
    ]
    both = combine(parts)
    known = answer_of(make_tally(new, 1000, [500, 300, 200]), new, ["a", "b"])
    without = combine([known, parts[1]])
    assert both.std_error[:2] == pytest.approx(without.std_error, rel=1e-9)
    assert both.share[:2] == pytest.approx(without.share, rel=1e-9)
    assert both.values == ("a", "b", "opera")
    assert both.share[2] == pytest.approx(parts[0].share[2])
    assert both.std_error[2] == pytest.approx(parts[0].std_error[2])
    assert min(parts[0].share[0], parts[1].share[1]) < both.share[0]
    assert both.share[0] < max(parts[0].share[0], parts[1].share[1])
    assert not both.complete
    assert any(warning.endswith("some schemes only: opera") for warning in both.warnings)


def test_empty_estimates_do_not_count(make_scheme, make_tally):
    """A scheme without reports changes nothing; if none has any, the answer has n = 0."""
    one, two = make_scheme(3, 1.0), make_scheme(3, 2.0)
    empty = answer_of(make_tally(one, 0, [0, 0, 0]), one)
    full = answer_of(make_tally(two, 100, [60, 25, 15]), two)
    assert combine([empty, full]) is full
    assert combine([empty, empty]).n == 0


def test_different_questions_are_refused(make_scheme, make_tally):
    """Estimates of different metrics or levels, or none at all, are not combined; a level is more
    than 0 and less than 1."""
    scheme = make_scheme(3, 1.0)
    tally = make_tally(scheme, 100, [60, 25, 15])
    for level in (0.0, 1.0):
        with pytest.raises(ValueError, match="between 0 and 1"):
            answer_of(tally, scheme, level=level)
    other = make_tally(scheme, 100, [60, 25, 15], metric="os")
    for parts in (
        [],
        [answer_of(tally, scheme), answer_of(other, scheme)],
        [answer_of(tally, scheme), answer_of(tally, scheme, level=0.9)],
    ):
        with pytest.raises(EstimateError):
            combine_answers(parts)
