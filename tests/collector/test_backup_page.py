"""The documented commands: a store is copied under load and restored, to each counter."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
import redis
from tests.e2e.running import run, with_program
from tests.ports import free_port
from tests.tools import need

from deniable_collector.settings import Settings
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
    environ = {**os.environ, "PATH": with_program(tmp_path)}

    def shell(block, **places):
        for theirs, mine in places.items():
            assert theirs.lstrip("p") in block or len(places) > 1
            block = block.replace(theirs.lstrip("p"), str(mine))
        return run(["bash", "-e", "-o", "pipefail", "-c", block], tmp_path, environ)

    return shell


def seal_one(url, registry, new_id):
    """A sealed window of last year."""
    scheme = registry["browser"].scheme
    tally = TallyKey("browser", scheme.fingerprint, SEALED)
    with closing(open_store(Settings(store=url))) as store:
        store.publish([("browser", scheme)])
        addition = added(scheme, {0: (9, {column: column + 1 for column in range(5)})})
        store.fold(Commit((new_id(),), {tally: addition}), 1_750_000_000.0)
        assert store.seal(tally) is not None
    return tally


def cells(url, tally):
    with closing(open_store(Settings(store=url))) as store:
        return store.tally(*tally[:2], [tally.window]).rows[0].cells.tolist()


def send_again(collector, batches):
    """Each batch with the response to it."""
    with ThreadPoolExecutor(8) as pool:
        return list(
            zip(batches, pool.map(lambda each: post(collector.address, each), batches), strict=True)
        )


@pytest.fixture
def rehearse(registry, new_collector, new_id, shell):
    """Copies a store under load, as the page says; then it is lost, restored at another address,
    and all batches come again, as if no response had arrived."""

    def start(url):
        return new_collector(DENIABLE_STORE=url, DENIABLE_WORKERS="1")

    def rehearse(heading, url, restored, lose=lambda: None, theirs=None, mine=None):
        copying, restoring = blocks(heading)
        tally, collector = seal_one(url, registry, new_id), start(url)
        devices = Devices(registry, 240, [collector.address], pause=0.12)
        devices.start()
        devices.wait(50)
        before = list(devices.done)
        shell(copying, **(theirs or {}))
        assert devices.acknowledged < 240, "the copy was not made under load"
        devices.finish()
        collector.stop()
        lose()
        shell(restoring, **(mine or {}))
        assert cells(restored, tally) == [1, 2, 3, 4, 5]
        collector = start(restored)
        for batch, (status, answer) in send_again(collector, before):
            assert (status, answer["duplicate"] > 0) == (202, True), batch
        again = [answer for _, (_, answer) in send_again(collector, devices.batches)]
        # What came after the copy was lost with its ids, and is counted when it comes again.
        assert sum(answer["accepted"] > 0 for answer in again) > 0
        with closing(open_store(Settings(store=restored))) as store:
            devices.check(store)
        collector.stop()

    return rehearse


def test_sqlite(rehearse, tmp_path):
    """An SQLite file is copied under load with all batches acknowledged before, and their ids."""
    need("sqlite3")
    url = f"sqlite:///{tmp_path}/tallies.db"
    rehearse("SQLite", url, url)


def end(port):
    with suppress(redis.RedisError), closing(redis.Redis(port=port)) as client:
        client.shutdown(nosave=True)


def test_redis(rehearse, new_redis):
    """The same for Redis, whose copy becomes an append-only file."""
    server, port = new_redis("--repl-diskless-sync-delay", "0"), free_port()
    ports = {"theirs": {"p6379": server.port}, "mine": {"p6380": port}}
    try:
        rehearse("Redis", server.url, f"redis://127.0.0.1:{port}/0", server.kill, **ports)
        with closing(redis.Redis(port=port)) as client:
            assert client.info("persistence")["aof_enabled"] == 1
    finally:
        end(port)
