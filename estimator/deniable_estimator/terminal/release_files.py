"""`deniable release list`, `key` and `verify`: what was released, and whether a file is it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deniable.tools.command_line import command
from deniable_collector.options import from_environment
from deniable_estimator.terminal.options import Real, as_json, say

if TYPE_CHECKING:
    from deniable_estimator.releasing.ledger import ReleaseLedger


def ledger_limits() -> tuple[float, float | None]:
    """The delta at which all releases together are accounted for (DENIABLE_RELEASE_DELTA), and
    the epsilon above which they are refused (DENIABLE_RELEASE_BUDGET); None: there is no limit."""
    return (
        from_environment("DENIABLE_RELEASE_DELTA", Real(1e-30, 1e-3), 1e-6),
        from_environment("DENIABLE_RELEASE_BUDGET", Real(0, min_open=True), None),
    )


@contextmanager
def kept_ledger(*, plan_only: bool = False, make_it: bool = True) -> Iterator[ReleaseLedger | None]:
    """The ledger that DENIABLE_RELEASES names, closed afterwards; None if a plan finds no file."""
    from deniable_estimator.releasing.ledger import ReleaseLedger

    kind = click.Path(path_type=Path, dir_okay=False)
    path = from_environment("DENIABLE_RELEASES", kind, Path("releases.sqlite"))
    if not path.exists() and (plan_only or not make_it):
        if not plan_only:
            raise click.ClickException(f"there is no ledger {path}: nothing was released with it")
        yield None
        return
    found = ReleaseLedger(path, *ledger_limits())
    try:
        yield found
    finally:
        found.close()


@command("deniable release list")
@as_json
def list_releases(form: str | None) -> None:
    """List what was released, the newest first, and what all of it reveals together."""
    from deniable_estimator.terminal.release_told import releases_data, releases_document

    with kept_ledger(make_it=False) as kept:
        assert kept is not None
        say(form, partial(releases_data, kept), partial(releases_document, kept))


@command("deniable release key release.pem")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def key(file: Path) -> None:
    """Make a key to sign releases with: FILE, and FILE.pub for those who verify."""
    from deniable_estimator.releasing.manifest import make_key

    public = make_key(file)
    click.echo(f"Wrote the private key to {file}. Publish {public}, and keep {file} to yourself.")


@command("deniable release verify browser.csv.manifest.json --table browser.csv")
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
@as_json
def verify(file: Path, table: Path | None, key: Path | None, form: str | None) -> None:
    """Check that the numbers in FILE are those of its manifest, and who signed it."""
    from deniable_estimator.releasing.manifest import public_key
    from deniable_estimator.releasing.manifest import verify as check
    from deniable_estimator.terminal.release_told import verified_document

    signer = public_key(key) if key else None
    manifest = check(_read(file), _read(table) if table else None, signer)
    signed, by_key = "signature" in json.loads(_read(file)), signer is not None
    say(
        form,
        lambda: manifest,
        lambda: verified_document(manifest, signed=signed, by_key=by_key),
        ascii_only=True,
    )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise click.ClickException(f"{path} cannot be read: {error.strerror}") from None
