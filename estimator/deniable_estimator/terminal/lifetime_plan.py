"""The ways to divide a lifetime epsilon, in a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deniable.coded_message import counted
from deniable_estimator.planning.lifetime_choices import LifetimeChoice, LifetimePlan
from deniable_estimator.planning.lifetime_words import (
    best_words,
    rate_words,
    verdicts,
    width_words,
)
from deniable_estimator.privacy.words import chance

_WINDOWS = {"day": "days", "week": "weeks", "month": "months"}


def lifetime_plan_view(plan: LifetimePlan) -> RenderableType:
    """The choices as a table, the best one marked, and what is best for what."""
    parts: list[RenderableType] = [Text(each) for each in _head(plan)]
    parts += ["", _choices_table(plan)]
    parts += [Text(each, style="dim") for each in _notes(plan)]
    parts.append("")
    parts.append(Text(best_words(plan), style="bold"))
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(style="dim", max_width=18)
    facts.add_column(overflow="fold")
    for name, figure, told in verdicts(plan):
        facts.add_row(name, Text(f"{figure} {told}."))
    return Group(*parts, facts)


def _head(plan: LifetimePlan) -> Iterator[str]:
    years = "year" if plan.years == 1 else "years"
    yield (
        f"Lifetime epsilon {plan.lifetime_epsilon:g} over {plan.years:g} {years} "
        f"({plan.windows:,} {_WINDOWS[plan.window]})"
    )
    yield f"{counted(plan.devices, 'device')}; {plan.turnover:.0%} of them are replaced in a year"
    if plan.share is not None:
        yield f"Intervals: 95%, of a share of {100 * plan.share:g}% in an average window"
    else:
        what = "the mean" if plan.question == "mean" else "the share below a limit"
        yield f"Intervals: 95%, of {what} in an average window"


def _notes(plan: LifetimePlan) -> Iterator[str]:
    yield "tells: what all windows tell together, compared with the best (*)."
    yield "right after: how often a 50/50 guess between two values is right at most."
    yield "left: the devices that have reports left after these years, and in the long run."
    if not all(each.advised for each in plan.choices):
        yield f"Dim: above epsilon {plan.most_epsilon:g} one report alone hides little."


def _choices_table(plan: LifetimePlan) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 1, 0, 0))
    for heading in (
        "reports",
        "epsilon\nof each",
        "sample\nrate",
        "interval",
        "tells",
        "right after\none",
        "right after\nall",
        "left at\nthe end",
        "left in the\nlong run",
    ):
        table.add_column(heading, justify="right", vertical="bottom")
    for each in plan.choices:
        table.add_row(*map(Text, _choice_cells(plan, each)), style=None if each.advised else "dim")
    return table


def _choice_cells(plan: LifetimePlan, each: LifetimeChoice) -> Iterator[str]:
    yield ("* " if each == plan.best else "") + f"{each.reports:,}"
    yield f"{each.epsilon:g}"
    yield rate_words(each.sample_rate)
    yield f"±{width_words(plan, each.half_width)}"
    yield f"{100 * each.relative:.0f}%"
    yield f"{chance(each.one)}%"
    yield f"{chance(each.life)}%"
    yield f"{100 * each.left_after_years[-1]:.0f}%"
    yield f"{100 * each.left_at_last:.0f}%"
