"""Every snippet of docs/tutorial/web-page.md: read, type-checked or run."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from deniable import Registry
from deniable.tools.compile_command import compile_registry, web_files

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs/tutorial/web-page.md").read_text(encoding="utf-8")


def snippets(language):
    found = re.findall(r"^```(\w*)\n(.*?)^```$", DOCS, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


(TOML,) = snippets("toml")


@pytest.fixture
def project(built, tmp_path):
    """An app of somebody else, with the npm package and the compiled registry of the docs."""
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/deniable").symlink_to(ROOT / "client/web")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "metrics.toml").write_text(TOML, encoding="utf-8")
    output = tmp_path / "src/metrics.ts"
    output.parent.mkdir()
    done = CliRunner().invoke(compile_registry, [str(tmp_path / "metrics.toml"), "-o", str(output)])
    assert done.exit_code == 0, done.output
    return tmp_path


def test_the_languages_are_known():
    """No snippet has a language that no test here reads."""
    languages = set(re.findall(r"^```(\w*)$", DOCS, re.MULTILINE))
    assert languages == {"", "html", "js", "toml", "ts"}


def test_the_snippets_have_right_types(project):
    """Each TypeScript snippet passes the strict compiler in an app of its own, with the mistakes
    that it marks as such."""
    prelude = """
    import type { Client as Known } from "deniable";
    import type registry from "./metrics";
    declare global {
      const settings: { telemetryAllowed: boolean };
      const telemetry: Known<typeof registry>;
      const metrics: typeof registry;
      const Client: typeof import("deniable").Client;
    }
    """
    (project / "src/prelude.d.ts").write_text(prelude)
    for number, text in enumerate(snippets("ts")):
        (project / f"src/snippet{number}.ts").write_text(f"{text}\nexport {{}};\n")
    options = {
        "target": "ES2022",
        "module": "ESNext",
        "moduleResolution": "Bundler",
        "lib": ["ES2022", "DOM"],
        "types": [],
        "strict": True,
        "noEmit": True,
    }
    config = {"compilerOptions": options, "include": ["src"]}
    (project / "tsconfig.json").write_text(json.dumps(config))
    done = subprocess.run(
        [ROOT / "client/web/node_modules/.bin/tsc", "-p", "."],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_server_snippet_runs(project, node):
    """The snippet for a server records and ends in Node, without a trouble but that its collector
    does not exist."""
    (text,) = (each for each in snippets("ts") if "memoryStore" in each)
    text = text.replace("https://t.acme.example", "http://127.0.0.1:9")
    text += (
        "if ((await telemetry.sent()).length !== 1) throw new Error(telemetry.status);\n"
        "console.log(telemetry.status, Object.keys(telemetry.counters).join());\n"
    )
    (project / "src/server.ts").write_text(text.replace('"./metrics"', '"./metrics.ts"'))
    esbuild = ROOT / "client/web/node_modules/.bin/esbuild"
    bundle = [esbuild, "src/server.ts", "--bundle", "--platform=node", "--format=esm"]
    subprocess.run([*bundle, "--outfile=server.mjs", "--log-level=error"], cwd=project, check=True)
    done = subprocess.run(
        [node, "server.mjs"], cwd=project, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == ["closed", "network"], done.stdout + done.stderr


def test_the_script_snippets_run(node):
    """The files that the tags name exist, and the script makes a client that takes the record."""
    registry = Registry.parse(TOML)
    files = web_files(registry)
    (tags,) = snippets("html")
    assert re.findall(r'src="/static/([^"]+)"', tags) == ["deniable.min.js", "app.js"]
    assert "deniable.min.js" in files
    (app,) = snippets("js")
    program = f"""
    const localStorage = {{ getItem: () => "no" }};
    {files["deniable.min.js"].decode()}
    {app}
    console.log(telemetry.status, JSON.stringify(telemetry.counters));
    """
    done = subprocess.run(
        [node, "-e", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == ["no_consent", "{}"], done.stdout + done.stderr


def test_the_policy_is_the_tested_one():
    """The Content Security Policy of the docs is that of the browser tests, but for the address."""
    (policy,) = (each for each in snippets("") if each.startswith("Content-Security-Policy"))
    harness = (ROOT / "tests/e2e/web/harness.mjs").read_text(encoding="utf-8")
    told = policy.strip().removeprefix("Content-Security-Policy: ")
    assert told.replace("https://t.acme.example", "${endpoint}") in harness
