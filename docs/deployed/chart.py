"""A chart of horizontal bars on a logarithmic scale, as SVG for light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

__all__ = ["bars"]

_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f }
.group { font-weight: 600 }
.line { stroke: #d0d7de }
.bar { fill: #8c959f }
.ours { fill: #1a7f64 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .line { stroke: #30363d } .bar { fill: #6e7681 } .ours { fill: #3fb68b }
}
"""
_LEFT, _WIDTH, _STEP, _HEAD = 190, 470, 24, 30


def bars(title: str, groups: Sequence[tuple[str, Sequence[tuple[str, float, bool]]]]) -> str:
    """Groups of (label, value of at least 1, whether it is ours), under one scale from 1."""
    largest = max(value for _, members in groups for _, value, _ in members)
    decades = max(1, math.ceil(math.log10(largest)))
    parts, y = [], _HEAD
    for name, members in groups:
        parts.append(f'<text class="group" x="0" y="{y}">{escape(name)}</text>')
        for label, value, ours in members:
            y += _STEP
            length = max(2.0, math.log10(value) / decades * _WIDTH)
            kind = "bar ours" if ours else "bar"
            parts += [
                f'<text x="{_LEFT - 10}" y="{y}" text-anchor="end">{escape(label)}</text>',
                f'<rect class="{kind}" x="{_LEFT}" y="{y - 12}" width="{length:.1f}" height="16"/>',
                f'<text x="{_LEFT + length + 6:.1f}" y="{y}">{value:.2f} ×</text>',
            ]
        y += _STEP + 12
    marks = []
    for power in range(decades + 1):
        x = _LEFT + power * _WIDTH / decades
        marks += [
            f'<line class="line" x1="{x:.1f}" y1="12" x2="{x:.1f}" y2="{y - 30}"/>',
            f'<text x="{x:.1f}" y="{y - 12}" text-anchor="middle">{10**power} ×</text>',
        ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 80} {y}" '
        f'role="img" aria-labelledby="title"><title id="title">{escape(title)}</title>'
        f"<style>{_STYLE}</style>{''.join(marks)}{''.join(parts)}</svg>\n"
    )
