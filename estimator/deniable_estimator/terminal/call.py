"""What the commands about a metric in a store are called with: the options that they share, the
question that these ask, and what --since says first."""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.protocol import windows
from deniable_collector.options import Function, registry_option, store_option
from deniable_estimator.files import ANNOTATIONS, file_in_folder
from deniable_estimator.terminal.options import (
    NO_DATA,
    Parsed,
    as_csv,
    as_json,
    candidates_option,
    opened,
    progress,
    read_candidates,
    say,
)

if TYPE_CHECKING:
    from deniable import Metric, Registry
    from deniable_estimator.asking.query import Days, Query
    from deniable_estimator.asking.reader import Reader
    from deniable_estimator.document.document import Document
    from deniable_estimator.kinds.base import Answer

# numpy and rich take longer to import than `deniable --help` should.


@dataclass(frozen=True)
class StoreCall:
    """What the options that commands share say."""

    registry: Registry
    metric: Metric
    query: Query
    store: str | None
    form: str | None

    @contextmanager
    def reading(self, description: str) -> Iterator[Reader]:
        """A reader of the store, and a progress bar."""
        with opened(self.store) as reader, progress(description):
            yield reader

    def since(self, reader: Reader, after: Answer | None = None) -> dict[str, Any]:
        """Say what has changed since --since in a sentence, with the days, up to `after` if that is
        read already; of JSON the days with what they were asked by, as the API has them, the
        `change` as the API has a comparison, null where one of the two has no reports, and the
        sentence, `change_text`. Without --since nothing."""
        days, metric = self.query.days, self.metric.name
        if not days.since:
            return {}
        from deniable_estimator.asking.comparison import (
            compare,
            left_out_alike,
            periods_told,
            since_headline,
        )
        from deniable_estimator.asking.fetch import read
        from deniable_estimator.messages import isolated

        name, earlier, change = isolated(days.since), left_out_alike(days.earlier, days), None
        before = read(reader, self.registry, replace(self.query, days=earlier))
        after = after or read(reader, self.registry, self.query)
        compared = f"({days.first} to {days.last} vs {earlier.first} to {earlier.last})"
        text = f"{metric}: nothing to compare with since {name} {compared}."
        if before.n and after.n:
            found = compare(before, after)
            notes = "".join(f"\nNote: {note}." for note in found.notes)
            text = f"{since_headline(metric, found, name)} {compared}.{notes}"
            change = {**found.to_dict(), **periods_told(found, earlier, days)}
        if self.form is None:
            click.echo(text)
        return {**days.told, "change": change, "change_text": text}

    def say(
        self,
        n: int,
        data: Callable[[], Mapping[str, Any]],
        document: Callable[[], Document],
        table: Callable[[], str] | None = None,
        *,
        ascii_only: bool = False,
    ) -> None:
        """Print what was found from `n` reports, as `options.say` does, and exit with NO_DATA if
        there are none."""
        say(self.form, data, document, table, ascii_only=ascii_only)
        self.check(n)

    def check(self, n: int) -> None:
        """Say what to check if there are no reports, and exit with NO_DATA."""
        if n:
            return
        name, window = self.metric.name, self.metric.window
        with opened(self.store) as reader:
            kinds = {
                windows.kind_of(label)
                for fingerprint in reader.schemes_of(name)
                for label in reader.all_windows(name, fingerprint)
            }
        if earlier := sorted(kinds - {window}):
            told = (
                f"Its window is a {window} now, and the store has reports of an earlier window: "
                f"write window = {' or '.join(map(json.dumps, earlier))} in the registry to see "
                "them."
            )
        else:
            told = (
                "Check that --store is the collector's (DENIABLE_STORE), that the range contains a "
                "window that has closed, and that devices send to the collector: its /v1/registry "
                "must show this metric."
            )
        click.echo(f"No reports of {name!r} in that range. {told}", err=True)
        sys.exit(NO_DATA)


def _days(
    metric: Metric,
    first: date | None,
    last: date | None,
    without: tuple[str, ...] = (),
    since: str | None = None,
) -> Days:
    """The days that the options name; with --since, those after the annotation and before it.

    Raises:
        click.UsageError: there are other days too.
        EstimateError: a day cannot be asked for, or there is no such annotation, or no complete
            window after it.
        CheckedFileError: the file has mistakes.
    """
    from deniable_estimator.asking.query import Days, check_day

    for each in filter(None, (first, last)):
        check_day(each)
    for label in without:
        if windows.kind_of(label) != metric.window:
            raise click.UsageError(
                f"--without {label}: {metric.name} has a window for each {metric.window}, like "
                f"{windows.window_at(metric.window, time.time())}"
            )
    if since is None:
        return Days(first or date.min, last or date.max, without)
    if first or last:
        raise click.UsageError("--since takes the place of --from and --to")
    from deniable_estimator.annotations import load_annotations
    from deniable_estimator.asking.comparison import asked_since

    noted = load_annotations(file_in_folder(ANNOTATIONS))
    return replace(asked_since(since, noted, metric.window, time.time(), metric), without=without)


def _date(_: click.Context, __: click.Parameter, moment: datetime | None) -> date | None:
    return moment and moment.date()


def _label(text: str) -> str:
    windows.start(text)
    return text


def parse_segments(
    _: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    from deniable_estimator.asking.query import segments_in

    try:
        return segments_in(texts)
    except ValueError as error:
        raise click.BadParameter(str(error), param=option) from None


_day = click.DateTime(["%Y-%m-%d"])

_OPTIONS: Mapping[str, Callable[[Any], Any]] = {
    "metric": click.argument("metric"),
    "first": click.option(
        "--from", "first", type=_day, callback=_date, help="First day (UTC) of the range."
    ),
    "last": click.option(
        "--to", "last", type=_day, callback=_date, help="Last day (UTC) of the range."
    ),
    "without": click.option(
        "--without",
        multiple=True,
        type=Parsed("window", _label),
        metavar="WINDOW",
        help="Leave out this window, like 2026-11-21; may be given several times.",
    ),
    "since": click.option(
        "--since",
        metavar="ANNOTATION",
        help="The complete windows after this annotation, or after a day like 2026-11-20, with the "
        "change from as many before it; in place of --from and --to.",
    ),
    "where": click.option(
        "--where",
        multiple=True,
        callback=parse_segments,
        metavar="SEGMENT=VALUE",
        help="Only the reports of this segment, like platform=web; may be given once for each.",
    ),
    "candidates": candidates_option,
    "registry": registry_option,
    "store": store_option,
    "json": as_json,
    "csv": as_csv,
}
_OF_CALL = frozenset({*_OPTIONS, "form"})
_OF_DAYS = frozenset({"first", "last", "without", "since"})


def _with(names: tuple[str, ...], function: Function) -> Function:
    for name in reversed(names):
        function = _OPTIONS[name](function)
    return function


def asks(*names: str) -> Callable[[Function], Function]:
    """The metric and its days, and the options of these names, which ask for less of it."""
    return lambda function: _with(("metric", "first", "last", *names), function)


def of_store(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The registry, the store and the options of these names, at the end of a command. It is given
    its `StoreCall` first, and then its own options."""

    def called(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(**given: Any) -> None:
            shared = {name: given.pop(name) for name in _OF_CALL & given.keys()}
            function(_call(**shared), **given)

        before = tuple(each for each in names if each == "candidates")
        after = tuple(each for each in names if each not in before)
        return _with((*before, "registry", "store", *after), run)

    return called


def _call(
    metric: str, registry: Path, store: str | None, form: str | None = None, **asked: Any
) -> StoreCall:
    """The call of a command with these options."""
    from deniable import Registry
    from deniable_estimator.asking.query import Query, find_metric

    declared = Registry.load(registry)
    found = find_metric(declared, metric)
    if "candidates" in asked:
        asked["candidates"] = read_candidates(found, asked["candidates"])
    days = _days(found, **{name: asked.pop(name) for name in _OF_DAYS & asked.keys()})
    return StoreCall(declared, found, Query(metric, days, **asked), store, form)
