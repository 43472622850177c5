"""The processes for long calculations: bounded, replaced when they die, gone with the server."""

import math
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from unittest.mock import Mock

import pytest
from tests.ports import until

from deniable import ValueListError
from deniable.protocol.value_list import parse_values
from deniable_estimator.asking.listed import Listed
from deniable_estimator.asking.work import TooHeavy, Workers, WorkersClosed

MEMORY = 1 << 30


@pytest.fixture
def workers():
    """Two processes with a gibibyte each, and a second for a task."""
    workers = Workers(2, MEMORY, 1)
    yield workers
    workers.close()


def alive(process):
    """Whether the process is there, and not only its exit status."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(process):
    """Wait until the process has ended."""
    return until(lambda: not alive(process))


def test_a_task_runs_in_another_process(workers):
    """What the function returns comes back; one reader alone starts one process, which stays."""
    assert workers.run(math.factorial, 20) == math.factorial(20)
    first, second = workers.run(os.getpid), workers.run(os.getpid)
    assert first == second != os.getpid()
    assert workers.run(os.nice, 0) > os.nice(0)


def test_an_error_is_raised_as_it_was(workers):
    """An error of ours keeps its type, text and members, also where its arguments are others."""
    with pytest.raises(ValueListError) as caught:
        workers.run(parse_values, b"a\na", "The list")
    assert (caught.value.source, caught.value.line) == ("The list", 2)
    assert str(caught.value) == "The list, line 2: repeats line 1; remove one of the two"
    with pytest.raises(ValueError, match="negative"):
        workers.run(math.factorial, -1)


def test_memory_is_bounded(workers):
    """A task that wants more than the limit is refused with the limit, and the next one runs."""
    process = workers.run(os.getpid)
    with pytest.raises(TooHeavy, match="1,024 MiB"):
        workers.run(bytearray, MEMORY)
    assert workers.run(len, b"ab") == 2
    assert len(workers.run(bytearray, MEMORY // 16)) == MEMORY // 16
    assert gone(process), "what it has taken is given back with it"


@pytest.mark.campaign
def test_time_is_bounded(workers):
    """A task that calculates for longer than the limit is ended, also where it holds Python's
    lock, and the next one has all of its time again."""
    begun = time.monotonic()
    with pytest.raises(TooHeavy, match="1 s that"):
        workers.run(sum, range(10**12))
    assert time.monotonic() - begun < 60
    for _ in range(5):
        assert workers.run(sum, range(10**7)) == 10**7 * (10**7 - 1) // 2


def sleeping(path, seconds):
    """A task that sleeps, and makes a file when it begins."""
    return eval, f"open({str(path)!r}, 'w').close() or __import__('time').sleep({seconds})"


def test_a_process_that_dies_is_replaced(workers, tmp_path):
    """Whoever waited is told; the other process goes on, and the next task finds a new one."""
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(workers.run, *sleeping(begun := tmp_path / "begun", 1.5))
        until(begun.exists)
        for _ in range(3):
            with pytest.raises(TooHeavy):
                workers.run(os._exit, 1)
        process = workers.run(os.getpid)
        assert other.result(30) is None
    os.kill(process, signal.SIGKILL)
    assert gone(process)
    assert workers.run(os.getpid) != process, "what died between tasks harms none"


def test_a_process_that_dies_within_a_result(workers):
    """Whoever waits has all of the result or is told, at whichever part of it the process dies."""
    code = "__import__('signal').setitimer(0, {}) and bytes(50_000_000)"
    outcomes = set()
    for moment in range(10, 200, 10):
        try:
            outcomes.add(len(workers.run(eval, code.format(moment / 1000))))
        except TooHeavy:
            outcomes.add(0)
    assert outcomes <= {0, 50_000_000}
    assert workers.run(len, b"ab") == 2


def test_a_process_that_cannot_be_started_is_none(workers, monkeypatch):
    """Where the system has no room for a process, whoever asks is told, and the next one may."""
    with monkeypatch.context() as patch:
        patch.setattr(ForkServerProcess, "start", Mock(side_effect=OSError("no room")))
        with pytest.raises(OSError, match="no room"):
            workers.run(os.getpid)
    assert workers.run(len, b"ab") == 2


def test_a_process_is_replaced_after_some_tasks(workers):
    """What a process has not given back after fifty tasks, it gives back by ending."""
    seen = {workers.run(os.getpid) for _ in range(60)}
    assert len(seen) == 2
    assert gone(min(seen)) or gone(max(seen))


def test_strings_of_a_file_do_not_travel(workers, tmp_path):
    """Strings that stand in a file are read from there, and what holds them comes back with the
    very same tuple; a file that has changed meanwhile is noticed."""
    path = tmp_path / "list.txt"
    path.write_text("a\nb\n")
    strings = Listed(["a", "b"], str(path))
    found = workers.run(dict, {"list": strings, "values": strings.values})
    assert found["list"] is strings
    assert found["values"] is strings.values
    assert workers.run(len, strings.values) == 2
    path.write_text("a\nc\n")
    workers.close()
    others = Workers(1, MEMORY, 2)
    try:
        with pytest.raises(Exception, match="has just been changed"):
            others.run(len, strings)
    finally:
        others.close()


def test_strings_that_were_sent_do_not_come_back(workers):
    """What was calculated from strings of a reader names them by their digest."""
    strings = Listed([f"string {number}" for number in range(10_000)])
    assert len(workers.run(pickle.dumps, strings.values)) < 300
    assert workers.run(tuple, [strings.values])[0] is strings.values


def test_closing_ends_what_is_being_calculated(workers, tmp_path):
    """The processes end at once, in the middle of a task too, and nothing is begun any more."""
    process = workers.run(os.getpid)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(workers.run, *sleeping(begun := tmp_path / "begun", 60))
        until(begun.exists)
        workers.close()
        with pytest.raises(WorkersClosed):
            waiting.result(10)
    assert gone(process)
    with pytest.raises(WorkersClosed):
        workers.run(os.getpid)


PARENT = """
import os, threading, time
from deniable_estimator.asking.work import Workers
if __name__ == "__main__":
    workers = Workers(1, 1 << 30, 60)
    print(workers.run(os.getpid), flush=True)
    threading.Thread(target=workers.run, args=(time.sleep, 60), daemon=True).start()
    time.sleep(60)
"""


@pytest.mark.campaign
def test_no_process_outlives_the_server(tmp_path):
    """Where the server is killed, which nobody can tell it before, its processes end with it."""
    (tmp_path / "parent.py").write_text(PARENT)
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "parent.py")], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    with parent, parent.stdout:
        process = int(parent.stdout.readline())
        assert alive(process)
        parent.kill()
        parent.wait()
        assert gone(process)
