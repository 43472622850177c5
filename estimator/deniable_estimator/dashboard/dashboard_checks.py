"""The dashboard's part of `deniable doctor --operator`: its settings and its token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deniable.tools.doctor import CheckResult
from deniable_collector.settings import Settings, SettingsError
from deniable_estimator.annotations import load_annotations
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.files import ANNOTATIONS, CheckedFileError, file_in_folder


def check_dashboard(environ: Mapping[str, str]) -> Iterator[CheckResult]:
    """What a dashboard with this environment would meet."""
    try:
        settings = DashboardSettings.from_env(environ)
    except SettingsError as error:
        for each in error.problems:
            if each not in _collectors(environ):  # the collector's check has said them
                yield CheckResult(
                    "dashboard",
                    "setting",
                    "error",
                    each,
                    "docs/reference/settings.md lists every setting",
                )
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
    path = file_in_folder(ANNOTATIONS, environ)
    if path.exists():
        try:
            found = load_annotations(path)
        except CheckedFileError as error:
            yield CheckResult(
                "dashboard", "annotations", "error", str(error),
                "correct the file; until then the dashboard shows what it said before",
            )  # fmt: skip
        else:
            yield CheckResult(
                "dashboard", "annotations", "ok", f"the file of annotations has {len(found)}"
            )
    local = settings.dashboard_bind.startswith(("127.", "localhost:", "[::1]:", "unix:"))
    if not local and not settings.public_url.startswith("https://"):
        yield CheckResult(
            "dashboard", "open_bind", "warning",
            f"DENIABLE_DASHBOARD_BIND {settings.dashboard_bind} can be reached from other "
            "machines, and the token would travel in clear text",
            "bind it to 127.0.0.1 behind a proxy with TLS, and set DENIABLE_PUBLIC_URL to its "
            "https:// address",
        )  # fmt: skip


def _collectors(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The mistakes that the collector's settings have as well."""
    try:
        Settings.from_env(environ)
    except SettingsError as error:
        return error.problems
    return ()
