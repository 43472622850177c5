"""The commands, as installed packages name them: only the one that runs is imported.

An entry point of the group deniable.commands is one command: `estimate` is `deniable estimate`, and
`estimate.trend` is `deniable estimate trend`. A command with others below it runs as it is unless
the next word is one of theirs.
"""

from __future__ import annotations

import codecs
import functools
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, NoReturn

import click

import deniable
from deniable.protocol.errors import DeniableError

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
        "deniable relay key new gateway-keys.json",
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
    "deniable.": "cli",
    "deniable_collector.": "collector",
    "deniable_estimator.development.": "all",
    "deniable_estimator.": "estimator",
}
"""By how the names of modules begin."""


class Command(click.Command):
    """A command whose help begins with an example, and lists the commands below it."""

    path: tuple[str, ...] = ()
    """Its words, where `find` has found it."""

    def __init__(self, *args: Any, example: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self.example = example

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.exceptions.NoArgsIsHelpError:
            raise
        except click.NoSuchOption as error:
            path, near = ctx.command_path, " or ".join(error.possibilities or ())
            told = f"`{path}` has no option {error.option_name}: "
            told += f"did you mean {near}?" if near else f"`{path} --help` lists its options"
        except click.UsageError as error:
            told = " ".join(error.format_message().replace(". Choose from:", ", one of").split())
            told = f"{told.rstrip('.,')}; an example is `{self.example}`"
        raise click.UsageError(told, ctx)

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
        known = below(self.path)
        if isinstance(self, CommandTree) or not known:
            return
        _list_below(self.path, formatter)
        if taken := [each for each in self.params if isinstance(each, click.Argument)]:
            name = taken[0].make_metavar(ctx).strip("[]")
            formatter.write(
                f"\nA {name} that is called like a command stands after --, like\n"
                f"  {ctx.command_path} -- {known[0]}\n"
            )


def command(example: str, **more: Any) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function."""
    return click.command(cls=Command, example=example, **more)


class CommandTree(Command, click.Group):
    """Words that are no command by themselves, but begin others."""

    def __init__(self, path: tuple[str, ...], **more: Any) -> None:
        sentence, example = _GROUPS[path]
        name = path[-1] if path else "deniable"
        super().__init__(name, example=example, help=sentence, **more)
        self.path = path

    def list_commands(self, ctx: click.Context) -> list[str]:
        return below(self.path)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return find(*self.path, cmd_name) if cmd_name in below(self.path) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of as many words as one has, so that those above it are not imported."""
        path, rest = self.path, args
        while rest and rest[0] in below(path):
            path, rest = (*path, rest[0]), rest[1:]
        words, found = " ".join(path[len(self.path) :]), find(*path)
        # A word behind a command that takes none can only be a command below it.
        takes_none = not any(isinstance(each, click.Argument) for each in found.params)
        is_word = bool(rest) and not rest[0].startswith("-")
        if path == self.path or (is_word and takes_none and below(path) and path in _points()):
            typed = " ".join((ctx.command_path, *words.split(), rest[0]))
            raise click.UsageError(_unknown(typed, rest[0]))
        return words, found, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.path:
            _list_below(self.path, formatter)
            return
        known = below(())
        for title, sentences in SECTIONS.items():
            if rows := [each for each in sentences.items() if each[0] in known]:
                with formatter.section(title):
                    formatter.write_dl(rows)


def below(path: tuple[str, ...]) -> list[str]:
    """The next words of the commands that begin with these; all first words in the order of the
    help."""
    known = {each[len(path)] for each in _points() if each[: len(path)] == path != each}
    listed = [name for names in SECTIONS.values() for name in names]
    return sorted(known) if path else [name for name in listed if name in known]


def _list_below(path: tuple[str, ...], formatter: click.HelpFormatter) -> None:
    with formatter.section("Commands"):
        commands = ((name, find(*path, name)) for name in below(path))
        formatter.write_dl([(name, each.get_short_help_str(200)) for name, each in commands])


def find(*path: str) -> Command:
    """The command of these words, like `find("estimate", "trend")`; without words that of all."""
    point = _points().get(path)
    if point is None:
        return CommandTree(path)
    found: Command = point.load()
    found.name, found.path = path[-1], path
    return found


@functools.cache
def _points() -> dict[tuple[str, ...], EntryPoint]:
    return {tuple(each.name.split(".")): each for each in entry_points(group=GROUP)}


def _unknown(typed: str, word: str) -> str:
    """That there is no such command, with those whose name is nearest to the word."""
    known = {name[:size] for name in _points() for size in range(1, len(name) + 1)}
    spelt = {each for name in known for each in (" ".join(name), name[-1])}
    meant = {*get_close_matches(word.replace("-", " "), spelt, n=1, cutoff=0.66)}
    if near := sorted(" ".join(name) for name in known if meant & {" ".join(name), name[-1]}):
        return f"there is no `{typed}`: did you mean `deniable {'`, or `deniable '.join(near)}`?"
    return f"there is no `{typed}`: `deniable --help` lists all commands"


def run() -> NoReturn:
    """Run what was typed. An error is one sentence that says what to type instead."""
    # What the terminal has no letters for is escaped as in JSON, which stays JSON so.
    codecs.register_error("escaped", _escaped)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="escaped")
    context = {"help_option_names": ["-h", "--help"]}
    root = CommandTree((), context_settings=context)
    click.version_option(deniable.__version__, prog_name="deniable")(root)
    code: object = 1
    try:
        code = root.main(prog_name="deniable", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = error.exit_code
    except click.ClickException as error:
        click.echo(f"Error: {error.format_message()}", err=True)
        code = error.exit_code
    except click.Abort:
        click.echo("Aborted!", err=True)
    except ModuleNotFoundError as error:
        modules = [each.module for name, each in _points().items() if name[0] == sys.argv[1]]
        if not modules:
            raise
        click.echo(
            f"Error: `deniable {sys.argv[1]}` needs {error.name}: install deniable with its extra "
            f"{extra_of(modules[0])}",
            err=True,
        )
    sys.exit(code if isinstance(code, int) else 0)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def extra_of(module: str) -> str:
    """The extra with which a module's needs are installed."""
    return next((extra for name, extra in _EXTRAS.items() if module.startswith(name)), "all")


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
"""Shared by commands that print for people or for programs."""


def print_json(document: Mapping[str, Any]) -> None:
    """What a command with `json_option` prints for programs."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say it in one sentence if the disk does not let something be written to a path."""
    try:
        yield
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}") from None


registry_argument = click.argument(
    "path", default="metrics.toml", type=click.Path(path_type=Path), metavar="[PATH]"
)
"""The registry of a command about one file."""


MISSING = "no forecasts, which come with the estimator: pip install 'deniable[estimator]'"


def installed(group: str) -> Iterator[Any]:
    """What the entry points of a group name, in the order of their names; without those of packages
    whose needs are not installed."""
    for point in sorted(entry_points(group=group), key=lambda each: each.name):
        with suppress(ModuleNotFoundError):
            yield point.load()


def forecasts() -> Any:
    """What the expected crowd of a metric will tell: the estimator's module
    `deniable_estimator.planning.crowd_forecast`, or None where it is not installed."""
    return next(installed("deniable.forecasts"), None)
