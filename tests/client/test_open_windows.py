"""Open windows: how records merge, when the coin is tossed, and one report for ever."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deniable import Client, Registry, open_windows
from deniable.types import Category

MakeClient = Callable[..., Client]


def held(client: Client) -> list[tuple[str, int]]:
    """The values in open windows, each with how many records it stands for."""
    client.flush()
    with client._state.transaction() as connection:
        return connection.execute("SELECT value, records FROM open_values").fetchall()


def changed(registry: Registry, name: str, **changes: Any) -> Registry:
    """The registry with one metric changed."""
    metric = dataclasses.replace(registry[name], **changes)
    return dataclasses.replace(registry, metrics={**registry.metrics, name: metric})


@pytest.mark.parametrize("flushes", [False, True], ids=["one_transaction", "many"])
@pytest.mark.parametrize(
    ("aggregate", "expected"), [("last", "false"), ("first", "true"), ("max", "true")]
)
def test_records_merge_as_declared(
    make_client: MakeClient, registry: Registry, aggregate: str, expected: str, flushes: bool
) -> None:
    """last, first and max give the same over one transaction and over several."""
    client = make_client(registry=changed(registry, "dark_mode", aggregate=aggregate))
    for value in (True, False, False):
        client.record("dark_mode", value)
        if flushes:
            client.flush()
    assert held(client) == [(expected, 3)]


def test_max_stays_false_without_a_true(make_client: MakeClient) -> None:
    """A boolean that was never true is false."""
    client = make_client()
    client.record("dark_mode", False)
    client.record("dark_mode", False)
    assert held(client) == [("false", 2)]


def test_any_is_a_uniform_reservoir(make_client: MakeClient, registry: Registry) -> None:
    """Each of five records is kept with probability 1/5.

    Chi-square over 1,000 windows, 4 degrees of freedom, seed 11, one comparison: the
    statistic exceeds 18.47 with probability 0.001 if the reservoir is uniform.
    """
    client = make_client(
        registry=changed(registry, "browser", aggregate="any"),
        state_dir=":memory:",
        bits=random.Random(11).getrandbits,
    )
    values = client.registry["browser"].values
    counts: Counter[str] = Counter()
    for _ in range(1000):
        for value in values:
            client.record("browser", value)
        ((value, records),) = held(client)
        assert records == 5
        counts[value] += 1
        with client._state.transaction() as connection:
            open_windows.clear(connection)
    assert sum((counts[value] - 200) ** 2 / 200 for value in values) < 18.47


def test_the_coin_is_tossed_once_and_tails_keeps_nothing(
    make_client: MakeClient, registry: Registry, clock: Any, collector: Any
) -> None:
    """Records and restarts do not toss again: a share of sample_rate of the windows reports.

    400 windows at rate 0.25, seed 4: the count is Binomial(400, 1/4), outside [65, 135] with
    probability below 1e-4. Were the coin tossed at each of the ten records, it would be 377.
    """
    sampled = changed(registry, "dark_mode", sample_rate=0.25, lifetime_epsilon=10_000.0)
    client = make_client(registry=sampled, state_dir=":memory:")
    kept = 0
    for _ in range(400):
        seen = set()
        for _ in range(10):
            client.record("dark_mode", True)
            seen.add(len(held(client)))
        assert len(seen) == 1
        kept += seen.pop()
        clock.days(1)
    client.flush()
    assert 65 <= kept <= 135
    assert len(collector.reports) == kept


def test_the_coin_survives_a_restart(
    make_client: MakeClient, registry: Registry, tmp_path: Any
) -> None:
    """After tails, a new process with heads to toss still keeps nothing of that window."""
    sampled = changed(registry, "dark_mode", sample_rate=0.5)
    with make_client(registry=sampled, bits=lambda count: (1 << count) - 1) as client:
        client.record("dark_mode", True)
    client = make_client(registry=sampled, bits=lambda count: 0)
    client.record("dark_mode", True)
    assert held(client) == []
    client.record("browser", "chrome")
    assert len(held(client)) == 1


def test_a_clock_that_jumps_back_gets_no_second_report(
    make_client: MakeClient, clock: Any, collector: Any
) -> None:
    """A window that was reported, or passed by, is closed for ever."""
    client = make_client()
    for _ in range(2):
        client.record("dark_mode", True)
        clock.days(1)
        client.flush()
        clock.days(-1)
    assert len(collector.reports) == 1


def test_what_is_older_than_memory_is_refused(
    make_client: MakeClient, clock: Any, collector: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pruned windows are refused although their rows are gone, and no value of theirs is kept;
    newer ones are not."""
    monkeypatch.setattr(open_windows, "KEPT_WINDOWS", 5)
    client = make_client()
    for _ in range(12):
        client.record("dark_mode", True)
        clock.days(1)
        client.flush()
    with client._state.transaction() as connection:
        assert connection.execute("SELECT count(*) FROM windows").fetchone() == (5,)
    clock.days(-30)
    for _ in range(29):
        client.record("dark_mode", True)
        client.flush()
        with client._state.transaction() as connection:
            values = "SELECT metric, window FROM open_values"
            opened = "SELECT metric, window FROM windows WHERE state = 'open'"
            assert (
                connection.execute(values).fetchall() == connection.execute(opened).fetchall() == []
            )
        clock.days(1)
    client.flush()
    windows = [report["window"] for report in collector.reports]
    assert len(windows) == len(set(windows)) == 12


def test_a_value_that_left_the_domain_becomes_other(
    make_client: MakeClient, registry: Registry, clock: Any, collector: Any
) -> None:
    """An upgrade inside a window: a value that is no longer listed is reported as `other`,
    and without an `other` not at all."""
    values = ("firefox", "lynx")
    for other, reports in ((None, 0), ("lynx", 1)):
        with make_client() as client:
            client.record("browser", "chrome")
        clock.days(1)
        client = make_client(registry=changed(registry, "browser", type=Category(values, other)))
        assert client.flush()
        assert held(client) == []
        assert len(collector.reports) == reports


def test_a_metric_that_was_removed_leaves_no_value(
    make_client: MakeClient, registry: Registry, clock: Any, collector: Any
) -> None:
    """The value of a metric that is no longer declared goes a day after its window ended."""
    with make_client() as client:
        client.record("browser", "chrome")
    clock.days(1)
    without = dataclasses.replace(registry, metrics={"dark_mode": registry["dark_mode"]})
    client = make_client(registry=without)
    assert client.flush()
    assert len(held(client)) == 1
    clock.days(1)
    assert client.flush()
    assert held(client) == []
    assert collector.reports == []


def test_an_older_process_leaves_a_newer_ones_metric_alone(
    make_client: MakeClient, registry: Registry, clock: Any, collector: Any
) -> None:
    """While an app is upgraded, a process that does not know a metric yet does not take its value
    from the process that does, which reports."""
    older = make_client(
        registry=dataclasses.replace(registry, metrics={"dark_mode": registry["dark_mode"]})
    )
    newer = make_client()
    newer.record("browser", "chrome")
    newer.record("dark_mode", True)
    newer.flush()
    clock.days(1)
    assert older.flush()
    assert newer.flush()
    assert sorted(report["metric"] for report in collector.reports) == ["browser", "dark_mode"]


def test_windows_that_were_passed_over_are_forgotten_as_well(
    make_client: MakeClient, registry: Registry, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that hardly ever reports remembers no more windows than another."""
    monkeypatch.setattr(open_windows, "KEPT_WINDOWS", 5)
    client = make_client(registry=changed(registry, "dark_mode", sample_rate=1e-9))
    for _ in range(12):
        client.record("dark_mode", True)
        client.flush()
        clock.days(1)
    with client._state.transaction() as connection:
        states = connection.execute("SELECT state FROM windows").fetchall()
        assert states == [("passed",)] * 5
        assert connection.execute("SELECT count(*) FROM horizons").fetchone() == (1,)


def test_the_reservoir_draws_from_the_source_of_the_device(
    make_client: MakeClient, registry: Registry, tmp_path: Path
) -> None:
    """Of two records the second is kept where the bits are 0, and the first where they are 1."""
    for drawn, kept in ((0, "false"), (1, "true")):
        client = make_client(
            registry=changed(registry, "dark_mode", aggregate="any"),
            state_dir=tmp_path / kept,
            bits=lambda count, drawn=drawn: drawn if count == 1 else 0,
        )
        client.record("dark_mode", True)
        client.record("dark_mode", False)
        assert held(client) == [(kept, 2)]


def test_no_value_is_kept_of_a_window_before_the_horizon(
    make_client: MakeClient, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest window that was forgotten is refused, and the next one is not."""
    monkeypatch.setattr(open_windows, "KEPT_WINDOWS", 1)
    client = make_client()
    for _ in range(4):
        client.record("dark_mode", True)
        clock.days(2)
        client.flush()
    clock.days(-4)
    client.record("dark_mode", True)
    assert held(client) == []
    clock.days(1)
    client.record("dark_mode", True)
    assert held(client) == [("true", 1)]
