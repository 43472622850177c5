"""The memos on the device: drawn once and for ever, counted, and erased when asked."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from deniable import Client, Registry
from deniable.ledger import Ledger
from deniable.mechanisms import Memoizing
from deniable.state import State

MakeClient = Callable[..., Client]

REGISTRY = """
schema = 1
[defaults]
owner = "growth@acme.example"
expires = 2040-06-30

[metrics.browser]
type = "category"
description = "The browser in use."
values = ["firefox", "chrome", "safari", "edge", "other"]
longitudinal = "memoize"
epsilon = 1.0
lifetime_epsilon = 3.0

[metrics.homepage]
type = "string"
description = "The host that the app opens with."
longitudinal = "memoize"
mechanism = "rappor_chromium"
epsilon = 2.1
lifetime_epsilon = 4.4

[metrics.town]
type = "category"
description = "The town."
values = ["Oslo", "Bergen", "Bodø", "other"]
longitudinal = "memoize"
mechanism = "memoized_local_hashing"
epsilon = 1.0
lifetime_epsilon = 2.0
"""


@pytest.fixture
def registry() -> Registry:
    """Three metrics with memory: subset selection, RAPPOR, and hashing of a closed list."""
    return Registry.parse(REGISTRY)


def tables(state: State) -> tuple[list[Any], list[Any]]:
    """All rows and all memos of a device."""
    with state.transaction() as connection:
        rows = connection.execute("SELECT * FROM memo_rows ORDER BY metric").fetchall()
        memos = connection.execute("SELECT * FROM memos ORDER BY metric, cell").fetchall()
    return rows, memos


def ledger_of(state: State) -> Ledger:
    with state.transaction() as connection:
        return Ledger(connection)


def test_a_memo_is_drawn_once_for_each_cell(
    make_client: MakeClient, clock: Any, collector: Any, tmp_path: Path
) -> None:
    """Over 24 windows and as many restarts, two values of each metric make two memos that never
    change, one row for each metric, and an answer in every window."""
    seen = None
    for day in range(24):
        with make_client() as client:
            client.record("browser", ["chrome", "edge"][day % 2])
            client.record("homepage", ["a.example", "b.example"][day % 2])
            client.record("town", ["Oslo", "Bergen"][day % 2])
        clock.days(1)
        with make_client() as client:
            assert client.flush()
            found = tables(client._state)
            cells = ledger_of(client._state).cells()
        if day == 1:
            seen = found
        elif day > 1:
            assert found == seen
        assert len(found[0]) == 3
        assert cells == len(found[1])
    assert cells == 6
    assert len(collector.reports) == 3 * 24
    rows = {metric: row for metric, _, row in found[0]}
    assert all(report.get("row", 0) == rows[report["metric"]] for report in collector.reports)


def test_a_lifetime_does_not_end_a_metric_with_memory(
    make_client: MakeClient, clock: Any, collector: Any
) -> None:
    """Ten answers of epsilon 1 under a lifetime of 3 are given: the lifetime bounds a memo."""
    client = make_client()
    for _ in range(10):
        client.record("browser", "chrome")
        clock.days(1)
        assert client.flush()
    assert len(collector.reports) == 10


def test_the_registrys_cap_counts_fresh_noise(
    make_client: MakeClient, clock: Any, collector: Any, registry: Registry
) -> None:
    """Each answer costs the epsilon of its fresh noise, exactly, and the cap ends all answers."""
    mechanism = registry["browser"].scheme.mechanism
    assert isinstance(mechanism, Memoizing)
    cost = Fraction(mechanism.fresh_epsilon)
    client = make_client(registry=dataclasses.replace(registry, lifetime_epsilon=float(3.5 * cost)))
    for day in range(6):
        client.record("browser", "chrome")
        clock.days(1)
        assert client.flush()
        assert ledger_of(client._state).spent("browser") == min(day + 1, 3) * cost
    assert len(collector.reports) == 3
    assert ledger_of(client._state).cells("browser") == 1


def test_opting_out_erases_memos_and_the_ledger_counts_on(
    make_client: MakeClient, clock: Any, tmp_path: Path, registry: Registry
) -> None:
    """After opting out no table and no file holds a row, a cell or a memo; a memo that is drawn
    after opting in again is a new cell in the ledger."""
    client = make_client()

    def live() -> None:
        client.record("homepage", "a.example")
        client.record("browser", "chrome")
        clock.days(1)
        assert client.flush()

    live()
    rows, memos = tables(client._state)
    on_disk = [memo for _, _, _, memo in memos if len(memo) >= 6]
    mechanism = registry["homepage"].scheme.mechanism
    assert isinstance(mechanism, Memoizing)
    cells = [f"{mechanism.cell(row, 'a.example'):x}" for metric, _, row in rows if metric[0] == "h"]
    found = b"".join(path.read_bytes() for path in (tmp_path / "state").iterdir())
    assert len(memos) == 2
    assert len(on_disk) == 1
    assert all(each.encode() in found for each in on_disk + cells)
    client.opt_out()
    assert tables(client._state) == ([], [])
    found = b"".join(path.read_bytes() for path in (tmp_path / "state").iterdir())
    assert not any(each.encode() in found for each in on_disk + cells if len(each) >= 6)
    assert ledger_of(client._state).cells() == 2
    client.opt_in()
    live()
    assert len(tables(client._state)[1]) == 2
    assert ledger_of(client._state).cells() == 4
    assert ledger_of(client._state).cells("browser") == 2


def test_another_scheme_has_memos_of_its_own(
    make_client: MakeClient, clock: Any, registry: Registry
) -> None:
    """A changed parameter begins a new row and new memos, and leaves the old ones alone."""
    changed = Registry.parse(REGISTRY.replace("lifetime_epsilon = 3.0", "lifetime_epsilon = 3.5"))
    memos = []
    for each in (registry, changed, registry):
        client = make_client(registry=each)
        client.record("browser", "chrome")
        clock.days(1)
        assert client.flush()
        memos.append(tables(client._state)[1])
        client.close()
    assert memos[0] == [each for each in memos[1] if each in memos[0]]
    assert len(memos[1]) == 2
    assert memos[2] == memos[1]


def test_a_memo_comes_with_its_report_or_not_at_all(
    make_client: MakeClient, clock: Any, collector: Any, bits: Callable[[int], int]
) -> None:
    """Wherever the source of randomness fails, row, memo, count, charge and report are all
    there or none is; at last there is one of each."""
    noted: list[Exception] = []
    left: int | None = None

    def fragile(count: int) -> int:
        nonlocal left
        if left is not None:
            if left == 0:
                raise OSError("no randomness")
            left -= 1
        return bits(count)

    client = make_client(bits=fragile, on_trouble=noted.append)
    client.record("homepage", "a.example")
    client.flush()
    clock.days(1)
    attempts = 0
    outcomes = []
    while True:
        left = attempts
        done = client.flush()
        rows, memos = tables(client._state)
        ledger = ledger_of(client._state)
        charged = ledger.spent() > 0
        reports = client._device.waiting() + len(collector.reports)
        outcomes.append((len(rows), len(memos), ledger.cells(), int(charged), reports))
        if done:
            break
        attempts += 1
    assert len(noted) == attempts
    assert outcomes[:4] == [(0, 0, 0, 0, 0)] * 4  # delay, row, permanent and fresh round
    assert set(outcomes[4:]) == {(1, 1, 1, 1, 1)}
    assert len(collector.reports) == 1


def test_two_clients_share_their_memos(make_client: MakeClient, clock: Any, tmp_path: Path) -> None:
    """Two processes' clients over one state draw no memo twice."""
    one, two = make_client(), make_client()
    for _ in range(4):
        for client in (one, two):
            client.record("town", "Oslo")
            clock.days(1)
            assert client.flush()
    assert ledger_of(one._state).cells() == 1
    assert len(tables(two._state)[1]) == 1


def test_a_value_that_left_the_list_becomes_other(
    make_client: MakeClient, clock: Any, collector: Any
) -> None:
    """An upgrade inside a window that drops a value of a hashed closed list: other is answered."""
    client = make_client()
    client.record("town", "Bodø")
    client.close()
    upgraded = Registry.parse(REGISTRY.replace('"Bodø", ', ""))
    clock.days(1)
    client = make_client(registry=upgraded)
    assert client.flush()
    (report,) = collector.reports
    assert report["scheme"] == upgraded["town"].scheme.fingerprint
    mechanism = upgraded["town"].scheme.mechanism
    assert isinstance(mechanism, Memoizing)
    ((_, _, cell, _),) = tables(client._state)[1]
    assert int(cell, 16) == mechanism.cell(report.get("row", 0), "other")


def test_the_owner_is_told_of_the_memory(make_client: MakeClient, clock: Any) -> None:
    """`sent` gives the exact likelihoods of the composed channel and says what is remembered."""
    client = make_client()
    client.record("browser", "chrome")
    client.record("homepage", "a.example")
    client.record("town", "Oslo")
    clock.days(1)
    assert client.flush()
    reports = {each.metric: each for each in client.sent()}
    for report in reports.values():
        assert "keeps one noisy memory of each value" in report.words
        json.dumps(report.to_dict())
    browser = {each.value: each.probability for each in reports["browser"].likelihoods}
    levels = set(browser.values())
    mechanism = client.registry["browser"].scheme.mechanism
    assert len(browser) == 5
    assert max(levels) / min(levels) == mechanism.odds
    assert "20.1 times" in reports["browser"].words
    assert [each.value for each in reports["town"].likelihoods] == [
        "Oslo",
        "Bergen",
        "Bodø",
        "other",
    ]
    assert "81 times" in reports["homepage"].words
    assert not reports["homepage"].likelihoods
