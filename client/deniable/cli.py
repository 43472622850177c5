"""The one `deniable` command. Every installed package adds its subcommands to it."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

__all__ = ["main"]

_GROUP = "deniable.commands"
_EXTRAS = {"deniable": "cli", "deniable_collector": "collector", "deniable_estimator": "estimator"}


def main() -> None:
    """Run the command. Without click, only `deniable sent` runs, which the owner of any device may
    need; for the others the error names the extra to install."""
    try:
        import click  # noqa: F401  (the SDK alone does not need it)
    except ModuleNotFoundError:
        if sys.argv[1:2] == ["sent"]:
            from deniable import sent_command

            sys.exit(sent_command.main(sys.argv[2:]))
        sys.exit(
            "deniable: all commands but `deniable sent` need click: install deniable with its "
            "extra cli, which a clone does by pip install '.[cli]'"
        )
    _group()(prog_name="deniable")


def _group() -> click.Group:
    import click

    import deniable

    class Commands(click.Group):
        """Finds subcommands among the entry points, and imports only the one that runs."""

        def list_commands(self, ctx: click.Context) -> list[str]:
            return sorted(point.name for point in entry_points(group=_GROUP))

        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            for point in entry_points(group=_GROUP, name=cmd_name):
                try:
                    command: click.Command = point.load()
                except ModuleNotFoundError as error:
                    return _missing(point, error)
                return command
            return None

    @click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
    @click.version_option(deniable.__version__, prog_name="deniable")
    def deniable_command() -> None:
        """Telemetry with plausible deniability (local differential privacy, self-hosted)."""

    return deniable_command


def _missing(point: EntryPoint, error: ModuleNotFoundError) -> click.Command:
    """A command that says which extra its package needs."""
    import click

    extra = _EXTRAS.get(point.module.partition(".")[0], "all")
    advice = f"needs {error.name}: install deniable with its extra {extra}"

    @click.command(
        point.name,
        short_help=f"({advice})",
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
    )
    @click.argument("rest", nargs=-1)
    def missing(rest: tuple[str, ...]) -> None:
        raise click.ClickException(f"`deniable {point.name}` {advice}")

    return missing
