"""Schemes of one metric are combined by inverse variance, without bias."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.estimator.conftest import MakeScheme, MakeTally

from deniable_estimator.answers.combination import combine
from deniable_estimator.answers.shares import estimate
from deniable_estimator.errors import EstimateError


def test_the_same_devices_under_two_schemes(make_scheme: MakeScheme, make_tally: MakeTally) -> None:
    """In two windows, all devices of the smaller one may be in the larger one too: their shares
    vary together by f (1-f) / 5,000, which is added to the variance and weighs on no scheme."""
    weak, strong = make_scheme(2, 1.0), make_scheme(2, 4.0)
    parts = [
        estimate(make_tally(weak, 5000, [3000, 2000]), weak),
        estimate(make_tally(strong, 2000, [1400, 600], ["2026-11-17"]), strong),
    ]
    both = combine(parts)
    f = both.share
    own = np.array([part.noise.at(f) for part in parts])
    weights = 1 / (own - f * (1 - f) / 5000)
    weights /= weights.sum(axis=0)
    assert f == pytest.approx((weights * [part.share for part in parts]).sum(axis=0), abs=1e-4)
    variance = (weights**2 * own).sum(axis=0) + 2 * weights.prod(axis=0) * f * (1 - f) / 5000
    assert both.std_error == pytest.approx(np.sqrt(variance), rel=1e-4)
    assert both.windows == ("2026-11-16", "2026-11-17")
    assert both.devices == 7000**2 / (7000 + 2 * 2000)
    assert both.p_value[0] < 1e-6


def test_same_scheme_twice_is_one_tally_added(
    make_scheme: MakeScheme, make_tally: MakeTally
) -> None:
    """Combining halves of a crowd is estimating the whole, for every number there is."""
    scheme = make_scheme(3, 1.0)
    halves = [[240, 150, 110], [230, 160, 110]]
    both = combine([estimate(make_tally(scheme, 500, half), scheme) for half in halves])
    whole = estimate(make_tally(scheme, 1000, np.sum(halves, axis=0)), scheme)
    for name in ("share", "std_error", "low", "high", "p_value", "p_adjusted", "normalized"):
        assert getattr(both, name) == pytest.approx(getattr(whole, name)), name


def test_a_ghost_of_one_scheme_is_none_where_another_detects_it(
    make_scheme: MakeScheme, make_tally: MakeTally
) -> None:
    """What looks like an accident of one scheme's hashes is dropped only if no other shows it."""
    scheme = make_scheme(3, 1.0)
    sure = estimate(make_tally(scheme, 100_000, [60_000, 20_000, 20_000]), scheme)
    assert sure.detected.tolist() == [True, False, False]
    haunted = replace(sure, ghosts=np.array([True, True, False]))
    both = combine([haunted, sure])
    assert both.ghosts.tolist() == [False, True, False]
    assert both.detected.tolist() == [True, False, False]
    assert combine([haunted, haunted]).ghosts.tolist() == [True, True, False]


def test_values_that_some_schemes_lack(make_scheme: MakeScheme, make_tally: MakeTally) -> None:
    """A value that one scheme only asks for rests on it alone, and the estimate says so."""
    new = make_scheme(3, 1.0, values=["a", "b", "opera"])
    old = make_scheme(2, 1.0, values=["b", "a"])
    parts = [
        estimate(make_tally(new, 1000, [500, 300, 200]), new),
        estimate(make_tally(old, 1000, [400, 600]), old),
    ]
    both = combine(parts)
    assert both.values == ("a", "b", "opera")
    assert both.share[2] == pytest.approx(parts[0].share[2])
    assert both.std_error[2] == pytest.approx(parts[0].std_error[2])
    assert min(parts[0].share[0], parts[1].share[1]) < both.share[0]
    assert both.share[0] < max(parts[0].share[0], parts[1].share[1])
    assert not both.complete
    assert any(warning.endswith("some schemes only: opera") for warning in both.warnings)


def test_devices_vary_together_where_both_schemes_know_a_value(
    make_scheme: MakeScheme, make_tally: MakeTally
) -> None:
    """Over two windows that the same devices may be in, a value that one scheme lacks takes nothing
    of what is added to those that both know."""
    both_know = make_scheme(2, 1.0, values=["a", "b"])
    three = make_scheme(3, 4.0, values=["a", "b", "c"])
    first = estimate(make_tally(both_know, 5000, [3000, 2000]), both_know)
    second = estimate(make_tally(three, 2000, [1300, 600, 300], ["2026-11-17"]), three)
    found = combine([first, second])
    assert found.values == ("a", "b", "c")
    known = found.share[:2]
    own = np.array([first.noise.at(known), second.noise.at(found.share)[:2]])
    common = known * (1 - known) / 5000
    weights = 1 / (own - common)
    weights /= weights.sum(axis=0)
    variance = (weights**2 * own).sum(axis=0) + 2 * weights.prod(axis=0) * common
    assert found.std_error[:2] == pytest.approx(np.sqrt(variance), rel=1e-3)
    assert found.std_error[2] == pytest.approx(second.std_error[2], rel=1e-3)


def test_empty_estimates_do_not_count(make_scheme: MakeScheme, make_tally: MakeTally) -> None:
    """A scheme without reports changes nothing; if none has any, the answer has n = 0."""
    one, two = make_scheme(3, 1.0), make_scheme(3, 2.0)
    empty = estimate(make_tally(one, 0, [0, 0, 0]), one)
    full = estimate(make_tally(two, 100, [60, 25, 15]), two)
    assert combine([empty, full]) is full
    assert combine([empty, empty]).n == 0


def test_different_questions_are_refused(make_scheme: MakeScheme, make_tally: MakeTally) -> None:
    """Estimates of different metrics or levels, or none at all, are not combined."""
    scheme = make_scheme(3, 1.0)
    tally = make_tally(scheme, 100, [60, 25, 15])
    other = make_tally(scheme, 100, [60, 25, 15], metric="os")
    for parts in (
        [],
        [estimate(tally, scheme), estimate(other, scheme)],
        [estimate(tally, scheme), estimate(tally, scheme, level=0.9)],
    ):
        with pytest.raises(EstimateError):
            combine(parts)
