"""From bytes to tallies without HTTP: reasons, windows, duplicates, and hostile bodies."""

import json
from contextlib import closing

import msgspec
import pytest
from tests.registries import tables

from deniable import Registry
from deniable.protocol import windows, wire
from deniable.protocol.windows import end, start
from deniable.protocol.wire import LATEST
from deniable_collector.batches import catalogue as module
from deniable_collector.batches.batch import Receipt
from deniable_collector.batches.catalogue import SKEW, MustWait
from deniable_collector.intake import Intake
from deniable_collector.refusals import IntakeError
from deniable_collector.stores import StoreError, StoreUnavailable

from .conftest import Clock

DAY = 86_400.0


@pytest.fixture
def clock(noon):
    return Clock(noon)


@pytest.fixture
def intake(registry, store, clock):
    return Intake(registry, store, clock=clock, max_reports=50)


def report(metric, window="2026-11-20", columns=None, **more):
    """A report as it travels; of its first columns, unless some are named."""
    row = metric.scheme.mechanism.rows[0]
    if columns is None:
        columns = 0 if row.columns == 1 else (1 << row.columns) - 1
    return {
        "metric": metric.name,
        "scheme": metric.scheme.fingerprint,
        "window": window,
        "columns": wire.pack_columns(row, wire.Report(0, columns)),
        **more,
    }


def body(batch, *reports):
    return json.dumps({"batch": batch, "reports": reports}).encode()


def reports_in(store, metric, window="2026-11-20"):
    return store.tally(metric.name, metric.scheme.fingerprint, [window]).reports


LEFT_OUT = "this key is left out"
BAD = {
    "malformed": [None, [], {"extra": 1}, {"metric": 7}, {"scheme": None}, {"columns": LEFT_OUT}],
    "unknown_metric": [{"metric": "os"}, {"metric": "\ud800"}],
    "bad_window": [
        {"window": each} for each in ("yesterday", "2026-02-30", "2026-W46", "２０２６-11-20")
    ],
    "expired_metric": [{"window": "3000-01-01"}],
    "window_not_closed": [{"window": "2026-11-22"}],
    "window_too_old": [{"window": "2026-11-14"}],
    "unknown_scheme": [{"scheme": "0" * 12}],
    "bad_row": [{"row": each} for each in (1, -1, 10**4000, True, 0.0)],
    "bad_columns": [{"columns": each} for each in (5, -1, True, 1e400, [0])],
}


@pytest.mark.parametrize(
    ("reason", "change"), [(reason, each) for reason, some in BAD.items() for each in some]
)
def test_a_bad_report_is_set_aside(intake, store, registry, new_id, reason, change):
    """Each kind of bad report is rejected by its index and reason; those around it count."""
    good = report(registry["browser"])
    bad = change
    if isinstance(change, dict):
        bad = {key: each for key, each in (good | change).items() if each != LEFT_OUT}
    text = body(new_id(), good, bad, good).replace(b"Infinity", b"1e400")
    (receipt,) = intake.take([intake.read(text)])
    assert receipt.accepted == 2
    assert [(each.index, each.reason) for each in receipt.rejected] == [(1, reason)]
    assert receipt.rejected[0].detail
    assert reports_in(store, registry["browser"]) == 2


def test_the_mark_of_development(intake, registry, new_id):
    """A batch of development mode is refused as a whole, and the message says what to leave out."""
    good = body(new_id(), report(registry["browser"]))
    assert len(intake.read(good).accepted) == 1
    marked = wire.mark_development(good)
    with pytest.raises(IntakeError, match="DENIABLE_DEV") as refused:
        intake.read(marked)
    assert (refused.value.code, refused.value.status) == ("malformed-batch", 400)


def test_many_batches_in_one_commit(intake, store, registry, new_id, monkeypatch):
    """Batches that are taken together make one commit; what was seen is left out of it."""
    good = report(registry["browser"])
    old, new, other = (intake.read(body(new_id(), good)) for _ in range(3))
    bad = intake.read(body(new_id(), {}))
    intake.take([old])
    commits = []
    fold = store.fold
    monkeypatch.setattr(store, "fold", lambda each, now: commits.append(each) or fold(each, now))
    receipts = intake.take([new, old, bad, new, other])
    assert [(each.accepted, each.duplicate) for each in receipts] == [
        *((1, 0), (0, 1), (0, 0), (0, 1), (1, 0))
    ]
    assert [each.batch for each in receipts] == [new.id, old.id, bad.id, new.id, other.id]
    assert [len(commit.ids) for commit in commits] == [3, 2]
    assert reports_in(store, registry["browser"]) == 3


def test_one_id_in_batches_of_one_take(intake, store, registry, new_id):
    """Of batches that share an id, the first that has a good report is counted, and only it."""
    batch, good = new_id(), report(registry["browser"])
    bodies = [body(batch, {}), body(batch, good, good), body(batch, {}), body(batch, good)]
    receipts = intake.take([intake.read(each) for each in bodies])
    assert [(each.accepted, each.duplicate) for each in receipts] == [
        (0, 0),
        (2, 0),
        (0, 0),
        (0, 1),
    ]
    assert reports_in(store, registry["browser"]) == 2


FULL, BUG, AWAY = StoreError("full"), RuntimeError("bug"), StoreUnavailable("down")


@pytest.mark.parametrize(
    ("shards", "names", "trouble", "failed", "groups"),
    [
        (1, "123", lambda ids: FULL if "2" in ids else None, {"2": FULL}, "123 1 2 3"),
        (1, "123", lambda ids: BUG if "2" in ids else None, {"2": BUG}, "123 1 2 3"),
        (1, "2", lambda ids: BUG, {"2": BUG}, "2"),
        (1, "12", lambda ids: AWAY, {"1": AWAY, "2": AWAY}, "12"),
        (2, "2143", lambda ids: AWAY if "1" in ids else None, {"1": AWAY, "3": AWAY}, "24 13"),
        (1, "123", lambda ids: FULL if len(ids) > 1 else AWAY if ids == "2" else None,
         {"2": AWAY, "3": AWAY}, "123 1 2"),
    ],
    ids=["refused", "a bug", "alone", "away", "a shard away", "away in between"],
)  # fmt: skip
def test_who_shares_a_failure(
    registry, store, clock, monkeypatch, shards, names, trouble, failed, groups
):
    """What the store refuses in a group is refused for its own batch only. Nothing is tried one by
    one against a store that is away or goes away meanwhile, but batches of other shards are
    committed; each batch gets its own outcome."""
    monkeypatch.setattr(type(store), "shards", shards)
    intake = Intake(registry, store, clock=clock)
    tried = []

    def fold(commit, now):
        tried.append("".join(each[-1] for each in commit.ids))
        if error := trouble(tried[-1]):
            raise error
        return frozenset()

    monkeypatch.setattr(store, "fold", fold)
    good = report(registry["browser"])
    outcomes = intake.take([intake.read(body(name * 32, good)) for name in names])
    assert outcomes == [failed.get(each, Receipt(each * 32, 1, 0, ())) for each in names]
    assert tried == groups.split()


AT_ONCE = {"day": "browser", "week": "country", "month": "newsletter"}


@pytest.fixture
def at_once(metrics):
    """The registry with metrics of each kind of window that are answered at once, and whether the
    metrics of these names are."""

    def registry(*names):
        text = metrics + tables(newsletter={"type": "boolean", "window": "month"})
        for name in names:
            head = f"[metrics.{name}]\n"
            text = text.replace(head, f'{head}answer = "at_once"\naggregate = "first"\n')
        return Registry.parse(text)

    return registry


EACH_KIND = pytest.mark.parametrize(
    ("kind", "window"), [("day", "2026-11-20"), ("week", "2026-W47"), ("month", "2026-11")]
)


@EACH_KIND
def test_the_edges_of_a_window_that_is_answered_at_once(
    at_once, store, new_id, clock, kind, window
):
    """It is accepted from a day before it begins until six days after its end, while a metric that
    is answered at the close still waits for the end."""
    name = AT_ONCE[kind]
    open_one, closed_one = at_once(name), at_once()
    assert open_one[name].scheme.fingerprint == closed_one[name].scheme.fingerprint
    for registry, opens in (
        (open_one, start(window) - SKEW),
        (closed_one, end(window) - SKEW),
    ):
        intake = Intake(registry, store, clock=clock)
        for moment, reason in (
            (opens - 0.001, "window_not_closed"),
            (opens, None),
            (end(window), None),
            (end(window) + LATEST, None),
            (end(window) + LATEST + 0.001, "window_too_old"),
        ):
            clock.now = moment
            batch = intake.read(body(new_id(), report(registry[name], window)))
            assert [each.reason for each in batch.rejected] == ([reason] if reason else [])


@EACH_KIND
def test_no_retry_of_an_open_window_outlives_the_memory_of_its_id(
    home, at_once, new_id, clock, kind, window
):
    """Whenever a batch of a metric that is answered at once first came, a retry of the same bytes
    at any later moment is seen or refused, never counted: in every store, beside other batches in
    the same commits, and after an edit of the registry that turns `answer` back."""
    name = AT_ONCE[kind]
    registry, edited = at_once(name), at_once()
    first, last = start(window) - SKEW, end(window) + LATEST
    with closing(home.open()) as store:
        before = Intake(registry, store, clock=clock)
        after = Intake(edited, store, clock=clock)
        counted = 0
        for part in (0.0, 0.3, 0.7, 1.0):
            came = first + part * (last - first)
            text = body(new_id(), report(registry[name], window))
            clock.now = came
            (receipt,) = take(before, text)
            assert receipt.accepted == 1
            counted += 1
            hours = (0, 1, 26, 190, 200, 331, 340, 700)
            moments = [max(came, last - 1), last, last + 1, last + 90 * DAY]
            for clock.now in sorted([*moments, *(came + each * 3600.0 for each in hours)]):
                for intake in (before, after):
                    for receipt in take(intake, text):
                        assert (receipt.accepted, *receipt.refused) in OVER
                # Others come in the meantime, so that old ids are dropped.
                day = windows.window_at("day", clock.now - DAY)
                other = body(new_id(), report(registry["dark_mode"], day))
                assert [each.accepted for each in take(before, other, text)] == [1, 0]
        found = store.tally(name, registry[name].scheme.fingerprint, [window])
        assert found.reports == counted


OVER = {(0,), (0, "window_too_old"), (0, "window_not_closed")}


def take(intake, *texts):
    """The receipts of batches that are committed together."""
    return intake.take([intake.read(each) for each in texts])


def test_ids_are_remembered_for_as_long_as_their_batch_needs(at_once, store, new_id, clock):
    """Only a batch with a counted report of a week or a month that is answered at once has an id
    that is kept for longer than others."""
    registry = at_once(*AT_ONCE.values())
    intake = Intake(registry, store, clock=clock)
    day, week, month = (registry[name] for name in AT_ONCE.values())
    ids = [new_id() for _ in range(5)]
    commits = []
    fold = store.fold
    store.fold = lambda commit, now: (commits.append(commit), fold(commit, now))[1]
    take(
        intake,
        body(ids[0], report(day)),
        body(ids[1], report(day), report(week, "2026-W47")),
        body(ids[2], report(week, "2026-W47"), report(month, "2026-11"), report(day)),
        # This one is refused, so its month is not in the tallies.
        body(ids[3], report(day), report(month, "2027-11")),
        body(ids[4], report(month, "2026-11")),
    )
    (commit,) = commits
    assert commit.remember == {ids[1]: 14 * DAY, ids[2]: 38 * DAY, ids[4]: 38 * DAY}
    assert set(commit.ids) == set(ids)
    plain = Intake(at_once("browser"), store, clock=clock)
    commits.clear()
    take(plain, body(new_id(), report(day)), body(new_id(), report(week, "2026-W46")))
    assert [each.remember for each in commits] == [{}]


def test_the_last_window_before_the_expiry(registry, store, metrics, new_id, clock):
    """A metric's last window is accepted, though it ends after the expiry, and the next is not."""
    text = metrics.replace("expires = 2999-06-30", "expires = 2026-11-19")
    intake = Intake(Registry.parse(text), store, clock=clock)
    browser, country = registry["browser"], registry["country"]
    reports = [report(browser, f"2026-11-{day}") for day in (18, 19, 20, 21)]
    reports += [report(country, window) for window in ("2026-W46", "2026-W47", "2026-W48")]
    batch = intake.read(body(new_id(), *reports))
    assert [(each.index, each.reason) for each in batch.rejected] == [
        *((2, "expired_metric"), (3, "expired_metric")),
        *((5, "window_not_closed"), (6, "expired_metric")),
    ]


def test_published_schemes_stay_welcome(registry, store, metrics, new_id, clock):
    """Devices with the registry of yesterday are heard, in a tally of their own."""
    Intake(registry, store, clock=clock).prepare()
    newer = Registry.parse(metrics.replace("epsilon = 2.0", "epsilon = 2.5"))
    intake = Intake(newer, store, clock=clock)
    reports = [report(registry["browser"]), report(newer["browser"], columns=1)]
    (receipt,) = intake.take([intake.read(body(new_id(), *reports))])
    assert receipt.accepted == 2
    assert reports_in(store, registry["browser"]) == reports_in(store, newer["browser"]) == 1


def test_schemes_of_other_collectors_are_found(registry, store, metrics, new_id, clock):
    """A scheme that a newer collector publishes is known a minute later, and asked for no
    oftener than that."""
    intake = Intake(registry, store, clock=clock)
    intake.prepare()
    newer = Registry.parse(metrics.replace("epsilon = 2.0", "epsilon = 2.5"))
    text = body(new_id(), report(newer["browser"]))
    Intake(newer, store, clock=clock).prepare()
    clock.now += module._REFRESH_SECONDS - 1
    assert intake.read(text).rejected[0].reason == "unknown_scheme"
    clock.now += 1
    assert not intake.read(text).rejected


def shown(batch):
    """A batch whose reports can be compared."""
    accepted = tuple(
        (place.tally, place.number, place.row, columns) for place, columns in batch.accepted
    )
    return msgspec.structs.replace(batch, accepted=accepted)


def test_what_may_not_wait_asks_no_store(intake, store, registry, new_id, clock, monkeypatch):
    """Without waiting, only tallies are known that were met before, while they take reports."""
    good = body(new_id(), report(registry["browser"]), report(registry["dark_mode"], row=0))
    with pytest.raises(MustWait):
        intake.read(good, wait=False)
    slow = intake.read(good)
    monkeypatch.setattr(store, "schemes", None)
    quick = intake.read(good, wait=False)
    assert shown(quick) == shown(slow)
    assert not quick.rejected
    clock.now = end("2026-11-20") + LATEST + 1
    with pytest.raises(MustWait):
        intake.read(good, wait=False)


@pytest.mark.parametrize("again", ["batch", "reports", "metric", "window", "row", "columns"])
def test_no_key_may_be_there_twice(intake, registry, new_id, again):
    """Readers differ in which of two equal keys they take, so nobody takes either."""
    text = body(new_id(), report(registry["browser"], row=0))
    name = f'"{again}": '.encode()
    rest = text[text.index(name) :]
    value = json.JSONDecoder().raw_decode(rest[len(name) :].decode())[0]
    twice = text.replace(name, name + json.dumps(value).encode() + b", " + name, 1)
    with pytest.raises(IntakeError) as refused:
        intake.read(twice)
    assert refused.value.code == "not-json"
    assert len(intake.read(text).accepted) == 1
