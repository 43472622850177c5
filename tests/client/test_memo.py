"""Memory on the device: one memo for each value and scheme, whatever happens in between."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
import struct
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from deniable import Client, Registry, Scheme
from deniable import memo as memo_module
from deniable.ledger import Ledger
from deniable.mechanisms import (
    MemoizedLocalHashing,
    MemoizedSubsetSelection,
    Memoizing,
    Report,
)
from deniable.memo import draw
from deniable.randomness import keyed_bits
from deniable.state import State

MakeClient = Callable[..., Client]

REGISTRY = """
schema = 1
app = "example"
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


def keys_of(state: State) -> dict[str, bytes]:
    """The key of each metric."""
    with state.transaction() as connection:
        return dict(connection.execute("SELECT metric, key FROM memo_keys").fetchall())


def ledger_of(state: State) -> Ledger:
    with state.transaction() as connection:
        return Ledger(connection)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """The scheme, row and memo behind every report, in order."""
    seen: list[tuple[str, int, int]] = []

    def follow(key: bytes, fingerprint: str, mechanism: Memoizing[Any], item: Any) -> Any:
        row, memo = draw(key, fingerprint, mechanism, item)
        seen.append((fingerprint, row, memo))
        return row, memo

    monkeypatch.setattr(memo_module, "draw", follow)
    return seen


def test_a_key_is_256_bits_of_the_source(tmp_path: Path, registry: Registry) -> None:
    """The key of a metric is the first that is drawn for its first report, all 256 bits of it,
    and is not drawn again."""
    source = random.Random(31)
    first = random.Random(31).getrandbits(256)
    counts: list[int] = []

    def bits(count: int) -> int:
        counts.append(count)
        return source.getrandbits(count)

    metric = registry["browser"]
    mechanism = metric.scheme.mechanism
    assert isinstance(mechanism, Memoizing)
    state = State(tmp_path)
    with state.transaction() as connection:
        memo_module.recall(connection, metric, mechanism, 1, bits)
        assert memo_module.has_key(connection, "browser")
        assert not memo_module.has_key(connection, "town")
        assert counts[0] == 256
        assert counts.count(256) == 1
        memo_module.recall(connection, metric, mechanism, 1, bits)
        assert counts.count(256) == 1
    assert keys_of(state) == {"browser": first.to_bytes(32, "little")}
    state.close()


def test_a_value_meets_the_same_memo_for_ever(
    make_client: MakeClient, clock: Any, collector: Any, drawn: list[Any]
) -> None:
    """Over 24 windows and as many restarts and opt-outs, two values of each metric meet two
    memos that never change, in one row for each metric, with a report in every window."""
    for day in range(24):
        with make_client() as client:
            client.opt_out()
            client.opt_in()
            client.record("browser", ["chrome", "edge"][day % 2])
            client.record("homepage", ["a.example", "b.example"][day % 2])
            client.record("town", ["Oslo", "Bergen"][day % 2])
        clock.days(1)
        with make_client() as client:
            assert client.flush()
    assert len(collector.reports) == len(drawn) == 3 * 24
    assert drawn == drawn[:6] * 12
    rows = {metric: row for metric, row, _ in drawn}
    assert [report.get("row", 0) for report in collector.reports] == [
        rows[report["scheme"]] for report in collector.reports
    ]


def test_the_file_does_not_say_which_values_were_met(
    make_client: MakeClient, clock: Any, tmp_path: Path, drawn: list[Any]
) -> None:
    """After sealing, no file holds a value, its cell or its memo: a key alone is kept."""
    client = make_client()
    client.record("homepage", "a.example")
    clock.days(1)
    assert client.flush()
    ((_, row, memo),) = drawn
    mechanism = client.registry["homepage"].scheme.mechanism
    assert isinstance(mechanism, Memoizing)
    cell = mechanism.cell(row, "a.example")
    found = b"".join(path.read_bytes() for path in (tmp_path / "state").iterdir())
    assert keys_of(client._state)["homepage"] in found
    assert b"a.example" not in found
    for secret in (cell, memo):
        assert f"{secret:x}".encode() not in found
        assert secret.to_bytes(4, "little") not in found


def test_a_lifetime_does_not_end_a_metric_with_memory(
    make_client: MakeClient, clock: Any, collector: Any
) -> None:
    """Ten reports of epsilon 1 under a lifetime of 3 are sent: the lifetime bounds a memo."""
    client = make_client()
    for _ in range(10):
        client.record("browser", "chrome")
        clock.days(1)
        assert client.flush()
    assert len(collector.reports) == 10


def test_the_registrys_cap_counts_fresh_noise(
    make_client: MakeClient, clock: Any, collector: Any, registry: Registry
) -> None:
    """Each report costs the epsilon of its fresh noise, exactly, and the cap ends all reports."""
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
    assert ledger_of(client._state).memos("browser") == Fraction(mechanism.lifetime_epsilon)


def test_erasing_ends_a_metric_with_memory(
    make_client: MakeClient, clock: Any, collector: Any, tmp_path: Path
) -> None:
    """An erasure destroys the keys, on the disk as well; a metric that has reported never does
    again, over restarts, and one that has not yet begins with a key of its own."""
    client = make_client()
    client.record("homepage", "a.example")
    clock.days(1)
    assert client.flush()
    key = keys_of(client._state)["homepage"]
    client.record("homepage", "b.example")
    client.erase()
    assert keys_of(client._state) == {}
    found = b"".join(path.read_bytes() for path in (tmp_path / "state").iterdir())
    assert key not in found
    assert b"b.example" not in found
    assert client.sent() == []
    client.close()
    for _ in range(3):
        with make_client() as client:
            client.record("homepage", "a.example")
            client.record("town", "Oslo")
            clock.days(1)
            assert client.flush()
            assert ledger_of(client._state).left(client.registry["homepage"], client.registry) == 0
    assert [report["metric"] for report in collector.reports] == ["homepage"] + ["town"] * 3
    assert list(keys_of(client._state)) == ["town"]


def change(text: str) -> Registry:
    """The registry with another memo of `browser`."""
    return Registry.parse(REGISTRY.replace("lifetime_epsilon = 3.0", text))


def test_a_second_scheme_is_charged_against_the_lifetime(
    make_client: MakeClient, clock: Any, collector: Any, drawn: list[Any]
) -> None:
    """Memos of epsilon 3 under a lifetime of 7: a second scheme is reported, a third is not, and
    the first is reported again by the memos that it had."""
    client = make_client(registry=change("lifetime_epsilon = 7.0\nmemo_epsilon = 3.0"))
    schemes = [
        change(f"lifetime_epsilon = 7.0\nmemo_epsilon = {memo}") for memo in (3.0, 3.5, 3.25, 3.0)
    ]
    for registry in schemes:
        client = make_client(registry=registry)
        client.record("browser", "chrome")
        clock.days(1)
        assert client.flush()
        client.close()
    sent = [report["scheme"] for report in collector.reports]
    names = [registry["browser"].scheme.fingerprint for registry in schemes]
    assert sent == [names[0], names[1], names[0]]
    assert drawn[0] == drawn[2] != drawn[1]


def test_an_edit_ends_a_metric_whose_lifetime_is_one_memo(
    make_client: MakeClient, clock: Any, collector: Any
) -> None:
    """Where memo_epsilon is not given a memo takes the whole lifetime, so that another scheme is
    not reported by a device that has reported before, and is by one that has not."""
    edited = change("lifetime_epsilon = 3.0\nmechanism = 'basic_rappor'")
    for registry in (None, edited):
        client = make_client() if registry is None else make_client(registry=registry)
        client.record("browser", "chrome")
        clock.days(1)
        assert client.flush()
        client.close()
    client = make_client(registry=edited, state_dir=":memory:")
    client.record("browser", "chrome")
    clock.days(1)
    assert client.flush()
    sent = [report["scheme"] for report in collector.reports]
    assert sent[1:] == [edited["browser"].scheme.fingerprint]
    assert len(set(sent)) == 2


def test_reports_without_memory_count_against_it(
    make_client: MakeClient, clock: Any, collector: Any, registry: Registry
) -> None:
    """Three reports of epsilon 1 leave no room for a memo of 3 under a lifetime of 5.5, and two
    do; a memo, and its reports, count when the metric goes back to reports without memory."""
    text = REGISTRY.replace("lifetime_epsilon = 3.0", "lifetime_epsilon = 5.5\nmemo_epsilon = 3.0")
    fresh = Registry.parse(
        text.replace('longitudinal = "memoize"\nepsilon = 1.0', "epsilon = 1.0", 1).replace(
            "\nmemo_epsilon = 3.0", "", 1
        )
    )
    memory = Registry.parse(text)
    assert fresh["browser"].longitudinal == "fresh"
    for reports, expected in ((3, 3), (2, 4)):
        collector.bodies.clear()
        folder = ":memory:"
        client = make_client(registry=fresh, state_dir=folder)
        state = client._state
        for each in [fresh] * reports + [memory] * 2:
            client = make_client(registry=each, state_dir=state)
            client.record("browser", "chrome")
            clock.days(1)
            assert client.flush()
        assert len(collector.reports) == expected
    mechanism = memory["browser"].scheme.mechanism
    assert isinstance(mechanism, Memoizing)
    spent = ledger_of(state).spent("browser")
    assert spent == 2 * Fraction(fresh["browser"].scheme.mechanism.epsilon) + 2 * Fraction(
        mechanism.fresh_epsilon
    )
    left = ledger_of(state).left(fresh["browser"], fresh)
    assert left == max(0, (Fraction(5.5) - spent) // 1)


def test_a_key_comes_with_its_report_or_not_at_all(
    make_client: MakeClient, clock: Any, collector: Any, bits: Callable[[int], int]
) -> None:
    """Wherever the source of randomness fails, key, charge and report are all there or none is;
    at last there is one of each."""
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
        ledger = ledger_of(client._state)
        reports = client._device.waiting() + len(collector.reports)
        memos = int(ledger.memos("homepage") > 0)
        outcomes.append((len(keys_of(client._state)), memos, int(ledger.spent() > 0), reports))
        if done:
            break
        attempts += 1
    assert len(noted) == attempts
    assert outcomes[:3] == [(0, 0, 0, 0)] * 3  # delay, key and fresh round
    assert set(outcomes[3:]) == {(1, 1, 1, 1)}
    assert len(collector.reports) == 1


def test_two_clients_share_their_memos(
    make_client: MakeClient, clock: Any, drawn: list[Any]
) -> None:
    """Two processes' clients over one state meet one memo."""
    one, two = make_client(), make_client()
    for _ in range(4):
        for client in (one, two):
            client.record("town", "Oslo")
            clock.days(1)
            assert client.flush()
    assert len(drawn) == 8
    assert len(set(drawn)) == 1


def test_devices_and_metrics_have_keys_of_their_own(make_client: MakeClient, clock: Any) -> None:
    """Keys are 32 bytes, and differ between metrics and between devices."""
    found = []
    for _ in range(3):
        client = make_client(state_dir=":memory:")
        client.record("town", "Oslo")
        client.record("homepage", "a.example")
        clock.days(1)
        assert client.flush()
        found += keys_of(client._state).values()
    assert {len(key) for key in found} == {32}
    assert len(set(found)) == 6


def test_a_value_that_left_the_list_becomes_other(
    make_client: MakeClient, clock: Any, collector: Any, drawn: list[Any]
) -> None:
    """An upgrade inside a window that drops a value of a hashed closed list: other is reported."""
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
    key = keys_of(client._state)["town"]
    assert drawn == [(report["scheme"], *draw(key, report["scheme"], mechanism, "other"))]


def test_one_value_never_tells_more_than_its_lifetime(make_client: MakeClient, clock: Any) -> None:
    """However opt-outs, erasures, edits and restarts follow each other, in 60 made-up lives (seed
    11) of 30 windows, the memos behind the reports of a value add up to its lifetime at most."""
    rng = random.Random(11)
    edits = [
        change(f"lifetime_epsilon = {lifetime}\nmemo_epsilon = {memo}")
        for lifetime, memo in ((7.0, 3.0), (7.0, 3.5), (7.0, 2.0), (6.0, 1.5), (7.0, 6.9))
    ]
    several, start = 0, clock.now
    for _ in range(60):
        clock.now = start
        seen: dict[tuple[str, int, int], Fraction] = {}
        state = make_client(state_dir=":memory:", registry=edits[0])._state
        reported = 0
        for _ in range(30):
            registry = rng.choice(edits)
            metric = registry["browser"]
            mechanism = metric.scheme.mechanism
            assert isinstance(mechanism, Memoizing)
            client = make_client(state_dir=state, registry=registry)
            client.record("browser", "chrome")
            event = rng.random()
            if event < 0.3:
                client.opt_out()
                client.opt_in()
                client.record("browser", "chrome")
            elif event < 0.32:
                client.erase()
                client.record("browser", "chrome")
            clock.days(1)
            before = ledger_of(state).reports("browser")
            assert client.flush()
            if ledger_of(state).reports("browser") > before:
                reported += 1
                key = keys_of(state)["browser"]
                place = draw(key, metric.scheme.fingerprint, mechanism, 1)
                seen[(metric.scheme.fingerprint, *place)] = Fraction(mechanism.lifetime_epsilon)
                assert sum(seen.values()) <= Fraction(metric.lifetime_epsilon)
        several += len(seen) > 1
        assert reported
    assert several > 20


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
        assert "keeps one permanent noisy copy of each value" in report.words
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


VECTORS = json.loads(
    (Path(__file__).parents[2] / "client" / "vectors" / "memory.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("case", VECTORS["sources"], ids=lambda case: case["label"])
def test_vectors_of_the_source(case: dict[str, Any]) -> None:
    """A key and a label give the published bits, and HMAC-SHA-512 by another way gives them too."""
    key = bytes.fromhex(case["key"])
    bits = keyed_bits(key, case["label"])
    assert [f"{bits(each['bits']):x}" for each in case["draws"]] == [
        each["value"] for each in case["draws"]
    ]
    block = 1
    for each in case["draws"]:
        size = (each["bits"] + 7) // 8
        data = b""
        while len(data) < size:
            message = case["label"].encode() + b"\0" + struct.pack(">I", block)
            inner = hashlib.sha512(bytes(k ^ 0x36 for k in key.ljust(128, b"\0")) + message)
            outer = bytes(k ^ 0x5C for k in key.ljust(128, b"\0")) + inner.digest()
            data += hashlib.sha512(outer).digest()
            block += 1
        drawn = int.from_bytes(data[:size], "little") >> (8 * size - each["bits"])
        assert f"{drawn:x}" == each["value"]


@pytest.mark.parametrize("case", VECTORS["memos"])
def test_vectors_of_memos(case: dict[str, Any]) -> None:
    """A key gives the published row and memo under a scheme."""
    scheme = Scheme.from_definition(case["scheme"])
    assert scheme.fingerprint == case["fingerprint"]
    assert isinstance(scheme.mechanism, Memoizing)
    key = bytes.fromhex(case["key"])
    row, memo = draw(key, scheme.fingerprint, scheme.mechanism, case["item"])
    assert (row, f"{memo:x}") == (case["row"], case["memo"])


def test_memos_of_many_keys_follow_the_permanent_response() -> None:
    """Over 4,000 random keys rows are uniform and memos have the exact chances of the mechanism.

    Two chi-square tests, alpha = 1e-6 each, keys drawn with seed 12.
    """
    rng = random.Random(12)
    scheme = Scheme("category", MemoizedSubsetSelection.design(6, 1.0, 2.0), tuple("abcdef"))
    hashed = MemoizedLocalHashing.design("city", 1.0, 2.0)
    memos, rows, keys = [0] * 6, [0] * 16, 4_000
    for _ in range(keys):
        key = rng.randbytes(32)
        mechanism = scheme.mechanism
        assert isinstance(mechanism, MemoizedSubsetSelection)
        memos[draw(key, scheme.fingerprint, mechanism, 2)[1]] += 1
        rows[draw(key, scheme.fingerprint, hashed, "Oslo")[0] * 16 // len(hashed.rows)] += 1
    chances = [float(mechanism.permanent.likelihood(Report(0, memo), 2)) for memo in range(6)]
    assert stats.chisquare(memos, [keys * chance for chance in chances]).pvalue > 1e-6
    assert stats.chisquare(rows).pvalue > 1e-6
