"""Charts as data: bars, lines with bands, columns, cells and dots, each with its words.

Across, everything is in percent of the plot, so that one drawing fits every width; lines and bands,
which SVG cannot draw in percent, are in thousandths of it and stretched. Down, it is in pixels.
Nothing is clipped: where an interval reaches below zero, so does the plot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from deniable_estimator.document.plot.scales import Tick

MOST_LINES = 8
"""At most so many lines in one chart: more cannot be told apart, by colour or by dashes."""


class BarRow(NamedTuple):
    """A value with its interval, in percent across."""

    label: str
    number: str
    at: float | None = None
    """None where it is not known, or only an end of its interval."""
    low: float = 0.0
    high: float = 0.0
    low_text: str = ""
    high_text: str = ""
    spread: str = ""
    """Half the interval, for beside the number."""
    between: str = ""
    """The interval, for beside the number in place of its half."""
    noise: bool = False
    """Cannot be told from noise: drawn grey."""
    impossible: bool = False
    """No honest crowd has such a share: drawn as an alarm."""
    open_low: bool = False
    """The interval has no limit on this side."""
    open_high: bool = False
    truth: float | None = None
    """The true value, if the devices are simulated."""
    known: bool = True
    """Whether anything is known, so that there is something to draw."""

    @property
    def endless(self) -> bool:
        """Whether its interval has no limit on one side."""
        return self.open_low or self.open_high


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """What charts have in common."""

    name: str = ""
    """Makes the ids inside the SVG unique on a page with several."""
    title: str = ""
    description: str = ""
    """Of the picture, for screen readers."""
    heading: str = ""
    """What it is, over it in a picture with several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars(Chart):
    """A bar from zero and a whisker for each value, on one scale."""

    rows: tuple[BarRow, ...]
    ticks: tuple[Tick, ...] = ()
    zero: float = 0.0
    more: int = 0
    """How many values were left out at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dots(Chart):
    """A dot and a whisker for each number, on a scale whose ends have texts of their own."""

    rows: tuple[BarRow, ...]
    ticks: tuple[Tick, ...]


class HistogramBar(NamedTuple):
    """A bar: `start` and `width` in percent, `height` in pixels from the floor."""

    start: float
    width: float
    height: float
    outside: bool
    """It stands for what lies outside of the range."""
    text: str
    """Its tooltip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns(Chart):
    """A histogram, with marks below it on the same scale."""

    height: int
    columns: tuple[HistogramBar, ...]
    levels: tuple[Tick, ...]
    """Gridlines, in pixels down."""
    marks: Dots


class HeatCell(NamedTuple):
    """One cell of a heat map."""

    text: str
    level: int
    """The step of colour, from -4 to 4; 0 of a cell that is hardly known."""
    between: str = ""
    """Its interval, or why there is none."""
    beyond: str = ""
    """A second number, for below the first where there is a colour."""
    named: bool = False
    """Whether the sentence over the picture names it."""


class CellRow(NamedTuple):
    """One row of a heat map; None where nothing was seen."""

    label: str
    cells: tuple[HeatCell | None, ...]
    note: str = ""
    """Beside the label."""
    counted: str | None = None
    """A cell without colour before the others."""
    whole: bool = False
    """It stands for all the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap(Chart):
    """A heat map: a table whose cells are coloured by how much their number says."""

    corner: str
    """What its rows are."""
    heads: tuple[str, ...]
    over: str = ""
    """What its columns are."""
    counted: str | None = None
    """The head of the cells without colour."""
    rows: tuple[CellRow, ...]
    wide: bool = False
    """Cells have room for their interval; otherwise it is their tooltip."""


class Dot(NamedTuple):
    """A number of one period: `at` in percent across, the rest in pixels down."""

    at: float
    down: float
    low: float
    high: float
    partial: bool
    alarmed: bool
    """Holds windows that raise an alarm."""
    alone: bool
    """Has no neighbour, so that its band must be drawn as a whisker."""
    open: bool = False
    """Its interval has no limit on one side: only the band is drawn."""


class DrawnLine(NamedTuple):
    """One series as it is drawn."""

    label: str = ""
    style: int = 0
    """From 1: its colour, its dashes and the shape at its end; 0 where there is nothing to tell
    apart."""
    paths: tuple[str, ...] = ()
    """SVG paths of unbroken runs, across in thousandths."""
    bands: tuple[str, ...] = ()
    dots: tuple[Dot, ...] = ()
    """Of a small chart only those that it shows, and the last."""
    label_at: float = 0.0
    """Where the label at its end stands, in pixels down: beside other labels, not over them."""
    dashed: bool = False


class Spot(NamedTuple):
    """A point that is chosen among others, in percent across and pixels down."""

    at: float
    down: float
    radius: float
    text: str = ""


class RuleLine(NamedTuple):
    """A line across the plot or down it, to something that was asked for, with what it is."""

    start: tuple[float, float]
    end: tuple[float, float]
    text: str = ""


class Point(NamedTuple):
    """One period as it is read: what its tooltip says."""

    text: str
    """The whole sentence of a single series; of several, the period alone. Empty where there is
    no report."""
    start: float
    """In percent across."""
    width: float
    alarmed: bool
    numbers: tuple[tuple[int, str], ...] = ()
    """Of several series, the style and the text of each."""


class Flag(NamedTuple):
    """One or several annotations on a chart."""

    text: str
    """The numbers that it shows, like 2 or 3–5."""
    number: int
    """The first of them."""
    at: float
    lines: tuple[float, ...]
    """Where each of them happened."""
    told: str
    """What happened."""
    anchor: Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChart(Chart):
    """One or several series, each a line in a band. The scale need not begin at zero, because it
    is the change that a trend is about."""

    form: Literal["trend", "trend small", "numbers", "reach"]
    """Over time, and the same without an axis; over numbers; of a plan, with a grid both ways."""
    height: int
    lines: tuple[DrawnLine, ...]
    levels: tuple[Tick, ...] = ()
    """Gridlines, in pixels down."""
    ticks: tuple[Tick, ...] = ()
    years: tuple[Tick, ...] = ()
    """The same dates, with the year in each, for a picture that leaves the page."""
    points: tuple[Point, ...] = ()
    """One for each period, also where nothing was reported."""
    rules: tuple[RuleLine, ...] = ()
    spots: tuple[Spot, ...] = ()

    @property
    def several(self) -> bool:
        """Whether there are lines to be told apart."""
        return len(self.lines) > 1 and all(line.style for line in self.lines)
