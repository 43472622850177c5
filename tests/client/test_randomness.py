"""Randomness: uniform integers, coins, bit flips and subsets, exact for any source of bits."""

import hashlib
import hmac
import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import pytest
from scipy import stats

from deniable.protocol.randomness import (
    PRECISION,
    below,
    coin,
    flips,
    keyed_bits,
    subset,
    system_bits,
)

ONE = 1 << PRECISION


def seeded(seed):
    """A reproducible source of bits, which exists in tests alone."""
    return random.Random(seed).getrandbits


def scripted(*numbers):
    """A source that returns these numbers in turn, each of which must fit the bits asked for."""
    remaining = iter(numbers)

    def bits(count):
        number = next(remaining)
        assert 0 <= number < 1 << count
        return number

    return bits


def p_value(counts):
    """Pearson's chi-square against equal probabilities."""
    return float(stats.chisquare(counts).pvalue)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 53, 1000])
def test_system_bits_fill_their_range(count):
    """System bits stay below 2**count, and each bit takes both values.

    A bit stays constant over 60 draws with probability 2**-59; at most 1,000 are watched.
    """
    drawn = [system_bits(count) for _ in range(60)]
    everything = (1 << count) - 1
    ever = never = 0
    for number in drawn:
        assert 0 <= number <= everything
        ever |= number
        never |= number ^ everything
    assert ever == never == everything


def test_below_rejects_instead_of_wrapping():
    """A number outside the bound is drawn again, so that no residue is favoured."""
    assert below(5, scripted(7, 5, 6, 4)) == 4
    assert below(1, scripted(0)) == 0


@pytest.mark.parametrize("bound", [0, -3])
def test_below_needs_a_positive_bound(bound):
    """There is no number below zero or less."""
    with pytest.raises(ValueError, match="at least 1"):
        below(bound)


def test_coin_compares_with_its_threshold():
    """Exactly the numbers below the threshold are heads."""
    assert coin(3, scripted(2))
    assert not coin(3, scripted(3))
    assert not coin(0, scripted(0))
    assert coin(ONE, scripted(ONE - 1))


def planes(size, *numbers):
    """A source of whole planes of `size` bits, which are used in turn; then of zeros."""
    stream = sum(number << size * place for place, number in enumerate(numbers))

    def bits(count):
        nonlocal stream
        assert count % size == 0
        drawn = stream & ((1 << count) - 1)
        stream >>= count
        return drawn

    return bits


def _probabilities(if_one, if_zero, ones, depth):
    """For two positions: how often each result comes up over all `depth` planes of two bits.

    Thresholds are multiples of 2**(PRECISION - depth), so all later planes change nothing.
    """
    counts = [Fraction(0)] * 4
    for drawn in itertools.product(range(4), repeat=depth):
        counts[flips(ones, 2, if_one, if_zero, planes(2, *drawn))] += Fraction(1, 4**depth)
    return counts


@pytest.mark.parametrize("ones", range(4))
def test_flips_are_exact_and_independent(ones):
    """Over all planes of random bits, two positions come up with the product of their odds."""
    depth = 5
    unit = 1 << PRECISION - depth
    for one, zero in [(21, 10), (31, 0), (16, 16), (28, 4), (0, 24), (0, 0), (29, 2)]:
        measured = _probabilities(one * unit, zero * unit, ones, depth)
        odds = [Fraction(one if ones >> j & 1 else zero, 1 << depth) for j in range(2)]
        for result in range(4):
            expected = math.prod(odds[j] if result >> j & 1 else 1 - odds[j] for j in range(2))
            assert measured[result] == expected


def test_flips_use_every_bit_of_the_threshold():
    """The least significant bit of a threshold decides when all others agree."""
    threshold = ONE // 3

    def compared(number, threshold):
        numbers = [number >> shift & 1 for shift in range(PRECISION - 1, -1, -1)]
        return flips(1, 1, threshold, 0, planes(1, *numbers))

    assert compared(threshold, threshold) == 0
    assert compared(threshold, threshold + 1) == 1
    assert compared(threshold - 1, threshold) == 1
    assert compared(threshold + 1, threshold) == 0


@pytest.mark.parametrize(("size", "count"), [(6, 3), (7, 2), (5, 4), (4, 1), (9, 0), (9, 9)])
def test_every_small_subset_is_equally_likely(size, count):
    """Each of the C(size, count) subsets comes up equally often.

    Chi-square at alpha = 1e-6 for each of six sizes, seed 12, 500 draws per subset.
    """
    bits = seeded(12)
    cells = math.comb(size, count)
    drawn = Counter(subset(size, count, bits) for _ in range(500 * cells))
    assert all(each.bit_count() == count and each < 1 << size for each in drawn)
    assert len(drawn) == cells
    assert cells == 1 or p_value(list(drawn.values())) > 1e-6


@pytest.mark.campaign
@pytest.mark.parametrize(("size", "count"), [(80, 33), (90, 39), (70, 33), (66, 33)])
def test_dense_subsets_are_exchangeable(size, count):
    """Where the bit-sliced way is taken, positions and pairs of positions come up evenly.

    Per size, 6,000 draws, seed 13: a chi-square of the positions, two-sided, and a normal test of
    the neighbours (by a variance that is too large), at alpha = 1e-6 (eight comparisons).
    """
    bits = seeded(13)
    draws = 6000
    singles, pairs = [0] * size, [0] * size
    for _ in range(draws):
        drawn = subset(size, count, bits)
        assert drawn.bit_count() == count
        both = drawn & (drawn >> 1 | (drawn & 1) << size - 1)
        for j in range(size):
            singles[j] += drawn >> j & 1
            pairs[j] += both >> j & 1
    share = count / size
    assert sum(singles) == draws * count
    # One draw has covariance share (1 - share) size / (size - 1) (I - J / size).
    spread = sum((each - draws * share) ** 2 for each in singles)
    chi2 = spread / (draws * share * (1 - share)) * (size - 1) / size
    assert 1e-6 / 2 < stats.chi2.sf(chi2, size - 1) < 1 - 1e-6 / 2
    joint = share * (count - 1) / (size - 1)
    z = (sum(pairs) - draws * size * joint) / math.sqrt(draws * size * joint)
    assert abs(z) < stats.norm.isf(1e-6 / 2)


@pytest.mark.parametrize(("size", "count"), [(3, 4), (3, -1)])
def test_no_subset_is_larger_than_its_set(size, count):
    """A count outside 0..size is refused."""
    with pytest.raises(ValueError, match="cannot choose"):
        subset(size, count)


def asked(bits):
    """The same source, and a list of how many bits it is asked for."""
    counts = []

    def counted(count):
        counts.append(count)
        return bits(count)

    return counts, counted


def test_keyed_bits_are_hmac_in_counter_mode():
    """Each call takes whole blocks of HMAC-SHA-512 over label, zero byte and a counter of four
    bytes from 1, and reads as many bytes as it needs, the lowest first, without the bits that are
    too many."""
    key = bytes(range(32))
    blocks = [
        hmac.digest(key, b"a label\0" + number.to_bytes(4, "big"), hashlib.sha512)
        for number in range(1, 6)
    ]
    draw = keyed_bits(key, "a label")
    assert draw(13) == int.from_bytes(blocks[0][:2], "little") >> 3
    assert draw(512) == int.from_bytes(blocks[1], "little")
    assert draw(0) == 0
    assert draw(1017) == int.from_bytes((blocks[2] + blocks[3])[:128], "little") >> 7
    assert draw(8) == blocks[4][0]
    again, other = keyed_bits(key, "a label"), keyed_bits(key, "another")
    assert again(64) == int.from_bytes(blocks[0][:8], "little") != other(64)
    with pytest.raises(UnicodeEncodeError):
        keyed_bits(key, "\xe9")


def test_flips_draw_blocks_that_are_nearly_always_enough():
    """The first block has three planes more than the size has binary digits, later ones have four,
    none goes beyond the last bit of a threshold, and without such a bit nothing is drawn."""
    counts, bits = asked(lambda count: 0)
    assert flips(0b1011, 4, 0, 0, bits) == 0
    assert counts == [0]
    counts, bits = asked(lambda count: 0)
    # Zeros are decided at the first bit that is 1 in both thresholds: here the very last one.
    assert flips(0b1011, 4, 1, 1, bits) == 0b1111
    assert [count // 4 for count in counts] == [6] + [4] * 11 + [3]
    counts, bits = asked(lambda count: 0)
    assert flips(0b1011, 4, ONE >> 2, ONE >> 1, bits) == 0b1111
    assert [count // 4 for count in counts] == [2]


def test_words_that_are_no_position_are_passed_over():
    """Only the low bits of a word count, and those that are too large choose nothing."""
    words = [0xFFFFFF00 | 7, 5, 0xABCDEF06, 2, 2, 0]
    stream = sum(word << 32 * place for place, word in enumerate(words))
    assert subset(7, 3, lambda count: stream) == 0b1100100


def test_thresholds_are_out_of_53_bits():
    """A coin draws 53 bits, as thresholds in schemes and vectors count on."""
    counts, bits = asked(lambda count: 2**52 - 1)
    assert coin(2**52, bits)
    assert not coin(2**52 - 1, bits)
    assert counts == [53, 53]
    assert PRECISION == 53


@pytest.mark.parametrize(("bound", "width"), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3)])
def test_below_draws_no_more_bits_than_it_needs(bound, width):
    """A bound of 2**w takes w bits, so that nothing is drawn again."""
    counts, bits = asked(lambda count: 0)
    assert below(bound, bits) == 0
    assert counts == [width]
