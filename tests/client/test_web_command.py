"""`deniable compile web`: the files that a page needs."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import deniable
from deniable import Registry, compiled
from deniable.web_command import web

from . import compiled_cases

NAMES = [
    "deniable.js",
    "deniable.min.js",
    "deniable.owner.js",
    "deniable.owner.min.js",
    "integrity.json",
    "metrics.js",
    "metrics.json",
]
BUILT = Path(deniable.__file__).parent / "web"
CLOSED = """
schema = 1
app = "shop"
[metrics.browser]
type = "category"
values = ["firefox", "chrome", "other"]
description = "The browser."
owner = "growth@acme.example"
expires = 2999-06-30
epsilon = 1.0
lifetime_epsilon = 8.0
"""
WHOLE = compiled_cases.REGISTRY.replace('mechanism = "symmetric_unary_encoding"\n', "")
"""Without the mechanism that the SDK for web pages does not have."""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs the command on a registry, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(text, *arguments):
        Path("metrics.toml").write_text(text, encoding="utf-8")
        return CliRunner().invoke(web, arguments)

    return run


@pytest.mark.parametrize(
    ("text", "flags", "build"),
    [
        (CLOSED, (), "deniable.closed"),
        (WHOLE, (), "deniable"),
        (compiled_cases.SEGMENTED, (), "deniable.joint"),
        (CLOSED, ("--development",), "deniable.development"),
        (CLOSED, ("--oblivious",), "deniable.oblivious"),
        (WHOLE, ("--oblivious", "--development"), "deniable.oblivious.development"),
    ],
)
def test_the_files_hold_sdk_and_registry(run, tmp_path, text, flags, build):
    """Folders are made; the registry is the compiled one in each form; a registry of booleans
    and categories gets the small build, one with segments that which tells them, any other the
    whole one; options ask for the build that explains mistakes or sends in two hops."""
    done = run(text, "--out", "public/static", *flags)
    assert done.exit_code == 0, done.output
    folder = tmp_path / "public/static"
    assert sorted(each.name for each in folder.iterdir()) == NAMES
    document = compiled.to_document(Registry.load(tmp_path / "metrics.toml"))
    assert json.loads((folder / "metrics.json").read_bytes()) == document
    module = (folder / "metrics.js").read_text(encoding="utf-8")
    assert json.loads(module.removeprefix("export default ").removesuffix(";\n")) == document
    script = (folder / "deniable.min.js").read_text(encoding="utf-8")
    sdk = (BUILT / f"{build}.min.js").read_text(encoding="utf-8")
    assert script.startswith(sdk)
    registry = script.removeprefix(sdk).removeprefix("deniable.metrics=").removesuffix(";\n")
    assert json.loads(registry) == document
    assert (folder / "deniable.js").read_bytes() == (BUILT / f"{build}.js").read_bytes()


def test_a_mechanism_that_the_web_lacks_is_named(run, tmp_path):
    """Nothing is written, and the metric and its line are told."""
    text = CLOSED + 'mechanism = "hadamard_response"\n'
    done = run(text, "--out", "static")
    assert done.exit_code == 1
    assert "metrics.toml:4: error: metrics.browser.mechanism: is hadamard_response" in done.output
    assert not (tmp_path / "static").exists()


def test_mistakes_are_named(run, tmp_path):
    """A registry with mistakes writes nothing and exits 1 with each line; a folder that cannot be
    made is named; --out is needed."""
    done = run(CLOSED.replace("epsilon = 1.0", "epsilon = -1.0", 1), "--out", "static")
    assert done.exit_code == 1
    assert "metrics.toml:10: error: metrics.browser.epsilon" in done.output
    assert not (tmp_path / "static").exists()
    (tmp_path / "taken").write_text("")
    done = run(CLOSED, "--out", "taken/static")
    assert done.exit_code == 1
    assert "taken/static cannot be written" in done.output
    assert run(CLOSED).exit_code == 2
