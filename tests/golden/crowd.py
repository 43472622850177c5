"""The crowd that the golden files tell of: a registry, and the tallies of its metrics.

The tallies were drawn once, and are kept in `crowd.npz`: whatever becomes of the samplers, the
golden files rest on the same sums. `python tests/golden/crowd.py` draws them anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deniable import Registry, Scheme
from deniable_collector.stores import open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey

HERE = Path(__file__).parent
CELLS = HERE / "crowd.npz"
NOW = datetime(2026, 11, 21, 9, tzinfo=UTC).timestamp()
LAST_DAY = date(2026, 11, 20)
FORGED = "notifications"

DEVICES = {
    "dark_mode": 4_000,
    "notifications": 5_000,
    "legacy": 2_000,
    "browser": 6_000,
    "country": 20_000,
    "search_engine": 9_000,
    "theme": 7_000,
    "update_channel": 5_000,
    "plan_tier": 30_000,
    "interface_language": 8_000,
    "keyboard": 6_000,
    "crash_site": 10_000,
    "font": 9_000,
    "plugin": 6_000,
    "command": 900,
    "shortcut": 15_000,
    "homepage": 12_000,
    "extension": 9_000,
}
"""How many devices report each metric in a window; of `silent`, none does."""

WEEKS = ("2026-W45", "2026-W46")
MONTHS = ("2026-07", "2026-08", "2026-09", "2026-10")
EARLIER_DAYS = 6
"""For so many of its days, `update_channel` had the earlier epsilon."""


def days(count: int) -> tuple[str, ...]:
    """The labels of so many days, of which `LAST_DAY` is the last."""
    return tuple((LAST_DAY - timedelta(back)).isoformat() for back in reversed(range(count)))


def candidates(name: str) -> list[str]:
    """The strings that are looked for in a string metric."""
    if name == "homepage":
        return [f"https://site-{number}.example/?a=1&b=2" for number in range(24)]
    return [f"{name}/module_{number // 10}.ts:{number}" for number in range(200)]


def registry() -> Registry:
    """The registry in force."""
    return Registry.load(HERE / "metrics.toml")


def schemes() -> Iterator[tuple[str, Scheme, tuple[str, ...]]]:
    """Each metric's name, scheme and windows with reports, and those of its earlier schemes."""
    for metric in registry():
        if metric.name not in DEVICES:
            continue
        labels = days(56 if metric.name in ("dark_mode", "browser") else 10)
        if metric.window == "week":
            labels = WEEKS
        elif metric.window == "month":
            labels = MONTHS
        elif metric.name == "legacy":
            labels = labels[:-3]
        elif metric.name in ("crash_site", "homepage"):
            labels = labels[-6:]
        elif metric.name == "update_channel":
            earlier = Registry.load(HERE / "earlier.toml")[metric.name].scheme
            yield metric.name, earlier, labels[:EARLIER_DAYS]
            labels = labels[EARLIER_DAYS:]
        yield metric.name, metric.scheme, labels


def build(folder: Path) -> str:
    """Put the registry, the lists of strings and a filled store into a folder.

    Returns the store's address. The registry is `metrics.toml`, the lists are in `candidates`.
    """
    for name in ("metrics.toml", "countries.txt"):
        shutil.copy(HERE / name, folder / name)
    (folder / "candidates").mkdir()
    for metric in registry():
        if metric.needs_candidates:
            lines = "".join(f"{each}\n" for each in candidates(metric.name))
            (folder / "candidates" / f"{metric.name}.txt").write_text(lines, encoding="utf-8")
    address = f"sqlite:///{folder}/tallies.db"
    store = open_store(address)
    store.publish({metric.name: [metric.scheme] for metric in registry()})
    with np.load(CELLS) as kept:
        for number, (name, scheme, labels) in enumerate(schemes()):
            store.publish({name: [scheme]})
            key = f"{name} {scheme.fingerprint}"
            increments = dict(
                each
                for label, reports, cells in zip(
                    labels, kept[f"{key} reports"], kept[f"{key} cells"], strict=True
                )
                for each in _rows(TallyKey(name, scheme.fingerprint, label), scheme, reports, cells)
            )
            assert not store.fold(Commit((f"{number:032x}",), increments), NOW)
    store.close()
    return address


def _rows(
    key: TallyKey, scheme: Scheme, reports: NDArray[np.int64], cells: NDArray[np.int64]
) -> Iterator[tuple[TallyRowKey, Increment]]:
    widths = [row.width for row in scheme.mechanism.rows]
    parts = np.split(cells.astype(np.int64), np.cumsum(widths)[:-1])
    for number, (count, part) in enumerate(zip(reports.tolist(), parts, strict=True)):
        if count:
            columns = np.flatnonzero(part)
            yield (
                TallyRowKey(key, number),
                Increment(len(part), count, columns.tolist(), part[columns].tolist()),
            )


def draw() -> None:
    """Draw the tallies, and keep them."""
    from deniable_estimator.analyses.sampling import sample_tally

    rng = np.random.default_rng(20_261_121)
    kept: dict[str, NDArray[np.unsignedinteger]] = {}
    for name, scheme, labels in schemes():
        asked = candidates(name) if scheme.needs_candidates else None
        values: Sequence[str] = asked or scheme.values or ()
        reports, cells = [], []
        for place, label in enumerate(labels):
            shares = 1 / np.arange(1, len(values) + 1) ** 1.3
            if len(values) > 2:
                # One value rises and then stays, so that there is a change to be found.
                shares[2] *= 1 if place < len(labels) * 0.6 else 2
            counts = rng.multinomial(DEVICES[name], shares / shares.sum())
            tally = sample_tally(scheme, counts, rng, values=asked, metric=name, window=label)
            reports.append([row.reports for row in tally.rows])
            cells.append(np.concatenate([row.cells for row in tally.rows]))
        if name == FORGED:
            cells[-1] = np.array([reports[-1][0], 0], np.int64)
        for what, found in (("reports", reports), ("cells", cells)):
            whole = np.array(found)
            key = f"{name} {scheme.fingerprint} {what}"
            kept[key] = whole.astype(np.min_scalar_type(whole.max()))
    np.savez_compressed(CELLS, **kept)


if __name__ == "__main__":
    draw()
