"""The questions that `init` and `add` share: as options, and in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

import click

from deniable.mechanisms.prefix_code import ALPHABETS
from deniable.metric import LONGITUDINAL
from deniable.types import TYPES

Function = TypeVar("Function", bound=Callable[..., Any])

_DAYS = 365
"""So long a metric lasts if no day is given, today included."""


def metric_options(function: Function) -> Function:
    """The options that describe a metric; other keys are edited in the file."""
    for option in reversed(
        (
            click.option("--type", type=click.Choice(list(TYPES)), help="What record() takes."),
            click.option("--description", help="The metric in one sentence."),
            click.option("--values", metavar="A,B,C", help="The list of a category."),
            click.option("--of", metavar="A,B", help="The two metrics of a pair."),
            click.option("--low", type=float, help="The lower end of a number's range."),
            click.option("--high", type=float, help="The upper end."),
            click.option(
                "--ask", type=click.Choice(["mean", "distribution"]), help="What to know of it."
            ),
            click.option("--epsilon", type=float, help="Limit on what one report reveals."),
            click.option("--lifetime-epsilon", type=float, help="Limit on what all reveal."),
            click.option("--longitudinal", type=click.Choice(LONGITUDINAL), help="New noise, or "
                         "memos that repeat."),
            click.option("--at-once", is_flag=True, help="Report the first record of a window "
                         "within ten seconds."),
            click.option("--devices", type=click.IntRange(1), help="How many devices run the app."),
            click.option("--owner", help="Who answers questions about the metric."),
            click.option("--expires", type=click.DateTime(["%Y-%m-%d"]), help="Its last day; by "
                         "default the last of a year."),
        )
    ):  # fmt: skip
        function = option(function)
    return function


def is_interactive(*, yes: bool) -> bool:
    """Whether somebody can be asked."""
    return not yes and sys.stdin.isatty() and sys.stdout.isatty()


def expiry(given: datetime | None) -> date:
    """The last day of a metric."""
    return (datetime.now(UTC) + timedelta(_DAYS - 1)).date() if given is None else given.date()


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
    for key in ("owner", "platform", "devices"):
        if given.get(key) is not None:
            keys[key] = given[key]
    if given.get("expires") is not None:
        keys["expires"] = expiry(given["expires"])
    if given.get("at_once") and kind != "retention":  # that is always reported at once
        keys |= {"answer": "at_once", "aggregate": "first"}
    fresh = kind in ("number", "pair", "discovery")
    longitudinal = given.get("longitudinal") or ("fresh" if fresh else "memoize")
    for key in ("epsilon", "lifetime_epsilon"):
        if given.get(key) is not None:
            keys[key] = given[key]
    if longitudinal == "memoize":
        keys["longitudinal"] = longitudinal
    return keys


def _plain(number: Any) -> Any:
    """A whole number without a point, as people write it."""
    return int(number) if isinstance(number, float) and number.is_integer() else number
