"""Fakes that leave traces raise an alarm, and what a tally is certain of about its range."""

import numpy as np
import pytest
from tests.estimator.numbers.crowds import distribution, sample_crowd, sample_rows, sample_window
from tests.supports import support

from deniable.protocol.mechanisms import Report
from deniable.protocol.mechanisms.number_range import TOP, NumberRange
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.anomalies import LEAST_REPORTS
from deniable_estimator.analyses.numbers.hierarchical_histogram import (
    HierarchicalHistogramAnalysis,
)
from deniable_estimator.analyses.numbers.sliding_window import SlidingWindowAnalysis
from deniable_estimator.kinds.numbers.distribution import range_notes


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_a_group_of_columns_is_independent_of_the_number(make_window, epsilon):
    """Columns of one remainder modulo the width have one probability for all numbers, exactly."""
    window = make_window(epsilon)
    for remainder in (0, 1, window.width - 1):
        chances = {
            sum(
                window.likelihood(Report(0, column), position)
                for column in range(remainder, window.columns, window.width)
            )
            for position in (0, 987_654, TOP // 2, TOP)
        }
        assert len(chances) == 1


def _window(window, row):
    return SlidingWindowAnalysis(window).tests([row])


def _tree(tree, rows):
    return HierarchicalHistogramAnalysis(tree).tests(rows)


def _alarms(figures):
    return {name for name, _, _, p_value in figures if p_value < 1e-4}


def test_fakes_in_one_column(make_window):
    """1% of fakes who all send the last column are too many for its group, even where the honest
    devices are all at `low`; where they are at `high`, for the column alone as well."""
    window = make_window(1.0)
    rng = np.random.default_rng(3)
    alarms = []
    for position in (0, TOP):
        row = sample_window(window, np.array([position]), np.array([99_000]), rng)
        cells = row.cells.copy()
        cells[-1] += 1000
        alarms.append(_alarms(_window(window, TallyRow(100_000, cells))))
    assert alarms[0] == {"groups"}
    assert alarms[1] == {"groups", "commonest"}


def test_columns_that_nobody_sends(make_window):
    """A column without reports is not honest, since noise sends each."""
    window = make_window(1.0)
    row = sample_window(window, np.array([0]), np.array([20_000]), np.random.default_rng(4))
    cells = row.cells.copy()
    cells[63] = 0
    row = TallyRow(int(cells.sum()), cells)
    assert "rarest" in _alarms(_window(window, row))


def _attacked(tree, row, column, fakes, seed):
    """50,000 devices with all numbers, and fakes in one column of one row."""
    rng = np.random.default_rng(seed)
    rows = list(sample_rows(tree, np.arange(0, TOP, TOP // 512), np.full(512, 100), rng))
    cells = rows[row].cells.copy()
    cells[column] += fakes
    rows[row] = TallyRow(rows[row].reports + fakes, cells)
    return rows


@pytest.mark.parametrize(
    ("row", "expected"), [(0, {"rows", "agreement"}), (2, {"rows", "agreement", "repeated"})]
)
def test_fakes_in_one_row(make_tree, row, expected):
    """Fakes who choose the row that suits them are too many in it, and it disagrees with others."""
    tree = make_tree(1.0, 64)
    fakes = _attacked(tree, row, 1, 2500, 5)
    assert expected <= _alarms(_tree(tree, fakes))


def test_nodes_below_zero(make_tree):
    """A row whose reports all lie in columns that a node does not own has a share below zero."""
    tree = make_tree(2.0, 64)
    level = tree.levels[2]
    owned = {column for _, column in support(level, 7)}
    other = next(column for column in range(level.rows[0].width) if column not in owned)
    found = _alarms(_tree(tree, _attacked(tree, 2, other, 40_000, 6)))
    assert {"lowest", "low"} <= found


def test_columns_without_a_node_are_not_judged(make_tree):
    """Where there are more columns than nodes, the nodes alone have a share that can be low."""
    tree = make_tree(1.0, 64)
    level = tree.levels[2]
    rows = _attacked(tree, 2, 1, 0, 8)
    n, q = rows[2].reports, float(level.q)
    supports = [
        sum(int(rows[2].cells[column]) for _, column in support(level, node))
        for node in range(level.size)
    ]
    few = n * q - (n * q * (1 - q)) ** 0.5 - 0.5
    figures = {name: observed for name, observed, _, _ in _tree(tree, rows)}
    assert level.rows[0].width > level.size
    assert figures["low"] == sum(support < few for support in supports)


def test_a_mean_out_of_range(make_window):
    """A mean far above `high` is nobody's."""
    window = make_window(1.0)
    cells = np.full(64, 100)
    cells[32:] = 300
    assert "outside" in _alarms(_window(window, TallyRow(12_800, cells)))


def test_small_tallies_are_not_judged(make_tree, make_window):
    """With fewer reports than it takes there are no figures."""
    few = LEAST_REPORTS - 1
    rng = np.random.default_rng(7)
    window, tree = make_window(1.0), make_tree(1.0, 64)
    row = sample_window(window, np.array([TOP]), few, rng)
    rows = sample_rows(tree, np.array([TOP]), np.array([few]), rng)
    for analysis, some in (
        (SlidingWindowAnalysis(window), (row,)),
        (HierarchicalHistogramAnalysis(tree), tuple(rows)),
    ):
        assert analysis.figures([Tally("m", "f" * 12, ("2026-01-01",), some)], [1.0]) == [()]
    both = make_tree(1.0, 64, True)
    rows = sample_rows(both, np.array([TOP]), np.array([2 * LEAST_REPORTS]), rng)
    assert rows[-1].reports < LEAST_REPORTS
    assert {name for name, *_ in _tree(both, rows)} <= {"rows", "lowest", "low", "repeated"}


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ({0: 0.05, 255: 0.0}, ["lie below low"]),
        ({0: 0.0, 255: 0.2}, ["lie at high"]),
        ({0: 0.002, 255: 0.002}, []),
        ({100: 0.3, 101: 0.1, 103: 0.3}, ["lie in 4 neighbouring cells"]),
        ({100: 0.4, 120: 0.4}, []),
    ],
)
def test_findings(make_tree, cells, told):
    """Of a million reports, with these shares of some cells and the rest spread evenly."""
    tree = make_tree(2.0)
    shares = np.full(256, (1 - sum(cells.values())) / (256 - len(cells)))
    for cell, share in cells.items():
        shares[cell] = share
    found = distribution(tree, sample_crowd(tree, shares, 1_000_000, np.random.default_rng(1)))
    notes = list(range_notes(found, tree.range))
    assert len(notes) == len(told)
    for note, part in zip(notes, told, strict=True):
        assert part in note
        truth = max(cells.values()) if len(cells) == 2 else 0.7
        assert 0.9 * truth < note.arguments["share"] < truth + 0.01


def test_small_crowds_know_no_better(make_tree):
    """From 1,000 reports nothing of this is certain."""
    tree = make_tree(1.0)
    shares = np.full(256, 0.9 / 255)
    shares[0] = 0.1
    found = distribution(tree, sample_crowd(tree, shares, 1000, np.random.default_rng(2)))
    assert not list(range_notes(found, tree.range))


def test_few_whole_numbers_are_no_waste(make_tree):
    """Where there are few numbers, each with a cell, most of them being one is no finding; nor are
    the cells that are left over."""
    for high, cells in (("9", 16), ("100", 256)):
        numbers = NumberRange("0", high, integer=True)
        tree = make_tree(4.0, numbers=numbers)
        assert tree.cells == cells
        positions = np.array([*tree.edges[:-1], TOP])
        inside = np.unique(positions[positions < TOP])
        rows = sample_rows(tree, inside, np.full(len(inside), 20_000), np.random.default_rng(3))
        found = distribution(tree, rows)
        assert found.crowded is None
        assert not list(range_notes(found, numbers))
