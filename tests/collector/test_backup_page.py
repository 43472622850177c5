"""The commands of docs/backup.md: a store is copied under load and restored, to each counter."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
import redis
from click.testing import CliRunner
from tests.ports import free_port
from tests.tools import need

from deniable_collector.stores import StoreError, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_collector.upkeep import commands as store_commands

from .buckets import running
from .clusters import bus_port
from .devices import Devices, post

PAGE = Path(__file__).parents[2] / "docs" / "backup.md"
SEALED = "2025-06-01"


def blocks(heading):
    """The blocks of commands below a heading of the page."""
    text = PAGE.read_text(encoding="utf-8")
    section = re.split(r"^## ", text, flags=re.M)
    (found,) = [each for each in section if each.startswith(heading + "\n")]
    return re.findall(r"^```bash\n(.*?)^```$", found, re.M | re.S)


def test_all_blocks_are_run():
    """The page has the blocks that the tests below run, and no others."""
    kinds = {"SQLite": 2, "Redis": 2, "Redis Cluster": 2, "The archive": 3}
    kinds["An archive in a bucket"] = 2
    assert {kind: len(blocks(kind)) for kind in kinds} == kinds
    assert PAGE.read_text(encoding="utf-8").count("```") == 2 * sum(kinds.values())


@pytest.fixture
def shell(tmp_path):
    """Runs blocks of the page in a folder, with other ports and files in the place of its own."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "deniable").write_text(
        f"#!{sys.executable}\nfrom deniable.cli import main\nmain()\n"
    )
    (programs / "deniable").chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"

    def shell(block, archive, store="", **places):
        for theirs, mine in places.items():
            assert theirs.lstrip("p") in block or len(places) > 1
            block = block.replace(theirs.lstrip("p"), str(mine))
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", block],
            cwd=tmp_path,
            env={
                **os.environ,
                "PATH": path,
                "DENIABLE_ARCHIVE": str(archive),
                "DENIABLE_STORE": store,
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, block + done.stdout + done.stderr
        return done.stdout

    return shell


def seal_one(url, registry, archive, new_id, window=SEALED):
    """A window of last year whose block is in the archive."""
    scheme = registry["browser"].scheme
    tally = TallyKey("browser", scheme.fingerprint, window)
    with closing(open_store(url, archive=str(archive))) as store:
        store.publish({"browser": [scheme]})
        increment = Increment(5, 9, range(5), np.arange(1, 6))
        store.fold(Commit((new_id(),), {TallyRowKey(tally, 0): increment}), 1_750_000_000.0)
        assert store.seal(tally) is not None
        assert store.block_files()
    return tally


def cells(url, tally, archive):
    with closing(open_store(url, archive=str(archive))) as store:
        return store.tally(*tally[:2], [tally.window]).rows[0].cells.tolist()


def send_again(collector, batches):
    """Each batch with the response to it."""
    with ThreadPoolExecutor(8) as pool:
        return list(
            zip(batches, pool.map(lambda each: post(collector.address, each), batches), strict=True)
        )


class Rehearsal:
    """Devices report while a store is copied; then it is lost, restored, and all batches come
    again, as if no response had arrived."""

    def __init__(self, url, registry, new_collector, new_id, tmp_path):
        self._url, self._registry, self._new_collector = url, registry, new_collector
        self._archive = tmp_path / "archive"
        self._tally = seal_one(url, registry, self._archive, new_id)
        self._collector = self._start(url)
        self._devices = Devices(registry, 240, [self._collector.address], pause=0.12)

    def _start(self, url):
        return self._new_collector(
            DENIABLE_STORE=url,
            DENIABLE_ARCHIVE=str(self._archive),
            DENIABLE_WORKERS="1",
            DENIABLE_BIND="127.0.0.1:0",
        )

    def copy(self, shell, heading, **places):
        """Copy archive and store under load, as the page says."""
        first, again, _ = blocks("The archive")
        self._devices.start()
        self._devices.wait(50)
        self._before = list(self._devices.done)
        shell(first, self._archive)
        shell(blocks(heading)[0], self._archive, **places)
        shell(again, self._archive)
        assert self._devices.acknowledged < 240, "the copy was not made under load"
        self._devices.finish()
        self._collector.stop()
        shutil.rmtree(self._archive)

    def restore(self, shell, heading, url, **places):
        """Restore both, and send everything again."""
        _, _, archive = blocks("The archive")
        shell(archive, self._archive)
        shell(blocks(heading)[1], self._archive, **places)
        assert cells(url, self._tally, self._archive) == [1, 2, 3, 4, 5]
        collector = self._start(url)
        for batch, (status, answer) in send_again(collector, self._before):
            assert (status, answer["duplicate"] > 0) == (202, True), batch
        again = [answer for _, (_, answer) in send_again(collector, self._devices.batches)]
        # What came after the copy was lost with its ids, and is counted when it comes again.
        assert sum(answer["accepted"] > 0 for answer in again) > 0
        with closing(open_store(url, archive=str(self._archive))) as store:
            self._devices.check(store)
        collector.stop()


@pytest.fixture
def rehearse(registry, new_collector, new_id, tmp_path):
    return lambda url: Rehearsal(url, registry, new_collector, new_id, tmp_path)


def test_sqlite(rehearse, shell, tmp_path):
    """An SQLite file is copied under load with all batches acknowledged before, and their ids."""
    need("sqlite3")
    url = f"sqlite:///{tmp_path}/tallies.db"
    rehearsal = rehearse(url)
    rehearsal.copy(shell, "SQLite")
    rehearsal.restore(shell, "SQLite", url)


def test_an_archive_in_a_bucket(registry, new_id, shell, tmp_path, monkeypatch):
    """An SQLite file and its bucket are copied while windows are sealed, lost and restored: each
    window that was sealed before the copy of the store is in the bucket again."""
    need("sqlite3")
    url, bucket = f"sqlite:///{tmp_path}/tallies.db", "s3://tallies/prod"
    copy, restore = blocks("An archive in a bucket")
    copy_store, restore_store = blocks("SQLite")
    with running() as server:
        for name, value in server.environ.items():
            monkeypatch.setenv(name, value)
        server.client.create_bucket(Bucket="tallies")
        tallies = [seal_one(url, registry, bucket, new_id)]
        shell(copy, bucket, url)
        tallies.append(seal_one(url, registry, bucket, new_id, "2025-06-02"))
        shell(copy_store, bucket)
        assert "moved 1 block of" in shell(copy, bucket, url)
        before = set(server.keys("tallies"))
        for key in before:
            server.client.delete_object(Bucket="tallies", Key=key)
        (tmp_path / "tallies.db").unlink()
        shell(restore_store, tmp_path / "backup" / "archive")
        assert "2 tallies can be read, 0 cannot" in shell(restore, bucket, url)
        assert set(server.keys("tallies")) == before
        assert [cells(url, each, bucket) for each in tallies] == [[1, 2, 3, 4, 5]] * 2


def end(port):
    with suppress(redis.RedisError), closing(redis.Redis(port=port)) as client:
        client.shutdown(nosave=True)


def test_redis(rehearse, new_redis, shell):
    """The same for Redis, whose copy becomes an append-only file."""
    server, port = new_redis("--repl-diskless-sync-delay", "0"), free_port()
    rehearsal = rehearse(server.url)
    rehearsal.copy(shell, "Redis", p6379=server.port)
    server.kill()
    try:
        rehearsal.restore(shell, "Redis", f"redis://127.0.0.1:{port}/0", p6380=port)
        with closing(redis.Redis(port=port)) as client:
            assert client.info("persistence")["aof_enabled"] == 1
    finally:
        end(port)


def test_cluster(rehearse, new_cluster, shell):
    """The same for a cluster, into one with another number of masters."""
    old, port = new_cluster(replicas=0), bus_port()
    rehearsal = rehearse(old.url)
    rehearsal.copy(shell, "Redis Cluster", p7000=old.nodes[0].port)
    old.stop()
    new = new_cluster(masters=4, replicas=0)
    try:
        rehearsal.restore(shell, "Redis Cluster", new.url, p7100=new.nodes[0].port, p6390=port)
    finally:
        end(port)


def test_a_store_without_its_archive(registry, new_id, tmp_path, noon):
    """A store whose archive was not restored, or is that of another store, says so, drops nothing,
    and reads and counts what is open."""
    url, archive = f"sqlite:///{tmp_path}/tallies.db", tmp_path / "archive"
    tally = seal_one(url, registry, archive, new_id)
    other = tmp_path / "other"
    seal_one(f"sqlite:///{tmp_path}/other.db", registry, other, new_id)
    archive.rename(tmp_path / "kept")
    files = sorted(other.iterdir())
    for folder in (archive, other):
        with closing(open_store(url, archive=str(folder))) as store:
            for refused in (
                lambda store=store: store.tally(*tally[:2], [SEALED]),
                lambda store=store: store.drop(noon),
            ):
                with pytest.raises(StoreError, match="DENIABLE_ARCHIVE"):
                    refused()
            assert SEALED in store.windows(*tally[:2])
            key = TallyRowKey(tally._replace(window="2026-11-20"), 0)
            assert not store.fold(Commit((new_id(),), {key: Increment(5, 1, (1,), (1,))}), noon)
    assert sorted(other.iterdir()) == files
    (tmp_path / "kept").rename(archive)
    assert cells(url, tally, archive) == [1, 2, 3, 4, 5]


def test_an_archive_without_its_store(registry, new_id, tmp_path, noon):
    """A new store leaves the files of a lost one alone, and `verify` says that none is used."""
    archive, url = tmp_path / "archive", f"sqlite:///{tmp_path}/new.db"
    tally = seal_one(f"sqlite:///{tmp_path}/lost.db", registry, archive, new_id)
    files = set(archive.iterdir())
    with closing(open_store(url, archive=str(archive))) as store:
        store.publish({"browser": [registry["browser"].scheme]})
        environ = {"DENIABLE_STORE": url, "DENIABLE_ARCHIVE": str(archive)}
        said = CliRunner().invoke(store_commands.store, ["verify"], env=environ).output
        assert "none of the files in DENIABLE_ARCHIVE is used by this store" in said
        increment = Increment(5, 1, (1,), (1,))
        store.fold(Commit((new_id(),), {TallyRowKey(tally, 0): increment}), noon)
        assert store.seal(tally) is not None
        assert store.tally(*tally[:2], [SEALED]).reports == 1
        said = CliRunner().invoke(store_commands.store, ["verify"], env=environ).output
        assert "none of the files" not in said
        assert "not used by this store" in said
        assert store.drop(noon) == 1
    assert set(archive.iterdir()) == files
