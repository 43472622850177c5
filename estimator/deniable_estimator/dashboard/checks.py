"""The dashboard's part of `deniable lint`, the files that an operator writes for it; and of
`deniable doctor --operator`, its settings, its token, the files of annotations and
people, and their disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from pathlib import Path

from deniable import Registry
from deniable.protocol.errors import MistakesError, Problem
from deniable.tools.doctor import CheckResult
from deniable_collector.settings import Settings, SettingsError
from deniable_estimator.annotations import load_annotations, warnings_of
from deniable_estimator.dashboard.access.people import load_people
from deniable_estimator.dashboard.boards.definition import MOST_BOARDS, BoardFolder, load_board
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.files import ANNOTATIONS, PEOPLE, CheckedFileError, file_in_folder


def check_files(
    registry: Registry, environ: Mapping[str, str]
) -> Iterator[tuple[str, Sequence[Problem]]]:
    """Each file that there is, and what is wrong with it: annotations, boards, people."""
    annotations, people = (file_in_folder(name, environ) for name in (ANNOTATIONS, PEOPLE))
    if annotations.exists():
        wrong = _problems(load_annotations, annotations)
        told = wrong or warnings_of(load_annotations(annotations), registry.metrics)
        yield str(annotations), told
    if path := environ.get("DENIABLE_BOARDS"):
        yield from _boards(Path(path), registry)
    if people.exists():
        yield str(people), _problems(load_people, people)


def _problems(read: Callable[..., object], *given: object) -> Sequence[Problem]:
    """What is wrong with a file for its reader."""
    try:
        read(*given)
    except MistakesError as error:
        return error.problems
    return ()


def _boards(folder: Path, registry: Registry) -> Iterator[tuple[str, Sequence[Problem]]]:
    if not folder.is_dir():
        yield str(folder), [Problem(None, "", "is no folder: DENIABLE_BOARDS names one")]
        return
    kept = BoardFolder(folder, registry)
    for name in kept.refused:
        told = (
            "is no board: a name has up to 64 of a-z, 0-9, _ and -, and a folder up to "
            f"{MOST_BOARDS} boards"
        )
        yield str(folder / name), [Problem(None, "", told)]
    for name in kept.names:
        path = folder / f"{name}.toml"
        yield str(path), _problems(load_board, path, registry)


def check_dashboard(environ: Mapping[str, str]) -> Iterator[CheckResult]:
    """What a dashboard with this environment would meet."""
    # `deniable lint` needs no store.
    from deniable_collector.operation.operator_checks import check_disk

    try:
        settings = DashboardSettings.from_env(environ)
    except SettingsError as error:
        for each in error.problems:
            if each not in _collectors(environ):  # the collector's check has said them
                advice = "docs/reference/settings.md lists every setting"
                yield CheckResult("dashboard", "setting", "error", each, advice)
        return
    if not settings.dashboard_token:
        yield CheckResult(
            "dashboard", "no_token", "warning",
            "DENIABLE_DASHBOARD_TOKEN is not set, so each start makes another token and signs "
            "everybody out",
            "set a random one in DENIABLE_DASHBOARD_TOKEN_FILE: "
            "python3 -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )  # fmt: skip
    else:
        yield CheckResult("dashboard", "token", "ok", "the dashboard's token is hard to guess")
    yield from _file(
        ANNOTATIONS, load_annotations, environ,
        "correct the file; until then the dashboard shows what it said before",
    )  # fmt: skip
    yield from _file(
        PEOPLE, load_people, environ,
        "correct the file; a dashboard that starts with it lets in nobody but the operator's token",
    )  # fmt: skip
    yield from check_disk(
        file_in_folder(PEOPLE, environ).parent, "DENIABLE_DATA is",
        "make room: on a full disk nobody can sign in, and no view be shared",
    )  # fmt: skip
    local = settings.dashboard_bind.startswith(("127.", "localhost:", "[::1]:", "unix:"))
    if not local and not settings.public_url.startswith("https://"):
        yield CheckResult(
            "dashboard", "open_bind", "warning",
            f"DENIABLE_DASHBOARD_BIND {settings.dashboard_bind} can be reached from other "
            "machines, and the token would travel in clear text",
            "bind it to 127.0.0.1 behind a proxy with TLS, and set DENIABLE_PUBLIC_URL to its "
            "https:// address",
        )  # fmt: skip


def _file(
    name: str, read: Callable[[Path], Sized], environ: Mapping[str, str], advice: str
) -> Iterator[CheckResult]:
    """Whether a file in DENIABLE_DATA, if there is one, has mistakes."""
    path, what = file_in_folder(name, environ), name.removesuffix(".toml")
    if path.exists():
        try:
            found = read(path)
        except CheckedFileError as error:
            yield CheckResult("dashboard", what, "error", str(error), advice)
        else:
            yield CheckResult("dashboard", what, "ok", f"the file of {what} has {len(found)}")


def _collectors(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The mistakes that the collector's settings have as well."""
    try:
        Settings.from_env(environ)
    except SettingsError as error:
        return error.problems
    return ()
