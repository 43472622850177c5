"""Pictures that are no curves: a projective plane, a tree of cells, estimates of drawn crowds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable import Registry
from deniable.mechanisms import ProjectiveGeometry
from deniable_estimator.analyses.sampling import sample_tally
from deniable_estimator.answers.shares import Shares, estimate
from explained.svg import box, picture, stroke, words

__all__ = ["debias", "discoveries", "plane", "tree"]

SEED = 1

_REGISTRY = """
schema = 1
app = "example"
[metrics.browser]
type = "category"
description = "The browser."
owner = "a@acme.example"
expires = 2099-01-01
epsilon = 1.0
lifetime_epsilon = 1.0
values = [{values}]
"""


def _estimated(
    values: Sequence[str], shares: Sequence[float], devices: int
) -> tuple[Shares, list[float]]:
    """An estimate of a crowd drawn with SEED, and how many of the reports support each value."""
    listed = ", ".join(f'"{value}"' for value in values)
    metric = Registry.parse(_REGISTRY.format(values=listed))["browser"]
    rng = np.random.default_rng(SEED)
    counts = rng.multinomial(devices, shares)
    tally = sample_tally(metric.scheme, counts, rng, metric="browser", window="2026-11-20")
    answer = estimate(tally, metric.scheme)
    assert isinstance(answer, Shares)
    return answer, [float(cell) / devices for cell in tally.rows[0].cells]


def debias() -> str:
    """From what devices report to what is estimated."""
    names = ("firefox", "chrome", "safari", "edge", "other")
    truth = (0.08, 0.55, 0.22, 0.12, 0.03)
    answer, observed = _estimated(names, truth, 100_000)
    scale, left = 480, 90
    parts = []
    legend = (
        ("bar", "truth"),
        ("second", "supporting reports"),
        ("mark", "estimate, 95% interval"),
    )
    for (kind, text), x in zip(legend, (left, left + 90, left + 250), strict=True):
        parts += [box(kind, x, 18, 12, 12), words(x + 18, 29, text)]
    for number, name in enumerate(names):
        y = 52 + number * 62
        share, low, high = (float(each[number]) for each in (answer.share, answer.low, answer.high))
        parts.append(words(left - 8, y + 26, name, "end"))
        bars = (
            ("bar", truth[number], 0.0),
            ("second", observed[number], 0.0),
            ("mark", share, high),
        )
        for row, (kind, value, end) in enumerate(bars):
            parts += [
                box(kind, left, y + 15 * row, max(value, 0) * scale, 12),
                words(left + max(value, end) * scale + 6, y + 15 * row + 11, f"{value:.1%}"),
            ]
        ends = ((left + low * scale, y + 36), (left + high * scale, y + 36))
        parts.append(stroke("error", *ends))
    return picture("Truth, reports and estimate of five browsers", 600, 372, parts)


def tree() -> str:
    """The cells of a hierarchical histogram, and those that a range takes."""
    first, last, width, left = 5, 43, 10, 100
    taken: list[tuple[int, int]] = []
    place = first
    while place < last:
        size = 16
        while place % size or place + size > last:
            size //= 4
        taken.append((place, size))
        place += size
    parts = [words(14, 24, "every device reports its cell at one resolution")]
    for level, size in enumerate((16, 4, 1)):
        y = 44 + level * 46
        parts.append(words(left - 12, y + 19, f"{64 // size} cells", "end"))
        for start in range(0, 64, size):
            kind = "mark" if (start, size) in taken else "faint"
            parts.append(box(kind, left + start * width + 1, y, size * width - 2, 28, 2))
    ends = ((left + first * width, 186), (left + last * width, 186))
    told = f"a range of {last - first} cells is the sum of {len(taken)}"
    parts += [
        stroke("error", *ends),
        words(left + (first + last) / 2 * width, 204, told, "middle"),
    ]
    return picture("A range as a sum of cells of a tree", 760, 220, parts)


def plane() -> str:
    """Which of 13 messages support which of 13 values."""
    space = ProjectiveGeometry(13, 3, 3, 2**52 + 2**51)
    step, left, top = 24, 56, 62
    parts = [words(14, 26, "values (rows) and the messages that support them")]
    for item in range(13):
        supporting = {cell.column for cell in space.support(item)}
        for column in range(13):
            kind = "mark" if column in supporting else "faint"
            x, y = left + column * step, top + item * step
            parts.append(box(kind, x, y, step - 3, step - 3, 3))
        parts += [
            words(left - 8, top + item * step + 15, str(item), "end"),
            words(left + item * step + 10, top - 8, str(item), "middle"),
        ]
    side = 13 * step
    return picture("The projective plane of 13 points", left + side + 24, top + side + 20, parts)


def discoveries() -> str:
    """The smallest p-values of 200 values, of which 20 are there, and those that are detected."""
    there, size, shown, top = 20, 200, 40, 0.06
    weights = [1 / (rank + 3) for rank in range(there)]
    truth = [weight / sum(weights) for weight in weights] + [0.0] * (size - there)
    answer, _ = _estimated([f"v{number}" for number in range(size)], truth, 60_000)
    p_values, detected = np.asarray(answer.p_value), np.asarray(answer.p_adjusted) <= 0.05
    left, bottom, height, step = 62, 290, 240, 11
    right, border = left + shown * step, left + int(detected.sum()) * step
    parts = [words(14, 24, f"p-value, the smallest {shown} of {size}")]
    for tick in (0, 0.02, 0.04, 0.06):
        y = bottom - tick / top * height
        kind = "grid" if tick else "axis"
        parts += [stroke(kind, (left, y), (right, y)), words(left - 8, y + 4, f"{tick:g}", "end")]
    for rank, index in enumerate(np.argsort(p_values)[:shown]):
        x, y = left + (rank + 0.5) * step, bottom - float(p_values[index]) / top * height
        if y >= bottom - height:
            parts.append(_point(index < there, x, y))
    parts += [
        stroke("axis", (border, bottom), (border, bottom - height), "5 3"),
        words(border - 8, bottom - height + 14, f"{int(detected.sum())} detected", "end"),
        _point(True, left + 240, 20),
        words(left + 250, 24, "there"),
        _point(False, left + 310, 20),
        words(left + 320, 24, "nobody has it"),
        words((left + right) / 2, bottom + 24, "values in the order of their p-values", "middle"),
    ]
    return picture("Which of 200 values are called detected", right + 40, bottom + 44, parts)


def _point(there: bool, x: float, y: float) -> str:
    if there:
        return f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
    return box("second", x - 4, y - 4, 8, 8)
