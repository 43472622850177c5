"""The page on the wire protocol leaves out no reason and no problem."""

from __future__ import annotations

import re
from pathlib import Path

import deniable_collector
from deniable.outbox import PASSING
from deniable.wire import LATEST
from deniable_collector.batches.batch import REASONS
from deniable_collector.batches.binary import MEDIA_TYPE

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text(encoding="utf-8")
SOURCES = Path(deniable_collector.__file__).parent


def test_every_reason_is_explained():
    """The table of reasons is the list in the code, in its order."""
    assert tuple(re.findall(r"^\| `([a-z_]+)` \| (?:is|names|has) ", PAGE, re.M)) == REASONS


def test_every_problem_is_named():
    """Each code that the collector answers with stands on the page; those of the gateway, which
    speaks another RFC's protocol, stand on its own page (see test_openapi)."""
    calls = r"(?:IntakeError|problem)\(\s*\"([a-z0-9-]+)\""
    codes = {
        code
        for file in SOURCES.rglob("*.py")
        if file.parent.name != "oblivious"
        for code in re.findall(calls, file.read_text("utf-8"))
    }
    assert {"not-json", "queue-full", "store-unavailable", "http-415"} <= codes
    assert not {code for code in codes if f"`{code}`" not in PAGE}
    assert MEDIA_TYPE in PAGE


def test_devices_and_collector_agree():
    """A device gives up a report that the collector did not know when a window is too old for the
    collector, and the reasons that it waits for are the collector's."""
    assert LATEST == 6 * 86_400
    assert set(REASONS) >= PASSING
