"""`deniable watch` and `deniable watch digest`."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deniable import DeniableError
from deniable.tools.command_line import command, json_option, writing
from deniable.whole_files import written
from deniable_collector.options import registry_option, store_option
from deniable_estimator.files import ANNOTATIONS, file_in_folder
from deniable_estimator.terminal.options import Parsed, candidates_folder_option, opened

if TYPE_CHECKING:
    from deniable import Registry
    from deniable_estimator.annotations import Annotation
    from deniable_estimator.watching.rules_file import WatchRules
    from deniable_estimator.watching.run import RunResult

TOLD = 4
"""The exit code of `--once` if something new was told."""

FAILED = 5
"""The exit code of `--once` if a channel failed, whatever was told."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_LEAST, _MOST = 60, 7 * 86_400


def _every(text: str) -> float:
    """The seconds of a time like 30m."""
    found = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    seconds = int(found[1]) * _UNITS[found[2]] if found else 0
    if not _LEAST <= seconds <= _MOST:
        raise ValueError("must be a time from 60s to 7d, like 30m or 1h")
    return float(seconds)


annotations_option = click.option(
    "--annotations",
    default=lambda: file_in_folder(ANNOTATIONS),
    show_default="annotations.toml in DENIABLE_DATA, if it is there",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file of annotations; the digest names those near a change.",
)


@command("deniable watch rules.toml --once")
@click.argument("rules", default="rules.toml", type=click.Path(dir_okay=False, path_type=Path))
@registry_option
@store_option
@candidates_folder_option
@annotations_option
@click.option(
    "--state",
    "state_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file that keeps what was told; RULES with .state at its end if not given.",
)
@click.option("--once", is_flag=True, help="Run once and exit, as from cron.")
@click.option(
    "--every",
    type=Parsed("time", _every),
    default="1h",
    show_default=True,
    help="How long to wait between runs, like 30m or 1h.",
)
@click.option("--dry-run", is_flag=True, help="Run once, print what is new, keep and send nothing.")
@click.option("--check", is_flag=True, help="Check RULES and exit.")
@json_option
def watch(
    rules: Path,
    registry: Path,
    store: str | None,
    folder: Path | None,
    annotations: Path,
    state_file: Path | None,
    once: bool,
    every: float,
    dry_run: bool,
    check: bool,
    as_json: bool,
) -> None:
    """Tell what changed beyond noise, each change once, by the rules in RULES (rules.toml).

    Without --once it runs as a service until SIGTERM. With --once it exits with 0 if nothing is
    new, 4 if something was told, 5 if a channel failed, 1 on an error.
    """
    from deniable import Registry
    from deniable_estimator.watching.rules_file import load_rules
    from deniable_estimator.watching.run import Watcher
    from deniable_estimator.watching.seen import WatchState, locked

    kept = state_file or rules.with_name(f"{rules.name}.state")

    def read() -> tuple[Registry, WatchRules]:
        # Anew for each run, so that a service takes up what was edited.
        declared = Registry.load(registry)
        return declared, load_rules(rules, declared.metrics)

    def run() -> RunResult:
        asked = read()
        with opened(store) as tallies:
            watcher = Watcher(tallies, *asked, folder, _annotations(annotations))
            if dry_run:
                return watcher.run(WatchState.load(kept), time.time(), sending=False)
            with locked(kept):
                state = WatchState.load(kept)
                return watcher.run(state, time.time(), save=lambda: state.save(kept))

    if check:
        read()
        click.echo(f"{rules}: no mistakes")
        return
    if once or dry_run:
        result = run()
        _print(result, as_json)
        raise SystemExit(FAILED if result.failed else TOLD if result.messages else 0)
    _serve(run, every, as_json)


@command("deniable watch digest --html digest.html")
@registry_option
@store_option
@candidates_folder_option
@annotations_option
@click.option(
    "--weeks",
    default=1,
    show_default=True,
    type=click.IntRange(1, 52),
    help="How many complete weeks are compared with as many before.",
)
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Write it as HTML for mail."
)
@click.option(
    "--text", type=click.Path(path_type=Path, dir_okay=False), help="Write it as plain text."
)
@click.option(
    "--dashboard",
    envvar="DENIABLE_PUBLIC_URL",
    default="http://127.0.0.1:8090",
    show_default=True,
    show_envvar=True,
    help="The address that links lead to.",
)
@click.option(
    "--language",
    default="en",
    show_default=True,
    type=click.Choice(["en", "zh-Hans"]),
    help="The language of the digest.",
)
def digest(
    registry: Path,
    store: str | None,
    folder: Path | None,
    annotations: Path,
    weeks: int,
    html: Path | None,
    text: Path | None,
    dashboard: str,
    language: str,
) -> None:
    """Write what changed in the last complete weeks, what did not, and what needs attention.

    Without --html and --text it is printed.
    """
    from deniable import Registry
    from deniable_estimator.watching.digest import as_html, as_text, weekly_digest

    declared = Registry.load(registry)
    address = dashboard.rstrip("/")
    if not re.match(r"https?://[^/]", address):
        raise click.BadParameter("must begin with https:// or http://", param_hint="--dashboard")
    with opened(store) as tallies:
        found = weekly_digest(
            *(tallies, declared, tuple(declared), {}, address, time.time(), weeks),
            candidates_folder=folder,
            annotations=_annotations(annotations),
        )
    for path, content in ((html, as_html), (text, as_text)):
        if path is not None:
            with writing(path), written(path, None) as file:
                file.write(content(found, language).encode())
            click.echo(f"wrote {path}")
    if html is None and text is None:
        click.echo(as_text(found, language), nl=False)


def _annotations(path: Path) -> tuple[Annotation, ...]:
    """What the file says; with mistakes in it nothing, because a change must be told all the
    same."""
    from deniable_estimator.annotations import load_annotations
    from deniable_estimator.files import CheckedFileError

    try:
        return load_annotations(path) if path.exists() else ()
    except CheckedFileError as error:
        click.echo(f"warning: no annotations are named: {error}", err=True)
        return ()


def _serve(run: Callable[[], RunResult], every: float, as_json: bool) -> None:
    """Run again and again until SIGTERM or SIGINT; the first run must go well."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    _print(run(), as_json)
    while not ended.wait(every):
        try:
            _print(run(), as_json)
        except DeniableError as error:
            click.echo(f"Error: {error}\nThe next run is in {every:g} seconds.", err=True)


def _print(result: RunResult, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(result.to_dict(), ensure_ascii=False, allow_nan=False))
    else:
        for each in result.messages:
            click.echo(each["body"])
    for text in result.failed:
        click.echo(f"Error: {text}", err=True)
