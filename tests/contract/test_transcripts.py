"""The transcripts: what leaves a device, byte for byte, from a stream of random bits."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction

import pytest

from .transcripts import FILE, Stream, run, seeded, text

CASES = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def taken(request, tmp_path_factory):
    """With `--take`, runs all cases and writes what they give."""
    if not request.config.getoption("--take"):
        return
    for case in CASES:
        stream = Stream(seeded(case["name"]))
        case["steps"] = run(case, stream, tmp_path_factory.mktemp("state"))
        case["bytes"] = stream.drawn.hex()
    FILE.write_text(text(CASES), encoding="utf-8")


@pytest.mark.usefixtures("taken")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_device_does_what_its_transcript_says(case, tmp_path):
    """From the same bytes and steps the device gives the same bodies, delays and ledger, and draws
    neither more nor less than the stream. No transcript breaks a promise."""
    stream = Stream(iter(bytes.fromhex(case["bytes"])))
    given = run(case, stream, tmp_path)
    assert json.loads(json.dumps(given)) == case["steps"]
    assert next(stream.data, None) is None
    keeps_its_promises(case)


def keeps_its_promises(case):
    """In what has left the device no metric has two reports of one window, one batch id has one
    body, no report leaves that is not charged, and no sum is beyond a lifetime."""
    bodies: dict[str, str] = {}
    reported: Counter[tuple[str, str]] = Counter()
    registries = [case["registry"]]
    for step in case["steps"]:
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
            cap = case["registry"]["lifetime_epsilon"]
            total = sum(Fraction(each["spent"]) for each in step["ledger"].values())
            assert cap is None or total <= Fraction(cap)
    for body in bodies.values():
        reported.update((each["metric"], each["window"]) for each in json.loads(body)["reports"])
    if not any("waits" in step for step in case["steps"]):
        assert set(reported.values()) <= {1}
    holds = [step["ledger"] for step in case["steps"] if "ledger" in step]
    for metric, count in Counter(name for name, _ in reported).items():
        assert not holds or count <= max(
            ledger.get(metric, {}).get("reports", 0) for ledger in holds
        )


def test_a_step_that_differs_is_noticed(tmp_path):
    """Another bit in the stream gives another report: the comparison can fail."""
    (case,) = [each for each in CASES if each["name"] == "boolean"]
    data = bytearray.fromhex(case["bytes"])
    # The coin of the first window (sample_rate 1) takes 7 bytes, the delay 7, and so on; the batch
    # id is drawn last but the delay of the reply.
    data[-10] ^= 1
    assert run(case, Stream(iter(bytes(data))), tmp_path) != case["steps"]
