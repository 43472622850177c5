"""What changes show: the computed example agrees with enumeration."""

import itertools
import math
from fractions import Fraction

import pytest

from deniable.protocol.mechanisms import (
    BasicRappor,
    Bloom,
    MemoizedLocalHashing,
    MemoizedSubsetSelection,
    Rappor,
    Rounds,
)
from deniable.protocol.randomness import PRECISION
from deniable_estimator.analyses import memory_of
from deniable_estimator.privacy.computing import reports_that_show

ONE = 1 << PRECISION
EVEN = math.floor(ONE * math.exp(2) / (math.exp(2) + 1))
BINARY = MemoizedSubsetSelection(2, 1, EVEN, EVEN)
"""Two values, with epsilon 2 in either round."""
ROUNDS = Rounds(ONE // 4, ONE // 4, ONE * 3 // 4)


def alternation_loss(mechanism, reports):
    """What two alternating values show of themselves in so many reports."""
    return memory_of(mechanism).alternation_loss(reports)


def _likelihoods(mechanism, item):
    """How likely each memo of a value is."""
    if isinstance(mechanism, MemoizedSubsetSelection):
        own, other = mechanism.permanent.p, mechanism.permanent.q
        return {memo: own if memo == item else other for memo in range(mechanism.size)}
    assert isinstance(mechanism, BasicRappor)
    flipped = Fraction(mechanism.rounds.f, 2 * ONE)
    memos = {}
    for memo in range(1 << mechanism.size):
        away = (memo ^ 1 << item).bit_count()
        memos[memo] = flipped**away * (1 - flipped) ** (mechanism.size - away)
    return memos


def _fresh(mechanism, memo, columns):
    """How likely a report is, given the memo; `columns` is a bitmap."""
    if isinstance(mechanism, MemoizedSubsetSelection):
        within = math.comb(mechanism.size - 1, mechanism.k - 1)
        without = math.comb(mechanism.size - 1, mechanism.k)
        held = columns >> memo & 1
        return mechanism.fresh.p / within if held else (1 - mechanism.fresh.p) / without
    assert isinstance(mechanism, BasicRappor)
    likelihood = Fraction(1)
    for bit in range(mechanism.size):
        one = Fraction(mechanism.rounds.q if memo >> bit & 1 else mechanism.rounds.p, ONE)
        likelihood *= one if columns >> bit & 1 else 1 - one
    return likelihood


@pytest.mark.parametrize("reports", [2, 4])
@pytest.mark.parametrize(
    "mechanism",
    [
        BINARY,
        MemoizedSubsetSelection(4, 1, ONE * 3 // 4, ONE // 2),
        MemoizedSubsetSelection(4, 2, ONE * 3 // 4, ONE * 5 // 8),
        MemoizedSubsetSelection(3, 2, ONE * 3 // 4, ONE * 7 // 8),
        BasicRappor(3, ROUNDS),
    ],
)
def test_the_event_is_enumerated(mechanism, reports):
    """The loss is that of one pair of reports in turn, summed over all memos, and a lower bound.

    All pairs of reports are tried for the odd and the even places: none of them that sets the
    first value in the one and the second in the other loses more, and one as much.
    """
    size = mechanism.size
    assert isinstance(size, int)
    half = reports // 2
    if isinstance(mechanism, MemoizedSubsetSelection):
        chosen = itertools.combinations(range(size), mechanism.k)
        bitmaps = [sum(1 << column for column in columns) for columns in chosen]
    else:
        bitmaps = list(range(1 << size))
    losses = []
    for odd, even in itertools.product(bitmaps, repeat=2):
        if (odd & 3, even & 3) != (1, 2):
            continue

        def chance(item, *said):
            return sum(
                (
                    likelihood * math.prod(_fresh(mechanism, memo, each) ** half for each in said)
                    for memo, likelihood in _likelihoods(mechanism, item).items()
                ),
                Fraction(0),
            )

        losses.append(math.log(chance(0, odd) * chance(1, even) / chance(0, odd, even)))
    assert alternation_loss(mechanism, reports) == pytest.approx(max(losses), rel=1e-9)


def test_strings_are_as_their_channels():
    """Cohort local hashing shows what its buckets show; RAPPOR's filters what their bits show."""
    channel = MemoizedSubsetSelection(5, 1, ONE * 3 // 4, ONE // 2)
    hashing = MemoizedLocalHashing("city", 2, channel)
    assert alternation_loss(hashing, 6) == alternation_loss(channel, 6)
    rappor = Rappor(Bloom("city", 2, 6, 1), ROUNDS)
    assert alternation_loss(rappor, 6) == alternation_loss(BasicRappor(6, ROUNDS), 6)
    assert alternation_loss(Rappor(Bloom("city", 2, 6, 2), ROUNDS), 6) > alternation_loss(rappor, 6)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0, 20.0])
def test_the_fewest_reports(epsilon):
    """So many reports lose more than that, and two fewer do not."""
    reports = reports_that_show(memory_of(BINARY), epsilon)
    assert reports is not None
    assert reports % 2 == 0
    assert alternation_loss(BINARY, reports) > epsilon
    if reports > 2:
        assert alternation_loss(BINARY, reports - 2) <= epsilon
