"""What all tests have in common: what belongs to the campaign, and how long a test may take."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest
from flask import Flask
from hypothesis import settings
from jinja2 import BytecodeCache
from jinja2.bccache import Bucket
from tests.tools import LEFT_OUT

HERE = Path(__file__).parent
CAMPAIGN = {"e2e", "web"}
"""Folders whose tests all belong to the campaign."""

# How long an example may take says nothing on a busy machine. Each run tries the same examples.
settings.register_profile("patient", deadline=None, derandomize=True)
settings.load_profile("patient")


class Compiled(BytecodeCache):
    """Templates that this process has compiled, for all apps that it makes."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Take what another app has compiled."""
        if bucket.key in self._kept:
            bucket.bytecode_from_string(self._kept[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep it for others."""
        self._kept[bucket.key] = bucket.bytecode_to_string()


# Most of the time of a page that is asked for once is that of compiling its templates.
Flask.jinja_options = {**Flask.jinja_options, "bytecode_cache": Compiled()}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Works where this folder or one inside it is named on the command line."""
    parser.addoption("--take", action="store_true", help="Take golden files and vectors anew.")
    parser.addoption("--longest", type=float, help="Seconds that a test may take; more under load.")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the folders of the campaign, before `-m` chooses."""
    for item in items:
        folder = item.path.relative_to(HERE).parts[0]
        if folder in CAMPAIGN:
            item.add_marker("campaign")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that takes longer than `--longest` fails.

    Other work on the machine makes tests slower: the limit grows with the processes that wait
    for each core.
    """
    report = yield
    longest = item.config.getoption("longest", None)
    if longest and (mark := item.get_closest_marker("longest")):
        longest = max(longest, *mark.args)
    if longest and call.when == "call" and report.passed:
        # A machine that others share may be half as fast, and not show it.
        limit = longest * max(2.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        if call.duration > limit:
            report.outcome = "failed"
            report.longrepr = (
                f"{item.nodeid} took {call.duration:.1f} s, of {limit:.1f} at most. "
                "Make it faster, or mark it `campaign` (tests/README.md)."
            )
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
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
