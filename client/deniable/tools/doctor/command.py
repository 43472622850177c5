"""`deniable doctor`: run the checks of one side, and print what they found. Those of the device's
side without the network are here: registry, environment and state."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import entry_points
from pathlib import Path

import click

from deniable.device import open_windows, outbox, owner
from deniable.device.state import FILE_NAME, State, states_root
from deniable.device.worker import switches
from deniable.protocol.coded_message import counted
from deniable.protocol.errors import Problem, StateError
from deniable.protocol.lasting import today
from deniable.protocol.registry import Registry
from deniable.tools.command_line import command, extra_of, json_option, print_json
from deniable.tools.commands import examined
from deniable.tools.doctor import CheckResult, Level, listed
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
    found = []
    for each in _operator(path) if operator else _device(path, endpoint, state_dir):
        found.append(each)
        if not as_json:
            mark = click.style(f"{each.level:<7}", fg=_COLORS[each.level])
            click.echo(f"{mark} {each.check}: {each.message}")
            if each.advice:
                click.echo(f"        -> {each.advice}")
    levels = [each.level for each in found]
    errors, warnings = levels.count("error"), levels.count("warning")
    if as_json:
        results = [each._asdict() for each in found]
        print_json({"results": results, "errors": errors, "warnings": warnings})
    else:
        click.echo(f"{counted(errors, 'error')}, {counted(warnings, 'warning')}")
    if errors:
        raise SystemExit(1)


def _device(
    path: Path | None, endpoint: str | None, state_dir: Path | None
) -> Iterator[CheckResult]:
    path = path or Path("metrics.toml")
    registry, problems = examined(path)
    yield from check_registry(path, registry, problems)
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


def check_registry(
    path: Path, registry: Registry | None, problems: Sequence[Problem]
) -> Iterator[CheckResult]:
    """What `deniable lint` says of the registry in a file, as `examined` finds it."""
    if registry is None:
        for each in problems:
            yield CheckResult(
                "registry", "mistake", "error", each.describe(str(path)),
                "`deniable lint` checks the file, and `deniable init` writes a first one",
            )  # fmt: skip
        return
    told = f"{path} declares {counted(len(registry), 'metric')}"
    yield CheckResult("registry", "valid", "ok", told)
    if over := [metric.name for metric in registry if metric.expires < today()]:
        yield CheckResult(
            "registry", "expired", "error" if len(over) == len(registry) else "warning",
            f"expired, so neither recorded nor accepted: {listed(over)}",
            "set `expires` to a later day, first for the collector and then in the app",
        )  # fmt: skip
    if warned := {each.where: None for each in problems if each.severity != "note"}:
        is_wrong = any(each.severity == "error" for each in problems)
        yield CheckResult(
            "registry", "lint", "error" if is_wrong else "warning",
            f"{path} has {'mistakes' if is_wrong else 'warnings'}: {listed([*warned])}",
            f"`deniable lint {path}` says which",
        )  # fmt: skip


def check_environment(environ: Mapping[str, str]) -> Iterator[CheckResult]:
    """Variables that switch every client off, or to development mode, which nobody wants in
    production."""
    for name in switches(environ):
        yield CheckResult(
            "environment", "disabled", "error",
            f"{name} is set, so clients in this environment keep and send nothing",
            f"run the app without it to test reporting: env -u {name} ...",
        )  # fmt: skip
    if environ.get("DENIABLE_DEV", "").strip():
        yield CheckResult(
            "environment", "development", "warning",
            "DENIABLE_DEV is set, so clients in this environment are in development mode, and "
            "nothing that they report counts",
            "leave it out where real devices report: env -u DENIABLE_DEV ...",
        )  # fmt: skip


def check_state(registry: Registry, directory: Path | None) -> Iterator[CheckResult]:
    """The state of the app on this device: whether it can be written, and what waits in it."""
    if directory is None:
        try:
            directory = Path(states_root(), registry.app)
        except StateError as error:
            yield CheckResult(
                "state", "no_folder", "error", str(error),
                "pass a state_dir to the client, and to this command with --state-dir",
            )  # fmt: skip
            return
    if reason := _cannot_write(directory):
        yield CheckResult(
            "state", "not_writable", "error", f"{directory} cannot be written: {reason}",
            "free space on a full disk; else give the user that runs the app a folder that it may "
            "write to, as state_dir or as XDG_STATE_HOME",
        )  # fmt: skip
        return
    state = State(directory, registry.app)
    try:
        if state.switched_off:
            yield CheckResult(
                "state", "switched_off", "error",
                f"the owner of the device has switched reporting off in {directory}",
                "only the owner may switch it on: `deniable sent --switch-on`",
            )  # fmt: skip
        found = [*_contents(state, registry)] if (directory / FILE_NAME).exists() else []
        yield from found or [
            CheckResult(
                "state", "nothing_recorded", "warning",
                f"no record waits in {directory}, and none was reported",
                "does the app call record() with consent? print(telemetry.status) says \"on\" if "
                "it has it. And does the app use the same state_dir, app name and user as this "
                "command?",
            )
        ]  # fmt: skip
    except StateError as error:
        yield CheckResult(
            "state", "damaged" if error.damaged else "foreign_state", "error",
            f"{directory / FILE_NAME}: {error}",
            "in development, remove the file; on a user's device leave it"
            if error.damaged
            else "give each app a state_dir of its own, and do not change the registry's `app`",
        )  # fmt: skip
    except (sqlite3.Error, OSError) as error:
        yield CheckResult(
            "state", "not_readable", "error", f"{directory / FILE_NAME} cannot be used: {error}",
            "run this command again in a minute, as the user that runs the app, and see that the "
            "disk is not full",
        )  # fmt: skip
    finally:
        state.close()


def _cannot_write(directory: Path) -> str:
    """Why no file can be written in a folder, or in the nearest one above it that exists."""
    try:
        # A symbolic link to nothing is no folder, and none can be made in its place.
        folders = directory, *directory.absolute().parents
        nearest = next(each for each in folders if each.exists() or each.is_symlink())
        with tempfile.TemporaryFile(dir=nearest) as probe:
            probe.write(bytes(1 << 16))  # a full disk takes the name but not the content
            probe.flush()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _contents(state: State, registry: Registry) -> Iterator[CheckResult]:
    """What the state holds."""
    with state.transaction() as connection:
        entries, ledger, waiting, _ = owner.owned(connection, registry)
        (ends,) = connection.execute(
            "SELECT min(ends) FROM windows WHERE state = 'open'"
        ).fetchone()
        refusals = open_windows.refusals(connection, time.time())
        queued = outbox.queued(connection)
    if refusals:
        counts = [f"{name} ({count})" for name, count in sorted(refusals.items())]
        yield CheckResult(
            "state", "values_refused", "warning",
            f"the app has recorded values that do not fit their metrics: {listed(counts)}",
            "`deniable dev` names the reason. A category takes every text once it has an "
            "`other`",
        )  # fmt: skip
    if waiting:
        when = datetime.fromtimestamp(ends, UTC).strftime("%Y-%m-%d %H:%M UTC")
        until = (
            f"for the app's next run, because a window ended at {when}: reported within an hour "
            "after the app has started"
            if ends <= time.time()
            else f"for a window to end, the first at {when}: reported within an hour after that, "
            "if the app runs"
        )
        message = f"{counted(waiting, 'value')} waiting {until}"
        yield CheckResult("state", "values_wait", "ok", message)
    if queued:
        yield CheckResult(
            "state", "reports_wait", "note", f"{counted(queued, 'report')} waiting to be sent",
            "if they do not leave within an hour while the app runs, see what the checks of the "
            "collector say",
        )  # fmt: skip
    if sent := sum(each.status == "sent" for each in entries):
        yield CheckResult(
            "state", "sent", "ok", f"{counted(sent, 'report')} acknowledged by a collector"
        )
    if refused := {f"{e.report.metric} ({e.reason})" for e in entries if e.status == "rejected"}:
        yield CheckResult(
            "state", "rejected", "warning",
            f"a collector refused reports: {listed(sorted(refused))}",
            "docs/reference/protocol.md says what each reason means",
        )  # fmt: skip
    if spent := [each.metric for each in ledger if each.left == 0]:
        yield CheckResult(
            "state", "spent", "note",
            f"the lifetime_epsilon of this device is spent for: {listed(spent)}",
            "it never reports these metrics again. one_in makes it last "
            "(docs/reference/metrics-toml.md)",
        )  # fmt: skip
