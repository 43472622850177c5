"""Judging mutants: a forked process for each, in which the tests of its line run.

The parent has imported the libraries that the tests need and nothing of ours. A child imports our
packages with the faulty file in place of the good one, so that no file is ever changed, and runs
the tests that execute the faulty statement, quickest first, until one fails.
"""

from __future__ import annotations

import gc
import importlib
import math
import os
import pickle
import re
import resource
import signal
from collections import defaultdict
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from .mutants import statement_lines

_LIBRARIES = (
    *("scipy.stats", "numpy.testing", "hypothesis.extra.numpy", "hypothesis.strategies", "redis"),
    *(
        "flask.testing",
        "aiohttp.web",
        "httptools",
        "msgspec",
        "click.testing",
        "rich.table",
        "babel",
    ),
    *("mmh3", "sqlite3", "prometheus_client"),
)
_OPTIONS = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=0"]
_OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
_OPTIONS += ["-p", "no:unraisableexception", "-p", "no:threadexception", "-m", "not campaign"]
_LIMIT = 120.0
"""Seconds of tests that a mutant is judged by at most, by their time without a fault."""

_MEMORY = 4 << 30
"""Bytes that a child may take: a fault in a size must not take the machine's."""


def preload():
    """Import what all tests need, once."""
    for name in _LIBRARIES:
        importlib.import_module(name)
    gc.freeze()


class Judges:
    """Which tests execute which line, and how long each takes."""

    def __init__(self, folder):
        self._seconds: dict[str, float] = {}
        self._lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for file in folder.glob("*.pickle"):
            seconds, lines = pickle.loads(file.read_bytes())
            self._seconds |= seconds
            for path, contexts in lines.items():
                for line, tests in contexts.items():
                    self._lines[path][line].update(tests)
        by_file = defaultdict(set)
        for test in self._seconds:
            by_file[test.partition("::")[0]].add(test)
        for by_line in self._lines.values():
            for line, tests in by_line.items():
                # What a shared fixture executes stands under the name of a file: all of its tests.
                by_line[line] = tests.union(*(by_file[each] for each in tests if each in by_file))

    def judge(self, mutant):
        """`noticed`, `timeout` (which is noticed as well), `unseen` (no test executes the line)
        or `survived`."""
        chosen = self._chosen(mutant)
        if not chosen:
            return "unseen"
        allowed = 10 + 4 * sum(self._seconds[each] for each in chosen)
        status = _in_child(mutant, chosen, allowed)
        return "timeout" if status is None else "survived" if status == 0 else "noticed"

    def _chosen(self, mutant):
        """The tests that execute the statement, the quickest first, up to the limit."""
        if mutant.path.suffix != ".py":
            # Nobody knows who executes a script: those who use what hands it over.
            by_line = self._lines[str(mutant.path.with_name("store.py"))]
            found = set().union(*by_line.values())
        else:
            by_line = self._lines[str(mutant.path)]
            lines = statement_lines(mutant.path.read_text(encoding="utf-8"), mutant.line)
            found = {test for line in lines for test in by_line[line]}
            if "" in found:
                # Importing executes it: any test that uses the file may see it, and then one that
                # uses a file that imports it.
                found = self._users(str(mutant.path))
        order = self._quickest(found)
        if "" in found:
            order += self._quickest(set().union(*map(self._users, self._importing(mutant.path))))
        chosen, left = [], _LIMIT
        for test in dict.fromkeys(order):
            left -= self._seconds[test]
            if chosen and left < 0:
                break
            chosen.append(test)
        return chosen

    def _quickest(self, tests):
        return sorted(tests & self._seconds.keys(), key=self._seconds.__getitem__)

    def _importing(self, path):
        """The measured files that name this module in an import."""
        named = re.compile(rf"^from [\w.]*\b{path.stem} import", re.MULTILINE)
        return [each for each in self._lines if named.search(Path(each).read_text())]

    def _users(self, path):
        """The tests that execute anything of a file."""
        return set().union(*self._lines[path].values())


class _Chosen:
    """Runs only these tests, in this order, and each example without shrinking."""

    def __init__(self, tests):
        self._order = {test: place for place, test in enumerate(tests)}

    def pytest_sessionstart(self):
        hurried = settings(deadline=None, database=None, phases=[Phase.explicit, Phase.generate])
        settings.register_profile("hurried", hurried)
        settings.load_profile("hurried")

    def pytest_collection_modifyitems(self, items):
        items[:] = sorted(
            (each for each in items if each.nodeid in self._order),
            key=lambda each: self._order[each.nodeid],
        )


def _run(mutant, chosen):
    original, read = SourceFileLoader.get_code, Path.read_text
    faulty = mutant.make()

    def get_code(loader, fullname):
        if Path(loader.path).resolve() == mutant.path:
            return compile(faulty, str(mutant.path), "exec", dont_inherit=True)
        return original(loader, fullname)

    def read_text(file, *arguments, **options):
        return faulty if file == mutant.path else read(file, *arguments, **options)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    if isinstance(faulty, str):
        Path.read_text = read_text  # type: ignore[method-assign]
    files = sorted({each.partition("::")[0] for each in chosen})
    return int(pytest.main([*_OPTIONS, *files], plugins=[_Chosen(chosen)]))


def _in_child(mutant, chosen, seconds):
    """How the tests end in a process of their own, which ends with all that it has started; None
    if they take longer or it dies."""
    # Seconds of calculation, which a busy machine does not shorten; of waiting, many more.
    calculating = math.ceil(seconds)
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def run():
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (calculating, calculating + 1))
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        sender.send(_run(mutant, chosen))
        os._exit(0)

    child = context.Process(target=run)
    child.start()
    sender.close()
    try:
        status = receiver.recv() if receiver.poll(60 + 4 * seconds) else None
    except EOFError:
        status = None
    with suppress(ProcessLookupError):
        os.killpg(child.pid or 0, signal.SIGKILL)
    child.join()
    receiver.close()
    return status
