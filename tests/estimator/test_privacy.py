"""Guarantees: every figure follows from the mechanism in force and errs on the safe side."""

import io
import math
import re
from fractions import Fraction

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from rich.console import Console
from tests.registries import declared as registry_text

from deniable import Registry, RegistryError
from deniable.protocol.exact import exp_below
from deniable.protocol.mechanisms import Memoizing, Packing, Report
from deniable_estimator.dashboard.privacy_label import LABEL_FILTERS
from deniable_estimator.document.terminal import show
from deniable_estimator.privacy.computing import all_together, guarantee, guarantee_in
from deniable_estimator.privacy.guarantees import Bound
from deniable_estimator.privacy.report import derivation_of
from deniable_estimator.privacy.words import chance, factor, rounded_up
from deniable_estimator.terminal.privacy_command import guarantee_document, together_document

from .test_outsider_enumeration import CASES

MEMO = {"epsilon": 1.0, "lifetime_epsilon": 4.0, "longitudinal": "memoize"}


def declared(rate=1.0, window="day", cap="", memory=False, strings="auto"):
    fresh = {"type": "boolean", "epsilon": 1.0, "sample_rate": rate, "window": window}
    metrics = {"dark_mode": fresh}
    if memory:
        metrics["browser"] = {"type": "category", "values": list("abcde"), **MEMO}
        metrics["city"] = {"type": "string", "mechanism": strings, **MEMO}
    return Registry.parse(f"{cap}\n{registry_text(**metrics)}")


def one(metric="dark_mode", household=1, **settings):
    registry = declared(**settings)
    return guarantee(registry[metric], registry.lifetime_epsilon, household)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0, 36.0, 800.0])
def test_a_bound_errs_on_the_safe_side(epsilon):
    """Odds are no less than e**epsilon, and less than a part in 10**30 more."""
    bound = Bound(epsilon)
    assert 1 < bound.odds / exp_below(epsilon) < 1 + Fraction(1, 10**30)
    assert Fraction(1, 2) < bound.belief < 1
    plain = bound.to_dict()
    assert plain["epsilon"] == epsilon
    assert plain["belief"] is not None
    assert bound.belief <= Fraction(plain["belief"]) <= 1
    if epsilon > 700:
        assert plain["odds"] is None
    else:
        assert Fraction(plain["odds"] or 0) >= bound.odds


def test_a_bound_of_an_exact_epsilon_is_rounded_up():
    """A third is no float; the float above it is taken."""
    third = Fraction(1, 3)
    assert third <= Fraction(Bound.of(third).epsilon) < third + Fraction(1, 10**16)
    assert Bound.of(0.5).epsilon == 0.5


@pytest.mark.parametrize(
    ("rate", "window", "typical", "most"),
    [
        (1.0, "day", 8.0, 8),
        (0.02, "day", 7.305, 8),
        (0.002, "day", 0.7305, 8),
        (0.1, "week", 5.2178571, 8),
        (0.5, "month", 6.0, 8),
    ],
)
def test_reports_of_a_year(rate, window, typical, most):
    """A year holds as many reports as windows and coins allow, and no more than the budget."""
    given = one(rate=rate, window=window)
    assert given.typical_reports == pytest.approx(typical)
    assert (given.most_reports, given.lifetime_reports) == (most, 8)
    assert given.typical_year.epsilon == pytest.approx(typical)
    assert given.worst_year.epsilon == pytest.approx(8)
    assert given.lifetime is not None
    assert given.lifetime.epsilon == pytest.approx(8)


@pytest.mark.parametrize("metric", ["browser", "city"])
@pytest.mark.parametrize("strings", ["auto", "rappor"])
def test_with_memory(metric, strings):
    """A memo is bounded for ever; any history by the fresh epsilon of each of its reports."""
    registry = declared(memory=True, strings=strings)
    mechanism = registry[metric].scheme.mechanism
    assert isinstance(mechanism, Memoizing)
    given = guarantee(registry[metric])
    assert given.memory is not None
    assert given.report.epsilon == mechanism.epsilon
    assert given.memory.memo.epsilon == mechanism.lifetime_epsilon <= 4.0
    assert given.each.epsilon == mechanism.fresh_epsilon > given.report.epsilon
    assert (given.lifetime_reports, given.lifetime) == (None, None)
    assert given.most_reports == 366
    assert given.worst_year.epsilon == pytest.approx(366 * mechanism.fresh_epsilon)
    change = given.memory.change
    assert change is not None
    assert change.memos.epsilon == pytest.approx(2 * mechanism.lifetime_epsilon)
    assert change.memos.epsilon < change.epsilon <= change.reports * given.each.epsilon


def test_the_cap_bounds_the_sum():
    """A registry's own lifetime ends every metric, and all of them together; per device of a
    household."""
    registry = declared(cap="lifetime_epsilon = 3.0", memory=True)
    whole = all_together(registry, 2)
    assert whole.cap == 3.0
    assert whole.lifetime is not None
    assert whole.lifetime.epsilon == whole.worst_year.epsilon == 6.0
    browser = whole.metrics[1]
    assert browser.lifetime_reports == math.floor(3 / (browser.each.epsilon / 2))
    assert whole.metrics[0].lifetime_reports == 3


def test_words_never_understate():
    """Factors, chances and figures in text are at least what they stand for."""
    assert rounded_up(Fraction(1, 3), 2) == "0.34"
    assert rounded_up(1234.0, 0) == "1,234"
    assert (rounded_up(1.3, 3), rounded_up(1.300001, 3)) == ("1.300", "1.301")
    assert factor(Bound(1.0)) == "2.72"
    assert factor(Bound(5.0)) == "149"
    assert factor(Bound(14.0)) == "1,210,000"
    assert factor(Bound(20.0)) == "486,000,000"
    assert factor(Bound(20.1)) == "> 485,000,000"
    assert chance(Bound(1.0)) == "73.2"
    assert chance(Bound(8.0)) == "99.97"
    assert chance(Bound(50.0)) == "100"


NUMBER = re.compile(r"[0-9][0-9.,^]*")


@st.composite
def legal(draw):
    """A registry of one or two metrics with any numbers that can be loaded."""
    cap = draw(st.none() | st.floats(0.01, 10_000))
    metrics = {}
    for name in ("m", "n")[: draw(st.integers(1, 2))]:
        keys = {"type": "boolean"}
        if draw(st.booleans()):
            keys = {"type": "category", "values": [f"v{i}" for i in range(draw(st.just(50)))]}
        epsilon = draw(st.floats(0.01, 10))
        keys["epsilon"], low = epsilon, epsilon
        if draw(st.booleans()):
            low = draw(st.floats(min(20.0, 1.05 * epsilon), 20.0))
            keys |= {"longitudinal": "memoize", "memo_epsilon": low}
        keys["lifetime_epsilon"] = draw(st.floats(low, 10_000))
        keys["sample_rate"] = draw(st.floats(1e-9, 1))
        keys["window"] = draw(st.sampled_from(["day", "week", "month"]))
        metrics[name] = keys
    text = registry_text(**metrics)
    if cap is not None:
        text = f"lifetime_epsilon = {cap!r}\n{text}"
    try:
        return Registry.parse(text)
    except RegistryError:
        # A memo so near to epsilon that no mechanism fits.
        reject()


@settings(max_examples=20)
@given(legal())
def test_each_label_can_be_read(registry):
    """No figure of a label, in a terminal or on a page, is too long to read or a power of ten, and
    where a bound says nothing, the label says that."""
    console = Console(width=200, file=io.StringIO())
    show(together_document(all_together(registry)), console)
    for metric in registry:
        show(guarantee_document(guarantee_in(registry, metric)), console)
        given = guarantee_in(registry, metric)
        memory, filters = given.memory, LABEL_FILTERS
        memos = (memory.memo, memory.edited) if memory else ()
        for each in (given.report, given.each, given.typical_year, given.worst_year,
                     given.lifetime, *memos):  # fmt: skip
            if each is None:
                continue
            told = {name: filters[name](each) for name in ("epsilon", "factor", "guess")}
            assert max(map(len, told.values())) <= 13
            assert each.useful == (told["epsilon"] != "> 20")
            assert "^" not in told["factor"]
        if memory is not None:
            assert memory.memo.useful
            bounds = [memory.memo, memory.values, memory.edited]
            cap = math.inf if registry.lifetime_epsilon is None else registry.lifetime_epsilon
            assert all(each.epsilon <= cap for each in bounds if each is not None)
    shown = console.file.getvalue()
    assert all(len(each) <= 11 and "^" not in each for each in NUMBER.findall(shown))


@pytest.mark.parametrize("case", CASES)
def test_derivation_leads_to_the_odds_in_force(case):
    """For every mechanism that ships, the two probabilities have the mechanism's odds, exactly."""
    mechanism = CASES[case][0]
    found = derivation_of(mechanism)
    assert (found.high / found.low) ** found.times == mechanism.odds
    assert 0 < found.low < found.high < 1
    words = found.words
    assert ("memo_rule" in words) == ("fresh_rule" in words) == isinstance(mechanism, Memoizing)
    assert words["made"].endswith(".")
    assert words["source"]
    assert found.times == 1 or words["times_rule"]


_WHOLE = [
    case
    for case, (mechanism, _, _) in CASES.items()
    if [row.packing for row in mechanism.rows] == [Packing.INDEX]
]


@pytest.mark.parametrize("case", _WHOLE)
def test_probabilities_are_those_of_whole_reports(case):
    """Where a report is one column of one row, the derivation has the largest and the smallest
    probability of any report, exactly."""
    mechanism, items, _ = CASES[case]
    found = derivation_of(mechanism)
    (row,) = mechanism.rows
    chances = [
        Fraction(mechanism.likelihood(Report(0, column), item))
        for column in range(row.width)
        for item in items
    ]
    assert max(chances) == found.high
    assert min(chances) == found.low


def test_turns_bound_the_worst_year():
    """A device that reports on one day in 92 has at most four turns in a year of 366 days, though
    its lifetime would allow more; the typical year is the rate times its days."""
    keys = {"type": "boolean", "epsilon": 1.0, "lifetime_epsilon": 100.0, "one_in": 92}
    text = registry_text(m=keys)
    found = guarantee(Registry.parse(text)["m"])
    assert found.most_reports == 4
    assert found.typical_reports == pytest.approx(365.25 / 92, rel=0.01)
    assert found.lifetime_reports == 100
