"""Strings hashed in cohorts: joint decoding by mechanism, its limits, and its warnings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from deniable import Scheme
from deniable.mechanisms import (
    Bloom,
    CohortLocalHashing,
    Mechanism,
    MemoizedLocalHashing,
    MemoizedSubsetSelection,
    OneTimeRappor,
    Rappor,
    SubsetSelection,
)
from deniable_collector.tally import Tally, TallyRow, empty_tally
from deniable_estimator.analyses import ANALYSES, cohorts, oracle_analysis
from deniable_estimator.analyses.candidates import support_counts
from deniable_estimator.analyses.cohorts import CohortAnalysis, decoder
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import estimate
from deniable_estimator.errors import EstimateError
from deniable_estimator.statistics.intervals import debias
from deniable_estimator.terminal import simulate

MECHANISMS: dict[str, Mechanism[Any]] = {
    "cohort local hashing": CohortLocalHashing("city", 64, SubsetSelection.design(8, 2.0, k=1)),
    "memoized local hashing": MemoizedLocalHashing(
        "city", 64, MemoizedSubsetSelection.design(8, 2.0, 4.0, k=1)
    ),
    "RAPPOR": Rappor.design("city", 2.0, 4.0),
    "RAPPOR, two hashes": Rappor.chromium("city"),
    "one-time RAPPOR": OneTimeRappor(Bloom("city", 32, 64, 2), 1 << 51),
}
STRINGS = [f"string {number}" for number in range(100)]

every = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)


def crowd(
    mechanism: Mechanism[Any], held: int, devices: int, rng: np.random.Generator
) -> tuple[Tally, np.ndarray]:
    """A tally of devices with one of the first `held` strings, and the shares of all of them."""
    truth = np.zeros(len(STRINGS))
    truth[:held] = np.arange(1, held + 1) ** -1.2
    truth /= truth.sum()
    scheme = Scheme("string", mechanism, ())
    counts = rng.multinomial(devices, truth)
    return sample_tally(scheme, counts, rng, values=STRINGS), truth


@every
def test_shares_are_estimated_within_their_intervals(mechanism: Mechanism[Any]) -> None:
    """95% intervals of 100 candidates, 80 of them nobody's, cover; the common ones are detected.

    Four crowds of 400,000 devices, seed 4: of 400 intervals at least 90% cover, 4.6
    binomial errors below 95%. The three most common strings are detected each time, and of
    all that is detected at most one string in eight is nobody's (nominal 5%).
    """
    scheme = Scheme("string", mechanism, ())
    rng = np.random.default_rng(4)
    covered, true, false = [], 0, 0
    for _ in range(4):
        tally, truth = crowd(mechanism, 20, 400_000, rng)
        found = estimate(tally, scheme, STRINGS)
        covered.append((found.low <= truth) & (truth <= found.high))
        assert found.detected[:3].all()
        true += int(found.detected[truth > 0].sum())
        false += int(found.detected[truth == 0].sum())
        assert found.normalized.sum() == pytest.approx(1, abs=0.1)
    assert np.mean(covered) >= 0.9
    assert false <= (true + false) / 8


@pytest.mark.parametrize(
    "mechanism",
    [CohortLocalHashing.design("s", 1.0), MemoizedLocalHashing.design("s", 1.0, 2.0)],
    ids=["fresh", "memoized"],
)
def test_one_column_of_a_few_rules_out_the_others(mechanism: Mechanism[Any]) -> None:
    """With 4 buckets, a report that names one is a report that names none of the others.

    Sixteen crowds of a million devices, 800 candidates of which 30 are somebody's, seed 8: of
    12,800 intervals at 95% between 94.3 and 96.5% cover (alpha about 5e-4 for the lower, as
    candidates are nearly independent), and of all that is detected at most 7% is nobody's
    (nominal 5%; at some 500 detected 7% has alpha .03 if 5% were true, which it is not: it
    is 3%). Cells taken for independent ones gave 91.8% and 10 to 12%.
    """
    scheme = Scheme("string", mechanism, ())
    strings = [f"candidate {number}" for number in range(800)]
    truth = np.zeros(len(strings))
    truth[:30] = 1 / np.arange(1, 31)
    truth /= truth.sum()
    rng = np.random.default_rng(8)
    covered, true, false = [], 0, 0
    for _ in range(16):
        counts = rng.multinomial(1_000_000, truth)
        found = estimate(
            sample_tally(scheme, counts, rng, values=strings, metric="site"), scheme, strings
        )
        covered.append((found.low <= truth) & (truth <= found.high))
        true += int(found.detected[truth > 0].sum())
        false += int(found.detected[truth == 0].sum())
    assert 0.943 <= np.mean(covered) <= 0.965
    assert true > 300
    assert false <= 0.07 * (true + false)


@pytest.mark.parametrize(
    ("kind", "channel", "devices"),
    [
        (MemoizedLocalHashing, MemoizedSubsetSelection.design(4, 1.0, 2.0, k=1), 5_000_000),
        (CohortLocalHashing, SubsetSelection.design(4, 1.0, k=1), 2_000_000),
    ],
    ids=["memoized", "fresh"],
)
def test_intervals_hold_what_the_search_has_used_up(
    kind: type[CohortLocalHashing | MemoizedLocalHashing],
    channel: SubsetSelection | MemoizedSubsetSelection,
    devices: int,
) -> None:
    """Where many strings nearly stand out, intervals of the common ones and of the others cover.

    150 tables under 150 salts, 600 candidates of which 100 are somebody's by a power law, seed 12.
    Of 2,250 intervals of the 15 most common strings between 93.5 and 96.5% cover, and of 12,750
    of the other 85 the same: both are 3 standard errors over tables or more (alpha .003 each, four
    comparisons). Without what the search has used up they cover 91 to 92% and 90 to 92%.
    """
    rng = np.random.default_rng(12)
    strings = [f"candidate {number}" for number in range(600)]
    truth = np.zeros(len(strings))
    truth[:100] = np.arange(1, 101) ** -1.1
    truth /= truth.sum()
    covered = []
    for salt in range(150):
        scheme = Scheme("string", kind(f"salt {salt}", 128, channel), ())
        tally = sample_tally(scheme, rng.multinomial(devices, truth), rng, values=strings)
        found = estimate(tally, scheme, strings)
        covered.append(((found.low <= truth) & (truth <= found.high))[:100])
    common, others = np.mean(covered, axis=0)[:15].mean(), np.mean(covered, axis=0)[15:].mean()
    assert 0.935 <= common <= 0.965
    assert 0.935 <= others <= 0.965


@pytest.mark.parametrize("name", ["cohort local hashing", "memoized local hashing"])
def test_collisions_do_not_add_up(name: str) -> None:
    """Where counting supporters is wrong by the collisions of common strings, this is not.

    Ten million devices in 64 cohorts of 8 buckets, seed 5: of 80 strings that nobody has, the
    plain counts are off by 3 of their standard errors and more, root mean square; the
    decoded ones by 0.7 to 1.3 (binomial sd of that: 8%).
    """
    mechanism = MECHANISMS[name]
    scheme = Scheme("string", mechanism, ())
    tally, truth = crowd(mechanism, 20, 10_000_000, np.random.default_rng(5))
    support = support_counts(tally, scheme, STRINGS)
    plain = debias(support.counts, support.reports, mechanism.p, mechanism.q)
    found = estimate(tally, scheme, STRINGS)
    nobody = truth == 0
    errors = found.std_error[nobody]
    assert np.sqrt(np.mean((plain[nobody] / errors) ** 2)) > 3
    assert 0.7 < np.sqrt(np.mean((found.share[nobody] / errors) ** 2)) < 1.3


def test_a_closed_list_may_be_hashed() -> None:
    """The values of a closed list are decoded by their texts, all of them or some."""
    mechanism = MECHANISMS["memoized local hashing"]
    open_tally, truth = crowd(mechanism, 20, 400_000, np.random.default_rng(6))
    scheme = Scheme("category", mechanism, tuple(STRINGS))
    tally = Tally("m", scheme.fingerprint, ("2026-11-01",), open_tally.rows)
    found = estimate(tally, scheme)
    assert found.complete
    assert found.normalized.sum() == pytest.approx(1)
    assert (np.abs(found.share - truth) < 5 * found.std_error).all()
    some = estimate(tally, scheme, STRINGS[1::-1])
    assert some.values == ("string 1", "string 0")
    assert some.detected.all()


def test_what_is_not_asked_for_is_told() -> None:
    """A warning says how much of the crowd the detected strings leave unexplained.

    A million devices, seed 7: the first of 20 strings is known to have 31%, the rest is not
    asked for.
    """
    mechanism = MECHANISMS["RAPPOR"]
    tally, truth = crowd(mechanism, 20, 1_000_000, np.random.default_rng(7))
    found = estimate(tally, Scheme("string", mechanism, ()), [STRINGS[0], "Oslo"])
    (told,) = (each for each in found.warnings if "explain" in each)
    assert f"explain {found.share[0]:.0%} of the crowd" in told
    assert truth[0] < 0.4


@every
def test_strings_beyond_the_joint_fit_are_no_ghosts(
    mechanism: Mechanism[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A string that stands out beside a full fit is detected, and belongs to what is explained.

    Ten million devices with one of 12 strings, each of more than 20 standard errors, of which a
    fit may hold 4; seed 9 (a string of 20 standard errors by itself is missed with alpha < 1e-20).
    """
    monkeypatch.setattr(decoder, "_MOST_SELECTED", 4)
    tally, truth = crowd(mechanism, 12, 10_000_000, np.random.default_rng(9))
    found = estimate(tally, Scheme("string", mechanism, ()), STRINGS)
    assert found.detected[truth > 20 * found.std_error].all()
    assert found.detected.sum() > 4
    assert not found.ghosts.any()
    told = [each for each in found.warnings if "explain" in each]
    assert all(f"explain {found.share[found.detected].sum():.0%}" in each for each in told)


@every
def test_no_reports(mechanism: Mechanism[Any]) -> None:
    """An empty tally is an answer without numbers."""
    scheme = Scheme("string", mechanism, ())
    tally = empty_tally("m", scheme.fingerprint, (), mechanism.rows)
    found = estimate(tally, scheme, STRINGS)
    assert found.n == 0
    assert np.isnan(found.share).all()
    assert np.isnan(found.std_error).all()
    assert not found.detected.any()
    assert found.warnings == ("no reports yet",)
    json.dumps(found.to_dict(), allow_nan=False)


def test_candidates_that_hash_alike_are_named() -> None:
    """Two strings with the same bit in the only cohort share an estimate, and a warning."""
    mechanism = Rappor(Bloom("city", 1, 8, 1), Rappor.design("city", 2.0, 4.0).rounds)
    bits: dict[int, list[str]] = {}
    for text in STRINGS:
        bits.setdefault(mechanism.cell(0, text), []).append(text)
    first, second = next(texts[:2] for texts in bits.values() if len(texts) > 1)
    scheme = Scheme("string", mechanism, ())
    tally = sample_tally(scheme, np.array([50_000]), np.random.default_rng(8), values=[first])
    found = estimate(tally, scheme, [first, second])
    assert found.share[0] == found.share[1]
    assert any(f"{second!r} like {first!r}" in each for each in found.warnings)


def test_too_many_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit into memory is refused, with how many would fit."""
    monkeypatch.setattr(cohorts, "_MOST_CELLS", 6400)

    def find(mechanism: Mechanism[Any], strings: Sequence[str]) -> None:
        tally = empty_tally("m", "f" * 12, (), mechanism.rows)
        oracle_analysis(mechanism).find(tally, strings, 0.95, 1.0)

    hashing = MECHANISMS["cohort local hashing"]
    find(hashing, STRINGS)
    with pytest.raises(EstimateError, match="at most 100 at a time"):
        find(hashing, [*STRINGS, "one more"])
    with pytest.raises(EstimateError, match="at most 25 at a time"):
        find(MECHANISMS["RAPPOR, two hashes"], STRINGS)


def test_only_cohort_tables_are_decoded_here() -> None:
    """Every mechanism whose strings are estimated jointly is tested above."""
    joint = {kind for kind, analysis in ANALYSES.items() if issubclass(analysis, CohortAnalysis)}
    assert {type(each) for each in MECHANISMS.values()} == joint


MEMORY = """
schema = 1
app = "example"
[defaults]
owner = "growth@acme.example"
expires = 2027-06-30
[metrics.browser]
type = "category"
description = "The browser."
epsilon = 1.0
lifetime_epsilon = 4.0
longitudinal = "memoize"
values = ["firefox", "chrome", "safari", "other"]
[metrics.city]
type = "string"
description = "The city."
epsilon = 2.0
lifetime_epsilon = 4.0
longitudinal = "memoize"
mechanism = "{strings}"
"""


@pytest.mark.parametrize("strings", ["auto", "rappor", "rappor_paper"])
@pytest.mark.parametrize("metric", ["browser", "city"])
def test_simulate_metrics_with_memory(metric: str, strings: str, tmp_path: Path) -> None:
    """`deniable simulate` draws a window of any metric with memory, and estimates it."""
    registry, names = tmp_path / "metrics.toml", tmp_path / "names.txt"
    text = MEMORY.format(strings=strings)
    if strings == "rappor_paper":
        text = text.replace("lifetime_epsilon = 4.0", "lifetime_epsilon = 4.5")
    registry.write_text(text)
    names.write_text("Oslo\nBergen\nBodø\n", encoding="utf-8")
    asked = ["--candidates", str(names)] if metric == "city" else []
    result = CliRunner().invoke(
        simulate,
        [metric, "--registry", str(registry), "--devices=100000", "--seed=1", "--json", *asked],
    )
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    for row in answer["values"]:
        assert abs(row["share"] - row["truth"]) < 6 * row["std_error"]


def test_tally_rows_stay_integers() -> None:
    """Weighing reports down over windows leaves the tally itself alone."""
    mechanism = MECHANISMS["memoized local hashing"]
    one, _ = crowd(mechanism, 20, 10_000, np.random.default_rng(10))
    rows = tuple(TallyRow(row.reports, row.cells.copy()) for row in one.rows)
    tally = Tally("m", one.scheme, ("2026-11-01", "2026-11-02"), rows)
    scheme = Scheme("string", mechanism, ())
    twice = estimate(tally, scheme, STRINGS)
    assert twice.devices == twice.n / 2
    assert all(np.array_equal(a.cells, b.cells) for a, b in zip(one.rows, tally.rows, strict=True))
    assert twice.std_error[0] > estimate(one, scheme, STRINGS).std_error[0]
