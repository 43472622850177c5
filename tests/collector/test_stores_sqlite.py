"""What is particular to the SQLite store: the file, its version and its locks."""

import sqlite3
from contextlib import closing
from functools import partial
from unittest.mock import Mock

import numpy as np
import pytest

from deniable_collector.stores import StoreError, StoreUnavailable, ids
from deniable_collector.stores.commits import Commit, TallyKey
from deniable_collector.stores.sealed import DamagedBlock
from deniable_collector.stores.sqlite import file as module
from deniable_collector.stores.sqlite.store import SqliteStore

from .filling import WINDOW, added, commit, reports_in


@pytest.fixture
def one(store, scheme):
    """Makes a commit of one report to a published scheme."""
    store.publish([("m", scheme)])
    return lambda *batches: commit(scheme, *batches)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def store(path):
    store = SqliteStore(path)
    yield store
    store.close()


def test_a_transaction_that_cannot_be_undone(store, one, scheme, noon):
    """A connection that can neither commit nor roll back is given up: nothing of the commit is
    kept, and the next one is taken."""
    good = store._file._connection

    def execute(text, *values):
        if text in ("COMMIT", "ROLLBACK"):
            raise sqlite3.OperationalError("disk I/O error")
        return good.execute(text, *values)

    store._file._connection = Mock(wraps=good, in_transaction=True, execute=execute)
    with pytest.raises(StoreError):
        store.fold(one("a" * 32), noon)
    assert store.fold(one("a" * 32), noon) == frozenset()
    assert reports_in(store, scheme) == 1


def test_readers_do_not_make_a_file(store, path):
    """A mistyped path is an error for a reader, and leaves no file behind."""
    for read in (store.schemes, store.ping, lambda: store.windows("m", "abc")):
        with pytest.raises(StoreError, match="correct the path"):
            read()
    assert not path.exists()


def pieces_in(path):
    """The pieces of a file that has one tally, and how many bytes of them are increments."""
    with closing(sqlite3.connect(path)) as connection:
        ((block, added),) = connection.execute("SELECT block, added FROM tallies").fetchall()
        pieces = connection.execute("SELECT place, bytes FROM pieces ORDER BY place").fetchall()
    assert {len(piece) for _, piece in pieces} <= {4_000}
    assert len(pieces) == -(-block // 4_000) + -(-added // 4_000)
    return added, pieces


WIDTH = 15_999


def test_pieces_follow_from_the_sum_alone(tmp_path, shelf, new_id, noon):
    """Whatever the order and the size of the commits, the same sum has the same pieces once its
    increments are merged; and in the file of a closed store is nothing of what was there before
    (seed 0)."""
    random = np.random.default_rng(0)
    scheme = shelf(*[WIDTH // 3] * 3)
    tally = TallyKey("m", scheme.fingerprint, WINDOW)
    reports = random.integers(0, [3, WIDTH // 3], (700, 2))
    pieces = []
    for number, size in enumerate((8, 40, 350)):
        path = tmp_path / f"{number}.db"
        store = SqliteStore(path)
        store.publish([("m", scheme)])
        earlier = set()
        chosen = random.permutation(reports)
        for place, part in enumerate(np.array_split(chosen, -(-len(chosen) // size))):
            rows = {}
            for row in np.unique(part[:, 0]).tolist():
                columns, counts = np.unique(part[part[:, 0] == row, 1], return_counts=True)
                cells = dict(zip(columns.tolist(), counts.tolist(), strict=True))
                rows[row] = len(part[part[:, 0] == row]), cells
            store.fold(Commit((new_id(),), {tally: added(scheme, rows)}), noon)
            if place % 20 == 10:
                store.merge()
            earlier.update(piece.rstrip(b"\0") for _, piece in pieces_in(path)[1])
        assert pieces_in(path)[0] > 0
        store.close()
        left, now = pieces_in(path)
        assert left == 0
        pieces.append(now)
        content, whole = path.read_bytes(), b"".join(piece for _, piece in now)
        # Each commit appends, and each merge changes the sum's digest, which comes first.
        parts = {each[at : at + 16] for each in earlier for at in (0, len(each) - 24)}
        assert len(parts) > 4
        assert [each for each in parts if each in content and each not in whole] == []
    assert pieces[0] == pieces[1] == pieces[2]


def test_a_scattered_commit_writes_little(store, path, shelf, new_id, noon):
    """A commit to a thousand counters far from each other writes a few pages of the file, not one
    for each counter; what is merged later is read in one go."""
    scheme = shelf(500_000)
    store.publish([("m", scheme)])
    store.fold(commit(scheme, new_id(), cells=dict.fromkeys(range(0, 500_000, 2), 1)), noon)
    store.clear_journal(0.0)
    store.fold(commit(scheme, new_id(), cells=dict.fromkeys(range(0, 500_000, 500), 1)), noon)
    assert path.with_name(path.name + "-wal").stat().st_size < 80_000
    assert reports_in(store, scheme) == 2


@pytest.mark.parametrize("added", [b"\xff" * 8, b"1234567"], ids=str)
def test_damaged_increments_are_told(store, path, one, scheme, new_id, noon, added):
    """Increments that cannot be read are an error of their window: neither a reader nor a merge
    takes them for counts, and other windows are merged."""
    for window in ("2026-11-20", "2026-11-19"):
        store.fold(commit(scheme, new_id(), window=window), noon)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE tallies SET added = ? WHERE id = 1", (len(added),))
        sql = "UPDATE pieces SET bytes = ? WHERE place < 1 << 25"
        connection.execute(sql, (added.ljust(4_000, b"\0"),))
    tally = TallyKey("m", scheme.fingerprint, "2026-11-20")
    read = partial(store.own_tallies, *tally[:2], [tally.window])
    for act in (read, lambda: store.seal(tally), store.merge):
        with pytest.raises(DamagedBlock, match="window 2026-11-20 is damaged"):
            act()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT id FROM tallies WHERE added > 0").fetchall() == [(1,)]


@pytest.mark.parametrize("real", [False, True])
def test_a_tag_counts_at_its_own_place_alone(store, path, new_id, noon, one, real):
    """Bytes of two tags side by side that happen to read as a third are not taken for it, before
    the real one or without it."""
    store.fold(one(new_id()), noon)
    batch = new_id()
    with closing(sqlite3.connect(path)) as connection, connection:
        ((seed,),) = connection.execute("SELECT seed FROM secrets").fetchall()
        name = ids.name([batch], seed)
        place = ids.generation_at(noon) * 2**40 + int("1" + name.slots[:3], 16)
        across = b"\0" * 3 + name.tags + b"\0" * 5
        tags = across + (name.tags if real else b"")
        connection.execute("INSERT OR REPLACE INTO ids VALUES (?, ?)", (place, tags))
    assert store.fold(one(batch), noon) == ({batch} if real else set())
    assert store.fold(one(batch), noon) == {batch}


def test_ids_are_pruned_as_others_come(store, path, new_id, noon, one):
    """Ids of generations that nobody asks any more leave the file as commits arrive, a few at a
    time, and the others stay."""
    old = [new_id() for _ in range(60)]
    store.fold(one(*old), noon)
    kept, later = new_id(), 1 + ids.KEPT
    for generation in range(1, later):
        store.fold(one(new_id()), noon + generation * ids.PERIODS[0])
    store.fold(one(kept), noon + (later - 1) * ids.PERIODS[0])
    with closing(sqlite3.connect(path)) as connection:

        def slots(generation):
            asked = "SELECT count(*) FROM ids WHERE place / 1099511627776 = ?"
            return connection.execute(asked, (generation,)).fetchone()[0]

        before = slots(ids.generation_at(noon))
        assert before > 40
        for number in range(3):
            store.fold(one(new_id()), noon + later * ids.PERIODS[0] + number)
        left = slots(ids.generation_at(noon))
        assert 0 < left < before
        for number in range(20):
            store.fold(one(new_id()), noon + later * ids.PERIODS[0] + number)
        assert slots(ids.generation_at(noon)) == 0
        generations = connection.execute("SELECT generation, ids FROM generations").fetchall()
    left = zip(range(ids.generation_at(noon) + 1, 1 << 40), (1, 1, 1, 2, 23), strict=False)
    assert sorted(generations) == list(left)
    assert store.fold(one(kept), noon + later * ids.PERIODS[0]) == {kept}


def test_ids_move_to_deeper_levels(store, path, new_id, noon, one, monkeypatch):
    """When a level holds enough ids the next one takes them, and ids of all levels are known."""
    monkeypatch.setattr(ids, "FIRST_LEVEL", 256)
    batches = [new_id() for _ in range(6_000)]
    for first in range(0, len(batches), 250):
        assert not store.fold(one(*batches[first : first + 250]), noon)
    with closing(sqlite3.connect(path)) as connection:
        levels = connection.execute(
            "SELECT length(printf('%x', place % 1099511627776)), sum(length(tags)) FROM ids"
            " GROUP BY 1"
        ).fetchall()
    assert {digits for digits, _ in levels} == {4, 5, 6}
    assert sum(size for _, size in levels) == ids.TAG * len(batches)
    assert store.fold(one(new_id(), *batches), noon) == set(batches)


@pytest.mark.parametrize("version", [0, 1, 3])
def test_another_program_s_file_is_refused(store, path, version):
    """A database of something else, or of another version, is refused in words and not written
    to, whatever number it has."""
    if version == 3:
        store.publish(())
        store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
        connection.execute(f"PRAGMA user_version = {version}")
        before = list(connection.iterdump())
    with pytest.raises(StoreError, match="no store of this version"):
        store.publish(())
    with closing(sqlite3.connect(path)) as connection:
        assert list(connection.iterdump()) == before


def test_a_locked_file_is_unavailable(store, path, new_id, noon, monkeypatch, one):
    """A writer that holds the file too long makes the store unavailable, with nothing added."""
    monkeypatch.setattr(module, "_BUSY_SECONDS", 0.05)
    store.close()
    store.fold(one(new_id()), noon)
    batch = new_id()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="BUSY"):
            store.fold(one(batch), noon)
        with pytest.raises(StoreUnavailable):
            store.ping()
        other.execute("ROLLBACK")
    assert store.fold(one(batch), noon) == frozenset()


def test_a_ping_finds_a_full_disk(store, path, one, noon):
    """Where the next commit would find the disk full, so does a ping, and it says why; once there
    is room again, both go well."""
    store.fold(one("a" * 32), noon)
    connection = store._file._connection
    ((pages,),) = connection.execute("PRAGMA page_count")
    connection.execute(f"PRAGMA max_page_count = {pages}")
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="SQLITE_FULL"):
            store.ping()
    connection.execute(f"PRAGMA max_page_count = {pages + 100}")
    store.ping()
    assert store.fold(one("b" * 32), noon) == frozenset()


def test_a_ping_leaves_nothing(store, path, one, scheme, noon):
    """A ping changes no byte of the file, is over when it returns, and its trace in the log goes
    with it."""
    store.fold(one("a" * 32), noon)
    store.clear_journal(0.0)
    before = path.read_bytes()
    for _ in range(3):
        store.ping()
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT name FROM sqlite_master WHERE name = 'probe'").fetchall() == []
        other.execute("BEGIN IMMEDIATE")
    assert path.read_bytes() == before
    assert store.clear_journal(0.0) is None
    assert store._file._log_is_empty()
    assert reports_in(store, scheme) == 1
    ((pages,),) = store._file._connection.execute("PRAGMA cache_size")
    assert pages not in (0, module._PROBE_CACHE)
