"""The documented commands: a store is copied under load and restored, to each counter."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
import redis
from tests.ports import free_port
from tests.tools import need

from deniable_collector.stores import open_store
from deniable_collector.stores.commits import Commit, TallyKey

from .devices import Devices, post
from .filling import added

pytestmark = pytest.mark.campaign

PAGE = Path(__file__).parents[2] / "docs/reference/store-export.md"
SEALED = "2025-06-01"


def blocks(heading):
    """The blocks of commands below a heading of the page."""
    text = PAGE.read_text(encoding="utf-8")
    section = re.split(r"^##+ ", text, flags=re.M)
    (found,) = [each for each in section if each.startswith(heading + "\n")]
    return re.findall(r"^```bash\n(.*?)^```$", found, re.M | re.S)


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

    def shell(block, **places):
        for theirs, mine in places.items():
            assert theirs.lstrip("p") in block or len(places) > 1
            block = block.replace(theirs.lstrip("p"), str(mine))
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", block],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, block + done.stdout + done.stderr
        return done.stdout

    return shell


def seal_one(url, registry, new_id):
    """A sealed window of last year."""
    scheme = registry["browser"].scheme
    tally = TallyKey("browser", scheme.fingerprint, SEALED)
    with closing(open_store(url)) as store:
        store.publish({"browser": [scheme]})
        addition = added(scheme, {0: (9, {column: column + 1 for column in range(5)})})
        store.fold(Commit((new_id(),), {tally: addition}), 1_750_000_000.0)
        assert store.seal(tally) is not None
    return tally


def cells(url, tally):
    with closing(open_store(url)) as store:
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

    def __init__(self, url, registry, new_collector, new_id):
        self._url, self._registry, self._new_collector = url, registry, new_collector
        self._tally = seal_one(url, registry, new_id)
        self._collector = self._start(url)
        self._devices = Devices(registry, 240, [self._collector.address], pause=0.12)

    def _start(self, url):
        return self._new_collector(DENIABLE_STORE=url, DENIABLE_WORKERS="1")

    def copy(self, shell, heading, **places):
        """Copy the store under load, as the page says."""
        self._devices.start()
        self._devices.wait(50)
        self._before = list(self._devices.done)
        shell(blocks(heading)[0], **places)
        assert self._devices.acknowledged < 240, "the copy was not made under load"
        self._devices.finish()
        self._collector.stop()

    def restore(self, shell, heading, url, **places):
        """Restore it, and send everything again."""
        shell(blocks(heading)[1], **places)
        assert cells(url, self._tally) == [1, 2, 3, 4, 5]
        collector = self._start(url)
        for batch, (status, answer) in send_again(collector, self._before):
            assert (status, answer["duplicate"] > 0) == (202, True), batch
        again = [answer for _, (_, answer) in send_again(collector, self._devices.batches)]
        # What came after the copy was lost with its ids, and is counted when it comes again.
        assert sum(answer["accepted"] > 0 for answer in again) > 0
        with closing(open_store(url)) as store:
            self._devices.check(store)
        collector.stop()


@pytest.fixture
def rehearse(registry, new_collector, new_id):
    return lambda url: Rehearsal(url, registry, new_collector, new_id)


def test_sqlite(rehearse, shell, tmp_path):
    """An SQLite file is copied under load with all batches acknowledged before, and their ids."""
    need("sqlite3")
    url = f"sqlite:///{tmp_path}/tallies.db"
    rehearsal = rehearse(url)
    rehearsal.copy(shell, "SQLite")
    rehearsal.restore(shell, "SQLite", url)


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
