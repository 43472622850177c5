"""A guarantee in a terminal: a table of its bounds, and what they do not cover.

`deniable plan privacy --report` writes the page that derives and explains them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deniable.protocol.coded_message import counted
from deniable_estimator.privacy import (
    USEFUL,
    Bound,
    Guarantee,
    Together,
    not_covered,
)
from deniable_estimator.privacy.words import (
    chance,
    factor,
    in_clear,
    pace,
    rounded_up,
    shared_words,
)


def guarantee_view(guarantee: Guarantee) -> RenderableType:
    """One metric: its bounds, what they mean, who can learn what, and what is not covered."""
    bounds = dict(_bound_rows(guarantee))
    return Group(
        Text.assemble((guarantee.metric, "bold"), f"  {guarantee.description}"),
        _dim(_whose(guarantee.household)),
        "",
        _bounds(bounds.items()),
        "",
        *(Text(line) for line in _words(guarantee)),
        *_useless(bounds.values()),
        "",
        _list("Who learns what", guarantee.learned_by.items()),
        "",
        _list("Not covered", (("", each) for each in guarantee.not_covered)),
        _dim(f"Computed from the probabilities in force of {guarantee.mechanism}."),
    )


def together_view(together: Together) -> RenderableType:
    """All metrics: a line for each, and what they reveal together."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("metric", overflow="fold")
    for heading in ("one report", "a typical year", "the worst year", "a lifetime"):
        table.add_column(f"{heading}\nepsilon", justify="right")
    table.add_column("50/50 guess right\nafter one report", justify="right")
    shown: list[Bound] = []
    lines: list[tuple[str, Guarantee | Together, str]] = [
        (one.metric + ("*" if one.memory else ""), one, "") for one in together.metrics
    ]
    for name, each, style in (*lines, ("all together", together, "bold")):
        spans = each.report, each.typical_year, each.worst_year, each.lifetime
        shown += [bound for bound in spans if bound is not None]
        table.add_row(
            Text(name),
            *("no bound" if bound is None else _epsilon(bound) for bound in spans),
            _guess(each.report),
            style=style,
        )
    return Group(
        Text("What the reports of a device reveal at most", style="bold"),
        _dim(_whose(together.household)),
        "",
        table,
        "",
        *(Text(line) for line in _total_words(together)),
        *_useless(shown),
    )


def _bound_rows(guarantee: Guarantee) -> Iterator[tuple[str, Bound]]:
    yield "one report", guarantee.report
    if (memory := guarantee.memory) is not None:
        yield "all reports of one value", memory.memo
        if memory.edited is not None:
            yield "the same, with the memos of later edits", memory.edited
        if memory.values is not None:
            assert memory.cells is not None
            yield f"of all values ({counted(memory.cells, 'memo')})", memory.values
        yield "each report, if values change", guarantee.each
    typical = rounded_up(guarantee.typical_reports, 1).removesuffix(".0")
    yield f"a typical year ({_reports(typical)})", guarantee.typical_year
    yield f"the worst year ({_reports(f'{guarantee.most_reports:,}')})", guarantee.worst_year
    if guarantee.lifetime is not None:
        yield f"a lifetime ({_reports(f'{guarantee.lifetime_reports:,}')})", guarantee.lifetime
    if (same := guarantee.same_values) is not None:
        names = f"about the same values ({', '.join(same.metrics)})"
        yield f"one report of each {names}", same.report
        yield "all of them in a typical year", same.typical_year
        yield "all of them in the worst year", same.worst_year
        if same.lifetime is not None:
            yield "all of them in a lifetime", same.lifetime


def _words(guarantee: Guarantee) -> Iterator[str]:
    yield from shared_words(guarantee)
    if clear := in_clear(guarantee):
        yield clear
    if guarantee.memory is None:
        yield f"Every report has new noise, so the epsilons of reports add up. {pace(guarantee)}"
        return
    yield (
        "The device keeps one permanent randomized response (memo) for each value. The bounds of "
        "memos are about values, not about the times at which they change: over time, each report "
        f"adds at most epsilon {rounded_up(guarantee.each.epsilon, 3)}. {pace(guarantee)}"
    )


def _total_words(together: Together) -> Iterator[str]:
    yield (
        "All metrics are reported by the same device, so their epsilons add up: this bounds what "
        "is revealed about all its values together."
    )
    if together.cap is not None:
        yield (
            f"The registry caps the sum at lifetime_epsilon = {together.cap:g} for each device: "
            "then it stops for good."
        )
    if any(each.memory for each in together.metrics):
        yield (
            "* with memos: the figures bound any history; `deniable plan privacy METRIC` has the "
            "bound for one value."
        )
    if together.lifetime is None:
        yield (
            "There is no bound for a lifetime, because metrics with memos report until they "
            "expire. A lifetime_epsilon at the top of the registry would end them."
        )
    if seen := [each.metric for each in together.metrics if each.answer == "at_once"]:
        yield (
            f"Answered at once: {', '.join(seen)}. The network sees roughly when the app is first "
            "used in a window of theirs."
        )
    if told := [each.metric for each in together.metrics if each.segments]:
        yield (
            f"Counted by segments: {', '.join(told)}. Their reports tell the device's segments in "
            "clear, and the figures compare values of devices of the same segments."
        )
    web = any(each.web for each in together.metrics)
    segments = any(each.segments for each in together.metrics)
    covered = not_covered(remembers=False, web=web, segments=segments)
    yield "Not covered: " + "; ".join(covered) + "."


def _useless(bounds: Iterable[Bound]) -> Iterator[Text]:
    """What a figure stands for that is not shown."""
    if not all(each.useful for each in bounds):
        yield Text(
            f"> {USEFUL:g}: no useful bound. With such an epsilon, whoever sees all these reports "
            "could be as good as certain."
        )


def _whose(household: int) -> str:
    if household == 1:
        return "of one device"
    return f"of a household of {household} devices with the same value: {household} times one"


def _bounds(rows: Iterable[tuple[str, Bound]]) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("of what", overflow="fold")
    table.add_column("epsilon", justify="right")
    table.add_column("odds shift by", justify="right")
    table.add_column("50/50 guess right", justify="right")
    for what, bound in rows:
        odds = f"x {factor(bound)}" if bound.useful else "no useful bound"
        table.add_row(what, _epsilon(bound), odds, _guess(bound))
    return table


def _epsilon(bound: Bound) -> str:
    return rounded_up(bound.epsilon, 3) if bound.useful else f"> {USEFUL:g}"


def _guess(bound: Bound) -> str:
    return f"{chance(bound)}%" if bound.useful else ""


def _reports(count: str) -> str:
    return f"{count} report{'' if count == '1' else 's'}"


def _list(title: str, lines: Iterable[tuple[str, str]]) -> RenderableType:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for who, what in lines:
        table.add_row(who or "-", what)
    return Group(Text(title, style="bold"), table)


def _dim(text: str) -> Text:
    return Text(text, style="dim")
