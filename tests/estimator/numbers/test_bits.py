"""dBitFlip: unbiased sums of shares, their covariances, and how often intervals cover."""

import itertools
import math

import numpy as np
import pytest

from deniable.protocol.mechanisms.base import ONE
from deniable.protocol.mechanisms.dbitflip import DBitFlip
from deniable.protocol.mechanisms.number_range import NumberRange
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.numbers.dbitflip import BitPart, DBitFlipAnalysis

UNIT = NumberRange("0", "1")
COARSE = DBitFlip(UNIT, 16, 4, ONE // 4, ONE // 4)
"""Its bits are flipped with probability 3/8."""


def population(cells):
    """Shares that fall from cell to cell, with some at both ends."""
    shares = 0.8 ** np.arange(cells, dtype=np.float64)
    shares[-1] = 0.05
    return np.asarray(shares / shares.sum())


def places(mechanism):
    """A position in each cell."""
    return np.array([-1, *mechanism.edges])


def crowd(mechanism, shares, reports, rng):
    """The rows of devices that are drawn from a population and report once each."""
    counts = rng.multinomial(reports, shares)
    return DBitFlipAnalysis(mechanism).sample_rows(places(mechanism), counts, rng)


def estimate_bits(mechanism, rows):
    """What the rows say of sums of shares."""
    return DBitFlipAnalysis(mechanism).sums(rows, 1.0)


def estimate(mechanism, rows):
    return DBitFlipAnalysis(mechanism).distribution(rows, 0.95, 1.0)


def test_expected_counters_give_the_shares():
    """From exactly the counters that are expected, every share is that of the crowd."""
    devices = np.arange(1, 17) * 8
    total = int(devices.sum())
    rows = []
    for row in range(4):
        own = devices[row::4]
        rows.append(TallyRow(total, (own * 5 + (total - own) * 3) // 8))
    found = estimate_bits(COARSE, tuple(rows))
    truth = devices / total
    np.testing.assert_allclose(np.diff(found.below), truth, atol=1e-12)
    for start, end in ((0, 16), (3, 9), (2.25, 2.75), (0.5, 15.5)):
        weights = np.clip(end - np.arange(16), 0, 1) - np.clip(start - np.arange(16), 0, 1)
        assert found.share(start, end)[0] == pytest.approx(float(weights @ truth))
    values, covariance = found.fresh(np.eye(16))
    np.testing.assert_allclose(values, truth, atol=1e-12)
    edge = np.tri(17, 16, -1)
    np.testing.assert_allclose(
        found.variance, np.diag(edge @ covariance @ edge.T), rtol=1e-9, atol=1e-15
    )


def test_covariances_are_those_of_a_report():
    """For 2 questions at once: over all numbers, rows and bitmaps of a report, enumerated, with a
    memo that two reports have in common, the covariance is that of the average of two reports."""
    mechanism = DBitFlip(UNIT, 4, 2, ONE // 8, ONE // 5)
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    questions = np.array([[1.0, 0.0, 0.0, 0.0], [0.3, -1.0, 2.0, 0.7]])
    centred = questions - questions.mean(axis=1, keepdims=True)
    s, a, g = float(mechanism.flipped), mechanism.memo / ONE, mechanism.fresh / ONE
    expected = np.zeros((2, 2))
    for row in range(2):
        own = centred[:, row::2] / (1 - 2 * s)
        mean, square = np.zeros(2), np.zeros((2, 2))
        for cell, memo in itertools.product(range(4), range(4)):
            true = 1 << cell // 2 if cell % 2 == row else 0
            wrong = (memo ^ true).bit_count()
            chance = shares[cell] * a**wrong * (1 - a) ** (2 - wrong)
            chances, score = [], []
            for columns in range(4):
                flips = (memo ^ columns).bit_count()
                chances.append(g**flips * (1 - g) ** (2 - flips))
                score.append(own @ np.array([(columns >> bit & 1) - s for bit in range(2)]))
            for one, other in itertools.product(range(4), range(4)):
                average = (score[one] + score[other]) / 2
                mean += chance * chances[one] * chances[other] * average
                square += chance * chances[one] * chances[other] * np.outer(average, average)
        np.testing.assert_allclose(mean, centred[:, row::2] @ shares[row::2], atol=1e-12)
        # 100 devices a row, with 2 reports each.
        expected += (square - np.outer(mean, mean)) / 100
    noise, kept = (each * (1 - each) / (1 - 2 * each) ** 2 for each in (s, a))
    part = BitPart(1.0, np.array([200.0, 200.0]), shares, noise + kept, 2.0, True)
    np.testing.assert_allclose(part.fresh(questions)[1], expected, rtol=1e-9)


def test_a_row_without_reports_leaves_everything_open():
    """Bits of a row say nothing of other rows: no share is known, and no quantile has limits."""
    rng = np.random.default_rng(6)
    rows = crowd(COARSE, population(16), 1000, rng)
    found = estimate(COARSE, (*rows[:3], TallyRow(29, rows[3].cells * 0)))
    assert np.isinf(found.variance).all()
    np.testing.assert_allclose(found.sums.below, np.arange(17) / 16)
    assert math.isinf(found.sums.share(2, 5)[1])
    quantile = found.quantile(0.5)
    assert (quantile.low, quantile.high) == (None, None)
    assert math.isinf(DBitFlipAnalysis(COARSE).mean_of(found.sums).variance)
    empty = tuple(TallyRow(0, np.zeros(4, np.int64)) for _ in range(4))
    np.testing.assert_allclose(estimate_bits(COARSE, empty).below, np.arange(17) / 16)


def test_planned_variances_are_those_of_large_crowds():
    """Of 200,000 reports of an even crowd, without its sampling, n times the variances are the
    planned ones: on average over edges, at the ends and of the mean."""
    mechanism = DBitFlip.design(UNIT, 1.0, 2.0, 64)
    rows = crowd(mechanism, np.full(64, 1 / 64), 200_000, np.random.default_rng(8))
    found = estimate_bits(mechanism, rows)
    below = np.arange(65) / 64
    noise = found.variance * 200_000 - below * (1 - below)
    assert noise[1:-1].mean() == pytest.approx(mechanism.edge_variance, rel=0.02)
    at_ends = float(mechanism.share_variance) * 63 / 64
    assert max(noise[1], noise[-2]) == pytest.approx(at_ends, rel=0.05)
    analysis = DBitFlipAnalysis(mechanism)
    mean = analysis.mean_of(found).variance * 200_000
    spread = float(np.square(analysis.points).mean() - analysis.points.mean() ** 2)
    assert mean == pytest.approx(analysis.planned_mean() + spread, rel=0.02)


def test_fakes_move_answers_as_far_as_told():
    """Fakes that send the best bitmap in the best rows move the mean, and the share below the worst
    edge, by what is told, and no bitmap in any row moves the mean further."""
    devices, fakes = 160_000, 1600
    share = fakes / (devices + fakes)
    mechanism = DBitFlip(UNIT, 16, 4, ONE // 4, ONE // 4)
    even = devices // 4
    honest = [np.full(4, (even // 16 * 5 + even * 15 // 16 * 3) / 8) for _ in range(4)]
    (points,) = DBitFlipAnalysis(mechanism).points

    def moved(weights, sent):
        cells, reports = [each.copy() for each in honest], [even] * 4
        for row, bitmap in sent:
            cells[row] += bitmap * (fakes / len(sent))
            reports[row] += fakes / len(sent)
        rows = tuple(map(TallyRow, reports, cells))
        before = estimate_bits(mechanism, tuple(map(TallyRow, [even] * 4, honest)))
        found = estimate_bits(mechanism, rows)
        return float((found.fresh(weights[None])[0] - before.fresh(weights[None])[0])[0])

    attack = DBitFlipAnalysis(mechanism).attack(0.0, share)
    bitmaps = [np.array(each, np.float64) for each in itertools.product((0, 1), repeat=4)]
    moves = [moved(points, [(row, each)]) for row in range(4) for each in bitmaps]
    assert max(moves) <= attack.gain * (1 + 1e-9)
    assert -min(moves) <= attack.loss * (1 + 1e-9)
    assert max(moves) > 0.97 * attack.gain
    curve = DBitFlipAnalysis(mechanism).curve_attack(share)
    gains = []
    for edge in range(1, 16):
        weights = (np.arange(16) < edge).astype(np.float64)
        best = [(row, (weights - weights.mean() > 0)[row::4].astype(float)) for row in range(4)]
        for size in (1, 2, 3, 4):
            gains += [moved(weights, list(some)) for some in itertools.combinations(best, size)]
    assert max(gains) <= curve.gain * (1 + 1e-9)
    assert max(gains) > 0.97 * curve.gain
    assert DBitFlipAnalysis(mechanism).curve_attack(0.0) == (0.0, 0.0)


def figures(mechanism, rows, repeats=1.0):
    analysis = analysis_of(mechanism)
    assert isinstance(analysis, DBitFlipAnalysis)
    return analysis.figures([Tally("m", "f" * 12, ("2026-01-01",), rows)], [repeats])[0]


@pytest.mark.parametrize(
    ("bitmap", "rows", "name"), [(1, (0,), "rows"), (1, range(4), "ones"), (0, range(4), "lowest")]
)
def test_careless_fakes_raise_an_alarm(bitmap, rows, name):
    """A tenth of fakes that are all in one row, that set all bits or that set none is noticed."""
    mechanism = DBitFlip.design(UNIT, 2.0, 4.0, 64)
    honest = crowd(mechanism, population(64), 36_000, np.random.default_rng(11))
    fakes = 4000 // len(rows)
    mixed = tuple(
        TallyRow(each.reports + fakes, each.cells + fakes * bitmap) if row in rows else each
        for row, each in enumerate(honest)
    )
    p_values = {each.name: each.p_value for each in figures(mechanism, mixed)}
    assert p_values[name] < 1e-6


def test_what_memos_add():
    """The channel of a memo is its flips; a device has a memo for each bit of its row, and one for
    other rows; alternation shows more than two memos from some number of reports on, and never more
    than the fresh noise of as many reports."""
    for bits in (16, 1):
        mechanism = DBitFlip.design(UNIT, 1.0 if bits == 16 else 6.0, 8.0, 64)
        assert mechanism.bits == bits
        analysis = analysis_of(mechanism)
        assert isinstance(analysis, DBitFlipAnalysis)
        a = mechanism.memo / ONE
        assert analysis.memo_channel() == (1 - a, a)
        assert analysis.entries(None) == bits + 1
        losses = [analysis.alternation_loss(reports) for reports in (2, 8, 64, 512)]
        assert losses == sorted(losses)
        assert losses[-1] > 2 * mechanism.lifetime_epsilon
        for reports, loss in zip((2, 8, 64, 512), losses, strict=True):
            assert 0 < loss < reports * mechanism.fresh_epsilon
    single = analysis_of(DBitFlip.design(UNIT, 1.0, 8.0, 16))
    assert isinstance(single, DBitFlipAnalysis)
    assert single.entries(None) == 16
