"""The samplers' distributions, by exact enumeration of their random bits and by chi-square."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from fractions import Fraction

import pytest

from deniable.randomness import Bits
from deniable_estimator.releasing.noise import (
    BufferedBits,
    decays,
    discrete_gaussian,
    discrete_laplace,
    happens,
    leader,
)


class OutOfBits(Exception):
    """The enumeration has no more bits for this path."""


def enumerate_bits(
    sample: Callable[[Bits], Hashable], depth: int
) -> tuple[dict[Hashable, Fraction], Fraction]:
    """The probability of each outcome over all strings of at most `depth` bits, exactly, and that
    of the strings that are too short for an outcome."""
    found: dict[Hashable, Fraction] = {}
    short = Fraction(0)
    waiting: list[str] = [""]
    while waiting:
        path = waiting.pop()
        used = 0

        def bits(count: int) -> int:
            nonlocal used
            used += count
            if used > len(path):  # noqa: B023 (it is called within this round only)
                raise OutOfBits
            return int(path[used - count : used] or "0", 2)  # noqa: B023

        try:
            outcome = sample(bits)
        except OutOfBits:
            if used > depth:
                short += Fraction(1, 2 ** len(path))
                continue
            more = used - len(path)
            waiting += [path + format(number, f"0{more}b") for number in range(2**more)]
            continue
        found[outcome] = found.get(outcome, Fraction(0)) + Fraction(1, 2**used)
    return found, short


def laplace(z: int, scale: Fraction) -> float:
    a = math.exp(-1 / float(scale))
    return (1 - a) / (1 + a) * a ** abs(z)


def gaussian(z: int, variance: Fraction) -> float:
    weights = [math.exp(-(k**2) / (2 * float(variance))) for k in range(-200, 201)]
    return math.exp(-(z**2) / (2 * float(variance))) / math.fsum(weights)


def within(
    found: dict[Hashable, Fraction], short: Fraction, expected: Callable[[int], float]
) -> bool:
    """Whether each probability lies between what was enumerated and that with what is short."""
    return all(
        float(found.get(z, 0)) <= expected(z) + 1e-12
        and expected(z) <= float(found.get(z, 0) + short) + 1e-12
        for z in range(-6, 7)
    )


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(1, 2), Fraction(2)])
def test_laplace_noise_has_exactly_its_probabilities(scale: Fraction) -> None:
    """All strings of 16 bits together give every probability, up to the strings that end early."""
    found, short = enumerate_bits(lambda bits: discrete_laplace(scale, bits), 16)
    assert short < Fraction(1, 5)
    assert within(found, short, lambda z: laplace(z, scale))


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 2), Fraction(1), Fraction(3, 2)])
def test_a_decay_has_exactly_its_probability(exponent: Fraction) -> None:
    """The acceptance step of Gaussian noise and of the leader is true with probability
    exp(-exponent), over all strings of 16 bits, of which few end early."""
    found, short = enumerate_bits(lambda bits: decays(exponent, bits), 16)
    assert short < Fraction(1, 50)
    chance = math.exp(-exponent)
    assert float(found.get(True, 0)) <= chance <= float(found.get(True, 0) + short)


def test_a_coin_has_exactly_its_probability() -> None:
    """A third is a third: rejection leaves no bias."""
    found, short = enumerate_bits(lambda bits: happens(Fraction(1, 3), bits), 20)
    assert found[True] / (found[True] + found[False]) == Fraction(1, 3)
    assert short < Fraction(1, 500)


def test_the_leader_has_the_probabilities_of_the_exponential_mechanism() -> None:
    """All strings of 16 bits: an index has probability exp(rate count) over the sum of these."""
    counts, rate = [3, 1, 3, 0], Fraction(1, 2)
    found, short = enumerate_bits(lambda bits: leader(counts, rate, bits), 16)
    total = math.fsum(math.exp(float(rate) * count) for count in counts)
    assert short < Fraction(1, 6)
    for index, count in enumerate(counts):
        chance = math.exp(float(rate) * count) / total
        assert float(found[index]) <= chance <= float(found[index] + short)


def test_bits_in_blocks_are_those_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every bit of a block is used at most once, and a long number is drawn by itself."""
    monkeypatch.setattr("os.urandom", lambda count: bytes(range(256)) * (count // 256))
    bits = BufferedBits()
    assert [bits(8) for _ in range(4)] == [0, 1, 2, 3]
    assert bits(0) == 0
    assert bits(16) == 4 + (5 << 8)
    assert bits(1 << 14) % 256 == 0
    assert bits(8) == 6


@pytest.mark.parametrize("wrong", [Fraction(0), Fraction(-1)])
def test_noise_of_no_scale_is_refused(wrong: Fraction) -> None:
    """Neither a scale nor a variance can be 0 or negative."""
    with pytest.raises(ValueError, match="positive"):
        discrete_laplace(wrong)
    with pytest.raises(ValueError, match="positive"):
        discrete_gaussian(wrong)
