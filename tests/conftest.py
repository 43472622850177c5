"""What all tests have in common: what belongs to the campaign, and how long a test may take."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest
from flask import Flask
from hypothesis import settings
from jinja2 import BytecodeCache
from tests.tools import LEFT_OUT

HERE = Path(__file__).parent
CAMPAIGN = {"e2e", "web"}
"""Folders whose tests all belong to the campaign."""

_SLOWER = 4
"""A machine that others share may be this many times slower, and not show it."""

# How long an example may take says nothing on a busy machine. Each run tries the same examples.
settings.register_profile("patient", deadline=None, derandomize=True)
settings.load_profile("patient")


class Compiled(BytecodeCache):
    """Templates that this process has compiled, for all apps that it makes."""

    def __init__(self):
        self._kept: dict[str, bytes] = {}

    def load_bytecode(self, bucket):
        """Take what another app has compiled."""
        if bucket.key in self._kept:
            bucket.bytecode_from_string(self._kept[bucket.key])

    def dump_bytecode(self, bucket):
        """Keep it for others."""
        self._kept[bucket.key] = bucket.bytecode_to_string()


# Most of the time of a page that is asked for once is that of compiling its templates.
Flask.jinja_options = {**Flask.jinja_options, "bytecode_cache": Compiled()}


def pytest_addoption(parser):
    """Works where this folder or one inside it is named on the command line."""
    parser.addoption("--take", action="store_true", help="Take golden files and vectors anew.")
    parser.addoption("--longest", type=float, help="Seconds that a test may calculate.")


@pytest.fixture
def stays(request):
    """Compare lines with those of a file beside the test, which `--take` writes anew."""

    def compare(name, lines):
        file = request.path.with_name(name)
        found = "".join(f"{each}\n" for each in lines)
        if request.config.getoption("--take", default=False):
            file.write_text(found, encoding="utf-8")
        assert found.splitlines() == file.read_text(encoding="utf-8").splitlines()

    return compare


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the folders of the campaign, before `-m` chooses."""
    for item in items:
        folder = item.path.relative_to(HERE).parts[0]
        if folder in CAMPAIGN:
            item.add_marker("campaign")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A test that calculates for longer than `--longest` fails.

    Only what this process calculates counts: other work on the machine makes a test wait, and not
    calculate.
    """
    began = time.process_time()
    yield
    longest = item.config.getoption("longest", None)
    if longest and (took := time.process_time() - began) > _SLOWER * longest:
        pytest.fail(
            f"{item.nodeid} calculated for {took:.1f} s, of {_SLOWER * longest:.1f} at most. "
            "Make it faster, or mark it `campaign` (tests/README.md).",
            pytrace=False,
        )


def pytest_terminal_summary(terminalreporter):
    """Say in one line which tests were left out for want of a tool, and how to get it."""
    reasons = [
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
    ]
    lacking = Counter(each.removeprefix(LEFT_OUT) for each in reasons if each.startswith(LEFT_OUT))
    if lacking:
        tests = f"{lacking.total()} test{'s' if lacking.total() > 1 else ''}"
        packages = " ".join(sorted(lacking))
        terminalreporter.write_line(
            f"Left out for want of tools: {tests}. To run them: apt-get install {packages}"
        )
