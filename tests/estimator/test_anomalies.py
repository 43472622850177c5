"""Anomaly figures: p-values beside scipy's, and what is not judged."""

import numpy as np
import pytest
from scipy import stats

from deniable import Scheme
from deniable.protocol.mechanisms.compatible import UnaryEncoding
from deniable.protocol.mechanisms.hashed import CountMeanSketch
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses import oracle_analysis
from deniable_estimator.analyses.anomalies import Figure, Verdict
from deniable_estimator.kinds.registry import answer_of
from deniable_estimator.statistics.intervals import Noise


def figures_of(tally, mechanism, share, noise, repeats=1.0):
    """The figures of a tally of this mechanism."""
    analysis, noise = oracle_analysis(mechanism), noise.turned(np.atleast_2d)
    shares = analysis.share_tests(share[np.newaxis], noise)
    return analysis.figures([tally], [repeats], shares)[0]


@pytest.mark.parametrize("counts", [(900, 1100), (950, 1000, 1050), (500, 540, 480, 470, 510)])
def test_uneven_rows_have_the_p_value_of_pearson(counts):
    """The figure of the rows is Pearson's test of equal numbers, with one degree of freedom less
    than there are rows."""
    mechanism = CountMeanSketch("city", len(counts), UnaryEncoding.symmetric(128, 2.0))
    rows = tuple(TallyRow(n, np.zeros(128, np.int64)) for n in counts)
    tally = Tally("", "", ("2027-01-04",), rows)
    (found,) = [each for each in figures_of(tally, mechanism, *nothing()) if each.name == "rows"]
    expected = stats.chisquare(counts)
    assert found.observed == pytest.approx(expected.statistic, rel=1e-9)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.expected == len(counts) - 1


@pytest.mark.parametrize("repeats", [1.0, 3.0])
@pytest.mark.parametrize("rows", [2, 3, 5])
def test_the_ones_of_rows_have_the_p_value_of_chi_square(rows, repeats):
    """Each row's ones are compared with those that the mechanism makes in it on average, which is
    known and not fitted: as many degrees of freedom as there are rows with ten reports or more."""
    channel = UnaryEncoding.symmetric(128, 2.0)
    mechanism = CountMeanSketch("city", rows + 1, channel)
    p, q = float(channel.p), float(channel.q)
    each, variance = p + 127 * q, repeats * (p * (1 - p) + 127 * q * (1 - q))
    reports = [1000 + 10 * place for place in range(rows)]
    moved = [0.5 + 0.9 * place for place in range(rows)]
    statistic, built = 0.0, []
    for n, away in zip(reports, moved, strict=True):
        ones = round(n * each + away * np.sqrt(n * variance))
        statistic += (ones - n * each) ** 2 / (n * variance)
        cells = np.zeros(128, np.int64)
        cells[:] = ones // 128
        cells[0] += ones % 128
        built.append(TallyRow(n, cells))
    built.append(TallyRow(9, np.full(128, 9)))
    tally = Tally("", "", ("2027-01-04",), tuple(built))
    found = {each.name: each for each in figures_of(tally, mechanism, *nothing(), repeats)}
    assert found["row_ones"].observed == pytest.approx(statistic, rel=1e-9)
    assert found["row_ones"].p_value == pytest.approx(stats.chi2.sf(statistic, rows), rel=1e-6)
    assert found["row_ones"].expected == rows


def alike(size, skewness=0.0):
    """The noise of so many values whose standard error is .1."""
    return Noise(
        *(np.full(size, number) for number in (0.01, 0.1 * skewness, 1e-4, 0.001)),
    )


@pytest.mark.parametrize(("size", "names"), [(3, {"lowest"}), (4, {"lowest", "low"})])
def test_few_values_are_not_counted(size, names):
    """Of fewer than four values not even all below zero by so much would be an alarm."""
    mechanism = SubsetSelection.design(size, 1.0, 1)
    tally = Tally("", "", ("2027-01-04",), (TallyRow(1000, np.full(size, 1000 // size)),))
    share = np.full(size, -0.15)
    found = {each.name: each for each in figures_of(tally, mechanism, share, alike(size))}
    assert found.keys() == names
    assert found["lowest"].observed == -0.15
    assert found["lowest"].p_value == pytest.approx(size * stats.norm.sf(1.495), rel=1e-9)
    if "low" in found:
        chance = stats.norm.sf(1)
        assert found["low"].p_value == pytest.approx(chance**4, rel=1e-9)
        assert (found["low"].observed, found["low"].expected) == pytest.approx((4, 4 * chance))


@pytest.mark.parametrize(("skewness", "told"), [(0.49, True), (0.51, False), (-0.51, False)])
def test_skewed_tails_are_not_judged(skewness, told):
    """Above a skewness of a half the lower tail is not what it seems, and nothing is said of it."""
    mechanism = SubsetSelection.design(5, 1.0, 1)
    tally = Tally("", "", ("2027-01-04",), (TallyRow(1000, np.full(5, 200)),))
    names = {each.name for each in figures_of(tally, mechanism, np.zeros(5), alike(5, skewness))}
    assert ("lowest" in names) is told


def nothing():
    return np.zeros(0), Noise.none(0)


def test_too_few_reports_are_not_judged():
    """Below the least number of reports there are no figures and no alarm, whatever they say."""
    scheme = Scheme("category", SubsetSelection.design(5, 1.0, 1), tuple("abcde"))
    for reports in (999, 1_000):
        row = TallyRow(reports, np.array([reports, 0, 0, 0, 0]))
        tally = Tally("m", scheme.fingerprint, ("2027-01-04",), (row,))
        found = answer_of(tally, scheme)
        assert found.anomalous is (reports == 1_000)
        assert bool(found.verdict.figures) is found.anomalous


def test_p_values_are_adjusted_as_by_hand():
    """Holm's adjustment: times 3, 2 and 1 from the smallest on, never falling."""
    made = [
        Figure(name, "", 0, 0, p) for name, p in (("ones", 0.04), ("rows", 0.01), ("low", 0.03))
    ]
    verdict = Verdict.of(made)
    assert [each.p_adjusted for each in verdict.figures] == pytest.approx([0.06, 0.03, 0.06])
    assert [each.name for each in verdict.alarms(0.05)] == ["rows"]
    document = verdict.to_dict(0.05)
    assert document["anomalous"] is True
    assert document["figures"][1]["p_adjusted"] == pytest.approx(0.03)
