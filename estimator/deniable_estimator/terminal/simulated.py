"""`deniable plan simulate`: one window of a made-up crowd, with the truth beside what is estimated;
of a retention many windows of a crowd that comes, stays and goes.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    from deniable_collector.tally import Tally
    from deniable_estimator.document.document import Document
    from deniable_estimator.planning.population import CrowdValues

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
    from deniable_estimator.asking.query import find_metric
    from deniable_estimator.document.csv_files import plain
    from deniable_estimator.document.document import Note
    from deniable_estimator.planning.population import made_up, read_population

    declared, rng = find_metric(Registry.load(registry), metric), np.random.default_rng(seed)
    _check(declared, shares, candidates)
    with progress(f"Simulating {counted(devices, 'device')}"):
        if isinstance(declared.type, Retention):
            drawn = _lives(declared, declared.type, devices, rng)
        elif shares is not None:
            drawn = _window(declared, read_population(shares, declared), devices, rng)
        else:
            listed = None if candidates is None else read_values(candidates)
            drawn = _window(declared, made_up(declared, listed), devices, rng)
    for row, each in zip(drawn.report[drawn.rows], plain(drawn.truth), strict=True):
        row["truth"] = each
    notes = (*drawn.document.notes, Note(f"The simulated devices: {drawn.words}."))
    say(
        form,
        lambda: {"devices": devices, **drawn.report},
        lambda: replace(drawn.document, notes=notes),
        # Found strings are such that strangers could have written them.
        ascii_only=drawn.rows == "finds",
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


@dataclass(frozen=True)
class _Drawn:
    """What is estimated of a simulated crowd, and what is true of it."""

    report: dict[str, Any]
    document: Document
    words: str
    """What the crowd has."""
    rows: str
    """The rows of the report that have a truth."""
    truth: Sequence[float | None]
    """That of each of them."""


def _window(declared: Metric, population: CrowdValues, devices: int, rng: Generator) -> _Drawn:
    """One window of a crowd with these values."""
    import numpy as np

    from deniable_estimator.analyses import sample_tally
    from deniable_estimator.kinds.registry import answer_of
    from deniable_estimator.planning.population import Crowd
    from deniable_estimator.terminal.printing import answer_document

    kind, values, words = declared.type, population.values, population.words
    counts = rng.multinomial(devices, population.shares)
    reporting = rng.binomial(counts, declared.rate)
    tally = sample_tally(declared.scheme, reporting, rng, values=values, metric=declared.name)
    if isinstance(kind, Discovery):
        return _discovered(declared, kind, tally, values, counts, words)
    looked_for = values if declared.needs_candidates else None
    answer = answer_of(tally, declared.scheme, looked_for, unit=kind.unit)
    if isinstance(kind, Number):
        crowd = Crowd.of(np.array(values, np.float64), counts.astype(np.float64))
        truth = [crowd.series(each) for each in answer.series.names]
        document = answer_document(answer, crowd)
        return _Drawn(answer.to_dict(), document, words, "series", truth)
    parts = counts / devices
    document, rows = answer_document(answer, parts), "cells" if kind.of else "values"
    return _Drawn(answer.to_dict(), document, words, rows, parts.tolist())


def _discovered(
    declared: Metric,
    kind: Discovery,
    tally: Tally,
    values: Sequence[str],
    counts: NDArray[np.int64],
    words: str,
) -> _Drawn:
    """The strings that were found in a tally, how many of them some device has, and which were
    not."""
    from deniable_estimator.asking.discoveries import finds_of
    from deniable_estimator.asking.fetch import Question
    from deniable_estimator.document.document import Note
    from deniable_estimator.document.terminal import MOST_ROWS, printable
    from deniable_estimator.kinds.basis import Part
    from deniable_estimator.kinds.discovery.words import finds_document
    from deniable_estimator.messages import isolated
    from deniable_estimator.statistics.participation import Participation

    part = Part(tally, declared.scheme, None, Participation.evenly(tally))
    found = finds_of(Question((part,)), declared)
    truth: dict[bytes, float] = {}
    for each, count in zip(values, counts.tolist(), strict=True):
        name = head(each, kind.levels, kind.alphabet)
        truth[name] = truth.get(name, 0.0) + count / int(counts.sum())
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
    return _Drawn(report, replace(document, notes=tuple(notes)), words, "finds", told)


def _lives(declared: Metric, kind: Retention, devices: int, rng: Generator) -> _Drawn:
    """Windows of a crowd of which about `devices` are active in each of them."""
    from deniable.protocol import windows
    from deniable_estimator.analyses.retention import WindowedTally
    from deniable_estimator.kinds.registry import answer_of
    from deniable_estimator.kinds.retention.crowd import Life, tallies_of, true_series
    from deniable_estimator.statistics.participation import Participation
    from deniable_estimator.terminal.printing import answer_document

    life = Life.steady(devices)
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
    participation = Participation(
        {each.windows[0]: each.reports for each in tallies}, declared.rate
    )
    answer = answer_of(whole, declared.scheme, participation=participation)
    truth = true_series([window for _, window in drawn], kind.ages)
    told = [truth.get(each) for each in answer.series.names]
    document = answer_document(answer, truth)
    return _Drawn(answer.to_dict(), document, life.words(devices), "series", told)
