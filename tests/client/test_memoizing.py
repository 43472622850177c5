"""Mechanisms with memory: both rounds, how they compose, and what is declared of them."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from deniable.protocol.errors import SchemeError
from deniable.protocol.exact import exp_below
from deniable.protocol.mechanisms import (
    MAX_MEMO_EPSILON,
    MEMOIZED_DESIGNS,
    MEMOIZED_STRING_DESIGNS,
    Memoizing,
    Report,
    design,
)
from deniable.protocol.mechanisms.dbitflip import DBitFlip
from deniable.protocol.mechanisms.hashed import MemoizedLocalHashing
from deniable.protocol.mechanisms.number_range import NumberRange
from deniable.protocol.mechanisms.rappor import BasicRappor, Bloom, OneTimeRappor, Rappor, Rounds
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection
from deniable.protocol.randomness import PRECISION

from .two_rounds import memo_chances, report_chances, worst_ratio

ONE = 1 << PRECISION
ROUNDS = Rounds(ONE // 2, ONE // 4, ONE * 3 // 4)
STRINGS = ["Ålesund", "Bergen", "", "Oslo", "Tromsø", "Bodø"]
UNIT, WHOLE = NumberRange("0", "1"), NumberRange("0", "13", integer=True)
FLIPS = ONE // 16, ONE // 5
POSITIONS = [-1, *range(1, 1 << 30, 1 << 26), 1 << 30]

SMALL: dict[str, tuple[Memoizing[Any], list[Any]]] = {
    "randomized response": (MemoizedSubsetSelection.design(2, 1.0, 2.0), [0, 1]),
    "subset selection 2 of 5": (MemoizedSubsetSelection.design(5, 1.0, 3.0, k=2), list(range(5))),
    "subset selection 1 of 4": (MemoizedSubsetSelection.design(4, 2.0, 2.5, k=1), list(range(4))),
    "local hashing": (
        MemoizedLocalHashing("city", 3, MemoizedSubsetSelection.design(4, 1.0, 2.0, k=1)),
        STRINGS,
    ),
    "basic RAPPOR": (BasicRappor(4, ROUNDS), list(range(4))),
    "tuned basic RAPPOR": (BasicRappor.design(3, 1.0, 2.5), list(range(3))),
    "RAPPOR, one hash": (Rappor(Bloom("city", 2, 4, 1), ROUNDS), STRINGS),
    "RAPPOR, two hashes": (Rappor(Bloom("city", 2, 5, 2), ROUNDS), STRINGS),
    "4 noisy bits in a row": (DBitFlip(UNIT, 4, 4, *FLIPS), POSITIONS),
    "2 noisy bits in 8 rows": (DBitFlip(UNIT, 16, 2, *FLIPS), POSITIONS),
    "4 noisy bits in 4 rows": (DBitFlip(WHOLE, 16, 4, *FLIPS), POSITIONS),
    "1 noisy bit in 16 rows": (DBitFlip(UNIT, 16, 1, *FLIPS), POSITIONS),
}
"""Small enough to enumerate all memos and all reports, with values to do it over."""

small = pytest.mark.parametrize(("mechanism", "items"), SMALL.values(), ids=SMALL)


@small
def test_the_rounds_compose_to_the_likelihood(mechanism, items):
    """Over all memos, the two rounds make every report exactly as often as `likelihood` says."""
    rows = len(mechanism.rows)
    for row, item in itertools.product(range(rows), items):
        composed = Counter()
        for memo, chance in memo_chances(mechanism, mechanism.cell(row, item)).items():
            for columns, each in report_chances(mechanism, memo).items():
                composed[columns] += chance * each
        for columns, chance in composed.items():
            assert mechanism.likelihood(Report(row, columns), item) == chance / rows


@small
def test_a_memo_keeps_to_its_lifetime(mechanism, items):
    """No memo tells two cells apart by more than `lifetime_odds`, and some does by that much."""
    worst = max(
        worst_ratio([memo_chances(mechanism, mechanism.cell(row, item)) for item in items])
        for row in range(len(mechanism.rows))
    )
    assert worst == mechanism.lifetime_odds


@small
def test_fresh_noise_keeps_to_its_odds(mechanism, items):
    """No report tells two memos apart by more than `fresh_odds`, and some report does so."""
    memos = memo_chances(mechanism, mechanism.cell(0, items[0]))
    assert worst_ratio([report_chances(mechanism, each) for each in memos]) == mechanism.fresh_odds


def random_epsilons(rng):
    """An epsilon from 0.05 to 5, log-uniform, and a lifetime from 1.1 to 4 times as long."""
    epsilon = 0.05 * 100 ** rng.random()
    return epsilon, epsilon * (1.1 + 2.9 * rng.random())


@pytest.mark.parametrize("name", ["auto", "memoized_subset_selection", "memoized_local_hashing"])
def test_chains_are_calibrated_exactly(name):
    """Over 200 random configurations both epsilons are the declared ones to 1e-6, from below.

    Domains of 2 to 2,000 values or strings, seed 32; that the reported epsilons are those of
    the composed channel is proved by enumeration above.
    """
    rng = random.Random(32)
    for _ in range(200):
        epsilon, lifetime = random_epsilons(rng)
        closed = name != "memoized_local_hashing" and rng.random() < 0.8
        size = round(2 * 1000 ** rng.random()) if closed or name.endswith("selection") else None
        mechanism = design(name, size, epsilon, lifetime, salt="city")
        assert mechanism.odds <= exp_below(epsilon)
        assert mechanism.lifetime_odds <= exp_below(lifetime)
        assert epsilon - 1e-6 < mechanism.epsilon <= epsilon + 1e-15
        assert lifetime - 1e-6 < mechanism.lifetime_epsilon <= lifetime + 1e-14
        assert 0 < mechanism.q < mechanism.p < 1


@pytest.mark.parametrize("name", ["rappor", "basic_rappor"])
def test_tuned_rappor_keeps_within_both_epsilons(name):
    """Over 200 random configurations both epsilons are the declared ones to 1e-6, from below,
    or there is no room between them, which is said. Seed 33."""
    rng = random.Random(33)
    refused = 0
    for _ in range(200):
        epsilon, lifetime = random_epsilons(rng)
        size = 10 if name == "basic_rappor" else None
        feasible = math.exp(epsilon) < 2 * math.exp(lifetime / 2) - 1
        if not feasible:
            refused += 1
            with pytest.raises(SchemeError, match="leaves no room for fresh noise"):
                design(name, size, epsilon, lifetime, salt="city")
            continue
        mechanism = design(name, size, epsilon, lifetime, salt="city")
        assert mechanism.odds <= exp_below(epsilon)
        assert mechanism.lifetime_odds <= exp_below(lifetime)
        assert epsilon - 1e-6 < mechanism.epsilon <= epsilon + 1e-15
        assert lifetime - 1e-6 < mechanism.lifetime_epsilon <= lifetime + 1e-14
    assert 0 < refused < 100


def test_the_advice_on_a_short_lifetime_is_right():
    """The lifetime that a refusal asks for is enough, and little less is not."""
    with pytest.raises(SchemeError, match=r"lifetime_epsilon above 2\.868") as caught:
        Rounds.tuned(2.0, 2.2)
    assert "2.868" in str(caught.value)
    with pytest.raises(SchemeError):
        Rounds.tuned(2.0, 2.867)
    assert Rounds.tuned(2.0, 2.869).p < ONE // 1000
    with pytest.raises(SchemeError, match=r"sets of k = 3 .* declare more than 1\.817"):
        MemoizedSubsetSelection.design(10, 1.0, 1.8, k=3)
    assert MemoizedSubsetSelection.design(10, 1.0, 1.82, k=3).k == 3


def test_the_subset_size_is_the_best_that_a_lifetime_allows():
    """Over 60 random configurations no other k that can be had has less variance. Seed 34."""
    rng = random.Random(34)
    for _ in range(60):
        size = rng.randrange(2, 30)
        epsilon, lifetime = random_epsilons(rng)
        chosen = MemoizedSubsetSelection.design(size, epsilon, lifetime)
        variances = {}
        for k in range(1, size):
            try:
                other = MemoizedSubsetSelection.design(size, epsilon, lifetime, k=k)
            except SchemeError:
                continue
            variances[k] = other.total_variance(size)
        assert variances[chosen.k] == min(variances.values())


def test_the_classic_parameters():
    """The named sets have the published parameters and the epsilons that follow from them."""
    paper, chromium = Rappor.paper("city"), Rappor.chromium("city")
    assert (
        paper.odds
        == (Fraction(11, 16) * Fraction(7, 16)) ** 2 / (Fraction(9, 16) * Fraction(5, 16)) ** 2
    )
    assert paper.epsilon == pytest.approx(1.0743, abs=1e-4)
    assert chromium.epsilon == pytest.approx(2.0433, abs=1e-4)
    assert paper.lifetime_odds == chromium.lifetime_odds == 81
    assert [(row.width, row.report_bytes) for row in set(paper.rows)] == [(128, 16)]
    assert [(row.width, row.report_bytes) for row in set(chromium.rows)] == [(32, 4)]
    assert (len(paper.rows), len(chromium.rows)) == (64, 128)
    with pytest.raises(SchemeError, match="above the declared"):
        design("rappor_paper", None, 1.0, 4.4, salt="city")
    with pytest.raises(SchemeError, match="memos of epsilon"):
        design("rappor_paper", None, 1.1, 4.3, salt="city")
    assert design("rappor_paper", None, 1.1, 4.4, salt="city").parameters() == (paper.parameters())


def test_another_strings_bit_is_set_with_q_on_average():
    """Over the hash functions, a bit of a string is 1 in reports of another with probability q."""
    mechanism = Rappor(Bloom("city", 3, 5, 2), ROUNDS)
    places = list(itertools.product(range(5), repeat=2))
    share = Fraction(sum(0 in place for place in places), len(places))
    expected = share * mechanism.rounds.p11 + (1 - share) * mechanism.rounds.p01
    assert mechanism.q == expected
    one_time = OneTimeRappor(Bloom("city", 3, 5, 2), ONE // 2)
    assert one_time.q == share * Fraction(3, 4) + (1 - share) * Fraction(1, 4)


@pytest.mark.parametrize("name", ["auto", *MEMOIZED_DESIGNS, *MEMOIZED_STRING_DESIGNS])
@pytest.mark.parametrize(
    ("epsilon", "lifetime"),
    [(1.0, 1.0), (2.0, 1.0), (1.0, math.inf), (1.0, math.nan), (1.0, MAX_MEMO_EPSILON + 1)],
)
def test_useless_lifetimes_are_refused(name, epsilon, lifetime):
    """A memo must be allowed to reveal more than one report does, and not everything."""
    with pytest.raises(SchemeError, match="lifetime_epsilon"):
        design(name, 10, epsilon, lifetime, salt="city")
