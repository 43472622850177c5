"""The two pens that write shapes.

A `Page` writes percents across and em down, so that a drawing fits every width and grows with the
browser's font, and classes, which the style sheet colours for light, dark and paper. A `Sheet`
writes the same for a picture of its own: pixels and every colour, for programs that know no style
sheet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from markupsafe import escape

from deniable_estimator.document.plot.marks import BarRow, Chart

_SIZES = {"value": 13, "share": 13, "chosen-text": 14}
"""Pixels of letters; all others have 12."""


class Page:
    """Draws for a page, whose style sheet says how all looks; `tell` gives a text in its
    language."""

    rows_of_a_part: ClassVar[int] = 6
    each_dot: ClassVar[bool] = True
    """Whether every number of a single line has a dot, also beside other lines."""
    beside: ClassVar[str] = '<tspan class="spread" dx="0.4em">'
    """Begins what stands beside a number."""

    def __init__(self, tell: Callable[[str], str] = str) -> None:
        self.tell = tell

    def told(self, text: str, most: int = 0) -> str:
        """A text in the language of the reader, for between tags; cut off with dots where it is
        longer than `most`, if that is given."""
        told = self.tell(text)
        return str(escape(told if not most or len(told) <= most else told[: most - 1] + "…"))

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

    def shape(self, kind: str, at: float, down: float, path: str) -> str:
        """A shape that keeps its form, around a place."""
        return (
            f'<svg class="end" x="{self.x(at)}" y="{self.y(down)}" overflow="visible">'
            f'<path {self.look(kind)} d="{path}"/></svg>'
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
        """The name and the number of a row; on a page the style sheet puts them beside it where
        there is room."""
        return self.above(row, down)

    def above(self, row: BarRow, down: float) -> str:
        """The same, which stay above the row."""
        y = self.y(down, 13)
        return (
            f'<text {self.look("value")} x="{self.x(0)}" y="{y}">{self.told(row.label, 24)}</text>'
            f'<text {self.look("share")} x="{self.x(100)}" y="{y}">{self.number(row)}</text>'
        )

    def number(self, row: BarRow) -> str:
        """The number of a row, and beside it how uncertain it is."""
        beside = ""
        if row.spread or (row.between and row.at is not None):
            told = f"±{self.told(row.spread)}" if row.spread else f"({self.told(row.between)})"
            beside = f"{self.beside}{told}</tspan>"
        return self.told(row.number) + beside

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


_INK, _SOFT, _FAINT, _ACCENT, _ALARM = "#1b1c1a", "#5d5f5a", "#6c6d67", "#0f766e", "#b42318"
_COLOURS = (
    *(_ACCENT, "#b45309", "#4338ca", "#be185d"),
    *("#4d7c0f", "#0369a1", "#7e22ce", "#57534e"),
)
_DASHES = ("", "8 4", "2 3", "11 3 2 3", "5 3", "16 4", "3 2 1 2", "7 2 2 2 2 2")
_SHADES = ("0.08", "0.12", "0.22", "0.32", "0.42")
"""How strong the colour of a cell is, by its level."""

_LOOKS = {
    "bar": f'fill="{_ACCENT}"',
    "bar outside": 'fill="#868680"',
    "bar noise": 'fill="#868680"',
    "bar impossible": f'fill="{_ALARM}"',
    "track": 'fill="#f0efeb"',
    "truth": f'fill="{_INK}"',
    "whisker": 'stroke="#04211e" stroke-width="1.5"',
    "whisker noise": 'stroke="#33342f" stroke-width="1.5"',
    "whisker open": 'stroke="#04211e" stroke-width="1.5" fill="none"',
    "grid": 'stroke="#ecebe6"',
    "notch": 'stroke="#ecebe6"',
    "zero": 'stroke="#8c8d87"',
    "quantile": 'stroke="#04211e" stroke-opacity="0.6" stroke-dasharray="2 4"',
    "alarm": f'fill="{_ALARM}" fill-opacity="0.2"',
    "dot": f'fill="{_ACCENT}" stroke="{_ACCENT}"',
    "dot partial": f'fill="#ffffff" stroke="{_ACCENT}"',
    "dot alarmed": f'fill="{_ALARM}" stroke="{_ALARM}"',
    "dot partial alarmed": f'fill="#ffffff" stroke="{_ALARM}"',
    "interval": f'fill="{_ACCENT}" fill-opacity="0.15" stroke="#3f8f88"',
    "line": f'fill="none" stroke="{_ACCENT}" stroke-width="2"',
    "flag": 'stroke="#6b5310" stroke-dasharray="4 3"',
    "pole": 'fill="#fdf6e3" stroke="#a08638"',
    "tick": f'text-anchor="middle" font-size="12" fill="{_SOFT}"',
    "tick first": f'font-size="12" fill="{_SOFT}"',
    "tick last": f'text-anchor="end" font-size="12" fill="{_SOFT}"',
    "level": f'text-anchor="end" font-size="12" fill="{_SOFT}"',
    "number": 'text-anchor="middle" font-size="12" fill="#6b5310"',
    "long": 'font-size="12"',
    "share": 'text-anchor="end"',
    "value noise": f'fill="{_FAINT}"',
    "title": 'font-size="16"',
    "said": 'font-size="12"',
    "sub": f'font-size="12" fill="{_SOFT}"',
    "foot": f'font-size="11" fill="{_FAINT}"',
    "alarming": f'font-size="13" fill="{_ALARM}"',
    "all": 'font-weight="bold"',
    "cell": 'text-anchor="middle"',
    "cell faded": f'text-anchor="middle" fill="{_FAINT}"',
    "cell small": 'text-anchor="middle" font-size="11" fill="#33342f"',
}


class Sheet(Page):
    """Draws for a picture: `left` pixels from its edge, and `plot` wide."""

    rows_of_a_part = 1000
    each_dot = False
    beside = f' <tspan font-size="12" fill="{_SOFT}">'

    def __init__(
        self, tell: Callable[[str], str], left: float, plot: float, top: float = 0, tone: str = ""
    ) -> None:
        super().__init__(tell)
        self.left, self.plot, self.top, self.tone = left, plot, top, tone

    def within(self, top: float, tone: str = "") -> Sheet:
        return Sheet(self.tell, self.left, self.plot, self.top + top, tone or self.tone)

    def x(self, at: float) -> str:
        return f"{round(self.left + at * self.plot / 100, 1):g}"

    def wide(self, part: float) -> str:
        return f"{round(part * self.plot / 100, 1):g}"

    def y(self, pixels: float, size: int = 16) -> str:
        return f"{round(self.top + pixels, 1):g}"

    def tall(self, pixels: float) -> str:
        return f"{round(pixels, 1):g}"

    def look(self, kind: str) -> str:
        words = [each for each in kind.split() if not each[1:].isdigit()]
        style = next((int(each[1:]) for each in kind.split() if each[1:].isdigit()), 0)
        known = _LOOKS.get(" ".join(words) + self.tone)
        look = known or _LOOKS.get(" ".join(words), _LOOKS.get(words[0], ""))
        if style:
            colour = _COLOURS[style - 1]
            look = look.replace('stroke="#3f8f88"', 'stroke="none"').replace(_ACCENT, colour)
            if words == ["line"] and style > 1:
                look += f' stroke-dasharray="{_DASHES[style - 1]}"'
            if words == ["shape"]:
                look = f'fill="{colour}"'
        return look

    def note(self, kind: str, pixels: float, down: float, text: str, most: int = 0) -> str:
        """A text so many pixels from the edge of the picture."""
        told = self.told(text, most)
        return f'<text {self.look(kind)} x="{pixels:g}" y="{self.y(down)}">{told}</text>'

    def ending(self, kind: str, down: float, shape: str, label: str) -> str:
        right = self.left + self.plot
        moved = f'transform="translate({right + 12:g} {self.y(down)})"'
        return f'<path {moved} d="{shape}" {self.look(kind)}/>' + self.note(
            "long", right + 22, down + 4, label, 18
        )

    def cell(
        self, left: float, top: float, wide: float, tall: float, level: int, *, named: bool
    ) -> str:
        """The ground of a cell: the stronger its colour, the more it says."""
        colour = _ACCENT if level > 0 else "#c2410c" if level < 0 else "#868680"
        framed = f' stroke="{_INK}" stroke-width="2"' if named else ""
        return (
            f'<rect x="{left:g}" y="{self.y(top)}" width="{wide:g}" height="{tall:g}" rx="4" '
            f'fill="{colour}" fill-opacity="{_SHADES[abs(level)]}"{framed}/>'
        )

    def shape(self, kind: str, at: float, down: float, path: str) -> str:
        moved = f'transform="translate({self.x(at)} {self.y(down)})"'
        return f'<path {self.look(kind)} {moved} d="{path}"/>'

    def stretched(self, height: float, paths: Iterable[tuple[str, str]]) -> str:
        drawn = self._paths(paths)
        return (
            f'<g transform="translate({self.left:g} {self.top:g}) scale({self.plot / 1000:g} 1)">'
            f"{drawn}</g>"
        )

    def labels(self, row: BarRow, down: float, middle: float) -> str:
        y, ink = self.y(middle + 4.5), self.look("value")
        right = self.left + self.plot + 14
        return (
            f'<text {ink} text-anchor="end" x="{self.left - 12:g}" y="{y}">'
            f'{self.told(row.label, 18)}</text><text {ink} x="{right:g}" y="{y}">'
            f"{self.number(row)}</text>"
        )

    def flag(self, at: float, half: float, text: str) -> str:
        part = 100 * half / self.plot
        pole = self.rect("pole", at - part, 1, 2 * part, 22, 3)
        return pole + self.text("number", at, 16, text)

    def column(
        self, kind: str, start: float, width: float, top: float, height: float, told: str
    ) -> str:
        return self.rect(kind, start + 0.06 * width, top, 0.88 * width, height)

    def part(self, kind: str, height: float, inner: str, *, top: float = 0, told: str = "") -> str:
        return inner + "\n"

    def figure(self, kind: str, chart: Chart, inner: str) -> str:
        return inner

    def drawing(self, kind: str, chart: Chart, height: float, inner: str) -> str:
        return inner
