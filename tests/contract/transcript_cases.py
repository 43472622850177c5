"""What the transcripts do. What a step must give is filled in by a run; what a script says itself
(a body that is null, what the ledger must hold) is demanded of every run."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import Any

from deniable import Registry, compiled

from .transcripts import Step

DAY = 86_400
HOUR = 3_600
NOON = int(datetime(2027, 1, 4, 12, tzinfo=UTC).timestamp())
"""Noon of a Monday: the first of the days that scripts count."""

HEAD = """
schema = 1
app = "editor"
[defaults]
owner = "growth@acme.example"
expires = 2027-12-31
"""

HOLDS: Step = {"ledger": ...}
"""The state of the device, to be filled in by the run."""


def at(day: float, hour: float = 0) -> float:
    """Noon of a day, counted from 0, and so many hours later."""
    return NOON + day * DAY + hour * HOUR


def metric(name: str, kind: str = "boolean", **keys: Any) -> str:
    """The declaration of a metric."""
    settings = {"epsilon": 1.0, "lifetime_epsilon": 1000.0, **keys}
    text = f'[metrics.{name}]\ntype = "{kind}"\ndescription = "What {name} is."\n'
    for key, value in settings.items():
        if isinstance(value, bool):
            told = "true" if value else "false"
        elif isinstance(value, list):
            told = "[" + ", ".join(f'"{each}"' for each in value) + "]"
        else:
            told = f'"{value}"' if isinstance(value, str) and key != "expires" else str(value)
        text += f"{key} = {told}\n"
    return text


def registry(*metrics: str, cap: float | None = None) -> dict[str, Any]:
    """The compiled registry with these declarations."""
    head = (
        HEAD if cap is None else HEAD.replace("[defaults]", f"lifetime_epsilon = {cap}\n[defaults]")
    )
    return compiled.to_document(Registry.parse(head + "".join(metrics)))


PLATFORM = """
[segments.platform]
values = ["ios", "android", "web"]
other = "other"
[segments.plan]
values = ["free", "paid"]
"""


def segmented(*metrics: str) -> dict[str, Any]:
    """The same with two declared segments; `platform` has an `other`, `plan` has none."""
    return registry(PLATFORM, *metrics)


def tell(time: float, **segments: str) -> Step:
    """Tell the device its segments."""
    return {"at": time, "segments": segments}


def record(time: float, *records: tuple[str, Any], **demanded: Any) -> Step:
    """Record values, or none: then only what has ended is sealed."""
    return {"at": time, "records": [list(each) for each in records], **demanded}


def take(time: float, kind: str = "due", **demanded: Any) -> Step:
    return {"at": time, "take": kind, **demanded}


def reply(time: float, answer: Any, **demanded: Any) -> Step:
    return {"at": time, "reply": answer, **demanded}


def delivered(time: float) -> list[Step]:
    """A batch leaves and is counted."""
    return [take(time), reply(time, {"rejected": {}}, counted=True)]


def daily(name: str, values: list[Any]) -> list[Step]:
    """One value on each day; each is sealed by the record of the next day, and all are sent."""
    days = [record(at(day), (name, value)) for day, value in enumerate(values)]
    last = at(len(values))
    return [*days, record(last), HOLDS, *delivered(last + HOUR), HOLDS]


def spent(**metrics: int) -> Step:
    """Demands how many reports each metric has been charged for."""
    return {"ledger": {name: {"reports": count} for name, count in metrics.items()}}


def case(
    name: str, about: str, document: dict[str, Any], *steps: Step | list[Step], spread: float = HOUR
) -> dict[str, Any]:
    flat = itertools.chain.from_iterable(
        [each] if isinstance(each, dict) else each for each in steps
    )
    return {
        "name": name,
        "about": about,
        "registry": document,
        "spread": spread,
        "steps": [dict(each) for each in flat],
    }


BROWSERS = ["firefox", "chrome", "safari", "edge", "blåbär", "other"]
COUNTRIES = [f"{first}{second}" for first in "abcde" for second in "nopqrs"]
MEMO = {"longitudinal": "memoize", "memo_epsilon": 2.5, "lifetime_epsilon": 5.0}
RANGE = {"low": 0, "high": 100}


def mechanisms() -> list[dict[str, Any]]:
    """A series of reports through each mechanism."""
    made = []

    def add(name: str, declared: str, values: list[Any], about: str) -> None:
        made.append(case(name, about, registry(declared), daily("m", values)))

    add("boolean", metric("m"), [True, False, True, False, True, True], "Randomized response.")
    add(
        "category",
        metric("m", "category", values=BROWSERS),
        [*BROWSERS, "none of them", "bl\u00e5b\u00e4r", "bla\u030aba\u0308r"],
        "Subset selection. What is not listed counts as other, and texts are compared in normal "
        "form C.",
    )
    add(
        "category in a bitmap",
        metric("m", "category", values=COUNTRIES, epsilon=0.5),
        ["an", "es", "cp"],
        "Subset selection with a bitmap of columns.",
    )
    add(
        "category in a projective geometry",
        metric("m", "category", values=COUNTRIES, mechanism="projective_geometry", epsilon=2.0),
        ["an", "ao", "es", "cp", "bn", "dr"],
        "Projective geometry response, which auto takes for long lists.",
    )
    add(
        "string",
        metric("m", "string", epsilon=2.0),
        ["Oslo", "Bergen", " x ", "\U0001f600", "\u212b"],
        "Hashed projective geometry, salted with the metric's name.",
    )
    add(
        "mean of a number",
        metric("m", "number", ask="mean", **RANGE),
        [0, 100, 33, 0.1, -5, 1e300, 99.99999],
        "A sliding window. Numbers outside the range count as its ends.",
    )
    add(
        "mean of whole numbers on one bit",
        metric("m", "number", ask="mean", integer=True, mechanism="duchi", **RANGE),
        [0, 100, 33, 101, 50],
        "Duchi's one bit: a sliding window with two columns.",
    )
    add(
        "distribution",
        metric("m", "number", ask="distribution", low=0.05, high=20, scale="log", unit="s"),
        [0.05, 20, 0.7, 19.99, 0.049, 3, 1.5, 0.2],
        "A hierarchical histogram on a logarithmic scale.",
    )
    add(
        "distribution and mean",
        metric("m", "number", ask=["mean", "distribution"], epsilon=2.0, **RANGE),
        [0, 100, 33, 66.6, 1, 99, 50, 12],
        "A hierarchical histogram with a sliding window as its last row.",
    )
    add(
        "category with memos",
        metric("m", "category", values=BROWSERS, **MEMO),
        ["firefox", "firefox", "chrome", "firefox", "other"],
        "Memoized subset selection: the same value has the same memo, and fresh noise each time.",
    )
    add(
        "string with memos",
        metric("m", "string", **MEMO),
        ["Oslo", "Oslo", "Bergen", "Oslo"],
        "Memoized local hashing: one row for ever, drawn from the metric's key.",
    )
    add(
        "category with basic RAPPOR",
        metric("m", "category", values=BROWSERS, mechanism="basic_rappor", **MEMO),
        ["firefox", "firefox", "chrome"],
        "Basic RAPPOR.",
    )
    add(
        "string with RAPPOR",
        metric("m", "string", mechanism="rappor", **MEMO),
        ["Oslo", "Oslo", "Bergen"],
        "RAPPOR: a cohort for ever, a memo for each value, fresh noise in each report.",
    )
    add(
        "string with one-time RAPPOR",
        metric("m", "string", mechanism="one_time_rappor", epsilon=2.0),
        ["Oslo", "Oslo", "Bergen"],
        "One-time RAPPOR, without memos.",
    )
    return made


def aggregates() -> list[dict[str, Any]]:
    """Several records of a window become one value."""
    texts = ["firefox", "chrome", "safari", "edge", "firefox"]
    numbers = [3, 10.5, -2, 0.1, 7]
    number = {"ask": "mean", **RANGE}
    kinds: list[tuple[str, str, dict[str, Any], list[Any]]] = [
        *(("category", each, {"values": BROWSERS}, texts) for each in ("last", "first", "any")),
        ("boolean", "max", {}, [False, True, False]),
        *(
            ("number", each, number, numbers)
            for each in ("max", "min", "sum", "count", "mean", "any")
        ),
    ]
    made = []
    for kind, aggregate, keys, values in kinds:
        steps = [
            record(at(0), ("m", values[0])),
            # Two in one transaction, the others in one each.
            record(at(0, 1), ("m", values[1]), ("m", values[2])),
            *(record(at(0, 2 + place), ("m", value)) for place, value in enumerate(values[3:])),
            record(at(1)),
            *delivered(at(1, 1)),
            spent(m=1),
        ]
        made.append(
            case(
                f"aggregate {aggregate} of a {kind}",
                "Five records of a window, or three, become one value.",
                registry(metric("m", kind, aggregate=aggregate, **keys)),
                steps,
            )
        )
    return made


def participation() -> list[dict[str, Any]]:
    """The coin, windows and what ends them."""
    two = registry(metric("a"), metric("b", sample_rate=0.25))
    yield_windows = registry(
        metric("daily"), metric("weekly", window="week"), metric("monthly", window="month")
    )
    short = registry(
        metric("day", expires="2027-01-05"),
        metric("week", expires="2027-01-05", window="week"),
    )
    return [
        case(
            "coin",
            "sample_rate is drawn once for each window, before the value is stored. After tails "
            "nothing is stored, and later records of the window draw nothing.",
            registry(metric("m", sample_rate=0.25)),
            [record(at(day, hour), ("m", True)) for day in range(12) for hour in (0, 1)],
            record(at(12)),
            HOLDS,
            delivered(at(12, 1)),
        ),
        case(
            "two metrics",
            "Each metric has its own coin; ended windows are sealed in the order of their ends, "
            "then of the metrics' names, and share one delay.",
            two,
            [record(at(day), ("b", True), ("a", False)) for day in range(4)],
            record(at(4)),
            HOLDS,
            delivered(at(4, 1)),
        ),
        case(
            "days, weeks and months",
            "A window ends at midnight UTC, on Monday or on the first of a month.",
            yield_windows,
            [
                record(at(day), ("monthly", True), ("weekly", True), ("daily", True))
                for day in (0, 1, 6, 7, 27)
            ],
            HOLDS,
            record(at(28)),
            HOLDS,
            delivered(at(28, 1)),
        ),
        case(
            "several windows at once",
            "A device that was off seals all windows that have ended, in one transaction.",
            registry(metric("m")),
            record(at(0), ("m", True)),
            record(at(1) - 13 * HOUR, ("m", False)),
            record(at(20), ("m", True)),
            spent(m=1),
            record(at(40)),
            spent(m=2),
            delivered(at(40, 1)),
        ),
        case(
            "expired",
            "A record after the last day is ignored. A week that begins by the last day is "
            "answered after its end.",
            short,
            record(at(1), ("day", True), ("week", True)),
            record(at(2), ("day", True), ("week", True)),
            record(at(7), ("day", True), ("week", True)),
            {**spent(day=1, week=1), "values": 0},
            delivered(at(7, 1)),
        ),
        case(
            "a clock that goes back",
            "A record of a window that has ended changes nothing; an earlier window that was "
            "never seen is answered once. A delay further away than a day was written under "
            "another clock, and is ignored.",
            registry(metric("m")),
            record(at(5), ("m", True)),
            record(at(6), ("m", True)),
            record(at(5), ("m", False)),
            record(at(4), ("m", False)),
            HOLDS,
            record(at(400)),
            spent(m=3),
            take(at(7)),
            reply(at(7), {"rejected": {}}, counted=True),
        ),
        case(
            "400 windows",
            "A device lists the last 400 windows of a metric. What ends no later than an older "
            "one is refused for ever, so that no window is answered twice.",
            registry(metric("m", sample_rate=0.001, expires="2029-12-31")),
            [record(at(day), ("m", True)) for day in range(402)],
            [record(at(day), ("m", True)) for day in (0, 1, -1, 2)],
        ),
    ]


def budgets() -> list[dict[str, Any]]:
    """The ledger stops a device."""
    boolean = metric("m", lifetime_epsilon=2.0)
    memoized = metric("m", "category", values=BROWSERS, **MEMO)
    narrower = metric("m", "category", values=[*BROWSERS[:-1], "rest"], **MEMO)
    third = metric("m", "category", values=[*BROWSERS, "more"], **MEMO)
    return [
        case(
            "a metric's lifetime",
            "Two reports fit into the lifetime. Then the coin of a new window is not even drawn.",
            registry(boolean),
            [record(at(day), ("m", True)) for day in range(5)],
            {**spent(m=2), "values": 0},
            delivered(at(5)),
        ),
        case(
            "a budget that ends before the window",
            "The ledger is asked again when a window is sealed: of two open windows the later one "
            "is not answered, and its value is deleted.",
            registry(metric("m", lifetime_epsilon=1.0)),
            record(at(1), ("m", True)),
            record(at(0), ("m", True)),
            {"ledger": {}, "values": 2},
            record(at(2)),
            {**spent(m=1), "values": 0, "waiting": 1},
        ),
        case(
            "the registry's cap",
            "All metrics together keep within the registry's own lifetime epsilon.",
            registry(metric("a"), metric("b", epsilon=0.5), cap=2.5),
            [record(at(day), ("a", True), ("b", True)) for day in range(4)],
            spent(a=2, b=1),
            delivered(at(4)),
        ),
        case(
            "many reports from memos",
            "Reports of memos cost the metric one memo, however many there are; under the "
            "registry's cap each costs its fresh noise.",
            registry(memoized, cap=10.0),
            [record(at(day), ("m", BROWSERS[day % 3])) for day in range(14)],
            HOLDS,
            delivered(at(14)),
        ),
        case(
            "another scheme with memos",
            "Another list is another scheme, with other memos, which are charged again. The third "
            "does not fit into the lifetime, and the device stops; back under the first scheme it "
            "goes on with its first memos.",
            registry(memoized),
            record(at(0), ("m", "firefox")),
            record(at(1), ("m", "firefox")),
            {"at": at(1, 1), "upgrade": registry(narrower)},
            record(at(2), ("m", "firefox")),
            record(at(3)),
            HOLDS,
            {"at": at(3), "upgrade": registry(third)},
            record(at(3), ("m", "firefox")),
            record(at(4)),
            spent(m=3),
            {"at": at(4), "upgrade": registry(memoized)},
            record(at(4), ("m", "firefox")),
            record(at(5)),
            spent(m=4),
            delivered(at(5, 1)),
        ),
        case(
            "another scheme without memos",
            "The ledger goes on: reports of all schemes count.",
            registry(boolean),
            record(at(0), ("m", True)),
            record(at(1)),
            {"at": at(1), "upgrade": registry(metric("m", epsilon=1.5, lifetime_epsilon=2.0))},
            record(at(1), ("m", True)),
            {**spent(m=1), "values": 0},
            {"at": at(1), "upgrade": registry(boolean)},
            record(at(1, 1), ("m", True)),
            record(at(2)),
            spent(m=2),
            delivered(at(2, 1)),
        ),
        case(
            "an erased key",
            "After an erasure, metrics that have reported with memos never do so again; the "
            "others go on with the ledger that they have.",
            registry(memoized, metric("n", lifetime_epsilon=2.0)),
            record(at(0), ("m", "firefox"), ("n", True)),
            record(at(1), ("m", "firefox"), ("n", True)),
            {"at": at(1, 1), "erase": True},
            {**spent(m=1, n=1), "waiting": 0, "values": 0, "reports": []},
            record(at(1, 2), ("m", "firefox"), ("n", True)),
            record(at(2), ("m", "firefox"), ("n", True)),
            record(at(3), ("m", "firefox"), ("n", True)),
            {**spent(m=1, n=2), "values": 0},
            delivered(at(3, 1)),
        ),
    ]


def choices() -> list[dict[str, Any]]:
    """The person decides, the app is upgraded, the process ends."""
    one = registry(metric("m"))
    return [
        case(
            "opting out and in",
            "Opting out deletes values and reports that were not sent; records are ignored then. "
            "Ledger and windows stay, so a window is still answered once, with what is recorded "
            "after opting in.",
            one,
            record(at(0), ("m", True)),
            record(at(1), ("m", True)),
            {"at": at(1), "opt_out": True},
            {**spent(m=1), "waiting": 0, "values": 0, "reports": []},
            record(at(1, 1), ("m", False)),
            {"at": at(1, 2), "opt_in": True},
            record(at(1, 3), ("m", False)),
            record(at(2)),
            spent(m=2),
            delivered(at(2, 1)),
        ),
        case(
            "opting out with a batch on its way",
            "A report that was sent and not acknowledged may have arrived: it is not sent again, "
            "and stays listed as unanswered.",
            one,
            record(at(0), ("m", True)),
            record(at(1), ("m", True)),
            take(at(1, 1)),
            reply(at(1, 1), "lost", counted=False),
            {"at": at(1, 1), "opt_out": True},
            {**spent(m=1), "waiting": 0, "values": 0},
            {"at": at(1, 2), "opt_in": True},
            take(at(1, 3), "urgent", body=None),
        ),
        case(
            "a restart in an open window",
            "Values, windows and reports are on the disk: a process that ends loses none.",
            one,
            record(at(0), ("m", True)),
            {"restart": True},
            record(at(0, 1), ("m", False)),
            record(at(1)),
            {"restart": True},
            delivered(at(1, 1)),
            {**spent(m=1), "waiting": 0},
        ),
        case(
            "a restart between a batch and its reply",
            "The next process sends the same bytes, once the lease of a minute is over.",
            one,
            record(at(0), ("m", True)),
            record(at(1)),
            take(at(1, 1)),
            {"restart": True},
            take(at(1, 1) + 59, body=None),
            *delivered(at(1, 1) + 60),
            {**spent(m=1), "waiting": 0},
        ),
        case(
            "a metric that is gone",
            "The value of a metric that the registry does not declare any more waits for a day "
            "after its window, for another process of the newer app, and is then deleted.",
            registry(metric("m"), metric("n")),
            record(at(0), ("m", True), ("n", True)),
            {"at": at(0, 1), "upgrade": one},
            record(at(1)),
            {**spent(m=1), "values": 1},
            record(at(2)),
            {**spent(m=1), "values": 0},
            {"at": at(2), "upgrade": registry(metric("m"), metric("n"))},
            record(at(0), ("n", True)),
            spent(m=1),
        ),
        case(
            "a value that is gone",
            "A value that left the list while its window was open is no value: nothing is "
            "reported or charged. With an other, it counts as that.",
            registry(
                metric("m", "category", values=["a", "b", "c"]),
                metric("n", "category", values=["a", "b", "c", "other"]),
            ),
            record(at(0), ("m", "c"), ("n", "c")),
            {
                "at": at(0, 1),
                "upgrade": registry(
                    metric("m", "category", values=["a", "b"]),
                    metric("n", "category", values=["a", "b", "other"]),
                ),
            },
            record(at(1)),
            {**spent(n=1), "values": 0},
            delivered(at(1, 1)),
        ),
    ]


def sending() -> list[dict[str, Any]]:
    """From the outbox to the collector."""
    one = registry(metric("m"))
    start = [record(at(0), ("m", True)), record(at(1), ("m", False))]
    many = registry(*(metric(f"m{place:02}") for place in range(11)))
    return [
        case(
            "delay",
            "Before its delay a report is not due; an urgent attempt (flush) does not wait.",
            one,
            start,
            take(at(1), body=None),
            take(at(1), "urgent"),
            reply(at(1), {"rejected": {}}, counted=True),
            take(at(1, 2), body=None),
            spread=DAY,
        ),
        case(
            "retries",
            "After a lost reply or a busy collector the same bytes are sent again: a random wait "
            "after each failure, up to 1, 2, 4 ... seconds. New reports go in a new batch, before "
            "those that have failed.",
            one,
            start,
            take(at(1, 1)),
            reply(at(1, 1), "lost", counted=False, final=False),
            [
                step
                for place in range(1, 6)
                for step in (
                    take(at(1, 1) + 20 * place),
                    reply(at(1, 1) + 20 * place, {"status": 503}, counted=False, final=False),
                )
            ],
            record(at(2)),
            take(at(2, 1)),
            reply(at(2, 1), {"rejected": {}}, counted=True),
            take(at(2, 1)),
            reply(at(2, 1), {"rejected": {}}, counted=True),
            {**spent(m=2), "waiting": 0},
        ),
        case(
            "Retry-After",
            "Nothing is sent before the collector has asked for it, not even an urgent batch. "
            "More than a day is not obeyed.",
            one,
            start,
            take(at(1, 1)),
            reply(at(1, 1), {"status": 503, "retry_after": 600}, counted=False),
            take(at(1, 1) + 599, body=None),
            take(at(1, 1) + 599, "urgent", body=None),
            take(at(1, 1) + 600),
            reply(
                at(1, 1) + 600,
                {"status": 429, "problem": "too-many-requests", "retry_after": 9_000_000},
                counted=False,
            ),
            take(at(2, 1) + 599, "urgent", body=None),
            take(at(2, 1) + 600, "urgent"),
            reply(at(2, 1) + 600, {"rejected": {}}, counted=True),
        ),
        case(
            "passing reasons",
            "A report that a collector does not know yet joins another batch, half an hour to an "
            "hour later, until its window is six days old. Not even an urgent attempt is sooner.",
            registry(metric("m"), metric("n")),
            record(at(0), ("m", True), ("n", True)),
            record(at(1)),
            take(at(1, 1)),
            reply(at(1, 1), {"rejected": {"0": "unknown_metric"}}, waits=["unknown_metric"]),
            take(at(1, 1) + 1799, "urgent", body=None),
            take(at(1, 2)),
            reply(at(1, 2), {"rejected": {"0": "unknown_scheme"}}, waits=["unknown_scheme"]),
            take(at(1, 3)),
            reply(at(1, 3), {"rejected": {"0": "window_not_closed"}}, waits=["window_not_closed"]),
            HOLDS,
            take(at(7, 1)),
            reply(at(7, 1), {"rejected": {"0": "unknown_metric"}}, counted=True),
            {**spent(m=1, n=1), "waiting": 0},
            take(at(8), "urgent", body=None),
        ),
        case(
            "rejected for good",
            "Every other reason is final: the report is not sent again, and stays charged.",
            registry(metric("m"), metric("n")),
            record(at(0), ("m", True), ("n", True)),
            record(at(1)),
            take(at(1, 1)),
            reply(at(1, 1), {"rejected": {"1": "window_too_old"}}, counted=True),
            {**spent(m=1, n=1), "waiting": 0},
            take(at(3), "urgent", body=None),
        ),
        case(
            "a batch that is refused",
            "A problem that the same bytes cannot avoid ends the batch, and draws no wait.",
            one,
            start,
            take(at(1, 1)),
            reply(at(1, 1), {"status": 400, "problem": "malformed-batch"}, final=True),
            {**spent(m=1), "waiting": 0},
            take(at(1, 2), "urgent", body=None),
        ),
        case(
            "another process",
            "A batch is leased for 60 seconds to the one who took it. After that it is taken "
            "again, with the same bytes.",
            one,
            start,
            take(at(1, 1)),
            take(at(1, 1) + 30, body=None),
            take(at(1, 1) + 60),
            reply(at(1, 1) + 61, {"rejected": {}}, counted=True),
            take(at(1, 2), body=None),
        ),
        case(
            "100 reports in a batch",
            "A batch holds 100 reports; the others go in the next one.",
            many,
            [
                record(at(day), *((f"m{place:02}", place % 2 == 0) for place in range(11)))
                for day in range(10)
            ],
            record(at(10)),
            delivered(at(10, 1)),
            delivered(at(10, 1)),
            {"ledger": ..., "waiting": 0},
        ),
    ]


def at_once() -> list[dict[str, Any]]:
    """Metrics that are answered by the first record of a window."""
    once = {"answer": "at_once", "aggregate": "first"}
    browser = metric("m", "category", values=BROWSERS, **once)
    closing = metric("m", aggregate="first")
    opening = metric("m", **once)
    return [
        case(
            "at once",
            "The first record of a window is sealed in its own transaction: the coin, the delay "
            "of up to 10 seconds, the report. No value is stored, and later records of the window "
            "change nothing.",
            registry(browser),
            record(at(0), ("m", "firefox")),
            {**spent(m=1), "values": 0, "waiting": 1},
            take(at(0), body=None),
            take(at(0) + 10),
            reply(at(0) + 11, {"rejected": {}}, counted=True),
            record(at(0, 1), ("m", "chrome"), ("m", "firefox")),
            take(at(0, 2), "urgent", body=None),
            record(at(1), ("m", "edge"), ("m", "edge")),
            record(at(2)),
            delivered(at(2)),
            spent(m=2),
        ),
        case(
            "at once and at close",
            "In one call the reports that are answered at once share one delay, which is drawn "
            "before the first of them. Then come the delay and the reports of windows that have "
            "ended.",
            registry(metric("a", **once), metric("b"), metric("c", **once)),
            record(at(0), ("b", True), ("a", True), ("b", False), ("c", True), ("a", False)),
            record(at(1), ("c", False), ("b", True), ("a", False)),
            record(at(1, 1), ("b", True)),
            delivered(at(1, 2)),
            record(at(2)),
            delivered(at(2, 2)),
            spent(a=2, b=2, c=2),
        ),
        case(
            "at once after tails",
            "After tails no record of the window is reported or stored.",
            registry(metric("m", sample_rate=0.3, **once)),
            [record(at(day, hour), ("m", True)) for day in range(8) for hour in (0, 1)],
            {"ledger": ..., "values": 0},
            delivered(at(8)),
        ),
        case(
            "at once until the ledger stops",
            "When the lifetime is spent, no coin is drawn, and nothing is stored.",
            registry(metric("m", lifetime_epsilon=2.0, **once)),
            [record(at(day), ("m", True)) for day in range(4)],
            {**spent(m=2), "values": 0, "waiting": 2},
            delivered(at(4)),
        ),
        case(
            "at once from memos",
            "The key of a memoized metric is drawn before anything else.",
            registry(metric("m", "category", values=BROWSERS, **MEMO, **once)),
            [record(at(day), ("m", "firefox")) for day in range(4)],
            {**spent(m=4), "values": 0},
            delivered(at(4)),
        ),
        case(
            "at once in a week and a month",
            "The report names a window that is still open. A collector whose registry is behind "
            "leaves it out: the device sends it again until the window is six days past its end.",
            registry(
                metric("w", "number", ask="mean", window="week", **RANGE, **once),
                metric("m", "string", window="month", epsilon=2.0, **once),
            ),
            record(at(1), ("w", 33.5), ("m", "Oslo")),
            take(at(1) + 10),
            reply(
                at(1) + 10,
                {"rejected": {"0": "window_not_closed", "1": "unknown_metric"}},
                waits=["window_not_closed", "unknown_metric"],
            ),
            record(at(3), ("w", 1), ("m", "Bergen")),
            take(at(12, 11)),
            reply(
                at(12, 11), {"rejected": {"0": "window_not_closed"}}, waits=["window_not_closed"]
            ),
            take(at(12, 13)),
            reply(at(12, 13), {"rejected": {"0": "window_not_closed"}}, counted=True),
            {**spent(w=1, m=1), "waiting": 0},
        ),
        case(
            "leaving",
            "On the way out, what waits for no more than its delay of 10 seconds is due. Reports "
            "of windows that have ended keep their delay.",
            registry(metric("a", **once), metric("b")),
            record(at(0), ("b", True)),
            record(at(1), ("a", True)),
            {"at": at(1), "leave": True},
            take(at(1)),
            reply(at(1), "lost", counted=False),
            {"restart": True},
            *delivered(at(1) + 30),
            {**spent(a=1, b=1), "waiting": 1},
            spread=DAY,
        ),
        case(
            "at once and opting out",
            "Opting out deletes a report that was not sent. Its window stays answered.",
            registry(browser),
            record(at(0), ("m", "firefox")),
            {"at": at(0), "opt_out": True},
            {"at": at(0), "opt_in": True},
            record(at(0, 1), ("m", "firefox")),
            {**spent(m=1), "waiting": 0, "reports": []},
            record(at(1), ("m", "firefox")),
            {**spent(m=2), "waiting": 1},
        ),
        case(
            "at once after an upgrade",
            "A value that waits when the metric becomes one that is answered at once waits until "
            "its window ends; so does no other. Back again, a window that was answered stays so.",
            registry(closing),
            record(at(0), ("m", True)),
            {"at": at(0, 1), "upgrade": registry(opening)},
            record(at(0, 2), ("m", False)),
            {"ledger": {}, "values": 1},
            record(at(1), ("m", False)),
            {**spent(m=2), "values": 0, "waiting": 2},
            {"at": at(1, 1), "upgrade": registry(closing)},
            record(at(1, 2), ("m", True)),
            record(at(2), ("m", True)),
            {**spent(m=2), "values": 1},
            delivered(at(2, 1)),
        ),
    ]


def segments() -> list[dict[str, Any]]:
    """Metrics that are counted by segments."""
    by = {"segments": ["platform"]}
    plain = metric("m", **by)
    return [
        case(
            "segments",
            "The row is that of the combination of segments, the last one fastest. A segment that "
            "was not told is its `other`, and the draws are those of a metric without segments.",
            segmented(metric("a", **by), metric("b", segments=["plan", "platform"]), metric("c")),
            record(at(0), ("a", True), ("b", True), ("c", True)),
            tell(at(1), platform="web", plan="paid"),
            record(at(1), ("a", True), ("b", False), ("c", False)),
            tell(at(2), platform="fridge"),
            record(at(2), ("a", True), ("b", True)),
            record(at(3)),
            delivered(at(3, 2)),
            spent(a=3, b=2, c=2),
        ),
        case(
            "a segment that changes",
            "A window keeps the segment of its first record, also over a restart, and the next "
            "window has the new one.",
            segmented(metric("m", "category", values=BROWSERS, **by)),
            tell(at(0), platform="ios"),
            record(at(0), ("m", "firefox")),
            tell(at(0, 1), platform="android"),
            record(at(0, 1), ("m", "chrome")),
            {"restart": True},
            tell(at(0, 2), platform="web"),
            record(at(0, 2), ("m", "edge")),
            record(at(1), ("m", "edge")),
            record(at(2)),
            delivered(at(2, 2)),
            spent(m=2),
        ),
        case(
            "segments with rows of their own",
            "Where the mechanism itself has rows, the combination comes first: row = combination "
            "* rows + row of the mechanism. With memos the row of the mechanism stays the same in "
            "every segment.",
            segmented(
                metric("m", "string", **MEMO, **by),
                metric("d", "number", ask=["mean", "distribution"], **RANGE, **by),
            ),
            tell(at(0), platform="android"),
            record(at(0), ("m", "Oslo"), ("d", 33.5)),
            tell(at(1), platform="web"),
            record(at(1), ("m", "Oslo"), ("d", 33.5)),
            record(at(2)),
            delivered(at(2, 2)),
            spent(m=2, d=2),
        ),
        case(
            "segments at once",
            "The report has the segment of the record that is sealed.",
            segmented(metric("m", answer="at_once", aggregate="first", **by)),
            tell(at(0), platform="android"),
            record(at(0), ("m", True)),
            tell(at(0, 1), platform="web"),
            record(at(0, 1), ("m", False)),
            delivered(at(0, 2)),
            spent(m=1),
        ),
        case(
            "segments after an upgrade",
            "A metric that gets segments inside a window takes those of the next record. A value "
            "that has left the list of its segment is reported as `other`; without one the window "
            "ends without a report.",
            registry(metric("m"), metric("n")),
            record(at(0), ("m", True), ("n", True)),
            {"at": at(0, 1), "upgrade": segmented(plain, metric("n", segments=["plan"]))},
            tell(at(0, 1), platform="ios", plan="free"),
            record(at(0, 1), ("m", True)),
            record(at(1), ("m", True), ("n", True)),
            {
                "at": at(1, 1),
                "upgrade": registry(
                    PLATFORM.replace('"ios"', '"iphone"').replace('"free"', '"gratis"'),
                    plain,
                    metric("n", segments=["plan"]),
                ),
            },
            record(at(2)),
            delivered(at(2, 2)),
            {"ledger": ..., "values": 0},
        ),
    ]


def pairs() -> list[dict[str, Any]]:
    """Two metrics whose values the device joins."""
    plan, dark = metric("plan", "category", values=BROWSERS), metric("dark")
    both = pair("both", "plan", "dark")
    spared = pair("both", "plan", "dark", forget="marginals")
    half = pair("both", "plan", "dark", sample_rate=0.5)
    return [
        case(
            "a pair",
            "When the window ends there is a report of each metric and one of the pair, which is "
            "of the two values that their own rules have made of several records. A window with "
            "one of the two has no report of the pair.",
            registry(plan, dark, both),
            record(at(0), ("plan", "firefox")),
            record(at(0, 1), ("dark", True), ("plan", "edge")),
            {"restart": True},
            record(at(1), ("dark", False)),
            {**spent(plan=1, dark=1, both=1), "values": 1},
            record(at(2)),
            delivered(at(2, 2)),
            {**spent(plan=1, dark=2, both=1), "values": 0},
        ),
        case(
            "a pair with bins",
            "Numbers are cut at the edges; one on an edge belongs to the bin above it.",
            registry(
                metric("n", "number", ask="mean", **RANGE),
                dark,
                pair("both", "n", "dark", bins="{ n = [10, 50.5] }"),
            ),
            *(
                record(at(day), ("n", value), ("dark", True))
                for day, value in enumerate((-3, 10, 50.4, 50.5, 1e9))
            ),
            record(at(5)),
            delivered(at(5, 2)),
            spent(n=5, dark=5, both=5),
        ),
        case(
            "a pair alone",
            "With `forget` the two metrics are not asked: no coin is drawn for them, and their "
            "values wait for the pair alone. Nothing of them is left after it.",
            registry(plan, dark, spared),
            record(at(0), ("dark", True), ("plan", "edge")),
            {"ledger": {}, "values": 2},
            record(at(1), ("plan", "chrome")),
            {**spent(both=1), "values": 1},
            record(at(2)),
            delivered(at(2, 2)),
            {**spent(both=1), "values": 0},
        ),
        case(
            "the coin of a pair",
            "A pair takes part by its own coin, drawn with the first record of either metric after "
            "the coin of that metric. A value is kept if any of them takes part.",
            registry(
                metric("plan", "category", values=BROWSERS, sample_rate=0.5),
                metric("dark", sample_rate=0.5),
                half,
                pair("again", "dark", "plan", sample_rate=0.5),
            ),
            *(
                record(at(day, hour), (name, value))
                for day in range(6)
                for hour, name, value in ((0, "dark", True), (1, "plan", "edge"))
            ),
            HOLDS,
            record(at(6)),
            delivered(at(6, 2)),
            {"ledger": ..., "values": 0},
        ),
        case(
            "the lifetime of a pair",
            "A pair has its own ledger. When it is spent its metrics go on, and where they end "
            "first their values are kept for the pair.",
            registry(
                metric("plan", "category", values=BROWSERS, lifetime_epsilon=3.0),
                metric("dark", lifetime_epsilon=1.0),
                pair("both", "plan", "dark", lifetime_epsilon=2.0),
            ),
            *(record(at(day), ("plan", "edge"), ("dark", True)) for day in range(5)),
            {**spent(plan=3, dark=1, both=2), "values": 0},
            delivered(at(5, 2)),
        ),
        case(
            "a pair that expires",
            "After the last day of the pair its metrics are reported as before.",
            registry(plan, dark, pair("both", "plan", "dark", expires="2027-01-04")),
            record(at(0), ("plan", "edge"), ("dark", True)),
            record(at(1), ("plan", "edge"), ("dark", True)),
            record(at(2)),
            delivered(at(2, 2)),
            {**spent(plan=2, dark=2, both=1), "values": 0},
        ),
        case(
            "a pair after an upgrade",
            "Inside a window the app is upgraded to one that asks the metrics too: each goes on "
            "with the value that has waited for the pair. Upgraded back, windows that are open "
            "are reported.",
            registry(plan, dark, spared),
            record(at(0), ("plan", "edge"), ("dark", True)),
            {"at": at(0, 1), "upgrade": registry(plan, dark, both)},
            record(at(0, 2), ("plan", "chrome")),
            {"ledger": {}, "values": 2},
            {"at": at(0, 3), "upgrade": registry(plan, dark, spared)},
            record(at(0, 4), ("plan", "safari")),
            record(at(1), ("plan", "edge")),
            {"at": at(1, 1), "upgrade": registry(plan, dark)},
            record(at(2), ("dark", True)),
            record(at(4)),
            delivered(at(4, 2)),
            {**spent(plan=1, dark=1, both=1), "values": 0},
        ),
        case(
            "a pair and opting out",
            "Opting out deletes what waits for a pair. Its window stays open, without a second "
            "coin.",
            registry(plan, dark, spared),
            record(at(0), ("plan", "edge"), ("dark", True)),
            {"at": at(0, 1), "opt_out": True},
            {"ledger": {}, "values": 0},
            {"at": at(0, 2), "opt_in": True},
            record(at(0, 3), ("dark", True)),
            record(at(1), ("dark", True), ("plan", "edge")),
            record(at(2)),
            delivered(at(2, 2)),
            {**spent(both=1), "values": 0},
        ),
        case(
            "a value of a pair that is gone",
            "A value that has left its list counts as the `other` of its metric; without one the "
            "window of the pair ends without a report.",
            registry(plan, dark, both),
            record(at(0), ("plan", "edge"), ("dark", True)),
            {
                "at": at(0, 1),
                "upgrade": registry(
                    metric("plan", "category", values=["firefox", "chrome"]), dark, both
                ),
            },
            record(at(1), ("plan", "chrome"), ("dark", True)),
            {
                "at": at(1, 1),
                "upgrade": registry(
                    metric("plan", "category", values=["firefox", "rest"], other="rest"), dark, both
                ),
            },
            record(at(2)),
            delivered(at(2, 2)),
            {**spent(plan=1, dark=2, both=1), "values": 0},
        ),
        case(
            "a pair of a metric with segments",
            "The metrics of a pair may be counted by segments; the pair tells none.",
            segmented(
                metric("m", "category", values=BROWSERS, segments=["platform"]),
                dark,
                pair("both", "dark", "m"),
            ),
            tell(at(0), platform="web"),
            record(at(0), ("m", "edge"), ("dark", True)),
            record(at(1)),
            delivered(at(1, 2)),
            spent(m=1, dark=1, both=1),
        ),
    ]


def discoveries() -> list[dict[str, Any]]:
    """Strings that nobody listed."""
    word = metric("word", "discovery", epsilon=2.0)
    small = {"epsilon": 4.0, "max_length": 8}
    return [
        case(
            "discovery",
            "The first bytes of the last text of each window are reported in one row. Letters that "
            "are written in two ways are one, a text ends at its first zero, a long one is cut.",
            registry(word),
            daily(
                "word",
                ["weather", "A\u030alesund", "ab\0cd", "", "a text that is longer than 16 bytes"],
            ),
        ),
        case(
            "discovery in an alphabet",
            "A text with a letter outside of the alphabet among its first bytes is reported as the "
            "empty one, like one that is denied: neither is silent.",
            registry(
                metric("host", "discovery", alphabet="host", **small),
                metric("word", "discovery", deny=["*@*", "Secret*"], **small),
            ),
            *(
                record(at(day), ("host", text), ("word", text))
                for day, text in enumerate(("cdn.org", "CDN.org", "a@b.example", "SECRETLY"))
            ),
            record(at(4)),
            delivered(at(4, 2)),
            spent(host=4, word=4),
        ),
        case(
            "discovery at once",
            "The first text of the window is reported, and never stored.",
            registry(metric("word", "discovery", answer="at_once", aggregate="first", **small)),
            record(at(0), ("word", "weather"), ("word", "news")),
            {**spent(word=1), "values": 0},
            delivered(at(0, 1)),
        ),
        case(
            "discovery that denies more after an upgrade",
            "What waits is looked at again with the patterns in force.",
            registry(metric("word", "discovery", **small)),
            record(at(0), ("word", "a@b.example")),
            {
                "at": at(0, 1),
                "upgrade": registry(metric("word", "discovery", deny=["*@*"], **small)),
            },
            record(at(1)),
            delivered(at(1, 2)),
            spent(word=1),
        ),
    ]


def pair(name: str, one: str, two: str, bins: str = "", **keys: Any) -> str:
    """The declaration of a pair."""
    text = metric(name, "pair", of=[one, two], **keys)
    return f"{text}bins = {bins}\n" if bins else text


def cases() -> list[dict[str, Any]]:
    """All scripts."""
    return [
        *mechanisms(),
        *aggregates(),
        *participation(),
        *budgets(),
        *choices(),
        *sending(),
        *at_once(),
        *segments(),
        *pairs(),
        *discoveries(),
    ]
