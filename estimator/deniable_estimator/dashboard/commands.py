"""`deniable dashboard`: check the settings, make a token if none is given, become gunicorn.

`deniable dashboard people add` lets somebody sign in, with a role and a token; `deniable dashboard
token new` makes a token for a program that reads the dashboard's API.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from deniable.tools.command_line import command, json_option
from deniable.tools.commands import print_problems
from deniable_collector.options import bind_option, server_registry_option, store_option
from deniable_collector.serving.gunicorn import become, check_addresses, environment
from deniable_estimator.dashboard.access.people import (
    ROLES,
    SCHEMA,
    check_name,
    hash_token,
    load_people,
    parse_people,
)
from deniable_estimator.dashboard.access.tokens import (
    SCOPES,
    ApiToken,
    digest_of_token,
    new_token,
    parse_tokens,
    token_lines,
)
from deniable_estimator.dashboard.app import close_app, create_app
from deniable_estimator.dashboard.settings import DashboardSettings
from deniable_estimator.files import (
    DATA_FOLDER,
    DATA_SETTING,
    PEOPLE,
    CheckedFileError,
    alone,
    file_in_folder,
    replace_file,
)


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
    check_addresses({"DENIABLE_DASHBOARD_BIND": settings.dashboard_bind})
    token = settings.dashboard_token or secrets.token_urlsafe(32)
    # What keeps it from starting is told here, in a sentence, rather than by gunicorn.
    close_app(create_app(replace(settings, dashboard_token=token)))
    for told in DashboardSettings.strangers(environ):
        click.echo(f"warning: {told}", err=True)
    if not settings.dashboard_token:
        environ["DENIABLE_DASHBOARD_TOKEN"] = token
        click.echo(f"token: {token}")
    become(
        "deniable_estimator.dashboard.gunicorn_conf",
        "deniable_estimator.dashboard:create_app()",
        environ,
    )


@command("deniable dashboard people add Ana --role analyst")
@click.argument("name")
@click.option("--role", required=True, type=click.Choice(ROLES), help="What NAME may do.")
@click.option("--no-token", is_flag=True, help="Make no token: a reverse proxy names this person.")
@click.option(
    "--replace", is_flag=True, help="Give somebody who is listed another role and a new token."
)
@json_option
@click.option(
    "--file",
    "path",
    default=lambda: file_in_folder(PEOPLE),
    show_default="people.toml in DENIABLE_DATA",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file of people.",
)
def add(name: str, role: str, no_token: bool, replace: bool, path: Path, as_json: bool) -> None:
    """Add NAME, and print the token once: only a hash of it is kept.

    \b
    reader    sees pages, takes their files and pictures, reads the API
    analyst   also compares, plans, sends lists of strings, and shares views by link
    operator  everything, such as to revoke the links of others

    A running dashboard reads the file again when it changes. To remove somebody or to change a
    role, edit it; `deniable lint` checks it.
    """
    if wrong := check_name(name):
        raise click.UsageError(f"NAME {wrong}")
    token = "" if no_token else new_token()
    keys = {"role": role} | ({"token": hash_token(token)} if token else {})
    try:
        with alone(path):
            _add(path, name, keys, replace=replace)
    except CheckedFileError as error:
        print_problems(error.problems, str(path))
        raise SystemExit(1) from None
    if as_json:
        click.echo(json.dumps({"name": name, "role": role, "token": token or None}))
        return
    if token:
        click.echo(f"token: {token}")
        click.echo(
            f"{name} signs in with it as {role}. It is shown once, and only its hash is in {path}.",
            err=True,
        )
    else:
        click.echo(f"{name} is {role} as soon as a proxy names {name}.")


def _add(path: Path, name: str, keys: dict[str, str], *, replace: bool) -> None:
    """Change the file, and keep its comments; a mistake changes nothing."""
    import tomlkit

    known = load_people(path) if path.exists() else {}
    same = next((each for each in known if each.casefold() == name.casefold()), None)
    if same is not None and not (replace and same == name):
        advice = (
            "--replace gives another role and a new token"
            if same == name
            else "choose another name, or remove it first"
        )
        raise click.ClickException(f"{path} lists {same} already: {advice}")
    entry = secrets.token_hex(8) if same is None else known[same].entry
    keys |= {"entry": entry} if entry else {}
    document = tomlkit.parse(path.read_text("utf-8") if path.exists() else f"schema = {SCHEMA}\n")
    people: Any = document.setdefault("people", tomlkit.table(is_super_table=True))
    table = people.setdefault(name, tomlkit.table())
    for key in [key for key in table if key not in keys]:
        del table[key]
    table.update(keys)
    after = tomlkit.dumps(document)
    parse_people(after, str(path))
    # It is its owner's alone, as it has the hashes of tokens.
    replace_file(path, after, 0o600)


@command("deniable dashboard token new --name grafana --scope read:metrics")
@click.option("--name", required=True, help="What uses it, to know it by.")
@click.option(
    "--scope",
    "scopes",
    required=True,
    multiple=True,
    type=click.Choice(list(SCOPES)),
    help="What it may read; can be given several times.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="PATTERN",
    help="Only metrics with such a name, like `checkout_*`; can be given several times.",
)
@click.option(
    "--tag",
    "tags",
    multiple=True,
    metavar="PATTERN",
    help="Only metrics with such a tag; can be given several times.",
)
@click.option(
    "--settled",
    is_flag=True,
    help="Only windows that take no reports any more: two readings then never differ by a few "
    "late reports.",
)
@json_option
def new(
    name: str,
    scopes: tuple[str, ...],
    metrics: tuple[str, ...],
    tags: tuple[str, ...],
    settled: bool,
    as_json: bool,
) -> None:
    """Make a token. It is shown once, on standard error, and stored nowhere.

    The other lines go into the file that DENIABLE_API_TOKENS_FILE names (`>> tokens.toml`); the
    dashboard reads it anew when it changes. To revoke a token, remove its lines.
    """
    secret = new_token()
    made = ApiToken(name, digest_of_token(secret), frozenset(scopes), metrics, tags, settled)
    lines = token_lines(made)
    try:
        parse_tokens(lines)
    except CheckedFileError as error:
        problem = error.problems[0]
        key = problem.where.rpartition(".")[2]
        raise click.UsageError(f"{key} {problem.message}") from None
    if as_json:
        click.echo(json.dumps({"token": secret, "lines": lines}))
        return
    # On standard error, so that `>> tokens.toml` adds only the lines to the file.
    click.echo(lines, nl=False)
    click.echo(f"\ntoken: {secret}", err=True)
