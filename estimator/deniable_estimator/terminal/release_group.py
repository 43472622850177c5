"""The group of `deniable release`: its first word may be a metric. And what its commands share: the
ledger with its options."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deniable_collector.options import SettingOption
from deniable_estimator.terminal.real_numbers import Real

if TYPE_CHECKING:
    from deniable_estimator.releasing.ledger import ReleaseLedger


class _Releases(click.Group):
    """A group whose first word may be a metric instead of a command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands:
            args = ["make", *args]
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options of `make`, which may be left out, and the commands."""
        make_it = self.commands["make"]
        make_it.format_options(click.Context(make_it, parent=ctx), formatter)
        self.format_commands(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # `deniable release --plan browser`: options may stand before the metric.
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = ["make", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Releases, subcommand_metavar="METRIC | COMMAND [ARGS]...")
def release() -> None:
    """Publish numbers of METRIC for the world, with a statement of what they reveal.

    A table, a trend or the leader alone: the sums as they are, or with noise to a wished epsilon.
    Only windows that take no reports any more are released; without --to the range ends with the
    newest of them. To release the same thing again costs nothing: the same numbers come out.

    `deniable release METRIC` is short for `deniable release make METRIC`.
    """


ledger_option = click.option(
    "--ledger",
    cls=SettingOption,
    envvar="DENIABLE_RELEASES",
    default="releases.sqlite",
    show_default=True,
    show_envvar=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file that adds up what all releases reveal; it is made if there is none.",
)
budget_option = click.option(
    "--budget",
    cls=SettingOption,
    envvar="DENIABLE_RELEASE_BUDGET",
    show_envvar=True,
    type=Real(0, min_open=True),
    help="Refuse a release if all of them together would reveal more than this epsilon of one "
    "device; without it there is no limit.",
)
total_delta_option = click.option(
    "--total-delta",
    cls=SettingOption,
    envvar="DENIABLE_RELEASE_DELTA",
    default=1e-6,
    show_default=True,
    show_envvar=True,
    type=Real(1e-30, 1e-3),
    help="The delta at which all releases together are accounted for.",
)


@contextmanager
def kept_ledger(
    path: Path, delta: float, budget: float | None, *, plan_only: bool, make_it: bool = True
) -> Iterator[ReleaseLedger | None]:
    """The ledger, closed afterwards; None if a plan finds no file."""
    from deniable_estimator.releasing.ledger import ReleaseLedger

    if not path.exists() and (plan_only or not make_it):
        if not plan_only:
            raise click.ClickException(f"there is no ledger {path}: nothing was released with it")
        yield None
        return
    found = ReleaseLedger(path, delta, budget)
    try:
        yield found
    finally:
        found.close()
