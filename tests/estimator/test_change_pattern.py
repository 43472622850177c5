"""What changes show: the computed example agrees with enumeration."""

import itertools
import math

import pytest

from deniable.protocol.mechanisms.dbitflip import DBitFlip
from deniable.protocol.mechanisms.hashed import MemoizedLocalHashing
from deniable.protocol.mechanisms.number_range import NumberRange
from deniable.protocol.mechanisms.rappor import BasicRappor, Bloom, Rappor, Rounds
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection
from deniable.protocol.randomness import PRECISION
from deniable_estimator.analyses import analysis_of
from deniable_estimator.privacy.computing import reports_that_show

from .test_memo_covariance import rounds_of

ONE = 1 << PRECISION
EVEN = math.floor(ONE * math.exp(2) / (math.exp(2) + 1))
BINARY = MemoizedSubsetSelection(2, 1, EVEN, EVEN)
"""Two values, with epsilon 2 in either round."""
ROUNDS = Rounds(ONE // 4, ONE // 4, ONE * 3 // 4)


def alternation_loss(mechanism, reports):
    """What two alternating values show of themselves in so many reports."""
    return analysis_of(mechanism).alternation_loss(reports)


@pytest.mark.parametrize("reports", [2, 4])
@pytest.mark.parametrize(
    "mechanism",
    [
        BINARY,
        MemoizedSubsetSelection(4, 1, ONE * 3 // 4, ONE // 2),
        MemoizedSubsetSelection(4, 2, ONE * 3 // 4, ONE * 5 // 8),
        MemoizedSubsetSelection(3, 2, ONE * 3 // 4, ONE * 7 // 8),
        BasicRappor(3, ROUNDS),
        DBitFlip(NumberRange("0", "1"), 4, 2, ONE // 8, ONE // 5),
    ],
)
def test_the_event_is_enumerated(mechanism, reports):
    """The loss is that of one pair of reports in turn, summed over all memos, and a lower bound.

    All pairs of reports are tried for the odd and the even places: none of them that sets the
    first value in the one and the second in the other loses more, and one as much.
    """
    size = mechanism.rows[0].width
    half = reports // 2
    bitmaps = list(range(1 << size))
    if isinstance(mechanism, MemoizedSubsetSelection):
        bitmaps = [each for each in bitmaps if each.bit_count() == mechanism.k]
    memos, fresh = zip(
        *(
            rounds_of(mechanism, 1 << item if isinstance(mechanism, BasicRappor) else item, size)
            for item in (0, 1)
        ),
        strict=True,
    )

    def chance(item, *said):
        told = [fresh[0][:, bitmaps.index(each)] ** half for each in said]
        return float(memos[item] @ math.prod(told))

    losses = [
        math.log(chance(0, odd) * chance(1, even) / chance(0, odd, even))
        for odd, even in itertools.product(bitmaps, repeat=2)
        if (odd & 3, even & 3) == (1, 2)
    ]
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
    reports = reports_that_show(analysis_of(BINARY), epsilon)
    assert reports is not None
    assert reports % 2 == 0
    assert alternation_loss(BINARY, reports) > epsilon
    if reports > 2:
        assert alternation_loss(BINARY, reports - 2) <= epsilon
