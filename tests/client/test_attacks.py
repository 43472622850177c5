"""What an attacker who sees all reports of a device tries: averaging, linking, retrying."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from deniable import Client, Registry, TransportError
from deniable.mechanisms import (
    BasicRappor,
    Bloom,
    MemoizedLocalHashing,
    MemoizedSubsetSelection,
    Memoizing,
    Rappor,
    Report,
    Rounds,
)
from deniable.memo import draw
from deniable.randomness import PRECISION
from deniable.state import MEMORY
from deniable.wire import SealedReport, encode_batch, unpack_columns

MakeClient = Callable[..., Client]

ONE = 1 << PRECISION
STRINGS = ["Ålesund", "Bergen", "Oslo", "Tromsø", "Bodø", "Molde"]
REPORTS = 1000

ATTACKED: dict[str, tuple[Memoizing[Any], list[Any]]] = {
    "subset selection": (MemoizedSubsetSelection.design(6, 1.0, 2.0), list(range(6))),
    "local hashing": (MemoizedLocalHashing.design("city", 1.0, 2.0), STRINGS),
    "basic RAPPOR": (BasicRappor.design(6, 1.0, 2.0), list(range(6))),
    "RAPPOR": (
        Rappor(Bloom("city", 8, 16, 2), Rounds(ONE * 3 // 4, ONE // 4, ONE * 3 // 4)),
        STRINGS,
    ),
}
"""Mechanisms with the values that a device may have, all equally likely to the attacker."""

attacked = pytest.mark.parametrize(("mechanism", "items"), ATTACKED.values(), ids=ATTACKED)


def log_chances(
    mechanism: Memoizing[Any], items: Sequence[Any], reports: Sequence[Report]
) -> list[float]:
    """The log-likelihood of all reports of one device, for each value that it may have.

    Exact but for rounding: over all memos, weighted by how often a value has them. Bits
    with rounds of their own are taken one by one.
    """
    row = reports[0].row
    counts = Counter(report.columns for report in reports)
    parameters: Any = mechanism.parameters()
    cells = [mechanism.cell(row, item) for item in items]
    if "f" in parameters:
        flip, p, q = (float(parameters[name]) / ONE for name in ("f", "p", "q"))
        flip /= 2
        totals = [0.0] * len(items)
        for place in range(mechanism.rows[row].width):
            ones = sum(count for columns, count in counts.items() if columns >> place & 1)
            zeros = len(reports) - ones
            one = ones * math.log(q) + zeros * math.log(1 - q)
            zero = ones * math.log(p) + zeros * math.log(1 - p)
            for index, cell in enumerate(cells):
                chance = 1 - flip if cell >> place & 1 else flip
                totals[index] += log_sum([math.log(chance) + one, math.log(1 - chance) + zero])
        return totals
    channel = mechanism.channel if isinstance(mechanism, MemoizedLocalHashing) else mechanism
    assert isinstance(channel, MemoizedSubsetSelection)
    given = [
        sum(
            count * math.log(channel.fresh.likelihood(Report(0, columns), memo))
            for columns, count in counts.items()
        )
        for memo in range(channel.size)
    ]
    return [
        log_sum(
            [
                math.log(channel.permanent.likelihood(Report(0, memo), cell)) + given[memo]
                for memo in range(channel.size)
            ]
        )
        for cell in cells
    ]


def log_sum(logs: list[float]) -> float:
    """The logarithm of the sum of exponentials."""
    top = max(logs)
    return top + math.log(sum(math.exp(each - top) for each in logs))


def successes(
    mechanism: Memoizing[Any], items: list[Any], devices: int, rng: random.Random, *, memory: bool
) -> int:
    """How many devices, each with one value all the time, the best possible attacker names."""
    bits = rng.getrandbits
    named = 0
    for _ in range(devices):
        item = rng.choice(items)
        row = rng.randrange(len(mechanism.rows))
        cell = mechanism.cell(row, item)
        memo = mechanism.memoize(cell, bits)
        reports = []
        for _ in range(REPORTS):
            if not memory:
                memo = mechanism.memoize(cell, bits)
            reports.append(mechanism.report(row, memo, bits))
        if memory:
            chances = log_chances(mechanism, items, reports)
        else:  # each report is then an independent one
            kinds = Counter(reports)
            chances = [
                sum(n * math.log(mechanism.likelihood(each, item)) for each, n in kinds.items())
                for item in items
            ]
        best = max(chances)
        tied = [index for index, chance in enumerate(chances) if chance > best - 1e-6]
        named += items[rng.choice(tied)] == item
    return named


@attacked
def test_averaging_does_not_beat_the_memo(mechanism: Memoizing[Any], items: list[Any]) -> None:
    """With 1,000 reports of each device, the Bayes-optimal attacker, who starts from d equally
    likely values, is right no more often than odds / (odds + d - 1), the bound of the memo.

    One binomial test per mechanism, one-sided, 300 devices, alpha = 1e-6, seed 41.
    """
    devices = 300
    named = successes(mechanism, items, devices, random.Random(41), memory=True)
    odds = float(mechanism.lifetime_odds)
    bound = odds / (odds + len(items) - 1)
    assert stats.binomtest(named, devices, bound, alternative="greater").pvalue > 1e-6
    # The attack is worth defending against: better than guessing, which 1/d would be.
    assert named > devices / len(items)


@pytest.mark.parametrize("name", ["subset selection", "basic RAPPOR"])
def test_averaging_beats_a_device_that_forgets(name: str) -> None:
    """The same attacker names the value of every device that draws both rounds anew each time,
    far beyond the bound: without memory the test above would fail."""
    mechanism, items = ATTACKED[name]
    devices = 40
    named = successes(mechanism, items, devices, random.Random(42), memory=False)
    odds = float(mechanism.lifetime_odds)
    bound = odds / (odds + len(items) - 1)
    assert named == devices
    assert stats.binomtest(named, devices, bound, alternative="greater").pvalue < 1e-6


REGISTRY = """
schema = 1
app = "example"
[defaults]
owner = "growth@acme.example"
expires = 2040-06-30

[metrics.remembered]
type = "category"
description = "Subset selection of a memo."
values = ["a", "b", "c", "d", "e", "f"]
longitudinal = "memoize"
epsilon = 1.0
lifetime_epsilon = 2.0

[metrics.bucket]
type = "string"
description = "Local hashing of a memo."
longitudinal = "memoize"
epsilon = 1.0
lifetime_epsilon = 2.0

[metrics.bits]
type = "string"
description = "RAPPOR."
longitudinal = "memoize"
mechanism = "rappor"
epsilon = 1.0
lifetime_epsilon = 2.0

[metrics.fresh]
type = "string"
description = "Without memory."
epsilon = 1.0
lifetime_epsilon = 9999.0

[metrics.sampled]
type = "boolean"
description = "On some days."
epsilon = 1.0
lifetime_epsilon = 9999.0
sample_rate = 0.5
"""
LINK_BITS = {"remembered": 0, "bucket": 8, "bits": 6, "fresh": 0}
"""What may link the reports of one device: the bits of a row that it stays in."""


@pytest.fixture
def registry() -> Registry:
    """Metrics with and without memory."""
    return Registry.parse(REGISTRY)


def test_averaging_through_the_client_sees_one_memo(
    make_client: MakeClient, clock: Any, collector: Any, registry: Registry
) -> None:
    """Five devices that report one value on 300 days each show fresh noise on one memo, which
    is not the value for some of them, and no more.

    Chi-square of the reports against the fresh round from the memo, five comparisons, alpha =
    1e-6 each, seed 4.
    """
    mechanism = registry["remembered"].scheme.mechanism
    assert isinstance(mechanism, MemoizedSubsetSelection)
    (row,) = mechanism.rows
    sets = [sum(1 << each for each in chosen) for chosen in itertools.combinations(range(6), 2)]
    memos = []
    for _ in range(5):
        collector.bodies.clear()
        client = make_client(state_dir=MEMORY)
        for _ in range(300):
            client.record("remembered", "c")
            clock.days(1)
            assert client.flush()
        with client._state.transaction() as connection:
            ((key,),) = connection.execute(
                "SELECT key FROM memo_keys WHERE metric = 'remembered'"
            ).fetchall()
        fingerprint = registry["remembered"].scheme.fingerprint
        memos.append(draw(key, fingerprint, mechanism, 2)[1])
        drawn = Counter(unpack_columns(row, report["columns"]) for report in collector.reports)
        chances = [mechanism.fresh.likelihood(Report(0, each), memos[-1]) for each in sets]
        expected = [300 * float(chance) for chance in chances]
        assert stats.chisquare([drawn[each] for each in sets], expected).pvalue > 1e-6
    assert set(memos) != {2}


def test_switching_consent_draws_no_further_memo(
    make_client: MakeClient, clock: Any, collector: Any
) -> None:
    """With consent taken back and given in each of 100 windows, whoever adds up all reports of a
    device names its value no more often than the declared lifetime allows: odds e to 1.

    One binomial test, one-sided, 120 devices, alpha = 1e-6, seed 45. Memos that were drawn anew
    after each opt-out would let the value be named for 99 of 100 devices.
    """
    registry = Registry.parse(
        'schema = 1\napp = "example"\n[metrics.m]\ntype = "boolean"\ndescription = "M."\n'
        'owner = "a"\nexpires = 2040-01-01\nlongitudinal = "memoize"\nepsilon = 0.5\n'
        "lifetime_epsilon = 1.0\n"
    )
    rng = random.Random(45)
    devices, named, start = 120, 0, clock.now
    for _ in range(devices):
        clock.now = start
        collector.bodies.clear()
        client = make_client(state_dir=MEMORY, registry=registry, bits=rng.getrandbits)
        value = rng.random() < 0.5
        for _ in range(100):
            client.opt_out()
            client.opt_in()
            client.record("m", value)
            clock.days(1)
            assert client.flush()
        said = sum(report["columns"] == 0 for report in collector.reports)
        assert len(collector.reports) == 100
        guess = said > 50 if said != 50 else rng.random() < 0.5
        named += guess == value
        client.close()
    bound = math.e / (1 + math.e)
    assert stats.binomtest(named, devices, bound, alternative="greater").pvalue > 1e-6


def report_for_days(
    make_client: MakeClient, clock: Any, collector: Any, folder: Path, values: Sequence[str]
) -> list[bytes]:
    """The bodies that a new device sends when it has these values on as many days."""
    collector.bodies.clear()
    client = make_client(state_dir=folder, bits=random.Random(43).getrandbits)
    for value in values:
        for name in ("remembered", "bucket", "bits", "fresh"):
            client.record(name, value)
        client.record("sampled", True)
        clock.days(1)
        assert client.flush()
    client.close()
    return list(collector.bodies)


def test_a_message_holds_nothing_but_its_reports(
    make_client: MakeClient, clock: Any, collector: Any, tmp_path: Path, registry: Registry
) -> None:
    """A body is a random id and the reports, byte for byte, so its length says nothing that they
    do not say; nothing but a row links the reports of a device, by at most the bits of its
    cohorts, and no metric without memory keeps its row."""
    bodies = report_for_days(make_client, clock, collector, tmp_path / "one", "abcdef" * 8)
    rows: dict[str, list[int]] = {}
    ids = set()
    for body in bodies:
        document = json.loads(body)
        reports = [
            SealedReport(
                report["metric"],
                registry[report["metric"]].scheme.fingerprint,
                report["window"],
                report.get("row", 0),
                report["columns"],
            )
            for report in document["reports"]
        ]
        assert encode_batch(document["batch"], reports) == body
        ids.add(document["batch"])
        for report in reports:
            rows.setdefault(report.metric, []).append(report.row)
    assert len(ids) == len(bodies)
    for name, bits in LINK_BITS.items():
        mechanism = registry[name].scheme.mechanism
        if isinstance(mechanism, Memoizing):
            assert len(mechanism.rows) == 1 << bits
            assert len(set(rows[name])) == 1
        else:
            assert len(set(rows[name])) == len(mechanism.rows) > 1


@pytest.mark.parametrize("values", ["a" * 10, "abcdeabcde", "ffffffffff"])
def test_the_shape_of_batches_does_not_depend_on_values(
    make_client: MakeClient, clock: Any, collector: Any, tmp_path: Path, values: str
) -> None:
    """Whatever a device has to say, it sends as many batches, of as many reports, of the same
    metrics in the same windows and in the same order; bitmaps have one length."""
    start = clock.now
    shapes = []
    for name, each in (("one", "bcbcbcbcbc"), ("other", values)):
        clock.now = start
        bodies = report_for_days(make_client, clock, collector, tmp_path / name, each)
        shape = []
        for body in bodies:
            reports = json.loads(body)["reports"]
            assert {len(report["columns"]) for report in reports if report["metric"] == "bits"} == {
                22
            }
            days = {(report["metric"], report["window"]) for report in reports}
            assert len(days) == len(reports)
            # The coin of `sample_rate` is the device's own.
            shape.append([day for day in sorted(days) if day[0] != "sampled"])
        shapes.append(shape)
    assert shapes[0] == shapes[1]


def test_cohorts_are_uniform_whatever_the_value(
    make_client: MakeClient, clock: Any, collector: Any, registry: Registry
) -> None:
    """Over 600 devices with two different values, cohorts are uniform and do not tell the values
    apart. Two chi-square tests, alpha = 1e-6 each, seed 44, cohorts in 16 groups."""
    bits = random.Random(44).getrandbits
    start, groups = clock.now, 16
    counts = [[0] * groups, [0] * groups]
    for device in range(600):
        clock.now = start
        collector.bodies.clear()
        client = make_client(state_dir=MEMORY, bits=bits)
        client.record("bucket", ["alpha", "omega"][device % 2])
        clock.days(1)
        assert client.flush()
        (report,) = collector.reports
        cohorts = len(registry["bucket"].scheme.mechanism.rows)
        counts[device % 2][report.get("row", 0) * groups // cohorts] += 1
        client.close()
    assert stats.chisquare([a + b for a, b in zip(*counts, strict=True)]).pvalue > 1e-6
    assert stats.chi2_contingency(counts).pvalue > 1e-6


def test_retries_and_restarts_never_redraw(
    make_client: MakeClient, clock: Any, collector: Any
) -> None:
    """Ten days in which every second attempt fails and the app is killed each time, without
    `close`: coin, memory's key and report are as they were first drawn, and retries send the
    same bytes."""
    kept: dict[str, dict[Any, Any]] = {}
    noted: list[Exception] = []
    for day in range(10):
        for attempt in range(3):
            bits = random.Random(1000 * day + attempt).getrandbits
            client = make_client(bits=bits, on_trouble=noted.append)
            if attempt == 0:
                for name in ("remembered", "bucket", "bits", "fresh"):
                    client.record(name, "b")
                client.record("sampled", True)
                assert client.flush()
                clock.days(1)
            elif attempt == 1:
                collector.replies = [TransportError("down")]
                assert not client.flush()
            else:
                assert client.flush()
            remember(kept, client)
            client._state.close()  # as the operating system does when a process dies
    assert {name: len(each) for name, each in kept.items()} == {
        "windows": 50,
        "keys": 3,
        "reports": len(kept["reports"]),
        "batches": 10,
    }
    assert 40 < len(kept["reports"]) < 50
    sent = Counter(json.loads(body)["batch"] for body in collector.bodies)
    assert set(sent.values()) == {2}
    assert len(set(collector.bodies)) == 10
    assert [str(error) for error in noted] == ["down"] * 10


def remember(kept: dict[str, dict[Any, Any]], client: Client) -> None:
    """Compare what a device has drawn with all that it had drawn before."""
    queries = {
        "windows": "SELECT metric || window, state = 'passed' FROM windows",
        "keys": "SELECT metric, key FROM memo_keys",
        "reports": "SELECT metric || window, row || columns FROM reports",
        "batches": "SELECT id, body FROM batches",
    }
    with client._state.transaction() as connection:
        for name, query in queries.items():
            known = kept.setdefault(name, {})
            for key, value in connection.execute(query):
                assert known.setdefault(key, value) == value, f"{name}: {key} was drawn again"
