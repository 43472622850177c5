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
from deniable.protocol.errors import Problem
from deniable.protocol.registry import Registry
from deniable.tools.command_line import command, registry_argument, writing
from deniable.tools.commands import load_registry, print_problems
from deniable.tools.compile_command import to_text

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
    if lacking := _lacking(registry):
        print_problems(lacking, str(path))
        raise SystemExit(1)
    files = web_files(registry, development=development, oblivious=oblivious)
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (out / name).write_bytes(content)
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
    document = registry.compile()
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
    # In ASCII: a page may not say that its scripts are UTF-8.
    compact = json.dumps(document, allow_nan=False, separators=(",", ":"))
    # A part is an object of the script's own name; as a module the registry brings it along.
    scripts = "".join(
        (folder / f"{each}.min.js").read_text(encoding="utf-8")
        for each in (build, *(f"deniable.{part}" for part in parts))
    )
    imports = "".join(f'import*as {part} from"./deniable.{part}.js";\n' for part in parts)
    brought = f"{compact[:-1]},parts:{{{','.join(parts)}}}}}" if parts else compact
    files = {
        "deniable.min.js": (
            f"{scripts}deniable.metrics={compact};\n"
            + ("deniable.metrics.parts=deniable.parts;\n" if parts else "")
        ).encode(),
        "deniable.js": (folder / f"{build}.js").read_bytes(),
        **{
            name: (folder / name).read_bytes()
            for name in (
                *(f"deniable.{part}.js" for part in parts),
                "deniable.owner.min.js",
                "deniable.owner.js",
            )
        },
        "metrics.js": f"{imports}export default {brought};\n".encode(),
        "metrics.json": to_text(document).encode(),
    }
    integrity = {
        "version": deniable.__version__,
        "files": {name: _integrity(content) for name, content in files.items()},
    }
    return {**files, "integrity.json": (json.dumps(integrity, indent=2) + "\n").encode()}


def _lacking(registry: Registry) -> list[Problem]:
    """The metrics whose mechanism the SDK for web pages does not have."""
    return [
        registry.problem(
            metric,
            f"is {metric.mechanism}, which the SDK for web pages does not have: set "
            '"auto", or declare the metric in the registry of another app',
            "error",
            "mechanism",
        )
        for metric in registry
        if metric.scheme.mechanism.name in ABSENT
    ]


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
