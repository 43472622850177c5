"""The estimator's rooms depend only on those below them (ARCHITECTURE.md)."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2] / "estimator" / "deniable_estimator"

FLOORS = (
    {"errors", "isolation", "checked_files", "edited_files"},
    {"messages", "forecasting"},
    {"statistics", "annotations"},
    {"analyses"},
    {"answers", "privacy"},
    {"planning"},
    {"questions"},
    {"judging", "releasing"},
    {"terminal", "dashboard"},
    {"rappor", "watching", "development"},
)
"""The lowest first. What stands on one floor may use the same room, and every floor below."""


def floor(room: str) -> int:
    """Which floor a room is on."""
    return next(number for number, rooms in enumerate(FLOORS) if room in rooms)


def test_no_room_uses_one_above_it() -> None:
    """Every import of every file leads to its own room or to a floor below."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            for name in names:
                package, _, rest = name.partition(".")
                used = rest.partition(".")[0]
                ours = package == "deniable_estimator" and used not in ("", room)
                if ours and floor(used) >= floor(room):
                    found.append(f"{path.relative_to(ROOT)} uses {name}")
    assert found == []
    rooms = {each.parent.name for each in ROOT.glob("*/__init__.py")}
    assert rooms == set().union(*FLOORS) - {path.stem for path in ROOT.glob("*.py")}
