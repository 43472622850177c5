"""Shared by the commands: options, what --since asks for, errors, exit codes, a progress bar."""

from __future__ import annotations

import functools
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, ParamSpec, TypeVar

import click

from deniable import DeniableError, WindowError
from deniable.protocol import windows
from deniable_collector.options import Function, SettingOption, from_environment
from deniable_estimator.files import ANNOTATIONS, file_in_folder
from deniable_estimator.inputs import Input

if TYPE_CHECKING:
    from deniable import Metric
    from deniable_estimator.answers.base import Answer, Comparison
    from deniable_estimator.asking.reader import Reader
    from deniable_estimator.asking.since import SinceDays
    from deniable_estimator.document.document import Document

NO_DATA = 3
"""The exit code if the range has no reports."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Real(click.FloatRange):
    """A float in a range. Click's own type accepts nan in any range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


class AnyReal(Real):
    """A float without bounds."""

    def _describe_range(self) -> str:
        """Nothing: click would say `x<=None` in the help."""
        return ""


def click_options(inputs: Sequence[Input]) -> Callable[[Function], Function]:
    """The options of a command that takes these inputs."""

    def with_options(function: Function) -> Function:
        for each in reversed([each for each in inputs if "terminal" in each.places]):
            function = _option(each)(function)
        return function

    return with_options


def _option(each: Input) -> Callable[[Function], Function]:
    more: dict[str, Any] = {"help": f"{each.help}."}
    if each.read is bool:
        return click.option(f"--{each.name.replace('_', '-')}", is_flag=True, **more)
    if each.needed:
        more["required"] = True
    else:
        more |= {"default": each.default, "show_default": each.default is not None}
    kind: Any = click.STRING
    if each.choices:
        kind = click.Choice(list(each.choices))
    elif each.read is int:
        kind = click.IntRange(int(each.low), int(each.high))
    elif each.read is float:
        kind = Real(each.low, each.high)
    return click.option(f"--{each.name.replace('_', '-')}", type=kind, **more)


_day = click.DateTime(["%Y-%m-%d"])


def _date(_: click.Context, __: click.Parameter, moment: datetime | None) -> date | None:
    return moment and moment.date()


def _labels(_: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    for each in texts:
        try:
            windows.start(each)
        except WindowError as error:
            raise click.BadParameter(str(error), param=option) from None
    return texts


_from = click.option(
    "--from", "first", type=_day, callback=_date, help="First day (UTC) of the range."
)
_to = click.option("--to", "last", type=_day, callback=_date, help="Last day (UTC) of the range.")


def range_options(command: Callable[_P, _R]) -> Callable[_P, _R]:
    """The options --from and --to, which choose a metric's windows by days, or None."""
    return _from(_to(command))


without_option = click.option(
    "--without",
    multiple=True,
    callback=_labels,
    metavar="WINDOW",
    help="Leave out this window, like 2026-11-21; may be given several times.",
)
since_option = click.option(
    "--since",
    metavar="ANNOTATION",
    help="The complete windows after this annotation, or after a day like 2026-11-20, with the "
    "change from as many before it; in place of --from and --to.",
)
candidates_folder_option = click.option(
    "--candidates-dir",
    "folder",
    cls=SettingOption,
    envvar="DENIABLE_CANDIDATES_DIR",
    show_envvar=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder of METRIC.txt files: the strings to look for, one on each line.",
)


def parse_segments(
    _: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in texts:
        name, equals, value = each.partition("=")
        if not (name and equals and value):
            raise click.BadParameter(f"{each!r} is not like platform=web", param=option)
        if name in found:
            raise click.BadParameter(f"names {name} twice", param=option)
        found[name] = value
    return found


where_option = click.option(
    "--where",
    multiple=True,
    callback=parse_segments,
    metavar="SEGMENT=VALUE",
    help="Only the reports of this segment, like platform=web; may be given once for each.",
)
candidates_option = click.option(
    "--candidates",
    type=click.Path(path_type=Path),
    help="A file of the strings to look for, one on each line.",
)
as_json = click.option("--json", "form", flag_value="json", help="Print JSON and nothing else.")
as_csv = click.option("--csv", "form", flag_value="csv", help="Print CSV and nothing else.")


def assumed_fakes() -> float:
    """The fraction of reports that the poisoning budget assumes to be fake: DENIABLE_FAKES."""
    found: float = from_environment("DENIABLE_FAKES", Real(0, 1), 0.01)
    return found


def alarm_level_in_force() -> float:
    """How often honest reports may be called anomalous: DENIABLE_ALARM_LEVEL."""
    kind = Real(0, 1, min_open=True, max_open=True)
    found: float = from_environment("DENIABLE_ALARM_LEVEL", kind, 0.001)
    return found


def reported(command: Callable[_P, _R]) -> Callable[_P, _R]:
    """Print deniable's errors: only their message, and exit 1."""

    @functools.wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return command(*args, **kwargs)
        except DeniableError as error:
            raise click.ClickException(str(error)) from error

    return run


@contextmanager
def progress(description: str) -> Iterator[None]:
    """A progress bar on a terminal's standard error, which disappears at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        progress.add_task(description, total=None)
        yield


def read_candidates(metric: Metric, path: Path | None) -> list[str] | None:
    """The strings to look for, one on each line of that file; None for a metric with a list.

    Raises:
        click.UsageError: the metric takes any string, and no file says which to look for; or it is
            a number, and there is a file.
        ValueListError: the file cannot be read, or has a mistake.
    """
    if path is None:
        if metric.needs_candidates:
            raise click.UsageError(
                f"{metric.name!r} takes any string: name those to look for with --candidates FILE"
            )
        return None
    if not metric.values and not metric.needs_candidates:
        raise click.UsageError(
            f"{metric.name!r} is a number, which has no candidates: leave --candidates out"
        )
    from deniable.protocol.value_list import read_values

    with progress("Reading the candidates"):
        return read_values(path)


_NAMED = 5
"""The windows that are named of each metric that has unreadable ones."""


@contextmanager
def opened(address: str | None) -> Iterator[Reader]:
    """A reader of the store at that address, or of the environment, which is closed afterwards."""
    from deniable_collector.settings import Settings
    from deniable_collector.stores import store_of
    from deniable_estimator.asking.reader import Reader

    settings = Settings.from_env()
    store = store_of(replace(settings, store=address) if address else settings)
    reader = Reader(store)
    try:
        yield reader
    finally:
        store.close()
        for metric, labels in sorted(reader.left_out.items()):
            named = ", ".join(sorted(labels)[:_NAMED]) + ", ..." * (len(labels) > _NAMED)
            click.echo(
                f"warning: not counted, because it cannot be read: {metric}, {named}. "
                "`deniable store info` says why and what to do",
                err=True,
            )


def say(
    form: str | None,
    data: Callable[[], Mapping[str, Any]],
    document: Callable[[], Document],
    table: Callable[[], str] | None = None,
    *,
    ascii_only: bool = False,
) -> None:
    """Print what was found: its data as JSON, its table as CSV, or its document.

    `ascii_only` is for JSON of strings that strangers wrote: their letters must not reach the
    terminal, whatever reads it.
    """
    if form == "json":
        click.echo(json.dumps(data(), ensure_ascii=ascii_only, allow_nan=False))
    elif form == "csv" and table is not None:
        click.echo(table(), nl=False)
    else:
        from deniable_estimator.document.terminal import show

        show(document())


def no_data(metric: str) -> NoReturn:
    """Say what to check if nothing has been reported, and exit with NO_DATA."""
    click.echo(
        f"No reports of {metric!r} in that range. Check that --store is the collector's "
        "(DENIABLE_STORE), that the range contains a window that has closed, and that devices "
        "send to the collector: its /v1/registry must show this metric.",
        err=True,
    )
    sys.exit(NO_DATA)


class AskedSince(NamedTuple):
    """What --since asks for."""

    moment: str
    days: SinceDays


def asked_since(
    since: str | None, metric: Metric, first: date | None, last: date | None
) -> AskedSince | None:
    """The days after the annotation and before it; None without --since.

    Raises:
        click.UsageError: there are other days too.
        EstimateError: there is no such annotation, or no complete window after it.
        CheckedFileError: the file has mistakes.
    """
    if since is None:
        return None
    if first or last:
        raise click.UsageError("--since takes the place of --from and --to")
    from deniable_estimator.annotations import load_annotations
    from deniable_estimator.asking.since import days_since, find_moment, kept_from

    moment = find_moment(since, load_annotations(file_in_folder(ANNOTATIONS)), metric.name)
    now = time.time()
    newest = windows.last_complete(metric.window, now)
    kept = kept_from(metric, datetime.fromtimestamp(now, UTC).date())
    return AskedSince(moment.name, days_since(moment, metric.window, newest, kept))


def change_since(before: Answer, after: Answer) -> Comparison | None:
    """What has changed; None where one of the two has no reports."""
    from deniable_estimator.asking.comparison import compare

    return compare(before, after) if before.n and after.n else None


def told_since(asked: AskedSince, found: Comparison | None, metric: str) -> str:
    """What has changed, in a sentence, and the days."""
    from deniable_estimator.asking.since import since_headline
    from deniable_estimator.isolation import isolated

    days, moment = asked.days, isolated(asked.moment)
    compared = f"({days.first} to {days.last} vs {days.before_first} to {days.before_last})"
    if found is None:
        return f"{metric}: nothing to compare with since {moment} {compared}."
    notes = "".join(f"\nNote: {note}." for note in found.notes)
    return f"{since_headline(metric, found, moment)} {compared}.{notes}"


def since_document(asked: AskedSince, found: Comparison | None, metric: str) -> dict[str, Any]:
    """The same for JSON: `moment`, `text`, and the `change` as the API has a comparison."""
    return {
        "moment": asked.moment,
        "text": told_since(asked, found, metric),
        "change": None if found is None else found.to_dict(),
    }
