"""A chart of horizontal bars, as SVG for light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

__all__ = ["bars"]

_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f }
.group { font-weight: 600 }
.line { stroke: #1a7f64; stroke-dasharray: 3 3 }
.bar { fill: #8c959f }
.ours { fill: #1a7f64 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .line { stroke: #3fb68b } .bar { fill: #6e7681 } .ours { fill: #3fb68b }
}
"""
_LEFT, _WIDTH, _STEP, _HEAD = 190, 470, 24, 30


def bars(title: str, groups: Sequence[tuple[str, Sequence[tuple[str, float, bool]]]]) -> str:
    """Groups of (label, value, whether it is ours), as multiples of one under one scale from 0."""
    largest = max(value for _, members in groups for _, value, _ in members)
    parts, y = [], _HEAD
    for name, members in groups:
        parts.append(f'<text class="group" x="0" y="{y}">{escape(name)}</text>')
        for label, value, ours in members:
            y += _STEP
            length = value / largest * _WIDTH
            kind = "bar ours" if ours else "bar"
            parts += [
                f'<text x="{_LEFT - 10}" y="{y}" text-anchor="end">{escape(label)}</text>',
                f'<rect class="{kind}" x="{_LEFT}" y="{y - 12}" width="{length:.1f}" height="16"/>',
                f'<text x="{_LEFT + length + 6:.1f}" y="{y}">{value:.2f} ×</text>',
            ]
        y += _STEP + 12
    one = _LEFT + _WIDTH / largest
    mark = f'<line class="line" x1="{one:.1f}" y1="12" x2="{one:.1f}" y2="{y - 30}"/>'
    height = y - _STEP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 80} {height}" '
        f'role="img" aria-labelledby="title"><title id="title">{escape(title)}</title>'
        f"<style>{_STYLE}</style>{mark}{''.join(parts)}</svg>\n"
    )
