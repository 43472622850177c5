"""dBitFlip: its cells and rows, both rounds of noise, and the design that is chosen."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.device.ledger import draw
from deniable.protocol.errors import SchemeError
from deniable.protocol.exact import exp_below
from deniable.protocol.mechanisms import Report, rebuild
from deniable.protocol.mechanisms.base import ONE
from deniable.protocol.mechanisms.dbitflip import BIT_CHOICES, DBITFLIP_CELLS, DBitFlip
from deniable.protocol.mechanisms.number_range import NumberRange

from .two_rounds import worst_ratio

UNIT = NumberRange("0", "1")
WHOLE = NumberRange("0", "13", integer=True)
FLIPS = ONE // 16, ONE // 5
GOOD: dict[str, Any] = {
    **UNIT.parameters(),
    "cells": 16,
    "bits": 4,
    "memo": FLIPS[0],
    "fresh": FLIPS[1],
}

SMALL = {
    "one row of 4": DBitFlip(UNIT, 4, 4, *FLIPS),
    "8 rows of 2": DBitFlip(UNIT, 16, 2, *FLIPS),
    "4 rows of 4": DBitFlip(WHOLE, 16, 4, *FLIPS),
    "16 rows of 1": DBitFlip(UNIT, 16, 1, *FLIPS),
}
small = pytest.mark.parametrize("mechanism", SMALL.values(), ids=SMALL)


def positions(mechanism):
    """One position in each cell that has any."""
    return [-1, *sorted(set(mechanism.edges))]


def flip_chances(bitmap, bits, threshold):
    """How often each bitmap comes of flipping every bit with this threshold."""
    chance = Fraction(threshold, ONE)
    return {
        other: chance ** (other ^ bitmap).bit_count()
        * (1 - chance) ** (bits - (other ^ bitmap).bit_count())
        for other in range(1 << bits)
    }


def memo_chances(mechanism, entry):
    """How often an entry is remembered as each bitmap, from the definition alone."""
    bitmap = 1 << entry if entry < mechanism.bits else 0
    return flip_chances(bitmap, mechanism.bits, mechanism.memo)


@small
def test_the_rounds_compose_to_the_likelihood(mechanism):
    """Over all memos, both rounds make every report exactly as often as `likelihood` says."""
    rows = len(mechanism.rows)
    for row, item in itertools.product(range(rows), positions(mechanism)):
        composed = Counter()
        for memo, chance in memo_chances(mechanism, mechanism.cell(row, item)).items():
            for columns, each in flip_chances(memo, mechanism.bits, mechanism.fresh).items():
                composed[columns] += chance * each
        for columns, chance in composed.items():
            assert mechanism.likelihood(Report(row, columns), item) == chance / rows


@small
def test_all_three_odds_are_the_worst_that_can_be(mechanism):
    """Over all pairs of values, memos and reports: one report keeps to `odds`, one memo to
    `lifetime_odds`, one report given the memos to `fresh_odds`, and each is reached."""
    items, rows = positions(mechanism), range(len(mechanism.rows))
    bitmaps = range(1 << mechanism.bits)
    one = max(
        worst_ratio(
            [{b: mechanism.likelihood(Report(row, b), item) for b in bitmaps} for item in items]
        )
        for row in rows
    )
    memo = max(
        worst_ratio([memo_chances(mechanism, mechanism.cell(row, item)) for item in items])
        for row in rows
    )
    fresh = worst_ratio([flip_chances(b, mechanism.bits, mechanism.fresh) for b in bitmaps])
    assert (one, memo, fresh) == (mechanism.odds, mechanism.lifetime_odds, mechanism.fresh_odds)


def test_a_value_keeps_its_memo_and_others_share_one():
    """From one key, a device has one row for ever, the same memo each time it has a value, and one
    memo for all values whose cells are in other rows."""
    mechanism = DBitFlip(UNIT, 16, 4, *FLIPS)
    key = bytes(range(32))
    drawn = {item: draw(key, "f" * 12, mechanism, item) for item in positions(mechanism)}
    assert drawn == {item: draw(key, "f" * 12, mechanism, item) for item in reversed(drawn)}
    assert len({row for row, _ in drawn.values()}) == 1
    (row,) = {row for row, _ in drawn.values()}
    elsewhere = {memo for item, (_, memo) in drawn.items() if mechanism.cell(row, item) == 4}
    assert len(elsewhere) == 1


def pair_of_epsilons():
    """An epsilon, and one of a memo from 1.01 to 4 times as large."""
    return st.tuples(st.floats(0.01, 5.0), st.floats(1.01, 4.0)).map(lambda e: (e[0], e[0] * e[1]))


@given(pair_of_epsilons(), st.sampled_from(DBITFLIP_CELLS))
def test_the_design_has_the_least_variance_within_both_epsilons(epsilons, cells):
    """No number of bits that may be chosen does better; report and memo take all of their epsilon,
    and not more; of a report with less noise one would be exceeded."""
    epsilon, memo_epsilon = epsilons
    made = DBitFlip.design(UNIT, epsilon, memo_epsilon, cells)
    assert made.odds <= exp_below(epsilon)
    assert made.lifetime_odds <= exp_below(memo_epsilon)
    assert epsilon - 1e-6 < made.epsilon
    assert memo_epsilon - 1e-6 < made.lifetime_epsilon
    less = [
        (made.memo, made.fresh - 1),
        (made.memo - 1, made.fresh),
    ]
    for memo, fresh in less:
        if memo and fresh:
            other = DBitFlip(UNIT, cells, made.bits, memo, fresh)
            above = other.odds > exp_below(epsilon), other.lifetime_odds > exp_below(memo_epsilon)
            assert any(above)
    for bits in (each for each in BIT_CHOICES if each <= cells):
        apart = 1 if bits == 1 else 2
        s = 1 / (math.exp(epsilon / apart) + 1)
        variance = cells / bits * s * (1 - s) / (1 - 2 * s) ** 2
        assert float(made.share_variance) <= variance * (1 + 1e-9)


def test_the_variance_of_edges_is_that_of_independent_bits():
    """For each edge: the sum over cells of the squared weights, less their mean, times the variance
    of one share, computed the long way from the covariance of the bits of a report."""
    mechanism = DBitFlip(UNIT, 16, 4, *FLIPS)
    s = mechanism.flipped
    for edge, found in enumerate(mechanism.edge_variances(), 1):
        weights = [Fraction(cell < edge) - Fraction(edge, 16) for cell in range(16)]
        expected = Fraction(0)
        for row in range(4):
            own = [weights[cell] / (1 - 2 * s) for cell in range(row, 16, 4)]
            chances = flip_chances(0, 4, 1)
            score = {b: sum(c for j, c in enumerate(own) if b >> j & 1) for b in chances}
            chance = {b: s ** b.bit_count() * (1 - s) ** (4 - b.bit_count()) for b in chances}
            mean = sum(score[b] * chance[b] for b in chances)
            # A quarter of the reports are in each row.
            expected += 4 * sum((score[b] - mean) ** 2 * chance[b] for b in chances)
        assert found == pytest.approx(float(expected))


@pytest.mark.parametrize(
    ("columns", "row", "cells"),
    [(0b0010, 1, {5}), (0b1001, 0, {0, 12}), (0, 3, set(range(16)) - {3, 7, 11, 15})],
)
def test_what_a_report_favours(columns, row, cells):
    """The cells whose bits are set, or, if none is, all cells of other rows: those of the largest
    likelihood."""
    mechanism = DBitFlip(UNIT, 16, 4, *FLIPS)
    report = Report(row, columns)
    likelihoods = [mechanism.likelihood(report, item) for item in positions(mechanism)]
    assert cells == {cell for cell, each in enumerate(likelihoods) if each == max(likelihoods)}
    inside = {
        mechanism.place(position)[1] * 4 + mechanism.place(position)[0]
        for span in mechanism.favoured(report)
        for position in positions(mechanism)
        if span.first <= position <= span.last
    }
    assert inside == cells


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cells": 8}, "cells must be one of 4, 16, 64, 256, not 8"),
        ({"bits": 3}, "bits must divide the 16 cells, not 3"),
        ({"bits": 64}, "bits must divide the 16 cells, not 64"),
        ({"memo": ONE // 2}, "memo = .* must be above 0 and below one half"),
        ({"fresh": ONE // 2}, "fresh = .* must be above 0 and below one half"),
        ({"fresh": 0}, "fresh must be an integer from 1 to"),
        ({"high": "0"}, "low 0 must be below high 0"),
    ],
)
def test_impossible_parameters_are_refused(change, message):
    """Cells that there are not, and noise that tells everything or nothing, are errors: above all
    reports without fresh noise, which would show each change of a memo."""
    assert rebuild("dbitflip", GOOD).parameters() == GOOD
    with pytest.raises(SchemeError, match=message):
        rebuild("dbitflip", GOOD | change)


@pytest.mark.parametrize(
    ("epsilon", "memo_epsilon"), [(1.0, 1.0), (2.0, 1.0), (1.0, math.nan), (1.0, 21.0), (0.0, 1.0)]
)
def test_useless_epsilons_are_refused(epsilon, memo_epsilon):
    """A memo must be allowed to reveal more than one report does, and not everything."""
    with pytest.raises(SchemeError, match="epsilon"):
        DBitFlip.design(UNIT, epsilon, memo_epsilon)
