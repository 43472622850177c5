"""A plugin of pytest: which test executes which line of the product, and how long it takes."""

from __future__ import annotations

import os
import pickle
import time
from pathlib import Path

import coverage
import pytest

_WAITING = 0.2
"""What a second costs in which a test does not calculate: on a busy machine there are many."""

_watched = coverage.Coverage(
    data_file=None,
    config_file=False,
    source=["client/deniable", *(f"{each}/deniable_{each}" for each in ("collector", "estimator"))],
)
# Before anything of ours is imported, so that what a module executes is seen.
_watched.start()
_seconds: dict[str, float] = {}
_passed: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Note a test's lines under its name."""
    _watched.switch_context(item.nodeid)
    begun = time.process_time() + _WAITING * time.monotonic()
    done = yield
    _seconds[item.nodeid] = time.process_time() + _WAITING * time.monotonic() - begun
    _watched.switch_context("")
    return done


def pytest_runtest_logreport(report):
    """A test that fails or is left out without a fault judges nothing."""
    if report.when == "call" and report.passed:
        _passed.add(report.nodeid)


def pytest_sessionfinish(session):
    """Write what this process has seen into the folder that the environment names."""
    if not _seconds:
        return
    _watched.stop()
    data = _watched.get_data()
    lines = {path: data.contexts_by_lineno(path) for path in data.measured_files()}
    seconds = {test: each for test, each in _seconds.items() if test in _passed}
    file = Path(os.environ["MUTANTS_FOLDER"]) / f"{os.getpid()}.pickle"
    file.write_bytes(pickle.dumps((seconds, lines)))
