"""Draws the pictures of docs/how/: every figure in them is computed here.

Run: python docs/explain.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

from explained.figures import PICTURES

FOLDER = Path(__file__).parent / "images" / "how"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        (folder / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
