"""From the integers in force to the odds of one report, step by step, for whoever checks them.

Each mechanism makes some reports likelier under one value than under another. `derivation_of` has
the largest and the smallest probability as exact fractions, with their formulas; their ratio is the
mechanism's `odds`, e**epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import singledispatch
from typing import Any

from deniable.protocol.mechanisms import (
    BasicRappor,
    DBitFlip,
    HadamardResponse,
    Hashed,
    HierarchicalHistogram,
    Mechanism,
    MemoizedLocalHashing,
    MemoizedRetention,
    MemoizedSubsetSelection,
    OneTimeRappor,
    PrefixTree,
    ProjectiveGeometry,
    Rappor,
    Rounds,
    SlidingWindow,
    SubsetSelection,
    UnaryEncoding,
)
from deniable.protocol.mechanisms.projective_geometry import points


@dataclass(frozen=True, slots=True)
class MemoRounds:
    """The two rounds of a mechanism with memos."""

    memo: str
    """The formula of the odds of one memo."""
    fresh: str
    """That of one report, given the memos."""


@dataclass(frozen=True, slots=True)
class Derivation:
    """How the odds of one report follow from the integers in force.

    Attributes:
        made: how a report is made, in sentences.
        high_rule, high: the probability under the value that makes a report, or a bit of it,
            likeliest: the formula and the fraction.
        low_rule, low: the same under the value that makes it least likely.
        times: how often this ratio counts.
        times_rule: why, in a sentence; empty if once.
        source: the paper of the mechanism.
        rounds: with memos, the odds of the two rounds.
    """

    made: str
    high_rule: str
    high: Fraction
    low_rule: str
    low: Fraction
    source: str
    times: int = 1
    times_rule: str = ""
    rounds: MemoRounds | None = None

    @property
    def odds(self) -> Fraction:
        """e**epsilon of one report."""
        return (self.high / self.low) ** self.times


@singledispatch
def derivation_of(mechanism: Mechanism[Any]) -> Derivation | None:
    """The derivation; None for a mechanism that has none here."""
    return None


@derivation_of.register
def _(mechanism: SubsetSelection) -> Derivation:
    d, k = mechanism.size, mechanism.k
    made = (
        f"A report is a set of k = {k} of the d = {d:,} values. With probability p = P / 2⁵³, "
        "where P = threshold, it is drawn from the sets that hold the value, otherwise from the "
        "others. All sets of either kind are equally likely."
    )
    source = (
        "Warner, J. Am. Stat. Assoc. 1965"
        if d == 2
        else "Ye and Barg, IEEE Trans. Inf. Theory 2018; Wang et al., arXiv:1607.08025"
    )
    return _sets(made, d, k, mechanism.p, source)


def _sets(made: str, d: int, k: int, p: Fraction, source: str) -> Derivation:
    return Derivation(
        made,
        f"p / C({d - 1}, {k - 1})",
        p / math.comb(d - 1, k - 1),
        f"(1 − p) / C({d - 1}, {k})",
        (1 - p) / math.comb(d - 1, k),
        source,
    )


@derivation_of.register
def _(mechanism: MemoizedSubsetSelection) -> Derivation:
    d, k, p = mechanism.size, mechanism.k, mechanism.p
    made = (
        "The memo of a value is drawn once: the value itself with probability p₁ = memo / 2⁵³, "
        f"else another of the d = {d:,} values. Each report is a set of k = {k} values, drawn "
        "afresh: with probability p₂ = fresh / 2⁵³ it holds the memo. So it holds the value with "
        f"probability p = p₁ p₂ + (1 − p₁)(k − p₂) / (d − 1) = {p}."
    )
    rounds = MemoRounds("p₁ (d − 1) / (1 − p₁)", "p₂ (d − k) / [(1 − p₂) k]")
    source = "Arcolezi et al., EDBT 2023, with an exact calibration"
    return replace(_sets(made, d, k, p, source), rounds=rounds)


@derivation_of.register
def _(mechanism: MemoizedRetention) -> Derivation:
    worst = max(mechanism.channels, key=lambda channel: channel.odds)
    found = derivation_of(worst)
    assert found is not None
    if len(mechanism.channels) == 1:
        return found
    made = (
        "The device draws once, by a fair coin and whatever it does, which of the two questions it "
        f"answers for ever. This is the one that reveals more. {found.made}"
    )
    return replace(found, made=made)


@derivation_of.register
def _(mechanism: ProjectiveGeometry) -> Derivation:
    order, dimension = mechanism.order, mechanism.dimension
    near = points(order, dimension - 1)
    made = (
        f"A report is one of the K = {mechanism.messages:,} points of the projective space of "
        f"dimension {dimension - 1} over {order} elements. With probability p = P / 2⁵³, where P = "
        f"threshold, it is one of the s = {near:,} points of the value's hyperplane, otherwise one "
        "of the others. All points of either kind are equally likely."
    )
    return Derivation(
        made,
        "p / s",
        mechanism.p / near,
        "(1 − p) / (K − s)",
        (1 - mechanism.p) / (mechanism.messages - near),
        "Feldman, Nelson, Nguyen and Talwar, ICML 2022",
    )


@derivation_of.register
def _(mechanism: HadamardResponse) -> Derivation:
    half = mechanism.rows[0].width // 2
    return Derivation(
        f"A report is one of K = {2 * half:,} columns of a Hadamard matrix. With probability "
        "p = P / 2⁵³, where P = threshold, it is one of the K / 2 in which the value's row has +1, "
        "otherwise one of the others. All columns of either kind are equally likely.",
        "p / (K / 2)",
        mechanism.p / half,
        "(1 − p) / (K / 2)",
        (1 - mechanism.p) / half,
        "Acharya, Sun and Zhang, AISTATS 2019",
    )


@derivation_of.register
def _(mechanism: SlidingWindow) -> Derivation:
    width, columns = mechanism.width, mechanism.columns
    p = mechanism.parameters()["threshold"]
    assert isinstance(p, int)
    chance = Fraction(p, 2**53)
    return Derivation(
        f"A report is one of D = {columns} columns. The number is rounded at random to one of two "
        f"levels, each of which owns a window of w = {width} columns. With probability p = P / "
        "2⁵³, where P = threshold, the report is one of the window's columns, otherwise one of the "
        "others. A number between two levels reports like a mixture of them, which lies between.",
        "p / w",
        chance / width,
        "(1 − p) / (D − w)",
        (1 - chance) / (columns - width),
        "Duchi, Jordan and Wainwright, J. Am. Stat. Assoc. 2018, for D = 2; Kairouz, Oh and "
        "Viswanath, JMLR 2016",
    )


@derivation_of.register
def _(mechanism: HierarchicalHistogram) -> Derivation:
    channels = [level.oracle for level in mechanism.levels]
    parts: list[Mechanism[Any]] = [*channels]
    if mechanism.mean is not None:
        parts.append(mechanism.mean)
    largest = max(range(len(parts)), key=lambda place: parts[place].odds)
    found = derivation_of(parts[largest])
    assert found is not None
    made = (
        f"The device draws one of {len(parts)} rows, whatever its number is, and reports the node "
        f"of the number in that row. The largest odds are those of row {largest + 1}, where P is "
        f"the threshold of that row. {found.made}"
    )
    source = f"Cormode, Kulkarni and Srivastava, VLDB 2019; {found.source}"
    return replace(found, made=made, source=source)


@derivation_of.register
def _(mechanism: Hashed) -> Derivation:
    draws = "draws one of" if not isinstance(mechanism, MemoizedLocalHashing) else "keeps one of"
    return _in_rows(
        mechanism.channel,
        f"The device {draws} {mechanism.hashes} rows, whatever its text is, and hashes the text "
        "there. Two texts with the same hash report alike; for others",
    )


@derivation_of.register
def _(mechanism: PrefixTree) -> Derivation:
    return _in_rows(
        mechanism.channel,
        f"The device draws one of {len(mechanism.rows)} tables, whatever its text is, and hashes a "
        "part of the text there. Two texts with the same place report alike; for others",
    )


def _in_rows(channel: Mechanism[Any], made: str) -> Derivation:
    found = derivation_of(channel)
    assert found is not None
    return replace(found, made=f"{made} the hash takes the place of the value. {found.made}")


@derivation_of.register
def _(mechanism: UnaryEncoding) -> Derivation:
    p, q = mechanism.p, mechanism.q
    return Derivation(
        f"A report has a bit for each of the {mechanism.size:,} values, drawn independently. The "
        "bit of the value is 1 with probability p = one / 2⁵³, each other bit with probability "
        "q = zero / 2⁵³. Two values differ in two bits; the others cancel.",
        "p (1 − q)",
        p * (1 - q),
        "q (1 − p)",
        q * (1 - p),
        "Wang et al., USENIX Security 2017; Erlingsson, Pihur and Korolova, CCS 2014",
    )


@derivation_of.register
def _(mechanism: BasicRappor) -> Derivation:
    return _rounds(mechanism.rounds, 1, len(mechanism.rows))


@derivation_of.register
def _(mechanism: Rappor) -> Derivation:
    return _rounds(mechanism.rounds, mechanism.bloom.h, mechanism.bloom.cohorts)


_RAPPOR = "Erlingsson, Pihur and Korolova, CCS 2014"


def _rounds(rounds: Rounds, hashes: int, cohorts: int) -> Derivation:
    cohort = f" in the device's cohort, one of {cohorts}," if cohorts > 1 else ""
    return Derivation(
        f"A value sets {hashes} bit{'s' if hashes > 1 else ''} of a bitmap{cohort} at most. In the "
        "memo each bit is turned with probability f / 2. Each report has a 1 where the memo has "
        "one with probability q, elsewhere with probability p (f, p and q out of 2⁵³). So a set "
        f"bit is reported as 1 with probability p₁ = q (1 − f/2) + p f/2 = {rounds.p11}, another "
        f"with probability p₀ = p (1 − f/2) + q f/2 = {rounds.p01}.",
        "p₁ (1 − p₀)",
        rounds.p11 * (1 - rounds.p01),
        "p₀ (1 − p₁)",
        rounds.p01 * (1 - rounds.p11),
        _RAPPOR,
        hashes,
        f"One bit goes up and one goes down, {hashes} times." if hashes > 1 else "",
        MemoRounds(
            f"[(1 − f/2) / (f/2)] to the power of {2 * hashes}",
            "max(q / p, (1 − p) / (1 − q)) to the power of the number of bits",
        ),
    )


@derivation_of.register
def _(mechanism: OneTimeRappor) -> Derivation:
    hashes = mechanism.bloom.h
    return Derivation(
        f"The device draws one of {mechanism.bloom.cohorts} cohorts, in which a text sets {hashes} "
        f"bit{'s' if hashes > 1 else ''} of a bitmap at most. Each bit is turned with probability "
        "f / 2 (f out of 2⁵³), independently.",
        "1 − f/2",
        mechanism.p,
        "f/2",
        1 - mechanism.p,
        _RAPPOR,
        2 * hashes,
        f"Two texts differ in {2 * hashes} bits at most.",
    )


@derivation_of.register
def _(mechanism: DBitFlip) -> Derivation:
    apart = 1 if mechanism.bits == 1 else 2
    return Derivation(
        f"The device keeps one of {len(mechanism.rows)} rows of {mechanism.bits} of the "
        f"{mechanism.cells} cells. The bit of the number's cell is 1, if the row has it, all "
        "others are 0. In the memo each bit is turned with probability a = memo / 2⁵³, in each "
        "report again with probability g = fresh / 2⁵³: in all s = a (1 − g) + g (1 − a) = "
        f"{mechanism.flipped}.",
        "1 − s",
        1 - mechanism.flipped,
        "s",
        mechanism.flipped,
        "Ding, Kulkarni and Yekhanin, NeurIPS 2017, with output perturbation",
        apart,
        "Two cells of one row differ in two bits." if apart > 1 else "",
        MemoRounds(
            f"[(1 − a) / a] to the power of {apart}",
            f"[(1 − g) / g] to the power of {mechanism.bits}",
        ),
    )
