"""`deniable plan`: what a metric will detect, computed before it is declared; and `deniable plan
simulate`: one window of a made-up crowd, with the truth beside what is estimated, of a retention
many windows of a crowd that comes, stays and goes.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import click
import numpy as np
from numpy.random import Generator

from deniable import Metric, Registry
from deniable.protocol import windows
from deniable.protocol.coded_message import counted
from deniable.protocol.mechanisms.prefix_tree import head
from deniable.protocol.types.discovery import Discovery
from deniable.protocol.types.number import Number
from deniable.protocol.types.retention import Retention
from deniable.protocol.value_list import read_values
from deniable.tools.command_line import Command, command
from deniable_collector.options import registry_option
from deniable_estimator.analyses import sample_tally
from deniable_estimator.analyses.retention import WindowedTally
from deniable_estimator.asking.discoveries import finds_of
from deniable_estimator.asking.fetch import Question
from deniable_estimator.asking.query import find_metric
from deniable_estimator.document.csv_files import plain
from deniable_estimator.document.document import Document, Note, to_data
from deniable_estimator.document.terminal import MOST_ROWS, printable
from deniable_estimator.inputs import InputError
from deniable_estimator.kinds import PLANS, make_plan
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.basis import Part
from deniable_estimator.kinds.discovery.words import finds_document
from deniable_estimator.kinds.kind import Shown
from deniable_estimator.kinds.registry import answer_of, kind_of
from deniable_estimator.kinds.retention.crowd import Life, tallies_of, true_series
from deniable_estimator.messages import isolated
from deniable_estimator.planning.population import Crowd, CrowdValues, made_up, read_population
from deniable_estimator.statistics.participation import Participation
from deniable_estimator.terminal.options import (
    as_json,
    assumed_fakes,
    candidates_option,
    click_options,
    progress,
    say,
)


def _command(kind: str, example: str, told: str) -> Command:
    """The command of a kind of plan."""

    @command(example, help=told)
    @click_options(PLANS[kind].inputs)
    @as_json
    def run(form: str | None, **asked: Any) -> None:
        _show(kind, form, asked)

    return run


def _show(kind: str, form: str | None, asked: dict[str, Any]) -> None:
    given = {each.name: each.default for each in PLANS[kind].inputs} | asked
    try:
        document = make_plan(kind, given, fakes=assumed_fakes()).document
    except InputError as error:
        option = f"--{error.name.replace('_', '-')}"
        raise click.BadParameter(str(error), param_hint=f"'{option}'") from error
    say(form, lambda: to_data(document), lambda: document)


plan = _command(
    "values",
    "deniable plan --size 5 --epsilon 1 --devices 100000",
    "Compute what a metric of --size values can detect, before it is declared.\n\n"
    "The commands below do so for numbers, pairs and strings that nobody listed.",
)
number = _command(
    "number",
    "deniable plan number --low 0 --high 20 --ask mean --epsilon 1 --devices 100000",
    "Compute what a number of new noise in each report can detect.\n\n"
    "docs/how-to/numbers.md says how many reports a distribution with memos takes.",
)
discovery = _command(
    "discovery",
    "deniable plan discovery --epsilon 4 --devices 1000000",
    "Compute how common a string that nobody listed must be to be found.",
)
retention = _command(
    "retention",
    "deniable plan retention --epsilon 2 --lifetime-epsilon 4 --devices 50000",
    "Compute how well it can be told who is new, who stays and who comes back.",
)
lifetime = _command(
    "lifetime",
    "deniable plan lifetime --size 5 --lifetime-epsilon 8 --years 2",
    "List the ways to divide a lifetime epsilon: few reports with a large epsilon each, or many "
    "with a small one.",
)


@command("deniable plan pair 3x4 --epsilon 1 --devices 100000")
@click.argument("shape", metavar="ROWSxCOLUMNS")
@click_options(PLANS["pair"].inputs)
@as_json
def pair(shape: str, form: str | None, **asked: Any) -> None:
    """Compute which dependence between two lists of so many values can be detected."""
    found = re.fullmatch(r"([0-9]{1,4}) *[x×] *([0-9]{1,4})", shape)
    if found is None:
        raise click.UsageError("the shape says how many values both lists have: write it like 6x4")
    _show("pair", form, {**asked, "rows": int(found[1]), "columns": int(found[2])})


_FIRST = "2026-01-05"
"""A Monday, on which the first window of a retention begins; of months, the first of them."""

_WINDOWS = 20
"""A retention is simulated in so many windows."""

_MISSED = 10
"""So many of the commonest strings that were not found are named."""

_ROWS = {"number": "series", "retention": "series", "pair": "cells", "discovery": "finds"}
"""The rows of JSON that have a truth, by the type of the metric; of the others its values."""

_Drawn: TypeAlias = tuple[dict[str, Any], Document, Sequence[float | None]]
"""What is estimated of a simulated crowd, for JSON and in words, and what is true of each row."""


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
    declared, rng = find_metric(Registry.load(registry), metric), np.random.default_rng(seed)
    _check(declared, shares, candidates)
    with progress(f"Simulating {counted(devices, 'device')}"):
        if isinstance(declared.type, Retention):
            life = Life.steady(devices)
            words, drawn = life.words(devices), _lives(declared, declared.type, life, devices, rng)
        else:
            population = (
                made_up(declared, None if candidates is None else read_values(candidates))
                if shares is None
                else read_population(shares, declared)
            )
            words, drawn = population.words, _window(declared, population, devices, rng)
    report, document, truth = drawn
    rows = _ROWS.get(declared.type.name, "values")
    for row, each in zip(report[rows], plain(truth), strict=True):
        row["truth"] = each
    notes = (*document.notes, Note(f"The simulated devices: {words}."))
    say(
        form,
        lambda: {"devices": devices, **report},
        lambda: replace(document, notes=notes),
        # Found strings are such that strangers could have written them.
        ascii_only=rows == "finds",
    )


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


def _window(declared: Metric, population: CrowdValues, devices: int, rng: Generator) -> _Drawn:
    """One window of a crowd with these values."""
    kind, values = declared.type, population.values
    counts = rng.multinomial(devices, population.shares)
    reporting = rng.binomial(counts, declared.rate)
    tally = sample_tally(declared.scheme, reporting, rng, values=values, metric=declared.name)
    if isinstance(kind, Discovery):
        heads = [head(each, kind.levels, kind.alphabet) for each in values]
        truth: dict[bytes, float] = {}
        for each, share in zip(heads, (counts / devices).tolist(), strict=True):
            truth[each] = truth.get(each, 0.0) + share
        return _found(
            declared, Part(tally, declared.scheme, None, Participation.evenly(tally)), truth
        )
    looked_for = values if declared.needs_candidates else None
    answer = answer_of(tally, declared.scheme, looked_for, unit=kind.unit)
    if isinstance(kind, Number):
        crowd = Crowd.of(np.array(values, np.float64), counts.astype(np.float64))
        return _answered(answer, crowd, [crowd.series(each) for each in answer.series.names])
    parts = counts / devices
    return _answered(answer, parts, parts.tolist())


def _answered(answer: Answer, known: Any, truth: Sequence[float | None]) -> _Drawn:
    """An answer with what is `known` of the crowd, and of each row of it."""
    shown = Shown(drawn=False, rows=MOST_ROWS, truth=known)
    return answer.to_dict(), kind_of(answer).document(answer, shown), truth


def _found(declared: Metric, part: Part, truth: dict[bytes, float]) -> _Drawn:
    """The strings that were found in a tally, how many of them some device has, and which were
    not."""
    found = finds_of(Question((part,)), declared)
    told = [truth.get(each.head, 0.0) for each in found.finds]
    known = {each.head for each in found.finds}
    missed = sorted(
        ((share, each) for each, share in truth.items() if share and each and each not in known),
        reverse=True,
    )[:_MISSED]
    named = [(each.decode("utf-8", "backslashreplace"), share) for share, each in missed]
    document = finds_document(found, MOST_ROWS)
    notes = [*document.notes]
    if told:
        held = sum(
            each.low <= share <= each.high for each, share in zip(found.finds, told, strict=True)
        )
        right = f"Truth: {held:,} of {len(told):,} intervals hold the true share"
        notes.append(Note(f"{right}, and {told.count(0.0):,} of the strings are nobody's."))
    if named:
        text = ", ".join(f"{isolated(printable(name))} {share:.2%}" for name, share in named)
        notes.append(Note(f"The commonest that were not found: {text}."))
    listed = [{"text": text, "truth": share} for text, share in named]
    report = {**found.to_dict(), "missed": listed}
    return report, replace(document, notes=tuple(notes)), told


def _lives(declared: Metric, kind: Retention, life: Life, devices: int, rng: Generator) -> _Drawn:
    """Windows of a crowd of which about `devices` are active in each of them."""
    first = windows.window_at(declared.window, windows.start(_FIRST))
    labels = [windows.shifted(first, place) for place in range(_WINDOWS)]
    drawn = list(tallies_of(declared, labels, [life] * _WINDOWS, rng, older=devices - life.new))
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
    reports = {each.windows[0]: each.reports for each in tallies}
    answer = answer_of(whole, declared.scheme, participation=Participation(reports, declared.rate))
    truth = true_series([window for _, window in drawn], kind.ages)
    return _answered(answer, truth, [truth.get(each) for each in answer.series.names])
