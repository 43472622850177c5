"""The built SDK that the Python package ships."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from deniable.web_command import CLOSED

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "client/deniable/web"


def test_it_is_what_the_sources_give(npm_script: Callable[[str], str]) -> None:
    """A fresh build has the bytes of the files that are shipped; `make web` renews them."""
    npm_script("build")
    fresh = {each.name: each.read_bytes() for each in (ROOT / "client/web/dist").glob("*.js")}
    assert fresh == {each.name: each.read_bytes() for each in SHIPPED.iterdir()}


def test_the_small_build_has_these_mechanisms() -> None:
    """`deniable web` takes the small build for exactly the mechanisms that it has."""
    source = (ROOT / "client/web/src/parts_closed.ts").read_text(encoding="utf-8")
    listed = re.search(r"mechanisms: \{(.*?)\}", source, re.DOTALL)
    assert listed is not None
    assert set(re.findall(r"(\w+):", listed[1])) == CLOSED


@pytest.mark.parametrize("name", ["deniable.js", "deniable.closed.js"])
def test_no_way_around_a_policy(name: str) -> None:
    """The code needs no eval and no inline script or style, and names no address."""
    for each in (name, name.replace(".js", ".min.js")):
        text = (SHIPPED / each).read_text(encoding="utf-8")
        assert re.search(r"\beval\b|new Function|innerHTML|\.style\b|https?://[a-z]", text) is None


def test_the_script_sets_one_name(node: str) -> None:
    """The file for a <script> tag adds `deniable` to a page, and no other name."""
    program = """
    const fs = require("fs"), vm = require("vm");
    const page = vm.createContext({});
    const before = new Set(vm.runInContext("Object.getOwnPropertyNames(globalThis)", page));
    vm.runInContext(fs.readFileSync(process.argv[1], "utf8"), page);
    const names = vm.runInContext("Object.getOwnPropertyNames(globalThis)", page);
    console.log(names.filter((each) => !before.has(each)).join());
    """
    for path in SHIPPED.glob("*.min.js"):
        done = subprocess.run(
            [node, "-e", program, path], capture_output=True, text=True, check=False
        )
        assert done.stdout.strip() == "deniable", done.stderr
