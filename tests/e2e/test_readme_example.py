"""The README's own metrics.toml works for a new user: a crowd of some thousand devices, and
something to see on the next day."""

from __future__ import annotations

import json
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from deniable import Client, Registry
from deniable.commands import lint
from deniable.replies import Reply
from deniable_estimator.terminal.plan_command import plan

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
TEXT = README.partition("```toml\n")[2].partition("```")[0]
DAY = 86_400


class Collector:
    """A transport that notes when each batch arrives, and acknowledges it."""

    def __init__(self, now: list[float]) -> None:
        self.now = now
        self.arrived: list[float] = []

    def send(self, body: bytes) -> Reply:
        batch = json.loads(body)
        self.arrived.append(self.now[0])
        counts = {"accepted": len(batch["reports"]), "duplicate": 0, "rejected": []}
        return Reply(202, json.dumps({"batch": batch["batch"], **counts}).encode())


def test_a_device_sends_within_two_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every one of 50 new devices, installed at any hour, has sent its first report two days
    later at the latest. By the old example (a coin of 2% a day) a single device would do so
    with probability .04, so this would pass with probability 1e-70."""
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    monkeypatch.delenv("DENIABLE_DISABLED", raising=False)
    registry = Registry.parse(TEXT)
    (metric,) = registry
    assert not metric.needs_candidates
    noon = datetime(2027, 1, 4, 12, tzinfo=UTC).timestamp()
    for device in range(50):
        installed = noon + device * DAY / 50
        now = [installed]
        collector = Collector(now)
        client = Client(
            registry,
            state_dir=tmp_path / str(device),
            transport=collector,
            clock=lambda now=now: now[0],  # type: ignore[misc]
            background=False,
        )
        while now[0] < installed + 2 * DAY:
            client.record(metric.name, metric.values[0])
            client.flush()
            now[0] += DAY / 4
        client.close()
        assert collector.arrived
        assert collector.arrived[0] - installed <= 2 * DAY


def run(command: Any, *words: object) -> Any:
    done = CliRunner().invoke(command, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done


def test_its_crowd_sees_a_sensible_share(tmp_path: Path) -> None:
    """The crowd that the example states is at most 10,000 devices; in one window `deniable plan`
    lets it see a share of 2.5% or less, and `deniable lint` has no warning."""
    path = tmp_path / "metrics.toml"
    path.write_text(TEXT, encoding="utf-8")
    (declared,) = tomllib.loads(TEXT)["metrics"].values()
    assert declared["devices"] <= 10_000
    found = json.loads(run(lint, path, "--json").stdout)["problems"]
    assert [each for each in found if each["severity"] != "note"] == []
    words = ["--size", len(declared["values"]), "--epsilon", declared["epsilon"]]
    words += ["--devices", declared["devices"], "--sample-rate", declared.get("sample_rate", 1)]
    if declared.get("longitudinal") == "memoize":
        words += ["--memoize", "--lifetime-epsilon", declared["memo_epsilon"]]
    seen = json.loads(run(plan, *words, "--json").stdout)
    assert seen["usable"]
    assert seen["detectable_share"] <= 0.025


def test_its_list_may_be_edited(tmp_path: Path) -> None:
    """A new user who adds a value on the next day stops no device."""
    before, after = tmp_path / "before.toml", tmp_path / "after.toml"
    before.write_text(TEXT, encoding="utf-8")
    after.write_text(TEXT.replace('"other"]', '"opera", "other"]'), encoding="utf-8")
    assert before.read_text() != after.read_text()
    told = run(lint, after, "--since", before).stderr
    assert "devices go on reporting" in told
    assert "stops for good" not in told
