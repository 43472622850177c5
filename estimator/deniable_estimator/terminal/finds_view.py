"""Found strings in a terminal: a table with a bar for each, and what they mean.

The strings were written by strangers. Characters that could move the cursor or reorder a line are
shown as replacement characters, and strings that are written from right to left are isolated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deniable.protocol.coded_message import counted
from deniable_estimator.answers.finds import Explained, Find, Finds
from deniable_estimator.asking.trend import Trend
from deniable_estimator.forecasting.discovery_forecast import Reach
from deniable_estimator.isolation import isolated
from deniable_estimator.terminal.tables import MOST_ROWS, heading, picture, printable

_DOTS = "\N{HORIZONTAL ELLIPSIS}"


def finds_view(finds: Finds) -> RenderableType:
    """The strings, the commonest first, and what the list says and does not say."""
    parts: list[RenderableType] = [heading(finds)]
    if finds.finds:
        parts.append(_finds_table(finds))
    parts += [Text(each, style=style) for each, style in _facts(finds)]
    parts += [Text(f"Note: {warning}.", style="yellow") for warning in finds.warnings]
    for figure in finds.verdict.alarms(finds.alarm_level):
        text = f"Anomalous: {figure.text} (p = {figure.p_adjusted:.1g})."
        parts.append(Text(text, style="bold red"))
    return Group(*parts)


def _finds_table(finds: Finds) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("string", overflow="fold")
    table.add_column("share\n%", justify="right", no_wrap=True)
    table.add_column(f"{finds.level * 100:.3g}% interval\n%", justify="right", no_wrap=True)
    top = max(*(each.high for each in finds.finds), 1e-12)
    table.add_column(f"\n0{_percent(top):>19}", no_wrap=True)
    table.add_column("followed by", overflow="fold")
    for each in finds.finds[:MOST_ROWS]:
        table.add_row(
            Text(_shown(each)),
            Text(_percent(each.share)),
            Text(f"{_percent(each.low)} .. {_percent(each.high)}"),
            picture(each.low, each.share, each.high, top),
            Text(", ".join(each.followed)),
        )
    return table


def _facts(finds: Finds) -> Iterator[tuple[str, str]]:
    """What to know, each line with its style."""
    count = len(finds.finds)
    if count > MOST_ROWS:
        yield f"and {counted(count - MOST_ROWS, 'more string')}: --csv or --json shows all", "dim"
    if count:
        what = "1 string explains" if count == 1 else f"{count:,} strings explain"
        yield f"{what} {_part(finds.explained)} of all reports.", ""
    if any(each.cut for each in finds.finds):
        text = f"{_DOTS} a string that fills the declared length: longer ones are counted in it."
        yield text, "dim"
    reach = finds.reach
    if reach is not None:
        if not count and not (finds.below or finds.denied):
            yield "Nothing found.", "bold"
        yield _surfacing(reach), "dim"
        yield (
            f"About {counted(reach.fakes, 'fake device')} could make a string of theirs appear "
            "here.",
            "dim",
        )
    if finds.withheld.low > 0:
        yield (
            f"{_part(finds.withheld)} of all reports hold no string: it was empty, denied, or had "
            "a letter outside of the alphabet.",
            "dim",
        )
    if finds.below:
        yield f"Left out: {finds.below:,} below {_share(finds.minimum_share)}.", "dim"
    if finds.denied:
        yield f"Left out: {finds.denied:,} that the deny list matches.", "dim"


def _surfacing(reach: Reach) -> str:
    """From which share on strings are on the list; above 1, no share is enough."""
    if reach.sure_text > 1:
        return "This crowd is too small for any string to surface in 95% of cases."
    text = f"With this crowd, strings like ordinary text surface from {_share(reach.sure_text)} on"
    if reach.sure_any > 1:
        return f"{text} in 95% of cases. Rarer ones, and strings of any letters, may be missing."
    return (
        f"{text} in 95% of cases, and strings of any letters from {_share(reach.sure_any)} on. "
        "Rarer ones may be missing."
    )


def trends_view(trend: Trend) -> RenderableType:
    """The share of each string in each period that has reports; dim where it is not above 0."""
    reported = trend.reported
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    table.add_column("string\nshare in %", overflow="fold")
    for period in reported[-_PERIODS:]:
        table.add_column(f"{period.label}\n{period.n:,}", justify="right", no_wrap=True)
    # Schemes of other lengths cut elsewhere, so that the newest period may not tell all strings.
    told = (each.estimate.series.names for each in reversed(reported) if each.estimate)
    names = tuple(dict.fromkeys(chain.from_iterable(told)))
    for name in names[:MOST_ROWS]:
        cells = [Text(isolated(printable(name)))]
        for period in reported[-_PERIODS:]:
            assert period.estimate is not None
            series = period.estimate.series
            at = series.place(name)
            if at is None or not math.isfinite(series.value[at]):
                cells.append(Text(""))
                continue
            clear = series.low[at] > 0
            cells.append(Text(_percent(float(series.value[at])), style="" if clear else "dim"))
        table.add_row(*cells)
    parts: list[RenderableType] = [table]
    if len(reported) > _PERIODS:
        parts.append(Text(f"The newest {_PERIODS} periods; --csv or --json has all.", style="dim"))
    if len(names) > MOST_ROWS:
        text = f"and {counted(len(names) - MOST_ROWS, 'more string')}: --csv or --json shows all"
        parts.append(Text(text, style="dim"))
    text = "Dim: the interval holds 0. The strings were found in the sum of these periods."
    parts.append(Text(text, style="dim"))
    parts += [Text(f"Note: {note}.", style="yellow") for note in trend.notes]
    return Group(*parts)


_PERIODS = 7
"""As many periods as fit beside the strings."""


def _shown(each: Find) -> str:
    return isolated(printable(each.text)) + (_DOTS if each.cut else "")


def _part(part: Explained) -> str:
    """A share with its interval."""
    return f"{_share(part.share)} ({_percent(part.low)} .. {_percent(part.high)})"


def _share(share: float) -> str:
    return f"{_percent(share)}%"


def _percent(share: float) -> str:
    """A share in percent, with as many digits as a small one needs."""
    digits = 2 if abs(share) >= 0.001 or share == 0 else 4
    return f"{share * 100:.{digits}f}"
