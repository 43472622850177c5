"""A watch tells of a retention that falls."""

from types import SimpleNamespace

import numpy as np
import pytest
from tests.estimator.retention.conftest import CHANGED, WEEKS
from tests.estimator.watching.conftest import RenewedWatcher

from deniable.protocol import windows
from deniable_estimator.annotations import Annotation
from deniable_estimator.asking.fetch import read
from deniable_estimator.asking.query import Days, Query
from deniable_estimator.asking.reader import Reader
from deniable_estimator.kinds.kind import Shown
from deniable_estimator.kinds.retention.crowd import Life, tallies_of
from deniable_estimator.kinds.retention.retention import Around
from deniable_estimator.kinds.retention.words import RetentionKind, growth_words
from deniable_estimator.watching.rules_file import parse_rules
from deniable_estimator.watching.seen import WatchState


def test_a_watch_tells_of_a_fall_and_what_happened_before_it(registry, store, fill):
    """After a release 30 points fewer come back: told with it, once. The crowd has 2,000,000
    devices; of one that does not change nothing is told in as many weeks (seed 6)."""
    metric = registry["back"]
    life = Life.steady(2_000_000)
    changed = windows.number(CHANGED)
    weeks = WEEKS[: WEEKS.index(CHANGED) + 4]
    lives = [
        life if windows.number(week) <= changed else Life(life.new, back=0.15) for week in weeks
    ]
    rules = parse_rules(
        'schema = 1\ndashboard = "https://d.acme.example"\nonly = ["back"]\n[defaults]\n'
        "points = 3.0\n",
        registry.metrics,
        {},
    )
    release = Annotation(1, windows.first_day(CHANGED), None, "Release 4.2", None, ())
    watcher = RenewedWatcher(Reader(store), registry, rules, None, (release,))
    state, told = WatchState(), []
    drawn = tallies_of(metric, weeks, lives, np.random.default_rng(6), older=2_000_000 - life.new)
    for tally, _ in drawn:
        fill(tally, metric.scheme)
        (week,) = tally.windows
        run = watcher.run(state, windows.end(week) + 2 * 86_400, sending=False)
        told += [(week, each["text"]) for each in run.messages if each["kind"] == "change"]
    (first, text), *_ = [each for each in told if "retention after 1 week " in each[1]]
    assert first == weeks[weeks.index(CHANGED) + 1]
    assert "retention after 1 week down" in text
    assert "Release 4.2" in text


@pytest.mark.parametrize(
    ("high", "said"),
    [(1.03, "0.99 devices"), (0.993, "0.990 devices"), (0.9905, "0.9901 devices")],
)
def test_growth_has_the_digits_of_its_interval(high, said):
    """An interval of 0.990 to 0.990 would say that nothing is uncertain."""
    window = SimpleNamespace(window="2026-W47", quick=Around(0.99012, 0.9898, high))
    assert said in growth_words(SimpleNamespace(growth=[window], level=0.95))


def test_the_leading_series_is_offered_first():
    """Then others up to six, and those that are chosen, if the answer has them."""
    names = ("new", "stayed", *(f"age {age}" for age in range(1, 9)))
    answer = SimpleNamespace(series=SimpleNamespace(names=names), leading="age 1")
    offered = RetentionKind().over_time(answer, ["age 8", "new", "nobody"])
    assert offered == ["age 1", "new", "stayed", "age 2", "age 3", "age 4", "age 8"]


def test_an_age_that_no_cohort_has_reached_has_no_row(registry, store, seen):
    """Nothing can be known of it yet; all ages that were reached have one."""
    days = Days(windows.first_day(WEEKS[0]), windows.last_day(WEEKS[4]))
    answer = read(Reader(store), registry, Query("back", days), now=windows.end(WEEKS[-1]))
    rows = RetentionKind().frames(answer, Shown(drawn=False, rows=0))[0].rows
    assert [row[0] for row in rows][-1] == "retention after 4 weeks"
    assert len(rows) == 7
