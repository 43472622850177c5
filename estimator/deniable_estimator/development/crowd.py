"""Simulated devices, so that a developer sees the pages that the product team will see.

Their values are made up (`made_up`), and every page says so. Each tally is drawn as a whole, from
the exact distribution that the sum of so many reports has.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from deniable import DeniableError, Metric, Registry
from deniable.protocol import windows
from deniable.protocol.types.discovery import Discovery
from deniable.protocol.types.retention import Retention
from deniable.protocol.wire import new_batch_id
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import Commit, TallyKey
from deniable_collector.stores.vectors import addition_of
from deniable_collector.tally import Tally
from deniable_estimator.analyses import sample_tally
from deniable_estimator.asking.listed import listed_strings
from deniable_estimator.kinds.retention.crowd import Life, tallies_of
from deniable_estimator.planning.population import made_up

BEFORE = 7
"""So many complete windows before the window of now have reports as well."""


@dataclass
class SimulatedCrowd:
    """The simulated devices, and what their reports are."""

    devices: int = 0
    folder: Path | None = None
    """Of METRIC.txt files with strings that the devices may have; None: there is none."""
    now: dict[str, int] = field(default_factory=dict)
    """Metric -> how many of its reports in the window of now are theirs."""
    strings: dict[str, list[str]] = field(default_factory=dict)
    """Metric -> the strings that they recorded."""
    shares: dict[str, str] = field(default_factory=dict)
    """Metric -> its made-up shares, in words."""
    _schemes: set[tuple[str, str]] = field(default_factory=set)

    def add(self, store: Store, registry: Registry) -> Iterator[str]:
        """Let the devices report every metric whose scheme they have not reported yet; the name of
        each, when they have."""
        if not self.devices:
            return
        now = time.time()
        today = datetime.fromtimestamp(now, UTC).date()
        for metric in registry:
            scheme = metric.name, metric.scheme.fingerprint
            # No collector takes reports of a metric that has expired.
            if metric.expires < today or scheme in self._schemes:
                continue
            self._schemes.add(scheme)
            newest = windows.window_at(metric.window, now)
            labels = [windows.shifted(newest, -ago) for ago in range(BEFORE, -1, -1)]
            drawn = self._lives if isinstance(metric.type, Retention) else self._values
            for tally, place in drawn(metric, labels):
                fold_tally(store, tally, now, place)
            yield metric.name

    def _values(self, metric: Metric, labels: Sequence[str]) -> Iterator[tuple[Tally, int]]:
        listed = None
        with suppress(DeniableError):  # a list with a mistake is none
            listed = listed_strings(metric, self.folder)
        rng, made = np.random.default_rng(), made_up(metric, listed)
        if metric.needs_candidates or isinstance(metric.type, Discovery):
            self.strings[metric.name] = made.values
        self.shares[metric.name] = made.words
        # Devices are evenly divided over the segments; without any, there is one part.
        places = len(metric.scheme.combinations)
        for label in labels:
            self.now[metric.name] = 0
            for place, devices in enumerate(
                rng.multinomial(self.devices, np.full(places, 1 / places)).tolist()
            ):
                counts = rng.multinomial(devices, made.shares)
                # On a given day each device takes part with the probability that is declared.
                counts = rng.binomial(counts, metric.rate)
                about = {"metric": metric.name, "window": label}
                yield sample_tally(metric.scheme, counts, rng, values=made.values, **about), place
                self.now[metric.name] += int(counts.sum())

    def _lives(self, metric: Metric, labels: Sequence[str]) -> Iterator[tuple[Tally, int]]:
        """Windows of devices that come, stay and go, each drawn as a whole."""
        life, rng = Life.steady(self.devices), np.random.default_rng()
        self.shares[metric.name] = life.words(self.devices)
        lives = [life] * len(labels)
        for tally, _ in tallies_of(metric, labels, lives, rng, older=self.devices - life.new):
            yield tally, 0
            self.now[metric.name] = tally.reports


def fold_tally(store: Store, tally: Tally, now: float, place: int = 0) -> None:
    """Add the tally of one window to the rows of the combination of segments at that place."""
    (label,) = tally.windows
    key = TallyKey(tally.metric, tally.scheme, label)
    rows = enumerate(tally.rows, place * len(tally.rows))
    addition = addition_of(store.shape(key[:2]), dict(rows))
    store.fold(Commit((new_batch_id(),), {key: addition}), now)
