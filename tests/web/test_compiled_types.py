"""TypeScript knows the names and values of a registry that was compiled as a module."""

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
import module from "./module.js";
type Registry = { readonly metrics: Record<string, { readonly values: readonly string[] }> };
type Value<R extends Registry, N extends keyof R["metrics"]> = R["metrics"][N]["values"][number];
export const kind: "category" = module.metrics.browser.type;
export const value: Value<typeof module, "browser"> = "VALUE";
"""


@pytest.fixture
def check(
    npm_script: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Type-checks the program with a value, and returns what the compiler says."""
    if not TSC.exists():
        npm_script("check")  # installs what the SDK needs
    monkeypatch.chdir(tmp_path)
    (tmp_path / "metrics.toml").write_text(REGISTRY)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    assert CliRunner().invoke(compile_registry, ["-o", "module.ts"]).exit_code == 0

    def run(value: str, module: str, resolution: str) -> str:
        (tmp_path / "program.ts").write_text(PROGRAM.replace("VALUE", value))
        done = subprocess.run(
            [
                *(TSC, "--noEmit", "--strict", "--target", "es2022", "--module", module),
                *("--moduleResolution", resolution, "program.ts"),
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
    """A declared value passes and another one does not."""
    assert check("firefox", module, resolution) == ""
    said = check("netscape", module, resolution)
    assert said.count("error TS2322") == said.count("error") == 1
    assert '"netscape"' in said
