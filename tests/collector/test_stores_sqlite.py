"""What is particular to the SQLite store: the file, its version and its locks."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from deniable_collector.stores import StoreError, StoreUnavailable, ids
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_collector.stores.sqlite import file as module
from deniable_collector.stores.sqlite.pages import _PAGE
from deniable_collector.stores.sqlite.store import SqliteStore

from .filling import WINDOW, commit, reports_in


@pytest.fixture
def one(store, scheme):
    """Makes a commit of one report to a published scheme."""
    store.publish({"m": [scheme]})
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

    class Broken:
        in_transaction = True

        def close(self):
            good.close()

        def execute(self, text, *values):
            if text in ("COMMIT", "ROLLBACK"):
                raise sqlite3.OperationalError("disk I/O error")
            return good.execute(text, *values)

        def executemany(self, *call):
            return good.executemany(*call)

    store._file._connection = Broken()
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


def pages_in(path):
    """The pages of a file that has one tally, and how many counters each of them has."""
    with closing(sqlite3.connect(path)) as connection:
        ((span,),) = connection.execute("SELECT span FROM tallies").fetchall()
        return span, connection.execute("SELECT place, counters FROM pages").fetchall()


@pytest.mark.parametrize(
    ("count", "each"), [(1, 4), (2**32 - 1, 4), (2**32, 8), (2**53 - 2, 8)], ids=str
)
def test_counters_take_eight_bytes_where_they_must(store, path, scheme, new_id, noon, count, each):
    """Counters have four bytes up to 2**32 - 1; a page whose highest is above has eight."""
    store.publish({"m": [scheme]})
    for part in (count - count // 2, count // 2):
        store.fold(commit(scheme, new_id(), cells={1: part}), noon)
    span, ((_, packed),) = pages_in(path)
    assert (span, len(packed)) == (_PAGE, 9 * each)  # the row's reports come before its 8 columns
    assert int(store.tally("m", scheme.fingerprint, [WINDOW]).rows[0].cells[1]) == count


WIDTH = 15_999
"""Columns of a row that begins, with its reports, as one page of 16,000 counters."""


@pytest.mark.parametrize(
    ("columns", "count", "span"),
    [
        (range(499), 1, 16_000),
        (range(500), 1, 1_000),
        (range(0, WIDTH, 4), 1, 1_000),
        (range(0, WIDTH, 5), 1, 2_000),
        (range(0, WIDTH, 17), 1, 8_000),
        (range(0, WIDTH, 1_000), 2**32 - 1, 16_000),
        (range(0, WIDTH, 1_000), 2**32, 1_000),
    ],
    ids=str,
)
def test_pages_list_as_many_counters_as_they_can(
    store, path, shelf, new_id, noon, columns, count, span
):
    """A page of more than 1,000 counters lists those other than 0 while there are at most 500 of
    them, none of which needs eight bytes. All of its kind are of one length."""
    scheme = shelf(WIDTH)
    store.publish({"m": [scheme]})
    expected = np.zeros(WIDTH, np.int64)
    columns = np.array(columns)
    for part, each in ((columns[::2], 1), (columns[1::2], 1), (columns, count - 1), (columns, 0)):
        store.fold(commit(scheme, new_id(), cells=dict.fromkeys(part, each)), noon)
        expected[part] += each
    assert expected.max() == count
    found, pages = pages_in(path)
    assert found == span
    if span > _PAGE:
        assert {len(packed) for _, packed in pages} == {4_000}
        assert len(pages) == len(np.unique((columns + 1) // span))
    row = store.tally("m", scheme.fingerprint, [WINDOW]).rows[0]
    assert (row.reports, row.cells.tolist()) == (4, expected.tolist())
    assert store.reports("m", scheme.fingerprint, [WINDOW]) == {WINDOW: 4}


def test_pages_follow_from_the_sum_alone(tmp_path, shelf, new_id, noon):
    """Whatever the order and the size of the commits, the same sum has the same pages; and in the
    file of a closed store is nothing of an earlier one (seed 0)."""
    random = np.random.default_rng(0)
    scheme = shelf(*[WIDTH // 3] * 3)
    tally = TallyKey("m", scheme.fingerprint, WINDOW)
    reports = random.integers(0, [3, WIDTH // 3], (700, 2))
    pages = []
    for number, size in enumerate((8, 40, 350)):
        path = tmp_path / f"{number}.db"
        store = SqliteStore(path)
        store.publish({"m": [scheme]})
        earlier = set()
        chosen = random.permutation(reports)
        for part in np.array_split(chosen, -(-len(chosen) // size)):
            cells = {}
            for row in np.unique(part[:, 0]).tolist():
                columns, counts = np.unique(part[part[:, 0] == row, 1], return_counts=True)
                each = Increment(WIDTH // 3, int(counts.sum()), tuple(columns), tuple(counts))
                cells[TallyRowKey(tally, row)] = each
            store.fold(Commit((new_id(),), cells), noon)
            earlier.update(packed for _, packed in pages_in(path)[1])
        store.close()
        pages.append(pages_in(path))
        content, now = path.read_bytes(), b"".join(packed for _, packed in pages[-1][1])
        # The reports of the rows come first, and change with each commit.
        beginnings = {packed[:24] for packed in earlier if packed[:8] == b"\1\0\0\0" + packed[4:8]}
        assert len(beginnings) > 1
        assert [each for each in beginnings if each in content and each not in now] == []
    assert pages[0] == pages[1] == pages[2]
    assert pages[0][0] > _PAGE


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


@pytest.mark.parametrize("version", [0, 1, 2])
def test_another_program_s_file_is_refused(store, path, version):
    """A database of something else, or of another version, is refused in words and not written
    to, whatever number it has."""
    if version == 2:
        store.publish({})
        store.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
        connection.execute(f"PRAGMA user_version = {version}")
        before = list(connection.iterdump())
    with pytest.raises(StoreError, match="no store of this version"):
        store.publish({})
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
    store._file.clear_log(0.0)
    before = path.read_bytes()
    for _ in range(3):
        store.ping()
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT name FROM sqlite_master WHERE name = 'probe'").fetchall() == []
        other.execute("BEGIN IMMEDIATE")
    assert path.read_bytes() == before
    assert store._file.clear_log(0.0) is None
    assert store._file._log_is_empty()
    assert reports_in(store, scheme) == 1
    ((pages,),) = store._file._connection.execute("PRAGMA cache_size")
    assert pages not in (0, module._PROBE_CACHE)
