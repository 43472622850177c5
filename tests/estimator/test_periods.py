"""Many ranges of days that are read and calculated together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deniable import Registry, windows
from deniable_collector.stores import open_store
from deniable_collector.stores.base import Store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_estimator.answers.base import Answer
from deniable_estimator.errors import OnlyLongerError
from deniable_estimator.questions.periods import read_ranges
from deniable_estimator.questions.reading import read

FIRST = date(2025, 12, 1)
DAYS = [f"{FIRST + timedelta(each)}" for each in range(70)]
NOW = datetime(2026, 2, 8, 9, tzinfo=UTC).timestamp()
"""The last of these days has not ended."""
TEXT = """
schema = 1
app = "editor"
[defaults]
owner = "o@acme.example"
expires = 2099-01-01
sample_rate = 0.1
[segments.plan]
values = ["free", "paid"]
[metrics.browser]
type = "category"
values = ["a", "b", "c"]
description = "Which?"
segments = ["plan"]
devices = 100000
epsilon = {epsilon}
lifetime_epsilon = 7.0
[metrics.minutes]
type = "number"
ask = "mean"
low = 0
high = 60
description = "How long?"
epsilon = {epsilon}
lifetime_epsilon = 7.0
"""
BEFORE, REGISTRY = (Registry.parse(TEXT.format(epsilon=each)) for each in ("2.0", "1.0"))


def fill(store: Store, registry: Registry, days: Sequence[str], seed: int) -> None:
    """Reports of both metrics on these days; on each seventh there are few."""
    draw = np.random.default_rng(seed)
    store.publish({each.name: [each.scheme] for each in registry})
    increments = {}
    for metric in registry:
        for number, day in enumerate(days):
            for row, shape in enumerate(metric.scheme.rows):
                reports = 9 if number % 7 == 3 else 800
                counts = draw.multinomial(reports, np.full(shape.width, 1 / shape.width))
                key = TallyRowKey(TallyKey(metric.name, metric.scheme.fingerprint, day), row)
                increments[key] = Increment(
                    shape.width, reports, range(shape.width), counts.tolist()
                )
    store.fold(Commit((f"{seed:032x}",), increments), NOW)


@pytest.fixture
def filled(tmp_path: Path) -> Any:
    """A store with an earlier scheme in the first days, which overlap with those of today's."""
    store = open_store(f"sqlite:///{tmp_path}/store.db")
    fill(store, BEFORE, DAYS[:20], 1)
    fill(store, REGISTRY, DAYS[15:30] + DAYS[35:], 2)
    yield store
    store.close()


def ranges(by: windows.Kind) -> list[tuple[date, date]]:
    """All periods of that kind; the first and the last day are cut off."""
    found = []
    first, last = FIRST + timedelta(1), date.fromisoformat(DAYS[-1]) - timedelta(1)
    for label in windows.span(by, first, last):
        begin = datetime.fromtimestamp(windows.start(label), UTC).date()
        end = datetime.fromtimestamp(windows.end(label) - 1, UTC).date()
        found.append((max(first, begin), min(last, end)))
    return found


def told(answer: Answer) -> str:
    """All that an answer says, to the last digit."""
    return repr((answer.to_dict(), answer.warnings, answer.unfinished, answer.participation))


WITHOUT: dict[str, Any] = {"without": ["2025-12-10", "2026-01-20"], "level": 0.9}


@pytest.mark.parametrize("by", ["day", "week", "month"])
@pytest.mark.parametrize(
    ("metric", "more"),
    [
        ("browser", WITHOUT),
        ("browser", {"where": {"plan": "free"}}),
        ("browser", {"candidates": ["c", "a"]}),
        ("minutes", WITHOUT),
    ],
)
def test_ranges_together_are_as_each_alone(
    filled: Store, metric: str, by: windows.Kind, more: dict[str, Any]
) -> None:
    """Days, weeks and months have the answers that each has alone: of one scheme or two, with few
    reports or none, without some windows, of one segment and of some values."""
    asked = ranges(by)
    now = windows.start("2026-02-07")
    found = list(read_ranges(filled, REGISTRY, metric, asked, now=now, **more))
    alone = [read(filled, REGISTRY, metric, *each, now=now, **more) for each in asked]
    assert [told(each) for each in found] == [told(each) for each in alone]
    assert len({told(each) for each in found}) > 1


def test_no_range_asks_for_nothing(filled: Store) -> None:
    """Without ranges there are no answers, and the store is not asked."""
    assert list(read_ranges(filled, REGISTRY, "browser", [], now=NOW)) == []


def test_an_error_stands_where_its_range_is(filled: Store) -> None:
    """Where single windows were dropped, the ranges before them are answered, and the error names
    the windows of the first that cannot be."""
    scheme = REGISTRY["browser"].scheme.fingerprint
    filled.sums.drop_windows("browser", scheme, windows.start("2026-02-01"), ["month"])
    days = [date(2026, 2, 3), date(2026, 2, 4), date(2026, 1, 20), date(2026, 2, 5)]
    answers = read_ranges(filled, REGISTRY, "browser", [(each, each) for each in days], now=NOW)
    assert [next(answers).n for _ in range(2)] == [
        read(filled, REGISTRY, "browser", each, each, now=NOW).n for each in days[:2]
    ]
    with pytest.raises(OnlyLongerError) as caught:
        next(answers)
    assert caught.value.windows == ("2026-01-20",)
