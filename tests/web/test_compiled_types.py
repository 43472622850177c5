"""TypeScript knows the names and values of a compiled registry, from a module or from JSON."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from deniable.compile_command import compile_registry

ROOT = Path(__file__).parents[2]
TSC = ROOT / "client" / "web" / "node_modules" / ".bin" / "tsc"

REGISTRY = """
schema = 1
app = "editor"
[metrics.browser]
type = "category"
description = "The browser in use."
owner = "growth@acme.example"
expires = 2027-06-30
values = ["firefox", "chrome", "other"]
epsilon = 1.0
lifetime_epsilon = 8.0
platform = "web"
"""

PROGRAM = """
import json from "./metrics.json" with { type: "json" };
import module from "./module.js";
type Registry = { readonly metrics: Record<string, { readonly values: readonly string[] }> };
type Value<R extends Registry, N extends keyof R["metrics"]> = R["metrics"][N]["values"][number];
export const kinds: ["category", "category"] = [
  json.metrics.browser.type,
  module.metrics.browser.type,
];
export const first: Value<typeof json, "browser"> = "FIRST";
export const second: Value<typeof module, "browser"> = "SECOND";
"""


@pytest.fixture
def check(
    npm_script: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Type-checks the program with two values, and returns what the compiler says."""
    if not TSC.exists():
        npm_script("check")  # installs what the SDK needs
    monkeypatch.chdir(tmp_path)
    (tmp_path / "metrics.toml").write_text(REGISTRY)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    for arguments in (["-o", "metrics.json", "--types"], ["-o", "module.ts"]):
        assert CliRunner().invoke(compile_registry, arguments).exit_code == 0

    def run(first: str, second: str, module: str, resolution: str, *options: str) -> str:
        (tmp_path / "program.ts").write_text(
            PROGRAM.replace("FIRST", first).replace("SECOND", second)
        )
        done = subprocess.run(
            [
                *(TSC, "--noEmit", "--strict", "--target", "es2022", "--module", module),
                *("--moduleResolution", resolution, *options, "program.ts"),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode == 0) == (done.stdout == "")
        return done.stdout

    return run


@pytest.mark.parametrize(("module", "resolution"), [("esnext", "bundler"), ("nodenext",) * 2])
def test_the_compiler_checks_values(
    check: Callable[..., str], module: str, resolution: str
) -> None:
    """A declared value passes and another one does not, both from the module and from the JSON with
    the declaration beside it, under the setting that the page on the SDK names."""
    page = (ROOT / "docs" / "sdk.md").read_text(encoding="utf-8")
    assert "`allowArbitraryExtensions`" in page
    setting = "--allowArbitraryExtensions"
    assert check("firefox", "other", module, resolution, setting) == ""
    for values in (("netscape", "chrome"), ("chrome", "netscape")):
        said = check(*values, module, resolution, setting)
        assert said.count("error TS2322") == said.count("error") == 1
        assert '"netscape"' in said
