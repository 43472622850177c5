"""The TypeScript SDK's npm scripts, and npm packages that tests need."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.tools import need

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def node():
    """The path of Node; its tests are skipped where it is missing."""
    need("node", "npm")
    program = shutil.which("node")
    assert program is not None
    return program


@pytest.fixture(scope="session")
def packages(node):
    """The npm packages of client/web."""
    command = [ROOT / ".ci" / "packages", ROOT / "client" / "web"]
    subprocess.run(command, check=True, capture_output=True, timeout=180)


@pytest.fixture(scope="session")
def npm_script(node):
    """Runs an npm script of client/web, and returns what it printed."""

    def run(script):
        done = subprocess.run(
            [ROOT / ".ci" / "web", script], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def built(npm_script):
    """The folder of a fresh build."""
    npm_script("build")
    return ROOT / "client/web/dist"
