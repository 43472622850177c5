"""Draws the sums of the crowd anew: `python -m tests.contract.draw_crowd` in the project's folder.

Every sum comes from the exact distribution of what so many devices with these values send.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.analyses import sample_tally
from deniable_estimator.kinds.retention import crowd as retention_crowd
from deniable_estimator.kinds.retention.crowd import Life

from .crowd import LAST_DAY, PLUGINS, STRINGS, SUMS, registry, schemes

RELEASE = "2026-11-09"
"""From this day on, more devices are in dark mode."""

EARLIER = "2026-11-13"
"""Until this day, `update_channel` has its earlier scheme."""

_WEEKS = [f"2026-W{number}" for number in range(33, 47)]

CROWD: dict[str, tuple[int | list[str], int]] = {
    "dark_mode": (61, 4_000),
    "notifications": (14, 5_000),
    "browser": (61, 6_000),
    "country": (7, 20_000),
    "theme": (28, 3_000),
    "update_channel": (14, 5_000),
    "interface_language": (21, 8_000),
    "crash_site": (6, 10_000),
    "homepage": (6, 12_000),
    "load_time": (28, 8_000),
    "tabs": (28, 5_000),
    "mode_by_channel": (14, 9_000),
    "plan_tier": (["2026-07", "2026-08", "2026-09", "2026-10"], 30_000),
    "plugin": (["2026-W45", "2026-W46"], 30_000),
    "weekly_use": (_WEEKS, 200_000),
    "growth": (_WEEKS, 200_000),
    "trial": (_WEEKS, 12),
    "silent": (0, 0),
}
"""For how many days, or in which windows, each metric has reports, and of how many devices."""


def labels_of(name):
    """The windows in which a metric has reports."""
    windows, _ = CROWD[name]
    if isinstance(windows, list):
        return windows
    last = date.fromisoformat(LAST_DAY)
    return [(last - timedelta(back)).isoformat() for back in reversed(range(windows))]


def is_weekend(label):
    """Whether a window is a Saturday or a Sunday."""
    return len(label) == 10 and date.fromisoformat(label).weekday() >= 5


def shares_of(metric, label):
    """How common each value of a metric is in a window."""
    name = metric.name
    if name == "dark_mode":
        yes = 0.44 if label >= RELEASE else 0.31
        return np.array([yes, 1 - yes])
    if name == "mode_by_channel":
        light = np.array([0.48, 0.1, 0.04, 0.06])
        dark = np.array([0.14, 0.08, 0.08, 0.02])
        return np.concatenate([dark, light])
    if name == "plugin":
        return np.array([*PLUGINS.values()]) / 100
    count = len(STRINGS.get(name, metric.values))
    shares = 1 / np.arange(1, count + 1) ** 1.3
    if name == "browser" and is_weekend(label):
        shares[2] *= 1.5
    return shares / shares.sum()


def tally_of(metric, scheme, label, devices, rng):
    """What devices report in a window: a tally for each combination of segments."""
    found = []
    for place, _ in enumerate(scheme.combinations):
        if metric.type.name == "number":
            if metric.name == "load_time":
                numbers = rng.lognormal(-1.5, 1.1, devices)
            else:
                numbers = rng.poisson(6.5, devices).astype(np.float64)
            some, counts = np.unique(numbers, return_counts=True)
            found.append(sample_tally(scheme, counts, rng, values=some))
            continue
        shares = np.roll(shares_of(metric, label), place)
        values = STRINGS.get(metric.name) or (list(PLUGINS) if metric.name == "plugin" else None)
        counts = rng.multinomial(devices, shares)
        found.append(sample_tally(scheme, counts, rng, values=values))
    return found


def tallies_of(metric, scheme, labels, rng):
    """For each window the tallies of what devices report."""
    usual = CROWD[metric.name][1]
    if metric.type.name == "retention":
        life = Life.steady(usual)
        older = usual - life.new
        # In the last weeks fewer are lost.
        lives = [
            replace(life, back=0.5, stays=0.9 if each > "2026-W43" else 0.85) for each in labels
        ]
        return [
            [each]
            for each, _ in retention_crowd.tallies_of(metric, labels, lives, rng, older=older)
        ]
    return [
        tally_of(metric, scheme, each, int(usual * (0.7 if is_weekend(each) else 1)), rng)
        for each in labels
    ]


def parts():
    """Each metric with each of its schemes, and the windows in which devices had it."""
    known = schemes()
    for metric in registry():
        labels = labels_of(metric.name)
        for fingerprint, scheme in known[metric.name].items():
            if fingerprint != metric.scheme.fingerprint:
                yield metric, scheme, [each for each in labels if each <= EARLIER]
                labels = [each for each in labels if each > EARLIER]
        if labels:
            yield metric, metric.scheme, labels


def draw():
    """Draw the sums, and keep them."""
    rng = np.random.default_rng(20_261_121)
    kept: dict[str, NDArray[np.generic]] = {}
    for metric, scheme, labels in parts():
        reports, filled, gaps, counts = [], [], [], []
        for label, tallies in zip(labels, tallies_of(metric, scheme, labels, rng), strict=True):
            rows = [row for each in tallies for row in each.rows]
            cells = [row.cells for row in rows]
            if metric.name == "notifications" and label == LAST_DAY:
                # Every device says yes: no crowd that adds noise does that.
                cells = [np.array([rows[0].reports, 0])]
            columns = [np.flatnonzero(each) for each in cells]
            reports.append([row.reports for row in rows])
            filled.append([len(each) for each in columns])
            gaps += [np.diff(each, prepend=0) for each in columns]
            counts += [each[some] for each, some in zip(cells, columns, strict=True)]
        key = f"{metric.name} {scheme.fingerprint}"
        kept[f"{key} windows"] = np.array(labels)
        for what, found in (
            ("reports", np.array(reports)),
            ("filled", np.array(filled)),
            ("gaps", np.concatenate(gaps)),
            ("counts", np.concatenate(counts)),
        ):
            kept[f"{key} {what}"] = found.astype(np.min_scalar_type(found.max()))
    np.savez_compressed(SUMS, allow_pickle=False, **kept)


if __name__ == "__main__":
    draw()
