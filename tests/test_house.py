"""The house: no file needs another that needs it, and a room imports only the rooms below it.

Imports for type checkers and inside functions count too: a reader follows them all the same.
"""

from __future__ import annotations

import ast
import os
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ["client/deniable", "collector/deniable_collector", "estimator/deniable_estimator"]
PACKAGES += ["demo/deniable_demo"]
ROOMS = {
    "deniable": "tools device protocol",
    "deniable_estimator": "development rappor watching terminal dashboard releasing judging asking "
    "kinds planning privacy analyses statistics annotations document inputs files "
    "messages errors",
}
"""The rooms of a package, from the top down."""

_FROM = re.compile(r"""(?:from|import)\s*\(?\s*["'](\.[^"']+)["']""")
"""The relative path that an import or an export of TypeScript names, also `import("./...")`."""


@cache
def python_imports():
    """What each module of ours imports of ours."""
    files = {}
    for package in (ROOT / each for each in PACKAGES):
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
                names = ((node.module or "", f"{node.module}.{each.name}") for each in node.names)
                used.update(whole if whole in files else home for home, whole in names)
        found[module] = used & files.keys()
    return found


def typescript_imports():
    """What each file of the web SDK imports or exports of others."""
    folder = ROOT / "client" / "web" / "src"
    return {
        path.relative_to(folder).as_posix(): {
            os.path.relpath(os.path.normpath(path.parent / name), folder)
            for name in _FROM.findall(path.read_text(encoding="utf-8"))
        }
        for path in folder.rglob("*.ts")
    }


@pytest.mark.parametrize("imports_of", [python_imports, typescript_imports])
def test_no_circle(imports_of):
    """No file imports, directly or through others, itself."""
    imports = imports_of()
    assert set().union(*imports.values()) <= imports.keys()
    assert len([*TopologicalSorter(imports).static_order()]) == len(imports) > 50


@pytest.mark.parametrize("package", ROOMS)
def test_a_room_imports_only_rooms_below(package):
    """Tools need a device, and a device the protocol, but not the other way round."""
    order, imports = ROOMS[package].split(), python_imports()
    floors = {
        each: order.index(room)
        for each in imports
        if (room := each.removeprefix(f"{package}.").split(".")[0]) in order
    }
    upwards = [
        (each, used) for each in floors for used in floors.keys() & imports[each]
        if floors[used] < floors[each]
    ]  # fmt: skip
    assert len(floors) > 70
    assert upwards == []
