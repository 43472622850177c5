"""The project has one name: the one that it had before is another project's, and is gone."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
BEFORE = "hear" + "say"


def test_the_former_name_is_nowhere() -> None:
    """No file that is tracked, or would be, holds the former name, in its path or its bytes."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = [name for name in listed.split("\0") if name and (ROOT / name).exists()]
    assert len(names) > 400
    assert [name for name in names if BEFORE in name.lower()] == []
    former = BEFORE.encode()
    assert [name for name in names if former in (ROOT / name).read_bytes().lower()] == []
