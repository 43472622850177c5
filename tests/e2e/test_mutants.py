"""A small sample of what `make mutants` does."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_faults_in_mechanisms_are_noticed():
    """Of 20 faults in the mechanisms, the client's fast tests notice at least 10. Where they notice
    90% of all, a sample has fewer less than once in a million times."""
    command = [sys.executable, "-m", "tests.mutants", "deniable/protocol/mechanisms/"]
    command += ["--tests", "tests/client", "--sample", "20", "--seed", "1"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False
    )
    found = re.search(r"^\| all \| 20 \| (\d+) \|", done.stdout, re.M)
    assert found is not None, done.stdout + done.stderr
    assert int(found[1]) >= 10, done.stdout
