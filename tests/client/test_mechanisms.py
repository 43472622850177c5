"""What every mechanism promises: exact probabilities, its epsilon, a sampler that keeps to them."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from scipy import stats
from tests.supports import support

from deniable.protocol.errors import SchemeError
from deniable.protocol.exact import exp_below
from deniable.protocol.mechanisms import (
    DESIGNS,
    MAX_CELLS,
    STRING_DESIGNS,
    FrequencyOracle,
    Mechanism,
    Memoizing,
    Packing,
    Report,
    design,
    rebuild,
)
from deniable.protocol.mechanisms.compatible import HadamardResponse, UnaryEncoding
from deniable.protocol.mechanisms.dbitflip import DBitFlip
from deniable.protocol.mechanisms.hashed import (
    CohortLocalHashing,
    CountMeanSketch,
    HadamardCountMeanSketch,
    HashedProjectiveGeometry,
    MemoizedLocalHashing,
)
from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
from deniable.protocol.mechanisms.number_range import NumberRange, Numeric
from deniable.protocol.mechanisms.prefix_tree import PrefixTree, head
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry
from deniable.protocol.mechanisms.rappor import BasicRappor, Bloom, OneTimeRappor, Rappor, Rounds
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection, SubsetSelection
from deniable.protocol.randomness import PRECISION

ONE = 1 << PRECISION

STRINGS = ["Ålesund", "Bergen", "", "Oslo"]

NUMBERS = NumberRange("-1", "1")
POSITIONS = [-1, 0, 1, 123_456_789, 1 << 29, (1 << 30) - 1, 1 << 30]

EVERY_SIXTEENTH = [-1, *range(1, 1 << 30, 1 << 26), 1 << 30]

SMALL: dict[str, tuple[Mechanism[Any], list[Any]]] = {
    "randomized response": (SubsetSelection.design(2, 1.0), [0, 1]),
    "generalized randomized response": (SubsetSelection.design(5, 2.0, k=1), list(range(5))),
    "subset selection 2 of 6": (SubsetSelection.design(6, 1.0, k=2), list(range(6))),
    "subset selection 3 of 7": (SubsetSelection.design(7, 0.3), list(range(7))),
    "subset selection 5 of 6": (SubsetSelection.design(6, 1.5, k=5), list(range(6))),
    "projective plane of order 2": (ProjectiveGeometry(7, 2, 3, ONE * 2 // 3), list(range(7))),
    "projective line of order 3": (ProjectiveGeometry(4, 3, 2, ONE // 2), list(range(4))),
    "part of a projective space": (ProjectiveGeometry.design(9, 1.0), list(range(9))),
    "projective plane of order 5": (ProjectiveGeometry(31, 5, 3, ONE // 2), [0, 7, 25, 30]),
    "optimized unary encoding": (UnaryEncoding.optimized(4, 1.0), list(range(4))),
    "symmetric unary encoding": (UnaryEncoding.symmetric(5, 2.0), list(range(5))),
    "Hadamard response over 3": (HadamardResponse.design(3, 1.0), list(range(3))),
    "Hadamard response over 4": (HadamardResponse.design(4, 2.0), list(range(4))),
    "hashed projective geometry": (
        HashedProjectiveGeometry("city", 3, ProjectiveGeometry(13, 3, 3, ONE // 2)),
        STRINGS,
    ),
    "prefix tree of 2 levels": (
        PrefixTree("city", 2, "bytes", ProjectiveGeometry(13, 3, 3, ONE // 2)),
        STRINGS,
    ),
    "prefix tree over hexadecimal digits": (
        PrefixTree("city", 3, "hex", ProjectiveGeometry(7, 2, 3, ONE * 2 // 3)),
        ["c0ffee", "c0ffe", "c0ff", "coffee", ""],
    ),
    "cohort local hashing": (
        CohortLocalHashing("city", 3, SubsetSelection.design(4, 1.0, k=1)),
        STRINGS,
    ),
    "count mean sketch": (
        CountMeanSketch("city", 2, UnaryEncoding.symmetric(5, 1.0)),
        STRINGS,
    ),
    "Hadamard count mean sketch": (
        HadamardCountMeanSketch("city", 3, HadamardResponse.design(8, 1.0)),
        STRINGS,
    ),
    "memoized randomized response": (MemoizedSubsetSelection.design(2, 1.0, 2.0), [0, 1]),
    "memoized subset selection 2 of 6": (
        MemoizedSubsetSelection.design(6, 1.0, 3.0, k=2),
        list(range(6)),
    ),
    "memoized subset selection 1 of 5": (
        MemoizedSubsetSelection.design(5, 1.5, 2.0),
        list(range(5)),
    ),
    "memoized retention": (
        MemoizedRetention.design("week", 1, ("lifecycle", "cohorts"), 1.0, 2.5),
        list(range(9)),
    ),
    "memoized local hashing": (
        MemoizedLocalHashing("city", 3, MemoizedSubsetSelection.design(4, 1.0, 2.0, k=1)),
        STRINGS,
    ),
    "basic RAPPOR": (BasicRappor.design(5, 1.0, 3.0), list(range(5))),
    "RAPPOR": (Rappor(Bloom("city", 2, 6, 1), Rounds.tuned(1.0, 3.0)), STRINGS),
    "one-time RAPPOR": (OneTimeRappor(Bloom("city", 2, 5, 1), ONE // 2), STRINGS),
    "one bit for a mean": (SlidingWindow.design(NUMBERS, 1.0, columns=2), POSITIONS),
    "sliding window 4 of 8": (SlidingWindow.design(NUMBERS, 0.5, columns=8), POSITIONS),
    "sliding window 17 of 64": (SlidingWindow.design(NUMBERS, 4.0), POSITIONS),
    "histogram of 4 cells": (
        HierarchicalHistogram.design(NumberRange("1", "2", integer=True), 2.0),
        POSITIONS,
    ),
    "histogram of 64 cells": (HierarchicalHistogram.design(NUMBERS, 0.25, 64), POSITIONS),
    "histogram of 16 cells with a mean": (
        HierarchicalHistogram.design(NumberRange("0", "9", integer=True), 1.0, mean=True),
        POSITIONS,
    ),
    "noisy bits of 4 cells": (
        DBitFlip.design(NumberRange("1", "2", integer=True), 1.0, 2.0),
        POSITIONS,
    ),
    "4 of 16 noisy bits": (DBitFlip(NUMBERS, 16, 4, ONE // 8, ONE // 5), EVERY_SIXTEENTH),
    "2 of 16 noisy bits": (DBitFlip(NUMBERS, 16, 2, ONE // 8, ONE // 5), EVERY_SIXTEENTH),
    "1 of 16 noisy bits": (DBitFlip.design(NUMBERS, 6.0, 8.0), EVERY_SIXTEENTH),
}
"""Mechanisms small enough to enumerate, each with values to enumerate it over."""

ORACLES = {name: each for name, each in SMALL.items() if isinstance(each[0], FrequencyOracle)}
"""Those whose reports support values."""

CLOSED = {
    name: (mechanism, items)
    for name, (mechanism, items) in ORACLES.items()
    if isinstance(mechanism, FrequencyOracle) and mechanism.size is not None
}
"""Those over a closed domain. Over an open one, q is an average over hash functions."""

NUMERIC = {name: each for name, each in SMALL.items() if isinstance(each[0], Numeric)}

numbers = pytest.mark.parametrize(("mechanism", "items"), NUMERIC.values(), ids=NUMERIC)
oracles = pytest.mark.parametrize(("mechanism", "items"), ORACLES.values(), ids=ORACLES)
small = pytest.mark.parametrize(("mechanism", "items"), SMALL.values(), ids=SMALL)
closed = pytest.mark.parametrize(("mechanism", "items"), CLOSED.values(), ids=CLOSED)


def reports(mechanism):
    """Every well-formed report."""
    for number, row in enumerate(mechanism.rows):
        if row.packing is Packing.INDEX:
            yield from (Report(number, column) for column in range(row.width))
        elif row.columns is None:
            yield from (Report(number, bitmap) for bitmap in range(1 << row.width))
        else:
            for columns in itertools.combinations(range(row.width), row.columns):
                yield Report(number, sum(1 << column for column in columns))


def supports(mechanism, report, item):
    """Whether a report sets one of the cells that support the item."""
    if mechanism.rows[report.row].packing is Packing.INDEX:
        return report in support(mechanism, item)
    return any(
        row == report.row and report.columns >> column & 1
        for row, column in support(mechanism, item)
    )


@small
def test_probabilities_sum_to_one(mechanism, items):
    """Over every possible report, the likelihoods of each value sum to exactly one."""
    for item in items:
        assert sum(mechanism.likelihood(report, item) for report in reports(mechanism)) == 1


@small
def test_largest_likelihood_ratio_is_the_odds(mechanism, items):
    """No report tells two values apart by more than `odds`, and some report does by that much."""
    worst = Fraction(0)
    for report in reports(mechanism):
        likelihoods = [mechanism.likelihood(report, item) for item in items]
        worst = max(worst, max(likelihoods) / min(likelihoods))
    assert worst == mechanism.odds


@numbers
def test_a_report_favours_its_likeliest_numbers(mechanism, items):
    """The spans of a report rise, do not touch, and hold the positions that none surpasses."""
    for report in itertools.islice(reports(mechanism), 0, None, 7):
        spans = mechanism.favoured(report)
        ends = [end for span in spans for end in span]
        assert ends == sorted(ends)
        assert all(lower.last + 1 < upper.first for lower, upper in itertools.pairwise(spans))
        chances = {item: mechanism.likelihood(report, item) for item in {*items, *ends}}
        most = max(chances.values())
        likeliest = {item for item, chance in chances.items() if chance == most}
        assert likeliest == {n for n in chances if any(low <= n <= high for low, high in spans)}


@oracles
def test_a_report_supports_the_truth_with_p(mechanism, items):
    """The reports that support the true value have probability p in all."""
    for item in items:
        supported = (
            mechanism.likelihood(report, item)
            for report in reports(mechanism)
            if supports(mechanism, report, item)
        )
        assert sum(supported) == mechanism.p


@closed
def test_a_report_supports_others_with_q(mechanism, items):
    """The reports that support another value of a closed domain have probability q in all."""
    for item, other in itertools.permutations(items, 2):
        supported = (
            mechanism.likelihood(report, item)
            for report in reports(mechanism)
            if supports(mechanism, report, other)
        )
        assert sum(supported) == mechanism.q


@small
def test_the_sampler_follows_the_likelihood(mechanism, items):
    """What `randomize` draws is distributed as `likelihood` says.

    Chi-square over all reports, 20,000 draws for the first and the last value, seed 21, alpha =
    1e-6 per test; reports expected fewer than five times are pooled.
    """
    bits = random.Random(21).getrandbits
    draws = 20_000
    for item in (items[0], items[-1]):
        drawn = Counter(mechanism.randomize(item, bits) for _ in range(draws))
        observed, expected = [0.0], [0.0]
        for report in reports(mechanism):
            expectation = float(mechanism.likelihood(report, item)) * draws
            if expectation < 5:
                observed[0] += drawn[report]
                expected[0] += expectation
            else:
                observed.append(drawn[report])
                expected.append(expectation)
        if expected[0] == 0:
            del observed[0], expected[0]
        assert sum(observed) == draws, "a report that cannot be was drawn"
        assert stats.chisquare(observed, expected, sum_check=False).pvalue > 1e-6


@small
def test_a_report_is_drawn_from_the_bits_that_are_given(mechanism, items):
    """The same bits make the same report: none comes from another source. Seed 47."""
    for item in items:
        first, again = (
            [mechanism.randomize(item, bits) for _ in range(30)]
            for bits in (random.Random(47).getrandbits, random.Random(47).getrandbits)
        )
        assert first == again


@small
def test_parameters_rebuild_the_mechanism(mechanism, items):
    """A published scheme's parameters, after a trip through JSON, are the same mechanism."""
    again = rebuild(mechanism.name, json.loads(json.dumps(mechanism.parameters())))
    assert again.parameters() == mechanism.parameters()
    for field in ("rows", "odds", "p", "q"):
        assert getattr(again, field, None) == getattr(mechanism, field, None)


@small
def test_rebuild_takes_exactly_its_parameters(mechanism, items):
    """One that is missing or unknown is refused; `parameters.txt` has what each may be."""
    good = mechanism.parameters()
    for name in good:
        without = {key: value for key, value in good.items() if key != name}
        with pytest.raises(SchemeError, match=name):
            rebuild(mechanism.name, without)
    with pytest.raises(SchemeError, match="surplus"):
        rebuild(mechanism.name, good | {"surplus": 1})


@closed
def test_values_outside_the_domain_are_refused(mechanism, items):
    """An index outside a closed domain raises, and the message does not depend on the noise."""
    assert mechanism.size is not None
    for item in (-1, mechanism.size):
        with pytest.raises(ValueError, match="outside"):
            mechanism.randomize(item)


CLOSED_DESIGNS = [(name, 200) for name in (*DESIGNS, "auto")]
OPEN_DESIGNS = [(name, 40) for name in (*STRING_DESIGNS, "auto")]


@pytest.mark.parametrize(("name", "count"), CLOSED_DESIGNS + OPEN_DESIGNS)
def test_designs_keep_within_epsilon(name, count):
    """Over 200 random configurations, or 40 of strings, the exact epsilon is within the declared
    one and near it.

    Domains from 2 to 3,000 values and epsilons from 0.01 to 10, log-uniform, seed 22. `odds` are
    compared as exact fractions with a number below e**epsilon.
    """
    rng = random.Random(22)
    for _ in range(count):
        size = round(2 * 1500 ** rng.random()) if (name, count) in CLOSED_DESIGNS else None
        epsilon = 0.01 * 1000 ** rng.random()
        mechanism = design(name, size, epsilon, salt="city")
        assert mechanism.size == size
        assert mechanism.odds <= exp_below(epsilon)
        assert epsilon - 1e-6 < mechanism.epsilon <= epsilon + 1e-15
        assert 0 < mechanism.q < mechanism.p < 1
        assert sum(row.width for row in mechanism.rows) <= MAX_CELLS


@pytest.mark.parametrize("name", [*DESIGNS, "auto"])
@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("inf"), float("nan"), 1e-17, 700.0])
def test_useless_epsilons_are_refused(name, epsilon):
    """Epsilon zero, negative, infinite, not a number, or beyond 53-bit thresholds: an error."""
    with pytest.raises(SchemeError, match="epsilon"):
        design(name, 10, epsilon)
    with pytest.raises(SchemeError, match="epsilon"):
        design("auto", None, epsilon, salt="city")


def test_unknown_mechanisms_are_refused():
    """A name that no mechanism has is refused with the names that exist."""
    with pytest.raises(SchemeError, match="subset_selection"):
        design("laplace", 4, 1.0)
    with pytest.raises(SchemeError, match="count_mean_sketch"):
        design("subset_selection", None, 1.0, salt="city")
    with pytest.raises(SchemeError, match="upgrade"):
        rebuild("laplace", {})


VECTORS = [
    (path.stem, case)
    for path in sorted((Path(__file__).parents[2] / "client" / "vectors").glob("*.json"))
    if path.name != "transcripts.json"  # a list of devices
    for case in json.loads(path.read_text()).get("mechanisms", [])
]


@pytest.mark.parametrize(("name", "case"), VECTORS)
def test_vectors(name, case):
    """Published parameters give the published rows, probabilities, support and likelihoods; with
    memory the published bounds, and a prefix tree the published heads and places."""
    if "error" in case:
        with pytest.raises(SchemeError, match=case["error"]):
            rebuild(name, case["parameters"])
        return
    mechanism = rebuild(name, case["parameters"])
    rows = [[row.width, row.packing.value, row.columns] for row in mechanism.rows]
    assert rows == case["rows"]
    assert str(mechanism.odds) == case["odds"]
    if isinstance(mechanism, FrequencyOracle):
        assert [str(mechanism.p), str(mechanism.q)] == [case["p"], case["q"]]
    if isinstance(mechanism, Memoizing):
        assert str(mechanism.lifetime_odds) == case["lifetime_odds"]
        assert str(mechanism.fresh_odds) == case["fresh_odds"]
    for each in case["items"]:
        if isinstance(mechanism, FrequencyOracle):
            cells = [list(cell) for cell in support(mechanism, each["item"])]
            assert cells == each["support"]
        if isinstance(mechanism, Memoizing):
            assert each["cells"]
            for row, cell in each["cells"]:
                assert f"{mechanism.cell(row, each['item']):x}" == cell
        if isinstance(mechanism, PrefixTree):
            assert head(each["item"], mechanism.levels, mechanism.alphabet).hex() == each["head"]
            rows = range(mechanism.levels + 1)
            assert [mechanism.place(row, each["item"]) for row in rows] == each["places"]
        for report in each["reports"]:
            columns = report["columns"]
            if isinstance(columns, list):
                columns = sum(1 << column for column in columns)
            likelihood = mechanism.likelihood(Report(report["row"], columns), each["item"])
            assert str(likelihood) == report["likelihood"]


NUMERIC_VECTORS = [(name, case) for name, case in VECTORS if "draws" in case]


@pytest.mark.parametrize(("name", "case"), NUMERIC_VECTORS)
def test_vectors_of_designs(name, case):
    """Cells begin where they are published to; the odds are within epsilon; and the design for this
    epsilon is still the same, so that fingerprints stay."""
    mechanism = rebuild(name, case["parameters"])
    assert mechanism.odds <= exp_below(case["epsilon"])
    designed: Mechanism[Any]
    if isinstance(mechanism, DBitFlip):
        assert list(mechanism.edges) == case["edges"]
        designed = DBitFlip.design(
            mechanism.range, case["epsilon"], case["memo_epsilon"], mechanism.cells
        )
    elif isinstance(mechanism, HierarchicalHistogram):
        assert list(mechanism.edges) == case["edges"]
        designed = HierarchicalHistogram.design(
            mechanism.range, case["epsilon"], mechanism.cells, mechanism.mean is not None
        )
    else:
        assert isinstance(mechanism, SlidingWindow)
        designed = SlidingWindow.design(mechanism.range, case["epsilon"], mechanism.columns)
    assert designed.parameters() == case["parameters"]


THINGS = (None, -1, 0, 1, 2, 3, 7, 16, 64, 2**31, 2**52, 2**53, 2**60, "", "5", "linear", True, 1.5)
THINGS += ([], [1], [0.5, 2], {})


def test_what_each_parameter_may_be(stays):
    """Which things each parameter of a mechanism may be beside its others, and what is said of
    those that it may not: `parameters.txt` has the sentences."""
    told = []
    for name, (mechanism, _) in SMALL.items():
        written = mechanism.parameters()
        for parameter in written:
            groups = defaultdict(list)
            for thing in THINGS:
                try:
                    type(mechanism).from_parameters({**written, parameter: thing})
                    said = "fine"
                except SchemeError as error:
                    said = str(error).replace(f"not {thing!r}", "not it")
                groups[said].append(repr(thing))
            told += [f"{name}, {parameter}, {', '.join(of)}: {said}" for said, of in groups.items()]
    stays("parameters.txt", told)
