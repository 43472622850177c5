"""A small sample of what `make mutants` does."""

import os
import re
import sys
from pathlib import Path

from .running import ran

ROOT = Path(__file__).parents[2]


def test_faults_in_mechanisms_are_noticed():
    """Of 20 faults in the mechanisms, the client's fast tests notice at least 10. Where they notice
    90% of all, a sample has fewer less than once in a million times."""
    command = [sys.executable, "-m", "tests.mutants", "deniable/protocol/mechanisms/"]
    command += ["--tests", "tests/client", "--sample", "20", "--seed", "1"]
    done = ran(command, ROOT, os.environ, 1200)
    found = re.search(r"^\| all \| 20 \| (\d+) \|", done.stdout, re.M)
    assert found is not None, done.stdout + done.stderr
    assert int(found[1]) >= 10, done.stdout
