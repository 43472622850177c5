"""Strings hashed in cohorts: joint decoding by mechanism, its limits, and its warnings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

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
from deniable_collector.tally import Tally, empty_tally
from deniable_estimator.analyses import cohorts, oracle_analysis
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import estimate
from deniable_estimator.errors import EstimateError

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
