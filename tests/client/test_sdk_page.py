"""The page on the SDK leaves out nothing that is public, and its numbers are those of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from deniable import Client, client, device, outbox
from deniable.client import Status
from deniable.open_windows import KEPT_WINDOWS
from deniable.outbox import PASSING, QUEUED_REPORTS

PAGE = (Path(__file__).parents[2] / "docs" / "sdk.md").read_text(encoding="utf-8")


def test_every_member_of_the_client_is_named() -> None:
    """Each public method and property of Client stands on the page."""
    hooks = {"before_fork", "after_fork"}  # the library calls them, not the app
    for name in [each for each in dir(Client) if not each.startswith("_")]:
        assert name in hooks or re.search(rf"`[^`]*\b{name}\b|telemetry\.{name}\(", PAGE), name


def test_every_counter_is_explained() -> None:
    """The table of counters has those that the docstring of `Client.counters` has, and no other."""
    rows = re.findall(r"^\| ((?:`[a-z_]+`(?:, )?)+) \|", PAGE.partition("| counter |")[2], re.M)
    named = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)}
    doc = Client.counters.__doc__ or ""
    text = " ".join(doc.split())
    listed = re.findall(r"((?:[a-z_]+, )*[a-z_]+): ", text)
    assert named == {name for group in listed for name in group.split(", ")}
    assert named >= PASSING


def test_every_status_is_named() -> None:
    """Each value of `Client.status` stands on the page."""
    assert all(f"`{each}`" in PAGE for each in get_args(Status))


def test_the_numbers_are_those_of_the_code() -> None:
    """Bounds and waits that the page names."""
    assert f"{QUEUED_REPORTS:,} reports waited" in PAGE
    assert f"{client.MAX_RECORDS:,} records waited" in PAGE
    assert (device.FIRST_BACKOFF, device.LONGEST_BACKOFF, device.ROLLOUT_PAUSE) == (1, 3600, 1800)
    assert outbox.LONGEST_PAUSE == 86_400
    assert KEPT_WINDOWS == 400
