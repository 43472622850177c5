"""What docs/server.md says: workers share one device, and of many requests one counts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path

import pytest

from deniable import Client, Registry
from deniable.sent_command import main as sent
from deniable.state import State

PAGE = (Path(__file__).parents[2] / "docs" / "server.md").read_text(encoding="utf-8")
WORKER, _, RANDOM = re.findall(r"```python\n(.*?)```", PAGE, re.S)
README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
BROWSER = README.partition("```toml\n")[2].partition("```")[0]


@pytest.mark.parametrize("preload", [[], ["--preload"]], ids=["imported", "preloaded"])
def test_workers_share_one_device(tmp_path: Path, preload: list[str]) -> None:
    """The page's web app under a real gunicorn with two workers, asked forty times, keeps one
    value for the day in one state, and the client works in each worker."""
    (tmp_path / "shop.py").write_text(
        WORKER.replace("https://t.acme.example", "http://127.0.0.1:9")
    )
    (tmp_path / "metrics.toml").write_text(BROWSER)
    environ = {k: v for k, v in os.environ.items() if k != "DO_NOT_TRACK"}
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "gunicorn", "shop:application", "--workers", "2", *preload),
            *("--bind", "127.0.0.1:0", "--no-control-socket", "--graceful-timeout", "10"),
        ],
        cwd=tmp_path,
        env=environ,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        address = ""
        while not address:
            line = process.stderr.readline()
            assert line, "gunicorn has ended"
            found = re.search(r"Listening at: (http://\S+)", line)
            address = found[1] if found else ""
        for _ in range(40):
            with urllib.request.urlopen(address, timeout=30) as response:
                assert response.read() == b"hello"
        deadline = time.monotonic() + 30
        while not list((tmp_path / "state").glob("*.sqlite3")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(1)  # a record reaches the disk within half a second
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    state = State(tmp_path / "state")
    with state.transaction() as connection:
        (waiting,) = connection.execute("SELECT count(*) FROM windows").fetchone()
    state.close()
    assert waiting == 1


def test_of_many_requests_one_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry of the page gives each of a day's requests the same chance. Of 400 days with
    nine requests, the last of which alone says "company", it is kept on 25 to 70: for a binomial
    with 400 and 1/9 that fails with probability below 2e-4 by chance (with `last`, always)."""
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    monkeypatch.delenv("DENIABLE_DISABLED", raising=False)
    text = RANDOM.partition('"""')[2].partition('"""')[0]
    registry = Registry.parse(text)
    kept: Counter[str] = Counter()
    for _ in range(400):
        state = State(None)
        client = Client(registry, state_dir=state, background=False)
        for plan in [*["free"] * 8, "company"]:
            client.record("plan", plan)
        client.flush()
        with state.transaction() as connection:
            (value,) = connection.execute("SELECT value FROM open_values").fetchone()
        kept[value] += 1
        client.close()
    assert set(kept) == {"free", "company"}
    assert 25 <= kept["company"] <= 70


def test_a_client_in_memory_for_each_request_has_no_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the page warns of is true: new clients in memory report ten times on one day, and one
    state reports once."""
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    monkeypatch.delenv("DENIABLE_DISABLED", raising=False)
    registry = Registry.parse(RANDOM.partition('"""')[2].partition('"""')[0])

    def reports(folder: str | Path) -> int:
        now = [1_800_000_000.0]
        found = 0
        for _ in range(10):
            client = Client(registry, state_dir=folder, clock=lambda: now[0], background=False)
            client.record("plan", "free")
            client.flush()
            if folder == ":memory:":
                now[0] += 86_400
                client.flush()
                now[0] -= 86_400
                found += len(client.sent())
            client.close()
        return found

    assert reports(":memory:") == 10
    reports(tmp_path)
    later = Client(
        registry, state_dir=tmp_path, clock=lambda: 1_800_000_000.0 + 86_400, background=False
    )
    later.flush()
    later.close()
    assert sent(["--state-dir", str(tmp_path), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["reports"]) == 1
