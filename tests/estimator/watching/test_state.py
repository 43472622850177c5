"""What was told already, in its file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from deniable_estimator.watching.state import ToldFinding, WatchState, WatchStateError


def test_a_state_survives_its_file(tmp_path: Path) -> None:
    """What is saved is loaded again; a file that is not there is an empty state."""
    path = tmp_path / "state"
    assert WatchState.load(path) == WatchState()
    state = WatchState({"m": "2026-11-02"}, {"m/few/": ToldFinding("2026-11-02", 1.0, 2.0)})
    state.save(path)
    assert WatchState.load(path) == state
    assert os.listdir(tmp_path) == ["state"]  # noqa: PTH208


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": 2, "judged": {}, "told": {}}',
        '{"schema": 1, "judged": {"m": "someday"}, "told": {}}',
        '{"schema": 1, "judged": {}, "told": {"m/few/": {}}}',
        "[" * 100_000,
        "\xff",
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    """The error says what to do, and the file is left as it is."""
    path = tmp_path / "state"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(WatchStateError, match=r"restore it from a backup, or remove it"):
        WatchState.load(path)
    assert path.read_bytes() == text.encode("latin-1")


def test_a_part_of_a_file_is_refused(tmp_path: Path) -> None:
    """No prefix of a state is taken for a state."""
    path = tmp_path / "state"
    WatchState({"m": "2026-11-02"}, {"m/few/": ToldFinding("2026-11-02", 1.0, 2.0)}).save(path)
    text = path.read_text()
    json.loads(text)
    for length in range(0, len(text) - 1, 7):
        path.write_text(text[:length])
        with pytest.raises(WatchStateError):
            WatchState.load(path)


def test_what_ended_long_ago_is_forgotten() -> None:
    """After 90 days a finding is dropped, unless a channel still waits for it."""
    day = 86_400.0
    old = ToldFinding("2026-01-01", 0.0, 0.0, 0.0)
    waiting = ToldFinding("2026-01-01", 0.0, 0.0, 0.0, ["ops"], {})
    active = ToldFinding("2026-01-01", 0.0, 0.0)
    state = WatchState(told={"a/few/": old, "b/few/": waiting, "c/few/": active})
    state.forget(90 * day)
    assert len(state.told) == 3
    state.forget(90 * day + 1)
    assert set(state.told) == {"b/few/", "c/few/"}
