"""Reports of a discovery by both SDKs in one tally."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np

from deniable import Registry, compiled
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.answers.finds_making import Reported, Rule, find_strings
from deniable_estimator.statistics.participation import Participation

WEB = Path(__file__).parents[2] / "client" / "web"
REGISTRY = """
schema = 1
app = "example"
[metrics.word]
type = "discovery"
description = "The word that was sought last."
owner = "tests@acme.example"
expires = 2999-12-31
max_length = 4
epsilon = 4.0
lifetime_epsilon = 80.0
"""
PAGES = {"tea": 3000, "milk": 3000}
APPS = {"tea": 3000, "搜": 3000}


def test_reports_of_both_are_decoded_together(packages: None, node: str, tmp_path: Path) -> None:
    """Pages and apps report their words by fresh randomness of the operating system. One tally of
    both gives the words of both, with intervals that cover the truth (4.9 standard errors: alpha
    1e-6 for each of 3)."""
    registry = Registry.parse(REGISTRY)
    metric = registry["word"]
    path = tmp_path / "metrics.json"
    path.write_text(compiled.to_text(compiled.to_document(registry)), encoding="utf-8")
    done = subprocess.run(
        [
            *(node, Path(__file__).with_name("discovery_reports.mjs"), WEB, path, "word"),
            json.dumps(PAGES),
        ],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    reports = [tuple(each) for each in json.loads(done.stdout)]
    assert len(reports) == sum(PAGES.values())
    mechanism = metric.scheme.mechanism
    for text, devices in APPS.items():
        item = metric.item(metric.normalize(text))
        for _ in range(devices):
            made = mechanism.randomize(item)
            reports.append((made.row, made.columns))
    cells = [np.zeros(row.width, np.int64) for row in mechanism.rows]
    counts = [0] * len(cells)
    for row, column in reports:
        counts[row] += 1
        np.add.at(cells[row], column, 1)
    rows = tuple(TallyRow(count, each) for count, each in zip(counts, cells, strict=True))
    tally = Tally("word", metric.scheme.fingerprint, ("2026-11-16",), rows)
    part = Reported(tally, metric.scheme, Participation.evenly(tally))
    finds = {each.text: each for each in find_strings([part], Rule()).finds}
    devices = sum(PAGES.values()) + sum(APPS.values())
    # One string in a hundred may be one that nobody has.
    assert set(finds) >= {*PAGES, *APPS}
    for text in {*PAGES, *APPS}:
        found = finds[text]
        true = (PAGES.get(text, 0) + APPS.get(text, 0)) / devices
        assert abs(found.share - true) < 4.9 * found.std_error
