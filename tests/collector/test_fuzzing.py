"""The fuzzer of `fuzzing.py`, for a few seconds, and that it would find what it looks for."""

from __future__ import annotations

import pytest

from deniable_collector.batches import folding
from deniable_collector.intake import Intake

from . import fuzzing


@pytest.mark.parametrize(
    "number", [2_000, pytest.param(100_000, marks=pytest.mark.campaign)], ids=["few", "many"]
)
def test_mutated_batches_are_counted_as_the_plain_reader_counts_them(number):
    """Of so many bodies, good and hurt (seed 1), exactly the good reports are counted, once."""
    *_, (sent, empty, counted) = fuzzing.fuzz(number, seed=1)
    assert sent >= number
    # Good and bad ones both, or nothing was tried.
    assert 0.1 * number < empty < 0.9 * number
    assert counted > number


@pytest.mark.parametrize("fault", ["count", "raise", "twice"])
def test_the_fuzzer_sees_a_fault(monkeypatch, fault):
    """A report too few in a sum, an error that is not documented and a forgotten id are found."""
    if fault == "count":
        monkeypatch.setattr(
            "deniable_collector.intake.increments",
            lambda reports: dict(list(folding.increments(reports).items())[1:]),
        )
    elif fault == "raise":
        read = Intake.read
        monkeypatch.setattr(
            Intake,
            "read",
            lambda self, body: [][0] if b"2026-11-17" in body else read(self, body),
        )
    else:
        fold = fuzzing.MemoryStore.fold

        def forgetful(self, commit, now):
            seen = fold(self, commit, now)
            self.ids.difference_update(commit.ids)
            return seen

        monkeypatch.setattr(fuzzing.MemoryStore, "fold", forgetful)
    with pytest.raises(fuzzing.Failure):
        list(fuzzing.fuzz(2_000, seed=2))
