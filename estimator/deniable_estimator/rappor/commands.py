"""`deniable rappor`: decode google/rappor's files, and make them.

Exit codes: 0 for a result, 1 for a mistake in a file, 2 for a wrong call, 3 if nothing has been
reported yet.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from deniable_collector.numeric import Real
from deniable_estimator.terminal.options import reported

# numpy and rich take longer to import than `deniable --help` should.

__all__ = ["rappor"]

_NO_DATA = 3

_file = click.Path(path_type=Path)
_params = click.option(
    "--params",
    "params_file",
    required=True,
    type=_file,
    help="params.csv: the header k,h,m,p,q,f and a line of values.",
)
_open_share = Real(0, 1, min_open=True, max_open=True)


@click.group()
def rappor() -> None:
    """Decode RAPPOR collections from google/rappor's files, and simulate them."""


@rappor.command()
@_params
@click.option(
    "--counts",
    "counts_file",
    required=True,
    type=_file,
    help="counts.csv: for each cohort its reports, then how often each bit was set.",
)
@click.option(
    "--map",
    "map_file",
    required=True,
    type=_file,
    help="map.csv: each candidate, then the positions that it sets.",
)
@click.option(
    "--fdr",
    default=0.05,
    show_default=True,
    type=_open_share,
    help="The fraction of the detected candidates that may be false.",
)
@click.option(
    "--level", default=0.95, show_default=True, type=_open_share, help="The level of the intervals."
)
@click.option("--json", "form", flag_value="json", help="Print JSON and nothing else.")
@click.option("--csv", "form", flag_value="csv", help="Print CSV and nothing else.")
@reported
def decode(
    params_file: Path, counts_file: Path, map_file: Path, fdr: float, level: float, form: str | None
) -> None:
    """Estimate the share of devices that have each candidate string."""
    # The matrices are so small that several threads only wait for each other. The numbers are
    # the same. It must be said before numpy is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from deniable_estimator.rappor.decoding import decode_files

    decoded = decode_files(params_file, counts_file, map_file, fdr=fdr, level=level)
    if form is None:
        from rich.console import Console

        from deniable_estimator.rappor.view import decoded_view

        Console().print(decoded_view(decoded))
    else:
        for warning in decoded.warnings:
            click.echo(f"Note: {warning}.", err=True)
        write = decoded.write_json if form == "json" else decoded.write_csv
        write(sys.stdout)
    if decoded.decoding.n == 0:
        sys.exit(_NO_DATA)


@rappor.command("hash")
@_params
@click.option(
    "--candidates",
    "candidates_file",
    required=True,
    type=_file,
    help="The strings to look for, one on each line.",
)
@reported
def hash_(params_file: Path, candidates_file: Path) -> None:
    """Print the map.csv of candidate strings, hashed as google/rappor's clients do."""
    from deniable_estimator.rappor.hashing import read_candidates, write_map
    from deniable_estimator.rappor.params import read_params

    write_map(read_params(params_file), read_candidates(candidates_file), sys.stdout)


@rappor.command()
@_params
@click.option(
    "--values",
    "values_file",
    required=True,
    type=_file,
    help="One value on each line, or CSV with the header client,cohort,value.",
)
@click.option("--reports", "form", flag_value="reports", default="reports", help="[default]")
@click.option("--counts", "form", flag_value="counts", help="Print counts.csv instead of reports.")
@reported
def encode(params_file: Path, values_file: Path, form: str) -> None:
    """Simulate clients with these values, and print their reports.

    The columns bloom and prr are secret to a client: never collect them.
    """
    from deniable_estimator.rappor import encoding
    from deniable_estimator.rappor.counts_file import write_counts
    from deniable_estimator.rappor.params import read_params

    params = read_params(params_file)
    reports = encoding.encode(params, encoding.read_values(values_file, params))
    if form == "counts":
        write_counts(encoding.count(params, reports), sys.stdout)
    else:
        encoding.write_reports(params, reports, sys.stdout)
