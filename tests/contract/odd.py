"""A small crowd in which everything happens that seldom does: forged and damaged days, days that
were dropped, groups that are too small, lists with mistakes. Its sums are drawn anew from one seed.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

import numpy as np

from deniable import Metric, Registry
from deniable.protocol import windows
from deniable.protocol.types.discovery import Discovery
from deniable.protocol.types.number import Number
from deniable.protocol.types.retention import Retention
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import Commit, TallyKey
from deniable_collector.stores.vectors import addition_of
from deniable_estimator.analyses import sample_tally
from deniable_estimator.kinds.retention.crowd import Life, tallies_of

from .crowd import LAST_DAY, NOW, STORE

FILES = Path(__file__).parent / "odd"
FORGED = {"forged": 4, "forged_often": 40, "forged_pair": 2, "few_finds": 1}
"""On so many of its newest days, all reports of a metric say the same."""

_USUAL = (range(14), (2_000,))
_CROWD: dict[str, tuple[range | list[int], tuple[int, ...]]] = {
    "today": (range(-1, 0), (900,)),
    "silent_week": (range(18, 40), (3_000,)),
    "holes": ([0, 1, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17], (3_000,)),
    "forged_often": (range(40), (900,)),
    "kept": (range(150), (400,)),
    "dropped": (range(60), (400,)),
    "by_two": (range(28), (900, 300, 60, 5, 1, 0)),
    "sizes": (range(28), (700, 30, 2)),
    "averages": (range(28), (700, 30, 2)),
    "rows": (range(3), (25,)),
    "few_pairs": (range(3), (8,)),
    "few_finds": (range(3), (40,)),
    "few_back": (range(6), (30,)),
    "wide": (range(14), (40_000,)),
    "unlisted": (range(3), (900,)),
    "listed": (range(3), (900,)),
}
"""How many days ago each metric has reports, and of how many devices of each segment."""


def build(folder):
    """Put its registry and all that goes with it into a folder."""
    shutil.copytree(FILES, folder)
    registry = Registry.load(folder / "metrics.toml")
    store = open_store(Settings(store=f"sqlite:///{folder / STORE}"))
    store.publish((metric.name, metric.scheme) for metric in registry)
    for number, metric in enumerate(registry):
        scheme = metric.scheme.fingerprint
        keys = {TallyKey(metric.name, scheme, label): rows for label, rows in _drawn(metric)}
        some = {
            key: addition_of(store.shape(key[:2]), dict(enumerate(rows)))
            for key, rows in keys.items()
        }
        assert not store.fold(Commit((f"{number:032x}",), some), NOW)
        for key in keys if metric.name == "damaged" else ():
            store.seal(key)
    for name, before in (("kept", "2026-09-30"), ("dropped", "2026-10-20")):
        scheme, kept = registry[name].scheme.fingerprint, [kind for kind, _ in registry[name].keep]
        store.sums.drop_windows((name, scheme), windows.end(before), kept[1:])
    store.close()
    with closing(sqlite3.connect(folder / STORE)) as file, file:
        file.execute(
            "UPDATE blocks SET block = x'00' WHERE id IN (SELECT id FROM tallies WHERE "
            "metric = 'damaged' AND window IN ('2026-11-12', '2026-11-17', '2026-11-18'))"
        )


def _drawn(metric: Metric) -> Iterator[tuple[str, list]]:
    """Each window of a metric, and its rows."""
    rng = np.random.default_rng([*metric.name.encode()])
    days, devices = _CROWD.get(metric.name, _USUAL)
    if metric.name in ("silent", "part"):
        return
    last = date.fromisoformat(LAST_DAY)
    if isinstance(metric.type, Retention):
        labels = [f"2026-W{number}" for number in range(41, 47)]
        lives = [Life.steady(devices[0])] * len(labels)
        for tally, _ in tallies_of(metric, labels, lives, rng, older=9):
            yield tally.windows[0], list(tally.rows)
        return
    for ago in sorted(days, reverse=True):
        rows = []
        for place, count in enumerate(devices):
            rows += _tally(metric, count, place + (ago < 12) * (metric.name == "changed"), rng).rows
        if ago < FORGED.get(metric.name, 0):
            for row in rows:
                row.cells[:] = 0
                row.cells[1] = row.reports
        yield (last - timedelta(ago)).isoformat(), rows


def _tally(metric, devices, shift, rng):
    if isinstance(metric.type, Number):
        numbers, counts = np.unique(rng.lognormal(2 + shift / 4, 1.1, devices), return_counts=True)
        return sample_tally(metric.scheme, counts, rng, values=numbers)
    values = None
    if isinstance(metric.type, Discovery) or metric.needs_candidates:
        values = ["git", "vim", "hg"]
    shares = np.roll(1 / np.arange(1.0, 1 + len(values or metric.values)), 2 * shift)
    counts = rng.multinomial(devices, shares / shares.sum())
    return sample_tally(metric.scheme, counts, rng, values=values)
