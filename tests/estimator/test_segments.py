"""A metric by segments, out of a real store: one alone, all together, and what is no segment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import pytest
from tests.estimator.conftest import Fill
from tests.registries import declared

from deniable import Registry
from deniable_collector.stores.base import Store
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses import analysis_of
from deniable_estimator.asking.fetch import read, select
from deniable_estimator.asking.query import Days, Query
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.segments import by_segment, enough_reports, trends_by_segment
from deniable_estimator.errors import EstimateError

REGISTRY = (
    declared(
        {"plan": ["free", "paid"]},
        dark_mode={"type": "boolean", "lifetime_epsilon": 200.0, "segments": ["platform"]},
        theme={
            "type": "category",
            "values": ["light", "dark", "system", "sepia", "<script>", "other"],
            "lifetime_epsilon": 200.0,
            "segments": ["plan", "platform"],
        },
    )
    + '[segments.platform]\nvalues = ["ios", "android", "web"]\nother = "other"\n'
)
DAY = date(2026, 11, 2)
NOW = 1_793_790_400.0  # 2026-11-04, the last of three days
SIZES = {"ios": 8000, "android": 4000, "web": 300, "other": 30}


@dataclass
class World:
    """A store that takes the reports of crowds."""

    store: Store
    registry: Registry
    fill: Fill
    rng: np.random.Generator

    def crowd(self, metric, place, counts, day=0, registry=None):
        """So many devices of a combination have each value on a day."""
        scheme = (registry or self.registry)[metric].scheme
        values = np.arange(len(counts))
        own = analysis_of(scheme.mechanism).sample_rows(values, np.asarray(counts), self.rng)
        none = [TallyRow(0, row.cells * 0) for row in own]
        rows = [*none * place, *own, *none * (len(scheme.combinations) - place - 1)]
        window = (DAY + timedelta(day)).isoformat()
        self.fill(Tally(metric, scheme.fingerprint, (window,), tuple(rows)), scheme)


@pytest.fixture
def world(store, fill):
    registry = Registry.parse(REGISTRY)
    store.publish((each.name, each.scheme) for each in registry)
    return World(store, registry, fill, np.random.default_rng(7))


@pytest.fixture
def dark(world):
    """Dark mode on 30% of the devices, 45% on Android, on three days."""
    for day in range(3):
        for place, (name, n) in enumerate(SIZES.items()):
            on = n * (45 if name == "android" else 30) // 100
            world.crowd("dark_mode", place, [on, n - on], day)
    return world


def test_the_total_ignores_segments(dark):
    """The total is the answer of the sum of all rows: to the last bit what the same reports say
    without segments; and so is the sum over the segments."""
    scheme = dark.registry["dark_mode"].scheme
    labels = [(DAY + timedelta(day)).isoformat() for day in range(3)]
    whole = dark.store.tally("dark_mode", scheme.fingerprint, labels)
    cells = sum(row.cells for row in whole.rows)
    found = read(Reader(dark.store), dark.registry, Query("dark_mode"), now=NOW)
    p, q = (float(each) for each in (scheme.oracle.p, scheme.oracle.q))
    assert found.n == whole.reports == 3 * sum(SIZES.values())
    assert found.series.value[0] == pytest.approx(
        (cells[0] / whole.reports - q) / (p - q), abs=1e-15
    )
    split = by_segment(Reader(dark.store), dark.registry, Query("dark_mode"), ["platform"], now=NOW)
    assert split.total.to_dict() == found.to_dict()
    assert sum(each.answer.n for each in (*split.groups, *split.small)) == found.n
    assert split.unsplit == 0


def test_one_segment_is_its_rows_alone(dark):
    """`where` reads the rows of a segment, with the reports of its own windows; it is what `by`
    says of it; and versions differ with it."""
    split = by_segment(Reader(dark.store), dark.registry, Query("dark_mode"), ["platform"], now=NOW)
    for each in split.groups:
        alone = read(
            Reader(dark.store), dark.registry, Query("dark_mode", where=each.labels), now=NOW
        )
        assert alone.to_dict() == each.answer.to_dict()
        assert alone.n == 3 * SIZES[each.name]
        assert set(alone.participation.reports.values()) == {SIZES[each.name]}
    versions = {
        select(Reader(dark.store), dark.registry, Query("dark_mode", where=where)).version()
        for where in ({}, {"platform": "ios"}, {"platform": "web"})
    }
    assert len(versions) == 3


def test_earlier_lists_of_a_segment(dark):
    """After a change of the list, reports of both schemes of a value are combined; those of a
    value that is gone stay; those without the segment count in the total alone."""
    after = Registry.parse(REGISTRY.replace('"web"]\nother = "other"', '"web", "tv"]'))
    before = Registry.parse(REGISTRY.replace('segments = ["platform"]\n', ""))
    dark.crowd("dark_mode", 3, [500, 500], registry=after)
    dark.crowd("dark_mode", 0, [500, 500], registry=after)
    dark.crowd("dark_mode", 0, [300, 300], registry=before)
    split = by_segment(Reader(dark.store), after, Query("dark_mode"), ["platform"], now=NOW)
    assert {each.name: each.answer.n for each in split.groups} == {
        "ios": 25_000, "android": 12_000, "web": 900, "tv": 1000,
    }  # fmt: skip
    assert split.unsplit == 600
    assert split.total.n == 3 * sum(SIZES.values()) + 2000 + 600
    assert any("600 reports of earlier schemes" in note for note in split.notes)
    assert len(split.groups[0].answer.schemes) == 2


def test_small_segments_are_one_together(world):
    """Segments of 60 and 70 devices say nothing alone, and are the rest: the sum of their rows,
    with the reports of both."""
    for place, n in enumerate((4000, 2000, 60, 70)):
        world.crowd("dark_mode", place, [n // 2, n - n // 2])
    asked = Reader(world.store), world.registry, Query("dark_mode", Days(DAY, DAY)), ["platform"]
    scheme = world.registry["dark_mode"].scheme
    split = by_segment(*asked, now=NOW)
    assert [each.name for each in split.small] == ["web", "other"]
    rows = world.store.tally("dark_mode", scheme.fingerprint, [DAY.isoformat()]).rows[2:]
    p, q = (float(each) for each in (scheme.oracle.p, scheme.oracle.q))
    cell = sum(int(row.cells[0]) for row in rows)
    assert split.rest is not None
    assert split.rest.series.value[0] == pytest.approx((cell / 130 - q) / (p - q), abs=1e-15)
    assert split.rest.participation.reports == {DAY.isoformat(): 130}


@pytest.mark.parametrize(
    ("metric", "where", "options", "told"),
    [
        ("dark_mode", {}, {"by": []}, "dark_mode is counted by platform"),
        ("dark_mode", {"plan": "paid"}, {"by": ["platform"]}, "not counted by a segment"),
        ("dark_mode", {"platform": "tv"}, {"by": ["platform"]}, "no value tv"),
        ("theme", {}, {"by": ["plan", "platform"], "against": {"plan": "paid"}}, "name a value"),
        ("dark_mode", {}, {"by": ["platform"], "against": {"platform": "web"}}, "fewer than 100"),
    ],
)
def test_bad_questions(world, metric, where, options, told):
    """What is no segment, or none with enough reports, is refused by its name."""
    with pytest.raises(EstimateError, match=told):
        by_segment(
            Reader(world.store), world.registry, Query(metric, where=where), now=NOW, **options
        )


def test_each_segment_has_its_own_periods(world):
    """The trend of a segment is by the finest periods of which half have enough reports."""
    enough = enough_reports(world.registry["dark_mode"].scheme)
    for day in range(40):
        for place, n in enumerate((enough, enough // 6, enough // 20, enough // 1000 + 3)):
            world.crowd("dark_mode", place, [n // 2, n - n // 2], day)
    asked = Reader(world.store), world.registry, Query("dark_mode"), ["platform"]
    found = trends_by_segment(*asked, now=1e12)
    assert [each.by for each in found.trends] == ["day", "week", "month", "month"]
    assert any("longer periods" in note for note in found.notes)
    days = trends_by_segment(*asked, by="day", now=1e12)
    assert {each.by for each in days.trends} == {"day"}
