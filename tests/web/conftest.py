"""The TypeScript SDK's npm scripts, and npm packages that tests need."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.tools import need

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def node() -> str:
    """The path of Node; its tests are skipped where it is missing."""
    need("node", "npm")
    program = shutil.which("node")
    assert program is not None
    return program


@pytest.fixture(scope="session")
def packages(node: str) -> None:
    """The npm packages of client/web."""
    command = [ROOT / ".ci" / "packages", ROOT / "client" / "web"]
    subprocess.run(command, check=True, capture_output=True, timeout=180)


@pytest.fixture(scope="session")
def npm_script(node: str) -> Callable[[str], str]:
    """Runs an npm script of client/web, and returns what it printed."""

    def run(script: str) -> str:
        done = subprocess.run(
            [ROOT / ".ci" / "web", script], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def built(npm_script: Callable[[str], str]) -> Path:
    """The folder of a fresh build."""
    npm_script("build")
    return ROOT / "client/web/dist"
