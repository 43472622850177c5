"""Group commit: who shares a commit, and who shares its failure."""

import asyncio
import threading
from contextlib import closing

import pytest

from deniable_collector.batches.batch import Batch, Receipt
from deniable_collector.serving.group import GroupCommit


class FakeIntake:
    """Remembers which batches were taken together; `trouble` may raise for some, or return another
    outcome."""

    def __init__(self, trouble=lambda ids: None):
        self.groups = []
        self.trouble = trouble

    def __call__(self, batches):
        ids = [batch.id for batch in batches]
        self.groups.append(ids)
        outcomes = self.trouble(ids)
        return [Receipt(each, 1, 0, ()) for each in ids] if outcomes is None else outcomes


class Group(GroupCommit):
    """One whose outcomes can be awaited."""

    async def take(self, batch):
        future = asyncio.get_running_loop().create_future()
        self.add(batch, future.set_result)
        return await future


def batches(*ids):
    return [Batch(each, (), ()) for each in ids]


def run_soon(run):
    """Run it to its end; what would wait for ever fails."""
    return asyncio.run(asyncio.wait_for(run, 30))


def test_the_next_group_gathers_while_a_commit_is_under_way():
    """What arrives during a commit waits for it, and is committed at once after it, together; each
    gets its own receipt."""
    begun, leave = threading.Event(), threading.Event()

    def trouble(ids):
        if ids == ["a"]:
            begun.set()
            assert leave.wait(120)

    intake = FakeIntake(trouble)

    async def run():
        with closing(Group(intake, 0)) as group:
            first = asyncio.create_task(group.take(batches("a")[0]))
            assert await asyncio.to_thread(begun.wait, 30)
            others = []
            for batch in batches("b", "c"):
                others.append(asyncio.create_task(group.take(batch)))
                await asyncio.sleep(0.01)
            assert intake.groups == [["a"]]
            leave.set()
            return await asyncio.gather(first, *others)

    assert [receipt.batch for receipt in run_soon(run())] == ["a", "b", "c"]
    assert intake.groups == [["a"], ["b", "c"]]


def test_groups_keep_their_distance():
    """Two batches that come soon after each other, but after a commit, wait for one tick."""
    intake = FakeIntake()

    async def run():
        with closing(Group(intake, 0.5)) as group:
            await group.take(batches("a")[0])
            second = asyncio.create_task(group.take(batches("b")[0]))
            await asyncio.sleep(0)
            await asyncio.gather(second, group.take(batches("c")[0]))

    run_soon(run())
    assert intake.groups == [["a"], ["b", "c"]]


@pytest.mark.parametrize("outcomes", [[], SystemExit(), asyncio.CancelledError()])
def test_a_commit_that_ends_as_none_should(outcomes):
    """Too few outcomes, or an end that is no error, are an error to each batch of the group, and
    the next group is not hindered."""

    def broken(ids):
        if ids == ["c"]:
            return None
        if isinstance(outcomes, BaseException):
            raise outcomes
        return outcomes

    intake = FakeIntake(broken)

    async def run():
        with closing(Group(intake, 0)) as group:
            found = await asyncio.gather(*map(group.take, batches("a", "b")))
            assert [type(each) for each in found] == [RuntimeError] * 2
            assert (await group.take(batches("c")[0])).batch == "c"

    run_soon(run())
    assert intake.groups == [["a", "b"], ["c"]]


def test_a_commit_that_cannot_begin(monkeypatch):
    """Where no thread can be had, each batch gets the error, those that came meanwhile too, and
    later ones are committed."""

    async def run():
        with closing(Group(FakeIntake(), 0)) as group:
            loop = asyncio.get_running_loop()
            monkeypatch.setattr(loop, "run_in_executor", lambda *call: 1 / 0)
            found = await asyncio.gather(*map(group.take, batches("a", "b")))
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
        with closing(Group(FakeIntake(), 0)) as group:
            for batch in batches("a", "b"):
                group.add(batch, fails)
            assert (await group.take(batches("c")[0])).batch == "c"

    run_soon(run())
    assert told == ["a", "b"]
    assert "RuntimeError" in caplog.text
    assert "marker" not in caplog.text
