"""Shares that no honest crowd can have: called so, neither leader nor noise."""

from __future__ import annotations

import numpy as np

from deniable import Scheme
from deniable.mechanisms import SubsetSelection
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import Shares, estimate

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
