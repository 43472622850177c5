"""Options that several commands on stores have."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import datetime
from typing import Any, ParamSpec, TypeVar

import click

from deniable_collector.upkeep.tools import midnight

__all__ = ["address_option", "as_json_option", "chosen", "day"]

_P = ParamSpec("_P")
_R = TypeVar("_R")

day = click.DateTime(["%Y-%m-%d"])
address_option = click.option(
    "--store", "address", metavar="URL", help="Where the tallies are (DENIABLE_STORE)."
)
as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def chosen(command: Callable[_P, _R]) -> Callable[..., _R]:
    """The options that select tallies, passed on as `selection`."""

    @click.option("--metric", "metrics", multiple=True, metavar="NAME", help="Only this metric.")
    @click.option("--since", type=day, help="Only windows that begin on this day or later.")
    @click.option("--before", type=day, help="Only windows that had ended when this day began.")
    @functools.wraps(command)
    def with_selection(
        *args: Any,
        metrics: tuple[str, ...],
        since: datetime | None,
        before: datetime | None,
        **options: Any,
    ) -> _R:
        from deniable_collector.upkeep.archive import TallySelection

        if since is not None and before is not None and since >= before:
            raise click.UsageError(
                f"no window begins on {since:%Y-%m-%d} or later and had ended when "
                f"{before:%Y-%m-%d} began: --since must be the earlier day"
            )
        options["selection"] = TallySelection(
            frozenset(metrics),
            None if since is None else midnight(since),
            None if before is None else midnight(before),
        )
        return command(*args, **options)

    return with_selection
