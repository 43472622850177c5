"""What `pip install deniable` brings: the built wheel in a bare environment."""

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from .conftest import metrics_toml

pytestmark = pytest.mark.campaign
ROOT = Path(__file__).parents[2]

DRINKS = ["tea", "coffee", "water", "milk", "other"]
REGISTRY = metrics_toml(drink={"type": "category", "values": DRINKS})


def run(*command):
    return subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, text=True, timeout=300
    ).stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory):
    """The interpreter of an environment that holds the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "-q", "install", "-c", ROOT / "constraints.txt", wheel)
    return python


def test_the_sdk_brings_mmh3_and_nothing_else(bare):
    """Beside pip's own tools, the environment holds deniable and mmh3."""
    listed = json.loads(run(bare, "-m", "pip", "list", "--format", "json"))
    names = {package["name"] for package in listed} - {"pip", "setuptools"}
    assert names == {"deniable", "mmh3"}


def test_the_owner_needs_no_extra(bare, tmp_path):
    """`deniable sent` of the wheel alone shows, in words and as JSON, what a device has sealed."""
    (tmp_path / "metrics.toml").write_text(REGISTRY)
    run(
        bare,
        "-c",
        "import deniable\n"
        "now = [1.8e9]\n"
        f"client = deniable.Client('{tmp_path}/metrics.toml', state_dir='{tmp_path}/state',\n"
        "    clock=lambda: now[0], background=False, consent=True)\n"
        "client.record('drink', 'tea')\n"
        "client.flush()\n"
        "now[0] += 86400\n"
        "client.flush()\n"
        "print(client.sent()[0])\n",
    )
    command = bare.parent / "deniable"
    text = run(command, "sent", "--state-dir", tmp_path / "state")
    assert text.startswith("2027-01-15, drink (queued): your device")
    document = json.loads(run(command, "sent", "--state-dir", tmp_path / "state", "--json"))
    assert [report["metric"] for report in document["reports"]] == ["drink"]
    assert "--erase" in run(command, "sent", "--help")


def test_the_wheel_holds_types_and_no_tests(wheel):
    """Every package of the wheel is typed, and nothing else is shipped."""
    names = zipfile.ZipFile(wheel).namelist()
    packages = {name.partition("/")[0] for name in names if ".dist-info" not in name}
    assert packages == {"deniable", "deniable_collector", "deniable_estimator", "deniable_demo"}
    for package in packages:
        assert f"{package}/py.typed" in names
    assert "deniable/protocol/compiled.schema.json" in names
