"""`deniable prior`: what text usually looks like, for `deniable discover`, from public lists.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import click

from deniable.told import counted
from deniable_estimator.errors import EstimateError
from deniable_estimator.terminal.options import progress, reported

__all__ = ["MAX_LIST", "prior"]

MAX_LIST = 256 << 20
"""The largest list in bytes."""


@click.command()
@click.argument("lists", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The file to write.",
)
@click.option("--source", help="What the lists are, for people: names, versions, addresses.")
@click.option("--licence", help="The licences of the lists, with the credit that they ask for.")
@reported
def prior(
    lists: tuple[Path, ...], out: Path | None, source: str | None, licence: str | None
) -> None:
    """Make a prior from LISTS of public strings: which byte follows which.

    A list is UTF-8 text with a string on each line, and its frequency after a tab, if it is known.
    A prior that is in FILE already is replaced; any other file is left alone. Every list has the
    same weight. Never use strings that were found in the same reports: they
    would confirm themselves. Without LISTS, tells what the shipped prior was made from.
    """
    from deniable_estimator.analyses.discovery.prior import (
        Prior,
        counted_pairs,
        read_prior,
        shipped_prior,
    )

    if not lists:
        if out or source or licence:
            raise click.UsageError("name the lists to make a prior from")
        shipped = shipped_prior()
        click.echo(f"{shipped.source}\n\n{shipped.licence}")
        return
    missing = [f"--{each}" for each, value in
               (("out", out), ("source", source), ("licence", licence)) if not value]  # fmt: skip
    if missing or out is None or source is None or licence is None:
        raise click.UsageError(f"{', '.join(missing)} must be given: a prior is told with both")
    if out.resolve() in {each.resolve() for each in lists}:
        raise click.UsageError(f"--out {out} is one of the lists: name another file")
    if there := out.exists():
        try:
            read_prior(out)
        except EstimateError:
            raise EstimateError(
                f"{out} exists and is no prior: name another file, so that nothing is lost"
            ) from None
    with progress("Counting"):
        counts = [counted_pairs(_read(path)) for path in lists]
    made = Prior(sum(counts[1:], counts[0]), source, licence)
    try:
        out.write_text(made.to_json(), encoding="utf-8")
    except OSError as error:
        raise EstimateError(f"{out} cannot be written: {error.strerror}") from error
    replaced = ", in place of the prior that was there" if there else ""
    click.echo(f"{counted(len(lists), 'list')} counted into {out}{replaced}.", err=True)


def _read(path: Path) -> Iterator[tuple[str, float]]:
    """The strings of a list with their frequencies.

    Raises:
        EstimateError: it cannot be read, or a line cannot be understood.
    """
    try:
        if path.stat().st_size > MAX_LIST:
            raise EstimateError(f"{path} is larger than {MAX_LIST:,} bytes: split it")
        with path.open(encoding="utf-8-sig") as file:
            empty = True
            for number, line in enumerate(file, 1):
                text, tab, told = line.rstrip("\r\n").partition("\t")
                frequency = _number(told) if tab else 1.0
                if not (0 < frequency < math.inf):
                    raise EstimateError(
                        f"{path}, line {number}: after the tab, write a frequency above 0"
                    )
                if text:
                    empty = False
                    yield text, frequency
            if empty:
                raise EstimateError(f"{path} holds no string; write one on each line")
    except UnicodeDecodeError:
        raise EstimateError(f"{path} is not UTF-8 text: save it in that encoding") from None
    except OSError as error:
        raise EstimateError(f"{path} cannot be read: {error.strerror}") from error


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
