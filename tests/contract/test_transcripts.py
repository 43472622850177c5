"""The transcripts: what leaves a device, byte for byte, from a stream of random bits."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.client.test_compiled import FORM

from deniable import compiled

from .transcript_cases import cases
from .transcripts import FILE, Stream, run, seeded, text

SCRIPTS = cases()
KEPT = {case["name"]: case for case in json.loads(FILE.read_text(encoding="utf-8"))}


@pytest.fixture(scope="session")
def taken(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """With `--take`, runs all scripts and writes what they give."""
    if not request.config.getoption("--take"):
        return
    made = []
    for script in SCRIPTS:
        stream = Stream(seeded(script["name"]))
        steps = run(script, stream, tmp_path_factory.mktemp("state"))
        made.append({**script, "bytes": stream.drawn.hex(), "steps": steps})
    FILE.write_text(text(made), encoding="utf-8")
    KEPT.clear()
    KEPT.update((case["name"], case) for case in json.loads(FILE.read_text(encoding="utf-8")))


@pytest.mark.usefixtures("taken")
def test_every_script_has_its_transcript() -> None:
    """The file has each script once, with its registry, in a form that readers know."""
    assert list(KEPT) == [script["name"] for script in SCRIPTS]
    assert len(KEPT) == len(SCRIPTS)
    for script in SCRIPTS:
        kept = KEPT[script["name"]]
        FORM.validate(kept["registry"])
        for key in ("about", "registry", "spread"):
            assert kept[key] == script[key], script["name"]


@pytest.mark.usefixtures("taken")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script["name"])
def test_the_device_does_what_its_transcript_says(script: dict[str, Any], tmp_path: Path) -> None:
    """From the same bytes and steps the device gives the same bodies, delays and ledger, and draws
    neither more nor less than the stream; what the script demands holds, too."""
    kept = KEPT[script["name"]]
    stream = Stream(iter(bytes.fromhex(kept["bytes"])))
    given = run({**script, "bytes": kept["bytes"]}, stream, tmp_path)
    assert json.loads(json.dumps(given)) == kept["steps"]
    assert next(stream.data, None) is None


@pytest.mark.usefixtures("taken")
@pytest.mark.parametrize("name", [script["name"] for script in SCRIPTS])
def test_no_transcript_breaks_a_promise(name: str) -> None:
    """In what has left the device no metric has two reports of one window, one batch id has one
    body, no report leaves that is not charged, and no sum is beyond a lifetime."""
    kept = KEPT[name]
    bodies: dict[str, str] = {}
    reported: Counter[tuple[str, str]] = Counter()
    registries = [kept["registry"]]
    for step in kept["steps"]:
        if "upgrade" in step:
            registries.append(step["upgrade"])
        if step.get("body") is not None:
            document = json.loads(step["body"])
            assert bodies.setdefault(document["batch"], step["body"]) == step["body"]
        if "ledger" in step:
            for metric, spent in step["ledger"].items():
                declared = max(
                    each["metrics"][metric]["lifetime_epsilon"]
                    for each in registries
                    if metric in each["metrics"]
                )
                memos = spent.get("memos")
                assert Fraction(memos if memos is not None else spent["spent"]) <= declared
            cap = kept["registry"]["lifetime_epsilon"]
            total = sum(Fraction(each["spent"]) for each in step["ledger"].values())
            assert cap is None or total <= Fraction(cap)
    passing = any("waits" in step for step in kept["steps"])
    for body in bodies.values():
        reported.update((each["metric"], each["window"]) for each in json.loads(body)["reports"])
    if not passing:
        assert set(reported.values()) <= {1}
    holds = [step for step in kept["steps"] if "ledger" in step]
    if holds:
        counts = Counter(metric for metric, _ in reported)
        for metric in counts:
            assert len([key for key in reported if key[0] == metric]) <= max(
                step["ledger"].get(metric, {}).get("reports", 0) for step in holds
            )


def test_a_step_that_differs_is_noticed(tmp_path: Path) -> None:
    """Another bit in the stream gives another report: the comparison can fail."""
    kept = KEPT["boolean"]
    data = bytearray.fromhex(kept["bytes"])
    # The coin of the first window (sample_rate 1) takes 7 bytes, the delay 7, and so on; the batch
    # id is drawn last but the delay of the reply.
    data[-10] ^= 1
    script = next(script for script in SCRIPTS if script["name"] == "boolean")
    given = run(script, Stream(iter(bytes(data))), tmp_path)
    assert given != kept["steps"]


def test_registries_of_transcripts_are_read_strictly() -> None:
    """Every registry in the file is one that a reader takes."""
    for kept in KEPT.values():
        compiled.from_document(kept["registry"])
    with pytest.raises(jsonschema_rs.ValidationError):
        FORM.validate({})
