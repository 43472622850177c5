"""Sealed blocks in a bucket: a real server that speaks S3, and every way in which it can fail."""

from __future__ import annotations

import json
import signal
import sys
import threading

import pytest
from botocore.loaders import Loader
from click.testing import CliRunner
from tests.collector.buckets import SECRET, refusal, running
from werkzeug.wrappers import Response

from deniable import windows
from deniable_collector.stores import StoreError, StoreUnavailable, open_store
from deniable_collector.stores.commits import Commit, Increment, TallyKey, TallyRowKey
from deniable_collector.stores.redis import dropping as redis_dropping
from deniable_collector.stores.redis import sealing as redis_sealing
from deniable_collector.stores.sealed import archive as archive_room
from deniable_collector.stores.sealed import bucket
from deniable_collector.stores.sealed.blocks import DamagedBlock, UnreadableFile
from deniable_collector.stores.sqlite import store as sqlite_store
from deniable_collector.upkeep import commands, moving

from .killing import in_a_child, kill_at

DAYS = ["2026-11-01", "2026-11-02", "2026-11-03"]
STORES = ["sqlite", "redis"]
ONE = pytest.mark.stores("sqlite")
"""For what the client of S3 does, whatever the store is."""
PLACE = "s3://tallies/one"
LOADER = Loader(include_default_search_paths=True)


@pytest.fixture(scope="module")
def server():
    with running() as server:
        yield server


@pytest.fixture
def s3(server, monkeypatch):
    """The server with an empty bucket, as boto3 finds it by its environment."""
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    # Each client reads a megabyte of descriptions of the service, which takes a third of a second.
    monkeypatch.setattr("botocore.session.create_loader", lambda path: LOADER)
    server.client.create_bucket(Bucket="tallies")
    yield server
    server.spoil = None
    for key in server.keys("tallies"):
        server.client.delete_object(Bucket="tallies", Key=key)
    server.client.delete_bucket(Bucket="tallies")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Objects of dropped windows go at once: test_archive_folder.py looks at what they wait for."""
    monkeypatch.setattr(redis_dropping, "_SYNC_SECONDS", 0.0)


@pytest.fixture
def scheme(store, shelf):
    scheme = shelf(8)
    store.publish({"m": [scheme]})
    return scheme


@pytest.fixture
def fill(store, scheme, new_id, noon):
    """Adds some reports to a window."""

    def fill(window, reports=3):
        tally = TallyKey("m", scheme.fingerprint, window)
        part = Increment(8, reports, (1,), (reports,))
        store.fold(Commit((new_id(),), {TallyRowKey(tally, 0): part}), noon)
        return tally

    return fill


@pytest.fixture
def opened(home, s3):
    """Opens the store with its blocks in a bucket."""

    def opened(archive=PLACE):
        store = open_store(home.url, prefix=home.prefix, archive=archive)
        home.opened.append(store)
        return store

    return opened


def reports(store, tally):
    return store.tally(*tally[:2], [tally.window]).reports


def is_sealed(store, tally):
    return tally.window in store.sealed(*tally[:2], [tally.window])


def blocks(s3):
    return [key for key in s3.keys("tallies") if key.endswith(".block")]


def test_windows_live_in_a_bucket(home, s3, opened, fill):
    """Windows are sealed into a bucket, read, opened again by late counts, and dropped with their
    objects; all objects are under the prefix. With Redis the object of a window that was opened
    stays unused: a Redis that crashes may refer to it again."""
    tallies = [fill(day, number) for number, day in enumerate(DAYS, 1)]
    store = opened()
    assert all(store.seal(each) is not None for each in tallies)
    assert store.tally(*tallies[0][:2], DAYS).reports == 6
    assert store.reports(*tallies[0][:2], DAYS) == dict(zip(DAYS, (1, 2, 3), strict=True))
    assert len(blocks(s3)) == 3
    assert all(key.startswith("one/") for key in s3.keys("tallies"))
    late = TallyRowKey(tallies[0], 0)
    store.fold(Commit((32 * "e",), {late: Increment(8, 4, (2,), (4,))}), 1.8e9)
    assert reports(store, tallies[0]) == 5
    assert not is_sealed(store, tallies[0])
    assert store.seal(tallies[0]) is not None
    assert store.tally(*tallies[0][:2], DAYS).reports == 10
    assert store.drop(windows.end(DAYS[1])) == 2
    unused = [key for key in blocks(s3) if key.removeprefix("one/") not in store.block_files()]
    assert [DAYS[0] in key for key in unused] == [True] * (home.kind == "redis")
    assert len(store.block_files()) == 1
    assert reports(store, tallies[2]) == 3


def test_two_collectors_seal_the_same_window(s3, opened, fill):
    """Two processes' worth of stores that seal the same window at once write an object each; one
    counts, and the other goes."""
    tally = fill(DAYS[0])
    both = [opened(), opened()]
    gate = threading.Barrier(2)

    def spoil(request, answer):
        if request.method == "PUT" and request.path.endswith(".block"):
            gate.wait(10)

    s3.spoil = spoil
    found = []
    threads = [
        threading.Thread(target=lambda each=each: found.append(each.seal(tally))) for each in both
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [each is None for each in found].count(True) == 1
    assert len(blocks(s3)) == 1
    assert [reports(each, tally) for each in both] == [3, 3]


@ONE
def test_trouble_with_the_bucket_is_known_beforehand(s3, opened, fill):
    """Whether a block could be written is said before there is one to write: of a bucket that
    refuses to be read or written, that is not there, or that is not the one of this store. Nothing
    that was written to find out stays."""
    store = opened()
    assert store.archive_trouble() is None
    assert s3.keys("tallies") == []
    for method in ("GET", "PUT", "DELETE"):
        s3.spoil = lambda request, answer, refused=method: (
            refusal("AccessDenied") if request.method == refused else None
        )
        told = store.archive_trouble()
        assert f"cannot be used (AccessDenied: {bucket._HELP['AccessDenied']})" in told
        assert "correct the bucket or the prefix of DENIABLE_ARCHIVE" in told
    s3.spoil = None
    assert "NoSuchBucket: there is no such bucket" in opened("s3://others/x").archive_trouble()
    assert store.seal(fill(DAYS[0])) is not None
    assert store.archive_trouble() is None
    assert "has no file deniable-archive" in opened("s3://tallies/two").archive_trouble()


@ONE
@pytest.mark.parametrize(
    "code", ["AccessDenied", "InvalidAccessKeyId", "PermanentRedirect", "<script>", "NoSuchBucket"]
)
def test_a_refusal_is_told_in_words(s3, opened, fill, code):
    """Whatever the server refuses, the window stays open and whole; the error names the setting
    and what to do, and neither the server's words nor a secret."""
    tally = fill(DAYS[0])
    s3.spoil = lambda request, answer: refusal(code)
    store = opened()
    with pytest.raises(StoreUnavailable, match="the bucket of DENIABLE_ARCHIVE takes no bl") as e:
        store.seal(tally)
    assert "stays as it is, with all of its counts" in str(e.value)
    if code in bucket._HELP:
        assert f"{code}: {bucket._HELP[code]}" in str(e.value)
    assert SECRET not in str(e.value)
    assert "script" not in str(e.value)
    assert s3.url not in str(e.value)
    assert reports(store, tally) == 3
    s3.spoil = None
    assert store.seal(tally) is not None


@ONE
def test_what_the_client_lacks(s3, opened, fill, monkeypatch):
    """Missing credentials, a wrong bucket, and a server that is not there are told in words."""
    tally = fill(DAYS[0])
    with pytest.raises(StoreUnavailable, match="NoSuchBucket: there is no such bucket: create it"):
        opened("s3://others/one").seal(tally)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(StoreUnavailable, match="NoCredentialsError: give boto3 credentials"):
        opened().seal(tally)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tests")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(StoreUnavailable, match="EndpointConnectionError: it does not answer") as e:
        opened().seal(tally)
    assert "127.0.0.1" not in str(e.value)


@ONE
@pytest.mark.parametrize("place", ["s3://", "s3://UPPER/x", "s3:///x", "gs://bucket/x",
                                   "s3://bucket/" + 600 * "x", "s3://b<script>/x"])  # fmt: skip
def test_an_address_that_names_no_bucket(home, place):
    """A mistake in the address is told when the store is opened, without repeating it."""
    with pytest.raises(StoreError, match="DENIABLE_ARCHIVE must be") as told:
        open_store(home.url, prefix=home.prefix, archive=place)
    assert place == "s3://" or place not in str(told.value)


@ONE
def test_boto3_is_missing(home, monkeypatch):
    """Without the extra, the error says which one to install."""
    monkeypatch.setitem(sys.modules, "boto3", None)
    monkeypatch.delitem(sys.modules, "deniable_collector.stores.sealed.bucket")
    with pytest.raises(StoreError, match=r"pip install 'deniable\[s3\]'"):
        open_store(home.url, prefix=home.prefix, archive=PLACE)


@ONE
def test_the_client_tries_again(s3, opened, fill):
    """A server that asks to slow down is asked again by boto3 itself."""
    refused = []

    def spoil(request, answer):
        if request.method == "PUT" and len(refused) < 2:
            refused.append(request.path)
            return refusal("SlowDown", 503)
        return None

    s3.spoil = spoil
    tally, store = fill(DAYS[0]), opened()
    assert store.seal(tally) is not None
    assert len(refused) == 2


@ONE
def test_a_slow_server(s3, opened, fill, monkeypatch):
    """A server that does not answer in time keeps nobody for long, and a commit to a sealed window
    that waits for it keeps no other commit waiting."""
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    tally, store = fill(DAYS[0]), opened()
    assert store.seal(tally) is not None
    waiting, answered = threading.Event(), threading.Event()

    def spoil(request, answer):
        waiting.set()
        answered.wait(20)

    s3.spoil = spoil
    monkeypatch.setattr(bucket, "_READ_SECONDS", 0.2)
    hasty = opened()
    with pytest.raises(UnreadableFile, match="ReadTimeoutError: it does not answer, or too slowly"):
        reports(hasty, tally)
    # A year of windows would wait so long for each: for some seconds nobody asks again.
    asked = len(s3.seen)
    for _ in range(3):
        with pytest.raises(UnreadableFile, match="ReadTimeoutError"):
            reports(hasty, tally)
    assert len(s3.seen) == asked
    waiting.clear()
    part = Increment(8, 1, (1,), (1,))
    late = threading.Thread(
        target=lambda: store.fold(Commit((32 * "f",), {TallyRowKey(tally, 0): part}), 1.8e9)
    )
    late.start()
    assert waiting.wait(10)
    fill(DAYS[1])
    assert late.is_alive()
    answered.set()
    late.join()
    s3.spoil = None
    assert reports(store, tally) == 4


@ONE
def test_answers_that_end_too_early(s3, opened, fill):
    """An object that arrives in part is no block: the error says that it could not be read."""
    tally, store = fill(DAYS[0]), opened()
    assert store.seal(tally) is not None

    def spoil(request, answer):
        if request.method != "GET" or not request.path.endswith(".block"):
            return None
        whole = answer()
        headers = {"ETag": whole.headers["ETag"], "Content-Length": str(len(whole.data))}
        return Response(iter([whole.data[:20]]), 200, headers)

    s3.spoil = spoil
    with pytest.raises(UnreadableFile, match="cannot be read from the bucket of DENIABLE_ARCHIVE"):
        reports(store, tally)
    s3.spoil = None
    assert reports(store, tally) == 3


def test_objects_that_are_damaged_or_gone(s3, opened, fill):
    """A damaged, truncated, exchanged or vanished object is refused with its metric and window;
    the other windows are read."""
    first, second = fill(DAYS[0]), fill(DAYS[1])
    store = opened()
    assert store.seal(first) is not None
    assert store.seal(second) is not None
    (key,) = (each for each in blocks(s3) if DAYS[0] in each)
    right = s3.client.get_object(Bucket="tallies", Key=key)["Body"].read()
    spoilt = bytearray(right)
    spoilt[-1] ^= 1
    for wrong in (bytes(spoilt), right[:-1], b"", b"<script>", right + b"x"):
        s3.client.put_object(Bucket="tallies", Key=key, Body=wrong)
        with pytest.raises(DamagedBlock, match=f"metric m, window {DAYS[0]}"):
            reports(store, first)
        assert reports(store, second) == 3
    s3.client.delete_object(Bucket="tallies", Key=key)
    with pytest.raises(DamagedBlock, match="is not in the bucket of DENIABLE_ARCHIVE: restore it"):
        reports(store, first)
    s3.client.put_object(Bucket="tallies", Key=key, Body=right)
    assert reports(store, first) == 3


def unconditional(request, answer):
    """A server that writes over what is there, whatever the client says."""
    request.environ.pop("HTTP_IF_NONE_MATCH", None)
    return answer()


def unknown_condition(request, answer):
    """A server that does not know the condition."""
    if request.method == "PUT" and "HTTP_IF_NONE_MATCH" in request.environ:
        return refusal("NotImplemented", 501)
    return None


@pytest.mark.parametrize("spoil", [unconditional, unknown_condition])
def test_a_server_without_conditional_writes_is_not_marked(s3, opened, fill, spoil):
    """Where a server would let two stores mark one place, none does: the window stays open, the
    error says what to do, and nothing is left there. With a mark made by hand all works."""
    tally, store = fill(DAYS[0]), opened()
    s3.spoil = spoil
    with pytest.raises(StoreUnavailable, match="put an object deniable-archive there by hand, as"):
        store.seal(tally)
    with pytest.raises(StoreUnavailable, match="ignores conditional writes"):
        moving.move_blocks(store, archive_room.Archive(PLACE), "s3://tallies/two")
    assert (s3.keys("tallies"), is_sealed(store, tally), reports(store, tally)) == ([], False, 3)
    s3.client.put_object(Bucket="tallies", Key="one/deniable-archive", Body=b"0123\n")
    assert store.seal(tally) is not None
    assert (store.archive_id(), reports(store, tally)) == ("0123", 3)
    assert len(s3.keys("tallies")) == 2


def test_a_mark_is_never_written_over(s3, opened, fill):
    """Of two stores that mark a place at the same moment the second takes the first one's mark,
    also where the mark came after it looked."""
    first, second = bucket.Bucket(PLACE), bucket.Bucket(PLACE)
    looked = []

    def late(request, answer):
        if request.method == "GET" and not looked:
            looked.append(request.path)
            missing = answer()
            assert first.make("aa") == "aa"
            return missing
        return None

    s3.spoil = late
    assert second.make("bb") == "aa"
    assert bucket.Bucket(PLACE).make("cc") == "aa"
    assert s3.keys("tallies") == ["one/deniable-archive"]


@ONE
def test_a_mark_whose_response_is_lost(s3, opened, fill):
    """A server that takes each first write and then answers that it is busy gets each once more
    from the client; the place is marked all the same."""
    lost = set()

    def spoil(request, answer):
        if request.method == "PUT" and request.path not in lost:
            lost.add(request.path)
            answer()
            return refusal("SlowDown", 503)
        return None

    s3.spoil = spoil
    assert bucket.Bucket(PLACE).make("aa") == "aa"
    assert len(lost) == 2
    assert s3.keys("tallies") == ["one/deniable-archive"]


def test_a_wrong_bucket_or_prefix_is_refused(s3, opened, fill):
    """Another prefix or bucket than that which the store knows takes no block, and its windows are
    not called lost."""
    s3.client.create_bucket(Bucket="others")
    tally, late = fill(DAYS[0]), fill(DAYS[1])
    assert opened().seal(tally) is not None
    for place in ("s3://tallies/two", "s3://others/one"):
        store = opened(place)
        with pytest.raises(StoreUnavailable, match="has no file deniable-archive, so it is not th"):
            store.seal(late)
        with pytest.raises(UnreadableFile, match="correct the bucket or the prefix of DENIABLE_AR"):
            reports(store, tally)
        with pytest.raises(StoreUnavailable, match="has no file deniable-archive"):
            store.drop(windows.end(DAYS[0]))
    assert s3.keys("others") == []
    s3.client.delete_bucket(Bucket="others")


def test_a_reader_without_the_right_to_delete(s3, opened, fill):
    """Retention drops nothing where objects cannot be deleted, and says which right is missing."""
    tally, store = fill(DAYS[0]), opened()
    assert store.seal(tally) is not None
    s3.spoil = lambda request, answer: (
        refusal("AccessDenied") if request.method == "DELETE" else None
    )
    with pytest.raises(StoreUnavailable, match=r"delete no objects .AccessDenied"):
        store.drop(windows.end(DAYS[0]))
    assert reports(store, tally) == 3


def test_a_collector_that_is_killed_while_it_seals(home, s3, opened, fill):
    """A process that is killed at any few lines of sealing into a bucket leaves the window open or
    sealed, with all of its counts once, and another process seals it."""
    rooms = {each.__file__ for each in (archive_room, bucket, sqlite_store, redis_sealing)}
    days = (f"2025-{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 29))
    reader, line, killed = opened(), 1, 0
    ended = None
    while ended != 0:
        tally = fill(next(days))

        def seal(tally=tally, line=line):
            mine = open_store(home.url, prefix=home.prefix, archive=PLACE)
            kill_at(line, rooms)
            mine.seal(tally)

        ended = in_a_child(seal)
        killed += ended == -signal.SIGKILL
        assert reports(reader, tally) == 3, line
        sealed = is_sealed(reader, tally)
        assert (reader.seal(tally) is None) == sealed
        assert reports(reader, tally) == 3, line
        line += 7
    assert killed >= 5


def test_blocks_move_everywhere(home, s3, opened, fill, tmp_path, monkeypatch):
    """Blocks go from the store to a folder, to a bucket, to another prefix and back into the
    store: each time all windows read the same before, between and after, and nothing is moved
    twice. An interrupted move is completed by the same command."""
    tallies = [fill(day, number) for number, day in enumerate(DAYS, 1)]
    folder = str(tmp_path / "blocks")

    def run(place, archive, code=0):
        environ = {**home.environ, "DENIABLE_ARCHIVE": archive}
        result = CliRunner().invoke(commands.store, ["move", place, "--json"], env=environ)
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    def right(archive):
        assert opened(archive).reports(*tallies[0][:2], DAYS) == dict(
            zip(DAYS, (1, 2, 3), strict=True)
        )

    store = opened("")
    for each in tallies:
        store.seal(each)
    assert run(folder, "")["in_store"] == 3
    right("")
    assert run(folder, folder)["moved"] == 3
    right(folder)
    copy, done = archive_room.Archive.copy, []

    def interrupted(self, name, block):
        if len(done) == 2:
            raise StoreUnavailable("the cable was pulled")
        done.append(name)
        copy(self, name, block)

    with monkeypatch.context() as patch:
        patch.setattr(archive_room.Archive, "copy", interrupted)
        result = CliRunner().invoke(
            commands.store, ["move", PLACE], env={**home.environ, "DENIABLE_ARCHIVE": folder}
        )
        assert "the cable was pulled" in result.output
    assert len(blocks(s3)) == 2
    assert run(PLACE, folder) | {"bytes": 0} == {
        "moved": 1, "bytes": 0, "there": 2, "in_store": 0, "failed": []
    }  # fmt: skip
    for place in (folder, PLACE):
        right(place)
    assert run("s3://tallies/two", PLACE)["moved"] == 3
    for place in (folder, PLACE, "s3://tallies/two"):
        right(place)
    assert run("store", "s3://tallies/two")["moved"] == 3
    right("")
    assert run("store", "")["there"] == 3
    environ = {**home.environ, "DENIABLE_ARCHIVE": "s3://tallies/two"}
    unused = CliRunner().invoke(commands.store, ["verify", "--json"], env=environ)
    assert len(json.loads(unused.stdout)["unused_files"]) == 3


def test_a_move_leaves_what_it_cannot_read(home, s3, opened, fill):
    """A damaged block stays where it is and is named; all others are moved."""
    first, second = fill(DAYS[0]), fill(DAYS[1])
    store = opened()
    store.seal(first)
    store.seal(second)
    (key,) = (each for each in blocks(s3) if DAYS[0] in each)
    s3.client.put_object(Bucket="tallies", Key=key, Body=b"x")
    moved = moving.move_blocks(store, archive_room.Archive(PLACE), "")
    assert (moved.blocks, [tally for tally, _ in moved.failed]) == (1, [first])
    assert reports(opened(""), second) == 3


def test_a_move_does_not_undo_what_others_do(home, s3, opened, fill, monkeypatch):
    """A window that is opened again while its block moves keeps its new counts."""
    tally = fill(DAYS[0])
    store = opened("")
    assert store.seal(tally) is not None
    put = archive_room.Archive.put

    def late(self, *arguments):
        fill(DAYS[0], 5)
        return put(self, *arguments)

    monkeypatch.setattr(archive_room.Archive, "put", late)
    moved = moving.move_blocks(store, archive_room.Archive(PLACE), PLACE)
    assert moved.blocks == 0
    assert reports(store, tally) == 8
    assert blocks(s3) == []


def test_a_move_to_the_place_of_others_is_refused(home, s3, opened, fill):
    """Blocks are not copied to a prefix that has those of other stores."""
    tally = fill(DAYS[0])
    assert opened().seal(tally) is not None
    s3.client.put_object(Bucket="tallies", Key="two/deniable-archive", Body=b"0123\n")
    with pytest.raises(StoreUnavailable, match="name another folder, or another prefix"):
        moving.move_blocks(opened(), archive_room.Archive(PLACE), "s3://tallies/two")
    assert not [key for key in blocks(s3) if key.startswith("two/")]
