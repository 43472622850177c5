"""Windows that have not ended and have reports: they count, are marked, and are not compared."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import pytest

from deniable import Registry, Scheme, windows
from deniable.mechanisms import SubsetSelection
from deniable_collector.stores.base import Store
from deniable_collector.tally import Tally
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import estimate
from deniable_estimator.questions.history import inspect
from deniable_estimator.questions.looks import Look
from deniable_estimator.questions.reading import read, unfinished
from deniable_estimator.questions.trend import trend

TODAY = datetime(2026, 11, 18, 9, tzinfo=UTC).timestamp()
"""Nine o'clock on a Wednesday."""

WARNING = (
    "unfinished: {}; more reports will come, and the devices that report first need not be like "
    "the others"
)


@pytest.fixture
def filled(
    registry: Registry, fill: Callable[[Tally, Scheme], None], make_tally: Callable[..., Tally]
) -> Scheme:
    """Reports of a Wednesday, the Tuesday after it and the Wednesday that runs."""
    scheme = registry["browser"].scheme
    for day in ("2026-11-11", "2026-11-17", "2026-11-18"):
        fill(make_tally(scheme, 1000, [500, 500, 50, 50], (day,)), scheme)
    return scheme


def test_a_window_is_unfinished_until_it_ends() -> None:
    """The last second of a day, week or month still belongs to it; its end does not."""
    for label in ("2026-11-18", "2026-W47", "2026-11"):
        end = windows.end(label)
        assert unfinished([label], end - 1) == (label,)
        assert unfinished([label], end) == ()


@pytest.mark.usefixtures("filled")
def test_an_estimate_says_so(store: Store, registry: Registry) -> None:
    """The running window counts, is named, and is the first warning; a day later nothing of it
    is left."""
    found = read(store, registry, "browser", now=TODAY)
    assert found.n == 3000
    assert found.unfinished == ("2026-11-18",)
    assert found.warnings[0] == WARNING.format("2026-11-18")
    assert found.warnings[0] in found.notes
    assert found.to_dict()["unfinished"] == ["2026-11-18"]
    later = read(store, registry, "browser", now=TODAY + 86_400)
    assert later.unfinished == ()
    assert later.warnings == found.warnings[1:]
    assert later.share.tolist() == found.share.tolist()


@pytest.mark.usefixtures("filled")
def test_a_trend_marks_it_and_compares_it_with_none(store: Store, registry: Registry) -> None:
    """The day that runs has its estimate and no change; once it has ended, it is compared with
    the same weekday before."""
    running = trend(store, registry, "browser", now=TODAY).reported[-1]
    assert (running.label, running.unfinished, running.partial) == ("2026-11-18", True, True)
    assert running.change is None
    found = trend(store, registry, "browser", now=TODAY)
    assert [each.unfinished for each in found.reported] == [False, False, True]
    assert any("an unfinished period will have more reports" in each for each in found.notes)
    assert not any("holds only some of its days" in each for each in found.notes)
    assert found.to_dict()["periods"][-1]["unfinished"] is True
    assert "2026-11-18,2026-11-18,2026-11-18,True,True,1000," in found.to_csv()
    ended = trend(store, registry, "browser", now=TODAY + 86_400).reported[-1]
    assert not ended.unfinished
    assert ended.since == "2026-11-11"


@pytest.mark.usefixtures("filled")
def test_a_week_is_unfinished_if_one_of_its_days_is(store: Store, registry: Registry) -> None:
    """A running week of ended days is partial; with reports of a day that runs, unfinished."""
    on_time = trend(store, registry, "browser", by="week", now=TODAY).reported[-1]
    assert (on_time.unfinished, on_time.partial) == (True, True)
    assert on_time.change is None
    tomorrow = trend(store, registry, "browser", by="week", now=TODAY + 86_400).reported[-1]
    assert (tomorrow.unfinished, tomorrow.partial) == (False, True)


def test_a_history_does_not_compare_it() -> None:
    """A window that runs has the figures of its own tally, but is held against no other: what
    would be a jump at its end is none before. Fakes that no device could send are still seen."""
    rng = np.random.default_rng(8)
    scheme = Scheme("category", SubsetSelection.design(3, 1.0), ("a", "b", "c"))
    counts = [[9_000, 6_000, 5_000]] * 12 + [[1_000, 1_000, 18_000]]
    looks = [
        Look.of(
            f"2026-11-{day + 1:02}", estimate(sample_tally(scheme, np.array(each), rng), scheme)
        )
        for day, each in enumerate(counts)
    ]
    last = looks[-1].label
    assert [each.label for each in inspect("m", looks).anomalous] == [last]
    found = inspect("m", looks, unfinished={last})
    assert not found.anomalous
    assert found.windows[-1].label == last
    assert {each.name for each in found.windows[-1].verdict.figures} == {
        each.name for each in looks[-1].figures
    }
    earlier = inspect("m", looks[:-1])
    assert [each.label for each in found.windows[:-1]] == [each.label for each in earlier.windows]
