"""Options that several commands share, and those that the environment can set, by the rule of all
settings."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from deniable_collector.settings import look_up, one_path


def from_environment(name: str, kind: click.ParamType[Any], default: Any) -> Any:
    """A setting that a command has no option for.

    Raises:
        click.UsageError: its text is none of that kind.
    """
    try:
        text = look_up(name, os.environ)
    except ValueError as error:
        raise click.UsageError(f"{name} {error}") from None
    if not text:
        return default
    try:
        return kind.convert(text, None, None)
    except click.BadParameter as error:
        raise click.BadParameter(error.message, param_hint=name) from None


Function = TypeVar("Function", bound=Callable[..., Any])


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

store_option = click.option(
    "--store", metavar="URL", help="Where the tallies are (DENIABLE_STORE)."
)
"""The store that a command reads."""

server_registry_option = click.option(
    "--registry", metavar="PATH", help="The registry (DENIABLE_REGISTRY)."
)
workers_option = click.option("--workers", metavar="N", help="Processes (DENIABLE_WORKERS).")


def bind_option(variable: str) -> Callable[[Function], Function]:
    """Where a server listens, as that variable says."""
    return click.option("--bind", metavar="HOST:PORT", help=f"Where to listen ({variable}).")
