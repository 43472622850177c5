"""The stated number of false alarms: by arithmetic, and by simulation."""

from __future__ import annotations

import pytest

from deniable import windows
from deniable_estimator.judging.levels import (
    DAYS,
    PERIODS,
    SPANS,
    FalseAlarms,
    Per,
    judgement_level,
)


@pytest.mark.parametrize("kind", windows.KINDS)
@pytest.mark.parametrize("per", PERIODS)
def test_levels_add_up_to_what_is_stated(kind: windows.Kind, per: Per) -> None:
    """Over all metrics, looks and spans the levels sum to the number that is allowed, or less."""
    level = judgement_level(FalseAlarms(0.5, per), 200, kind)
    looks = 1 if per == "run" else max(1, PERIODS[per] / DAYS[kind])
    total = 200 * looks * (len(SPANS[kind]) * level.span + level.anomaly)
    assert total == pytest.approx(0.5)


def test_no_level_is_above_one_in_twenty() -> None:
    """A large allowance for few metrics does not make a test useless."""
    level = judgement_level(FalseAlarms(1000.0, "run"), 1, "day")
    assert level.span == level.anomaly == 0.05
