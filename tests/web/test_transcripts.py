"""Random lives of a device, the same in both SDKs: bodies, delays and ledger, byte for byte."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.contract.transcripts import Driver, Stream, seeded, text

from deniable import Registry

WEB = Path(__file__).parents[2] / "client" / "web"
LIVES = 60
NOON = 1_799_000_000
HOUR = 3_600
BROWSERS = ["firefox", "chrome", "safari", "edge", "blåbär", "other"]
MEMO = {"longitudinal": "memoize", "memo_epsilon": 2.5, "lifetime_epsilon": 5.0}

KINDS: dict[str, tuple[str, list[dict[str, Any]], list[Any]]] = {
    # What the app may declare in turn, and what it records.
    "plain": ("boolean", [{}, {"epsilon": 2.0}, {"aggregate": "max"}], [True, False]),
    "list": (
        "category",
        [{"values": BROWSERS}, {"values": BROWSERS[:3]}, {"values": BROWSERS, "epsilon": 2.0}],
        BROWSERS[:3],
    ),
    "kept": (
        "category",
        [
            {"values": BROWSERS, **MEMO},
            {"values": BROWSERS[:3], **MEMO},
            {"values": BROWSERS, **MEMO, "memo_epsilon": 2.25},
            {"values": BROWSERS},
        ],
        BROWSERS[:3],
    ),
    "words": (
        "string",
        [{**MEMO, "mechanism": "rappor"}, {**MEMO, "mechanism": "rappor", "epsilon": 0.9}, {}],
        ["a", "b", "é"],
    ),
    "soon": (
        "boolean",
        [
            {"answer": "at_once", "aggregate": "first"},
            {"sample_rate": 0.5},
            {"one_in": 2, "answer": "at_once", "aggregate": "first"},
            {"one_in": 3},
        ],
        [True, False],
    ),
    "weekly": ("boolean", [{"window": "week"}, {"window": "week", **MEMO}], [True, False]),
}
REPLIES = ["lost", {"rejected": {}}, {"rejected": {"0": "unknown_scheme"}}, {"status": 503}]
REPLIES += [
    {"status": 400, "problem": code} for code in ("malformed-batch", "not-http", "http-404")
]


def declared(rng):
    """A version of the app: some metrics, each declared in one of its ways."""
    names = [name for name in KINDS if rng.random() < 0.8] or ["kept"]
    metrics = "".join(metric(name, KINDS[name][0], rng.choice(KINDS[name][1])) for name in names)
    cap = rng.choice(["", "", "lifetime_epsilon = 8.0\n"])
    return Registry.parse(f'schema = 1\napp = "editor"\n{cap}{metrics}').compile()


def metric(name, kind, keys):
    """The declaration of a metric. Texts, numbers and lists of JSON are those of TOML."""
    fixed = {"type": kind, "description": "d", "owner": "a", "epsilon": 1.0}
    settings = {**fixed, "lifetime_epsilon": 1000.0, **keys}
    lines = "".join(
        f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in settings.items()
    )
    return f"[metrics.{name}]\nexpires = 2027-12-31\n{lines}"


def live(seed, folder):
    """The transcript of a random life."""
    rng, name = random.Random(seed), f"life {seed}"
    document = declared(rng)
    stream = Stream(seeded(name))
    driver = Driver(document, HOUR, stream, folder)
    now, steps = float(NOON), []

    def do(step):
        steps.append(driver.step({"at": now, **step}))

    for _ in range(40):
        now += rng.choice([60, HOUR, 20 * HOUR, 50 * HOUR])
        chance = rng.random()
        known = [each for each in KINDS if each in driver.registry.metrics]
        if chance < 0.55:
            records = [
                [each, rng.choice(KINDS[each][2])]
                for each in rng.choices(known, k=rng.randrange(7))
            ]
            do({"records": records})
        elif chance < 0.85:
            do({"take": rng.choice(["due", "urgent"])})
            if driver.batch is not None:
                do({"reply": rng.choice(REPLIES)})
        elif chance < 0.94:
            do({"upgrade": declared(rng)})
        else:
            do({rng.choice(["opt_out", "erase", "restart"]): True})
            do({"opt_in": True})
        do({"ledger": ...})
    driver.state.close()
    about = "A random life."
    head = {"name": name, "about": about, "registry": document, "spread": HOUR}
    return {**head, "bytes": stream.drawn.hex(), "steps": steps}


@pytest.mark.usefixtures("packages")
def test_random_lives_are_the_same(tmp_path):
    """60 lives of 40 turns (seeds 0 to 59), with lost responses, erasures and upgrades of the
    registry: the TypeScript SDK does what Python's device did from the same random bytes."""
    lives = [live(seed, tmp_path / str(seed)) for seed in range(LIVES)]
    reports = sum(len(step.get("sealed", ())) for each in lives for step in each["steps"])
    assert reports > 5 * LIVES
    file = tmp_path / "transcripts.json"
    file.write_text(text(lives), encoding="utf-8")
    done = subprocess.run(
        ["node", "scripts/test.mjs", "transcripts"],
        cwd=WEB,
        env={**os.environ, "DENIABLE_TRANSCRIPTS": str(file)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    assert f"pass {LIVES}" in done.stdout
