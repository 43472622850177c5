"""The `deniable` command with all its subcommands, for the reference of commands."""

from __future__ import annotations

import re
from typing import Any

import click
from sphinx.application import Sphinx

from deniable.tools.command_line import Command, below, find


class _Shown(click.Group):
    """A command with those below it, which have sections of their own."""

    def __init__(self, command: Command, commands: dict[str, click.Command]) -> None:
        super().__init__(command.name, commands, help=command.help, params=command.params)
        self._command, self.example = command, command.example

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return self._command.collect_usage_pieces(ctx)


def _shown(*path: str) -> click.Command:
    command, names = find(*path), below(path)
    return _Shown(command, {each: _shown(*path, each) for each in names}) if names else command


deniable = _shown()


def _escape(app: Sphinx, context: click.Context, lines: list[str]) -> None:
    """The example first. A help text is no markup: `bench_` is no link, and a star is a star."""
    lines[:] = [re.sub(r"(?<=\w)_(?!\w)|\*", r"\\\g<0>", line) for line in lines]
    if example := getattr(context.command, "example", ""):
        lines[:0] = [".. code-block:: sh", "", f"   {example}", ""]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("sphinx-click-process-description", _escape)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
