"""Options of commands that the environment can set, by the rule of all settings."""

from __future__ import annotations

import os
from pathlib import Path

import click

from deniable_collector.settings import look_up, one_path


class SettingOption(click.Option):
    """An option whose variable NAME may be given as NAME_FILE (docs/reference/settings.md)."""

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """The variable's value; None where it is not set."""
        name = str(self.envvar)
        try:
            return one_path(look_up(name, os.environ)) or None
        except ValueError as error:
            raise click.UsageError(f"{name} {error}", ctx) from None


registry_option = click.option(
    "--registry",
    cls=SettingOption,
    envvar="DENIABLE_REGISTRY",
    default="metrics.toml",
    show_default=True,
    show_envvar=True,
    type=click.Path(path_type=Path),
    help="The file that declares the metrics.",
)
"""The registry that a command reads."""
