"""Estimates of shares, one and many, and what is said of them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.estimator.conftest import MakeScheme, MakeTally
from tests.estimator.schemes import SCHEMES, SIZE

from deniable import Scheme
from deniable.mechanisms import SubsetSelection
from deniable_collector.tally import Tally, TallyRow, empty_tally
from deniable_estimator.analyses import ANALYSES
from deniable_estimator.analyses.base import Items, OracleAnalysis, Support
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.caveats import caveats
from deniable_estimator.answers.combination import combine
from deniable_estimator.answers.shares import Shares, estimate
from deniable_estimator.answers.shares_of_many import estimate_each
from deniable_estimator.errors import EstimateError
from deniable_estimator.statistics.intervals import Noise
from deniable_estimator.statistics.participation import Participation


@pytest.fixture
def scheme() -> Scheme:
    """p = 3/4 and q = 1/8 exactly, whatever epsilon that is."""
    return Scheme("category", SubsetSelection(3, 1, 3 << 51), ("a", "b", "c"))


@pytest.fixture
def answer(scheme: Scheme, make_tally: MakeTally) -> Shares:
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


def test_detected_values_keep_their_shares(make_tally: MakeTally) -> None:
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


def test_csv_round_trip(make_scheme: MakeScheme, make_tally: MakeTally) -> None:
    """Values with commas, quotes and line ends, and all floats, survive CSV exactly."""
    values = ['say "hi", you', "two\nlines", "naïve ☕"]
    scheme = make_scheme(3, 1.0, values=values)
    answer = estimate(make_tally(scheme, 900, [333, 300, 267]), scheme)
    rows = list(csv.DictReader(io.StringIO(answer.to_csv(), newline="")))
    assert [row["value"] for row in rows] == values
    assert [float(row["share"]) for row in rows] == answer.share.tolist()
    assert [row["detected"] for row in rows] == [str(each) for each in answer.detected.tolist()]


def test_ghosts_are_never_detected(
    answer: Shares, scheme: Scheme, make_tally: MakeTally, monkeypatch: pytest.MonkeyPatch
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
    scheme: Scheme, make_scheme: MakeScheme, make_tally: MakeTally
) -> None:
    """A tally is never read with another scheme's probabilities."""
    with pytest.raises(EstimateError, match="own scheme"):
        estimate(make_tally(make_scheme(3, 1.0), 9, [3, 3, 3]), scheme)


def same(one: Any, other: Any) -> bool:
    """Whether two answers, or parts of them, agree: numbers to 1e-9 of themselves."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.allclose(one, other, 1e-9, 1e-15, equal_nan=True)
    if is_dataclass(one) and not isinstance(one, type):
        names = [each.name for each in fields(one)]
        return type(one) is type(other) and all(
            same(getattr(one, name), getattr(other, name)) for name in names
        )
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return bool(one == pytest.approx(other, rel=1e-9, abs=1e-15, nan_ok=True))
    return bool(one == other)


@settings(max_examples=25)
@given(st.data())
def test_tallies_together_are_as_each_alone(data: st.DataObject) -> None:
    """Any tallies of any scheme, with few reports, many or none, of devices that have reported once
    or again, and for some values or all, have the same answers together as each has alone."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scheme = data.draw(st.sampled_from(SCHEMES))
    candidates = data.draw(st.sampled_from([None, ["value 3", "value 0"]]))
    tallies, participations = [], []
    for number in range(data.draw(st.integers(0, 6))):
        reports = data.draw(st.sampled_from([0, 1, 7, 40, 999, 1_000, 20_000]))
        counts = rng.multinomial(reports, rng.dirichlet(np.ones(SIZE)))
        tallies.append(sample_tally(scheme, counts, rng, window=f"2026-11-{number + 1:02}"))
        windows = data.draw(st.sampled_from([1, 1, 3]))
        each = {str(window): reports / windows for window in range(windows)}
        participations.append(Participation(each, 0.5, 8.0, 1.0))
    asked: Any = {
        "level": data.draw(st.sampled_from([0.5, 0.95, 0.999])),
        "adjust": data.draw(st.sampled_from(["storey", "bonferroni"])),
    }
    found = estimate_each(tallies, scheme, candidates, participations, **asked)
    alone = [
        estimate(tally, scheme, candidates, participation=participation, **asked)
        for tally, participation in zip(tallies, participations, strict=True)
    ]
    assert len(found) == len(alone)
    for one, other in zip(found, alone, strict=True):
        assert same(one, other)
        assert same(one.normalized, other.normalized)


@pytest.fixture
def warn(make_scheme: MakeScheme) -> Callable[..., str]:
    """The warnings, as one text, for n reports over so many values."""

    def say(
        n: int, size: int = 4, epsilon: float = 1.0, k: int | None = None, **more: object
    ) -> str:
        mechanism = make_scheme(size, epsilon, k).mechanism
        noise = Noise.of(mechanism.p, mechanism.q, n, size)
        settings = {"windows": ("2026-11-16",), "complete": True, "devices": n, **more}
        windows = settings.pop("windows")
        return "; ".join(caveats(n, windows, noise, 0.95, **settings))  # type: ignore[arg-type]

    return say


def test_enough_reports_need_no_warning(warn: Callable[..., str]) -> None:
    """100,000 devices, one window, a whole domain: nothing to warn of."""
    assert warn(100_000) == ""


def test_no_usable_signal(warn: Callable[..., str]) -> None:
    """Noise that can look like half of the crowd is called no usable signal, from there on only.

    Four values at epsilon 1: critical value 2.24, null error 1.26 / sqrt(n): the line is n = 32.
    """
    assert "no usable signal" in warn(30)
    assert "no usable signal" not in warn(34)


def test_few_reports(warn: Callable[..., str]) -> None:
    """A handful of reports is called that, even where their noise is small."""
    assert "too few reports (only 29)" in warn(29, 2, 6.0)
    assert "too few" not in warn(30, 2, 6.0)


def test_rough_approximations(warn: Callable[..., str]) -> None:
    """With fewer than four chance supporters of a value the numbers are called rough."""
    assert "rough" in warn(350, 100, 1.0, 1)
    assert "rough" not in warn(450, 100, 1.0, 1)
    assert "rough" not in warn(350, 100, 1.0)


VALUES = ("a", "b", "c", "d", "e", "f")
SCHEME = Scheme("category", SubsetSelection.design(6, 1.0), VALUES)
BOOLEAN = Scheme("boolean", SubsetSelection.design(2, 1.0), ("true", "false"))


def expected(shares: list[float], n: int, scheme: Scheme = SCHEME) -> Shares:
    """The estimate of a tally with just these shares, of n reports."""
    p, q = float(scheme.mechanism.p), float(scheme.mechanism.q)
    cells = np.array([round(n * (q + share * (p - q))) for share in shares])
    return estimate(Tally("m", scheme.fingerprint, ("2026-11-20",), (TallyRow(n, cells),)), scheme)


def test_what_lies_beyond_everything_is_impossible() -> None:
    """115% and -50% are impossible; -3% and 103% with as wide an interval are not; and what
    is impossible is neither among what stands out nor among the noise."""
    found = expected([1.15, -0.5, 0.2, 0.15, 0.0, 0.0], 5000)
    assert found.impossible.tolist() == [True, True, False, False, False, False]
    assert set(found.standing.tolist()) == {2, 3}
    assert set(found.below.tolist()) == {4, 5}
    assert found.strange.tolist() == [1, 0]
    assert not expected([1.03, -0.03, 0.0, 0.0, 0.0, 0.0], 5000).impossible.any()
    assert expected([1.2, -0.2], 400, BOOLEAN).impossible.all()
    assert not expected([1.02, -0.02], 400, BOOLEAN).impossible.any()
    assert found.to_dict()["values"][0]["impossible"] is True
    assert ",impossible," in found.to_csv().splitlines()[0]
    assert not estimate(sample_tally(SCHEME, np.zeros(6, int), np.random.default_rng(1)), SCHEME) \
        .impossible.any()  # fmt: skip
