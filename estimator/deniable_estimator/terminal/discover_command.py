"""`deniable estimate discover`: which strings were found, also over time, and how they become
followed ones.

Found strings become candidates of a string metric, or values of a category. A candidates file keeps
its lines, and is replaced as a whole: a dashboard that reads it meanwhile sees the old one or the
new one. The registry is never written: a category's new values are a proposal, because they change
its scheme.

Found strings were written by strangers. Characters that could move the cursor or reorder a line are
shown as replacement characters, and strings that are written from right to left are isolated.
"""

from __future__ import annotations

import json
import math
from itertools import chain
from pathlib import Path
from typing import Literal

import click

from deniable import Registry
from deniable.protocol.coded_message import counted
from deniable.protocol.value_list import read_values, value_text
from deniable.tools.command_line import command, writing
from deniable_estimator.analyses.discovery.prior import read_prior
from deniable_estimator.asking.discoveries import discover as find
from deniable_estimator.asking.discoveries import trend_of_finds
from deniable_estimator.asking.query import find_metric
from deniable_estimator.asking.trend import Trend
from deniable_estimator.document.document import Column, Document, Frame, Note, Tone, WordedValue
from deniable_estimator.document.terminal import MOST_ROWS
from deniable_estimator.document.units import SHARES, half_width
from deniable_estimator.files import replace_file
from deniable_estimator.inputs import MIN_SHARE, WITHOUT
from deniable_estimator.kinds.discovery.finds import Finds
from deniable_estimator.kinds.discovery.words import finds_document
from deniable_estimator.kinds.formats import warned
from deniable_estimator.terminal.call import StoreCall, asks, of_store
from deniable_estimator.terminal.options import (
    candidates_folder_option,
    click_options,
    opened,
    progress,
)


@command("deniable estimate discover plugin")
@asks(WITHOUT)
@click_options((MIN_SHARE,))
@click.option(
    "--prior",
    type=click.Path(path_type=Path),
    help="What text usually looks like, a file of make_prior.py; by default the shipped one.",
)
@click.option(
    "--by",
    type=click.Choice(["day", "week", "month"]),
    help="Show how common each of the strings was in each day, week or month.",
)
@click.option(
    "--promote",
    "target",
    metavar="TARGET",
    help="Follow the strings in the metric TARGET from now on: add them to TARGET.txt in "
    "--candidates-dir for a string metric, or propose the values of a category.",
)
@candidates_folder_option
@of_store("json", "csv")
def discover(
    call: StoreCall,
    min_share: float | None,
    prior: Path | None,
    by: Literal["day", "week", "month"] | None,
    target: str | None,
    folder: Path | None,
) -> None:
    """Find the strings that devices report to the discovery metric METRIC, which nobody listed.

    Every window that touches the range counts; without --from and --to, all of them. At most 1%
    of what is found is expected to be a string that no device has.
    """
    if by and target:
        raise click.UsageError("--by shows and --promote writes: call them one after the other")
    if target:
        _check_target(call.registry, target, folder)
    with opened(call.store) as reader, progress("Decoding", rows=True) as tell:
        asked = reader, call.registry, call.query
        finds = find(
            *asked,
            minimum_share=min_share,
            prior=read_prior(prior) if prior else None,
            folder=folder,
            progress=tell,
        )
        trend = trend_of_finds(*asked, finds, by=by, progress=tell) if by and finds.finds else None
    found = trend or finds

    def document() -> Document:
        return _trend_document(trend) if trend else finds_document(finds, MOST_ROWS)

    call.say(finds.n, found.to_dict, document, found.to_csv, ascii_only=True)
    if target:
        _promote(call.registry, target, finds, folder)


_PERIODS = 7
"""As many periods as fit beside the strings."""


def _trend_document(trend: Trend) -> Document:
    """The share of each string in each period that has reports; quiet where it is not above 0."""
    reported = trend.reported
    shown = [each for each in reported[-_PERIODS:] if each.estimate]
    # Schemes of other lengths cut elsewhere, so that the newest period may not tell all strings.
    known = (each.estimate.series.names for each in reversed(reported) if each.estimate)
    names = tuple(dict.fromkeys(chain.from_iterable(known)))
    rows = []
    for name in names[:MOST_ROWS]:
        cells: list[WordedValue | None] = []
        for period in shown:
            assert period.estimate is not None
            value, low, high = period.estimate.series.at(name)
            told = SHARES.full(value, half_width(value, low, high))
            tone: Tone = "plain" if low > 0 else "quiet"
            cells.append(WordedValue(value, told, tone) if math.isfinite(value) else None)
        rows.append((name, *cells))
    columns = (
        Column("text", "string", "name"),
        *(Column(each.label, f"{each.label}\n{each.n:,}") for each in shown),
    )
    notes = ["Dim: the interval holds 0. The strings were found in the sum of these periods."]
    if (rest := len(names) - MOST_ROWS) > 0:
        notes.insert(0, f"and {counted(rest, 'more string')}: --csv or --json shows all")
    if len(reported) > _PERIODS:
        notes.insert(0, f"The newest {_PERIODS} periods; --csv or --json has all.")
    frame = Frame("periods", "", columns, rows, notes=tuple(notes))
    return Document(
        "trend", trend.metric, Note(""), frames=(frame,), notes=tuple(warned(trend.notes))
    )


def _check_target(registry: Registry, target: str, folder: Path | None) -> None:
    """Refuse what strings cannot be promoted to, before anything is calculated.

    Raises:
        MetricError: the registry declares no such metric.
        click.UsageError: it follows no strings, or no folder of them is named.
    """
    kind = find_metric(registry, target).type.name
    if kind not in ("string", "category"):
        raise click.UsageError(
            f"{target!r} is a {kind} metric: promote to a string metric or to a category"
        )
    if kind == "string" and folder is None:
        raise click.UsageError(
            f"name the folder of {target}.txt, whose strings it follows: --candidates-dir FOLDER"
        )


def _promote(registry: Registry, target: str, finds: Finds, folder: Path | None) -> None:
    """Follow the finds in that metric from now on, and say on standard error what was done.

    Raises:
        ValueListError: the candidates file has a mistake.
        click.ClickException: it cannot be written.
    """
    metric = find_metric(registry, target)
    whole, left = _whole(finds)
    file = None if metric.type.name == "category" else (folder or Path()) / f"{target}.txt"
    known = list(metric.values)
    if file is not None:
        known = read_values(file) if file.is_file() else []
    new = [each for each in whole if each not in set(known)]
    if new and file is None:
        click.echo(f"# Proposed for [metrics.{target}]; it changes the scheme.", err=True)
        click.echo(_toml_list([*known, *new]), err=True)
    elif new and file is not None:
        with writing(file):
            replace_file(file, "".join(f"{each}\n" for each in (*known, *new)), 0o644)
    where = f"proposed for {target}" if file is None else f"added to {file}"
    click.echo(f"{len(new):,} {where}, {len(whole) - len(new):,} known.", err=True)
    if left:
        click.echo(
            f"{left:,} left out: they fill the declared length, so they may be only the beginning "
            "of longer strings, or they hold a control character. Add the whole strings by hand.",
            err=True,
        )


def _whole(finds: Finds) -> tuple[list[str], int]:
    """The finds that can be values of a list, and how many cannot."""
    whole: list[str] = []
    for each in finds.finds:
        try:
            text = value_text(each.text)
        except ValueError:
            continue
        if not each.cut:
            whole.append(text)
    return list(dict.fromkeys(whole)), len(finds.finds) - len(whole)


def _toml_list(values: list[str]) -> str:
    """The key of a category, with its strings as TOML and JSON both write them. All but ASCII is
    escaped, as these lines are copied from a terminal."""
    lines = "".join(f'    "{"".join(map(_escaped, each))}",\n' for each in values)
    return f"values = [\n{lines}]"


def _escaped(letter: str) -> str:
    """TOML has no surrogate pairs: large letters have eight digits."""
    return f"\\U{ord(letter):08x}" if letter > "\uffff" else json.dumps(letter)[1:-1]
