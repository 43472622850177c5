"""A retention as a caller sees it: what is read from a store, and what it rests on. Estimates are
within 4.5 standard errors of the truth (alpha 7e-6 each, at most 40 of them in a test)."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from tests.estimator.conftest import NOW
from tests.estimator.planning.conftest import plan
from tests.estimator.retention.conftest import CHANGED, DEVICES, FEWER, WEEKS
from tests.registries import declared

from deniable import Registry
from deniable.protocol import windows
from deniable_collector.tally import Tally
from deniable_estimator.analyses.retention import WindowedTally
from deniable_estimator.asking.comparison import compare
from deniable_estimator.asking.fetch import read, select
from deniable_estimator.asking.query import Days, Query
from deniable_estimator.asking.reader import Reader
from deniable_estimator.asking.trend import trend
from deniable_estimator.kinds.kind import Shown
from deniable_estimator.kinds.registry import answer_of, combine
from deniable_estimator.kinds.retention.crowd import Answering, Life, tallies_of, true_series
from deniable_estimator.kinds.retention.retention import RetentionAnswer, retention_series
from deniable_estimator.kinds.retention.words import RetentionKind

_ERRORS = 4.5


def _asked(store, registry, *weeks, metric="back"):
    first, last = (weeks[0], weeks[-1]) if weeks else (WEEKS[0], WEEKS[-1])
    answer = read(
        Reader(store),
        registry,
        Query(metric, Days(windows.first_day(first), windows.last_day(last))),
        now=windows.end(WEEKS[-1]),
    )
    assert isinstance(answer, RetentionAnswer)
    return answer


def test_a_store_tells_the_lifecycle_and_the_average_of_all_cohorts(store, registry, seen):
    answer = _asked(store, registry)
    truth = true_series(seen, answer.ages)
    series = answer.series
    assert series.names == ("new", "stayed", "returned", *(f"age {k}" for k in range(1, 13)))
    assert retention_series(registry["back"].type) == series.names
    for place, name in enumerate(series.names):
        assert abs(series.value[place] - truth[name]) < _ERRORS * series.std_error[place], name
    assert (series.low < series.value).all()
    assert (series.value < series.high).all()
    assert answer.leading == "age 1"


def test_the_newest_cohorts_are_drawn_and_the_rest_are_counted(store, registry, seen):
    """Below the average of all; a cell has a colour where its interval is at most 20 points
    wide."""
    answer = replace(_asked(store, registry), level=0.99)
    picture = RetentionKind().pictures(answer, Shown(rows=0), 0)[-1]
    everybody, *rows = picture.chart.rows
    assert everybody.whole
    assert [row.label for row in rows] == list(WEEKS[-2:-15:-1])
    assert picture.notes == ("6 older cohorts are not drawn; the files hold them.",)
    spread = {(row[0], row[2]): row[7] - row[6] for row in answer.rows() if row[4] is not None}
    assert min(spread.values()) < 0.2 < max(spread.values())
    for row in rows:
        for age, cell in enumerate(row.cells, 1):
            sure = spread.get((row.label, age), 1.0) <= 0.2
            assert cell is None or (cell.level > 0) is sure, (row.label, age)


def test_growth_is_what_follows_from_the_lifecycle(store, registry, seen):
    """Devices of both rows are counted; those that stayed are estimated from half of them, so the
    lost ones are known to half an interval of 3%."""
    found = _asked(store, registry, *WEEKS[5:8]).growth
    assert [each.window for each in found] == list(WEEKS[5:8])
    for each, before, now in zip(found, seen[4:], seen[5:], strict=False):
        everybody = sum(each.devices.sum() for each in now.values())
        assert each.active == everybody
        earlier = sum(each.devices.sum() for each in before.values())
        lived = now["lifecycle"].devices
        lost = earlier - everybody * lived[1] / lived.sum()
        assert each.lost is not None
        assert each.lost.low < each.lost.value < each.lost.high
        assert abs(each.lost.value - lost) < 0.02 * everybody
        assert each.quick is not None
        assert each.quick.value == pytest.approx((everybody - each.stayed.value) / each.lost.value)


def test_one_week_tells_of_the_cohorts_that_began_before_it(store, registry, seen):
    """A trend has a retention in each week but the first, before which no cohort is known."""
    found = trend(Reader(store), registry, Query("back"), now=windows.end(WEEKS[-1]))
    first, *rest = (period.estimate for period in found.periods)
    assert first is not None
    assert np.isnan(first.series.value[first.series.names.index("age 1")])
    for place, answer in enumerate(rest, 1):
        assert isinstance(answer, RetentionAnswer)
        cohorts = [seen[each]["cohorts"].devices for each in (place - 1, place)]
        truth = cohorts[1][1] / cohorts[0][0]
        at = answer.series.names.index("age 1")
        error = answer.series.std_error[at]
        assert abs(answer.series.value[at] - truth) < _ERRORS * error, WEEKS[place]


def test_a_week_that_has_not_ended_says_nobody_is_lost(store, registry, seen):
    """Its devices may report yet; what the weeks before say stays as it is."""
    whole = _asked(store, registry, *WEEKS[:-1])
    found = read(Reader(store), registry, Query("back"), now=windows.end(WEEKS[-1]) - 1)
    assert found.unfinished == WEEKS[-1:]
    assert [each.window for each in found.growth] == list(WEEKS[:-1])
    assert found.rows() == whole.rows()
    assert "cohorts and growth are told of complete windows" in found.warnings[1]
    running = read(
        Reader(store),
        registry,
        Query("back", Days(windows.first_day(WEEKS[-1]))),
        now=windows.end(WEEKS[-1]) - 1,
    )
    assert running.growth == ()
    assert np.isnan(running.series.at("age 1")[0])
    told = RetentionKind().headline(running)
    assert told.startswith("How many come back is told when these windows have ended.")
    alone = replace(running, lifecycle=None)
    (frame,) = RetentionKind().frames(alone, Shown(rows=9))
    assert frame.pictures == ()
    assert not RetentionKind().charts(alone, Shown(rows=9), 9)


def test_cohorts_before_and_after_a_change_are_compared(store, registry, seen):
    """Cohorts that began before it count as such although they were seen again after it; the
    comparison holds the planted change, and finds it."""
    place = WEEKS.index(CHANGED)
    before, after = (_asked(store, registry, *each) for each in (WEEKS[:place], WEEKS[place:]))
    found = compare(before, after)
    at = found.values.index("age 1")
    assert abs(found.difference[at] + FEWER) < _ERRORS * found.std_error[at]
    assert found.changed[at]
    # What is shown of both periods is of the same cohorts as the change.
    told = [each.series.at("age 1")[0] for each in (found.before, found.after)]
    assert told == [found.old[at], found.new[at]]
    # The answer of the later weeks also tells of the last cohort before them.
    assert f"cohort,{WEEKS[place - 1]}," in after.to_csv()


@pytest.mark.parametrize(
    ("first", "told"),
    [(WEEKS[0], "too few windows or reports for a cohort"), ("2020-W01", "no reports")],
)
def test_why_a_change_is_unknown(first, told, store, registry, seen):
    """The first week has reports, and no cohort that was seen again."""
    found = compare(_asked(store, registry, first), _asked(store, registry, *WEEKS[1:]))
    at = found.values.index("age 1")
    assert found.describe(at) == f"the change is unknown: one of the two has {told}"


def test_reports_under_two_epsilons_are_told_together(registry):
    """Half of the devices update to another epsilon in each week: the sums of both schemes."""
    text = declared(back={"type": "retention", "epsilon": 3.0, "lifetime_epsilon": 6.0})
    metrics = registry["back"], Registry.parse(text)["back"]
    life = Life.steady(DEVICES)
    parts, truths = [], []
    for seed, metric in enumerate(metrics):
        rng = np.random.default_rng(seed)
        drawn = list(tallies_of(metric, WEEKS, [life] * len(WEEKS), rng))
        parts.append(_together([tally for tally, _ in drawn], metric.scheme))
        truths.append([window for _, window in drawn])
    whole = combine(parts)
    both = [
        {each: Answering(*map(np.add, one[each], two[each])) for each in one}
        for one, two in zip(*truths, strict=True)
    ]
    truth = true_series(both, 12)
    assert whole.n == sum(each.n for each in parts)
    for name in ("new", "stayed", "age 1", "age 5"):
        at = whole.series.names.index(name)
        error = whole.series.std_error[at]
        assert abs(whole.series.value[at] - truth[name]) < _ERRORS * error, name
        if name.startswith("age"):
            assert error < max(each.series.std_error[at] for each in parts)


def test_only_ages_of_cohorts_that_began_have_a_truth():
    """Of two new devices in the second of four windows one is back after a window."""
    cohorts = np.array([[0, 0, 0, 0, 1], [2, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]])
    seen = [{"cohorts": Answering(each, each)} for each in cohorts]
    assert true_series(seen, 3) == {"age 1": 0.5, "age 2": 0.0}


def test_windows_that_are_only_kept_in_sums_leave_the_lifecycle(registry):
    """What a longer sum holds says nothing of single cohorts, and the answer says so."""
    metric = registry["back"]
    drawn = tallies_of(metric, WEEKS[:3], [Life.steady(DEVICES)] * 3, np.random.default_rng(5))
    tallies = [tally for tally, _ in drawn]
    rows = tuple(
        sum(same[1:], same[0]) for same in zip(*(each.rows for each in tallies), strict=True)
    )
    whole = Tally(metric.name, metric.scheme.fingerprint, tuple(WEEKS[:3]), rows)
    answer = answer_of(whole, metric.scheme)
    assert isinstance(answer, RetentionAnswer)
    assert np.isfinite(answer.series.value[:3]).all()
    assert np.isnan(answer.series.value[3:]).all()
    assert any("kept only as parts of longer sums" in each for each in answer.warnings)


def test_a_ledger_that_silences_devices_is_told(store, registry, fill):
    """A device that stops after five windows looks as if it had gone."""
    silent = Registry.parse(f"lifetime_epsilon = 12.0\n{_text()}")
    metric = silent["back"]
    (tally, _), *_ = tallies_of(
        metric, WEEKS[-2:], [Life.steady(9_000)] * 2, np.random.default_rng(1)
    )
    fill(tally, metric.scheme)
    answer = read(Reader(store), silent, Query("back"), now=NOW)
    assert any("looks as if it did not come back" in each for each in answer.warnings)


def _text():
    return declared(back={"type": "retention", "lifetime_epsilon": 4.0})


def test_a_late_report_of_an_earlier_week_changes_the_version_of_a_later_one(
    store, registry, seen, fill
):
    """A week's answer rests on the weeks before it, so what is kept of it must not outlive them."""
    metric = registry["back"]

    def versions():
        return select(
            Reader(store), registry, Query("back", Days(windows.first_day(WEEKS[-2])))
        ).each_version()

    before = versions()
    (tally, _), *_ = tallies_of(
        metric, WEEKS[-3:], [Life.steady(2_000)] * 3, np.random.default_rng(1)
    )
    fill(tally, metric.scheme)
    after = versions()
    assert before.keys() == after.keys() == set(WEEKS[-2:])
    assert all(before[label] != after[label] for label in before)


def test_a_plan_says_how_near_an_exact_count_the_lifecycle_is():
    """At epsilon 2, of 50,000 devices in each of 200 drawn weeks, the three shares are within the
    planned half a point of an exact count in 95% of the cases (600 of them, alpha 1e-4)."""
    made = plan("retention", asks="lifecycle", devices=50_000)["tells"]
    assert made.exact is not None
    assert round(100 * made.exact, 1) == 0.5
    registry = Registry.parse(declared(g={"type": "retention", "asks": ["lifecycle"],
                                          "lifetime_epsilon": 4.0}))  # fmt: skip
    metric, life = registry["g"], Life.steady(50_000)
    labels = windows.span("week", date(2020, 1, 1), date(2023, 10, 25))[:200]
    within = []
    drawn = tallies_of(
        metric, labels, [life] * 200, np.random.default_rng(4), older=50_000 - life.new
    )
    for tally, window in drawn:
        answer = answer_of(tally, metric.scheme)
        exact = window["lifecycle"].devices / window["lifecycle"].devices.sum()
        within += (np.abs(answer.series.value - exact) <= made.exact).tolist()
    assert np.mean(within) > 0.915


def _together(tallies, scheme):
    labels = tuple(label for each in tallies for label in each.windows)
    rows = tuple(
        sum(same[1:], same[0]) for same in zip(*(each.rows for each in tallies), strict=True)
    )
    whole = WindowedTally(tallies[0].metric, scheme.fingerprint, labels, rows, each=tuple(tallies))
    answer = answer_of(whole, scheme)
    assert isinstance(answer, RetentionAnswer)
    return answer
