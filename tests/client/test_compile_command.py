"""`deniable compile`: what it writes, what it refuses, and how it exits."""

import json

import pytest
from click.testing import CliRunner

from deniable import Registry, RegistryError
from deniable.tools.compile_command import compile_registry

from . import compiled_cases
from .conftest import metrics_toml


@pytest.fixture
def toml(tmp_path):
    """A registry with every kind of metric."""
    path = tmp_path / "metrics.toml"
    path.write_text(compiled_cases.REGISTRY, encoding="utf-8")
    return path


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs the command in the folder of the registry."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(
        compile_registry, [str(each) for each in arguments]
    )


def test_it_prints_or_writes_the_same(run, toml, tmp_path):
    """Without -o the JSON is printed; with it, the file has the same bytes, in UTF-8."""
    printed = run()
    assert printed.exit_code == 0
    written = run(toml, "-o", "metrics.json")
    data = (tmp_path / "metrics.json").read_bytes()
    assert data == printed.stdout.encode()
    assert written.exit_code == 0
    assert written.output == f"metrics.json: 11 metrics, {len(data):,} bytes\n"
    assert printed.stdout.endswith("}\n")
    assert "søk" in printed.stdout
    assert json.loads(printed.stdout)["metrics"].keys() == Registry.load(toml).metrics.keys()


def test_a_module_holds_the_same_document(run, toml, tmp_path):
    """`-o metrics.ts` writes the JSON as a constant."""
    assert run(toml, "-o", "metrics.ts").exit_code == 0
    assert run(toml, "-o", "metrics.json").exit_code == 0
    text = (tmp_path / "metrics.json").read_text(encoding="utf-8").rstrip()
    module = (tmp_path / "metrics.ts").read_text(encoding="utf-8")
    assert module.partition("\n")[2] == f"export default {text} as const;\n"


def test_a_check_compares(run, toml):
    """--check tells whether the file is missing, another, or up to date."""
    asked = (toml, "-o", "m.ts", "--check")
    assert "m.ts is missing" in run(*asked).output
    run(toml, "-o", "m.ts")
    assert run(*asked).output == "m.ts is up to date\n"
    (toml.parent / "m.ts").write_text("")
    other = run(*asked)
    assert (other.exit_code, "m.ts is not up to date" in other.output) == (1, True)


@pytest.mark.parametrize(
    "arguments",
    [("-o", "metrics.yaml"), ("--check",)],
)
def test_options_that_do_not_fit_are_refused(run, toml, arguments):
    """Another suffix and a comparison with nothing are refused."""
    result = run(toml, *arguments)
    assert result.exit_code == 2
    assert not [path for path in toml.parent.iterdir() if path != toml]


def test_what_a_collector_needs_is_left_out_unless_asked(tmp_path):
    """`keep` is for collectors: without --keep a registry compiles to the same bytes as without
    it, and with --keep a reader finds it; the scheme is the same in all cases."""
    text = metrics_toml(dark={"lifetime_epsilon": 7.0})
    plain, kept = tmp_path / "plain.toml", tmp_path / "kept.toml"
    plain.write_text(text, encoding="utf-8")
    kept.write_text(f'{text}keep = {{ day = "90 days", month = "forever" }}\n', encoding="utf-8")
    outputs = [
        CliRunner().invoke(compile_registry, [str(path), *more]).stdout
        for path, more in ((plain, ()), (kept, ()), (kept, ("--keep",)))
    ]
    assert outputs[0] == outputs[1] != outputs[2]
    (tmp_path / "metrics.json").write_text(outputs[2], encoding="utf-8")
    read = Registry.load(tmp_path / "metrics.json")["dark"]
    assert read.keep == (("day", 90), ("month", None))
    assert read.scheme.fingerprint == Registry.load(plain)["dark"].scheme.fingerprint
    document = json.loads(outputs[2])
    for wrong in ({}, {"day": 7}, {"week": "soon"}, {"day": 90, "month": 60}, 5):
        document["metrics"]["dark"]["keep"] = wrong
        with pytest.raises(RegistryError, match="keep"):
            Registry.from_document(document)
