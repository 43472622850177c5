"""A store with one window, and everything that it can be asked, for tests in which it refuses."""

from __future__ import annotations

import numpy as np

from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey

WIDTH = 3_000
WINDOW = "2026-11-01"


class StoreCalls:
    """The calls of a store, which has the scheme `scheme` of metric m."""

    def __init__(self, store, scheme, new_id, noon):
        self.scheme = scheme
        self._store, self._new_id, self._noon = store, new_id, noon
        self._tally = TallyKey("m", scheme.fingerprint, WINDOW)

    def fold(self, columns=(1,)):
        """Add one report to each of some columns of the window."""
        increment = Increment(WIDTH, 1, columns, np.ones(len(columns), np.int64))
        commit = Commit((self._new_id(),), {TallyRowKey(self._tally, 0): increment})
        return self._store.fold(commit, self._noon)

    @property
    def all(self):
        """Every call that reads or writes tallies, by its name."""
        store, name = self._store, self._tally[:2]
        return {
            "publish": lambda: store.publish({"m": [self.scheme]}),
            "fold few": self.fold,
            "fold many": lambda: self.fold(range(WIDTH)),
            "schemes": store.schemes,
            "windows": lambda: store.windows(*name),
            "tally": lambda: store.tally(*name, [WINDOW]),
            "reports": lambda: store.reports(*name, [WINDOW]),
            "version": lambda: store.version(*name, [WINDOW]),
            "versions": lambda: store.versions({"m": [WINDOW]}),
            "sealed": lambda: store.sealed(*name, [WINDOW]),
            "seal": lambda: store.seal(self._tally),
            "drop": lambda: store.drop(self._noon),
            "ping": store.ping,
        }
