"""Hashed strings: places, collisions that are left out, ghosts, and calibrated estimates."""

import numpy as np
import pytest
from scipy import stats

from deniable import Scheme
from deniable.protocol.mechanisms.hashed import CohortLocalHashing, HashedProjectiveGeometry
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_estimator.analyses import hashed, sample_tally
from deniable_estimator.analyses.hashed import hash_places
from deniable_estimator.kinds.registry import answer_of

SPACE = ProjectiveGeometry.best(2.0, 2000, 4000)
MECHANISM = HashedProjectiveGeometry("city", 4, SPACE)
SCHEME = Scheme("string", MECHANISM, ())
ANALYSIS = hashed.HashedProjectiveGeometryAnalysis(MECHANISM)


def meeting(text, row, count, mechanism):
    """Strings that share a place with `text` in that row, and in no other."""
    strings = [f"string {number}" for number in range(40_000)]
    places = np.array(list(hash_places(mechanism, [text, *strings])))
    same = places[:, 1:] == places[:, :1]
    only = np.flatnonzero(same[row] & (same.sum(axis=0) == 1))
    return [strings[each] for each in only[:count]]


@pytest.mark.parametrize("hashes", [1, 2, 5])
def test_places_are_the_mechanisms(hashes):
    """All rows, also an odd number of them, place strings as the device does."""
    mechanism = CohortLocalHashing("city", hashes, SubsetSelection.design(7, 1.0, k=1))
    texts = ["Oslo", "", "A\u030alesund", "\u00c5lesund", "東京"]
    rows = [place.tolist() for place in hash_places(mechanism, texts)]
    assert rows == [[mechanism.place(row, text) for text in texts] for row in range(hashes)]


def test_collisions_with_a_frequent_candidate_are_left_out():
    """A string that shares a row with a frequent candidate is estimated from its other rows.

    A million devices, 60% with one string, seed 1: 20 strings that nobody has stay within 5
    standard errors of 0 (false alarm below 2e-5), where the shared row alone would add 0.15,
    100 errors, to each. They are no ghosts, and rest on three rows' reports.
    """
    texts = ["Oslo", *meeting("Oslo", 2, 20, MECHANISM)]
    others = [f"other {number}" for number in range(4000)]
    counts = np.array([600_000] + [100] * 4000)
    tally = sample_tally(SCHEME, counts, np.random.default_rng(1), values=["Oslo", *others])
    found = ANALYSIS.support(tally, texts)
    assert isinstance(found.reports, np.ndarray)
    assert found.reports[0] == tally.reports
    assert (found.reports[1:] == tally.reports - tally.rows[2].reports).all()
    assert found.ghosts is not None
    assert not found.ghosts.any()
    estimated = answer_of(tally, SCHEME, texts)
    assert abs(estimated.share[0] - 0.6) < 5 * estimated.std_error[0]
    assert (np.abs(estimated.share[1:]) < 5 * estimated.std_error[1:]).all()
    assert estimated.std_error[1:].max() < 0.15 / 50


def test_a_frequent_string_that_is_no_candidate_makes_ghosts():
    """Its neighbours in one row look frequent, are called ghosts, and are not detected.

    A million devices, 60% with one string, seed 2; the neighbours' rows disagree by
    hundreds of errors.
    """
    neighbours = meeting("Oslo", 1, 20, MECHANISM)
    others = [f"other {number}" for number in range(4000)]
    counts = np.array([600_000] + [100] * 4000)
    tally = sample_tally(SCHEME, counts, np.random.default_rng(2), values=["Oslo", *others])
    found = answer_of(tally, SCHEME, neighbours)
    assert found.share.min() > 0.1
    assert not found.detected.any()


def test_rows_without_reports_say_nothing():
    """With all devices in one row, candidates rest on it alone; with none, nothing is a ghost."""
    tally = sample_tally(SCHEME, np.array([1]), np.random.default_rng(5), values=["Oslo"])
    found = ANALYSIS.support(tally, ["Oslo", "Bergen"])
    assert found.ghosts is not None
    assert not found.ghosts.any()
    empty = sample_tally(SCHEME, np.array([0]), np.random.default_rng(6), values=["Oslo"])
    none = ANALYSIS.support(empty, ["Oslo", "Bergen"])
    assert none.ghosts is not None
    assert not none.ghosts.any()
    assert np.isnan(answer_of(empty, SCHEME, ["Oslo"]).share).all()


@pytest.mark.parametrize("rows", [2, 3, 4, 8])
@pytest.mark.parametrize("unused", [0, 3])
def test_rows_that_disagree_by_a_little_more_than_chance_make_a_ghost(rows, unused):
    """The chi-square statistic of equal rates in the rows is compared with the quantile for one
    degree of freedom less than there are rows in use: a candidate 2% above it is a ghost, one
    2% below it is not."""
    limit = stats.chi2.isf(hashed.GHOST_LEVEL, rows - 1)
    reports, rate = np.full(rows, 1e8), 0.3
    away = np.array([1.0] + [-1 / (rows - 1)] * (rows - 1))
    scale = np.sqrt(limit * rate * (1 - rate) / 1e8 / (away**2).sum())
    counts = np.stack(
        [reports * (rate + part * scale * away) for part in (np.sqrt(0.98), np.sqrt(1.02))], axis=1
    )
    counts = np.concatenate([counts, np.zeros((unused, 2))])
    used = np.concatenate([np.stack([reports] * 2, axis=1), np.zeros((unused, 2))])
    assert hashed._ghosts(counts.round().astype(np.int64), used.astype(np.int64)).tolist() == [
        False,
        True,
    ]


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 8])
def test_the_weaker_half_of_the_rows_must_show_a_string(rows):
    """A string is surely there if the weaker half of its rows together lies more than five standard
    errors above what others support: each candidate by itself, rows without reports aside, and
    however strong the other rows are."""
    q, n = 0.25, 1_000_000
    half = max(1, rows // 2)
    error = np.sqrt(q * (1 - q) * n)
    scores = np.full((rows + 2, 5), 50.0)
    for place, away in enumerate((4.9, 5.1)):
        scores[:half, place] = away / np.sqrt(half)
        scores[rows - half : rows, 2 + place] = away / np.sqrt(half)
    scores[0, 4] = -400.0
    reports = np.full(scores.shape, n)
    reports[rows:] = 0
    counts = np.where(reports > 0, np.round(q * n + scores * error), 0).astype(np.int64)
    found = hashed._surely_there(counts, reports.astype(np.int64), q)
    assert found.tolist() == [False, True, False, True, False]
