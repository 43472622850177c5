"""`deniable release`: numbers for the world, with what they reveal, a ledger and a budget. And what
was released, keys, and whether a file is a release.

Exit codes: 0 for a release, 1 for an error, also if the budget does not allow it, 2 for a wrong
call, 3 if nothing has been reported yet.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Literal

import click

from deniable.tools.command_line import command
from deniable.whole_files import written
from deniable_collector.options import from_environment
from deniable_estimator.document.terminal import show
from deniable_estimator.inputs import WHERE
from deniable_estimator.releasing.making import release as release_it
from deniable_estimator.releasing.manifest import make_key, private_key, public_key
from deniable_estimator.releasing.manifest import verify as check
from deniable_estimator.releasing.preparing import NoReports, ReleaseRequest, prepare
from deniable_estimator.releasing.release_ledger import ReleaseLedger
from deniable_estimator.terminal.call import StoreCall, asks, of_store
from deniable_estimator.terminal.options import Parsed, Real, as_json, opened, progress, say
from deniable_estimator.terminal.release_documents import (
    release_document,
    release_plan_document,
    releases_data,
    releases_document,
    verified_document,
)

_file = click.Path(path_type=Path, dir_okay=False)


def _epsilon(text: str) -> Fraction:
    """The exact value of a number in decimals, like 0.5.

    Raises:
        ValueError: it is none, or not finite.
    """
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text!r} is no number") from None
    if not number.is_finite() or len(text) > 40 or number.adjusted() > 300:
        raise ValueError(f"{text[:40]!r} is no number that an epsilon can be")
    return Fraction(number) if number.adjusted() > -300 else Fraction(0)


def _ledger() -> ReleaseLedger:
    """The ledger that DENIABLE_RELEASES names, with the delta at which all releases together are
    accounted for (DENIABLE_RELEASE_DELTA), and the epsilon above which they are refused
    (DENIABLE_RELEASE_BUDGET); None: there is no limit."""
    return ReleaseLedger(
        from_environment("DENIABLE_RELEASES", _file, Path("releases.sqlite")),
        from_environment("DENIABLE_RELEASE_DELTA", Real(1e-30, 1e-3), 1e-6),
        from_environment("DENIABLE_RELEASE_BUDGET", Real(0, min_open=True), None),
    )


@command("deniable release browser --from 2026-09-21 --to 2026-11-01 --out browser.csv")
@asks(WHERE)
@click.option(
    "--form",
    "form_of",
    type=click.Choice(["table", "trend", "leader"]),
    default="table",
    show_default=True,
    help="One table for all windows; one for each window; or only the name of the most common "
    "value, drawn by the exponential mechanism.",
)
@click.option(
    "--epsilon",
    type=Parsed("number", _epsilon),
    help="Add noise, so that all numbers of the release together satisfy this epsilon for all "
    "that a device reported, also against readers who know all other reports. Without it the sums "
    "are released as they are.",
)
@click.option(
    "--noise",
    "method",
    type=click.Choice(["laplace", "gaussian"]),
    default="laplace",
    show_default=True,
    help="The noise: laplace has delta = 0; gaussian has delta = 1e-8, and is smaller where many "
    "values are published.",
)
@click.option("--plan", "plan_only", is_flag=True, help="Show what it would cost. Release nothing.")
@click.option(
    "--sign",
    type=_file,
    metavar="KEY",
    help="Sign the manifest with this private key: Ed25519, PEM.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Write the release to this file. If its name ends in .csv, it is the table, and the "
    "document stands beside it as FILE.manifest.json; else it is the document (JSON). With - the "
    "document is printed.",
)
@of_store("candidates")
def release(
    call: StoreCall,
    form_of: Literal["table", "trend", "leader"],
    epsilon: Fraction | None,
    method: Literal["laplace", "gaussian"],
    plan_only: bool,
    sign: Path | None,
    out: Path | None,
) -> None:
    """Publish numbers of METRIC for the world, with a manifest of what they reveal.

    Only windows that take no reports any more are released; without --to the range ends with the
    newest of them. To release the same thing again costs nothing: the same numbers come out.
    The ledger DENIABLE_RELEASES adds up what all releases reveal, at DENIABLE_RELEASE_DELTA, and
    refuses what DENIABLE_RELEASE_BUDGET does not allow.
    """
    if plan_only and (out or sign):
        raise click.UsageError("--plan writes nothing: leave --out and --sign out")
    request = ReleaseRequest(call.query, form=form_of, method=method, epsilon=epsilon)
    signer = private_key(sign) if sign else None
    if out is not None and not out.parent.is_dir():
        raise click.ClickException(f"there is no folder {out.parent} to write {out.name} to")
    with progress("Reading") as tell:
        try:
            with opened(call.store) as reader:
                prepared = prepare(reader, call.registry, request, progress=tell)
        except NoReports:
            call.check(0)
        if plan_only:
            show(release_plan_document(prepared, _ledger()))
            return
        found = release_it(prepared, _ledger(), signer, progress=tell)
    if out == Path("-"):
        click.echo(found.document, nl=False)
        return
    if out is not None:
        files = {out: found.document}
        if out.suffix == ".csv":
            files = {out: found.csv, out.with_name(f"{out.name}.manifest.json"): found.document}
        _write(files)
    show(release_document(found, out))


def _write(files: Mapping[Path, str]) -> None:
    """Write all files whole, or leave them as they were; a device or a pipe is written to.

    Readers of a folder that a web server shows must not find a table beside the manifest of another
    one, so the files take their places only when all of them have been written.
    """
    at = next(iter(files))
    try:
        with ExitStack() as places:
            for at, text in files.items():
                file = places.enter_context(written(at, None))
                file.write(text.encode())
                file.flush()
    except OSError as error:
        raise click.ClickException(
            f"{at} cannot be written: {error.strerror}. The release is kept: the same command "
            "with another --out writes it, at no charge"
        ) from None


@command("deniable release list")
@as_json
def list_releases(form: str | None) -> None:
    """List what was released, the newest first, and what all of it reveals together."""
    ledger = _ledger()
    if not ledger.path.exists():
        told = f"there is no ledger {ledger.path}: nothing was released with it"
        raise click.ClickException(told)
    kept, account = ledger.releases(), ledger.account()
    say(form, lambda: releases_data(kept, account), lambda: releases_document(kept, account))


@command("deniable release key release.pem")
@click.argument("file", type=_file)
def key(file: Path) -> None:
    """Make a key to sign releases with: FILE, and FILE.pub for those who verify."""
    public = make_key(file)
    click.echo(f"Wrote the private key to {file}. Publish {public}, and keep {file} to yourself.")


@command("deniable release verify browser.csv.manifest.json --table browser.csv")
@click.argument("file", type=_file)
@click.option(
    "--table",
    type=_file,
    help="Check that this CSV is the table of the release, too.",
)
@click.option(
    "--key",
    type=_file,
    help="Check that the manifest was signed with this public key: Ed25519, PEM.",
)
@as_json
def verify(file: Path, table: Path | None, key: Path | None, form: str | None) -> None:
    """Check that the numbers in FILE are those of its manifest, and who signed it."""
    signer = public_key(key) if key else None
    text = file.read_bytes()
    manifest = check(text, table.read_bytes() if table else None, signer)
    signed, by_key = "signature" in json.loads(text), signer is not None
    say(
        form,
        lambda: manifest,
        lambda: verified_document(manifest, signed=signed, by_key=by_key),
        ascii_only=True,
    )
