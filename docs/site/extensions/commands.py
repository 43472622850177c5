"""The `deniable` command with all its subcommands, for the reference of commands."""

from __future__ import annotations

import re
from typing import Any

import click
from sphinx.application import Sphinx

from deniable.tools.command_line import find

deniable = find()


def _escape(app: Sphinx, context: click.Context, lines: list[str]) -> None:
    """The example first. A help text is no markup: `bench_` is no link, and a star is a star."""
    lines[:] = [re.sub(r"(?<=\w)_(?!\w)|\*", r"\\\g<0>", line) for line in lines]
    if example := getattr(context.command, "example", ""):
        lines[:0] = [".. code-block:: sh", "", f"   {example}", ""]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("sphinx-click-process-description", _escape)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
