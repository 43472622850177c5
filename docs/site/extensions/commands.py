"""The `deniable` command with all its subcommands, for the reference of commands."""

from __future__ import annotations

import re
from typing import Any

import click
from sphinx.application import Sphinx

from deniable.cli import _group

deniable = _group()


def _escape(app: Sphinx, context: click.Context, lines: list[str]) -> None:
    """A help text is no markup: `bench_` is no link, and a star is a star."""
    lines[:] = [re.sub(r"(?<=\w)_(?!\w)|\*", r"\\\g<0>", line) for line in lines]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("sphinx-click-process-description", _escape)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
