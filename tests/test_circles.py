"""No file needs another that needs it: imports of Python and of TypeScript make no circle.

Imports for type checkers and inside functions count too. They run late or never, but a reader who
follows them goes round all the same. `ast` and `graphlib` find everything that this needs;
import-linter would be one more tool, and does not read TypeScript.
"""

from __future__ import annotations

import ast
import os
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = [
    ROOT / "client" / "deniable",
    ROOT / "collector" / "deniable_collector",
    ROOT / "estimator" / "deniable_estimator",
    ROOT / "demo" / "deniable_demo",
]

_FROM = re.compile(r"""(?:from|import)\s*\(?\s*["'](\.[^"']+)["']""")
"""The relative path that an import or an export of TypeScript names, also `import("./...")`."""


def python_imports(packages):
    """What each module of the packages imports of them."""
    files = {}
    for package in packages:
        for path in package.rglob("*.py"):
            parts = path.relative_to(package.parent).with_suffix("").parts
            files[".".join(parts).removesuffix(".__init__")] = path
    found: dict[str, set[str]] = {}
    for module, path in files.items():
        used = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                used.update(each.name for each in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module}: name the whole module that is imported"
                for each in node.names:
                    whole = f"{node.module}.{each.name}"
                    used.add(whole if whole in files else node.module or "")
        found[module] = used & files.keys()
    return found


def typescript_imports(folder):
    """What each file of the folder imports or exports of others."""
    return {
        path.relative_to(folder).as_posix(): {
            Path(os.path.normpath(path.parent / name)).relative_to(folder).as_posix()
            for name in _FROM.findall(path.read_text(encoding="utf-8"))
        }
        for path in folder.rglob("*.ts")
    }


def circle(imports):
    """One circle of imports, its first file again at its end; empty if there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found[::-1]
    return []


def test_no_circle_of_python_imports():
    """No module of ours imports, directly or through others, itself."""
    imports = python_imports(PACKAGES)
    assert "deniable.device.client" in imports["deniable"]  # for type checkers
    assert "deniable.device.state" in imports["deniable.device.background"]  # inside a function
    assert circle(imports) == []


def test_no_circle_of_typescript_imports():
    """No file of the web SDK imports, directly or through others, itself."""
    imports = typescript_imports(ROOT / "client" / "web" / "src")
    assert imports["ledger.ts"] >= {"exact.ts", "metric.ts"}  # a value, and types alone
    assert set().union(*imports.values()) <= imports.keys()
    assert circle(imports) == []
