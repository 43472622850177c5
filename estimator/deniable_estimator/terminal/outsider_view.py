"""What published sums reveal, in a terminal: a table of spans, and what is assumed."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deniable_estimator.privacy.outsider import Outsider, figure, plain_delta, span_words


def outsider_view(outsider: Outsider) -> RenderableType:
    """The bounds for each span beside the device's own, and beside other ways of composition."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("published", no_wrap=True)
    table.add_column("windows", justify="right")
    table.add_column("epsilon", justify="right")
    table.add_column("the device's\nepsilon", justify="right")
    for way in ("basic", "advanced", "Renyi"):
        table.add_column(f"{way}\nepsilon", justify="right", style="dim")
    steady = False
    for span, found in outsider.spans.items():
        mark = "" if found.known else "*"
        table.add_row(
            span_words(span) + mark,
            f"{found.windows:,}",
            figure(found.epsilon),
            figure(found.device),
            *map(figure, (found.basic, found.advanced, found.renyi)),
        )
        if found.steady is not None:
            steady = True
            table.add_row("  fixed value", "", figure(found.steady))
    unknown = any(not each.known for each in outsider.spans.values())
    heading = outsider.metric or "all metrics together"
    return Group(
        Text.assemble("What published sums reveal of one device: ", (heading, "bold")),
        Text(
            f"n = {outsider.reports:,} reports or more in each published sum, "
            f"delta = {plain_delta(outsider.delta)}",
            style="dim",
        ),
        "",
        table,
        "",
        *((Text(_UNKNOWN),) if unknown else ()),
        *((Text(_NO_END),) if "lifetime" not in outsider.spans else ()),
        *((Text(_STEADY),) if steady else ()),
        Text("What is assumed", style="bold"),
        *(Text(f"- {sentence}") for sentence in outsider.assumed),
    )


_UNKNOWN = (
    "* No bound below the device's own epsilon is known for a metric with memos here, so the "
    "device's stands."
)

_NO_END = "There is no figure for a lifetime: metrics with memos report until they expire."

_STEADY = (
    "Fixed value: of a device whose value never changes. All its reports tell no more than one "
    "memo."
)
