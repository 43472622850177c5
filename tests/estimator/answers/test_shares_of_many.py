"""Shares of many tallies that are calculated together."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.estimator.schemes import SCHEMES, SIZE

from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import estimate
from deniable_estimator.answers.shares_of_many import estimate_each
from deniable_estimator.statistics.participation import Participation


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
