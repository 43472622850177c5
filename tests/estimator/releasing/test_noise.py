"""Noise: what it hides, and samplers with exactly their probabilities."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable_estimator.releasing.noise import (
    AddedNoise,
    BufferedBits,
    Sensitivity,
    decays,
    discrete_gaussian,
    discrete_laplace,
    happens,
    leader,
    noise_of,
    of_rho,
)

epsilons = st.fractions(Fraction(1, 50), Fraction(8), max_denominator=100)


def chances(noise, width):
    """The probabilities of -width to width."""
    if noise.method == "laplace":
        rate = float(1 / noise.scale)
        weights = [math.exp(-rate * abs(z)) for z in range(-width, width + 1)]
    else:
        weights = [math.exp(-(z**2) / (2 * float(noise.scale))) for z in range(-width, width + 1)]
    whole = math.fsum(weights)
    return [each / whole for each in weights]


def delta_at(noise, moved, epsilon):
    """The exact delta of one counter with this noise that moves so far, at epsilon."""
    width = int(40 * math.sqrt(noise.variance)) + 20
    here = chances(noise, width)
    return math.fsum(
        max(0.0, here[z] - math.exp(epsilon) * (here[z - moved] if z >= moved else 0.0))
        for z in range(2 * width + 1)
        if z >= moved
    )


@given(epsilon=epsilons, l1=st.integers(1, 60), reports=st.integers(1, 40))
def test_laplace_noise_meets_its_epsilon_exactly(epsilon, l1, reports):
    """The epsilon of all reports of a device is the wished one as a fraction, for counters that
    each of them moves by l1 together."""
    noise = noise_of("laplace", epsilon, 1e-8, Sensitivity(l1, l1), reports)
    assert noise.epsilon * reports == epsilon


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_laplace_noise_hides_a_report(epsilon):
    """For a counter that one report moves by 2, the exact delta is 0 at epsilon, and is not at nine
    tenths of it."""
    noise = noise_of("laplace", epsilon, 1e-8, Sensitivity(2, 4))
    assert delta_at(noise, 2, float(epsilon)) < 1e-12
    assert delta_at(noise, 2, 0.9 * float(epsilon)) > 1e-3


@pytest.mark.parametrize("delta", [1e-4, 1e-8])
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1), Fraction(3)])
def test_gaussian_noise_hides_a_report(epsilon, delta):
    """The exact delta of one counter is at most the stated one; with a quarter of the variance it
    would be more."""
    moved = 2
    each = Sensitivity(moved, moved**2)
    noise = noise_of("gaussian", epsilon, delta, each)
    assert delta_at(noise, moved, float(epsilon)) <= delta
    less = AddedNoise("gaussian", noise.scale / 4, each)
    assert delta_at(less, moved, float(epsilon)) > delta


@settings(max_examples=40)
@given(
    epsilon=epsilons,
    squares=st.integers(1, 400),
    reports=st.integers(1, 40),
    squared=st.integers(1, 40),
)
def test_gaussian_noise_is_no_larger_than_needed(epsilon, squares, reports, squared):
    """The rho of all reports of a device implies the wished epsilon or at most a thousandth
    less."""
    each = Sensitivity(squares, squares)
    noise = noise_of("gaussian", epsilon, 1e-8, each, reports, squared)
    found = of_rho(float(noise.rho * reports * squared), 1e-8)
    assert 0.999 * float(epsilon) <= found <= float(epsilon)


@settings(max_examples=25)
@given(rho=st.floats(1e-8, 20), delta=st.sampled_from([1e-4, 1e-8, 1e-20]))
def test_a_rho_never_implies_less_than_the_best_order_says(rho, delta):
    """The list of orders loses at most one part in 200 against a much finer one, and never gains
    against the closed form's lower end, rho."""
    fine = min(
        rho * a + (math.log(1 / delta) + (a - 1) * math.log1p(-1 / a) - math.log(a)) / (a - 1)
        for a in (1 + 1.002**step * 1e-3 for step in range(12_000))
    )
    assert max(0.0, fine) * 0.999 <= of_rho(rho, delta) <= max(fine, 0.0) * 1.005 + 1e-6


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(40)])
@pytest.mark.parametrize("method", ["laplace", "gaussian"])
def test_the_variance_is_that_of_the_noise(method, scale):
    """Summed over all integers; for Gaussian noise it is an upper bound."""
    noise = AddedNoise(method, scale, Sensitivity(1, 1))
    width = 3000
    exact = math.fsum(each * (z - width) ** 2 for z, each in enumerate(chances(noise, width)))
    assert exact <= noise.variance * (1 + 1e-9)
    if method == "laplace" or scale >= 1:
        assert exact == pytest.approx(noise.variance, rel=1e-6)


class OutOfBits(Exception):
    """The enumeration has no more bits for this path."""


def enumerate_bits(sample, depth):
    """The probability of each outcome over all strings of at most `depth` bits, exactly, and that
    of the strings that are too short for an outcome."""
    found = {}
    short = Fraction(0)
    waiting = [""]
    while waiting:
        path = waiting.pop()
        used = 0

        def bits(count):
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


def chance(z, method, scale):
    """The probability of z; of all but 1e-80 of the others with it."""
    return chances(AddedNoise(method, scale, Sensitivity(1, 1)), 200)[200 + z]


def within(found, short, expected):
    """Whether each probability lies between what was enumerated and that with what is short."""
    return all(
        float(found.get(z, 0)) <= expected(z) + 1e-12
        and expected(z) <= float(found.get(z, 0) + short) + 1e-12
        for z in range(-6, 7)
    )


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(1, 2), Fraction(2)])
def test_laplace_noise_has_exactly_its_probabilities(scale):
    """All strings of 16 bits together give every probability, up to the strings that end early."""
    found, short = enumerate_bits(lambda bits: discrete_laplace(scale, bits), 16)
    assert short < Fraction(1, 5)
    assert within(found, short, lambda z: chance(z, "laplace", scale))


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(1), Fraction(301, 4)])
def test_gaussian_noise_has_exactly_its_probabilities(variance, monkeypatch):
    """Laplace noise is kept with just the probability that makes what is kept Gaussian; what is not
    kept is drawn anew."""
    likely = []
    for z in range(10):
        draws, kept, told = [7, -z], [False, True], []

        def draw(scale, bits):
            told.append(scale)  # noqa: B023
            return draws.pop(0)  # noqa: B023

        def decay(exponent, bits):
            told.append(exponent)  # noqa: B023
            return kept.pop(0)  # noqa: B023

        monkeypatch.setattr("deniable_estimator.releasing.noise.discrete_laplace", draw)
        monkeypatch.setattr("deniable_estimator.releasing.noise.decays", decay)
        assert discrete_gaussian(variance) == -z
        scale, exponent = told[2:]
        likely.append(
            chance(z, "laplace", scale) * math.exp(-exponent) / chance(z, "gaussian", variance)
        )
    assert likely == pytest.approx([likely[0]] * 10)


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 2), Fraction(1), Fraction(3, 2)])
def test_a_decay_has_exactly_its_probability(exponent):
    """The acceptance step of Gaussian noise and of the leader is true with probability
    exp(-exponent), over all strings of 16 bits, of which few end early."""
    found, short = enumerate_bits(lambda bits: decays(exponent, bits), 16)
    assert short < Fraction(1, 50)
    chance = math.exp(-exponent)
    assert float(found.get(True, 0)) <= chance <= float(found.get(True, 0) + short)


def test_the_leader_has_the_probabilities_of_the_exponential_mechanism():
    """All strings of 16 bits: an index has probability exp(rate count) over the sum of these."""
    counts, rate = [3, 1, 3, 0], Fraction(1, 2)
    found, short = enumerate_bits(lambda bits: leader(counts, rate, bits), 16)
    total = math.fsum(math.exp(float(rate) * count) for count in counts)
    assert short < Fraction(1, 6)
    for index, count in enumerate(counts):
        chance = math.exp(float(rate) * count) / total
        assert float(found[index]) <= chance <= float(found[index] + short)


def test_bits_in_blocks_are_those_of_the_system(monkeypatch):
    """Every bit of a block is used at most once, and a long number is drawn by itself."""
    monkeypatch.setattr("os.urandom", lambda count: bytes(range(256)) * (count // 256))
    bits = BufferedBits()
    assert [bits(8) for _ in range(4)] == [0, 1, 2, 3]
    assert bits(0) == 0
    assert bits(16) == 4 + (5 << 8)
    assert bits(1 << 14) % 256 == 0
    assert bits(8) == 6


@pytest.mark.parametrize("wrong", [Fraction(0), Fraction(-1)])
def test_noise_of_no_scale_is_refused(wrong):
    """Neither a scale nor a variance can be 0 or negative."""
    with pytest.raises(ValueError, match="positive"):
        discrete_laplace(wrong)
    with pytest.raises(ValueError, match="positive"):
        discrete_gaussian(wrong)


@pytest.mark.parametrize(("counts", "rate"), [([], Fraction(1)), ([1, 2], Fraction(-1))])
def test_a_leader_of_nothing_is_refused(counts, rate):
    """There is none among no counts, and no negative rate; at rate 0 each is as likely."""
    with pytest.raises(ValueError, match="at least one count"):
        leader(counts, rate)
    assert leader([3], Fraction(0)) == 0


def test_a_coin_has_exactly_its_probability():
    """A third is a third: rejection leaves no bias."""
    found, short = enumerate_bits(lambda bits: happens(Fraction(1, 3), bits), 20)
    assert found[True] / (found[True] + found[False]) == Fraction(1, 3)
    assert short < Fraction(1, 500)
