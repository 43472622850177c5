"""`deniable plan privacy`: what reports reveal of a device, and what published sums do. `--report`
writes the page that derives and explains the bounds.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from deniable import Registry
from deniable.protocol.coded_message import counted
from deniable.tools.command_line import command
from deniable_collector.options import registry_option
from deniable_estimator.asking.query import find_metric
from deniable_estimator.document.document import Column, Document, Frame, Note, Tone, plain
from deniable_estimator.privacy import words
from deniable_estimator.privacy.computing import all_together, guarantee_in
from deniable_estimator.privacy.guarantees import USEFUL, Bound, Guarantee, Together, not_covered
from deniable_estimator.privacy.outsider import DELTA, LEAST_REPORTS, SPANS, Outsider, outsider_of
from deniable_estimator.privacy.report import report
from deniable_estimator.terminal.options import Real, as_json, say


@command("deniable plan privacy browser")
@click.argument("metric", required=False)
@registry_option
@click.option(
    "--household",
    default=1,
    show_default=True,
    type=click.IntRange(1, 10**6),
    help="How many devices have the same value, so that one reveals the others'.",
)
@click.option(
    "--outsider",
    is_flag=True,
    help="Show what published sums reveal to a reader who sees nothing else.",
)
@click.option(
    "--delta",
    type=Real(1e-30, 1e-3),
    help="With --outsider: the probability with which a bound may fail; by default 1e-8.",
)
@click.option(
    "--reports",
    type=click.IntRange(1, 10**12),
    help="With --outsider: how many reports each published sum has at least, of a segment if the "
    "metric has segments; by default 1000.",
)
@click.option(
    "--report",
    "page",
    is_flag=True,
    help="Write the guarantee of all metrics as a page of HTML to be printed: deniable plan "
    "privacy --report > privacy.html.",
)
@as_json
def privacy(
    metric: str | None,
    registry: Path,
    household: int,
    outsider: bool,
    delta: float | None,
    reports: int | None,
    page: bool,
    form: str | None,
) -> None:
    """Show what the reports of METRIC reveal about a device at most; without METRIC, those of all
    metrics together.

    Every figure is computed from the probabilities in force, and rounded up.
    """
    if not (outsider or page) and (delta is not None or reports is not None):
        raise click.UsageError("--delta and --reports belong to --outsider and --report")
    if page and (metric is not None or outsider or household != 1 or form is not None):
        raise click.UsageError(
            "--report is one page of all metrics: only --registry, --reports and --delta go with it"
        )
    if outsider and household != 1:
        raise click.UsageError(
            "--household is of a device's own guarantee: leave it out with --outsider"
        )
    declared = Registry.load(registry)
    asked = reports or LEAST_REPORTS, DELTA if delta is None else delta
    if page:
        click.echo(report(declared, *asked))
        return
    chosen = None if metric is None else find_metric(declared, metric)
    found: Any
    if outsider:
        found = outsider_of(declared, chosen, *asked)
        document = _outsider_document(found)
    elif chosen:
        found = guarantee_in(declared, chosen, household)
        document = guarantee_document(found)
    else:
        found = all_together(declared, household)
        document = together_document(found)
    say(form, lambda: plain(found), lambda: document)


def guarantee_document(guarantee: Guarantee) -> Document:
    """One metric: its bounds, what they mean, who can learn what, and what is not covered."""
    bounds = dict(_bound_rows(guarantee))
    columns = (
        Column("what", "of what", "words"),
        Column("epsilon", "epsilon"),
        Column("odds", "odds shift by"),
        Column("guess", "50/50 guess right"),
    )
    rows = [(what, _epsilon(each), _odds(each), _guess(each)) for what, each in bounds.items()]
    notes = *_words(guarantee), *_useless(bounds.values())
    learned = [(who or "-", what) for who, what in guarantee.learned_by.items()]
    missing = [("-", each) for each in guarantee.not_covered]
    source = f"Computed from the probabilities in force of {guarantee.mechanism}."
    return Document(
        "guarantee",
        f"{guarantee.metric}  {guarantee.description}",
        Note(source, "quiet"),
        frames=(
            Frame("bounds", "", columns, rows, notes=notes),
            Frame("learned", "Who learns what", _LISTED, learned),
            Frame("not_covered", "Not covered", _LISTED, missing),
        ),
        notes=(Note(_whose(guarantee.household), "quiet"),),
    )


_LISTED = Column("who", "", "words"), Column("what", "", "words")


def together_document(together: Together) -> Document:
    """All metrics: a line for each, and what they reveal together."""
    headings = ("one report", "a typical year", "the worst year", "a lifetime")
    columns = (
        Column("metric", "metric", "words"),
        *(Column(each, f"{each}\nepsilon", empty="no bound") for each in headings),
        Column("guess", "50/50 guess right\nafter one report"),
    )
    lines: list[tuple[str, Guarantee | Together]] = [
        (one.metric + ("*" if one.memory else ""), one) for one in together.metrics
    ]
    shown: list[Bound] = []
    rows = []
    for name, each in (*lines, ("all together", together)):
        spans = each.report, each.typical_year, each.worst_year, each.lifetime
        shown += filter(None, spans)
        rows.append((name, *(one and _epsilon(one) for one in spans), _guess(each.report)))
    tones: list[Tone] = ["plain" for _ in lines]
    tones.append("strong")
    notes = *_total_words(together), *_useless(shown)
    return Document(
        "together",
        "What the reports of a device reveal at most",
        Note(""),
        frames=(Frame("metrics", "", columns, rows, tones, notes),),
        notes=(Note(_whose(together.household), "quiet"),),
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
    yield f"a typical year ({_reports(words.typical_reports(guarantee))})", guarantee.typical_year
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
    yield from words.shared_words(guarantee)
    if clear := words.in_clear(guarantee):
        yield clear
    pace = words.pace(guarantee)
    if guarantee.memory is None:
        yield f"Every report has new noise, so the epsilons of reports add up. {pace}"
        return
    yield (
        "The device keeps one permanent randomized response (memo) for each value. The bounds of "
        "memos are about values, not about the times at which they change: over time, each report "
        f"adds at most epsilon {words.rounded_up(guarantee.each.epsilon, 3)}. {pace}"
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
    web = ["web"] if any(each.web for each in together.metrics) else []
    segments = ["segments"] if any(each.segments for each in together.metrics) else []
    yield "Not covered: " + "; ".join(not_covered(web + segments)) + "."


def _useless(bounds: Iterable[Bound]) -> Iterator[str]:
    """What a figure stands for that is not shown."""
    if not all(each.useful for each in bounds):
        yield (
            f"> {USEFUL:g}: no useful bound. With such an epsilon, whoever sees all these reports "
            "could be as good as certain."
        )


def _whose(household: int) -> str:
    if household == 1:
        return "of one device"
    return f"of a household of {household} devices with the same value: {household} times one"


def _odds(bound: Bound) -> str:
    return f"x {words.factor(bound)}" if bound.useful else "no useful bound"


def _epsilon(bound: Bound) -> str:
    return words.rounded_up(bound.epsilon, 3) if bound.useful else f"> {USEFUL:g}"


def _guess(bound: Bound) -> str:
    return f"{words.chance(bound)}%" if bound.useful else ""


def _reports(count: str) -> str:
    return f"{count} report{'' if count == '1' else 's'}"


def _outsider_document(outsider: Outsider) -> Document:
    """The bounds for each span beside the device's own, and beside other ways of composition."""
    rows: list[tuple[Any, ...]] = []
    for span, found in outsider.spans.items():
        ways = (found.epsilon, found.device, found.basic, found.advanced, found.renyi)
        mark = "" if found.known else "*"
        rows.append((SPANS[span] + mark, found.windows, *map(words.figure, ways)))
        if found.steady is not None:
            rows.append(("  fixed value", None, words.figure(found.steady), *[None] * 4))
    columns = (
        Column("span", "published", "words"),
        Column("windows", "windows", "count"),
        Column("epsilon", "epsilon"),
        Column("device", "the device's\nepsilon"),
        *(Column(way, f"{way}\nepsilon") for way in ("basic", "advanced", "Renyi")),
    )
    spans = outsider.spans.values()
    told = {
        _UNKNOWN: any(not each.known for each in spans),
        _NO_END: "lifetime" not in outsider.spans,
        _STEADY: any(each.steady is not None for each in spans),
    }
    crowd = (
        f"n = {outsider.reports:,} reports or more in each published sum, "
        f"delta = {words.plain_delta(outsider.delta)}"
    )
    assumed = Column("assumed", "", "words")
    lines = [(f"- {sentence}",) for sentence in outsider.assumed]
    whose = outsider.metric or "all metrics together"
    return Document(
        "outsider",
        f"What published sums reveal of one device: {whose}",
        Note(""),
        frames=(
            Frame("spans", "", columns, rows, notes=tuple(each for each in told if told[each])),
            Frame("assumed", "What is assumed", (assumed,), lines),
        ),
        notes=(Note(crowd, "quiet"),),
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
