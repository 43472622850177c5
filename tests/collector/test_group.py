"""Group commit: who shares a commit, and who shares its failure."""

import asyncio
import threading
from contextlib import closing

import pytest

from deniable_collector.batches.batch import Batch, Receipt
from deniable_collector.serving.group import GroupCommit, commit_by_shard
from deniable_collector.stores import StoreError, StoreUnavailable


class FakeIntake:
    """Remembers which batches were taken together; `trouble` may raise for some."""

    shards = 1

    def __init__(self, trouble=lambda ids: None):
        self.groups = []
        self.trouble = trouble

    def take(self, batches):
        ids = [batch.id for batch in batches]
        self.groups.append(ids)
        self.trouble(ids)
        return [Receipt(each, 1, 0, ()) for each in ids]


def batches(*ids):
    return [Batch(each, (), ()) for each in ids]


def run_soon(run):
    """Run it to its end; what would wait for ever fails."""
    return asyncio.run(asyncio.wait_for(run, 30))


def test_what_arrives_together_is_committed_together():
    """All requests of one turn of the loop share a commit; each gets its own receipt."""
    intake = FakeIntake()

    async def run():
        with closing(GroupCommit(intake, 0)) as group:
            return await asyncio.gather(*map(group.take, batches("a", "b", "c")))

    assert [receipt.batch for receipt in run_soon(run())] == ["a", "b", "c"]
    assert intake.groups == [["a", "b", "c"]]


def test_the_next_group_gathers_while_a_commit_is_under_way():
    """What arrives during a commit waits for it, and is committed at once after it."""
    begun, leave = threading.Event(), threading.Event()

    def trouble(ids):
        if ids == ["a"]:
            begun.set()
            assert leave.wait(120)

    intake = FakeIntake(trouble)

    async def run():
        with closing(GroupCommit(intake, 0)) as group:
            first = asyncio.create_task(group.take(batches("a")[0]))
            assert await asyncio.to_thread(begun.wait, 30)
            others = []
            for batch in batches("b", "c"):
                others.append(asyncio.create_task(group.take(batch)))
                await asyncio.sleep(0.01)
            assert intake.groups == [["a"]]
            leave.set()
            await asyncio.gather(first, *others)

    run_soon(run())
    assert intake.groups == [["a"], ["b", "c"]]


def test_groups_keep_their_distance():
    """Two batches that come soon after each other, but after a commit, wait for one tick."""
    intake = FakeIntake()

    async def run():
        with closing(GroupCommit(intake, 0.2)) as group:
            await group.take(batches("a")[0])
            second = asyncio.create_task(group.take(batches("b")[0]))
            await asyncio.sleep(0.01)
            await asyncio.gather(second, group.take(batches("c")[0]))

    run_soon(run())
    assert intake.groups == [["a"], ["b", "c"]]


def test_a_client_that_leaves_disturbs_nobody():
    """A request that is cancelled is counted all the same, and those beside it are answered."""
    intake = FakeIntake()

    async def run():
        with closing(GroupCommit(intake, 0)) as group:
            gone, stays = (asyncio.create_task(group.take(each)) for each in batches("a", "b"))
            await asyncio.sleep(0)
            gone.cancel()
            assert (await stays).batch == "b"
            assert (await group.take(batches("c")[0])).batch == "c"

    run_soon(run())
    assert intake.groups == [["a", "b"], ["c"]]


@pytest.mark.parametrize("outcomes", [[], SystemExit(), asyncio.CancelledError()])
def test_a_commit_that_ends_as_none_should(monkeypatch, outcomes):
    """Too few outcomes, or an end that is no error, are an error to each batch of the group, and
    the next group is not hindered."""

    def broken(intake, batches):
        if isinstance(outcomes, BaseException):
            raise outcomes
        return outcomes

    async def run():
        with closing(GroupCommit(FakeIntake(), 0)) as group:
            monkeypatch.setattr("deniable_collector.serving.group.commit_by_shard", broken)
            tries = [group.take(each) for each in batches("a", "b")]
            found = await asyncio.gather(*tries, return_exceptions=True)
            assert [type(each) for each in found] == [RuntimeError] * 2
            monkeypatch.undo()
            assert (await group.take(batches("c")[0])).batch == "c"

    run_soon(run())


def test_a_commit_that_cannot_begin(monkeypatch):
    """Where no thread can be had, each batch gets the error, those that came meanwhile too, and
    later ones are committed."""

    async def run():
        with closing(GroupCommit(FakeIntake(), 0)) as group:
            loop = asyncio.get_running_loop()
            monkeypatch.setattr(loop, "run_in_executor", lambda *call: 1 / 0)
            tries = [group.take(each) for each in batches("a", "b")]
            found = await asyncio.gather(*tries, return_exceptions=True)
            assert [type(each) for each in found] == [ZeroDivisionError] * 2
            monkeypatch.undo()
            assert (await group.take(batches("c")[0])).batch == "c"

    run_soon(run())


def test_an_answer_that_fails_keeps_no_other_back(caplog):
    """Each batch is told of its commit once, whatever goes wrong in telling another."""
    told = []

    def fails(outcome):
        told.append(outcome.batch)
        raise RuntimeError("marker")

    async def run():
        with closing(GroupCommit(FakeIntake(), 0)) as group:
            for batch in batches("a", "b"):
                group.add(batch, fails)
            assert (await group.take(batches("c")[0])).batch == "c"

    run_soon(run())
    assert told == ["a", "b"]
    assert "RuntimeError" in caplog.text
    assert "marker" not in caplog.text


FULL, BUG, AWAY = StoreError("full"), RuntimeError("bug"), StoreUnavailable("down")


@pytest.mark.parametrize(
    ("shards", "ids", "trouble", "failed", "groups"),
    [
        (1, "abc", lambda ids: FULL if "b" in ids else None, {"b": FULL}, "abc a b c"),
        (1, "abc", lambda ids: BUG if "b" in ids else None, {"b": BUG}, "abc a b c"),
        (1, "b", lambda ids: BUG, {"b": BUG}, "b"),
        (1, "ab", lambda ids: AWAY, {"a": AWAY, "b": AWAY}, "ab"),
        (2, "aBcD", lambda ids: AWAY if "B" in ids else None, {"B": AWAY, "D": AWAY}, "ac BD"),
        (1, "abc", lambda ids: FULL if len(ids) > 1 else AWAY if ids == ["b"] else None,
         {"b": AWAY, "c": AWAY}, "abc a b"),
    ],
    ids=["refused", "a bug", "alone", "away", "a shard away", "away in between"],
)  # fmt: skip
def test_who_shares_a_failure(shards, ids, trouble, failed, groups):
    """What the store refuses in a group is refused for its own batch only. Nothing is tried one by
    one against a store that is away or goes away meanwhile, but batches of other shards are
    committed; each batch gets its own outcome."""

    def fails(some):
        if error := trouble(some):
            raise error

    intake = FakeIntake(fails)
    intake.shards = shards
    outcomes = commit_by_shard(intake, batches(*ids))
    assert outcomes == [failed.get(each, Receipt(each, 1, 0, ())) for each in ids]
    assert ["".join(each) for each in intake.groups] == groups.split()
