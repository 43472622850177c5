"""Writes the same shapes for a picture of its own: pixels and every colour, for programs that know
no style sheet."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from deniable_estimator.document.plot.marks import BarRow, Chart, LineChart
from deniable_estimator.document.plot.page import Page
from deniable_estimator.document.plot.ticks import Tick

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

    def text(self, kind: str, at: float, down: float, text: str, *, aside: float = 0) -> str:
        # The marks of an axis stand a little beside it.
        moved = at - 1000 / self.plot if kind == "level" else at
        return self._written(kind, self.x(moved), down, self.told(text))

    def note(self, kind: str, pixels: float, down: float, text: str, most: int = 0) -> str:
        """A text so many pixels from the edge of the picture."""
        return self._written(kind, f"{pixels:g}", down, self.told(text, most))

    def _written(self, kind: str, x: str, down: float, told: str) -> str:
        return f'<text x="{x}" y="{self.y(down)}" {self.look(kind)}>{told}</text>'

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

    def shape(self, kind: str, at: float, down: float, path: str, more: str = "") -> str:
        return (
            f'<g transform="translate({self.x(at)} {self.y(down)})">'
            f'<path {self.look(kind)} d="{path}"/>{more}</g>'
        )

    def stretched(self, height: float, paths: Iterable[tuple[str, str]]) -> str:
        drawn = self._paths(paths)
        return (
            f'<g transform="translate({self.left:g} {self.top:g}) scale({self.plot / 1000:g} 1)">'
            f"{drawn}</g>"
        )

    def labels(self, row: BarRow, down: float, middle: float) -> str:
        y, ink = self.y(middle + 4.5), self.look("value")
        name, number = self.told(row.label, 18), self._number(row, row.between)
        return (
            f'<text x="{self.left - 12:g}" y="{y}" text-anchor="end" {ink}>{name}</text>'
            f'<text x="{self.left + self.plot + 14:g}" y="{y}" {ink}>{number}</text>'
        )

    def above(self, row: BarRow, down: float) -> str:
        y, between = self.y(down), row.between if row.at is not None else ""
        return (
            f'<text x="{self.x(0)}" y="{y}">{self.told(row.label)}</text>'
            f'<text x="{self.x(100)}" y="{y}" text-anchor="end">{self._number(row, between)}</text>'
        )

    def _number(self, row: BarRow, between: str) -> str:
        told = f"±{self.told(row.spread)}" if row.spread else ""
        if between:
            told = f"({self.told(between)})"
        beside = f' <tspan fill="{_SOFT}" font-size="12">{told}</tspan>' if told else ""
        return self.told(row.number) + beside

    def flag(self, at: float, half: float, text: str) -> str:
        middle = self.left + at * self.plot / 100
        pole = (
            f'<rect {self.look("pole")} x="{middle - half:.1f}" y="{self.y(1)}" '
            f'width="{2 * half:.1f}" height="22" rx="3"/>'
        )
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

    def ticks(self, chart: LineChart) -> Iterable[Tick]:
        # The year is not on the picture, unless each date has it.
        return [each for each in chart.years or chart.ticks if 16 * each.least <= self.plot]
