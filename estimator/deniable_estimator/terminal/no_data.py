"""What commands say if nothing has been reported, and how they exit."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

__all__ = ["NO_DATA", "no_data"]

NO_DATA = 3
"""The exit code if the range has no reports."""


def no_data(metric: str) -> NoReturn:
    """Say what to check if nothing has been reported, and exit with NO_DATA."""
    click.echo(
        f"No reports of {metric!r} in that range. Check that --store is the collector's "
        "(DENIABLE_STORE), that the range contains a window that has closed, and that devices "
        "send to the collector: its /v1/registry must show this metric.",
        err=True,
    )
    sys.exit(NO_DATA)
