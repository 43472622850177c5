"""The pictures and figures of the pages that explain are those that the code computes today."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path

from deniable.mechanisms import TOP, NumberRange, Report, SlidingWindow

DOCS = Path(__file__).parents[2] / "docs"


def test_the_pictures_are_computed_now(tmp_path: Path) -> None:
    """docs/images/how holds what docs/explain.py draws today, and each picture is shown."""
    subprocess.run([sys.executable, DOCS / "explain.py", tmp_path], check=True, timeout=60)
    drawn = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    kept = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "images/how").iterdir()}
    assert drawn == kept, "run: python docs/explain.py"
    shown = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "how").glob("*.md"))
    assert all(f"images/how/{name}" in shown for name in kept)


def test_the_figures_of_the_comparison_are_computed() -> None:
    """The errors on the comparison's page follow from the formulas beside them."""
    page = " ".join((DOCS / "comparison.md").read_text(encoding="utf-8").split())

    def local(devices: int) -> float:
        return 200 * math.exp(0.5) / math.expm1(1) / math.sqrt(devices)

    alpha = math.exp(-1)
    central = math.sqrt(2 * alpha) / (1 - alpha) / 1e6 * 100
    assert f"| {local(1_000_000):.2f} points |" in page
    assert f"| {central:.5f} points |" in page
    assert f"some {round(local(1_000_000) / central, -2):,.0f} times smaller" in page
    assert f"standard error of a rare value is {local(500):.1f} points" in page
    deployed = (DOCS / "deployed-systems.md").read_text(encoding="utf-8")
    (rappor,) = re.findall(
        r"^\| RAPPOR \| 1\.074 \| ([\d.]+) \| [\d,]+ \| ([\d.]+)", deployed, re.M
    )
    assert f"{float(rappor[0]):.2f} points, at 1.07" in page
    assert f"takes {float(rappor[1]):.1f} times fewer devices" in page


def test_the_figures_about_laplace_noise_are_computed() -> None:
    """The table on numbers: the variance of Laplace noise on a range of length 2, 8 over the square
    of epsilon, beside the largest one that sliding window has anywhere in the range."""
    page = (DOCS / "how" / "numbers.md").read_text(encoding="utf-8")
    row = re.search(r"^\| variance of Laplace noise .*? \| (.*) \|$", page, re.M)
    assert row is not None
    shown = []
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        window = SlidingWindow.design(NumberRange("0", "1"), epsilon)
        scores = [float(score) for score in window.scores()]
        worst = 0.0
        for position in range(0, TOP + 1, TOP // 16):
            chances = [float(window.likelihood(Report(0, j), position)) for j in range(64)]
            mean = sum(p * score for p, score in zip(chances, scores, strict=True))
            square = sum(p * score**2 for p, score in zip(chances, scores, strict=True))
            worst = max(worst, square - mean**2)
        shown.append(f"{8 / epsilon**2 / worst:.1f}")
    assert row[1].split(" | ") == shown
