"""`deniable plan simulate`: one window of a made-up crowd, with the truth beside what is estimated;
of a retention many windows of a crowd that comes, stays and goes.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.protocol.coded_message import counted
from deniable.protocol.mechanisms.prefix_tree import head
from deniable.protocol.types.discovery import Discovery
from deniable.protocol.types.number import Number
from deniable.protocol.types.retention import Retention
from deniable.tools.command_line import command
from deniable_collector.options import registry_option
from deniable_estimator.terminal.options import as_json, candidates_option, progress, say

if TYPE_CHECKING:
    import numpy as np
    from numpy.random import Generator
    from numpy.typing import NDArray

    from deniable import Metric
    from deniable_estimator.document.document import Document
    from deniable_estimator.kinds.base import Answer
    from deniable_estimator.kinds.discovery.finds import Finds

# numpy and rich take longer to import than `deniable --help` should.

_FIRST = "2026-01-05"
"""A Monday, on which the first window of a retention begins; of months, the first of them."""

_WINDOWS = 20
"""A retention is simulated in so many windows."""

_MISSED = 10
"""So many of the commonest strings that were not found are named."""


@command("deniable plan simulate browser --devices 50000 --seed 7")
@click.argument("metric")
@registry_option
@click.option(
    "--devices", required=True, type=click.IntRange(1, 10**12), help="How many devices run the app."
)
@click.option(
    "--shares",
    type=click.Path(path_type=Path),
    help="A CSV file of what the devices have, in place of made-up values: value,weight lines, of "
    "a pair value,value,weight, of a discovery string,weight, of a number number,weight.",
)
@candidates_option
@click.option("--seed", type=click.IntRange(0), help="Draw the same population every time.")
@as_json
def simulate(
    metric: str,
    registry: Path,
    devices: int,
    shares: Path | None,
    candidates: Path | None,
    seed: int | None,
    form: str | None,
) -> None:
    """Draw one window's tally of METRIC from a simulated population, and estimate it; of a
    retention many windows, in each of which about so many devices are active.

    The tally is drawn from its exact distribution, so 1,000,000,000 devices take seconds. The
    strings to look for are those that the devices have: of --candidates the first is the commonest.
    """
    import numpy as np

    from deniable import Registry
    from deniable.protocol.value_list import read_values
    from deniable_estimator.analyses import sample_tally
    from deniable_estimator.asking.discoveries import finds_of
    from deniable_estimator.asking.fetch import Question
    from deniable_estimator.asking.query import find_metric
    from deniable_estimator.kinds.basis import Part
    from deniable_estimator.kinds.registry import answer_of
    from deniable_estimator.planning.population import Crowd, made_up, read_population
    from deniable_estimator.statistics.participation import Participation

    declared = find_metric(Registry.load(registry), metric)
    kind, rng = declared.type, np.random.default_rng(seed)
    _check(declared, shares, candidates)
    if isinstance(kind, Retention):
        _simulate_lives(declared, kind, devices, rng, form)
        return
    if shares is not None:
        population = read_population(shares, declared)
    else:
        population = made_up(declared, None if candidates is None else read_values(candidates))
    values = population.values
    with progress(f"Simulating {counted(devices, 'device')}"):
        counts = rng.multinomial(devices, population.shares)
        reporting = rng.binomial(counts, declared.rate)
        tally = sample_tally(declared.scheme, reporting, rng, values=values, metric=metric)
        if isinstance(kind, Discovery):
            part = Part(tally, declared.scheme, None, Participation.evenly(tally))
            finds = finds_of(Question((part,)), declared)
        else:
            looked_for = values if declared.needs_candidates else None
            answer = answer_of(tally, declared.scheme, looked_for, unit=kind.unit)
    if isinstance(kind, Discovery):
        _say_finds(finds, kind, values, counts, population.words, form)
    elif isinstance(kind, Number):
        truth = Crowd.of(np.array(values, np.float64), counts.astype(np.float64))
        told = [truth.series(each) for each in answer.series.names]
        _say_answer(form, answer, devices, truth, "series", told, population.words)
    else:
        parts = counts / devices
        rows = "cells" if kind.of else "values"
        _say_answer(form, answer, devices, parts, rows, parts.tolist(), population.words)


def _check(declared: Metric, shares: Path | None, candidates: Path | None) -> None:
    """Refuse files of values that the metric does not take, and two of them.

    Raises:
        click.UsageError: there are some.
    """
    name, kind = declared.name, declared.type.name
    if shares is not None and kind == "retention":
        raise click.UsageError(f"{name!r} is a {kind}, whose crowd is made up: leave --shares out")
    if candidates is not None and not (declared.needs_candidates or kind == "discovery"):
        raise click.UsageError(f"{name!r} is a {kind}: leave --candidates out")
    if shares is not None and candidates is not None:
        raise click.UsageError("--shares has strings and weights: leave --candidates out")


def _say_answer(
    form: str | None,
    answer: Answer,
    devices: int,
    truth: Any,
    rows: str,
    told: Sequence[float | None],
    words: str,
) -> None:
    """Print the answer of a simulated crowd with the `truth` as `answer_document` takes it; in
    JSON each of these `rows` has the one that is `told` of it."""
    from deniable_estimator.terminal.printing import answer_document

    report = {"devices": devices, **answer.to_dict()}
    _say(form, report, rows, told, lambda: answer_document(answer, truth), words)


def _say(
    form: str | None,
    report: dict[str, Any],
    rows: str,
    told: Sequence[float | None],
    document: Callable[[], Document],
    words: str,
) -> None:
    from deniable_estimator.document.csv_files import plain

    for row, each in zip(report[rows], plain(told), strict=True):
        row["truth"] = each
    crowd = f"The simulated devices: {words}."
    # Found strings are such that strangers could have written them.
    strings = rows == "finds"
    say(form, lambda: report, lambda: _with_notes(document(), crowd), ascii_only=strings)


def _with_notes(document: Document, *notes: str) -> Document:
    from deniable_estimator.document.document import Note

    return replace(document, notes=(*document.notes, *map(Note, notes)))


def _simulate_lives(
    declared: Metric, kind: Retention, devices: int, rng: Generator, form: str | None
) -> None:
    """Print what is estimated of a crowd of which about `devices` are active in each window, beside
    the truth."""
    from deniable.protocol import windows
    from deniable_estimator.analyses.retention import WindowedTally
    from deniable_estimator.kinds.registry import answer_of
    from deniable_estimator.kinds.retention.crowd import Life, tallies_of, true_series
    from deniable_estimator.statistics.participation import Participation

    life = Life.steady(devices)
    first = windows.window_at(declared.window, windows.start(_FIRST))
    labels = [windows.shifted(first, place) for place in range(_WINDOWS)]
    with progress(f"Simulating {_WINDOWS} windows"):
        lives = [life] * _WINDOWS
        drawn = list(tallies_of(declared, labels, lives, rng, older=devices - life.new))
        tallies = [tally for tally, _ in drawn]
        if not all(each.reports for each in tallies):
            mistake = "with so few devices some windows have no report: simulate more"
            raise click.BadParameter(mistake, param_hint="--devices")
        rows = tuple(
            sum(same[1:], same[0]) for same in zip(*(each.rows for each in tallies), strict=True)
        )
        whole = WindowedTally(
            *(declared.name, declared.scheme.fingerprint, tuple(labels), rows), each=tuple(tallies)
        )
        participation = Participation(
            {each.windows[0]: each.reports for each in tallies}, declared.rate
        )
        answer = answer_of(whole, declared.scheme, participation=participation)
    truth = true_series([window for _, window in drawn], kind.ages)
    told = [truth.get(each) for each in answer.series.names]
    _say_answer(form, answer, devices, truth, "series", told, life.words(devices))


def _say_finds(
    finds: Finds,
    kind: Discovery,
    values: Sequence[str],
    counts: NDArray[np.int64],
    words: str,
    form: str | None,
) -> None:
    """Print the strings that were found, how many of them some device has, and which were not."""
    from deniable_estimator.document.terminal import MOST_ROWS, printable
    from deniable_estimator.kinds.discovery.words import finds_document
    from deniable_estimator.messages import isolated

    devices = int(counts.sum())
    heads = [head(each, kind.levels, kind.alphabet) for each in values]
    truth = dict.fromkeys(heads, 0.0)
    for each, count in zip(heads, counts.tolist(), strict=True):
        truth[each] += count / devices
    found = {each.head for each in finds.finds}
    missed = sorted(
        ((share, each) for each, share in truth.items() if share and each and each not in found),
        reverse=True,
    )[:_MISSED]
    named = [(each.decode("utf-8", "backslashreplace"), share) for share, each in missed]

    def document() -> Document:
        notes = []
        false = sum(not truth.get(each.head) for each in finds.finds)
        if finds.finds:
            errors = [each.low <= truth.get(each.head, 0.0) <= each.high for each in finds.finds]
            notes.append(
                f"Truth: {sum(errors):,} of {len(errors):,} intervals hold the true share, and "
                f"{false:,} of the strings are nobody's."
            )
        if named:
            text = ", ".join(f"{isolated(printable(name))} {share:.2%}" for name, share in named)
            notes.append(f"The commonest that were not found: {text}.")
        return _with_notes(finds_document(finds, MOST_ROWS), *notes)

    listed = [{"text": text, "truth": share} for text, share in named]
    report = {"devices": devices, **finds.to_dict(), "missed": listed}
    told = [truth.get(each.head, 0.0) for each in finds.finds]
    _say(form, report, "finds", told, document, words)
