"""`deniable compile web`: the TypeScript SDK, built, with an app's registry, for pages without
npm."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from pathlib import Path

import click

import deniable
from deniable import compiled
from deniable.command_line import command, registry_argument
from deniable.commands import load_registry, print_problems
from deniable.errors import Problem
from deniable.registry import Registry

CLOSED = frozenset({"subset_selection"})
"""The mechanisms of the small bundle, `client/web/src/parts_closed.ts`."""

ALL = CLOSED | {
    "projective_geometry",
    "hashed_projective_geometry",
    "memoized_subset_selection",
    "memoized_local_hashing",
    "basic_rappor",
    "rappor",
    "one_time_rappor",
    "sliding_window",
    "hierarchical_histogram",
    "dbitflip",
}
"""The mechanisms of the full bundle, `client/web/src/parts_all.ts`: all that `auto` takes, those
with memos, and RAPPOR."""

JOINT = ALL | {"prefix_tree", "memoized_retention"}
"""The mechanisms of the bundle with segments, pairs, discovery and retention, `parts_joint.ts`."""

_CLOSED_TYPES = frozenset({"boolean", "category"})


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
    help="Write the build that sends in two hops: its page names a relay and a gateway.",
)
def web(path: Path, out: Path, development: bool, oblivious: bool) -> None:
    """Write the SDK for web pages, with the registry PATH (metrics.toml), into a folder.

    deniable.min.js is for a <script> tag: the SDK, with the registry as deniable.metrics.
    deniable.js and metrics.js are the same as ES modules. deniable.owner.min.js and
    deniable.owner.js write the page for the owner of the device; a page loads them when it is
    asked for. metrics.json is the registry alone.
    integrity.json has the version and the hash of each script. A registry of booleans and
    categories of up to about 2,000 values gets the smaller build of the SDK; one that declares
    segments, pairs, discoveries or retentions gets the build that has them. --oblivious is for
    pages that send through a relay, so that the collector sees no address
    (docs/how-to/two-hops.md); it takes every registry. Files of these names are replaced.
    """
    registry = load_registry(path)
    if lacking := _lacking(registry):
        print_problems(lacking, str(path))
        raise SystemExit(1)
    files = web_files(registry, development=development, oblivious=oblivious)
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (out / name).write_bytes(content)
    except OSError as error:
        raise click.ClickException(f"{out} cannot be written: {error.strerror}") from None
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
    document = compiled.to_document(registry)
    joint = bool(registry.segments) or any(
        each.type.of or each.scheme.mechanism.name not in ALL for each in registry
    )
    if oblivious:
        build = "deniable.oblivious"
    elif joint:
        build = "deniable.joint"
    elif development or any(_is_open(each) for each in registry):
        build = "deniable"
    else:
        build = "deniable.closed"
    if development:
        build += ".development"
    folder = resources.files(deniable) / "web"
    text = compiled.to_text(document)
    # In ASCII: a page may not say that its scripts are UTF-8.
    compact = json.dumps(document, allow_nan=False, separators=(",", ":"))
    script = (folder / f"{build}.min.js").read_text(encoding="utf-8")
    files = {
        "deniable.min.js": f"{script}deniable.metrics={compact};\n".encode(),
        "deniable.js": (folder / f"{build}.js").read_bytes(),
        **{
            name: (folder / name).read_bytes()
            for name in ("deniable.owner.min.js", "deniable.owner.js")
        },
        "metrics.js": f"export default {compact};\n".encode(),
        "metrics.json": text.encode(),
    }
    integrity = {
        "version": deniable.__version__,
        "files": {name: _integrity(content) for name, content in files.items()},
    }
    return {**files, "integrity.json": (json.dumps(integrity, indent=2) + "\n").encode()}


def _lacking(registry: Registry) -> list[Problem]:
    """The metrics whose mechanism the SDK for web pages does not have."""
    return [
        Problem(
            registry.lines.get(metric.name),
            f"metrics.{metric.name}.mechanism",
            f"is {metric.mechanism}, which the SDK for web pages does not have: set "
            '"auto", or declare the metric in the registry of another app',
        )
        for metric in registry
        if metric.scheme.mechanism.name not in JOINT
    ]


def _is_open(metric: deniable.Metric) -> bool:
    """Whether a metric needs the whole SDK."""
    return metric.type.name not in _CLOSED_TYPES or metric.scheme.mechanism.name not in CLOSED


def _integrity(content: bytes) -> str:
    """A hash as browsers check it (Subresource Integrity)."""
    return "sha384-" + base64.b64encode(hashlib.sha384(content).digest()).decode()
