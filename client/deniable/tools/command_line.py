"""The commands, as installed packages name them: only the one that runs is imported.

An entry point of the group deniable.commands is one command: `estimate` is `deniable estimate`, and
`estimate.trend` is `deniable estimate trend`. A command with others below it runs as it is unless
the next word is one of theirs.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol

import click

import deniable
from deniable.protocol.errors import DeniableError

if TYPE_CHECKING:
    from deniable.protocol.metric import Metric

GROUP = "deniable.commands"
"""The entry points that name commands."""

SECTIONS = {
    "Apps": {
        "init": "Write a first metrics.toml, an example and a compose file.",
        "add": "Add a metric to a metrics.toml.",
        "lint": "Check a metrics.toml and show what each metric reveals.",
        "compile": "Write the registry that ships inside an app, or the files of a web page.",
        "dev": "See the reports of an app while you write it.",
        "doctor": "Find out why no report arrives, and what to do.",
        "sent": "Show what this device has reported, in words.",
    },
    "Collector": {
        "collect": "Run the collector.",
        "relay": "Run a relay: it passes sealed batches to one gateway.",
        "store": "Look into a store; export, import and drop its tallies.",
    },
    "Numbers": {
        "estimate": "Estimate what devices have: now, over time, and by segments.",
        "plan": "Compute what a metric can detect and reveal, before it is declared.",
        "watch": "Tell what changed beyond noise, each change once.",
        "annotate": "Note what happened on a day, like a release: charts show it.",
        "release": "Publish numbers of a metric, and say what they reveal.",
        "dashboard": "Run the dashboard; add people and tokens to it.",
        "demo": "Let simulated devices report, and estimate what they have.",
    },
}
"""What `deniable --help` lists: importing all commands would take more than a second."""

_GROUPS = {
    (): (
        "Telemetry with plausible deniability (local differential privacy, self-hosted).",
        "deniable init shop --yes",
    ),
    ("store",): ("Look into a store; drop, export and import its tallies.", "deniable store info"),
    ("relay", "key"): (
        "Make, rotate and show the private keys of a gateway (two hops).",
        "deniable relay key new gateway.toml",
    ),
    ("estimate", "rappor"): (
        "Decode RAPPOR collections from google/rappor's files.",
        "deniable estimate rappor hash --params params.csv --candidates candidates.txt",
    ),
    ("dashboard", "people"): (
        "People who may sign in to the dashboard.",
        "deniable dashboard people add Ana --role analyst",
    ),
    ("dashboard", "token"): (
        "Tokens for programs that read the dashboard's API.",
        "deniable dashboard token new --name grafana --scope read:metrics",
    ),
}
"""What words that are no command by themselves stand for, and an example."""

_EXTRAS = {
    "deniable": "cli",
    "deniable_collector": "collector",
    "deniable_estimator": "estimator",
}

_NEAR = 0.6
"""How alike two names must be, from 0 to 1, for one to be proposed in place of the other."""


class Command(click.Command):
    """A command whose help begins with an example."""

    def __init__(self, *args: Any, example: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self.example = example

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except (click.NoSuchOption, click.exceptions.NoArgsIsHelpError):
            raise
        except click.UsageError as error:
            told = " ".join(error.format_message().replace(". Choose from:", ", one of").split())
            advice = f"{told.rstrip('.,')}; an example is `{self.example}`"
            raise click.UsageError(advice, ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; what deniable or the file system refuses is told in one sentence."""
        try:
            return super().invoke(ctx)
        except DeniableError as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            if error.filename is None:
                raise
            raise click.ClickException(f"{error.filename}: {error.strerror}") from error

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"Example: {self.example}\n\n")
        super().format_help(ctx, formatter)


def command(example: str, **more: Any) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function."""
    return click.command(cls=Command, example=example, **more)


class CommandTree(Command, click.Group):
    """The commands below some words; `plain` runs where the next word is none of them."""

    def __init__(self, path: tuple[str, ...], plain: Command | None, **more: Any) -> None:
        name = path[-1] if path else "deniable"
        if plain is None:
            sentence, example = _GROUPS[path]
            super().__init__(name, example=example, help=sentence, **more)
        else:
            # The reference of commands shows the parameters of `plain` as those of the group.
            shown = {"help": plain.help, "params": plain.params}
            super().__init__(name, example=plain.example, **shown, **more)
        self.path, self.plain = path, plain

    def list_commands(self, ctx: click.Context) -> list[str]:
        depth = len(self.path)
        below = {each[depth] for each in _points() if _begins(each, self.path) and each[depth:]}
        if not depth:
            return [name for section in SECTIONS.values() for name in section if name in below]
        return sorted(below)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return find(*self.path, cmd_name) if cmd_name in self.list_commands(ctx) else None

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if self.plain is None:
            return super().get_params(ctx)
        return [each for each in [self.get_help_option(ctx)] if each is not None]

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        if self.plain is None:
            return super().collect_usage_pieces(ctx)
        return self.plain.collect_usage_pieces(ctx)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """That of `plain`, unless the first word is a command, or must be one, or asks for help."""
        if self.plain is not None:
            context = click.Context(self, parent=parent)
            own = (*self.list_commands(context), *context.help_option_names)
            is_word = args[:1] != [] and not args[0].startswith("-")
            must_be_command = is_word and not any(_is_argument(each) for each in self.plain.params)
            if args[:1] == [] or not (must_be_command or args[0] in own):
                return self.plain.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        return super().invoke(ctx) if ctx.command is self else ctx.command.invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of as many words as one has, so that those above it are not imported."""
        path, rest = self.path, args
        while rest and _is_known((*path, rest[0])):
            path, rest = (*path, rest[0]), rest[1:]
        if path == self.path:
            raise click.UsageError(_unknown(f"{ctx.command_path} {args[0]}", args[0]))
        return " ".join(path[len(self.path) :]), find(*path), rest

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.plain is None:
            super().format_help(ctx, formatter)
            return
        own = click.Context(self.plain, info_name=ctx.info_name, parent=ctx.parent)
        self.plain.format_help(own, formatter)
        self.format_commands(ctx, formatter)
        if taken := [each for each in self.plain.params if _is_argument(each)]:
            name, first = taken[0].make_metavar(own).strip("[]"), self.list_commands(ctx)[0]
            formatter.write(
                f"\nA {name} that is called like a command stands after --, like\n"
                f"  {ctx.command_path} -- {first}\n"
            )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        known = self.list_commands(ctx)
        if self.path:
            with formatter.section("Commands"):
                below = ((name, find(*self.path, name)) for name in known)
                formatter.write_dl([(name, each.get_short_help_str(200)) for name, each in below])
            return
        for title, sentences in SECTIONS.items():
            if rows := [each for each in sentences.items() if each[0] in known]:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _is_argument(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Argument)


def find(*path: str) -> Command:
    """The command of these words, like `find("estimate", "trend")`; without words that of all."""
    point = _points().get(path)
    plain: Command | None = None if point is None else point.load()
    if plain is not None:
        plain.name = path[-1]
    if plain is not None and sum(_begins(each, path) for each in _points()) == 1:
        return plain
    return CommandTree(path, plain)


@functools.cache
def _points() -> dict[tuple[str, ...], EntryPoint]:
    return {tuple(each.name.split(".")): each for each in entry_points(group=GROUP)}


def _begins(name: tuple[str, ...], path: tuple[str, ...]) -> bool:
    return name[: len(path)] == path


def _is_known(path: tuple[str, ...]) -> bool:
    return any(_begins(name, path) for name in _points())


def _unknown(typed: str, word: str) -> str:
    """That there is no such command, with those whose name is nearest to the word."""
    known = {name[:size] for name in _points() for size in range(1, len(name) + 1)}
    alike = {name: max(_likeness(word, (" ".join(name), name[-1]))) for name in known}
    best = max(alike.values())
    near = sorted(" ".join(name) for name, found in alike.items() if found == best >= _NEAR)
    if near:
        return f"there is no `{typed}`: did you mean `deniable {'`, or `deniable '.join(near)}`?"
    return f"there is no `{typed}`: `deniable --help` lists all commands"


def _likeness(word: str, names: Iterable[str]) -> Iterable[float]:
    return (SequenceMatcher(None, word.replace("-", " "), each).ratio() for each in names)


def run() -> NoReturn:
    """Run what was typed. An error is one sentence that says what to type instead."""
    context = {"help_option_names": ["-h", "--help"]}
    root = CommandTree((), None, context_settings=context)
    click.version_option(deniable.__version__, prog_name="deniable")(root)
    code: object = 1
    try:
        code = root.main(prog_name="deniable", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = error.exit_code
    except click.ClickException as error:
        click.echo(f"Error: {_sentence(error)}", err=True)
        code = error.exit_code
    except click.Abort:
        click.echo("Aborted!", err=True)
    except ModuleNotFoundError as error:
        modules = [each.module for name, each in _points().items() if name[0] == sys.argv[1]]
        if not modules:
            raise
        extra = _EXTRAS.get(modules[0].partition(".")[0], "all")
        click.echo(
            f"Error: `deniable {sys.argv[1]}` needs {error.name}: install deniable with its extra "
            f"{extra}",
            err=True,
        )
    sys.exit(code if isinstance(code, int) else 0)


def _sentence(error: click.ClickException) -> str:
    """What is wrong, and what to type."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return error.format_message()
    path, near = error.ctx.command_path, " or ".join(error.possibilities or ())
    advice = f"did you mean {near}?" if near else f"`{path} --help` lists its options"
    return f"`{path}` has no option {error.option_name}: {advice}"


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""Shared by commands that print for people or for programs."""

registry_argument = click.argument(
    "path", default="metrics.toml", type=click.Path(path_type=Path), metavar="[PATH]"
)
"""The registry of a command about one file."""


class Forecasts(Protocol):
    """What the entry point has: `deniable_estimator.forecasting.declaring`."""

    def remarks(
        self, metric: Metric, cap: float | None = None
    ) -> Iterable[tuple[str, Literal["warning", "note"]]]:
        """What the expected crowd cannot tell, and better choices, each with its severity."""

    def too_few_devices(self, metric: Metric) -> str | None:
        """What the expected crowd lacks, if it is so small that the metric is of no use."""

    def shows(self, metric: Metric) -> str | None:
        """What the expected crowd shows in a day, a week and a month, as a part of a sentence; None
        where `devices` are not given."""

    def seen(self, metric: Metric) -> Iterable[str]:
        """What the expected crowd will and will not tell of a new metric."""


MISSING = "no forecasts, which come with the estimator: pip install 'deniable[estimator]'"


def forecasts() -> Forecasts | None:
    """The estimator's forecasts; None where it is not installed."""
    for point in entry_points(group="deniable.forecasts"):
        try:
            found: Forecasts = point.load()
        except ModuleNotFoundError:
            return None
        return found
    return None
