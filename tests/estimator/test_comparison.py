"""Changes between two estimates: their intervals, their words and what is refused."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from deniable import Scheme
from deniable.protocol.mechanisms import design
from deniable_estimator.analyses import sample_tally
from deniable_estimator.asking.comparison import compare, since_headline
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.base import ChangeTest
from deniable_estimator.kinds.registry import answer_of
from deniable_estimator.statistics.counts import share_interval
from deniable_estimator.statistics.intervals import Noise, interval_of_difference

VALUES = tuple(f"v{i}" for i in range(50))


def drawn(shares, n, rng, window="2026-11-16"):
    """An estimate from a simulated crowd of n devices with these shares."""
    size = len(shares)
    values = ("true", "false") if size == 2 else VALUES[:size]
    scheme = Scheme("category", design("auto", size, 1.0), values)
    counts = rng.multinomial(n, shares)
    return answer_of(sample_tally(scheme, counts, rng, metric="m", window=window), scheme)


def wilson(yes, n):
    """A share with the ends of Wilson's interval."""
    share, z = yes / n, 1.959963984540054
    middle, scale = share + z**2 / (2 * n), 1 + z**2 / n
    half = z * (share * (1 - share) / n + z**2 / (4 * n**2)) ** 0.5
    low, high = (middle - half) / scale, (middle + half) / scale
    return np.array([share]), np.array([low]), np.array([high])


@pytest.mark.parametrize(
    ("after", "before", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((5, 56), (0, 29), -0.0381, 0.1926),
    ],
)
def test_the_interval_is_newcombes(after, before, low, high):
    """Each end takes the end of the old interval on its own side, as in the examples of Newcombe's
    paper (Table II, method 10, to the four digits printed there)."""
    found = interval_of_difference(wilson(*before), wilson(*after))
    assert (found[0][0], found[1][0]) == pytest.approx((low, high), abs=5.1e-5)
    back = interval_of_difference(wilson(*after), wilson(*before))
    assert (back[0][0], back[1][0]) == pytest.approx((-high, -low), abs=5.1e-5)


def test_values_are_matched_by_name():
    """What only one of the two knows is left out, and the order is that of the later one."""
    rng = np.random.default_rng(5)
    small, large = drawn([0.4, 0.3, 0.3], 5000, rng), drawn([0.25] * 4, 5000, rng, "2026-11-17")
    later = replace(small, windows=("2026-11-18",), values=("v2", "gone", "v0"))
    found, backwards = compare(large, later), compare(later, large)
    assert found.values == ("v2", "v0")
    assert backwards.values == ("v0", "v2")
    expected = later.share[[0, 2]] - large.share[[2, 0]]
    assert found.difference == pytest.approx(expected)
    assert backwards.difference == pytest.approx(-expected[::-1])
    assert found.low == pytest.approx(-backwards.high[::-1])
    assert found.high == pytest.approx(-backwards.low[::-1])
    assert found.std_error == pytest.approx(backwards.std_error[::-1])


def test_what_cannot_be_compared_is_refused():
    """A window with itself, another metric and another level raise."""
    rng = np.random.default_rng(6)
    one = drawn([0.5, 0.5], 100, rng)
    several = replace(one, windows=("2026-11-17", "2026-11-16", "2026-11-18"))
    with pytest.raises(EstimateError, match="both periods hold 2026-11-16"):
        compare(several, several)
    scheme = Scheme("boolean", design("auto", 2, 1.0), ("true", "false"))
    other = answer_of(sample_tally(scheme, np.array([1, 1]), rng, metric="other"), scheme)
    with pytest.raises(EstimateError, match="one metric"):
        compare(one, other)
    wide = answer_of(sample_tally(scheme, np.array([1, 1]), rng, metric="m"), scheme, level=0.9)
    with pytest.raises(EstimateError, match="level"):
        compare(one, wide)


def normal(shares, window, *, complete=True):
    """An estimate with these shares, each with a standard error of 0.01 and normal noise."""
    size = len(shares)
    known = drawn([1 / max(2, size)] * max(2, size), 100, np.random.default_rng(0), window)
    share, noise = np.array(shares), replace(Noise.none(size), a=np.full(size, 1e-4))
    low, high = share_interval(share, noise, known.level)
    return replace(
        known,
        values=known.values[:size],
        share=share,
        noise=noise,
        low=low,
        high=high,
        std_error=np.full(size, 0.01),
        complete=complete,
    )


@pytest.mark.parametrize(
    ("size", "complete", "family"),
    [(1, True, 1), (1, False, 1), (2, True, 1), (2, False, 2), (3, True, 3), (3, False, 3)],
)
def test_changes_are_corrected_for_the_values_that_are_free(size, complete, family):
    """Two values of a complete list count as one, any others each; the ends are not widened."""
    limit = NormalDist().inv_cdf(1 - 0.025 / family) * 0.01 * 2**0.5
    for change, changed in ((limit * 0.999, False), (limit * 1.001, True)):
        old = normal([0.3] * size, "2026-11-16", complete=complete)
        new = normal([0.3 + change] * size, "2026-11-17", complete=complete)
        found = compare(old, new, ChangeTest(adjust="bonferroni"))
        back = compare(new, old, ChangeTest(adjust="bonferroni"))
        assert found.changed.tolist() == back.changed.tolist() == [changed] * size
        if size == 2:
            # The later of the two says how many are free.
            mixed = compare(
                replace(old, complete=not complete), new, ChangeTest(adjust="bonferroni")
            )
            assert mixed.changed.tolist() == [changed] * size
        half = NormalDist().inv_cdf(0.975) * 0.01 * 2**0.5
        assert found.low == pytest.approx(np.full(size, change - half), abs=1e-7)
        assert found.high == pytest.approx(np.full(size, change + half), abs=1e-7)
        assert back.low == pytest.approx(np.full(size, -change - half), abs=1e-7)
        assert back.high == pytest.approx(np.full(size, -change + half), abs=1e-7)


@pytest.mark.parametrize(
    ("before", "after", "notes"),
    [
        (["2026-11-16"], ["2026-11-17"], 1),
        (["2026-11-16", "2026-11-17"], ["2026-11-23", "2026-11-24"], 0),
        (["2026-11-16", "2026-11-17"], ["2026-11-10", "2026-11-24", "2026-11-09", "2026-11-23"], 0),
        (["2026-11-16", "2026-11-17"], ["2026-11-10", "2026-11-24", "2026-11-23"], 1),
        (["2026-W47"], ["2026-W48"], 0),
    ],
)
def test_other_weekdays_are_noted(before, after, notes):
    """A note says where the two periods hold other weekdays, or the same in other parts."""
    one, two = (
        replace(normal([0.3, 0.7], each[0]), windows=tuple(each)) for each in (before, after)
    )
    for found in (compare(one, two), compare(two, one)):
        assert len(found.notes) == notes
        assert found.to_dict()["notes"] == list(found.notes)


def test_a_headline_says_where_one_side_has_few_windows():
    """Ten months are not silently compared with two."""
    many = [f"2026-{month:02}" for month in range(3, 9)]
    for count, told in ((3, ""), (2, "2 windows"), (1, "1 window")):
        before = replace(
            normal([0.3, 0.7], "2026-01"), windows=("2026-01", "2026-02", "2025-12")[:count]
        )
        after = replace(normal([0.5, 0.5], "2026-03"), windows=tuple(many))
        headline = since_headline("m", compare(before, after), "release 4.2")
        assert (f"({told} with reports before, 6 after)" in headline) == bool(told)
        assert ("with reports" in headline) == bool(told)
