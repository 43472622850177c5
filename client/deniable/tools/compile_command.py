"""`deniable compile`: the registry as devices need it, as JSON, as a module of TypeScript, or with
the built SDK for web pages."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import click

import deniable
from deniable.protocol.coded_message import counted
from deniable.protocol.errors import RegistryError
from deniable.protocol.registry import Registry
from deniable.tools.command_line import command, registry_argument, writing
from deniable.tools.commands import load_registry
from deniable.whole_files import written

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
    content = text.encode()
    if check:
        if not output.exists():
            raise click.ClickException(f"{output} is missing: compile {path}")
        if output.read_bytes() != content:
            raise click.ClickException(f"{output} is not up to date: compile {path} again")
        click.echo(f"{output} is up to date")
        return
    # Apps go on with the file that is there if the disk is full.
    with writing(output), written(output, None) as file:
        file.write(content)
    click.echo(f"{output}: {counted(len(registry), 'metric')}, {len(content):,} bytes")


def to_text(document: Mapping[str, Any]) -> str:
    """The text of `metrics.json`; the same registry always gives the same text."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


ABSENT = frozenset(
    {
        "hadamard_response",
        "unary_encoding",
        "cohort_local_hashing",
        "count_mean_sketch",
        "hadamard_count_mean_sketch",
    }
)
"""The mechanisms that neither an entry nor a part has (`client/web/src/parts`)."""

_JOINT_TYPES = frozenset({"pair", "discovery", "retention"})

_CLOSED_TYPES = frozenset({"boolean", "category"})

_CLOSED = frozenset({"subset_selection"})
_MEMOIZED = _CLOSED | {"memoized_subset_selection", "memoized_local_hashing"}
"""The mechanisms of the entry for these types, and of the one for them with memos."""


@command("deniable compile web metrics.toml --out web")
@registry_argument
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Where the files go; it is made if it is missing.",
)
@click.option(
    "--development",
    is_flag=True,
    help="Write the build that checks more and explains mistakes, instead of the released one.",
)
@click.option(
    "--oblivious",
    is_flag=True,
    help="Add the part that sends in two hops: its page names a relay and a gateway.",
)
def web(path: Path, out: Path, development: bool, oblivious: bool) -> None:
    """Write the SDK for web pages, with the registry PATH (metrics.toml), into a folder.

    deniable.min.js is for a <script> tag: the SDK, with the registry as deniable.metrics.
    deniable.js and metrics.js are the same as ES modules. deniable.owner.min.js and
    deniable.owner.js write the page for the owner of the device; a page loads them when it is
    asked for. metrics.json is the registry alone.
    integrity.json has the version and the hash of each script. The files hold what the registry
    needs, so that a page loads nothing later: booleans and categories of up to about 2,000 values
    have a smaller SDK, and one with memos; segments, pairs, discoveries, retentions and other memos
    add their parts, which are files of their own beside deniable.js. --oblivious adds the part for
    pages that send through a relay, so that the collector sees no address
    (docs/how-to/two-hops.md). Files of these names are replaced.
    """
    registry = load_registry(path)
    if lacking := [
        registry.problem(
            metric,
            f"is {metric.mechanism}, which the SDK for web pages does not have: set "
            '"auto", or declare the metric in the registry of another app',
            "error",
            "mechanism",
        )
        for metric in registry
        if metric.scheme.mechanism.name in ABSENT
    ]:
        raise RegistryError(lacking, str(path))
    files = web_files(registry, development=development, oblivious=oblivious)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            with written(out / name, None) as file:
                file.write(content)
    for name, content in files.items():
        if name.endswith(".js"):
            click.echo(f"{name:<22} {len(content):>7,} bytes  {_integrity(content)}")
    script = _integrity(files["deniable.min.js"])
    click.echo(f'\n<script src="deniable.min.js" integrity="{script}"></script>')
    click.echo("\nThe collector takes reports of your pages once it knows their origin:")
    click.echo("DENIABLE_CORS_ORIGINS=https://your-site.example deniable collect")


def web_files(
    registry: Registry, *, development: bool = False, oblivious: bool = False
) -> dict[str, bytes]:
    """The name and the content of each file that a page needs; `oblivious`: to send in two hops."""
    parts = [] if development else _parts(registry, oblivious=oblivious)
    closed = all(each.type.name in _CLOSED_TYPES for each in registry)
    mechanisms = {each.scheme.mechanism.name for each in registry}
    build = "deniable"
    if development:
        build = "deniable.development"
    elif not parts and closed and mechanisms <= _CLOSED:
        build = "deniable.closed"
    elif "memos" in parts and closed and mechanisms <= _MEMOIZED:
        build = "deniable.memoized"
        parts.remove("memos")
    folder = resources.files(deniable) / "web"
    document = registry.compile()
    # In ASCII: a page may not say that its scripts are UTF-8.
    compact = json.dumps(document, allow_nan=False, separators=(",", ":"))
    # A part is an object of the script's own name; as a module the registry brings it along.
    scripts = [build, *(f"deniable.{part}" for part in parts)]
    script = "".join((folder / f"{each}.min.js").read_text(encoding="utf-8") for each in scripts)
    script += f"deniable.metrics={compact};\n"
    module = compact
    if parts:
        script += "deniable.metrics.parts=deniable.parts;\n"
        module = f"{compact[:-1]},parts:{{{','.join(parts)}}}}}"
    imports = "".join(f'import*as {part} from"./deniable.{part}.js";\n' for part in parts)
    owners = ("deniable.owner.min.js", "deniable.owner.js")
    files = {
        "deniable.min.js": script.encode(),
        "deniable.js": (folder / f"{build}.js").read_bytes(),
        **{f"{each}.js": (folder / f"{each}.js").read_bytes() for each in scripts[1:]},
        **{each: (folder / each).read_bytes() for each in owners},
        "metrics.js": f"{imports}export default {module};\n".encode(),
        "metrics.json": to_text(document).encode(),
    }
    integrity = {
        "version": deniable.__version__,
        "files": {name: _integrity(content) for name, content in files.items()},
    }
    return {**files, "integrity.json": (json.dumps(integrity, indent=2) + "\n").encode()}


def _parts(registry: Registry, *, oblivious: bool) -> list[str]:
    """The parts that a page with this registry needs, as `gather` of the SDK says it."""
    needed = {
        "joint": registry.segments or any(each.type.name in _JOINT_TYPES for each in registry),
        "memos": any(
            each.longitudinal == "memoize" or each.scheme.mechanism.name == "one_time_rappor"
            for each in registry
        ),
        "oblivious": oblivious,
    }
    return [name for name, needs in needed.items() if needs]


def _integrity(content: bytes) -> str:
    """A hash as browsers check it (Subresource Integrity)."""
    return "sha384-" + base64.b64encode(hashlib.sha384(content).digest()).decode()
