"""The kinds of plan of `deniable plan`: which options each takes, and what is printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import click

from deniable.types.retention import DEFAULT_AGES

if TYPE_CHECKING:
    from deniable_estimator.planning.plan import PlannedSegment

# numpy and rich take longer to import than `deniable --help` should.

_OF_PAIRS = frozenset(
    {"pair", "effect", "epsilon", "devices", "sample_rate", "lifetime_epsilon", "fakes", "form"}
)

_OF_DISCOVERIES = (_OF_PAIRS - {"pair", "effect"}) | {"discovery", "max_length", "share"}

_OF_RETENTIONS = (_OF_PAIRS - {"pair", "effect", "fakes"}) | {
    "retention",
    "ages",
    "share",
    "window",
}

_OF_NUMBERS = ("--low", "--high", "--ask")
"""What a number needs."""


class _Made(Protocol):
    """A plan of any kind."""

    def to_dict(self) -> dict[str, Any]: ...


def show(
    made: _Made, view: Callable[[Any], Any], form: str | None, segment: PlannedSegment | None = None
) -> None:
    """Print a plan as JSON, or as `view` shows it, with the segment that it is made for."""
    if form == "json":
        more = segment.to_dict() if segment else {}
        click.echo(json.dumps({**made.to_dict(), **more}, ensure_ascii=False))
        return
    from rich.console import Console

    words = [segment.words] if segment else []
    Console().print(*words, view(made), sep="\n")


def discovery(context: click.Context, max_length: int) -> None:
    """Print the plan of a discovery; refuses the options that have no meaning for it."""
    from deniable_estimator.planning.discovery_plan import plan_discovery
    from deniable_estimator.terminal.plan_views import discovery_plan_view

    told = _only(context, _OF_DISCOVERIES, "--discovery")
    if max_length % 2:
        raise click.UsageError("--max-length must be even: strings are cut to pairs of bytes")
    made = plan_discovery(
        max_length,
        told["epsilon"],
        told["devices"],
        share=0.01 if told["share"] is None else told["share"],
        sample_rate=told["sample_rate"],
        lifetime_epsilon=told["lifetime_epsilon"],
        fakes=told["fakes"],
    )
    show(made, discovery_plan_view, told["form"])


def retention(context: click.Context, asks: str, ages: int | None) -> None:
    """Print the plan of a retention; refuses the options that have no meaning for it."""
    from deniable.mechanisms.memoized_retention import ASKS
    from deniable_estimator.planning.retention_plan import plan_retention
    from deniable_estimator.terminal.plan_views import retention_plan_view

    told = _only(context, _OF_RETENTIONS, "--retention")
    if told["lifetime_epsilon"] is None:
        raise click.UsageError("--retention needs --lifetime-epsilon: it always has memos")
    asked = [each for each in ASKS if asks in {each, "both"}]
    if ages is not None and "cohorts" not in asked:
        raise click.UsageError("--ages is of cohorts: ask for them as well")
    made = plan_retention(
        asked,
        DEFAULT_AGES if ages is None else ages,
        *(told["epsilon"], told["lifetime_epsilon"], told["devices"]),
        **({} if told["share"] is None else {"new": told["share"]}),
        sample_rate=told["sample_rate"],
        window=told["window"] or "week",
    )
    show(made, retention_plan_view, told["form"])


def pair(context: click.Context, shape: str, effect: float | None) -> None:
    """Print the plan of a pair; refuses the options that have no meaning for it."""
    from deniable_estimator.planning.pairs import EFFECT, plan_pair
    from deniable_estimator.terminal.plan_views import pair_plan_view, read_shape

    told = _only(context, _OF_PAIRS, "--pair")
    made = plan_pair(
        *read_shape(shape),
        told["epsilon"],
        told["devices"],
        effect=EFFECT if effect is None else effect,
        sample_rate=told["sample_rate"],
        lifetime_epsilon=told["lifetime_epsilon"],
        fakes=told["fakes"],
    )
    show(made, pair_plan_view, told["form"])


def number(*question: Any, **options: Any) -> None:
    """Print the plan of a number; the last two of `question` are the form and the segment."""
    from deniable_estimator.planning.numbers import plan_number
    from deniable_estimator.terminal.plan_views import number_plan_view

    *numbers, form, segment = question
    show(plan_number(*numbers, **options), number_plan_view, form, segment)


def check_number(size: int | None, share: float | None, memoize: bool, given: list[str]) -> None:
    """Refuse what has no meaning for a number, and what it lacks among the options `given`."""
    if size is not None:
        raise click.UsageError("--size is for values and --number for a number: give one of them")
    if share is not None:
        raise click.UsageError("--share is for values: leave it out with --number")
    if memoize:
        raise click.UsageError(
            "--number plans fresh reports: leave --memoize out. docs/registry.md says how many "
            "reports a distribution with memos takes"
        )
    if lacking := [name for name in _OF_NUMBERS if name not in given]:
        raise click.UsageError(f"--number needs {', '.join(lacking)}")


def check_lifetime(context: click.Context, lifetime_epsilon: float | None) -> float:
    """The lifetime epsilon to divide; refuses what a list of divisions does not take."""
    given = _typed(context, ("half_width", "sample_rate", "memoize", "fakes"))
    if given:
        raise click.UsageError(f"{', '.join(given)}: not with --years, which computes the rate")
    if lifetime_epsilon is None:
        raise click.UsageError("--years needs --lifetime: the lifetime epsilon to divide")
    return lifetime_epsilon


def _only(context: click.Context, allowed: frozenset[str], option: str) -> dict[str, Any]:
    """The options, if none is given beside those that are allowed with `option`."""
    given = _typed(context, tuple(name for name in context.params if name not in allowed))
    if given:
        raise click.UsageError(f"{', '.join(given)}: not with {option}")
    told = context.params
    if told["epsilon"] is None or told["devices"] is None:
        raise click.UsageError(f"say --epsilon and --devices with {option}")
    return told


def _typed(context: click.Context, names: tuple[str, ...]) -> list[str]:
    """Which of these options are on the command line, as they are typed."""
    return [
        f"--{name.replace('_', '-')}"
        for name in names
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    ]
