"""Writes shapes for a page: percents across and em down, so that a drawing fits every width and
grows with the browser's font, and classes, which the style sheet colours for light, dark and paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from markupsafe import escape

from deniable_estimator.document.plot.marks import BarRow, Chart, LineChart
from deniable_estimator.document.plot.ticks import Tick

_SIZES = {"value": 13, "share": 13, "chosen-text": 14}
"""Pixels of letters; all others have 12."""


def cut(text: str, most: int) -> str:
    """A text, cut off with dots where it is longer."""
    return text if len(text) <= most else text[: most - 1] + "…"


class Page:
    """Draws for a page, whose style sheet says how all looks; `tell` gives a text in its
    language."""

    rows_of_a_part: ClassVar[int] = 6
    each_dot: ClassVar[bool] = True
    """Whether every number of a single line has a dot, also beside other lines."""

    def __init__(self, tell: Callable[[str], str] = str) -> None:
        self.tell = tell

    def told(self, text: str, most: int = 0) -> str:
        """A text in the language of the reader, for between tags."""
        told = self.tell(text)
        return str(escape(cut(told, most) if most else told))

    def x(self, at: float) -> str:
        """A place across."""
        return f"{round(at, 3):g}%" if at else "0"

    def wide(self, part: float) -> str:
        """A width."""
        return self.x(part)

    def y(self, pixels: float, size: int = 16) -> str:
        """A place down, for text of this size: its em is not that of the chart."""
        return f"{round(pixels / size, 4):g}em" if pixels else "0"

    def tall(self, pixels: float) -> str:
        """A height, or a radius."""
        return self.y(pixels)

    def look(self, kind: str) -> str:
        """What makes a shape look like what it stands for."""
        return f'class="{kind}"'

    def within(self, top: float, tone: str = "") -> Page:
        """A pen for a part that begins so far down; on a page each part counts for itself."""
        return self

    def line(self, kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
        """A straight line."""
        return (
            f'<line {self.look(kind)} x1="{self.x(x1)}" x2="{self.x(x2)}" '
            f'y1="{self.y(y1)}" y2="{self.y(y2)}"/>'
        )

    def rect(
        self, kind: str, start: float, top: float, width: float, height: float, round_: float = 0
    ) -> str:
        """A rectangle."""
        corners = f' rx="{round_:g}"' if round_ else ""
        return (
            f'<rect {self.look(kind)} x="{self.x(start)}" width="{self.wide(width)}" '
            f'y="{self.y(top)}" height="{self.tall(height)}"{corners}/>'
        )

    def upright(self, kind: str, at: float, top: float, height: float) -> str:
        """A thick line down, three pixels wide."""
        return (
            f'<rect {self.look(kind)} x="{self.x(at)}" y="{self.y(top)}" width="3" '
            f'height="{self.tall(height)}" rx="1.5" transform="translate(-1.5)"/>'
        )

    def circle(self, kind: str, at: float, down: float, radius: float) -> str:
        """A dot."""
        return (
            f'<circle {self.look(kind)} cx="{self.x(at)}" cy="{self.y(down)}" '
            f'r="{self.tall(radius)}"/>'
        )

    def text(self, kind: str, at: float, down: float, text: str, *, aside: float = 0) -> str:
        """A text, which begins so many em beside its place."""
        word = kind.split(" ", 1)[0]
        beside = f' dx="{aside:g}em"' if aside else ""
        size = _SIZES.get(word, 12)
        return (
            f'<text {self.look(kind)} x="{self.x(at)}" y="{self.y(down, size)}"{beside}>'
            f"{self.told(text)}</text>"
        )

    def shape(self, kind: str, at: float, down: float, path: str, more: str = "") -> str:
        """A shape that keeps its form, around a place, with more beside it."""
        return (
            f'<svg class="end" x="{self.x(at)}" y="{self.y(down)}" overflow="visible">'
            f'<path {self.look(kind)} d="{path}"/>{more}</svg>'
        )

    def ending(self, kind: str, down: float, shape: str, label: str) -> str:
        """The shape of a line beside the plot, with its name, which is shorter where it is
        narrow."""
        texts = "".join(
            f'<text class="{length}" x="20" y="0.33em">{self.told(label, most)}</text>'
            for length, most in (("long", 18), ("short", 8))
        )
        return (
            f'<svg class="end" x="100%" y="{self.y(down)}" overflow="visible">'
            f'<path {self.look(kind)} transform="translate(10)" d="{shape}"/>{texts}</svg>'
        )

    def stretched(self, height: float, paths: Iterable[tuple[str, str]]) -> str:
        """Paths in thousandths across."""
        drawn = self._paths(paths)
        return (
            f'<svg width="100%" height="{self.tall(height)}" aria-hidden="true" '
            f'viewBox="0 0 1000 {height:g}" preserveAspectRatio="none">{drawn}</svg>'
        )

    def _paths(self, paths: Iterable[tuple[str, str]]) -> str:
        return "".join(
            f'<path {self.look(kind)} d="{path}" vector-effect="non-scaling-stroke"/>'
            for kind, path in paths
        )

    def labels(self, row: BarRow, down: float, middle: float) -> str:
        """The name and the number of a row; the style sheet puts them beside it where there is
        room."""
        beside = ""
        if row.spread or (row.between and row.at is not None):
            told = f"±{self.told(row.spread)}" if row.spread else f"({self.told(row.between)})"
            beside = f'<tspan class="spread" dx="0.4em">{told}</tspan>'
        y = self.y(down, 13)
        return (
            f'<text class="value" x="0" y="{y}">{self.told(row.label, 24)}</text>'
            f'<text class="share" x="100%" y="{y}">{self.told(row.number)}{beside}</text>'
        )

    def above(self, row: BarRow, down: float) -> str:
        """The same, which stay above the row."""
        return self.labels(row, down, down)

    def flag(self, at: float, half: float, text: str) -> str:
        """A pole with a text, twice `half` wide."""
        return (
            f'<svg x="{self.x(at)}" width="1" height="1.5em"><rect class="pole" '
            f'x="{-half / 16:.2f}em" y="0.0625em" width="{half / 8:.2f}em" height="1.375em" '
            f'rx="3"/><text class="number" y="1.3333em">{self.told(text)}</text></svg>'
        )

    def column(
        self, kind: str, start: float, width: float, top: float, height: float, told: str
    ) -> str:
        """A bar that stands, with a gap on both sides; all of its height tells about it."""
        return (
            f'<svg x="{self.x(start)}" width="{self.x(width)}" y="0" height="100%">'
            f"<title>{self.told(told)}</title>{self.rect(kind, 6, top, 88, height)}</svg>"
        )

    def part(self, kind: str, height: float, inner: str, *, top: float = 0, told: str = "") -> str:
        """A part of a chart, and what a pointer is told of it."""
        name = f'class="{kind}" ' if kind else ""
        below = f'y="{self.y(top)}" ' if top else ""
        title = f"<title>{self.told(told)}</title>" if told else ""
        return f'<svg {name}{below}width="100%" height="{self.tall(height)}">{title}{inner}</svg>\n'

    def figure(self, kind: str, chart: Chart, inner: str) -> str:
        """A chart of several parts."""
        return (
            f'<div class="chart {kind}" role="img" aria-label="{self.told(chart.title)}" '
            f'aria-describedby="chart-{escape(chart.name)}-desc">\n'
            f'<p id="chart-{escape(chart.name)}-desc" hidden>{self.told(chart.description)}</p>\n'
            f"{inner}</div>"
        )

    def drawing(self, kind: str, chart: Chart, height: float, inner: str) -> str:
        """A chart in one piece."""
        name = f"chart-{escape(chart.name)}"
        return (
            f'<svg class="chart {kind}" width="100%" height="{self.tall(height)}" role="img" '
            f'aria-labelledby="{name}-title {name}-desc">\n'
            f'<title id="{name}-title">{self.told(chart.title)}</title>\n'
            f'<desc id="{name}-desc">{self.told(chart.description)}</desc>\n{inner}\n</svg>'
        )

    def ticks(self, chart: LineChart) -> Iterable[Tick]:
        """The texts of the axis across."""
        return chart.ticks
