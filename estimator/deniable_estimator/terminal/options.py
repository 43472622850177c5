"""Shared by the commands: options, errors, exit codes, a progress bar."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from deniable import DeniableError, Metric
from deniable.protocol.value_list import read_values
from deniable_collector.options import Function, SettingOption, from_environment
from deniable_estimator.inputs import Input, InputError

if TYPE_CHECKING:
    from deniable_estimator.asking.reader import Reader
    from deniable_estimator.document.document import Document

# Commands that read no store, as `deniable annotate`, import neither numpy nor rich.

NO_DATA = 3
"""The exit code if the range has no reports."""

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

    def _describe_range(self) -> str:
        """Nothing without bounds: click would say `x<=None` in the help."""
        return "" if self.min is self.max is None else super()._describe_range()


class Parsed(click.ParamType[_R]):
    """What a function makes of a text; its error is told as the mistake."""

    def __init__(self, name: str, parse: Callable[[str], _R]) -> None:
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> _R:
        try:
            return self._parse(str(value))
        except (ValueError, DeniableError) as error:
            self.fail(str(error), param, ctx)


def click_options(inputs: Sequence[Input]) -> Callable[[Function], Function]:
    """The options of a command that takes these inputs."""

    def with_options(function: Function) -> Function:
        for each in reversed([each for each in inputs if "terminal" in each.places]):
            function = _option(each)(function)
        return function

    return with_options


def _option(each: Input) -> Callable[[Function], Function]:
    more: dict[str, Any] = {"help": f"{each.help}.", "metavar": each.shape}
    if each.read is bool:
        return click.option(f"--{each.name.replace('_', '-')}", is_flag=True, **more)
    if each.needed:
        more["required"] = True
    elif not each.many:
        default = None if each.default == "" else each.default
        more |= {"default": default, "show_default": default is not None}
    if each.choices:
        more["type"] = click.Choice(list(each.choices))
    elif each.read is int:
        more["type"] = click.IntRange(int(each.low), int(each.high))
    elif each.read is float:
        more["type"] = Real(each.low, each.high)
    else:
        more |= {"multiple": bool(each.many), "callback": partial(_parsed, each)}
    return click.option(f"--{each.name.replace('_', '-')}", **more)


def _parsed(each: Input, _: click.Context, option: click.Parameter, given: Any) -> Any:
    try:
        if given is None:
            return each.default
        return each.parse(*(given if each.many else [given]))
    except InputError as error:
        raise click.BadParameter(str(error), param=option) from None


candidates_folder_option = click.option(
    "--candidates-dir",
    "folder",
    cls=SettingOption,
    envvar="DENIABLE_CANDIDATES_DIR",
    show_envvar=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder of METRIC.txt files: the strings to look for, one on each line.",
)


candidates_option = click.option(
    "--candidates",
    type=click.Path(path_type=Path),
    help="A file of the strings to look for, one on each line.",
)


def _one(_: click.Context, __: click.Parameter, forms: tuple[str, ...]) -> str | None:
    if len(set(forms)) > 1:
        raise click.UsageError("--json and --csv are two forms: choose one of them")
    return next(iter(forms), None)


def _form(name: str) -> Callable[[Function], Function]:
    told = f"Print {name.upper()} and nothing else."
    given: dict[str, Any] = {"flag_value": name, "multiple": True, "callback": _one, "help": told}
    return click.option(f"--{name}", "form", **given)


as_json, as_csv = _form("json"), _form("csv")


def assumed_fakes() -> float:
    """The fraction of reports that the poisoning budget assumes to be fake: DENIABLE_FAKES."""
    found: float = from_environment("DENIABLE_FAKES", Real(0, 1), 0.01)
    return found


def alarm_level_in_force() -> float:
    """How often honest reports may be called anomalous: DENIABLE_ALARM_LEVEL."""
    kind = Real(0, 1, min_open=True, max_open=True)
    found: float = from_environment("DENIABLE_ALARM_LEVEL", kind, 0.001)
    return found


@contextmanager
def progress(description: str, *, rows: bool = False) -> Iterator[Callable[..., None]]:
    """A progress bar on a terminal's standard error, which disappears at the end: with the time
    that has passed, or with how many `rows` are done of how many. What it returns is told these
    two, or else another description."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    last = MofNCompleteColumn() if rows else TimeElapsedColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), last)
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task(description, total=None)
        if rows:
            yield lambda done, of: progress.update(task, completed=done, total=of)
        else:
            yield lambda told: progress.update(task, description=told)


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
    with progress("Reading the candidates"):
        return read_values(path)


_NAMED = 5
"""The windows that are named of each metric that has unreadable ones."""


@contextmanager
def opened(address: str | None) -> Iterator[Reader]:
    """A reader of the store at that address, or of the environment, which is closed afterwards."""
    from deniable_collector.settings import Settings
    from deniable_collector.stores import open_store
    from deniable_estimator.asking.reader import Reader

    settings = Settings.from_env()
    store = open_store(replace(settings, store=address) if address else settings)
    reader = Reader(store)
    try:
        yield reader
    finally:
        store.close()
        for metric, lacking in reader.left_out.items():
            uncounted = reader.uncounted(metric)
            labels = [label for label in lacking if label in uncounted]
            if not labels:
                continue
            named = ", ".join(labels[:_NAMED]) + ", ..." * (len(labels) > _NAMED)
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
