"""The folder of sealed blocks: what goes wrong with its files is said, and nothing stays in it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
import redis as redis_driver

from deniable import windows
from deniable_collector.stores import StoreError, StoreUnavailable, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_collector.stores.sealed import blocks
from deniable_collector.stores.sealed import folder as folder_room
from deniable_collector.stores.sealed.archive import Archive
from deniable_collector.stores.sealed.blocks import DamagedBlock, UnreadableFile, block_of
from deniable_collector.stores.sealed.places import MARKER
from deniable_collector.upkeep.retention import Retention

STORES = ["sqlite", "redis", "cluster"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Files of dropped windows go at once: only one test looks at what they wait for."""
    monkeypatch.setattr("deniable_collector.stores.redis.dropping._SYNC_SECONDS", 0.0)


DAY = "2026-11-01"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "archive"


@pytest.fixture
def scheme(store, shelf):
    scheme = shelf(8)
    store.publish({"m": [scheme]})
    return scheme


@pytest.fixture
def sealed(home, store, scheme, folder, new_id, noon):
    """A store with a window that is sealed in a file, and with one that is open."""
    for window in (DAY, "2026-11-02"):
        key = TallyRowKey(TallyKey("m", scheme.fingerprint, window), 0)
        store.fold(Commit((new_id(),), {key: Increment(8, 1, (1,), (1,))}), noon)
    with closing(open_store(home.url, prefix=home.prefix, archive=str(folder))) as opened:
        assert opened.seal(TallyKey("m", scheme.fingerprint, DAY)) is not None
        assert len(list(folder.glob("*.block"))) == 1
        yield opened


def both_there(store, scheme):
    return len(store.windows("m", scheme.fingerprint)) == 2


def test_nothing_is_dropped_without_the_folder(store, sealed, scheme, folder):
    """Who does not know the folder of a file drops no window, or its sums would stay there."""
    with pytest.raises(StoreError, match="set DENIABLE_ARCHIVE to it"):
        store.drop(windows.end("2026-11-02"))
    assert both_there(store, scheme)
    assert sealed.drop(windows.end("2026-11-02")) == 2
    assert [each.name for each in folder.iterdir()] == [MARKER]


def test_nothing_is_dropped_while_the_folder_is_away(sealed, scheme, folder, noon, caplog):
    """A folder that is not mounted keeps windows: retention says so and tries again soon."""
    folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(StoreUnavailable, match="is not there: the file of metric m, window 2026"):
        sealed.drop(windows.end(DAY))
    assert Retention(sealed, 8, lambda: noon).apply() == 600
    assert "too old stay, of 1 metric (m): the folder of DENIABLE_ARCHIVE is not" in caplog.text
    assert both_there(sealed, scheme)
    folder.with_name("elsewhere").rename(folder)
    assert sealed.drop(windows.end(DAY)) == 1
    assert [each.name for each in folder.iterdir()] == [MARKER]


def test_nothing_is_dropped_from_a_folder_of_others(sealed, scheme, folder, monkeypatch):
    """A folder that a process may only read keeps windows, because their files would stay."""
    # Access is refused by hand: a test that runs as root may write everywhere.
    monkeypatch.setattr(folder_room.os, "access", lambda *arguments: False)
    with pytest.raises(StoreUnavailable, match="lets this process delete no files"):
        sealed.drop(windows.end(DAY))
    assert both_there(sealed, scheme)
    assert len(list(folder.glob("*.block"))) == 1


def test_the_file_of_another_store_is_refused(sealed, scheme, folder):
    """A block of the same metric and window, but of another store, is not taken for this one's."""
    (mine,) = folder.glob("*.block")
    right = mine.read_bytes()
    tally = TallyKey("m", scheme.fingerprint, DAY)
    counters = sealed._shapes.of("m", scheme.fingerprint).size
    mine.write_bytes(block_of(tally, 1, blocks.counters_in(tally, counters, right) + 1))
    with pytest.raises(DamagedBlock, match="window 2026-11-01 has another file in its place"):
        sealed.tally("m", scheme.fingerprint, [DAY])
    mine.write_bytes(right)
    assert sealed.tally("m", scheme.fingerprint, [DAY]).reports == 1


def test_a_name_without_a_digest_is_read(folder, scheme):
    """Blocks whose files were named before names had a digest are read as before."""
    tally = TallyKey("m", scheme.fingerprint, DAY)
    folder.mkdir()
    archive = Archive(str(folder))
    kept = archive.put(tally, b"\x01" + bytes(40))
    (path,) = folder.glob("*.block")
    first = ".".join([*path.name.split(".")[:-2], "block"])
    path.rename(folder / first)
    assert archive.get(tally, kept[:1] + first.encode()) == b"\x01" + bytes(40)


def test_a_file_that_cannot_be_read_stops_only_its_window(sealed, scheme, folder):
    """Something else in the place of one file, or a bad sector, does not hide other windows."""
    (mine,) = folder.glob("*.block")
    mine.unlink()
    mine.mkdir()
    with pytest.raises(UnreadableFile, match="window 2026-11-01 cannot be read from the folder"):
        sealed.tally("m", scheme.fingerprint, [DAY])
    assert sealed.tally("m", scheme.fingerprint, ["2026-11-02"]).reports == 1
    shutil.rmtree(mine)


def test_earlier_versions_refuse_what_a_command_has_sealed(new_redis, shelf, new_id, noon):
    """A store that only an earlier version's collectors have met gets this version's layout with
    its first sealed tally, which they cannot read."""
    server, scheme = new_redis(), shelf(8)
    tally = TallyKey("m", scheme.fingerprint, DAY)
    with (
        closing(open_store(server.url)) as store,
        closing(redis_driver.Redis.from_url(server.url)) as client,
    ):
        store.publish({"m": [scheme]})
        part = Increment(8, 1, (1,), (1,))
        store.fold(Commit((new_id(),), {TallyRowKey(tally, 0): part}), noon)
        client.hset("deniable:layout", "version", "2")
        assert store.seal(tally) is not None
        assert client.hget("deniable:layout", "version") == b"3"


def test_a_folder_that_is_not_mounted_is_refused(home, sealed, scheme, folder):
    """An empty folder in the place of the marked one, as under a mount point, takes no block and
    loses none: whatever needs it says what to do, and all is well once it is mounted."""
    folder.rename(folder.with_name("elsewhere"))
    tally = TallyKey("m", scheme.fingerprint, "2026-11-02")
    for empty in (False, True):
        if empty:
            folder.mkdir()
        for work in (lambda: sealed.seal(tally), lambda: sealed.drop(windows.end(DAY)),
                     lambda: sealed.tally("m", scheme.fingerprint, [DAY])):  # fmt: skip
            with pytest.raises(StoreUnavailable, match="DENIABLE_ARCHIVE") as told:
                work()
            assert not empty or "has no file deniable-archive" in str(told.value)
            assert not empty or "mount it, or correct DENIABLE_ARCHIVE" in str(told.value)
        assert folder.exists() == empty
        assert not sealed.sealed("m", scheme.fingerprint, ["2026-11-02"])
    folder.rmdir()
    folder.with_name("elsewhere").rename(folder)
    assert sealed.tally("m", scheme.fingerprint, [DAY]).reports == 1
    assert sealed.seal(tally) is not None


def test_the_folder_of_another_store_is_refused(sealed, scheme, folder):
    """A folder with the mark of others takes no block of a store that knows its own."""
    (folder / MARKER).write_text("0123\n")
    with pytest.raises(StoreUnavailable, match="has the blocks of other stores"):
        sealed.seal(TallyKey("m", scheme.fingerprint, "2026-11-02"))
    assert sealed.tally("m", scheme.fingerprint, [DAY]).reports == 1


def test_trouble_with_the_folder_is_known_beforehand(home, sealed, folder):
    """Whether a block could be written is said before there is one to write, and nothing that was
    written to find out stays."""
    before = sorted(folder.iterdir())
    assert sealed.archive_trouble() is None
    assert sorted(folder.iterdir()) == before
    mark = (folder / MARKER).read_text()
    (folder / MARKER).write_text("0123\n")
    assert "has the blocks of other stores: mount it, or correct" in sealed.archive_trouble()
    (folder / MARKER).write_text(mark)
    folder.rename(folder.with_name("elsewhere"))
    assert "has no file deniable-archive" in sealed.archive_trouble()
    assert not folder.exists()
    folder.write_text("")
    assert "cannot be used (Not a directory): mount it" in sealed.archive_trouble()
    with closing(open_store(home.url, prefix=home.prefix)) as elsewhere:
        assert elsewhere.archive_trouble() is None


def test_a_folder_that_can_be_made_is_no_trouble(home, store, scheme, tmp_path):
    """Before its first use a folder need not be there, and is not made by asking; it must be
    possible to make it."""
    for place, trouble in (("new/folder", None), ("file/folder", "cannot be used")):
        (tmp_path / "file").write_text("")
        where = tmp_path / place
        with closing(open_store(home.url, prefix=home.prefix, archive=str(where))) as opened:
            told = opened.archive_trouble()
        assert (told is None) if trouble is None else trouble in told
        assert not (tmp_path / "new").exists()


def test_a_folder_without_the_right_to_write():
    """A user who may read the folder and not write to it is told so; so is one who may not make
    it."""
    if os.geteuid() != 0:
        pytest.skip("another user is needed, which takes root")
    with tempfile.TemporaryDirectory() as above:
        Path(above).chmod(0o755)
        there = Path(above, "archive")
        there.mkdir(mode=0o755)
        script = (
            "import os, sys\n"
            "from deniable_collector.stores.sealed.archive import Archive\n"
            "os.setuid(65534)\n"
            "for each in sys.argv[1:]: print(Archive(each).trouble())\n"
        )
        command = [sys.executable, "-c", script, str(there), str(there / "new")]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        first, second = done.stdout.splitlines()
        assert "cannot be used (Permission denied)" in first
        assert "cannot be used (it is not there, and cannot be made)" in second


def test_a_folder_of_an_earlier_version_is_marked(home, sealed, scheme, folder):
    """A store whose folder has blocks and no mark, as earlier versions left it, marks it with its
    next block; but not an empty one in its place."""
    (folder / MARKER).unlink()
    if home.kind == "sqlite":
        with closing(sqlite3.connect(home.url.removeprefix("sqlite:///"))) as file, file:
            file.execute("DELETE FROM archive")
    else:
        sealed._strings.client.hdel(f"{home.prefix}:layout", "archive")
    folder.rename(folder.with_name("elsewhere"))
    tally = TallyKey("m", scheme.fingerprint, "2026-11-02")
    folder.mkdir()
    with pytest.raises(StoreUnavailable, match="has none of the blocks of this store"):
        sealed.seal(tally)
    assert "has none of the blocks of this store" in sealed.archive_trouble()
    assert not list(folder.iterdir())
    folder.rmdir()
    folder.with_name("elsewhere").rename(folder)
    assert sealed.archive_trouble() is None
    assert sealed.seal(tally) is not None
    assert (folder / MARKER).read_text().strip() == sealed.archive_id()


def test_stores_share_a_folder(home, sealed, folder, tmp_path, shelf, new_id, noon):
    """A second store takes the mark of a folder that has one; both find their blocks there."""
    scheme = shelf(8)
    with closing(open_store(f"sqlite:///{tmp_path}/second.db", archive=str(folder))) as second:
        second.publish({"m": [scheme]})
        tally = TallyKey("m", scheme.fingerprint, DAY)
        second.fold(Commit((new_id(),), {TallyRowKey(tally, 0): Increment(8, 5, (1,), (5,))}), noon)
        assert second.seal(tally) is not None
        assert second.archive_id() == sealed.archive_id()
        assert second.tally(*tally[:2], [DAY]).reports == 5
    assert sealed.tally("m", scheme.fingerprint, [DAY]).reports == 1


def test_a_redis_that_forgets_that_a_window_was_dropped(home, sealed, scheme, folder, monkeypatch):
    """A Redis that crashes before its last second is on the disk brings a dropped window back: its
    file is still there, and dropping it again ends it."""
    if home.kind == "sqlite":
        pytest.skip("SQLite forgets nothing that it has answered")
    key = sealed._tally_key(0, TallyKey("m", scheme.fingerprint, DAY))
    index = sealed.key(0, "windows", "m", scheme.fingerprint)
    before = sealed._strings.client.get(key)

    def crash(seconds):
        assert seconds == 0
        sealed._strings.client.set(key, before)
        sealed._strings.client.sadd(index, DAY)

    monkeypatch.setattr("deniable_collector.stores.redis.dropping.time.sleep", crash)
    monkeypatch.setattr(sealed._files, "appends", lambda: True)
    assert sealed.drop(windows.end(DAY)) == 1
    assert sealed.tally("m", scheme.fingerprint, [DAY]).reports == 1
    monkeypatch.setattr("deniable_collector.stores.redis.dropping.time.sleep", lambda seconds: None)
    assert sealed.drop(windows.end(DAY)) == 1
    assert [each.name for each in folder.iterdir()] == [MARKER]
