"""Found strings as documents for a terminal: a table with a bar for each, and what they mean;
and how found strings become followed ones.

The strings were written by strangers. Characters that could move the cursor or reorder a line are
shown as replacement characters, and strings that are written from right to left are isolated.

Found strings become candidates of a string metric, or values of a category. A candidates file keeps
its lines, and is replaced as a whole: a dashboard that reads it meanwhile sees the old one or the
new one. The registry is never written: a category's new values are a proposal, because they change
its scheme.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path

import click

from deniable import Registry
from deniable.protocol.coded_message import counted
from deniable.protocol.value_list import read_values, value_text
from deniable_estimator.answers.finds import Explained, Find, Finds
from deniable_estimator.answers.words.texts import heading, warned
from deniable_estimator.asking.query import find_metric
from deniable_estimator.asking.trend import Trend
from deniable_estimator.document.document import Column, Document, Frame, Note, Tone, WordedValue
from deniable_estimator.document.terminal import printable
from deniable_estimator.files import replace_file
from deniable_estimator.forecasting.discovery_forecast import Reach
from deniable_estimator.isolation import isolated
from deniable_estimator.terminal.tables import (
    MOST_ROWS,
    more_words,
    percent,
    share_cell,
    share_column,
)

_DOTS = "\N{HORIZONTAL ELLIPSIS}"

_PERIODS = 7
"""As many periods as fit beside the strings."""


def finds_document(finds: Finds) -> Document:
    """The strings, the commonest first, and what the list says and does not say."""
    notes = [Note(*each) for each in _facts(finds)]
    notes += warned(finds.warnings)
    for figure in finds.verdict.alarms(finds.alarm_level):
        notes.append(Note(f"Anomalous: {figure.text} (p = {figure.p_adjusted:.1g}).", "alarm"))
    top = max([1e-12, *(each.high for each in finds.finds)])
    columns = (
        Column("text", "string", "words"),
        share_column(finds.level, percent(top)),
        Column("followed", "followed by", "words"),
    )
    rows = [
        (_shown(each), share_cell((each.share, each.low, each.high), top), ", ".join(each.followed))
        for each in finds.finds[:MOST_ROWS]
    ]
    more = more_words(len(finds.finds) - MOST_ROWS, "string")
    frames = (Frame("finds", "", columns, rows, notes=more),) if rows else ()
    return Document("finds", heading(finds), Note(""), frames=frames, notes=tuple(notes))


def _facts(finds: Finds) -> Iterator[tuple[str, Tone]]:
    """What to know, each line with its tone."""
    count = len(finds.finds)
    if count:
        what = "1 string explains" if count == 1 else f"{count:,} strings explain"
        yield f"{what} {_part(finds.explained)} of all reports.", "plain"
    if any(each.cut for each in finds.finds):
        text = f"{_DOTS} a string that fills the declared length: longer ones are counted in it."
        yield text, "quiet"
    reach = finds.reach
    if reach is not None:
        if not count and not (finds.below or finds.denied):
            yield "Nothing found.", "strong"
        yield _surfacing(reach), "quiet"
        yield (
            f"About {counted(reach.fakes, 'fake device')} could make a string of theirs appear "
            "here.",
            "quiet",
        )
    if finds.withheld.low > 0:
        yield (
            f"{_part(finds.withheld)} of all reports hold no string: it was empty, denied, or had "
            "a letter outside of the alphabet.",
            "quiet",
        )
    if finds.below:
        yield f"Left out: {finds.below:,} below {_share(finds.minimum_share)}.", "quiet"
    if finds.denied:
        yield f"Left out: {finds.denied:,} that the deny list matches.", "quiet"


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


def finds_trend_document(trend: Trend) -> Document:
    """The share of each string in each period that has reports; quiet where it is not above 0."""
    reported = trend.reported
    shown = [each for each in reported[-_PERIODS:] if each.estimate]
    # Schemes of other lengths cut elsewhere, so that the newest period may not tell all strings.
    told = (each.estimate.series.names for each in reversed(reported) if each.estimate)
    names = tuple(dict.fromkeys(chain.from_iterable(told)))
    rows = []
    for name in names[:MOST_ROWS]:
        cells: list[WordedValue | None] = []
        for period in shown:
            assert period.estimate is not None
            series = period.estimate.series
            at = series.place(name)
            if at is None or not math.isfinite(series.value[at]):
                cells.append(None)
                continue
            value = float(series.value[at])
            cells.append(
                WordedValue(value, percent(value), "plain" if series.low[at] > 0 else "quiet")
            )
        rows.append((isolated(printable(name)), *cells))
    columns = (
        Column("text", "string\nshare in %", "words"),
        *(Column(each.label, f"{each.label}\n{each.n:,}") for each in shown),
    )
    newest = f"The newest {_PERIODS} periods; --csv or --json has all."
    notes = (
        *((newest,) if len(reported) > _PERIODS else ()),
        *more_words(len(names) - MOST_ROWS, "string"),
        "Dim: the interval holds 0. The strings were found in the sum of these periods.",
    )
    frame = Frame("periods", "", columns, rows, notes=notes)
    return Document(
        "trend", trend.metric, Note(""), frames=(frame,), notes=tuple(warned(trend.notes))
    )


def _shown(each: Find) -> str:
    return isolated(printable(each.text)) + (_DOTS if each.cut else "")


def _part(part: Explained) -> str:
    """A share with its interval."""
    return f"{_share(part.share)} ({percent(part.low)} .. {percent(part.high)})"


def _share(share: float) -> str:
    return f"{percent(share)}%"


def followed_lists(registry: Registry, folder: Path | None) -> dict[str, Collection[str]]:
    """The strings that each string metric with a candidates file follows.

    Raises:
        ValueListError: a file cannot be read or has a mistake.
    """
    found: dict[str, Collection[str]] = {}
    for metric in registry:
        if metric.type.name != "string":
            continue
        path = folder / f"{metric.name}.txt" if folder else None
        if path is not None and path.is_file():
            found[metric.name] = frozenset(read_values(path))
    return found


def check_target(registry: Registry, target: str, folder: Path | None) -> None:
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


def promote(registry: Registry, target: str, finds: Finds, folder: Path | None) -> None:
    """Follow the finds in that metric from now on, and say on standard error what was done.

    Raises:
        ValueListError: the candidates file has a mistake.
        click.ClickException: it cannot be written.
    """
    metric = find_metric(registry, target)
    whole, left = _whole(finds)
    if metric.type.name == "category":
        known = list(metric.values)
        new = [each for each in whole if each not in set(known)]
        if new:
            click.echo(f"# Proposed for [metrics.{target}]; it changes the scheme.", err=True)
            click.echo(_toml_list([*known, *new]), err=True)
        where = target
    else:
        path = (folder or Path()) / f"{target}.txt"
        known = read_values(path) if path.is_file() else []
        new = [each for each in whole if each not in set(known)]
        if new:
            _replace(path, "".join(f"{each}\n" for each in (*known, *new)))
        where = str(path)
    what = "proposed for" if metric.type.name == "category" else "added to"
    click.echo(f"{len(new):,} {what} {where}, {len(whole) - len(new):,} known.", err=True)
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
    lines = "".join(f"    {_quoted(each)},\n" for each in values)
    return f"values = [\n{lines}]"


def _quoted(text: str) -> str:
    """A basic string of TOML, which has no surrogate pairs: large letters have eight digits."""
    return "".join(
        each
        if " " <= each <= "~"
        else f"\\u{ord(each):04x}"
        if each <= "\uffff"
        else f"\\U{ord(each):08x}"
        for each in json.dumps(text, ensure_ascii=False)
    )


def _replace(path: Path, text: str) -> None:
    """Write a file whole, so that nobody reads half of it; if it is a link, the file behind it."""
    if path.exists() and not path.is_file():
        raise click.ClickException(f"{path} is no file: name one that holds a string on each line")
    try:
        replace_file(path, text, 0o644)
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from error
