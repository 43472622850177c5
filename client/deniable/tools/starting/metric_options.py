"""The questions that `init` and `add` share: as options, and in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any, TypeVar

import click

from deniable.protocol.lasting import today
from deniable.protocol.mechanisms.prefix_code import ALPHABETS
from deniable.protocol.types import TYPES

Function = TypeVar("Function", bound=Callable[..., Any])

_DAYS = 365
"""So long a new metric lasts, today included."""


def metric_options(function: Function) -> Function:
    """The options of a metric that `init` and `add` have; other keys are edited in the file."""
    return _with(
        function,
        click.option("--type", type=click.Choice(list(TYPES)), help="What record() takes."),
        click.option("--values", metavar="A,B,C", help="The list of a category."),
        click.option("--low", type=float, help="The lower end of a number's range."),
        click.option("--high", type=float, help="The upper end."),
        click.option(
            "--at-once",
            is_flag=True,
            help="Report the first record of a window within ten seconds.",
        ),
    )


def more_metric_options(function: Function) -> Function:
    """The options of a metric that only `add` has."""
    return _with(
        function,
        click.option("--of", metavar="A,B", help="The two metrics of a pair."),
        click.option(
            "--ask", type=click.Choice(["mean", "distribution"]), help="What to know of a number."
        ),
        click.option("--epsilon", type=float, help="Limit on what one report reveals."),
        click.option("--lifetime-epsilon", type=float, help="Limit on what all reveal."),
    )


def _with(function: Function, *options: Callable[[Function], Function]) -> Function:
    for option in reversed(options):
        function = option(function)
    return function


def is_interactive(*, yes: bool) -> bool:
    """Whether somebody can be asked."""
    return not yes and sys.stdin.isatty() and sys.stdout.isatty()


def expiry() -> date:
    """The last day of a new metric."""
    return today() + timedelta(_DAYS - 1)


def split_values(text: str) -> list[str]:
    """The list that was typed with commas."""
    return [word for each in text.split(",") if (word := each.strip())]


def metric_keys(name: str, given: dict[str, Any], *, interactive: bool) -> dict[str, Any]:
    """The keys of a metric, in the order of a registry; what is missing is asked for or takes a
    default. Epsilons stay out if they were not given."""

    def ask(key: str, question: str, default: Any, kind: Any = None) -> Any:
        if given.get(key) is not None:
            return given[key]
        return click.prompt(question, default=default, type=kind) if interactive else default

    default_type = "category" if given.get("values") else "pair" if given.get("of") else None
    if given.get("low") is not None or given.get("high") is not None:
        default_type = "number"
    kind = ask("type", "Its type", default_type or "boolean", click.Choice(list(TYPES)))
    keys: dict[str, Any] = {
        "type": kind,
        "description": ask("description", "In one sentence", f"The app's {name}."),
    }
    if kind == "category":
        keys["values"] = split_values(
            ask("values", "Its values, with commas", "red,green,blue,other")
        )
    elif given.get("values") is not None:
        keys["values"] = split_values(given["values"])
    if kind == "pair":
        keys["of"] = split_values(ask("of", "Its two metrics, with a comma", ""))
    elif given.get("of") is not None:
        keys["of"] = split_values(given["of"])
    if kind == "number":
        keys["low"] = _plain(ask("low", "The lower end of its range", 0.0, float))
        keys["high"] = _plain(ask("high", "The upper end", 100.0, float))
        questions = click.Choice(["mean", "distribution"])
        keys["ask"] = ask("ask", "What to know of it", "mean", questions)
    if kind == "discovery":
        keys["alphabet"] = ask("alphabet", "Its bytes", "bytes", click.Choice(list(ALPHABETS)))
    for key in ("low", "high", "ask"):
        if given.get(key) is not None:
            keys.setdefault(key, _plain(given[key]))
    if given.get("platform") is not None:
        keys["platform"] = given["platform"]
    if given.get("at_once") and not TYPES[kind].looks_back:  # that is always reported at once
        keys |= {"answer": "at_once", "aggregate": "first"}
    fresh = kind in ("number", "pair", "discovery")
    for key in ("epsilon", "lifetime_epsilon"):
        if given.get(key) is not None:
            keys[key] = given[key]
    if not fresh:
        keys["longitudinal"] = "memoize"
    return keys


def _plain(number: Any) -> Any:
    """A whole number without a point, as people write it."""
    return int(number) if isinstance(number, float) and number.is_integer() else number
