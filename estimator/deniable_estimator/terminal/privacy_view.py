"""A guarantee in a terminal: tables with a bar for each bound, and an explanation in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from deniable.coded_message import counted
from deniable_estimator.privacy import (
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

_WIDTH = 20


def guarantee_view(guarantee: Guarantee) -> RenderableType:
    """One metric: its bounds, what they mean, who can learn what, and what is not covered."""
    table = _bounds()
    for what, bound in _bound_rows(guarantee):
        table.add_row(what, *_cells(bound))
    return Group(
        Text.assemble((guarantee.metric, "bold"), f"  {guarantee.description}"),
        _dim(_whose(guarantee.household)),
        "",
        table,
        "",
        *(Text(line) for line in _words(guarantee)),
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
    table.add_column("50/50 guess right\nin a typical year", justify="right")
    for each in together.metrics:
        table.add_row(
            Text(each.metric + ("*" if each.memory else "")),
            *_epsilons(each.report, each.typical_year, each.worst_year, each.lifetime),
            f"{chance(each.typical_year)}%",
        )
    table.add_section()
    table.add_row(
        "all together",
        *_epsilons(together.report, together.typical_year, together.worst_year, together.lifetime),
        f"{chance(together.typical_year)}%",
        style="bold",
    )
    pictures = _bounds()
    for what, bound in (
        ("one report of every metric", together.report),
        ("all of them in a typical year", together.typical_year),
        ("all of them in the worst year", together.worst_year),
        *((("all of them in a lifetime", together.lifetime),) if together.lifetime else ()),
    ):
        pictures.add_row(what, *_cells(bound))
    return Group(
        Text("What the reports of a device reveal at most", style="bold"),
        _dim(_whose(together.household)),
        "",
        table,
        "",
        pictures,
        "",
        *(Text(line) for line in _total_words(together)),
    )


def _bound_rows(guarantee: Guarantee) -> Iterator[tuple[str, Bound]]:
    yield "one report", guarantee.report
    if guarantee.memory is not None:
        yield "all reports of one value, for ever", guarantee.memory.memo
        if guarantee.memory.values is not None:
            assert guarantee.memory.cells is not None
            memos = counted(guarantee.memory.cells, "memo")
            yield (
                f"of all values, but not of the times of change ({memos})",
                (guarantee.memory.values),
            )
        yield "each report, whatever came before", guarantee.each
    typical = rounded_up(guarantee.typical_reports, 1).removesuffix(".0")
    yield f"a typical year ({_reports(typical)})", guarantee.typical_year
    yield f"the worst year ({_reports(f'{guarantee.most_reports:,}')})", guarantee.worst_year
    if guarantee.lifetime is not None:
        yield f"a lifetime ({_reports(f'{guarantee.lifetime_reports:,}')})", guarantee.lifetime
    if (same := guarantee.same_values) is not None:
        names = f"about the same values ({', '.join(guarantee.same_metrics)})"
        yield f"one report of each {names}", same.report
        yield "all of them in a typical year", same.typical_year
        yield "all of them in the worst year", same.worst_year
        if same.lifetime is not None:
            yield "all of them in a lifetime", same.lifetime


def _words(guarantee: Guarantee) -> Iterator[str]:
    values = "numbers" if guarantee.numeric else "values"
    yield (
        "Whoever sees one report, and knows everything else, can change their odds between any two "
        f"{values} by a factor of at most {factor(guarantee.report)}: a 50/50 guess then is right "
        f"at most {chance(guarantee.report)} times in 100."
    )
    yield from shared_words(guarantee)
    if clear := in_clear(guarantee):
        yield clear
    memory = guarantee.memory
    if memory is None:
        yield (
            "Every report has new noise. The epsilons of all reports add up, whatever the "
            f"{values} were and whenever they changed. When lifetime_epsilon is spent, the device "
            f"stops for good. {pace(guarantee)}"
        )
        return
    yield (
        "The device keeps one permanent randomized response (memo) for each value, and adds fresh "
        "noise for each report. All reports of a value together, however many, reveal no more "
        f"than its memo: a factor of at most {factor(memory.memo)}. {_cells_in_words(guarantee)}"
    )
    yield (
        "This bounds what is revealed about values, but not about the times at which they change. "
        f"For any history, T reports reveal at most T times epsilon "
        f"{rounded_up(guarantee.each.epsilon, 3)}. {pace(guarantee)}"
    )
    if memory.change is not None:
        change = memory.change
        yield (
            f"An example: {change.reports} reports of two alternating values, compared with "
            f"{change.reports} of one value that stays. The memos of two values have epsilon "
            f"{rounded_up(change.memos.epsilon, 3)} together, but these reports distinguish the "
            f"two histories with {_down(change.epsilon)}."
        )
    yield (
        'With longitudinal = "fresh" and a sample_rate, lifetime_epsilon bounds everything, '
        "times of change included."
    )


def _cells_in_words(guarantee: Guarantee) -> str:
    memory = guarantee.memory
    assert memory is not None
    epsilon = rounded_up(memory.memo.epsilon, 3)
    if memory.cells is None:
        return f"It has a memo for every value, of epsilon {epsilon} each."
    return f"It has up to {counted(memory.cells, 'memo')}, of epsilon {epsilon} each."


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
            "* with memos: the figures bound any history; `deniable privacy METRIC` has the bound "
            "for one value."
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


def _whose(household: int) -> str:
    if household == 1:
        return "of one device"
    return f"of a household of {household} devices with the same value: {household} times one"


def _bounds() -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("of what", overflow="fold")
    table.add_column("epsilon", justify="right")
    table.add_column("odds shift by", justify="right")
    table.add_column("50/50 guess right", justify="right")
    table.add_column(f"{'50%':<{_WIDTH - 5}}100%", no_wrap=True)
    return table


def _cells(bound: Bound) -> tuple[str, str, str, Text]:
    return (
        rounded_up(bound.epsilon, 3),
        f"x {factor(bound)}",
        f"{chance(bound)}%",
        _picture(bound),
    )


def _picture(bound: Bound) -> Text:
    """How far a belief moves from a 50/50 guess towards certainty, as a fraction."""
    filled = math.ceil((2 * bound.belief - 1) * _WIDTH)
    bar = Text("█" * filled, style="red" if bound.belief > 0.95 else "cyan")
    return bar.append("░" * (_WIDTH - filled), style="dim")


def _epsilons(*bounds: Bound | None) -> list[str]:
    return ["no bound" if each is None else rounded_up(each.epsilon, 3) for each in bounds]


def _reports(count: str) -> str:
    return f"{count} report{'' if count == '1' else 's'}"


def _down(epsilon: float) -> str:
    """A lower bound as text."""
    return f"{math.floor(epsilon * 1000) / 1000:.3f}"


def _list(title: str, lines: Iterable[tuple[str, str]]) -> RenderableType:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for who, what in lines:
        table.add_row(who or "-", what)
    return Group(Text(title, style="bold"), table)


def _dim(text: str) -> Text:
    return Text(text, style="dim")
