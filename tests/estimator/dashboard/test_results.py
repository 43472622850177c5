"""What was calculated is kept, what takes long goes on in the background, and nothing twice."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass, replace
from datetime import date

import numpy as np
import pytest

from deniable import Scheme
from deniable.protocol.mechanisms import design
from deniable_estimator.analyses import sample_tally
from deniable_estimator.asking.results import (
    Results,
    StillDecoding,
    TooManyDecodes,
    size_of,
)
from deniable_estimator.kinds.registry import answer_of
from deniable_estimator.statistics.participation import Participation

from .conftest import Clock


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def results(clock):
    return Results(10_000, clock, workers=2, most=16, most_of_one=4)


@pytest.fixture
def gate():
    """What slow work waits for; opened at the end, so that no thread stays behind."""
    event = threading.Event()
    yield event
    event.set()


def test_what_is_known_is_not_calculated_again(results):
    """The second call with a key returns the first one's object."""
    calls = []

    def calculate():
        calls.append(1)
        return [1]

    assert results.get(b"a", calculate) is results.get(b"a", calculate)
    results.get(b"b", calculate)
    assert len(calls) == 2


def test_two_who_ask_at_once_share_one_calculation(results, gate):
    """While one calculates, the others wait for it and are given the same."""
    calls = []
    begun = threading.Event()

    def calculate():
        calls.append(1)
        begun.set()
        assert gate.wait(120)
        return [1]

    with ThreadPoolExecutor(5) as pool:
        first = pool.submit(results.get, b"a", calculate)
        assert begun.wait(120)
        others = [pool.submit(results.get, b"a", calculate) for _ in range(4)]
        gate.set()
        assert {id(each.result(10)) for each in (first, *others)} == {id(first.result())}
    assert len(calls) == 1


def test_a_failure_is_not_kept(results):
    """Whoever asks after a failure makes another attempt."""

    def fail():
        raise ValueError("once")

    with pytest.raises(ValueError, match="once"):
        results.get(b"a", fail)
    assert results.get(b"a", lambda: 2) == 2


def test_memory_is_bounded_in_bytes(results):
    """What was asked for longest ago makes room, and what is larger than all is not kept."""
    for key in (b"a", b"b", b"c"):
        results.get(key, lambda: ["a"] * 39)
    assert 0 < results.size <= 10_000
    assert isinstance(results.get(b"c", lambda: "again"), list)
    assert results.get(b"a", lambda: "again") == "again"
    before = results.size
    results.get(b"large", lambda: ["a"] * 400)
    assert results.size == before


def weight(found, known):
    """The bytes of everything that hangs on it, but for strings."""
    if id(found) in known or isinstance(found, str):
        return 0
    known.add(id(found))
    if isinstance(found, np.ndarray):
        return found.nbytes if found.base is None else weight(found.base, known)
    parts: list[object] = list(found) if isinstance(found, tuple) else []
    if isinstance(found, dict):
        parts = list(found.values())
    if is_dataclass(found) and hasattr(found, "__dict__"):
        parts = list(vars(found).values())
    elif is_dataclass(found):
        parts = [getattr(found, each.name) for each in fields(found)]
    return sys.getsizeof(found) + sum(weight(each, known) for each in parts)


@pytest.mark.parametrize(("count", "listed"), [(10, True), (1_000, True), (20_000, False)])
def test_estimates_and_texts_are_weighed(count, listed):
    """The bytes of an estimate over a year are told to within a third, orders and all; those of a
    list are about a hundred for each string."""
    values = tuple(f"{place}.example" for place in range(count))
    mechanism = design("auto", count, 2.0) if listed else design("auto", None, 2.0, salt="m")
    scheme = Scheme("category" if listed else "string", mechanism, values if listed else ())
    rng = np.random.default_rng(1)
    counts = np.full(10, 2_000) if listed else np.full(100, 200)
    if listed:
        counts = np.resize(counts, count)
    some = None if listed else values[:100]
    tally = sample_tally(scheme, counts, rng, values=some)
    days = tuple(date.fromordinal(730_000 + day).isoformat() for day in range(365))
    tally = replace(tally, windows=days)
    told = Participation({day: number for number, day in enumerate(days, 1000)})
    found = answer_of(tally, scheme, None if listed else values, participation=told)
    found.parted  # noqa: B018
    whole = weight(found, set())
    assert 0.75 * whole < size_of(found) < 1.33 * whole + 3_000
    assert 50_000 < size_of(["a.example"] * 1000) < 200_000


def test_short_work_is_answered_at_once(results):
    """Work that ends within one's patience needs no second request, and its error is raised."""
    assert results.job(b"a", lambda progress: 7, 10) == 7

    def fail(progress):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        results.job(b"a", fail, 10)


def test_long_work_says_how_far_it_is(results, clock, gate):
    """Whoever loses patience is told, and finds the same work, and then its result."""
    calls = []
    counted = threading.Event()

    def work(progress):
        calls.append(1)
        progress(3, 12)
        counted.set()
        assert gate.wait(120)
        return "done"

    with pytest.raises(StillDecoding):
        results.job(b"a", work, 0.01)
    assert counted.wait(120)
    clock.now = 5
    with pytest.raises(StillDecoding) as caught:
        results.job(b"a", work, 0.01)
    assert (caught.value.done, caught.value.of, caught.value.seconds) == (3, 12, 5)
    gate.set()
    assert results.job(b"a", work, 10) == "done"
    assert len(calls) == 1
    assert results.job(b"a", work, 10) == "done"
    assert len(calls) == 2


@pytest.mark.parametrize(("later", "done"), [(60, [0, 1, 2]), (61, [0])])
def test_work_that_nobody_asks_for_stops(results, clock, gate, later, done):
    """A job that nobody has asked for in a minute ends at its next step; asking begins anew."""
    ended = threading.Event()
    steps = []

    def work(progress):
        try:
            for step in range(3):
                progress(step, 3)
                steps.append(step)
                assert gate.wait(120)
            return "done"
        finally:
            ended.set()

    with pytest.raises(StillDecoding):
        results.job(b"a", work, 0.01)
    clock.now = later
    gate.set()
    assert ended.wait(120)
    assert steps == done
    assert results.job(b"a", work, 10) == "done"


def test_a_refusal_says_when_there_will_be_room(clock):
    """After jobs that took half a minute each, one of two that run ends in about 15 seconds; of
    the four of a reader who shares the queue with another's four, in twice that time."""
    results = Results(10_000, clock, workers=2, most=8, most_of_one=4)
    gate = threading.Event()

    def long(progress):
        clock.now += 30

    for number in range(30):
        results.job(b"long%d" % number, long, 10)
    for number in range(8):
        with pytest.raises(StillDecoding) as waiting:
            results.job(bytes([number]), lambda progress: gate.wait(120), 0, reader=str(number % 2))
    assert (waiting.value.done, waiting.value.of) == (0, 0)
    for reader, seconds in (("0", 30), ("2", 15)):
        with pytest.raises(TooManyDecodes) as caught:
            results.job(b"another", long, 0, reader=reader)
        assert abs(caught.value.retry_after - seconds) <= 1
    gate.set()


def test_few_may_wait_long(results, gate):
    """Four wait as long as they like, four more for a second, and the ninth is told at once to
    come back, so that threads stay free for others."""
    waiting = threading.Semaphore(0)

    def work(progress):
        waiting.release()
        return gate.wait(120)

    with ThreadPoolExecutor(8) as pool:
        patient = [pool.submit(results.job, b"a", work, 30.0) for _ in range(4)]
        assert waiting.acquire(timeout=120)
        while results._seats._value:
            assert not gate.wait(0.01)
        brief = [pool.submit(results.job, b"a", work, 30.0) for _ in range(4)]
        # On a busy machine the first may have waited before the last begins.
        while results._brief_seats._value and not any(each.done() for each in brief):
            assert not gate.wait(0.01)
        with pytest.raises(StillDecoding):
            results.job(b"a", work, 30.0)
        for each in brief:
            with pytest.raises(StillDecoding):
                each.result(30)
        gate.set()
        assert [each.result(30) for each in patient] == [True] * 4


@pytest.mark.parametrize(("later", "found"), [(60, 1), (61, 2)])
def test_results_that_nobody_fetches_are_forgotten(results, clock, later, found):
    """A result waits a minute for whoever has asked for it."""
    calls = []
    ended = threading.Event()

    def work(progress):
        assert begin.wait(120)
        calls.append(1)
        ended.set()
        return len(calls)

    begin = threading.Event()
    with pytest.raises(StillDecoding):
        results.job(b"a", work, 0)
    begin.set()
    assert ended.wait(120)
    results._jobs[b"a"].future.result(10)
    clock.now = later
    assert results.job(b"a", work, 10) == found


def test_what_is_known_is_not_kept_waiting(results, gate):
    """While long work of others fills all places, what is known is fetched at once, and what is
    not known has to wait; a job whose result became known meanwhile is given to nobody later."""

    def sum_of(*keys):
        def work(turn):
            assert turn.known or gate.wait(120)
            return sum(turn.get(key, lambda: 1) for key in keys)

        return work

    results.get(b"a", lambda: 1)
    for name in (b"job", b"one", b"two"):
        with pytest.raises(StillDecoding):
            results.fetch(name, sum_of(b"a", name), 0, "")
    results.keep(b"job", 5)
    assert results.fetch(b"job", sum_of(b"a", b"job"), 0, "") == 6
    with pytest.raises(StillDecoding):
        results.fetch(b"job", sum_of(b"a", b"unknown"), 0, "")
    gate.set()
    assert results.fetch(b"job", sum_of(b"a", b"unknown"), 30, "") == 2
