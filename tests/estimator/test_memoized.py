"""Reports out of the same memory: what devices keep, and intervals that know it."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from deniable import Client, Registry, Scheme
from deniable.mechanisms import (
    BasicRappor,
    Bloom,
    Mechanism,
    MemoizedLocalHashing,
    MemoizedSubsetSelection,
    Memoizing,
    Rappor,
    Rounds,
    SubsetSelection,
)
from deniable.randomness import PRECISION
from deniable.transport import Reply
from deniable_collector.intake import Intake
from deniable_collector.stores.base import Store
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses import analysis_of, memory_of, oracle_analysis
from deniable_estimator.analyses.hashed import hash_places
from deniable_estimator.analyses.memoized import report_weight
from deniable_estimator.answers.shares import Shares, estimate
from deniable_estimator.questions.reading import read
from deniable_estimator.statistics.intervals import Noise
from deniable_estimator.statistics.participation import Participation

ONE = 1 << PRECISION
DAYS = tuple(f"2026-11-{day:02}" for day in range(1, 11))


ROUNDS = Rounds(ONE // 4, ONE // 4, ONE * 3 // 4)
SMALL: list[Memoizing[Any]] = [
    MemoizedSubsetSelection(4, 2, ONE * 7 // 8, ONE * 3 // 4),
    MemoizedLocalHashing("city", 2, MemoizedSubsetSelection(3, 1, ONE * 7 // 8, ONE * 3 // 4)),
    BasicRappor(3, ROUNDS),
    Rappor(Bloom("city", 2, 4, 1), ROUNDS),
]


@pytest.mark.parametrize("mechanism", SMALL, ids=lambda each: each.name)
def test_memos_and_fresh_noise_make_the_report(mechanism: Memoizing[Any]) -> None:
    """The memo's own channel, followed by fresh noise, is the report's channel, exactly."""
    p1, q1 = memory_of(mechanism).memo_channel()
    if isinstance(mechanism, (BasicRappor, Rappor)):
        high, low = Fraction(mechanism.rounds.q, ONE), Fraction(mechanism.rounds.p, ONE)
        p, q = mechanism.rounds.p11, mechanism.rounds.p01
    else:
        inner = mechanism.channel if isinstance(mechanism, MemoizedLocalHashing) else mechanism
        high, low, p, q = inner.fresh.p, inner.fresh.q, inner.p, inner.q
    assert p == p1 * high + (1 - p1) * low
    assert q == q1 * high + (1 - q1) * low


def test_unknown_memos_are_refused() -> None:
    """A mechanism with memory that is not in the table raises instead of guessing."""

    with pytest.raises(TypeError, match="not known"):
        memory_of(SubsetSelection.design(4, 1.0))  # type: ignore[arg-type]


def repeated(mechanism: Mechanism[Any], reports: int, repeats: float) -> Noise:
    """The noise of one share from so many reports."""
    noise = Noise.of(mechanism.p, mechanism.q, reports, 1)
    return replace(noise, kept=oracle_analysis(mechanism).kept_noise(reports, repeats))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_variance_is_that_of_two_rounds(share: float) -> None:
    """The noise of T reports of each device is the variance of its mean, by enumeration.

    One device of three reports: its value is drawn, then its memo, then three reports.
    """
    mechanism = MemoizedSubsetSelection.design(4, 1.0, 3.0, k=1)
    (p1, q1), fresh = memory_of(mechanism).memo_channel(), mechanism.fresh
    memo = float(q1) + share * float(p1 - q1)
    support = {True: float(fresh.p), False: float(fresh.q)}
    mean = square = 0.0
    for held in (True, False):
        chance = memo if held else 1 - memo
        rate = support[held]
        mean += chance * rate
        square += chance * (rate**2 + rate * (1 - rate) / 3)
    expected = (square - mean**2) / float(mechanism.p - mechanism.q) ** 2
    assert repeated(mechanism, 3, 3.0).at(np.array([share]))[0] == pytest.approx(expected)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("times", [1, 2, 3, 30])
def test_skewness_is_that_of_two_rounds(times: int, k: int) -> None:
    """The skewness of a share that is truly 0 is the exact one where each device reports once,
    and otherwise at least that, and at most a tenth more: by enumeration of what a device says.

    One device reports so many times out of a memo that holds the value or not.
    """
    mechanism = MemoizedSubsetSelection.design(4, 1.0, 3.0, k=k)
    q1, fresh = float(memory_of(mechanism).memo_channel()[1]), mechanism.fresh
    count = np.arange(times + 1)
    chance = q1 * stats.binom.pmf(count, times, float(fresh.p))
    chance += (1 - q1) * stats.binom.pmf(count, times, float(fresh.q))
    centred = count - chance @ count
    exact = chance @ centred**3 / (chance @ centred**2) ** 1.5
    found = repeated(mechanism, times, float(times)).skewness[0]
    if times == 1:
        assert found == pytest.approx(exact)
    assert exact * (1 - 1e-9) <= found <= exact * 1.1


def test_worth_is_cautious_for_every_share() -> None:
    """Noise counted by worth is never below the exact one, and meets it somewhere."""
    mechanism = MemoizedSubsetSelection.design(4, 1.0, 3.0, k=1)
    share = np.linspace(0, 1, 101)
    exact = repeated(mechanism, 1000, 8.0).at(share)
    channel = memory_of(mechanism).memo_channel()
    weight = report_weight(channel, float(mechanism.p), float(mechanism.q), 8.0)
    cautious = Noise.of(mechanism.p, mechanism.q, 1000, 101).at(share) / weight
    ratio = cautious / exact
    assert ratio.min() == pytest.approx(1, abs=1e-3)
    assert ratio.min() >= 1 - 1e-9
    assert report_weight(channel, float(mechanism.p), float(mechanism.q), 1.0) == 1


def _windows(
    mechanism: MemoizedSubsetSelection | BasicRappor,
    counts: np.ndarray,
    windows: int,
    rng: np.random.Generator,
) -> TallyRow:
    """The sum of several windows in which the same devices report the same values."""
    items = range(mechanism.size)
    if isinstance(mechanism, MemoizedSubsetSelection):
        (memos,) = analysis_of(mechanism.permanent).sample_rows(items, counts, rng)
        drawn = [
            analysis_of(mechanism.fresh).sample_rows(items, memos.cells, rng)[0]
            for _ in range(windows)
        ]
    else:
        n = int(counts.sum())
        memos = rng.binomial(counts, float(memory_of(mechanism).memo_channel()[0]))
        memos += rng.binomial(n - counts, float(memory_of(mechanism).memo_channel()[1]))
        high, low = mechanism.rounds.q / ONE, mechanism.rounds.p / ONE
        drawn = [
            TallyRow(n, rng.binomial(memos, high) + rng.binomial(n - memos, low))
            for _ in range(windows)
        ]
    total = drawn[0]
    for each in drawn[1:]:
        total += each
    return total


CLOSED = {
    "subset selection": MemoizedSubsetSelection.design(8, 1.0, 4.0),
    "a tight lifetime": MemoizedSubsetSelection.design(5, 2.0, 2.5),
    "basic RAPPOR": BasicRappor.design(6, 1.0, 4.0),
}


@pytest.mark.parametrize("mechanism", CLOSED.values(), ids=CLOSED)
def test_intervals_over_windows_cover(mechanism: MemoizedSubsetSelection | BasicRappor) -> None:
    """Where the same 5,000 devices report ten times, 95% intervals cover 95% of the time.

    250 populations drawn by shares that fall as 1 / rank, seed 8. The coverage of each of
    at most 8 values is above 90%, 3.6 binomial errors away (alpha below .005 for exact
    intervals). Intervals that took the reports for independent ones would cover the most
    common value less than 85% of the time.
    """
    size = mechanism.size
    scheme = Scheme("category", mechanism, tuple(f"v{each}" for each in range(size)))
    rng = np.random.default_rng(8)
    truth = 1 / np.arange(1, size + 1)
    truth /= truth.sum()
    covered, naive = np.zeros(size), np.zeros(size)
    for _ in range(250):
        row = _windows(mechanism, rng.multinomial(5000, truth), 10, rng)
        tally = Tally("m", scheme.fingerprint, DAYS, (row,))
        found = estimate(tally, scheme)
        covered += (found.low <= truth) & (truth <= found.high)
        blind = estimate(tally, scheme, participation=Participation({"": tally.reports}))
        naive += (blind.low <= truth) & (truth <= blind.high)
    assert covered.min() / 250 > 0.9
    assert naive[0] / 250 < 0.85


def _strings(
    mechanism: MemoizedLocalHashing,
    texts: list[str],
    counts: np.ndarray,
    windows: int,
    rng: np.random.Generator,
) -> tuple[TallyRow, ...]:
    """The same for strings: devices stay in their cohorts."""
    rows, left = [], counts.copy()
    for number, places in enumerate(hash_places(mechanism, texts)):
        here = rng.binomial(left, 1 / (mechanism.hashes - number))
        left -= here
        crowd = np.zeros(mechanism.width, np.int64)
        np.add.at(crowd, places, here)
        rows.append(_windows(mechanism.channel, crowd, windows, rng))
    return tuple(rows)


def test_intervals_of_strings_over_windows_cover() -> None:
    """Strings that the same devices report in 30 windows have intervals that cover.

    20,000 devices in 32 cohorts, 30 candidates, 25 populations, seed 3. Of 750 intervals at
    95% at least 93% cover (they are somewhat cautious), and of the 100 of the four most
    common strings 85%; those that took reports for independent ones cover about 55% of
    these. Each bound is 3 binomial errors away from 95%, or 6 from 55%.
    """
    mechanism = MemoizedLocalHashing("city", 32, MemoizedSubsetSelection.design(56, 4.0, 5.0, k=1))
    scheme = Scheme("string", mechanism, ())
    texts = [f"string {each}" for each in range(30)]
    windows = tuple(f"2026-11-{day:02}" for day in range(1, 31))
    truth = np.arange(1, 31) ** -1.5
    truth /= truth.sum()
    rng = np.random.default_rng(3)
    covered, naive = [], []
    for _ in range(25):
        rows = _strings(mechanism, texts, rng.multinomial(20_000, truth), 30, rng)
        tally = Tally("m", scheme.fingerprint, windows, rows)
        found = estimate(tally, scheme, texts)
        covered.append((found.low <= truth) & (truth <= found.high))
        blind = estimate(tally, scheme, texts, participation=Participation({"": tally.reports}))
        naive.append((blind.low <= truth) & (truth <= blind.high))
    assert np.mean(covered) >= 0.93
    assert np.mean(np.array(covered)[:, :4]) >= 0.85
    assert np.mean(np.array(naive)[:, :4]) < 0.8


def test_the_caveat_counts_devices() -> None:
    """Over windows, the warning says for how many devices the reports are taken; in one window
    there is none."""
    mechanism = CLOSED["subset selection"]
    scheme = Scheme("category", mechanism, tuple(f"v{each}" for each in range(8)))
    row = _windows(mechanism, np.full(8, 5000), 10, np.random.default_rng(1))
    many = estimate(Tally("m", scheme.fingerprint, DAYS, (row,)), scheme)
    assert "400,000 reports from 10 windows" in many.warnings[0]
    assert "as 40,000 devices" in many.warnings[0]
    assert many.devices == many.to_dict()["devices"] == 40_000
    one = estimate(Tally("m", scheme.fingerprint, DAYS[:1], (row,)), scheme)
    assert one.warnings == ()
    assert one.devices == one.n


REGISTRY = """
schema = 1
app = "example"
[defaults]
owner = "growth@acme.example"
expires = 2027-06-30

[metrics.theme]
type = "category"
description = "The theme when the day ends."
epsilon = 3.0
lifetime_epsilon = 5.0
longitudinal = "memoize"
values = ["light", "dark", "other"]

[metrics.city]
type = "string"
description = "The city that was looked at."
epsilon = 4.0
lifetime_epsilon = 7.0
longitudinal = "memoize"
"""


class Clock:
    """POSIX seconds that stand still until they are set."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Direct:
    """A transport straight into a collector's intake."""

    def __init__(self, intake: Intake) -> None:
        self.intake = intake

    def send(self, body: bytes) -> Reply:
        (receipt,) = self.intake.take([self.intake.read(body)])
        assert not receipt.rejected
        return Reply(202, json.dumps({"batch": receipt.batch, "rejected": []}).encode())


@pytest.fixture
def collected(store: Store) -> Registry:
    """200 devices report two metrics with memory on four days through the SDK; 1/8 change theme."""
    registry = Registry.parse(REGISTRY)
    clock = Clock(datetime(2026, 11, 10, 12, tzinfo=UTC).timestamp())
    noon = clock.now
    intake = Intake(registry, store, clock=clock)
    bits = random.Random(11).getrandbits
    for device in range(200):
        client = Client(
            registry,
            state_dir=":memory:",
            transport=Direct(intake),
            clock=clock,
            bits=bits,
            spread=0,
            background=False,
        )
        for day in range(5):
            clock.now = noon + 86_400 * day
            if day < 4:
                theme = "dark" if device % 4 or (device % 8 == 0 and day > 1) else "light"
                client.record("theme", theme)
                client.record("city", "Oslo" if device % 5 else "Bergen")
            client.flush()
        client.close()
        assert not client.counters.get("rejected")
    return registry


def test_from_the_sdk_to_an_estimate(store: Store, collected: Registry) -> None:
    """What devices with memory report over four days is estimated within its noise.

    Seed 11; 5 comparisons within 4.5 standard errors: false alarm below 5e-5.
    """

    def near(found: Shares, truth: dict[str, float]) -> bool:
        each = [found.values.index(value) for value in truth]
        error = np.abs(found.share[each] - np.array(list(truth.values())))
        return bool((error < 4.5 * found.std_error[each]).all())

    theme = read(store, collected, "theme")
    assert (theme.n, theme.devices, len(theme.windows)) == (800, 200, 4)
    assert near(theme, {"light": 0.1875, "dark": 0.8125, "other": 0.0})
    assert theme.detected.tolist()[:2] == [True, True]
    city = read(store, collected, "city", candidates=["Oslo", "Bergen", "Rome"])
    assert (city.n, city.devices) == (800, 200)
    assert near(city, {"Oslo": 0.8, "Bergen": 0.2})
    assert city.detected[0]
    assert not city.detected[2]
