"""The built SDK that the Python package ships."""

import re
import subprocess
from pathlib import Path

from tests.registries import declared

from deniable import Registry
from deniable.protocol.mechanisms import MECHANISMS
from deniable.tools.compile_command import ABSENT, web_files

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "client/deniable/web"
MEMOS = {"longitudinal": "memoize", "memo_epsilon": 4.0}


def registry(known=None, **keys):
    """A registry of one metric, a boolean unless its keys say otherwise, and of known segments."""
    return Registry.parse(declared(known, dark_mode={"type": "boolean", **keys}))


def test_it_is_what_the_sources_give(built):
    """A fresh build has the bytes of the files that are shipped; `make web` renews them."""
    shipped = sorted(SHIPPED.iterdir())
    assert len(shipped) == 16
    for each in shipped:
        assert each.read_bytes() == (built / each.name).read_bytes(), each.name


def test_the_builds_have_these_mechanisms():
    """`deniable compile web` knows which mechanisms no entry and no part has."""
    found = {}
    for name in ("closed", "full", "joint", "memos"):
        source = (ROOT / f"client/web/src/parts/{name}.ts").read_text(encoding="utf-8")
        listed = re.search(r"mechanisms: \{(.*?)\}", source, re.DOTALL)
        assert listed is not None
        found[name] = set(re.findall(r"^ *(?:mechanisms: \{ )?(\w+)(?=[:,])", listed[0], re.M))
        found[name] -= {"mechanisms"}
    assert found["closed"] == {"subset_selection"}
    assert set.union(*found.values()) == set(MECHANISMS) - ABSENT


def test_no_way_around_a_policy():
    """The code needs no eval and no inline script or style, and names no address but those of
    examples."""
    for each in SHIPPED.iterdir():
        text = each.read_text(encoding="utf-8")
        assert re.search(r"\beval\b|new Function|innerHTML|\.style\b", text) is None, each.name
        addresses = set(re.findall(r"https?://([a-z][a-z.]*)", text))
        assert addresses <= {"a", "telemetry.example.com", "iana.org"}, each.name


def test_scripts_need_no_charset():
    """All scripts are ASCII, with a registry of any letters: a page that does not name its encoding
    reads them right."""
    letters = registry(type="category", values=["søk", "天气"])
    for development in (False, True):
        for name, content in web_files(letters, development=development).items():
            assert content.isascii() or name == "metrics.json", name
    assert all(each.read_bytes().isascii() for each in SHIPPED.iterdir())


def test_the_script_sets_one_name(node):
    """The file for a <script> tag adds `deniable` to a page, with the SDK and the registry, and
    no other name; each entry takes the registries that get it, also with parts."""
    program = """
    const fs = require("fs"), vm = require("vm");
    const page = vm.createContext({ URL, TextEncoder });
    const before = new Set(vm.runInContext("Object.getOwnPropertyNames(globalThis)", page));
    vm.runInContext(fs.readFileSync(0, "utf8"), page);
    const names = vm.runInContext("Object.getOwnPropertyNames(globalThis)", page);
    console.log(names.filter((each) => !before.has(each)).join());
    console.log(vm.runInContext("new deniable.Client(deniable.metrics, " +
      "{ consent: false, development: true, state: { transact: async () => {} } }).status", page));
    """
    parts = registry({"platform": ["web", "phone"]}, segments=["platform"])
    for each in (registry(), registry(type="string"), parts, registry(**MEMOS)):
        done = subprocess.run(
            [node, "-e", program],
            input=web_files(each)["deniable.min.js"].decode(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.split() == ["deniable", "no_consent"], done.stderr


def test_the_modules_find_one_another(node, tmp_path):
    """The registry's module brings along the parts that it needs, from its own folder, and the
    SDK's module takes them; no file asks for another name."""
    (tmp_path / "package.json").write_text('{"type": "module"}')
    for name, content in web_files(registry(mechanism="basic_rappor", **MEMOS)).items():
        (tmp_path / name).write_bytes(content)
    program = """
    import { Client, memoryStore } from "./deniable.js";
    import metrics from "./metrics.js";
    const client = new Client(metrics, { consent: true, state: memoryStore() });
    client.record("dark_mode", true);
    await client.close();
    console.log(Object.keys(metrics.parts).join(), JSON.stringify(client.counters));
    console.log((await client.accounts()).length);
    """
    (tmp_path / "app.js").write_text(program)
    done = subprocess.run(
        [node, tmp_path / "app.js"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == ["memos", "{}", "1"], done.stderr
