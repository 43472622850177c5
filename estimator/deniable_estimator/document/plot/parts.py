"""What stands around charts and beside numbers: small drawings, flags, keys, and the frame of a
picture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from markupsafe import Markup, escape

from deniable_estimator.document.plot.drawing import draw, labels, room_of, whisker
from deniable_estimator.document.plot.marks import (
    BarRow,
    Chart,
    Columns,
    Dots,
    DrawnLine,
    Flag,
    LineChart,
)
from deniable_estimator.document.plot.pens import Page, Sheet

_FONTS = "'DejaVu Sans', Verdana, 'Segoe UI', Helvetica, Arial, sans-serif"

_BAR = '<rect class="bar" x="0" y="2" width="20" height="8" rx="2"/>'
_WHISKER = (
    '<line class="whisker" x1="3" x2="27" y1="6" y2="6"/>'
    '<line class="whisker" x1="3" x2="3" y1="2" y2="10"/>'
    '<line class="whisker" x1="27" x2="27" y1="2" y2="10"/>'
)
_KEYS = {
    "bar": (20, 12, _BAR),
    "bar noise": (20, 12, _BAR),
    "bar impossible": (20, 12, _BAR),
    "bar outside": (20, 12, _BAR.replace("bar", "bar outside")),
    "whisker": (30, 12, _WHISKER),
    "number": (30, 12, f'{_WHISKER}<circle class="dot" cx="15" cy="6" r="4"/>'),
    "interval": (
        *(26, 12),
        '<rect class="interval" y="2" width="26" height="8" rx="2"/>'
        '<circle class="dot" cx="13" cy="6" r="3.5"/>',
    ),
    "open": (
        *(26, 12),
        '<rect class="interval" y="2" width="18" height="8" rx="2"/>'
        '<path class="open" d="M18 2L25 6L18 10"/>',
    ),
    "line": (
        *(26, 12),
        '<rect class="interval" width="26" height="12" rx="2"/>'
        '<line class="line" x1="0" x2="26" y1="6" y2="6"/>',
    ),
    "alarm": (12, 16, '<rect class="alarm" width="12" height="16"/>'),
    "truth": (12, 18, '<rect class="truth" x="4" y="0" width="3" height="18" rx="1.5"/>'),
}


def key(kind: str) -> Markup:
    """A small drawing for a legend, or the colour of a cell."""
    if kind in ("up", "down", "faded"):
        return Markup(f'<span class="swatch {kind}" aria-hidden="true"></span>')  # noqa: S704
    width, height, inner = _KEYS[kind]
    tone = "".join(f" {each}" for each in ("noise", "impossible") if each in kind)
    return Markup(  # noqa: S704
        f'<svg class="key{tone}" width="{width}" height="{height}" aria-hidden="true">{inner}</svg>'
    )


def small_bar(row: BarRow, zero: float) -> Markup:
    """A bar without a scale, in a box of 100 by 6 that is stretched across: an overview has
    hundreds of them."""
    at = zero if row.at is None else row.at
    start, width = min(zero, at), abs(at - zero)
    return Markup(  # noqa: S704
        '<svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        f'<path class="b" d="M{start:.4g} 3h{width:.4g}"/>'
        f'<path class="w" d="M{row.low:.4g} 3H{row.high:.4g}"/></svg>'
    )


def small_chart(chart: Columns | Dots, pen: Page) -> Markup:
    """A chart on a card of the overview."""
    return _small_columns(chart, pen) if isinstance(chart, Columns) else _small_dots(chart, pen)


def _small_columns(chart: Columns, pen: Page) -> Markup:
    """A histogram: all bars are one path, in a box that is stretched across."""
    floor = chart.height
    path = "".join(
        f"M{each.start:.1f} {floor}v-{each.height:.1f}h{each.width * 0.88:.1f}V{floor}"
        for each in chart.columns
        if each.height
    )
    return Markup(  # noqa: S704
        f'<svg class="mini" viewBox="0 0 100 {floor}" preserveAspectRatio="none" '
        f'role="img" aria-label="{pen.told(chart.title)}"><path d="{path}"/></svg>'
    )


def _small_dots(chart: Dots, pen: Page) -> Markup:
    """The same of a number on its scale, without words."""
    row = chart.rows[0]
    dot = "" if row.at is None else pen.circle("dot", row.at, 10, 4)
    track = pen.part("", 20, pen.rect("track", 0, 8, 100, 4) + whisker(row, pen, 10, 5) + dot)
    return Markup(pen.figure("scale small", chart, track + labels(chart.ticks, pen)))  # noqa: S704


def spark(line: DrawnLine, label: str) -> Markup:
    """A sparkline; `label` says what it is."""
    # A line without length is drawn as a dot, by its round ends.
    alone = "".join(f"M{10 * each.at:.1f} {each.down}h0" for each in line.dots if each.alone)
    return Markup(  # noqa: S704
        '<svg class="spark" viewBox="0 0 1000 24" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}"><path class="interval" d="{"".join(line.bands)}"/>'
        f'<path class="line" d="{"".join(line.paths)}{alone}"/></svg>'
    )


def strip(row: BarRow, zero: float) -> Markup:
    """A row in a cell of a table: its interval and its dot, with a bar from zero."""
    width, parts = max(round(row.high - row.low, 2), 0.3), []
    if row.at is not None:
        start, part = min(row.at, zero), round(abs(row.at - zero), 2)
        parts.append(f'<rect class="bar" x="{start}%" y="4" width="{part}%" height="6" rx="1"/>')
    parts.append(
        f'<rect class="interval" x="{row.low}%" y="2" width="{width}%" height="10" rx="2"/>'
    )
    if row.open_low:
        parts.append('<path class="open" d="M8 2L1 7L8 12"/>')
    if row.open_high:
        parts.append(
            '<svg x="100%" overflow="visible"><path class="open" d="M-8 2L-1 7L-8 12"/></svg>'
        )
    if row.at is not None:
        parts.append(f'<circle class="dot" cx="{row.at}%" cy="7" r="3.5"/>')
    return Markup(  # noqa: S704
        f'<svg class="row" width="100%" height="14" aria-hidden="true">{"".join(parts)}</svg>'
    )


def part_bar(part: float, height: int = 10) -> Markup:
    """A bar that fills so many percent of its track."""
    return Markup(  # noqa: S704
        f'<svg class="row" width="100%" height="{height}" aria-hidden="true">'
        f'<rect class="track" width="100%" height="{height}" rx="3"/>'
        f'<rect class="bar" width="{part}%" height="{height}" rx="3"/></svg>'
    )


def flags(found: Iterable[Flag], height: int, pen: Page, name: str = "") -> Markup:
    """Annotations over a chart of this height. On a page each flag leads to the entry of its
    number, whose id begins with `name`, and says its text when it is pointed at, touched or reached
    by key."""
    parts = []
    for each in found:
        lines = "".join(pen.line("flag", at, 24, at, height + 24) for at in each.lines)
        half = 4 * len(each.text) + 6.4
        pole = pen.flag(each.at, half, each.text)
        told = pen.told(each.told)
        if isinstance(pen, Sheet):
            parts.append(f"<g><title>{told}</title>{lines}{pole}</g>")
            continue
        parts.append(
            f'<g>{lines}</g><a href="#{escape(name)}-{each.number}" '
            f'aria-label="{escape(each.text)}: {told}">{pole}'
            f'<text class="told {each.anchor}" x="{each.at}%" y="-0.4em" aria-hidden="true">'
            f"{pen.told(each.told, 44)}</text></a>"
        )
    return Markup("".join(parts))  # noqa: S704


def picture(
    charts: Sequence[Chart],
    tell: Callable[[str], str],
    head: Sequence[tuple[str, str]],
    foot: Sequence[tuple[str, str]],
    flagged: Sequence[Flag] = (),
) -> str:
    """A picture of its own: charts below each other, of which the first says what it is, in a frame
    of words. Each line of these has its look: `title`, `said`, `sub`, `foot` or `alarming`."""
    rooms = [room_of(each) for each in charts]
    width = max((780, *(left + plot + right for left, plot, right, _ in rooms)))
    pen = Sheet(tell, 20, width - 40)
    parts, top = [], 30.0
    for kind, text in head:
        if not text:
            continue
        parts.append(pen.note(kind, 20, top, text, 130 if kind != "title" else 70))
        top += 20
    for chart, (left, plot, _, height) in zip(charts, rooms, strict=True):
        if chart.heading:
            parts.append(pen.note("sub", 20, top + 2, chart.heading))
            top += 14
        inner = Sheet(tell, left, plot, top)
        above = 24 if flagged else 0
        parts.append(draw(chart, inner.within(above)))
        if flagged and isinstance(chart, LineChart):
            parts.append(flags(flagged, chart.height, inner))
        top += above + height + 20
    for kind, text in foot:
        parts.append(pen.note(kind, 20, top, text))
        top += 20
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{top:g}" '
        f'viewBox="0 0 {width:g} {top:g}" font-family="{_FONTS}" font-size="13" fill="#1b1c1a">\n'
        f"<title>{pen.told(charts[0].title)}</title>\n<desc>{pen.told(charts[0].description)}</desc>\n"
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n{body}\n</svg>\n'
    )
