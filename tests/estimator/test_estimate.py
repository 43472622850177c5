"""An Estimate's columns, its JSON and CSV, and what it says without reports."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from deniable import Scheme
from deniable.mechanisms import SubsetSelection
from deniable_collector.tally import Tally, empty_tally
from deniable_estimator.analyses import ANALYSES
from deniable_estimator.analyses.base import Items, OracleAnalysis, Support
from deniable_estimator.answers.combination import combine
from deniable_estimator.answers.shares import Shares, estimate
from deniable_estimator.errors import EstimateError


@pytest.fixture
def scheme() -> Scheme:
    """p = 3/4 and q = 1/8 exactly, whatever epsilon that is."""
    return Scheme("category", SubsetSelection(3, 1, 3 << 51), ("a", "b", "c"))


@pytest.fixture
def answer(scheme: Scheme, make_tally: Callable[..., Tally]) -> Shares:
    """1,000 reports, expected counts for shares .8, .2 and 0."""
    return estimate(make_tally(scheme, 1000, [625, 250, 125]), scheme)


def test_shares_and_errors(answer: Shares) -> None:
    """Shares are debiased with the probabilities in force, errors are those of the rates."""
    assert answer.share == pytest.approx([0.8, 0.2, 0])
    rates = np.array([0.625, 0.25, 0.125])
    assert answer.std_error == pytest.approx(np.sqrt(rates * (1 - rates) / 1000) / 0.625)
    assert (answer.low < answer.share).all()
    assert (answer.share < answer.high).all()
    assert answer.low[2] < 0


def test_significance_uses_the_null_error(answer: Shares) -> None:
    """A value that nobody has is not detected: its p-value is the chance of 125 by chance."""
    assert answer.p_value[2] == pytest.approx(stats.binom.sf(124, 1000, 0.125), rel=1e-3)
    assert answer.detected.tolist() == [True, True, False]


def test_detected_values_keep_their_shares(make_tally: Callable[..., Tally]) -> None:
    """In an estimate, and in one combined out of two, normalization leaves detected values as they
    are and fits the others into the rest."""
    # p = 1/2 and q = 1/8, exactly.
    scheme = Scheme("category", SubsetSelection(5, 1, 1 << 52), tuple("abcde"))
    each = estimate(make_tally(scheme, 1000, [346, 275, 139, 125, 115]), scheme)
    for answer in (each, combine([each, each])):
        assert answer.detected.tolist() == [True, True, False, False, False]
        assert answer.share == pytest.approx([0.5893, 0.4, 0.0373, 0, -0.0267], abs=1e-4)
        assert answer.normalized == pytest.approx([0.5893, 0.4, 0.0107, 0, 0], abs=1e-4)


def test_no_reports_is_an_answer(scheme: Scheme) -> None:
    """Without reports there is an estimate with n = 0, null numbers and a warning, in all forms."""
    answer = estimate(empty_tally("browser", scheme.fingerprint, (), scheme.mechanism.rows), scheme)
    assert answer.n == 0
    assert np.isnan(answer.share).all()
    assert not answer.detected.any()
    assert not answer.moved.any()
    assert answer.warnings == ("no reports yet",)
    text = json.dumps(answer.to_dict(), allow_nan=False)
    assert json.loads(text)["values"][0]["share"] is None
    assert answer.to_csv().splitlines()[1] == "a,,,,,,,False,,False,,,False,0,0,,"


def test_csv_round_trip(
    make_scheme: Callable[..., Scheme], make_tally: Callable[..., Tally]
) -> None:
    """Values with commas, quotes and line ends, and all floats, survive CSV exactly."""
    values = ['say "hi", you', "two\nlines", "naïve ☕"]
    scheme = make_scheme(3, 1.0, values=values)
    answer = estimate(make_tally(scheme, 900, [333, 300, 267]), scheme)
    rows = list(csv.DictReader(io.StringIO(answer.to_csv(), newline="")))
    assert [row["value"] for row in rows] == values
    assert [float(row["share"]) for row in rows] == answer.share.tolist()
    assert [row["detected"] for row in rows] == [str(each) for each in answer.detected.tolist()]


def test_ghosts_are_never_detected(
    answer: Shares,
    scheme: Scheme,
    make_tally: Callable[..., Tally],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A value that its decoder marks as a ghost keeps its share and is not detected."""

    class Haunted(OracleAnalysis[Any]):
        def support(self, tally: Tally, items: Items) -> Support:
            return Support(tally.rows[0].cells, tally.reports, np.array([True, False, False]))

    monkeypatch.setitem(ANALYSES, type(scheme.mechanism), Haunted)
    seen = estimate(make_tally(scheme, 1000, [625, 250, 125]), scheme)
    assert seen.share == pytest.approx(answer.share)
    assert seen.detected.tolist() == [False, True, False]
    assert seen.normalized[0] == 0
    assert seen.normalized.sum() == pytest.approx(1)
    assert any(warning.startswith("1 of the candidates look like") for warning in seen.warnings)
    assert combine([seen, seen]).detected.tolist() == [False, True, False]


def test_wrong_scheme_is_refused(
    scheme: Scheme, make_scheme: Callable[..., Scheme], make_tally: Callable[..., Tally]
) -> None:
    """A tally is never read with another scheme's probabilities."""
    with pytest.raises(EstimateError, match="own scheme"):
        estimate(make_tally(make_scheme(3, 1.0), 9, [3, 3, 3]), scheme)
