"""What `auto` takes: subset selection while its reports are short, then projective geometry."""

from __future__ import annotations

import pytest

from deniable.mechanisms import ProjectiveGeometry, SubsetSelection, design, explain
from deniable.mechanisms.choice import MAX_REPORT_BYTES


@pytest.mark.parametrize("size", [2, 10, 1024, 2048])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_small_domains_are_optimal(size: int, epsilon: float) -> None:
    """Up to 2,048 values the optimum itself is taken."""
    choice = explain(size, epsilon)
    assert isinstance(choice.mechanism, SubsetSelection)
    assert choice.loss == 1
    assert "least possible error" in choice.reason


@pytest.mark.parametrize("size", [3000, 10**5, 10**6, 1 << 20])
@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 2.0, 4.0])
def test_large_domains_lose_little(size: int, epsilon: float) -> None:
    """Beyond, the total variance is within 2.5 % of the optimum, with reports of 4 bytes."""
    choice = explain(size, epsilon)
    if isinstance(choice.mechanism, ProjectiveGeometry):
        assert 1 <= choice.loss < 1.025
        assert choice.mechanism.rows[0].report_bytes <= 4
        assert f"above {MAX_REPORT_BYTES}" in choice.reason
    else:
        assert choice.loss == 1


def test_auto_takes_what_is_explained() -> None:
    """What `explain` names is what `design` builds, and never a mechanism for comparison."""
    for size in (2, 17, 1024, 2049, 4000, 10**5):
        for epsilon in (0.2, 1.0, 3.0, 8.0):
            chosen = design("auto", size, epsilon)
            explained = explain(size, epsilon).mechanism
            assert type(chosen) is type(explained)
            assert chosen.parameters() == explained.parameters()
            assert isinstance(chosen, (SubsetSelection, ProjectiveGeometry))
            assert chosen.rows[0].report_bytes <= MAX_REPORT_BYTES


def test_subsets_are_kept_for_few_of_many() -> None:
    """At a large epsilon a list of a few of many values is still short, and is taken."""
    assert isinstance(design("auto", 10**5, 8.0), SubsetSelection)
