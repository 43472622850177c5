"""Weeks of devices that come, stay, go and come back, with a release that makes fewer come back.

Their tallies are drawn with the memos of all devices. The devices of the newest day take no part:
none of them has a past.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import numpy as np

from deniable import Registry
from deniable.protocol import windows
from deniable_collector.stores import Store
from deniable_demo.made_up import ANNOTATIONS, LEAVING
from deniable_estimator.asking.since import Moment, SinceDays, days_since
from deniable_estimator.development.crowd import fold_tally
from deniable_estimator.planning.retention_crowd import Life, tallies_of

_WEEKS = 20


def write_weeks(
    store: Store, registry: Registry, devices: int, newest: date, rng: np.random.Generator
) -> None:
    """Add the tallies of the last complete weeks, with about `devices` devices active in each."""
    metric = registry[LEAVING.metric]
    last = _last_week(newest)
    labels = windows.span("week", last - timedelta(weeks=_WEEKS - 1), last)
    released = windows.number(windows.window_of("week", _released(newest)))
    steady = Life.steady(devices, back=LEAVING.before, stays=LEAVING.stays)
    # The cohorts of the release's week and of later ones come back in the week after.
    lives = [
        replace(steady, back=LEAVING.after) if windows.number(label) > released else steady
        for label in labels
    ]
    for tally, _ in tallies_of(metric, labels, lives, rng, older=devices - steady.new):
        (label,) = tally.windows
        fold_tally(store, metric, tally, 0, windows.end(label) - 1)


def weeks_since(newest: date) -> SinceDays:
    """The complete weeks since the release, and as many before it."""
    return days_since(Moment(LEAVING.release, _released(newest)), "week", _last_week(newest))


def _released(newest: date) -> date:
    (ago,) = (ago for ago, text in ANNOTATIONS.items() if text == LEAVING.release)
    return newest + timedelta(days=1) - timedelta(days=ago)


def _last_week(newest: date) -> date:
    """The last day of the newest complete week."""
    return windows.last_complete("week", windows.midnight(newest + timedelta(days=1)))
