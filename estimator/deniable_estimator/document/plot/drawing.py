"""Writes charts as SVG: on a page by a `Page`, in a file by a `Sheet`.

Text that comes from outside is escaped where it is written, in `_Pen.told`; all else is numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from markupsafe import Markup

from deniable_estimator.document.plot.marks import (
    BarRow,
    Bars,
    Chart,
    Columns,
    Dots,
    DrawnLine,
    HeatMap,
    LineChart,
)
from deniable_estimator.document.plot.pens import Page, Sheet
from deniable_estimator.document.plot.scales import Tick
from deniable_estimator.messages import message

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

_ROW, _MARK = 36, 40
"""Pixels from one bar to the next, and from one dot: room for a label above it on a phone."""
_AXIS = 26
"""Pixels of the axis below a plot."""
_CROWDED = 62
"""From so many dots on they are small."""
_CELL = {True: (92, 44), False: (52, 30)}
"""How large cells are, with room for two numbers or for one."""
_NAMES = 160
"""Pixels of the names of rows beside cells."""


def draw(chart: Chart, pen: Page) -> Markup:
    """The chart, drawn by this pen."""
    drawn: Callable[[Any, Page], str] = _DRAWN[type(chart)]
    return Markup(drawn(chart, pen))  # noqa: S704


def room_of(chart: Chart) -> tuple[int, int, int, int]:
    """What a chart takes in a picture, in pixels: before its plot, the plot, after it, and its
    height."""
    match chart:
        case Bars():
            beside = (190, 460, 200) if any(row.between for row in chart.rows) else (170, 480, 130)
            return *beside, _ROW * len(chart.rows) + (_AXIS if chart.ticks else 0)
        case Dots():
            return 60, 640, 80, _MARK * len(chart.rows) + _AXIS
        case Columns():
            left, plot, right, below = room_of(chart.marks)
            return left, plot, right, chart.height + below
        case LineChart():
            beside = (70, 550, 160) if chart.several else (70, 690, 20)
            return *beside, chart.height + _AXIS
        case HeatMap():
            wide, tall = _CELL[chart.wide]
            cells = max(700, wide * len(chart.heads))
            return _NAMES, cells, 40, _AXIS + tall * len(chart.rows)
    raise TypeError(type(chart))


def _bars(chart: Bars, pen: Page) -> str:
    """A few rows are one drawing each, so that paper can break a long chart between them."""
    parts = []
    for first in range(0, len(chart.rows), pen.rows_of_a_part):
        some = chart.rows[first : first + pen.rows_of_a_part]
        tall = _ROW * len(some)
        drawn = [pen.line("grid", tick.at, 0, tick.at, tall) for tick in chart.ticks]
        drawn.append(pen.line("zero whole", chart.zero, 0, chart.zero, tall))
        for place, row in enumerate(some):
            top = _ROW * place
            bar = _bar(row, chart, pen.within(top, _tone(row)))
            drawn.append(pen.part(f"row{_tone(row)}", _ROW, bar, top=top, told=_tooltip(row)))
        parts.append(pen.part("", tall, "".join(drawn)))
    if chart.ticks:
        below = pen.within(_ROW * len(chart.rows))
        parts.append(below.part("axis", _AXIS, "".join(_tick(below, each) for each in chart.ticks)))
    return pen.figure("large", chart, "".join(parts))


def _tone(row: BarRow) -> str:
    return " impossible" if row.impossible else " noise" if row.noise else ""


def _tick(pen: Page, tick: Tick) -> str:
    return pen.text(f"tick{' last' if tick.at > 97 else ''}", tick.at, 18, tick.text)


def _tooltip(row: BarRow) -> str:
    if row.between:
        return message(
            "{name}: {estimate} ({between})",
            name=row.label, estimate=row.number, between=row.between,
        )  # fmt: skip
    return message(
        "{value}: {share}, {low} to {high}",
        value=row.label, share=row.number, low=row.low_text, high=row.high_text,
    )  # fmt: skip


def _bar(row: BarRow, chart: Bars, pen: Page) -> str:
    parts = []
    if row.known and row.at is not None:
        start, width = min(chart.zero, row.at), abs(row.at - chart.zero)
        parts.append(pen.rect("bar", start, 20, width, 8, 2))
    if row.known:
        parts.append(whisker(row, pen, 24, 6))
    parts.append(pen.line("zero", chart.zero, 18, chart.zero, 30))
    if row.truth is not None:
        parts.append(pen.upright("truth", row.truth, 15, 18))
    return "".join(parts) + pen.labels(row, 13, 24)


def whisker(row: BarRow, pen: Page, middle: float, reach: float) -> str:
    parts = [pen.line("whisker", row.low, middle, row.high, middle)]
    for at, is_open, arrow in (
        (row.low, row.open_low, "M7-5L0 0L7 5"),
        (row.high, row.open_high, "M-7-5L0 0L-7 5"),
    ):
        if is_open:
            parts.append(pen.shape("whisker open", at, middle, arrow))
        else:
            parts.append(pen.line("whisker", at, middle - reach, at, middle + reach))
    return "".join(parts)


def _dots(chart: Dots, pen: Page) -> str:
    below = pen.within(_MARK * len(chart.rows))
    drawn = _marks(chart.rows, pen) + labels(chart.ticks, below)
    return pen.figure("scale", chart, drawn)


def _marks(rows: Iterable[BarRow], pen: Page) -> str:
    return "".join(
        pen.part("mark", _MARK, _mark(row, pen.within(_MARK * place)), told=_tooltip(row))
        for place, row in enumerate(rows)
    )


def _mark(row: BarRow, pen: Page) -> str:
    dot = "" if row.at is None else pen.circle("dot", row.at, 30, 4)
    track = pen.rect("track", 0, 28, 100, 4)
    return pen.above(row, 16.25) + track + whisker(row, pen, 30, 5) + dot


def labels(ticks: Iterable[Tick], pen: Page) -> str:
    return pen.part("axis", _AXIS, "".join(_label(each, pen, 18) for each in ticks))


def _label(tick: Tick, pen: Page, down: float) -> str:
    anchor = "" if tick.anchor == "middle" else f" {tick.anchor}"
    spare = " spare" if tick.spare and not isinstance(pen, Sheet) else ""
    return pen.text(f"tick{anchor}{spare}", tick.at, down, tick.text)


def _levels(levels: Iterable[Tick], pen: Page, *, inside: bool = False) -> tuple[str, str]:
    """The gridlines of an axis, and what they say: beside it, or in the plot above each line, or
    below the one at the top."""
    lines, texts = [], []
    for each in levels:
        lines.append(pen.line("grid", 0, each.at, 100, each.at))
        below = 4.0 if not inside else -5.0 if each.at > 14 else 14.0
        if each.text:
            beside = 0.0 if inside else -0.8
            texts.append(pen.text("level", 0, each.at + below, each.text, aside=beside))
    return "".join(lines), "".join(texts)


def _columns(chart: Columns, pen: Page) -> str:
    floor, rows = chart.height, chart.marks.rows
    grid, levels = _levels(chart.levels, pen)
    parts = [grid]
    parts += [
        pen.column(
            "bar outside" if each.outside else "bar",
            *(each.start, each.width, floor - each.height, each.height, each.text),
        )
        for each in chart.columns
    ]
    parts += [pen.line("quantile", row.at, 0, row.at, floor) for row in rows if row.at is not None]
    parts += [pen.line("zero", 0, floor, 100, floor), levels]
    drawn = pen.part("", floor, "".join(parts)) + labels(chart.marks.ticks, pen.within(floor))
    return pen.figure("numbers", chart, drawn + _marks(rows, pen.within(floor + _AXIS)))


def _lines(chart: LineChart, pen: Page) -> str:
    height, small, inside = chart.height, chart.form == "trend small", chart.form == "reach"
    grid, levels = _levels(chart.levels, pen, inside=inside)
    parts = [grid]
    # The year is not on a picture, unless each date has it.
    for tick in chart.years if chart.years and isinstance(pen, Sheet) else chart.ticks:
        if chart.form == "trend":
            parts.append(pen.line("notch", tick.at, height, tick.at, height + 5))
        elif inside:
            parts.append(pen.line("grid", tick.at, 0, tick.at, height))
        parts.append(_label(tick, pen, height + 18))
    parts += [
        pen.rect("alarm", each.start, 0, each.width, height)
        for each in chart.points
        if each.alarmed
    ]
    parts += [pen.stretched(height, _paths(chart)), _points(chart, pen)]
    for rule in chart.rules:
        parts.append(pen.line("chosen", *rule.start, *rule.end))
        if rule.text:
            parts.append(pen.text("tick last", 100, rule.start[1] - 5, rule.text))
    for spot in chart.spots:
        parts.append(pen.circle("dot", spot.at, spot.down, spot.radius))
        if spot.text:
            kind, aside = ("chosen-text before", -0.8) if spot.at > 60 else ("chosen-text", 0.8)
            parts.append(pen.text(kind, spot.at, spot.down - 8, spot.text, aside=aside))
    parts.append(levels)
    if chart.several and not small:
        parts += [_end(line, pen) for line in chart.lines]
    return pen.drawing(chart.form, chart, height + (0 if small else 24), "".join(parts))


def _paths(chart: LineChart) -> Iterator[tuple[str, str]]:
    """Every band lies below all lines."""
    for line in chart.lines:
        yield from ((f"interval{_style(line, chart)}", each) for each in line.bands)
    for line in chart.lines:
        kind = f"line{' beyond' if line.dashed else ''}{_style(line, chart)}"
        yield from ((kind, each) for each in line.paths)


def _points(chart: LineChart, pen: Page) -> str:
    """Whiskers and dots; where there are many lines or no axis, dots only where there is no line or
    an alarm."""
    crowded = len(chart.points) * len(chart.lines) >= _CROWDED
    each = chart.form == "trend" and not (chart.several and (crowded or not pen.each_dot))
    radius, parts = 1.5 if crowded else 3, []
    for line in chart.lines:
        for dot in line.dots:
            if dot.alone:
                parts.append(pen.line("whisker", dot.at, dot.low, dot.at, dot.high))
            if not dot.open and (each or dot.alone or dot.alarmed):
                kind = f"{' partial' if dot.partial else ''}{' alarmed' if dot.alarmed else ''}"
                kind = f"dot{kind}{_style(line, chart)}"
                parts.append(pen.circle(kind, dot.at, dot.down, radius))
    return "".join(parts)


def _style(line: DrawnLine, chart: LineChart) -> str:
    return f" s{line.style}" if chart.several else ""


def _end(line: DrawnLine, pen: Page) -> str:
    """The shape at the end of a line, and beside the plot again with its name."""
    kind, shape = f"shape s{line.style}", SHAPES[line.style - 1]
    last = line.dots[-1]
    return pen.shape(kind, last.at, last.down, shape) + pen.ending(
        kind, line.label_at, shape, line.label
    )


def _cells(chart: HeatMap, pen: Sheet) -> str:
    """In a picture; a page has them as a table (`_document.html`)."""
    wide, tall = _CELL[chart.wide]
    heads = (
        pen.note("tick", _NAMES + wide * (place + 0.5), 16, head, 13)
        for place, head in enumerate(chart.heads)
    )
    parts = [*heads]
    for number, row in enumerate(chart.rows):
        inner = pen.within(_AXIS + tall * number)
        middle = tall / 2 + 4
        parts.append(inner.note("all" if row.whole else "value", 20, middle, row.label, 18))
        for place, cell in enumerate(row.cells):
            if cell is None:
                continue
            left, both = _NAMES + wide * place, bool(cell.level and cell.beyond)
            parts.append(inner.cell(left + 1, 1, wide - 2, tall - 2, cell.level, named=cell.named))
            kind = "cell" if cell.level else "cell faded"
            parts.append(inner.note(kind, left + wide / 2, middle - 7 * both, cell.text))
            if both:
                parts.append(inner.note("cell small", left + wide / 2, middle + 9, cell.beyond))
    return "".join(parts)


_DRAWN: dict[type[Chart], Callable[..., str]] = {
    Bars: _bars,
    Dots: _dots,
    Columns: _columns,
    LineChart: _lines,
    HeatMap: _cells,
}
