"""`deniable release list`, `key` and `verify`: what was released, and whether a file is it."""

from __future__ import annotations

import json
from pathlib import Path

import click

from deniable_estimator.terminal.options import (
    as_json,
    reported,
)
from deniable_estimator.terminal.release_group import (
    budget_option,
    kept_ledger,
    ledger_option,
    total_delta_option,
)


@click.command("list")
@ledger_option
@budget_option
@total_delta_option
@as_json
@reported
def list_releases(ledger: Path, budget: float | None, total_delta: float, form: str | None) -> None:
    """List what was released, the newest first, and what all of it reveals together."""
    from deniable_estimator.terminal.release_view import print_list

    with kept_ledger(ledger, total_delta, budget, plan_only=False, make_it=False) as kept:
        assert kept is not None
        print_list(kept, form)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@reported
def key(file: Path) -> None:
    """Make a key to sign releases with: FILE, and FILE.pub for those who verify."""
    from deniable_estimator.releasing.manifest import make_key

    public = make_key(file)
    click.echo(f"Wrote the private key to {file}. Publish {public}, and keep {file} to yourself.")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--table",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Check that this CSV is the table of the release, too.",
)
@click.option(
    "--key",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Check that the manifest was signed with this public key: Ed25519, PEM.",
)
@click.option("--json", "form", flag_value="json", help="Print the manifest as JSON.")
@reported
def verify(file: Path, table: Path | None, key: Path | None, form: str | None) -> None:
    """Check that the numbers in FILE are those of its manifest, and who signed it."""
    from deniable_estimator.releasing.manifest import public_key
    from deniable_estimator.releasing.manifest import verify as check

    signer = public_key(key) if key else None
    manifest = check(_read(file), _read(table) if table else None, signer)
    if form == "json":
        click.echo(json.dumps(manifest))
        return
    from deniable_estimator.terminal.release_view import print_verified

    signed = "signature" in json.loads(_read(file))
    print_verified(manifest, signed=signed, by_key=signer is not None)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror}") from None
