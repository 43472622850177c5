"""The audit of pinned packages, against a stand-in for pip-audit: the real one needs a service that
cannot be made to know a vulnerability."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.campaign

SCRIPT = Path(__file__).parents[2] / ".ci" / "audit.py"
GOOD = {"name": "good", "version": "1", "vulns": []}
BAD = {"name": "bad", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["3"]}]}
UNKNOWN = {"name": "odd", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("says", "required", "status", "words"),
    [
        ([GOOD], "1", 0, "1 of 1 packages checked, 0 vulnerable"),
        ([GOOD, BAD], "", 1, "bad 2: CVE-1, fixed by 3"),
        ([GOOD, UNKNOWN], "", 0, "not checked: odd"),
        ([GOOD, UNKNOWN], "1", 1, "not checked: odd"),
        ([UNKNOWN], "", 0, "knows none of them"),
        ([UNKNOWN], "1", 1, "knows none of them"),
        (None, "", 0, "cannot be reached: no such host"),
        (None, "1", 1, "cannot be reached: no such host"),
    ],
)
def test_an_audit(tmp_path, says, required, status, words):
    """A vulnerability fails; what was not looked up is said, and fails only where required."""
    answer = None if says is None else json.dumps({"dependencies": says})
    stand_in = f"import sys; sys.exit('no such host') if {answer is None} else print({answer!r})"
    (tmp_path / "pip_audit.py").write_text(stand_in)
    done = subprocess.run(
        [sys.executable, SCRIPT, "constraints.txt"],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "DENIABLE_REQUIRE_AUDIT": required},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, words in done.stdout) == (status, True), done.stdout + done.stderr
