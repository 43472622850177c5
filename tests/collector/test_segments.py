"""A metric with segments: its reports are counted in the rows of their combination, and nowhere
else."""

from __future__ import annotations

import random
from contextlib import closing

import numpy as np

from deniable import Registry, wire
from deniable.segments import combinations
from deniable_collector.intake import Intake
from deniable_collector.stores import open_store

REGISTRY = """
schema = 1
app = "editor"
[segments.platform]
values = ["ios", "android", "web"]
[segments.plan]
values = ["free", "paid"]
[metrics.plugin]
type = "string"
description = "d"
owner = "o"
expires = 2030-06-30
epsilon = 1.0
lifetime_epsilon = 4.0
longitudinal = "memoize"
segments = ["platform", "plan"]
"""
WINDOW = "2026-11-20"


def test_reports_are_counted_in_their_rows(tmp_path, noon):
    """Reports of all combinations give the tally of `scheme.rows`; its sum over the combinations
    is the tally of the same reports without segments; a row beyond the last is refused."""
    registry = Registry.parse(REGISTRY)
    metric = registry["plugin"]
    scheme, rows = metric.scheme, metric.scheme.mechanism.rows
    assert len(scheme.rows) == combinations(scheme.segments) * len(rows) == 6 * len(rows)
    rng = random.Random(5)
    sent = []
    for _ in range(60):
        report = scheme.mechanism.randomize("Oslo", rng.getrandbits)
        row = rng.randrange(6) * len(rows) + report.row
        columns = wire.pack_columns(rows[report.row], report)
        sent.append(wire.SealedReport("plugin", scheme.fingerprint, WINDOW, row, columns))
    address = f"sqlite:///{tmp_path / 'store.db'}"
    with closing(open_store(address)) as store:
        intake = Intake(registry, store, clock=lambda: noon, max_reports=400)
        body = wire.encode_batch(wire.new_batch_id(), sent)
        (receipt,) = intake.take([intake.read(body)])
        assert receipt.accepted == 60
        beyond = sent[0]._replace(row=len(scheme.rows))
        batch = intake.read(wire.encode_batch(wire.new_batch_id(), [beyond]))
        (refused,) = intake.take([batch])
        assert [each.reason for each in refused.rejected] == ["bad_row"]
        tally = store.tally("plugin", scheme.fingerprint, [WINDOW])
    counts = np.bincount([each.row for each in sent], minlength=len(scheme.rows))
    assert [row.reports for row in tally.rows] == counts.tolist()
    for number, row in enumerate(tally.rows):
        mine = [each for each in sent if each.row == number]
        cells = np.zeros(len(row.cells), np.int64)
        for each in mine:
            bits = wire.unpack_columns(scheme.rows[number], each.columns)
            cells += [(bits >> place) & 1 if scheme.rows[0].columns != 1 else bits == place
                      for place in range(len(cells))]  # fmt: skip
        assert row.cells.tolist() == cells.tolist()
