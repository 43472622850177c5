"""The TypeScript SDK: its own tests, its sizes, and what it has in common with the Python SDK."""

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("client/web", "tests/e2e")
"""The folders with npm packages."""


def test_its_own_tests_pass(npm_script):
    """Every test under client/web/test passes; Node's runner names those that do not."""
    printed = npm_script("test")
    assert re.search(r"^\S* ?fail 0$", printed, re.MULTILINE), printed


def test_the_entries_are_small(npm_script):
    """Minified and gzipped, the closed entry has at most 6,200 bytes, with memos 9,100, the full
    one 10,000; the parts stay within their own limits."""
    found = re.findall(
        r"^(\S+): \d+ bytes minified, (\d+) gzipped, limit (\d+)$",
        npm_script("size"),
        re.MULTILINE,
    )
    limits = {name: int(limit) for name, _, limit in found}
    entries = ("deniable.closed", "deniable.memoized", "deniable")
    assert [limits[each] for each in entries] == [6_200, 9_100, 10_000]
    assert all(int(size) <= int(limit) for _, size, limit in found)


def test_both_sdks_have_one_version():
    """The npm package and the Python distribution are released under one version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    package = json.loads((ROOT / "client/web/package.json").read_text(encoding="utf-8"))
    assert (package["name"], package["version"]) == (project["name"], project["version"])


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_address_of_a_registry(folder):
    """No lock file and no .npmrc names where packages come from, and each version is exact."""
    for name in ("package-lock.json", ".npmrc"):
        text = (ROOT / folder / name).read_text(encoding="utf-8")
        assert re.search(r"https?:|registry *=|\"resolved\"", text) is None, name
    lock = json.loads((ROOT / folder / "package-lock.json").read_text(encoding="utf-8"))
    package = json.loads((ROOT / folder / "package.json").read_text(encoding="utf-8"))
    assert lock["packages"][""]["devDependencies"] == package["devDependencies"]
    for version in package["devDependencies"].values():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version)


def test_nothing_is_needed_at_run_time():
    """The npm package has no dependencies but those of its developers."""
    package = json.loads((ROOT / "client/web/package.json").read_text(encoding="utf-8"))
    assert not {"dependencies", "peerDependencies", "optionalDependencies"} & set(package)
