"""Judging mutants: a forked process for each, in which the tests of its lines run.

The parent has imported the libraries that the tests need and nothing of ours. A child imports our
packages with the mutant's text in place of the file's, so that no file is ever changed, and runs
the tests that execute the changed statement, quickest first, until one fails.
"""

from __future__ import annotations

import gc
import importlib
import math
import os
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import coverage
import pytest
from hypothesis import Phase, settings

from .mutants import Mutant, statement_lines

__all__ = ["Judges", "preload"]

_LIBRARIES = (
    *("scipy.stats", "numpy.testing", "hypothesis.extra.numpy", "hypothesis.strategies", "redis"),
    *("flask.testing", "aiohttp.web", "uvicorn", "msgspec", "click.testing", "rich.table", "babel"),
    *("mmh3", "sqlite3", "selenium", "schemathesis", "limits.strategies", "prometheus_client"),
)
_WAITING = 0.2
"""What a second costs in which a test does not calculate: on a busy machine there are many."""

_MEMORY = 3 << 30
"""Bytes that a child may take: a fault in a size must not take the machine's."""


def preload() -> None:
    """Import what all tests need, once."""
    # No test that judges needs another plugin than Hypothesis's own, and they load slowly.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in _LIBRARIES:
        importlib.import_module(name)
    gc.freeze()


@dataclass
class Judges:
    """The tests of one module: which of them executes which line, and how long each takes."""

    path: Path
    tests: list[str]
    limit: float
    """Seconds of tests that a mutant is judged by at most, by their time without a fault."""
    seconds: dict[str, float] = field(default_factory=dict)
    by_line: dict[int, list[str]] = field(default_factory=dict)

    def measure(self, seconds: float) -> bool:
        """Run the tests on the file as it is; False if that takes longer.

        Raises:
            RuntimeError: they fail.
        """
        status, found = _in_child(lambda: _measure(self.path, self.tests), seconds)
        if status is None:
            return False
        if status != 0:
            raise RuntimeError(f"the tests of {self.path} fail without a fault")
        self.seconds, self.by_line = found
        return True

    def judge(self, mutant: Mutant) -> str:
        """`killed`, `timeout` (which is killed as well) or `survived`."""
        chosen = self._chosen(mutant)
        if not chosen:
            return "survived"
        allowed = 5 + 4 * sum(self.seconds[each] for each in chosen)
        status, _ = _in_child(lambda: _run(self.path, mutant.code, self.tests, chosen), allowed)
        return "timeout" if status is None else "survived" if status == 0 else "killed"

    def _chosen(self, mutant: Mutant) -> list[str]:
        """The tests that execute the statement, the quickest first, up to the limit."""
        found = self._executing(mutant)
        order = sorted(found & self.seconds.keys(), key=self.seconds.__getitem__)
        if "" in found:
            # It is executed when the module is imported: any other test may see it as well.
            others = self.seconds.keys() - found
            order += sorted(others, key=self.seconds.__getitem__)
        chosen, left = [], self.limit
        for test in order:
            left -= self.seconds[test]
            if chosen and left < 0:
                break
            chosen.append(test)
        return chosen

    def _executing(self, mutant: Mutant) -> set[str]:
        """The tests that execute the statement, and `""` if importing does; of a script that is
        no Python nobody knows, so that all are asked."""
        if self.path.suffix != ".py":
            return set(self.seconds)
        lines = min(
            (each for each in statement_lines(self.path.read_text()) if mutant.line in each),
            key=len,
            default=range(mutant.line, mutant.line + 1),
        )
        return {test for line in lines for test in self.by_line.get(line, [])}


class _Hurried:
    """Fails at the first example that fails: nobody reads what it would shrink to."""

    def pytest_sessionstart(self) -> None:
        hurried = settings(deadline=None, database=None, phases=[Phase.explicit, Phase.generate])
        settings.register_profile("hurried", hurried)
        settings.load_profile("hurried")


class _Measured(_Hurried):
    def __init__(self, watched: coverage.Coverage) -> None:
        self.seconds: dict[str, float] = {}
        self._watched = watched

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self._watched.switch_context(item.nodeid)
        begun = time.process_time() + _WAITING * time.monotonic()
        done = yield
        self.seconds[item.nodeid] = time.process_time() + _WAITING * time.monotonic() - begun
        self._watched.switch_context("")
        return done


class _Chosen(_Hurried):
    def __init__(self, tests: list[str]) -> None:
        self._order = {test: place for place, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (each for each in items if each.nodeid in self._order),
            key=lambda each: self._order[each.nodeid],
        )


_OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
_OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning", "-p", "_hypothesis_pytestplugin"]
_OPTIONS += ["-p", "no:unraisableexception", "-p", "no:threadexception"]


def _measure(path: Path, tests: list[str]) -> tuple[int, Any]:
    watched = coverage.Coverage(data_file=None, include=[str(path)], config_file=False)
    plugin = _Measured(watched)
    watched.start()
    status = pytest.main([*_OPTIONS, *tests], plugins=[plugin])
    watched.stop()
    by_line = watched.get_data().contexts_by_lineno(str(path))
    return int(status), (plugin.seconds, by_line)


def _run(path: Path, code: str, tests: list[str], chosen: list[str]) -> tuple[int, Any]:
    original = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, fullname: str) -> Any:
        if Path(loader.path).resolve() == path:
            return compile(code, str(path), "exec", dont_inherit=True)
        return original(loader, fullname)

    def read_text(file: Path, *arguments: Any, **options: Any) -> str:
        return code if file == path else read(file, *arguments, **options)

    read = Path.read_text
    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    Path.read_text = read_text  # type: ignore[method-assign]
    files = sorted({each.partition("::")[0] for each in chosen})
    return int(pytest.main([*_OPTIONS, *files], plugins=[_Chosen(chosen)])), None


def _in_child(work: Callable[[], tuple[int, Any]], seconds: float) -> tuple[int | None, Any]:
    """What `work` returns in a process of its own, which ends with all that it has started; None
    if it takes longer or dies."""
    # Seconds of calculation, which a busy machine does not shorten; of waiting, many more.
    calculating = math.ceil(seconds)
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def run() -> None:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (calculating, calculating + 1))
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        sender.send(work())
        os._exit(0)

    child = context.Process(target=run)
    child.start()
    sender.close()
    try:
        found = receiver.recv() if receiver.poll(60 + 4 * seconds) else (None, None)
    except EOFError:
        found = (None, None)
    with suppress(ProcessLookupError):
        os.killpg(child.pid or 0, signal.SIGKILL)
    child.join()
    receiver.close()
    return found
