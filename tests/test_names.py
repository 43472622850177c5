"""Whoever searches for a class finds one."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "client/deniable",
    "collector/deniable_collector",
    "estimator/deniable_estimator",
    "demo/deniable_demo",
)


def test_no_two_classes_have_the_same_name():
    """Over all packages a class has a name of its own, be it public or private."""
    found = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef):
                    found[node.name.lstrip("_")].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert len(found) > 200
    assert {name: places for name, places in found.items() if len(places) > 1} == {}
