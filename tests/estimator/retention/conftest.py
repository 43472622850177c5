"""A registry with a retention, and a store with twenty weeks of a crowd that changes once."""

from dataclasses import replace

import numpy as np
import pytest
from tests.registries import declared

from deniable import Registry
from deniable.protocol import windows
from deniable_estimator.kinds.retention.crowd import Life, tallies_of

DEVICES = 200_000
WEEKS = tuple(windows.span("week", windows.first_day("2026-W28"), windows.first_day("2026-W47")))
CHANGED = "2026-W38"
"""From this week on 15 points fewer of the devices that are new come back in the next one."""
FEWER = 0.15


@pytest.fixture
def registry():
    return Registry.parse(declared(back={"type": "retention", "lifetime_epsilon": 4.0}))


def lives(weeks=WEEKS, changed=CHANGED):
    """How the crowd lives in each of these weeks."""
    life = Life.steady(DEVICES)
    after = windows.number(changed)
    return [
        replace(life, back=life.back - FEWER * (windows.number(week) > after)) for week in weeks
    ]


@pytest.fixture
def seen(registry, fill):
    """The truth of the weeks of `back`, which the store holds."""
    metric, rng = registry["back"], np.random.default_rng(11)
    found = []
    lived = lives()
    for tally, window in tallies_of(metric, WEEKS, lived, rng, older=DEVICES - lived[0].new):
        fill(tally, metric.scheme)
        found.append(window)
    return found
