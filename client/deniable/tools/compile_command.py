"""`deniable compile`: the registry as devices need it, as JSON or as a module of TypeScript."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from deniable.protocol.coded_message import counted
from deniable.tools.command_line import command, registry_argument, writing
from deniable.tools.commands import load_registry

_MADE = "// Written by `deniable compile`. Edit metrics.toml, and run it again.\n"


@command("deniable compile metrics.toml -o metrics.json")
@registry_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A .json file, or a .ts module. Without it, JSON is printed.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Write nothing; exit 1 if FILE is missing or not up to date.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="Also write how long windows are kept: for a collector without metrics.toml. Devices do "
    "not need it.",
)
def compile_registry(path: Path, output: Path | None, check: bool, keep: bool) -> None:
    """Compile PATH (metrics.toml) into the registry that an SDK reads.

    It holds each mechanism with all its integers, so that an SDK designs nothing, and leaves out
    owner, tags and devices. Ship it inside the app: then nothing that a server says later can
    raise an epsilon. A registry with mistakes is not compiled; each mistake is printed with its
    line. Expired metrics give a warning.
    """
    if output is not None and output.suffix not in (".json", ".ts"):
        raise click.UsageError(f"-o {output}: the name must end in .json or .ts")
    if check and output is None:
        raise click.UsageError("--check needs -o: the file to compare")
    registry = load_registry(path)
    text = to_text(registry.compile(keep=keep))
    if output is None:
        click.echo(text, nl=False)
        return
    if output.suffix == ".ts":
        # JSON is an expression of TypeScript, whose compiler then knows its names and values.
        text = f"{_MADE}export default {text.rstrip()} as const;\n"
    if check:
        _compare(output, text, path)
        return
    with writing(output):
        output.write_text(text, encoding="utf-8", newline="\n")
    click.echo(f"{output}: {counted(len(registry), 'metric')}, {len(text.encode()):,} bytes")


def to_text(document: Mapping[str, Any]) -> str:
    """The text of `metrics.json`; the same registry always gives the same text."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _compare(file: Path, content: str, path: Path) -> None:
    try:
        found = file.read_bytes()
    except FileNotFoundError:
        raise click.ClickException(f"{file} is missing: compile {path}") from None
    if found != content.encode():
        raise click.ClickException(f"{file} is not up to date: compile {path} again")
    click.echo(f"{file} is up to date")
