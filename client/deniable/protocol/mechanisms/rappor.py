"""RAPPOR (Erlingsson, Pihur and Korolova, CCS 2014): noisy bitmaps, with a permanent round.

A value becomes a bitmap: its Bloom filter in the device's cohort (`Rappor`), or the bit of
its own in a closed list (`BasicRappor`: the identity map and one cohort). The *permanent*
response, the memo, is drawn once for each bitmap, the *instantaneous* one for each report::

    permanent:      P(1 | bit 1) = 1 - f/2   P(1 | bit 0) = f/2
    instantaneous:  P(1 | memo 1) = q        P(1 | memo 0) = p
    one report:     p11 = P(1 | bit 1) = q (1 - f/2) + p f/2
                    p01 = P(1 | bit 0) = p (1 - f/2) + q f/2

f, p and q are integers out of 2**53, and f is even. Bitmaps of h hashes differ in at most
2h bits, h of them up and h down, and memos in all k::

    e**epsilon  = [p11 (1-p01) / (p01 (1-p11))]**h        one report
    e**lifetime = [(1 - f/2) / (f/2)]**(2h)               one memo
    e**fresh    = max(q/p, (1-p) / (1-q))**k              one report, given the memos

The last is large: the memos of two values differ in many of their bits, which is why RAPPOR
reveals when a value changes. If that matters, `memoized_subset_selection` and
`memoized_local_hashing` reveal far less of it at the same two epsilons.

From counts alone, n * Var(share near 0) = p01 (1-p01) / (h (p11-p01)**2). The parameters of
the paper's experiments waste 2.5 times the reports. For one hash and the same two epsilons
p11 = 1/2 and p01 = 1 / (1 + e**epsilon) are the best that unary encodings can do (Wang et
al., USENIX Security 2017), and the default is solved for them.

*One-time RAPPOR* leaves the instantaneous round out. A second report of the same memo
would be the same bits, and so would identify the device. So `OneTimeRappor` has no memos: each
report has new noise. Basic one-time RAPPOR is `symmetric_unary_encoding`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar, Self

from deniable.protocol.errors import SchemeError
from deniable.protocol.exact import exp_below
from deniable.protocol.frozen import frozen
from deniable.protocol.hashing import hash64
from deniable.protocol.mechanisms.base import ONE, Item, Memoizing, Packing, Report, Row
from deniable.protocol.mechanisms.compatible import Bitmaps, OwnBits
from deniable.protocol.mechanisms.limits import MAX_CELLS, SALT, Parametrized, check_memo_epsilon
from deniable.protocol.randomness import PRECISION, Bits, below, flips, system_bits

MAX_BITS = 1 << 12
"""The longest bitmap: a report of 512 bytes."""

MAX_COHORTS = 1 << 16
MAX_HASHES = 64


@frozen
class Bloom(Parametrized):
    """Filters of `k` bits with `h` hashes, in `cohorts` cohorts under `salt`.

    Bloom filters of strings in public cohorts: h of k bits, by other hash functions in each cohort.

    Bit number i of a string in cohort c is `hash64(salt, c*h + i, string) % k`. Hashes of a
    string may meet in one bit, so a filter has at most h bits set, and the filters of two
    strings differ in at most 2h (Bloom, Comm. ACM 1970; cohorts: Erlingsson et al., CCS 2014).

    Raises:
        SchemeError: more than MAX_CELLS bits in all, or fewer than 2h bits in
            a filter, which two strings need to differ in all of their hashes.
    """

    bounds: ClassVar = {
        "salt": SALT,
        "cohorts": (1, MAX_COHORTS),
        "k": (2, MAX_BITS),
        "h": (1, MAX_HASHES),
    }

    salt: str
    cohorts: int
    k: int
    h: int

    def __post_init__(self) -> None:
        if self.k < 2 * self.h:
            raise SchemeError(f"a filter of k = {self.k} bits is too short for h = {self.h} hashes")
        if self.cohorts * self.k > MAX_CELLS:
            raise SchemeError(
                f"{self.cohorts} cohorts of k = {self.k} bits are above {MAX_CELLS:,} cells in "
                "all; take fewer"
            )

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of a tally of filters: one for each cohort."""
        return (Row(self.k, Packing.BITMAP, None),) * self.cohorts

    def filter(self, cohort: int, text: str) -> int:
        """The string's filter in a cohort, as a bitmap.

        Raises:
            ValueError: the string is not valid Unicode.
        """
        bitmap = 0
        for row in range(cohort * self.h, (cohort + 1) * self.h):
            bitmap |= 1 << hash64(self.salt, row, text) % self.k
        return bitmap


COHORTS = 64
BITS = 128


@frozen
class Rounds(Parametrized):
    """The noise of both rounds on one bit: thresholds out of 2**53.

    Raises:
        SchemeError: f is odd or not between 0 and 1, or not 0 < p < q < 1.
    """

    bounds: ClassVar = dict.fromkeys(("f", "p", "q"), (1, ONE - 1))

    f: int
    p: int
    q: int

    def __post_init__(self) -> None:
        _check_f(self.f)
        if not 0 < self.p < self.q < ONE:
            raise SchemeError(
                f"rappor: p = {self.p} and q = {self.q} of 2**{PRECISION} must satisfy 0 < p < q "
                "< 1: other instantaneous rounds reveal nothing, or everything"
            )

    @classmethod
    def tuned(cls, epsilon: float, lifetime_epsilon: float) -> Self:
        """The least variance for one hash, within both epsilons.

        Raises:
            SchemeError: the lifetime is too short for this epsilon.
        """
        check_memo_epsilon(epsilon, lifetime_epsilon)
        odds, half = exp_below(epsilon), _half_f(lifetime_epsilon)
        p01 = 1 / (odds + 1)
        total = p01 + Fraction(1, 2)
        difference = (Fraction(1, 2) - p01) / Fraction(ONE - 2 * half, ONE)
        q = math.floor(ONE * (total + difference) / 2)
        p = math.ceil(ONE * (total - difference) / 2)
        if p < 1:
            longer = 2 * math.log((math.exp(epsilon) + 1) / 2)
            raise SchemeError(
                f"rappor: epsilon {epsilon} leaves no room for fresh noise under lifetime_epsilon "
                f"{lifetime_epsilon}: declare a lifetime_epsilon above {longer:.4g}, or a smaller "
                "epsilon"
            )
        # Where p11 = 1/2 and p > 0, p01 (1-p01) is at least f / (8 (1 - f/2)), which makes a
        # smaller q lower the odds, as a larger p always does: both are rounded to more noise.
        return cls(2 * half, p, q)

    @property
    def p11(self) -> Fraction:
        """How often a set bit is reported as 1."""
        return Fraction(self.q * (2 * ONE - self.f) + self.p * self.f, 2 * ONE * ONE)

    @property
    def p01(self) -> Fraction:
        """How often a bit that is not set is reported as 1."""
        return Fraction(self.p * (2 * ONE - self.f) + self.q * self.f, 2 * ONE * ONE)


class _TwoRounds(Memoizing[Item], Bitmaps[Item]):
    """Memos and reports of bitmaps, of a mechanism whose entries are the bitmaps themselves."""

    rounds: Rounds

    def _reveal(self, rounds: Rounds, hashes: int, bits: int) -> None:
        """Set the odds of filters of so many bits, of which two strings differ in two for each of
        their hashes, and two memos in all."""
        self.rounds, p11, p01 = rounds, rounds.p11, rounds.p01
        self.odds = (p11 * (1 - p01) / (p01 * (1 - p11))) ** hashes
        self.lifetime_odds = Fraction(2 * ONE - rounds.f, rounds.f) ** (2 * hashes)
        # Of one bit, between its two memos.
        fresh = max(Fraction(rounds.q, rounds.p), Fraction(ONE - rounds.p, ONE - rounds.q))
        self.fresh_odds = fresh**bits

    def cell(self, row: int, item: Item) -> int:
        return self.bitmap(row, item)

    def memoize(self, cell: int, bits: Bits = system_bits) -> int:
        return _permanent(cell, self.rows[0].width, self.rounds.f, bits)

    def report(self, row: int, memo: int, bits: Bits = system_bits) -> Report:
        return Report(row, flips(memo, self.rows[0].width, self.rounds.q, self.rounds.p, bits))


class BasicRappor(_TwoRounds[int], OwnBits):
    """RAPPOR over a closed domain of `size` values: a bit for each.

    A pure protocol with p = p11 and q = p01.

    Raises:
        SchemeError: fewer than two values or more than MAX_BITS.
    """

    name: ClassVar[str] = "basic_rappor"
    bounds: ClassVar = {"size": (2, MAX_BITS), "rounds": Rounds}

    def __init__(self, size: int, rounds: Rounds) -> None:
        self.check_size(size, MAX_BITS)
        self.size, self.rows = size, (Row(size, Packing.BITMAP, None),)
        self.p = rounds.p11
        self.q = self.p01 = rounds.p01
        self._reveal(rounds, 1, size)

    @classmethod
    def design(cls, size: int, epsilon: float, lifetime_epsilon: float) -> Self:
        """The least variance under both epsilons.

        Raises:
            SchemeError: the lifetime is too short for this epsilon.
        """
        return cls(size, Rounds.tuned(epsilon, lifetime_epsilon))


class _Filtered(Bitmaps[str]):
    """Reports of the Bloom filters of strings, in cohorts."""

    bloom: Bloom
    size: None

    def __init__(self, bloom: Bloom, p11: Fraction, p01: Fraction) -> None:
        self.bloom, self.size, self.rows = bloom, None, bloom.rows
        # How often a bit is 1 in reports of a random other string.
        missed = (1 - Fraction(1, bloom.k)) ** bloom.h
        self.p, self.q, self.p01 = p11, p11 - missed * (p11 - p01), p01

    def bitmap(self, row: int, item: str) -> int:
        return self.bloom.filter(row, item)


class Rappor(_Filtered, _TwoRounds[str]):
    """RAPPOR over any strings, by their Bloom filters in cohorts.

    Counts are decoded bit by bit: a string's bit in its cohort is 1 with probability `p` =
    p11 where the device has that string, and with probability `q` where it has another,
    on average over the hash functions. With one hash that is a pure protocol.

    Attributes:
        bloom: which bits a string sets.
        rounds: the noise, with p11 and p01 for the decoder.
    """

    name: ClassVar[str] = "rappor"
    bounds: ClassVar = {"bloom": Bloom, "rounds": Rounds}

    def __init__(self, bloom: Bloom, rounds: Rounds) -> None:
        super().__init__(bloom, rounds.p11, rounds.p01)
        self._reveal(rounds, bloom.h, bloom.k)

    @classmethod
    def design(cls, salt: str, epsilon: float, lifetime_epsilon: float) -> Self:
        """One hash and the least variance under both epsilons, in COHORTS filters of BITS.

        Raises:
            SchemeError: the lifetime is too short for this epsilon.
        """
        return cls(Bloom(salt, COHORTS, BITS, 1), Rounds.tuned(epsilon, lifetime_epsilon))

    @classmethod
    def paper(cls, salt: str) -> Self:
        """The paper's experiments: 128 bits, 2 hashes, f = 1/2, p = 1/2, q = 3/4.

        Epsilon is 1.0743 and lifetime 4.3945. The paper varies the cohorts; these are 64.
        """
        return cls(Bloom(salt, 64, 128, 2), Rounds(ONE // 2, ONE // 2, ONE * 3 // 4))

    @classmethod
    def chromium(cls, salt: str) -> Self:
        """Chromium's UMA metrics: 128 cohorts, 4 bytes, 2 hashes, f = 1/2, p = 1/4, q = 3/4.

        Epsilon is 2.0434 and lifetime 4.3945 (UMA_RAPPOR_TYPE and NORMAL_NOISE in Chromium's
        components/rappor/rappor_parameters.h).
        """
        return cls(Bloom(salt, 128, 32, 2), Rounds(ONE // 2, ONE // 4, ONE * 3 // 4))


class OneTimeRappor(_Filtered):
    """RAPPOR without its instantaneous round and without memos: each report has new noise.

    Its odds are those of a memo, and p and q are as Rappor's.

    Raises:
        SchemeError: f is odd or not between 0 and 1.
    """

    name: ClassVar[str] = "one_time_rappor"
    bounds: ClassVar = {"bloom": Bloom, "f": Rounds.bounds["f"]}

    def __init__(self, bloom: Bloom, f: int) -> None:
        _check_f(f)
        flipped = Fraction(f, 2 * ONE)
        super().__init__(bloom, 1 - flipped, flipped)
        self.f = f
        self.odds = (self.p / self.p01) ** (2 * bloom.h)

    @classmethod
    def design(cls, salt: str, epsilon: float) -> Self:
        """One hash, in COHORTS filters of BITS; f is rounded up."""
        return cls(Bloom(salt, COHORTS, BITS, 1), 2 * _half_f(epsilon))

    def randomize(self, item: str, bits: Bits = system_bits) -> Report:
        row = below(self.bloom.cohorts, bits)
        return Report(row, _permanent(self.bitmap(row, item), self.bloom.k, self.f, bits))


def _check_f(f: int) -> None:
    if not 0 < f < ONE or f % 2:
        raise SchemeError(
            f"rappor: f = {f} of 2**{PRECISION} must be even and between 0 and 1: half of it is "
            "the chance that a bit is flipped for ever"
        )


def _half_f(epsilon: float) -> int:
    """f/2 out of 2**53, with which the permanent round of one hash keeps within `epsilon`."""
    return math.ceil(ONE / (exp_below(epsilon / 2) + 1))


def _permanent(bitmap: int, size: int, f: int, bits: Bits) -> int:
    # To flip each bit with probability f/2 is to answer 1 - f/2 for a one and f/2 for a zero;
    # one threshold for all bits is the fastest case of `flips`.
    return bitmap ^ flips(0, size, f // 2, f // 2, bits)
