"""Makes a prior from lists of public strings: which byte follows which.

Run: python -m deniable_estimator.analyses.discovery.make_prior LIST ... --out FILE --source TEXT
     --licence TEXT

A list is UTF-8 text with a string on each line, and its frequency after a tab, if it is known.
Every list has the same weight. Never use strings that were found in the same reports: they would
confirm themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import click

from deniable_estimator.analyses.discovery.prior import Prior, counted_pairs


@click.command()
@click.argument("lists", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--out", required=True, type=click.File("x", encoding="utf-8", lazy=True))
@click.option("--source", required=True, help="What the lists are: names, versions, addresses.")
@click.option("--licence", required=True, help="Their licences, with the credit they ask for.")
def main(lists: tuple[Path, ...], out: IO[str], source: str, licence: str) -> None:
    """Make a prior from LISTS in a new file."""
    counts = [counted_pairs(_read(path)) for path in lists]
    made = Prior(sum(counts[1:], counts[0]), source, licence)
    out.write(made.to_json())


def _read(path: Path) -> Iterator[tuple[str, float]]:
    """The strings of a list with their frequencies."""
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            text, tab, given = line.rstrip("\r\n").partition("\t")
            try:
                frequency = float(given) if tab else 1.0
            except ValueError:
                frequency = math.nan
            if not 0 < frequency < math.inf:
                raise click.ClickException(
                    f"{path}, line {number}: after the tab, write a frequency above 0"
                )
            if text:
                yield text, frequency


if __name__ == "__main__":
    main()
