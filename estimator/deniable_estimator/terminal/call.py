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
from pathlib import Path
from typing import Any

import click

from deniable import Metric, Registry
from deniable.protocol import windows
from deniable_collector.options import Function, registry_option, store_option
from deniable_estimator.annotations import load_annotations
from deniable_estimator.asking.comparison import (
    asked_days,
    compare,
    left_out_alike,
    periods_told,
    since_headline,
)
from deniable_estimator.asking.fetch import first_day, read
from deniable_estimator.asking.query import Days, Query, find_metric
from deniable_estimator.asking.reader import Reader
from deniable_estimator.document.document import Document
from deniable_estimator.errors import EstimateError
from deniable_estimator.files import ANNOTATIONS, file_in_folder
from deniable_estimator.inputs import DAYS, FROM, TO, WHERE, Input
from deniable_estimator.kinds.base import Answer
from deniable_estimator.messages import isolated
from deniable_estimator.terminal.options import (
    NO_DATA,
    as_csv,
    as_json,
    candidates_option,
    click_options,
    opened,
    progress,
    read_candidates,
    say,
)


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


_OPTIONS: Mapping[str, Callable[[Any], Any]] = {
    "candidates": candidates_option,
    "registry": registry_option,
    "store": store_option,
    "json": as_json,
    "csv": as_csv,
}
_OF_CALL = frozenset({"metric", "candidates", "registry", "store", "form"})
_OF_CALL |= {each.name for each in (*DAYS, WHERE)}


def _with(names: tuple[str, ...], function: Function) -> Function:
    for name in reversed(names):
        function = _OPTIONS[name](function)
    return function


def asks(*inputs: Input) -> Callable[[Function], Function]:
    """The metric and its days, and these inputs, which ask for less of it."""
    options = click_options((FROM, TO, *inputs))
    return lambda function: click.argument("metric")(options(function))


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
    declared = Registry.load(registry)
    found = find_metric(declared, metric)
    if "candidates" in asked:
        asked["candidates"] = read_candidates(found, asked["candidates"])
    noted = load_annotations(file_in_folder(ANNOTATIONS)) if asked.get("since") else ()
    read_days = functools.partial(
        asked_days, asked, Days(), found.window, noted, time.time(), found
    )
    try:
        # Mistakes are told before a store is looked for.
        days = read_days()
        if days.since:
            with opened(store) as reader:
                days = read_days(first_day(reader, declared, found))
    except EstimateError as error:
        if error.fields:
            raise click.UsageError(str(error)) from None
        raise
    less = {name: each for name, each in asked.items() if name in ("candidates", "where")}
    return StoreCall(declared, found, Query(metric, days, **less), store, form)
