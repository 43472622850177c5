"""`deniable dashboard token new`: make a token for a program that reads the dashboard's API."""

from __future__ import annotations

import json

import click

from deniable.tools.command_line import command, json_option
from deniable_estimator.dashboard.access.tokens import (
    SCOPES,
    ApiToken,
    digest_of_token,
    new_token,
    parse_tokens,
    token_lines,
)
from deniable_estimator.files import CheckedFileError


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
