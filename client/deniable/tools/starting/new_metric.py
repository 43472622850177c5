"""A new metric: what `init` and `add` ask about it, as options and in a terminal, and its table of
`metrics.toml`, with numbers that suit the crowd."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, TypeVar

import click

from deniable.protocol.errors import Problem, RegistryError
from deniable.protocol.lasting import groups, lasting, today
from deniable.protocol.mechanisms.prefix_tree import ALPHABETS
from deniable.protocol.registry import Registry
from deniable.protocol.types import TYPES
from deniable.tools.commands import print_problems, remarks

_EPSILONS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
"""The smallest with which the crowd sees enough is proposed."""

_MEMO, _MEMO_LIFETIME = 2, 6
"""A memo reveals so many epsilons, and a lifetime has room for the memos of two edits."""

_FRESH_LIFETIME = 4
"""So many reports of a device, if each has new noise."""

_COMMENTS = {
    "epsilon": "limit on what one report reveals",
    "memo_epsilon": "limit on what all reports of one value reveal",
    "devices": "how many devices run the app, for the forecast of `deniable lint`",
    "expires": "the last day on which it is recorded",
    "answer": "reported within ten seconds of the first record of a window",
}


@dataclass(frozen=True)
class Draft:
    """A text of `metrics.toml` with a new metric in it.

    Attributes:
        block: the lines of the new metric.
        registry: the whole text, read.
        problems: what `deniable lint` remarks about the new metric.
    """

    block: str
    registry: Registry
    problems: tuple[Problem, ...]


def draft(before: str, name: str, keys: Mapping[str, Any], path: Path) -> Draft:
    """The metric `name` with these keys behind the text `before`; epsilons that are not given are
    proposed. `path` is where the text is, or will be.

    Raises:
        RegistryError: the whole has mistakes, or the new metric would protect nothing.
    """
    for proposal in _proposals(keys):
        filled = _lasting(before, name, proposal, path)
        block = _block(name, filled)
        registry = Registry.parse(before + block, str(path), path.parent)
        where = f"metrics.{name}"
        found = tuple(
            each
            for each in remarks(registry, None)
            if each.where == where or each.where.startswith(f"{where}.")
        )
        made = Draft(block, registry, found)
        if all(each.severity == "note" for each in found):
            break
    if wrong := [each for each in made.problems if each.severity == "error"]:
        raise RegistryError(wrong, str(path))
    return made


def _lasting(before: str, name: str, keys: dict[str, Any], path: Path) -> dict[str, Any]:
    """The keys, with turns of the devices (`one_in`) if they would fall silent without."""
    if keys.get("longitudinal") == "memoize":
        return keys
    registry = Registry.parse(before + _block(name, keys), str(path), path.parent)
    told = lasting(registry, today()).get(name)
    if told is None or told.silent is None or registry[name].sample_rate != 1:
        return keys
    count = groups(told, registry[name].rate)
    return keys if count is None else {**keys, "one_in": count}


def _proposals(keys: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The keys with epsilons, from the smallest on, and with windows, from the default on."""
    memoize = keys.get("longitudinal") == "memoize"
    # Where devices take turns, a longer window has more of them. A pair has that of its metrics.
    kinds = ("",) if memoize or keys.get("type") == "pair" else ("", "week", "month")
    epsilons = (keys["epsilon"],) if "epsilon" in keys else _EPSILONS
    for kind, epsilon in itertools.product(kinds, epsilons):
        more: dict[str, Any] = {"window": kind} if kind else {}
        more["epsilon"] = epsilon
        if memoize and "lifetime_epsilon" not in keys:
            more["memo_epsilon"] = _MEMO * epsilon
            more["lifetime_epsilon"] = _MEMO_LIFETIME * epsilon
        elif "lifetime_epsilon" not in keys:
            more["lifetime_epsilon"] = _FRESH_LIFETIME * epsilon
        yield {**keys, **more}


def _block(name: str, keys: Mapping[str, Any]) -> str:
    lines = [f"[metrics.{name}]"]
    for key, value in keys.items():
        line = f"{key} = {toml_value(value)}"
        comment = _comment(key, keys)
        lines.append(f"{line:<29} # {comment}" if comment else line)
    return "\n".join(lines) + "\n"


def _comment(key: str, keys: Mapping[str, Any]) -> str:
    memoize = keys.get("longitudinal") == "memoize"
    if key == "longitudinal":
        return "the device keeps its noise" if memoize else "each report has new noise"
    if key == "one_in":
        return f"each {keys.get('window', 'day')} another of so many groups of devices reports"
    if key == "lifetime_epsilon":
        return (
            "the same, with the memos of later edits"
            if memoize
            else "limit on what all reports of a device reveal"
        )
    return _COMMENTS.get(key, "")


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"{value!r}"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str):
        # A JSON text is a TOML one, but for the character DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"[{', '.join(toml_value(each) for each in value)}]"


_Function = TypeVar("_Function", bound=Callable[..., Any])

_DAYS = 365
"""So long a new metric lasts, today included."""


_OPTIONS = (
    click.option("--type", type=click.Choice(list(TYPES)), help="What record() takes."),
    click.option("--values", metavar="A,B,C", help="The list of a category."),
    click.option("--low", type=float, help="The lower end of a number's range."),
    click.option("--high", type=float, help="The upper end."),
    click.option(
        "--at-once", is_flag=True, help="Report the first record of a window within ten seconds."
    ),
)


def metric_options(function: _Function) -> _Function:
    """The options of a metric that `init` and `add` have; other keys are edited in the file."""
    for option in reversed(_OPTIONS):
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


@contextmanager
def refusing(source: str) -> Iterator[None]:
    """End the command, before it has written anything, where the registry would have mistakes."""
    try:
        yield
    except RegistryError as error:
        print_problems(error.problems, source)
        click.echo("Nothing was written.", err=True)
        raise SystemExit(1) from None


def asker(given: Mapping[str, Any], *, interactive: bool) -> Callable[..., Any]:
    """What a key holds: as an option says, or as somebody answers, or a default."""

    def ask(key: str, question: str, default: Any, kind: Any = None) -> Any:
        if given.get(key) is not None:
            return given[key]
        return click.prompt(question, default=default, type=kind) if interactive else default

    return ask


def _plain(number: Any) -> Any:
    """A whole number without a point, as people write it."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


_ASKED: dict[str, tuple[str, str, Any, click.Choice[str] | None, Callable[[Any], Any]]] = {
    "values": (
        "category", "Its values, with commas", "red,green,blue,other", None, split_values
    ),
    "of": ("pair", "Its two metrics, with a comma", "", None, split_values),
    "low": ("number", "The lower end of its range", 0.0, None, _plain),
    "high": ("number", "The upper end", 100.0, None, _plain),
    "ask": (
        "number", "What to know of it", "mean", click.Choice(["mean", "distribution"]), _plain
    ),
    "alphabet": ("discovery", "Its bytes", "bytes", click.Choice(list(ALPHABETS)), _plain),
}  # fmt: skip
"""The type of metric that each key is asked for, the question, the answer by default, which answers
there are, and how one is read."""


def metric_keys(name: str, given: dict[str, Any], *, interactive: bool) -> dict[str, Any]:
    """The keys of a metric, in the order of a registry; what is missing is asked for or takes a
    default. Epsilons stay out if they were not given."""
    ask = asker(given, interactive=interactive)
    default_type = "category" if given.get("values") else "pair" if given.get("of") else None
    if given.get("low") is not None or given.get("high") is not None:
        default_type = "number"
    kind = ask("type", "Its type", default_type or "boolean", click.Choice(list(TYPES)))
    keys: dict[str, Any] = {
        "type": kind,
        "description": ask("description", "In one sentence", f"The app's {name}."),
    }
    for key, (only, question, default, choices, read) in _ASKED.items():
        if kind == only:
            keys[key] = read(ask(key, question, default, choices))
        elif given.get(key) is not None:
            keys[key] = read(given[key])
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
