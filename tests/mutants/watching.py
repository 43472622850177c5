"""A plugin of pytest: which test executes which line of the product, and how long it takes."""

from __future__ import annotations

import functools
import gc
import importlib
import os
import pickle
import pkgutil
import time
from contextlib import contextmanager
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
# Before anything of ours is imported, so that what a module executes is seen; and all of it now, or
# the first test that needs a module would seem to be the only one.
_watched.start()
for _package in ("deniable", "deniable_collector", "deniable_estimator"):
    for _each in pkgutil.walk_packages(importlib.import_module(_package).__path__, f"{_package}."):
        # What gunicorn reads is not imported by anything else.
        if not _each.name.endswith("_conf"):
            importlib.import_module(_each.name)
_caches = [
    each
    for each in gc.get_objects()
    if isinstance(each, functools._lru_cache_wrapper) and each.__module__.startswith("deniable")
]
"""Emptied before each test: otherwise the first one alone would execute what is cached."""

_seconds: dict[str, float] = {}
_passed: set[str] = set()
_contexts = [""]
"""The last one is what executes lines now."""


@contextmanager
def _noting_under(name):
    _contexts.append(name)
    _watched.switch_context(name)
    yield
    _contexts.pop()
    _watched.switch_context(_contexts[-1])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Note a test's lines under its name."""
    for each in _caches:
        each.cache_clear()
    begun = time.process_time() + _WAITING * time.monotonic()
    with _noting_under(item.nodeid):
        done = yield
    _seconds[item.nodeid] = time.process_time() + _WAITING * time.monotonic() - begun
    return done


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    """Note the lines of a fixture that tests share under the name of their file."""
    if fixturedef.scope == "function" or not _contexts[-1]:
        return (yield)
    with _noting_under(_contexts[-1].partition("::")[0]):
        return (yield)


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
