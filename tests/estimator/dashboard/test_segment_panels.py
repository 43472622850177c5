"""What the page of segments draws: names, scales, intervals without a limit, differences."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from deniable import Registry
from deniable.types.number import Number
from deniable_collector.stores import Store, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_estimator.analyses import analysis_of
from deniable_estimator.dashboard.segment_panels import Panel, panels, panels_shown
from deniable_estimator.questions.segments import by_segment

from .conftest import NOW, YESTERDAY

REGISTRY = Registry.parse("""
schema = 1
app = "example"
[defaults]
owner = "growth@acme.example"
expires = 2027-06-30
[segments.platform]
values = ["ios", "android"]
[metrics.dark_mode]
type = "boolean"
description = "Dark mode is on."
epsilon = 2.0
lifetime_epsilon = 8.0
segments = ["platform"]
[metrics.truth]
type = "category"
description = "A list with a value of this name."
epsilon = 2.0
lifetime_epsilon = 8.0
values = ["true", "false", "unknown"]
segments = ["platform"]
[metrics.load]
type = "number"
description = "How long it takes."
epsilon = 2.0
lifetime_epsilon = 8.0
low = 0.01
high = 100
unit = "s"
scale = "log"
ask = "distribution"
segments = ["platform"]
""")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Dark mode is on for 3 in 10, on Android for 7 in 10; there pages take 1.3 times as long."""
    rng = np.random.default_rng(11)
    load = np.exp(rng.normal(0, 1, 3000))
    kind = REGISTRY["load"].type
    assert isinstance(kind, Number)
    with closing(open_store(f"sqlite:///{tmp_path / 'panels.db'}")) as store:
        store.publish({each.name: [each.scheme] for each in REGISTRY})
        for place, factor in enumerate((1, 1.3)):
            on = 2100 if place else 900
            position = [kind.range.position(factor * number) for number in load.tolist()]
            for name, items, counts in (
                ("dark_mode", np.arange(2), np.array([on, 3000 - on])),
                ("truth", np.arange(3), np.array([1000, 1000, 1000])),
                ("load", *np.unique(position, return_counts=True)),
            ):
                scheme = REGISTRY[name].scheme
                rows = analysis_of(scheme.mechanism).sample_rows(items, counts, rng)
                key = TallyKey(name, scheme.fingerprint, YESTERDAY)
                increments = {}
                for number, row in enumerate(rows):
                    columns = np.flatnonzero(row.cells)
                    increments[TallyRowKey(key, place * len(rows) + number)] = Increment(
                        len(row.cells), row.reports, columns, row.cells[columns]
                    )
                assert not store.fold(
                    Commit((f"{place}{name.encode().hex():0>31}",), increments), NOW
                )
        yield store


def drawn(store: Store, metric: str) -> dict[str, Panel]:
    found = by_segment(store, REGISTRY, metric, ["platform"], now=NOW)
    return {each.name: each for each in panels(found, panels_shown(found))}


def test_a_boolean_says_yes(store: Store) -> None:
    """The panel of a boolean is called as its card calls it; a category's own "true" keeps its
    name."""
    assert list(drawn(store, "dark_mode")) == ["yes"]
    assert {"true", "false", "unknown"} == set(drawn(store, "truth"))


def test_shares_have_one_scale_from_zero(store: Store) -> None:
    """A share twice as large lies twice as far to the right, in whichever panel."""
    (panel,) = drawn(store, "dark_mode").values()
    ios, android, both = panel.lines
    assert [ios.name, android.name, both.kind] == ["ios", "android", "total"]
    for line in (ios, android, both):
        assert line.at is not None
        assert line.at == pytest.approx(
            float(line.number) / float(android.number) * android.at, abs=0.2
        )
    assert android.difference is not None
    assert android.difference.changed
    assert ios.difference is None
    assert both.difference is None


def test_an_interval_without_a_limit_ends_in_an_arrow(store: Store) -> None:
    """Where p99 has no upper limit, its line reaches the edge and has no point, its text says
    from where on, and the scales of the other numbers are their own."""
    found = drawn(store, "load")
    p99, p50 = found["p99"], found["p50"]
    assert p99.endless
    for line in p99.lines:
        if line.open_high:
            assert line.at is None
            assert line.start + line.width == pytest.approx(100, abs=0.02)
            assert line.number.startswith("at least ")
            assert line.between.endswith(" to no upper limit")
    assert not p50.endless
    starts = [line.start for line in p50.lines]
    ends = [line.start + line.width for line in p50.lines]
    assert min(starts) == pytest.approx(3.7, abs=0.1)
    assert max(ends) == pytest.approx(96.3, abs=0.1)


def test_no_difference_in_bold_holds_zero(store: Store) -> None:
    """A difference that is told as real has both limits on one side of zero."""
    for panel in drawn(store, "load").values():
        for line in panel.lines:
            if line.difference is not None and line.difference.changed and line.difference.between:
                low, _, high = line.difference.between.partition(" to ")
                assert (low[0] == "+") == (high[0] == "+")
