"""The parts of a trend as SVG: bands, lines, whiskers and dots.

They are written here and not by a template, which would look at each of the numbers, of thousands
on a page. Numbers alone are written, so there is nothing to escape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M-3.5-3.5h7v7h-7z",
    "M0-4.5L4.5 3.5h-9z",
    "M0-5L5 0L0 5L-5 0z",
    "M0 4.5L4.5-3.5h-9z",
    "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",
    "M-4.5-2.5l2-2L0-2L2.5-4.5l2 2L2 0l2.5 2.5l-2 2L0 2l-2.5 2.5l-2-2L-2 0z",
    "M-4.5-4L4.5 4V-4L-4.5 4z",
)
"""What stands at the end of a line of each style, in pixels around it."""


class Mark(NamedTuple):
    """A number of one period: `at` in percent across, the rest in pixels down."""

    at: float
    share: float
    low: float
    high: float
    partial: bool
    alarmed: bool
    """Holds windows that raise an alarm."""
    alone: bool
    """Has no neighbour, so that its band must be drawn as a whisker."""
    open: bool = False
    """Its interval has no limit on one side: only the band is drawn."""


@dataclass(frozen=True, slots=True)
class Plot:
    """One series as it is drawn."""

    label: str
    style: int
    """From 1: its colour, its dashes and the shape at its end."""
    marks: tuple[Mark, ...]
    """Of a small chart only those that it shows, and the last."""
    lines: tuple[str, ...]
    """SVG paths of unbroken runs, across in thousandths."""
    bands: tuple[str, ...]
    label_at: float = 0.0
    """Where the label at its end stands, in pixels down: beside other labels, not over them."""

    @property
    def shape(self) -> str:
        """The shape at its end, as an SVG path."""
        return SHAPES[(self.style - 1) % len(SHAPES)]


def stretched(plots: Sequence[Plot], *, several: bool) -> Markup:
    """Bands and lines."""
    fine = ' vector-effect="non-scaling-stroke"/>'
    parts = [
        f'<path class="{kind}{_style(plot, several)}" d="{path}"{fine}'
        for kind in ("interval", "line")
        for plot in plots
        for path in (plot.bands if kind == "interval" else plot.lines)
    ]
    return Markup("".join(parts))  # noqa: S704


def dotted(plots: Sequence[Plot], *, each: bool, crowded: bool) -> Markup:
    """Whiskers, and dots."""
    several, parts = len(plots) > 1, []
    radius = _em(1.5 if crowded else 3)
    for plot in plots:
        style = _style(plot, several)
        for mark in plot.marks:
            if mark.alone:
                parts.append(
                    f'<line class="whisker" x1="{mark.at}%" x2="{mark.at}%" '
                    f'y1="{_em(mark.low)}" y2="{_em(mark.high)}"/>'
                )
            if not mark.open and (each or mark.alone or mark.alarmed):
                kind = f"{' partial' if mark.partial else ''}{' alarmed' if mark.alarmed else ''}"
                parts.append(
                    f'<circle class="dot{kind}{style}" cx="{mark.at}%" cy="{_em(mark.share)}" '
                    f'r="{radius}"/>'
                )
    return Markup("".join(parts))  # noqa: S704


def _style(plot: Plot, several: bool) -> str:
    return f" s{plot.style}" if several else ""


def _em(pixels: float) -> str:
    """A chart's em is 16 of its own pixels, so that it grows with the browser's font."""
    return f"{round(pixels / 16, 4):g}em"
