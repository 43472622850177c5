"""`deniable dashboard`: check the settings, make a token if none is given, become gunicorn."""

from __future__ import annotations

import secrets

import click

from deniable import Registry
from deniable.tools.command_line import command
from deniable_collector.options import bind_option, server_registry_option, store_option
from deniable_collector.serving.gunicorn import become, check_addresses, environment
from deniable_collector.stores import open_store
from deniable_estimator.dashboard.app import check_kept
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.files import DATA_FOLDER, DATA_SETTING


@command("deniable dashboard --registry metrics.toml --bind 127.0.0.1:8090")
@server_registry_option
@store_option
@bind_option("DENIABLE_DASHBOARD_BIND, 127.0.0.1:8090")
def dashboard(registry: str | None, store: str | None, bind: str | None) -> None:
    """Run the dashboard. Settings come from the environment; options override it.

    The token that lets people in is DENIABLE_DASHBOARD_TOKEN, or stands in the file that
    DENIABLE_DASHBOARD_TOKEN_FILE names. Without one, a new token is made and printed. Links,
    people, annotations and sessions are kept in the folder DENIABLE_DATA, by default deniable-data.
    """
    environ = environment(registry=registry, store=store, dashboard_bind=bind)
    if not environ.get(DATA_SETTING):
        environ[DATA_SETTING] = DATA_FOLDER
    settings = DashboardSettings.from_env(environ)
    Registry.load(settings.registry)
    check_addresses({"DENIABLE_DASHBOARD_BIND": settings.dashboard_bind})
    open_store(settings).close()
    check_kept(settings)
    for told in DashboardSettings.strangers(environ):
        click.echo(f"warning: {told}", err=True)
    if not settings.dashboard_token:
        environ["DENIABLE_DASHBOARD_TOKEN"] = secrets.token_urlsafe(32)
        click.echo(f"token: {environ['DENIABLE_DASHBOARD_TOKEN']}")
    become(
        "deniable_estimator.dashboard.gunicorn_conf",
        "deniable_estimator.dashboard:create_app()",
        environ,
    )
