"""The crowd that the facts are about: a registry with every kind of question, and its sums.

The sums were drawn once by `draw_crowd.py` and are kept in `crowd/sums.npz`, so the facts rest on
the same sums whatever becomes of the samplers. `build` makes what a team with these metrics has: a
store, annotations, a board, rules for `watch`, lists of strings, one published release, and a
device.
"""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import numpy as np

from deniable import Client, Registry, Scheme
from deniable.device.transport import Reply
from deniable.protocol import windows
from deniable_collector.settings import Settings
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import Addition, Commit, TallyKey
from deniable_collector.stores.vectors import addition_of, shape_of
from deniable_estimator.analyses import sample_tally
from deniable_estimator.kinds.retention import crowd as retention_crowd
from deniable_estimator.kinds.retention.crowd import Life

FILES = Path(__file__).parent / "crowd"
SUMS = FILES / "sums.npz"
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC).timestamp()
LAST_DAY = "2026-11-20"
STRINGS = {
    "crash_site": [f"src/module_{each // 8}.ts:{each}" for each in range(64)],
    "homepage": [f"https://site-{each}.example/?a=1&b=2" for each in range(16)],
}
"""The strings that are looked for in each metric of strings."""

PLUGINS = {
    "spelling": 26,
    "git": 18,
    "translator": 13,
    "themes": 10,
    "terminal": 8,
    "vim": 6,
    "internal": 5,
    "latex": 4,
    "emoji": 3,
    "tables": 2,
    "minimap": 5,
}
"""The plugins and how common each is, in percent."""

STORE = "sums.db"
MECHANISMS = "mechanisms.db"
RARE = "rare.db"
LEDGER = "releases.sqlite"


def registry():
    """The registry in force."""
    return Registry.load(FILES / "metrics.toml")


def schemes():
    """The schemes of each metric by their fingerprints, also those of an earlier registry."""
    found: dict[str, dict[str, Scheme]] = {}
    for each in (Registry.load(FILES / "earlier.toml"), registry()):
        for metric in each:
            found.setdefault(metric.name, {})[metric.scheme.fingerprint] = metric.scheme
    return found


def build(folder):
    """Put the registry and all that goes with it into a folder, but the release."""
    shutil.copytree(FILES, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.npz"))
    (folder / "lists").mkdir()
    for name, strings in STRINGS.items():
        lines = "".join(f"{each}\n" for each in strings)
        (folder / "lists" / f"{name}.txt").write_text(lines, encoding="utf-8")
    (folder / "lists" / "two.txt").write_text(f"{STRINGS['crash_site'][1]}\ncomic sans\n")
    (folder / "lists" / "plugins.txt").write_text("".join(f"{each}\n" for each in PLUGINS))
    known = schemes()
    store = open_store(Settings(store=f"sqlite:///{folder / STORE}"))
    store.publish((name, each) for name, found in known.items() for each in found.values())
    with np.load(SUMS) as kept:
        sums = {name: kept[name] for name in kept.files}
    additions = iter(_additions(sums, known))
    number = 0
    while some := dict(islice(additions, 200)):
        number += 1
        assert not store.fold(Commit((f"{number:032x}",), some), NOW)
    store.close()
    _draw_mechanisms(folder, MECHANISMS, _drawn)
    _draw_mechanisms(folder, RARE, _rare)
    _use_device(folder)


def _draw_mechanisms(folder, name, drawn):
    """Fill a store with four windows of each mechanism."""
    rng = np.random.default_rng(22)
    declared = Registry.load(FILES / "mechanisms.toml")
    store = open_store(Settings(store=f"sqlite:///{folder / name}"))
    store.publish((each.name, each.scheme) for each in declared)
    found = {}
    for metric in declared:
        last = windows.window_at(metric.window, windows.start(LAST_DAY))
        labels = [windows.shifted(last, -back) for back in (12, 11, 10, 9)]
        for label, tallies in zip(labels, drawn(metric, labels, rng), strict=True):
            key = TallyKey(metric.name, metric.scheme.fingerprint, label)
            rows = dict(enumerate(row for each in tallies for row in each.rows))
            found[key] = addition_of(store.shape(key[:2]), rows)
    assert not store.fold(Commit((f"{1:032x}",), found), NOW)
    store.close()


def _rare(metric, labels, rng):
    """Three devices, very many, and two windows of what no device sends, one with many columns
    that nobody has set."""
    if metric.type.name == "retention":
        return _drawn(metric, labels, rng)
    few, many = _drawn(metric, labels[:2], rng, (3, 60_000))
    forged = []
    for spared in (0.0, 0.7):
        weights = rng.random(sum(each.width for each in metric.scheme.rows))
        weights *= rng.random(len(weights)) >= spared
        forged.append([_forged(each, weights, rng) for each in many])
    return [few, many, *forged]


def _forged(tally, weights, rng):
    rows, start = [], 0
    for row in tally.rows:
        some = weights[start : start + len(row.cells)]
        start += len(row.cells)
        if not some.any():
            some = np.ones(len(some))
        if row.cells.sum() == row.reports:
            cells = rng.multinomial(int(row.reports), some / some.sum())
        else:
            cells = rng.binomial(int(row.reports), some)
        rows.append(replace(row, cells=cells))
    return replace(tally, rows=rows)


def _drawn(metric, labels, rng, crowds=(700, 20, 1300, 400)):
    """For each window, one of which has twenty devices, the tallies of each combination of
    segments."""
    if metric.type.name == "retention":
        life = Life.steady(400)
        lived = retention_crowd.tallies_of(metric, labels, [life] * 4, rng, older=400 - life.new)
        return [[tally] for tally, _ in lived]
    strings = {"string": STRINGS["homepage"], "discovery": list(PLUGINS)}.get(metric.type.name)
    made = []
    for devices in crowds:
        tallies = []
        for place, _ in enumerate(metric.scheme.combinations):
            if metric.type.name == "number":
                numbers, counts = np.unique(rng.normal(3, 2, devices), return_counts=True)
                tallies.append(sample_tally(metric.scheme, counts, rng, values=numbers))
                continue
            shares = 1 / np.arange(1, len(strings or metric.values) + 1)
            counts = rng.multinomial(devices // (1 + 20 * place), shares / shares.sum())
            tallies.append(sample_tally(metric.scheme, counts, rng, values=strings))
        made.append(tallies)
    return made


USED = (
    {"dark_mode": True, "browser": "edge", "country": "country 007", "theme": "dark", "tabs": 7},
    {"update_channel": "beta", "interface_language": "zh", "load_time": 0.3, "plugin": "git"},
    {"crash_site": STRINGS["crash_site"][3], "homepage": STRINGS["homepage"][1]},
)
"""What is recorded on a device, on one day after another."""


class _Network:
    """A collector that takes all but the second report of each batch."""

    def send(self, body):
        batch = json.loads(body)
        left = [{"index": 1, "reason": "bad_columns"}] * (len(batch["reports"]) > 1)
        return Reply(202, json.dumps({"batch": batch["batch"], "rejected": left}).encode())


def _use_device(folder):
    """Let a device with the registry in force report over two weeks; some values wait."""
    now = NOW - 14 * 86_400
    with Client(
        folder / "metrics.toml",
        state_dir=folder / ".local/state/deniable/editor",
        clock=lambda: now,
        bits=random.Random(14).getrandbits,
        transport=_Network(),
        background=False,
        spread=0.0,
        segments={"platform": "tablet"},
        consent=True,
        on_trouble=lambda error: None,
    ) as device:
        for day in range(14):
            for name, value in USED[day % 3].items():
                device.record(name, value)
            device.flush()
            now += 86_400


def _additions(sums, known):
    """What adds every window, as a store takes it."""
    for entry in sums:
        name, fingerprint, what = entry.split()
        if what != "windows":
            continue
        shape = shape_of(known[name][fingerprint])
        reports, filled, gaps, counts = (
            sums[f"{name} {fingerprint} {each}"] for each in ("reports", "filled", "gaps", "counts")
        )
        ends = np.cumsum(filled.ravel(), dtype=np.int64)
        row = 0
        for place, label in enumerate(sums[entry].tolist()):
            vector = np.zeros(shape.size, np.int64)
            vector[: len(shape.widths)] = reports[place]
            for number, start in enumerate(shape.starts):
                part = slice(ends[row] - filled[place, number], ends[row])
                row += 1
                vector[start + np.cumsum(gaps[part], dtype=np.int64)] = counts[part]
            (places,) = vector.nonzero()
            addition = Addition(places, vector[places], int(reports[place].sum()))
            yield TallyKey(name, fingerprint, label), addition
