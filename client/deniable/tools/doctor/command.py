"""`deniable doctor`: run the checks of one side, and print what they found."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path

import click

from deniable.protocol.coded_message import counted
from deniable.tools.command_line import command, extra_of, json_option, print_json
from deniable.tools.doctor import CheckResult, Level
from deniable.tools.doctor.device_checks import (
    check_environment,
    check_state,
    read_registry,
)
from deniable.tools.doctor.endpoint import check_endpoint

_GROUP = "deniable.checks"
"""Entry points of the operator's side: functions of the environment that yield CheckResult."""

_COLORS: dict[Level, str] = {"ok": "green", "note": "blue", "warning": "yellow", "error": "red"}


@command("deniable doctor metrics.toml")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option(
    "--endpoint",
    metavar="URL",
    help="The collector's address, as the app passes it to the client.",
)
@click.option(
    "--state-dir", type=click.Path(path_type=Path), metavar="FOLDER", help="If the app has its own."
)
@click.option("--operator", is_flag=True, help="Check the collector's and the dashboard's side.")
@json_option
def doctor(
    path: Path | None, endpoint: str | None, state_dir: Path | None, operator: bool, as_json: bool
) -> None:
    """Check an installation, and say what to do; exit 1 if something stops it.

    Without --operator, the device's side: the registry PATH (metrics.toml), the environment, the
    state of the app for this user, and with --endpoint whether a collector is there and would take
    the app's reports. Nothing that counts is sent. An ingest key is read from
    DENIABLE_INGEST_KEY.

    With --operator, run it where the collector runs, with its settings in the environment: it
    checks them, the registry, the store, the disk and the dashboard.
    """
    if operator and (endpoint is not None or state_dir is not None):
        raise click.UsageError("--endpoint and --state-dir belong to the device's side")
    results = _operator(path) if operator else _device(path, endpoint, state_dir)
    found = _shown(results, as_json=as_json)
    if any(each.level == "error" for each in found):
        raise SystemExit(1)


def _device(
    path: Path | None, endpoint: str | None, state_dir: Path | None
) -> Iterator[CheckResult]:
    registry, results = read_registry(path or Path("metrics.toml"))
    yield from results
    yield from check_environment(os.environ)
    if registry is None:
        return
    yield from check_state(registry, state_dir)
    if endpoint is None:
        yield CheckResult(
            "endpoint", "not_checked", "note", "the network was not checked",
            "name the collector's address with --endpoint",
        )  # fmt: skip
        return
    key = os.environ.get("DENIABLE_INGEST_KEY") or None
    yield from check_endpoint(registry, endpoint, key, time.time)


def _operator(path: Path | None) -> Iterator[CheckResult]:
    environ: dict[str, str] = dict(os.environ)
    if path is not None:
        environ["DENIABLE_REGISTRY"] = str(path)
        environ.pop("DENIABLE_REGISTRY_FILE", None)
    for point in sorted(entry_points(group=_GROUP), key=lambda each: each.name):
        try:
            check = point.load()
        except ModuleNotFoundError as error:
            yield CheckResult(
                point.name, "not_installed", "note",
                f"{point.name} needs {error.name}, so it does not run here and was not checked",
                f"to run it here, install deniable with its extra {extra_of(point.module)}",
            )  # fmt: skip
            continue
        yield from check(environ)


def _shown(results: Iterable[CheckResult], *, as_json: bool) -> list[CheckResult]:
    """Print the results as they come, or all at once as JSON; the list of them."""
    found = []
    for each in results:
        found.append(each)
        if not as_json:
            mark = click.style(f"{each.level:<7}", fg=_COLORS[each.level])
            click.echo(f"{mark} {each.check}: {each.message}")
            if each.advice:
                click.echo(f"        -> {each.advice}")
    levels = [each.level for each in found]
    counts = {"errors": levels.count("error"), "warnings": levels.count("warning")}
    if as_json:
        document = {"results": [each._asdict() for each in found], **counts}
        print_json(document)
    else:
        told = (counted(count, kind.removesuffix("s")) for kind, count in counts.items())
        click.echo(", ".join(told))
    return found
