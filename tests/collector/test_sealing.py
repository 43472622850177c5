"""Sealed tallies: the same sums as before, whatever is done with them."""

from __future__ import annotations

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
import redis as redis_driver

from deniable import windows
from deniable_collector.app import SEALER, create_app
from deniable_collector.settings import Settings
from deniable_collector.stores import StoreError, StoreUnavailable, open_store
from deniable_collector.stores.commits import (
    MAX_CELL,
    Commit,
    Increment,
    TallyKey,
    TallyRowKey,
    shard_of,
)
from deniable_collector.stores.sealed.blocks import DamagedBlock
from deniable_collector.upkeep import sealing
from deniable_collector.upkeep.exporting import export
from deniable_collector.upkeep.importing import load
from deniable_collector.upkeep.retention import SETTLED
from deniable_collector.upkeep.sealing import Sealer, open_tallies, seal_all

STORES = ["sqlite", "redis", "cluster"]
DAYS = ["2026-11-01", "2026-11-02", "2026-11-03"]
WIDTHS = (5, 40_000)
SIZE = 2 + sum(WIDTHS)


@pytest.fixture(params=["store", "folder"])
def place(request, tmp_path):
    """Where blocks go: the store itself, or a folder."""
    return str(tmp_path / "archive") if request.param == "folder" else ""


@pytest.fixture
def opened(home, place):
    """Opens stores at one place; the archive is closed over."""
    stores = []

    def opened(shards=2, archive=place):
        number = 1 if home.kind == "sqlite" else shards
        store = open_store(home.url, prefix=home.prefix, shards=number, archive=archive)
        stores.append(store)
        return store

    yield opened
    for store in stores:
        store.close()


@pytest.fixture
def scheme(opened, shelf):
    scheme = shelf(*WIDTHS)
    opened().publish({"m": [scheme]})
    return scheme


@pytest.fixture
def add(opened, scheme, new_id, noon):
    """Adds counts to one row of a window, and notes what must be there."""
    truth = {}
    store = opened()

    def add(window, cells, row=1, reports=1):
        batch = new_id()
        key = TallyRowKey(TallyKey("m", scheme.fingerprint, window), row)
        part = Increment(WIDTHS[row], reports, tuple(cells), tuple(cells.values()))
        assert not store.fold(Commit((batch,), {key: part}, shard_of(batch, store.shards)), noon)
        vector = truth.setdefault(window, np.zeros(SIZE, np.int64))
        vector[row] += reports
        for column, count in cells.items():
            vector[2 + sum(WIDTHS[:row]) + column] += count

    add.truth = truth
    return add


@pytest.fixture
def filled(add):
    """Three windows, with one of few counts and one of many."""
    draw = np.random.default_rng(18)
    add(DAYS[0], {7: 2, 39_999: 1})
    for window in DAYS[1:]:
        counts = draw.poisson(0.5, WIDTHS[1])
        add(window, {int(at): int(counts[at]) for at in np.flatnonzero(counts)}, reports=9)
        add(window, {1: 4}, row=0, reports=2**33)
    return add


def vector(store, scheme, labels):
    tally = store.tally("m", scheme.fingerprint, labels)
    reports = [row.reports for row in tally.rows]
    return np.concatenate([reports, *(row.cells for row in tally.rows)])


def check(store, scheme, truth):
    """Every window, all of them together, and their reports are as they should be."""
    for label, right in truth.items():
        assert np.array_equal(vector(store, scheme, [label]), right), label
    assert np.array_equal(vector(store, scheme, list(truth)), sum(truth.values()))
    rows = store.row_reports("m", scheme.fingerprint, list(truth))
    assert {label: each.tolist() for label, each in rows.items()} == {
        label: right[:2].tolist() for label, right in truth.items()
    }
    assert store.windows("m", scheme.fingerprint) == sorted(truth)


def key_of(scheme, window):
    return TallyKey("m", scheme.fingerprint, window)


def seal(store, scheme, labels):
    return [store.seal(key_of(scheme, label)) for label in labels]


def files(place):
    return sorted(Path(place).glob("*.block")) if place else []


def test_a_sealed_tally_has_the_same_sums(opened, scheme, filled, place):
    """Sealing changes the bytes and nothing that is read, not even the version; a tally is sealed
    once, and a process that had read it before and one that opens the store later agree."""
    store = opened()
    before = store.version("m", scheme.fingerprint, DAYS), store.versions({"m": DAYS})
    assert store.sealed("m", scheme.fingerprint, DAYS) == frozenset()
    done = seal(store, scheme, DAYS[:2])
    assert all(each is not None for each in done)
    assert done[1].after < done[1].before / 4
    assert store.sealed("m", scheme.fingerprint, DAYS) == set(DAYS[:2])
    assert seal(store, scheme, DAYS[:2]) == [None, None]
    assert bool(files(place)) == bool(place)
    for each in (store, opened()):
        check(each, scheme, filled.truth)
        after = each.version("m", scheme.fingerprint, DAYS), each.versions({"m": DAYS})
        assert after == before
    assert store.seal(key_of(scheme, "2026-10-01")) is None
    with pytest.raises(StoreError, match="never published"):
        store.seal(TallyKey("m", "0" * 12, DAYS[0]))


@pytest.mark.parametrize("cells", [{3: 1}, dict.fromkeys(range(39_000), 2), {4: 2**40}])
def test_a_late_commit_opens_a_sealed_tally(opened, scheme, filled, cells, place):
    """Counts that are added to a sealed tally, few, many or large, are in it with all that it had,
    in open form; it can be sealed again. The file of the first block goes with SQLite, whose
    commit is on the disk by then, and stays with Redis, which may forget the commit in a crash."""
    store = opened()
    seal(store, scheme, DAYS)
    known = files(place)
    filled(DAYS[1], cells)
    check(store, scheme, filled.truth)
    assert store.version("m", scheme.fingerprint, DAYS[1:2])
    seal(store, scheme, DAYS)
    assert store.sealed("m", scheme.fingerprint, DAYS) == set(DAYS)
    check(opened(), scheme, filled.truth)
    used = store.block_files()
    assert used <= {each.name for each in files(place)}
    assert bool(used) == bool(place)
    if store.shards == 1:
        assert len(files(place)) == len(known) == len(used)
    else:
        assert {each.name for each in known} - used <= {each.name for each in files(place)}


def test_a_seen_id_opens_nothing(opened, scheme, filled, noon):
    """A commit that is refused, for an id or a counter that is full, leaves sealed what is."""
    store = opened(shards=2)
    filled(DAYS[1], {5: MAX_CELL - 10})
    batch = "0" * 32
    one = TallyRowKey(key_of(scheme, DAYS[0]), 1)
    commit = Commit((batch,), {one: Increment(WIDTHS[1], 1, (1,), (1,))})
    assert not store.fold(commit, noon)
    filled.truth[DAYS[0]][[1, 2 + 5 + 1]] += 1
    seal(store, scheme, DAYS)
    assert store.fold(commit, noon) == {batch}
    full = TallyRowKey(key_of(scheme, DAYS[1]), 1)
    shard = 0
    with suppress(StoreError):
        store.fold(
            Commit(("1" * 32,), {full: Increment(WIDTHS[1], 1, (5,), (MAX_CELL,))}, shard), noon
        )
        pytest.fail("a counter went beyond its maximum")
    assert store.sealed("m", scheme.fingerprint, DAYS) == set(DAYS)
    check(store, scheme, filled.truth)


def test_a_tally_of_nothing_is_sealed_too(opened, scheme, add):
    """A tally without any count, which a commit of no reports has made, is sealed and read."""
    add(DAYS[0], {}, reports=0)
    seal(opened(), scheme, DAYS[:1])
    check(opened(), scheme, add.truth)


def test_dropping_takes_the_block_and_its_file(opened, scheme, filled, place, noon):
    """Retention deletes sealed windows as others, with their files, and keeps the rest."""
    store = opened()
    seal(store, scheme, DAYS)
    assert store.drop(windows.end(DAYS[1])) == 2
    del filled.truth[DAYS[0]], filled.truth[DAYS[1]]
    check(store, scheme, filled.truth)
    assert all(DAYS[2] in each.name for each in files(place))
    filled(DAYS[0], {1: 1})
    check(store, scheme, filled.truth)


def test_export_import_and_merge(opened, scheme, filled, tmp_path, noon):
    """An export of sealed tallies is the same file as of open ones, and an import adds it to
    sealed tallies once."""
    store = opened()
    before = export(store, tmp_path / "before.gz")
    seal(store, scheme, DAYS)
    assert export(store, tmp_path / "after.gz") == before
    with closing(open_store(f"sqlite:///{tmp_path / 'other.db'}")) as other:
        load(tmp_path / "after.gz", other, noon)
        check(other, scheme, filled.truth)
        seal(other, scheme, DAYS)
        assert load(tmp_path / "after.gz", other, noon).rows == 0
        assert other.sealed("m", scheme.fingerprint, DAYS) == set(DAYS)
        export(other, tmp_path / "more.gz", origin="elsewhere")
        assert load(tmp_path / "more.gz", other, noon).known_rows == 0
        check(other, scheme, {label: 2 * each for label, each in filled.truth.items()})


def test_collectors_that_seal_and_count_at_once(opened, scheme, add):
    """Four threads seal three windows again and again while four others add to them, and two read:
    no count is lost, none is there twice, and nobody reads a part."""
    stores = [opened() for _ in range(4)]
    ended = threading.Event()
    lock = threading.Lock()
    for window in DAYS:
        add(window, {0: 1})

    def sealing(number):
        sealed = 0
        while not ended.is_set():
            sealed += stores[number].seal(key_of(scheme, DAYS[number % 3])) is not None
        return sealed

    def counting(number):
        for turn in range(10):
            time.sleep(0.02)  # as ticks are apart, so that some sealing gets through
            with lock:
                add(DAYS[turn % 3], {number: 1, 1_000 * turn + number: 2}, reports=1)

    def reading(number):
        seen = 0
        while not ended.is_set():
            found = vector(stores[number], scheme, DAYS)
            assert found[2:].sum() >= seen
            seen = int(found[2:].sum())
        return 0

    with ThreadPoolExecutor(10) as pool:
        sealers = [pool.submit(sealing, number) for number in range(4)]
        readers = [pool.submit(reading, number) for number in range(2)]
        try:
            for each in [pool.submit(counting, number) for number in range(4)]:
                each.result(60)
        finally:
            ended.set()
        assert sum(each.result(60) for each in sealers) > 0
        for each in readers:
            each.result(60)
    total = opened()
    tallied = {window: vector(total, scheme, [window]) for window in DAYS}
    assert sum(int(each[1]) for each in tallied.values()) == 3 + 40
    seal(total, scheme, DAYS)
    assert all(np.array_equal(vector(total, scheme, [day]), tallied[day]) for day in DAYS)


def damage(home, scheme, window, place):
    """Changes a byte in the middle of what is kept for a sealed window."""
    if place:
        # One file for each shard.
        for path in (each for each in files(place) if window in each.name):
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 1
            path.write_bytes(content)
        return
    if home.kind == "sqlite":
        with closing(sqlite3.connect(home.url.removeprefix("sqlite:///"))) as file, file:
            sql = "FROM blocks WHERE id = (SELECT id FROM tallies WHERE window = ?)"
            (content,) = file.execute(f"SELECT block {sql}", (window,)).fetchone()
            content = bytearray(content)
            content[len(content) // 2] ^= 1
            file.execute(
                "UPDATE blocks SET block = ? WHERE id = (SELECT id FROM tallies WHERE window = ?)",
                (bytes(content), window),
            )
        return
    url = home.url.replace("redis+cluster", "redis").partition(",")[0]
    driver = redis_driver.RedisCluster if home.kind == "cluster" else redis_driver.Redis
    with closing(driver.from_url(url)) as client:
        for shard in range(2):
            key = f"{home.prefix}:{{{shard}}}:tally:m:{scheme.fingerprint}:{window}"
            if content := bytearray(client.get(key) or b""):
                content[len(content) // 2] ^= 1
                client.set(key, bytes(content))


def test_a_damaged_block_is_refused_in_words(home, opened, scheme, filled, place):
    """One damaged block is named with its metric and window wherever it is read, and added to by
    nobody; all other windows are read, sealed and dropped as before."""
    store = opened()
    seal(store, scheme, DAYS)
    damage(home, scheme, DAYS[1], place)
    name = scheme.fingerprint
    for read in (store.tally, store.row_reports):
        with pytest.raises(DamagedBlock, match=f"metric m, window {DAYS[1]} is damaged"):
            read("m", name, DAYS)

    def add_to_each_shard():
        for _ in range(4):
            filled(DAYS[1], {1: 2**40})

    with pytest.raises(DamagedBlock):
        add_to_each_shard()
    others = {label: each for label, each in filled.truth.items() if label != DAYS[1]}
    for label, right in others.items():
        assert np.array_equal(vector(store, scheme, [label]), right)
    assert np.array_equal(vector(store, scheme, list(others)), sum(others.values()))
    assert store.drop(windows.end(DAYS[1])) == 2


def test_a_folder_that_is_away(home, opened, scheme, filled, tmp_path):
    """Without the setting or without the file, the error says what to set or to restore."""
    folder = tmp_path / "blocks"
    store = opened(archive=str(folder))
    seal(store, scheme, DAYS)
    with pytest.raises(StoreError, match="set DENIABLE_ARCHIVE to it"):
        opened(archive="").tally("m", scheme.fingerprint, DAYS)
    for each in folder.glob("*.block"):
        each.rename(tmp_path / each.name)
    with pytest.raises(StoreError, match="is not in the folder of DENIABLE_ARCHIVE: restore it"):
        store.tally("m", scheme.fingerprint, DAYS)
    for each in tmp_path.glob("*.block"):
        each.rename(folder / each.name)
    check(store, scheme, filled.truth)


def test_a_folder_that_takes_no_files(opened, scheme, filled, tmp_path):
    """Where the folder cannot be written, windows stay open and whole, and the error says so."""
    (tmp_path / "taken").write_text("a file")
    store = opened(archive=str(tmp_path / "taken"))
    with pytest.raises(StoreUnavailable, match="takes no blocks"):
        seal(store, scheme, DAYS)
    assert not store.sealed("m", scheme.fingerprint, DAYS)
    check(store, scheme, filled.truth)


def test_a_hostile_name_stays_in_the_folder(opened, shelf, new_id, noon, tmp_path):
    """A metric of an imported file may have any name: its block is a file in the folder itself."""
    folder = tmp_path / "inner" / "blocks"
    store, scheme = opened(archive=str(folder)), shelf(3)
    for name in ("../../evil", "/etc/evil", "a" * 10_000, "\u202e<script>"):
        store.publish({name: [scheme]})
        key = TallyKey(name, scheme.fingerprint, DAYS[0])
        store.fold(Commit((new_id(),), {TallyRowKey(key, 0): Increment(3, 1, (1,), (1,))}), noon)
        assert store.seal(key) is not None
        assert store.tally(*key[:2], [DAYS[0]]).reports == 1
    assert [each.parent for each in tmp_path.rglob("*.block")] == [folder] * 4


def test_only_settled_windows_are_sealed(opened, scheme, filled):
    """A window is sealed from the moment on at which no clock can bring a report for it."""
    store = opened()
    moment = windows.end(DAYS[1]) + SETTLED
    before = [key.window for key in open_tallies(store, moment - 1)]
    assert before == DAYS[:1]
    due = open_tallies(store, moment)
    assert [key.window for key in due] == DAYS[:2]
    outcome = seal_all(store, due)
    assert (outcome.tallies, outcome.failed) == (2, ())
    assert open_tallies(store, moment) == []
    check(store, scheme, filled.truth)


def test_a_sealer_works_and_says_so(opened, scheme, filled, caplog):
    """A pass seals what is due, tells how many bytes that saved, and comes again in an hour; a
    store that is away is asked again sooner."""
    store = opened()
    with caplog.at_level("INFO"):
        sealer = Sealer(store, clock=lambda: windows.end(DAYS[2]) + SETTLED)
        assert sealer.apply() == 3_600
        assert "sealed 3 tallies" in caplog.text
        assert sealer.apply() == 3_600
    assert caplog.text.count("sealed") == 1
    check(store, scheme, filled.truth)

    class Away:
        def schemes(self):
            raise StoreUnavailable("away")

    with caplog.at_level("ERROR"):
        assert Sealer(Away()).apply() == 600
    assert "windows stay open, with all of their counts: away" in caplog.text


def test_a_collector_seals_by_itself(opened, scheme, filled, registry, until, monkeypatch):
    """An app seals what is due unless its setting is off, and stops when it is told to."""
    monkeypatch.setattr(sealing, "_FIRST_SECONDS", 0.0)
    store = opened()
    off = create_app(Settings(seal="off"), store, registry).extensions[SEALER]
    off.start()
    off.stop()
    assert not store.sealed("m", scheme.fingerprint, DAYS)
    sealer = create_app(Settings(), store, registry).extensions[SEALER]
    sealer._clock = lambda: windows.end(DAYS[2]) + SETTLED
    sealer.start()
    try:
        until(lambda: len(store.sealed("m", scheme.fingerprint, DAYS)) == 3, "nothing is sealed")
    finally:
        sealer.stop()
    check(store, scheme, filled.truth)
