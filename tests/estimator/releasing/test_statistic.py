"""What receives noise: how far a report moves it, and intervals that cover the truth."""

from fractions import Fraction

import numpy as np
import pytest
from tests.estimator.schemes import every_report
from tests.supports import support

from deniable import Scheme
from deniable.protocol.mechanisms.compatible import HadamardResponse, UnaryEncoding
from deniable.protocol.mechanisms.dbitflip import DBitFlip
from deniable.protocol.mechanisms.hashed import HashedProjectiveGeometry
from deniable.protocol.mechanisms.hierarchical_histogram import HierarchicalHistogram
from deniable.protocol.mechanisms.number_range import NumberRange
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses import analysis_of
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.basis import Part
from deniable_estimator.kinds.registry import answer_of
from deniable_estimator.releasing.noise import noise_of
from deniable_estimator.releasing.statistic import (
    MOST_STRINGS,
    MessageCounts,
    SupportCounts,
    statistic_of,
)
from deniable_estimator.statistics.participation import Participation

HISTOGRAMS = {
    "tree": HierarchicalHistogram.design(NumberRange("0", "10"), 2.0, 16),
    "tree with a mean": HierarchicalHistogram.design(NumberRange("0", "10"), 2.0, 16, mean=True),
    "bits": DBitFlip.design(NumberRange("0", "10"), 2.0, 4.0, cells=16),
}

HASHED = HashedProjectiveGeometry("browser", 4, ProjectiveGeometry.design(60, 2.0))
"""Small tables, in which strings collide."""

STRINGS = [f"word{number}" for number in range(12)]


def counting(oracle):
    """A scheme of a closed list."""
    return Scheme("category", oracle, tuple(f"v{i}" for i in range(oracle.size or 0)))


def statistic(scheme, rows, strings, method="exponential"):
    """That of a tally of one window."""
    tally = Tally("browser", scheme.fingerprint, ("2026-11-01",), tuple(rows))
    part = Part(tally, scheme, strings, Participation.evenly(tally))
    return statistic_of(part, method)


def one_report(scheme, row, columns):
    """The tally of a single report."""
    rows = []
    for number, each in enumerate(scheme.mechanism.rows):
        cells = np.zeros(each.width, np.int64)
        if number == row:
            cells[list(columns)] = 1
        rows.append(TallyRow(int(number == row), cells))
    return rows


ORACLES = {
    "boolean": SubsetSelection.design(2, 1.0),
    "subset selection": SubsetSelection.design(7, 1.0, 3),
    "most of the values": SubsetSelection.design(5, 0.2, 4),
    "unary encoding": UnaryEncoding.optimized(5, 1.0),
    "projective geometry": ProjectiveGeometry.design(11, 1.0),
    "Hadamard response": HadamardResponse.design(6, 1.0),
    "long list": ProjectiveGeometry.design(60, 1.0),
}


@pytest.mark.parametrize("method", [None, "laplace"])
@pytest.mark.parametrize("name", ORACLES)
def test_the_sensitivity_is_that_of_the_worst_two_reports(name, method):
    """Over all pairs of reports, no two differ more than is said. Where reports are sets or bits,
    some do differ as much."""
    oracle = ORACLES[name]
    scheme = counting(oracle)
    found = [
        np.array(statistic(scheme, one_report(scheme, report.row, columns), None, method).exact())
        for report, columns in every_report(oracle)
    ]
    said = statistic(scheme, one_report(scheme, 0, [0]), None, method).sensitivity
    most = max(int(np.abs(one - other).sum()) for one in found for other in found)
    squares = max(int(np.square(one - other).sum()) for one in found for other in found)
    assert most <= said.l1
    assert squares <= said.l2_squared
    if oracle.rows[0].columns is None or isinstance(oracle, SubsetSelection):
        assert most == said.l1


def test_a_long_list_takes_its_noise_where_it_costs_less():
    """With Laplace noise each message of a list of 60 values has noise, which moves shares by less
    than a tenth of the variance of noise on the values; of a boolean the values have it."""
    long, short = ORACLES["long list"], ORACLES["boolean"]
    for oracle, other in ((long, MessageCounts), (short, SupportCounts)):
        scheme = counting(oracle)
        report = one_report(scheme, 0, [0])
        chosen = statistic(scheme, report, None, "laplace")
        values = statistic(scheme, report, None)
        assert type(chosen) is other
        added = [
            each.variances(noise_of("laplace", Fraction(1), 1e-8, each.sensitivity).variance)[1]
            for each in (chosen, values)
        ]
        assert added[0] < 0.1 * added[1] if oracle is long else added[0] == added[1]


def test_the_sensitivity_of_hashed_strings_covers_each_row():
    """Over the reports of each row, every ninth beside all others, no two differ more than is said,
    and it is at most the number of strings."""
    oracle = HASHED
    scheme = Scheme("string", oracle, ())
    said = statistic(scheme, one_report(scheme, 0, [0]), STRINGS).sensitivity
    for row in range(len(oracle.rows)):
        held = [
            {column for each, column in support(oracle, text) if each == row} for text in STRINGS
        ]
        width = oracle.rows[row].width
        counted = [
            np.array([column in cells for cells in held], np.int64) for column in range(width)
        ]
        most = max(int(np.abs(a - b).sum()) for a in counted[::9] for b in counted)
        assert most <= said.l1 <= len(STRINGS)


def test_the_sensitivity_of_a_mean_is_that_of_its_scores():
    """Two reports differ by the largest score minus the smallest at most, and some do."""
    window = SlidingWindow.design(NumberRange("0", "10"), 1.0)
    scheme = Scheme("number", window, ())
    width = window.rows[0].width
    found = [
        statistic(scheme, one_report(scheme, 0, [column]), None).exact()[0]
        for column in range(width)
    ]
    said = statistic(scheme, one_report(scheme, 0, [0]), None).sensitivity
    assert max(found) - min(found) == said.l1
    assert said.l2_squared == said.l1**2


@pytest.mark.parametrize("name", ["tree", "tree with a mean", "bits"])
def test_the_sensitivity_of_a_distribution_is_that_of_a_row(name):
    """Over pairs of reports of the same row no two differ more than is said."""
    scheme = Scheme("number", HISTOGRAMS[name], ())
    said = statistic(scheme, one_report(scheme, 0, [0]), None).sensitivity
    for number, row in enumerate(scheme.mechanism.rows):
        reports = [[0], [row.width - 1]] if row.columns == 1 else [[], list(range(row.width))]
        one, other = (
            np.array(statistic(scheme, one_report(scheme, number, columns), None).exact())
            for columns in reports
        )
        assert int(np.abs(one - other).sum()) <= said.l1
        assert int(np.square(one - other).sum()) <= said.l2_squared


def test_too_many_strings_are_refused():
    """Their collisions are solved for together, so there is a limit."""
    scheme = Scheme("string", HASHED, ())
    strings = [f"w{number}" for number in range(MOST_STRINGS + 1)]
    with pytest.raises(EstimateError, match="at most 2,000 strings"):
        statistic(scheme, one_report(scheme, 0, [0]), strings)


@pytest.mark.parametrize("name", ORACLES)
def test_noise_on_the_support_widens_every_interval(name):
    """Without noise a release says the shares of the estimate. The variance of a share grows by
    that of the noise over the square of what a report moves, for each counter that it adds up."""
    oracle = ORACLES[name]
    scheme = counting(oracle)
    counts = 100 * np.arange(1, oracle.size + 1)
    rows = analysis_of(oracle).sample_rows(range(oracle.size), counts, np.random.default_rng(3))
    asked = statistic(scheme, rows, None, "laplace")
    quiet, loud = (asked.answer(asked.exact(), variance).series for variance in (0.0, 900.0))
    plain = answer_of(asked.tally, scheme).series
    np.testing.assert_allclose(quiet.value, plain.value, atol=1e-9)
    np.testing.assert_allclose(loud.value, plain.value, atol=1e-9)
    np.testing.assert_allclose(quiet.std_error, plain.std_error, rtol=0.02)
    gap = float(oracle.p - oracle.q)
    times = len(support(oracle, 1)) if isinstance(asked, MessageCounts) else 1
    added = times * 900 / (counts.sum() * gap) ** 2
    np.testing.assert_allclose(loud.std_error**2 - quiet.std_error**2, added)


def test_collisions_of_listed_strings_are_solved_for():
    """Strings that share columns in a few rows are estimated without bias: of 20 billion devices
    each share is within 5 standard errors of the truth (12 comparisons, alpha below 1e-5, seed
    4)."""
    counts = np.round(2e10 * 0.6 ** np.arange(12) / sum(0.6 ** np.arange(12))).astype(np.int64)
    rows = analysis_of(HASHED).sample_rows(STRINGS, counts, np.random.default_rng(4))
    asked = statistic(Scheme("string", HASHED, ()), rows, STRINGS)
    series = asked.answer(asked.exact(), 0.0).series
    assert (np.abs(series.value - counts / counts.sum()) < 5 * series.std_error).all()


def test_a_single_string_has_noise():
    """A report either supports it or not: two reports differ by one."""
    scheme = Scheme("string", HASHED, ())
    said = statistic(scheme, one_report(scheme, 0, [0]), STRINGS[:1]).sensitivity
    assert (said.l1, said.l2_squared) == (1, 1)


@pytest.mark.parametrize("name", ["tree", "bits"])
def test_noise_on_counters_widens_a_distribution(name):
    """Without noise a release says what the estimate does (of 400,000 devices spread evenly over 0
    to 10, the median to 0.2). Noise adds to the variance what is said, and no verdict is given."""
    mechanism = HISTOGRAMS[name]
    scheme = Scheme("number", mechanism, ())
    rng = np.random.default_rng(5)
    items = np.linspace(0, 1 << 30, 1000).astype(np.int64)
    rows = analysis_of(mechanism).sample_rows(items, np.full(1000, 400), rng)
    asked = statistic(scheme, rows, None)
    own, added = asked.variances(1e6)
    again, less = asked.variances(1e5)
    assert own == again > 0
    assert added == pytest.approx(10 * less)
    quiet, loud = (asked.answer(asked.exact(), variance) for variance in (0.0, 1e8))
    place = quiet.series.place("p50")
    assert place is not None
    assert quiet.series.value[place] == pytest.approx(5, abs=0.2)
    widths = [each.series.high[place] - each.series.low[place] for each in (quiet, loud)]
    assert widths[1] > 1.2 * widths[0]
    assert not loud.verdict.alarms(0.05)


def test_noise_on_the_scores_widens_a_mean():
    """A release without noise says what the estimate does: of 200,000 devices with 2.5 or 5 of 0 to
    10, a mean of 3.75 within 0.1 (5 standard errors, seed 6). Noise of V on the sum adds V over
    the square of reports to the variance."""
    window = SlidingWindow.design(NumberRange("0", "10"), 2.0)
    scheme = Scheme("number", window, ())
    rng = np.random.default_rng(6)
    items, counts = np.array([1 << 28, 1 << 29]), np.array([100_000, 100_000])
    rows = analysis_of(window).sample_rows(items, counts, rng)
    asked = statistic(scheme, rows, None)
    n, unit = 200_000, float(1 << 20)
    own, added = asked.variances((unit * 1000) ** 2)
    assert added == pytest.approx((1000 / n) ** 2)
    assert 0 < own < 10 / n
    quiet, loud = (asked.answer(asked.exact(), each) for each in (0.0, (unit * 1000) ** 2))
    assert quiet.series.value[0] == loud.series.value[0] == pytest.approx(3.75, abs=0.1)
    gained = loud.series.std_error[0] ** 2 - quiet.series.std_error[0] ** 2
    assert gained == pytest.approx(25 * added, rel=1e-6)
    assert quiet.series.std_error[0] >= 5 * own**0.5
