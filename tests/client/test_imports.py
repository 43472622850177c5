"""What importing and using the SDK loads, by name, in a fresh interpreter. Times are measured by
benchmarks/start.py."""

import json
import subprocess
import sys

import pytest

from deniable import Registry

from .conftest import metrics_toml

NEVER = {"expires": "2999-01-01"}
REGISTRY = metrics_toml(
    browser={**NEVER, "type": "category", "values": ["firefox", "chrome", "other"]},
    dark_mode=NEVER,
)

NETWORK = {"email", "hmac", "http", "logging", "socket", "ssl", "urllib.request"}
TOOLS = {
    "argparse",
    "asyncio",
    "click",
    "mmh3",
    "rich",
    "deniable.cli",
    "deniable.device.development",
}
PARTS = {"dataclasses", "hashlib", "inspect", "json", "pathlib", "sqlite3", "tomllib"}
HEAVY = {
    "_hashlib",
    "ast",
    "contextvars",
    "copy",
    "dataclasses",
    "hashlib",
    "inspect",
    "ipaddress",
    "locale",
    "pathlib",
    "random",
    "secrets",
    "subprocess",
    "tempfile",
    "tokenize",
    "urllib.parse",
    "uuid",
}
"""Parts of the standard library that take a millisecond or more, and that recording can do
without: `deniable.protocol.frozen` and `os.path` take their place."""

OURS = {
    "device.device",
    "device.state",
    "device.transport",
    "protocol.mechanisms",
    "protocol.registry",
    "protocol.types",
}

MECHANISMS = {"base", "choice", "limits", "subset_selection"}
"""What two small closed domains need."""


def loaded(code, *arguments):
    """The modules that a fresh interpreter imports while it runs `code`."""
    whole = (
        "import sys\nbefore = set(sys.modules)\n"
        f"{code}\n"
        "found = sorted(set(sys.modules) - before)\nimport json\nprint(json.dumps(found))"
    )
    done = subprocess.run(
        [sys.executable, "-c", whole, *arguments], check=True, capture_output=True, text=True
    )
    return set(json.loads(done.stdout))


def parts(modules, package):
    """The modules of one of our packages, without its name."""
    return {each.removeprefix(f"{package}.") for each in modules if each.startswith(f"{package}.")}


def test_importing_the_client_loads_no_part_of_it():
    """`from deniable import Client` loads neither what a Client needs nor anything heavier."""
    modules = loaded("from deniable import Client")
    assert "deniable.device.client" in modules
    assert not modules & (NETWORK | TOOLS | PARTS)
    assert not modules & {f"deniable.{each}" for each in OURS}


@pytest.mark.parametrize("name", ["metrics.toml", "metrics.json"])
def test_a_tool_that_records_loads_only_what_its_metrics_need(tmp_path, name):
    """To record a value and write it to the disk takes the types and mechanisms of the registry's
    metrics, no network, and nothing that reads TOML if the registry is compiled."""
    text = REGISTRY
    if name == "metrics.json":
        text = json.dumps(Registry.parse(REGISTRY).compile())
    (tmp_path / name).write_text(text, encoding="utf-8")
    modules = loaded(
        "from deniable import Client\n"
        "with Client(sys.argv[1], state_dir=sys.argv[2], consent=True) as client:\n"
        "    client.record('browser', 'chrome')",
        str(tmp_path / name),
        str(tmp_path / "state"),
    )
    assert "sqlite3" in modules
    assert not modules & (NETWORK | TOOLS | HEAVY | {"deniable.device.transport"})
    assert parts(modules, "deniable.protocol.mechanisms") <= MECHANISMS
    assert parts(modules, "deniable.protocol.types") == {"base", "texts"}
    reads_toml = {"tomllib", "deniable.protocol.toml_lines"}
    assert modules & reads_toml == (reads_toml if name == "metrics.toml" else set())


def test_no_thread_runs_before_the_first_record(tmp_path):
    """A client without work has no thread, and imports nothing when it first records: a record
    in a signal handler, or while Python ends, must not wait for an import."""
    (tmp_path / "metrics.toml").write_text(REGISTRY, encoding="utf-8")
    code = """
import json, sys, threading
from deniable import Client
client = Client(sys.argv[1], state_dir=sys.argv[2], consent=True)
assert threading.active_count() == 1, threading.enumerate()
before = set(sys.modules)
client.record("browser", "chrome")
client.close()
late = {each for each in set(sys.modules) - before if each.startswith("deniable")}
assert not late, late
"""
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "metrics.toml"), str(tmp_path / "state")],
        check=True,
    )


def test_every_public_name_can_be_imported():
    """Each name of `__all__` of the packages that import late is there, and `dir` lists it."""
    code = """
import importlib
for package in ("deniable", "deniable.protocol.types"):
    module = importlib.import_module(package)
    listed = dir(module)
    for name in module.__all__:
        assert name in listed, name
        assert getattr(module, name) is not None, name
    try:
        module.nothing
    except AttributeError as error:
        assert "nothing" in str(error) and package in str(error)
    else:
        raise AssertionError(package)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "module", ["deniable_collector.collector", "deniable_estimator.dashboard.app"]
)
def test_a_server_imports_no_device_and_no_tool(module):
    """Collector and dashboard run on the protocol alone; what they import is looked up in a fresh
    interpreter."""
    code = f"import sys, {module}; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    found = [each for each in done.stdout.split() if each.startswith("deniable.")]
    assert "deniable.protocol.registry" in found
    assert not [each for each in found if each.startswith(("deniable.device", "deniable.tools"))]
