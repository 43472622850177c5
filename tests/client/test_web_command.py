"""`deniable compile web`: the files that a page needs."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import deniable
from deniable import Registry
from deniable.tools.compile_command import web

from . import compiled_cases
from .conftest import metrics_toml

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
BROWSERS = {"type": "category", "values": ["firefox", "chrome", "other"]}
CLOSED = metrics_toml(browser={**BROWSERS, "lifetime_epsilon": 8.0})
MEMOS = metrics_toml(
    browser={**BROWSERS, "longitudinal": "memoize", "lifetime_epsilon": 8.0},
)
TEXTS = metrics_toml(browser={"type": "string"})
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
    ("text", "flags", "build", "parts"),
    [
        (CLOSED, (), "deniable.closed", ()),
        (MEMOS, (), "deniable.memoized", ()),
        (TEXTS, (), "deniable", ()),
        (WHOLE, (), "deniable", ("memos",)),
        (compiled_cases.SEGMENTED, (), "deniable", ("joint", "memos")),
        (CLOSED, ("--development",), "deniable.development", ()),
        (CLOSED, ("--oblivious",), "deniable", ("oblivious",)),
        (WHOLE, ("--oblivious", "--development"), "deniable.development", ()),
    ],
)
def test_the_files_hold_sdk_and_registry(run, tmp_path, text, flags, build, parts):
    """Folders are made; the registry is the compiled one in each form; a registry of booleans
    and categories gets the small entry, any other the full one with the parts that it needs, in
    the script and as modules that the registry's own loads; options ask for the build that
    explains mistakes, which has all parts, or for the part that sends in two hops."""
    done = run(text, "--out", "public/static", *flags)
    assert done.exit_code == 0, done.output
    folder = tmp_path / "public/static"
    modules = [f"deniable.{part}.js" for part in parts]
    assert sorted(each.name for each in folder.iterdir()) == sorted(NAMES + modules)
    integrity = json.loads((folder / "integrity.json").read_bytes())["files"]
    assert sorted([*integrity, "integrity.json"]) == sorted(NAMES + modules)
    document = Registry.load(tmp_path / "metrics.toml").compile()
    assert json.loads((folder / "metrics.json").read_bytes()) == document
    *imports, module = (folder / "metrics.js").read_text(encoding="utf-8").splitlines()
    assert [each.rpartition('"./')[2] for each in imports] == [f'{each}";' for each in modules]
    brought = f",parts:{{{','.join(parts)}}}}}" if parts else "}"
    compact = module.removeprefix("export default ").removesuffix(f"{brought};") + "}"
    assert json.loads(compact) == document
    scripts = [
        (BUILT / f"{each}.min.js").read_text() for each in (build, *(m[:-3] for m in modules))
    ]
    script = (folder / "deniable.min.js").read_text(encoding="utf-8")
    assert script.startswith("".join(scripts))
    registry, _, rest = script.removeprefix("".join(scripts)).partition("\n")
    assert json.loads(registry.removeprefix("deniable.metrics=").removesuffix(";")) == document
    assert rest == ("deniable.metrics.parts=deniable.parts;\n" if parts else "")
    for name in ("deniable.js", *modules):
        source = f"{build}.js" if name == "deniable.js" else name
        assert (folder / name).read_bytes() == (BUILT / source).read_bytes()


def test_a_mechanism_that_the_web_lacks_is_named(run, tmp_path):
    """Nothing is written, and the metric and its line are told."""
    text = CLOSED + 'mechanism = "hadamard_response"\n'
    done = run(text, "--out", "static")
    assert done.exit_code == 1
    assert "metrics.toml:12: error: metrics.browser.mechanism: is hadamard_response" in done.output
    assert not (tmp_path / "static").exists()


def test_mistakes_are_named(run, tmp_path):
    """A registry with mistakes writes nothing and exits 1 with each line; a folder that cannot be
    made is named; --out is needed."""
    done = run(CLOSED.replace("epsilon = 1.0", "epsilon = -1.0", 1), "--out", "static")
    assert done.exit_code == 1
    assert "metrics.toml:9: error: metrics.browser.epsilon" in done.output
    assert not (tmp_path / "static").exists()
    (tmp_path / "taken").write_text("")
    done = run(CLOSED, "--out", "taken/static")
    assert done.exit_code == 1
    assert "taken/static cannot be written" in done.output
    assert run(CLOSED).exit_code == 2
