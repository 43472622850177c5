"""Charts as SVG for light and dark pages: lines over two axes, and the frame of any picture.

A picture brings its own background, because a page can be switched to dark by a button of which an
embedded picture does not know.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

__all__ = ["Axis", "Line", "box", "lines", "picture", "stroke", "words"]

_STYLE = """
.ground { fill: #ffffff } text { font: 13px system-ui, sans-serif; fill: #24292f }
.grid { stroke: #d8dee4 } .axis { stroke: #57606a } .faint { fill: #eaeef2 } .mark { fill: #1a7f64 }
.second { fill: #8250df } .bar { fill: #8c959f } .error { stroke: #24292f; stroke-width: 1.5 }
path { fill: none; stroke-width: 2.2 }
.c0 { stroke: #1a7f64 } .c1 { stroke: #8250df } .c2 { stroke: #bc4c00 } .c3 { stroke: #0969da }
.c4 { stroke: #57606a }
@media (prefers-color-scheme: dark) {
  .ground { fill: #161b22 } text { fill: #e6edf3 }
  .grid { stroke: #30363d } .axis { stroke: #8b949e }
  .faint { fill: #30363d } .mark { fill: #3fb68b } .second { fill: #b78cf7 } .bar { fill: #6e7681 }
  .error { stroke: #e6edf3 }
  .c0 { stroke: #3fb68b } .c1 { stroke: #b78cf7 } .c2 { stroke: #f0883e } .c3 { stroke: #58a6ff }
  .c4 { stroke: #8b949e }
}
"""
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 4")
_LEFT, _TOP, _PLOT_WIDTH, _PLOT_HEIGHT = 62, 40, 460, 250
_RIGHT = 178
"""Room for the names at the ends of the lines."""


@dataclass(frozen=True)
class Axis:
    """A title, the values to be labelled in rising order, and how to write one."""

    title: str
    ticks: Sequence[float]
    write: Callable[[float], str] = "{:g}".format
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Where on the axis a value lies: 0 at its first tick, 1 at its last."""
        low, high = self.ticks[0], self.ticks[-1]
        if self.logarithmic:
            return math.log(value / low) / math.log(high / low)
        return (value - low) / (high - low)


@dataclass(frozen=True)
class Line:
    name: str
    points: Sequence[tuple[float, float]]


def picture(title: str, width: int, height: int, parts: Sequence[str]) -> str:
    """A whole picture with its title, which screen readers say."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-labelledby="title"><title id="title">{escape(title)}'
        f'</title><style>{_STYLE}</style><rect class="ground" width="{width}" height="{height}" '
        f'rx="8"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def lines(title: str, across: Axis, up: Axis, drawn: Sequence[Line]) -> str:
    """Lines with their names at their right ends; points above the axis are left out."""
    right, bottom = _LEFT + _PLOT_WIDTH, _TOP + _PLOT_HEIGHT
    parts = [f'<text x="14" y="22">{escape(up.title)}</text>']
    for value in up.ticks:
        y = bottom - up.place(value) * _PLOT_HEIGHT
        parts += [
            f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>',
            words(_LEFT - 8, y + 4, up.write(value), "end"),
        ]
    for value in across.ticks:
        x = _LEFT + across.place(value) * _PLOT_WIDTH
        parts.append(words(x, bottom + 20, across.write(value), "middle"))
    parts += [
        f'<line class="axis" x1="{_LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}"/>',
        words(_LEFT + _PLOT_WIDTH / 2, bottom + 44, across.title, "middle"),
    ]
    ends = []
    for number, line in enumerate(drawn):
        shown = [point for point in line.points if up.place(point[1]) <= 1.0001]
        places = [
            (_LEFT + across.place(x) * _PLOT_WIDTH, bottom - up.place(y) * _PLOT_HEIGHT)
            for x, y in shown
        ]
        path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        dashes = f' stroke-dasharray="{_DASHES[number]}"' if _DASHES[number] else ""
        parts.append(f'<path class="c{number}" d="{path}"{dashes}/>')
        ends.append((places[-1][1], places[-1][0], number, line.name))
    parts += _names(ends)
    return picture(title, right + _RIGHT, bottom + 58, parts)


def _names(ends: Sequence[tuple[float, float, int, str]]) -> list[str]:
    """The names beside the ends of their lines, moved apart where they would overlap."""
    parts, last = [], -math.inf
    right = _LEFT + _PLOT_WIDTH
    for y, x, number, name in sorted(ends):
        last = max(y, last + 17)
        parts.append(
            f'<line class="c{number}" x1="{x:.1f}" y1="{y:.1f}" x2="{right + 10}" y2="{last:.1f}" '
            f'stroke-dasharray="1 3"/>'
            if x < right - 1
            else ""
        )
        parts.append(
            f'<line class="c{number}" stroke-width="3" x1="{right + 10}" y1="{last:.1f}" '
            f'x2="{right + 22}" y2="{last:.1f}"/>' + words(right + 28, last + 4, name)
        )
    return [part for part in parts if part]


def words(x: float, y: float, text: str, anchor: str = "start") -> str:
    """A text that begins, ends or has its middle at x."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def box(kind: str, x: float, y: float, width: float, height: float, round_by: float = 0) -> str:
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{round_by:g}"/>'
    )


def stroke(
    kind: str, start: tuple[float, float], end: tuple[float, float], dashes: str = ""
) -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<line class="{kind}" x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" '
        f'y2="{end[1]:.1f}"{dashed}/>'
    )
