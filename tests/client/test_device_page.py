"""The page on a device's duties names every transcript, and its numbers are those of the code."""

from __future__ import annotations

import json
import re
from pathlib import Path

from deniable import client, device, outbox, sealing, transport
from deniable.compiled_form import FORMAT
from deniable.open_windows import KEPT_WINDOWS
from deniable.randomness import KEY_BYTES
from deniable.wire import BATCH_ID_BITS, LATEST

from .transcripts import FILE

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "device.md").read_text(encoding="utf-8")
DUTIES = PAGE.partition("## Transcripts")[0]
CASES = json.loads(FILE.read_text(encoding="utf-8"))
NAMES = {case["name"] for case in CASES}


def test_every_transcript_belongs_to_a_duty() -> None:
    """Each transcript is named where its duty is told, but the neighbours of one aggregate."""
    named = {" ".join(each.split()) for each in re.findall(r"`([^`]+)`", DUTIES)}
    neighbours = {name for name in NAMES if name.startswith("aggregate ")}
    assert len(neighbours) == 10
    assert neighbours & named == {"aggregate last of a category"}
    assert neighbours | named >= NAMES


def test_every_name_of_several_words_is_a_transcript() -> None:
    """What stands in code and has a space is the name of a transcript, or a call in the shell."""
    several = {" ".join(each.split()) for each in re.findall(r"`([^`]+)`", DUTIES)}
    others = {each for each in several if " " in each} - NAMES
    assert others <= {"record(name, value)", "deniable compile metrics.toml"}


def test_every_kind_of_step_is_explained() -> None:
    """The table of steps has each key that a step of the file has."""
    rows = re.findall(r"^\| (`.*)", PAGE.partition("| a step with |")[2], re.M)
    explained = set(re.findall(r"`([a-z_]+)`", "".join(rows))) | {"at"}
    used = {key for case in CASES for step in case["steps"] for key in step}
    assert used <= explained
    told = {key for case in CASES for step in case["steps"] for key in step.get("reply", ())}
    assert {key for key in told if len(key) > 1} <= explained
    assert {key for case in CASES for key in case} <= set(re.findall(r"`([a-z]+)`", PAGE))


def test_the_numbers_are_those_of_the_code() -> None:
    """The table of limits, in its order."""
    table = PAGE.partition("| what | limit |")[2].partition("\n\n")[0]
    shown = [
        [float(each.replace(",", "")) for each in re.findall(r"[0-9][0-9,]*", row.split(" | ")[-1])]
        for row in table.strip().splitlines()[1:]
    ]
    assert shown == [
        [outbox.BATCH_REPORTS],
        [outbox.QUEUED_REPORTS],
        [outbox.HISTORY_REPORTS],
        [KEPT_WINDOWS],
        [client.MAX_RECORDS],
        [outbox.LEASE_SECONDS],
        [device.FIRST_BACKOFF, device.LONGEST_BACKOFF],
        [outbox.LONGEST_PAUSE],
        [device.ROLLOUT_PAUSE, 2 * device.ROLLOUT_PAUSE],
        [LATEST],
        [outbox.JITTER],
        [client.SPREAD, outbox.LONGEST_PAUSE],
        [sealing.UNDECLARED_SECONDS],
        [KEY_BYTES],
        [transport._LARGEST_REPLY],
    ]
    assert f"`format` is {FORMAT}." in PAGE
    assert f"{BATCH_ID_BITS} bits of the random source" in PAGE
    assert all(f"`{reason}`" in PAGE for reason in outbox.PASSING)


def test_every_link_leads_somewhere() -> None:
    """Files and headings that the page links to exist; the page of the web SDK comes with it."""
    for link in re.findall(r"\]\(([^)]+)\)", PAGE):
        path, _, heading = link.partition("#")
        if path == "web.md":
            continue
        target = PAGE if not path else (DOCS / path).read_text(encoding="utf-8")
        if heading:
            titles = re.findall(r"^#+ (.*)$", target, re.M)
            assert heading in {title.lower().replace(" ", "-") for title in titles}, link
