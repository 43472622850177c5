"""Shares of many tallies that are calculated together."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.estimator.schemes import SCHEMES, SIZE

from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers import changes_of_each, shares_of_many
from deniable_estimator.answers.shares import Shares, estimate
from deniable_estimator.answers.shares_of_many import estimate_each
from deniable_estimator.errors import EstimateError
from deniable_estimator.statistics.participation import Participation


def same(one: Any, other: Any) -> bool:
    """Whether two answers, or parts of them, agree to the last bit."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if is_dataclass(one) and not isinstance(one, type):
        names = [each.name for each in fields(one)]
        return type(one) is type(other) and all(
            same(getattr(one, name), getattr(other, name)) for name in names
        )
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(st.data())
def test_tallies_together_are_as_each_alone(data: st.DataObject) -> None:
    """Any tallies of any scheme, with few reports, many or none, of devices that have reported once
    or again, and for some values or all, have the same answers together as each has alone, to the
    last bit of each number."""
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
        assert repr(one.to_dict()) == repr(other.to_dict())


def made(count: int) -> list[Shares]:
    rng = np.random.default_rng(1)
    counts = rng.multinomial(20_000, np.full(SIZE, 1 / SIZE))
    tallies = [sample_tally(SCHEMES[0], counts, rng, window="2026-11-01") for _ in range(count)]
    return estimate_each(tallies, SCHEMES[0], None, [Participation({"2026-11-01": 2e4})] * count)


def test_an_answer_holds_its_own_numbers() -> None:
    """No array of one answer is a view that keeps the numbers of the others in memory."""
    kept = []
    for found in made(3):
        arrays = (found.share, found.low, found.std_error, found.p_adjusted, found.exposure.gain)
        (block,) = {id(each.base): each.base for each in (*arrays, found.noise.a)}.values()
        assert block.shape == (12, SIZE)
        kept.append(block)
    assert not any(np.shares_memory(one, other) for one, other in combinations(kept, 2))


def test_mistakes_are_those_of_one() -> None:
    """A level that is none and a value that is not declared are refused as for a single tally."""
    rng = np.random.default_rng(1)
    tally = sample_tally(SCHEMES[0], np.full(SIZE, 1_000), rng, window="2026-11-01")
    participation = Participation({"2026-11-01": 12_000.0})
    for level in (0.0, 1.0, 2.0):
        with pytest.raises(ValueError, match="between 0 and 1"):
            estimate_each([tally], SCHEMES[0], None, [participation], level=level)
    with pytest.raises(EstimateError, match="is not one of the metric's declared values"):
        estimate_each([tally], SCHEMES[0], ["gone"], [participation])


@given(st.data())
def test_changes_together_are_as_each_alone(data: st.DataObject) -> None:
    """Any pairs of answers, of few reports or many, of the same values or of others, have the same
    changes together as each has alone, to the last bit of each number."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    scheme = data.draw(st.sampled_from(SCHEMES))
    level = data.draw(st.sampled_from([0.5, 0.95, 0.999]))
    kinds: list[list[str] | None] = [None, ["value 3", "value 0"]]
    asked = data.draw(st.sampled_from([kinds[:1], kinds[1:], kinds]))

    def drawn() -> Shares:
        reports = data.draw(st.sampled_from([0, 7, 999, 20_000]))
        counts = rng.multinomial(reports, rng.dirichlet(np.ones(SIZE)))
        tally = sample_tally(scheme, counts, rng, window="2026-11-01")
        return estimate(tally, scheme, data.draw(st.sampled_from(asked)), level=level)

    pairs = [(drawn(), drawn()) for _ in range(data.draw(st.integers(0, 4)))]
    found = changes_of_each(pairs)
    assert len(found) == len(pairs)
    for (before, after), one in zip(pairs, found, strict=True):
        other = after.change_from(before, together=False)
        assert one.before is before
        assert one.after is after
        assert one.changed.base is None, "it keeps none of the others in memory"
        assert same(
            replace(one, before=after, after=after), replace(other, before=after, after=after)
        )


def test_changes_of_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """More values than are calculated together have the same changes."""
    before, after = made(2)
    together = changes_of_each([(before, after)])
    monkeypatch.setattr(shares_of_many, "_FEW_VALUES", SIZE - 1)
    alone = changes_of_each([(before, after)])
    assert same(together[0].low, alone[0].low)
    assert same(together[0].changed, alone[0].changed)
