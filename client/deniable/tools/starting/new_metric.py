"""A new metric: what `init` and `add` ask about it, as options and in a terminal, and its table of
`metrics.toml`, with numbers that suit the crowd; and a call of a client for a metric, as an example
in code."""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import click

from deniable.protocol.errors import MetricError, Problem, RegistryError
from deniable.protocol.lasting import groups, lasting, today
from deniable.protocol.mechanisms.prefix_tree import ALPHABETS
from deniable.protocol.metric import Metric
from deniable.protocol.registry import Registry
from deniable.protocol.types import TYPES
from deniable.protocol.types.number import Number
from deniable.tools.commands import print_problems, remarks

_EPSILONS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
"""The smallest with which the crowd sees enough is proposed."""

_MEMO, _MEMO_LIFETIME = 2, 6
"""A memo reveals so many epsilons, and a lifetime has room for the memos of two edits."""

_FRESH_LIFETIME = 4
"""So many reports of a device, if each has new noise."""


class Draft(NamedTuple):
    """A new metric in a text of `metrics.toml`."""

    block: str
    """The lines of the metric."""
    metric: Metric
    registry: Registry
    """The whole text, read."""
    problems: list[Problem]
    """What `deniable lint` remarks about the metric."""


def draft(before: str, name: str, keys: Mapping[str, Any], path: Path) -> Draft:
    """The metric `name` with these keys behind the text `before`; epsilons that are not given are
    proposed. `path` is where the text is, or will be. If the whole has mistakes, or the new metric
    would protect nothing, that is told, and the command ends before it has written anything."""
    try:
        for proposal in _proposals(keys):
            made = _read(before, name, proposal, path)
            if turns := _turns(made):
                made = _read(before, name, {**proposal, "one_in": turns}, path)
            found = remarks(made.registry)
            mine = [each for each in found if f"{each.where}.".startswith(f"metrics.{name}.")]
            made = made._replace(problems=mine)
            if all(each.severity == "note" for each in mine):
                break
        wrong: Sequence[Problem] = [each for each in mine if each.severity == "error"]
    except RegistryError as error:
        wrong = error.problems
    if wrong:
        print_problems(wrong, str(path))
        click.echo("Nothing was written.", err=True)
        raise SystemExit(1)
    return made


def _read(before: str, name: str, keys: Mapping[str, Any], path: Path) -> Draft:
    block = _block(name, keys)
    registry = Registry.parse(before + block, str(path), path.parent)
    return Draft(block, registry[name], registry, [])


def _turns(made: Draft) -> int | None:
    """The `one_in` with which devices report for as long as the metric lasts, if they would fall
    silent without."""
    told = lasting(made.registry, today()).get(made.metric.name)
    if told is None or told.silent is None or made.metric.sample_rate != 1:
        return None
    return None if made.metric.longitudinal == "memoize" else groups(told, made.metric.rate)


def _proposals(keys: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The keys with epsilons, from the smallest on, and with windows, from the default on."""
    limit = keys.get("lifetime_epsilon", math.inf)
    smaller = [each for each in _EPSILONS if each <= limit]
    if not smaller:
        # Of a limit that is none, only the limit is a mistake.
        smaller = [limit] if limit > 0 else [*_EPSILONS]
    epsilons = [keys["epsilon"]] if "epsilon" in keys else smaller
    memoize, has_room = keys.get("longitudinal") == "memoize", _MEMO * epsilons[0] <= limit
    if memoize and not has_room and not TYPES[keys["type"]].looks_back:
        memoize, keys = False, {key: keys[key] for key in keys if key != "longitudinal"}
    # Where devices take turns, a longer window has more of them. A pair has that of its metrics.
    kinds = ("",) if memoize or keys.get("type") == "pair" else ("", "week", "month")
    for kind, epsilon in itertools.product(kinds, epsilons):
        more: dict[str, Any] = {"window": kind} if kind else {}
        more["epsilon"] = epsilon
        if memoize and has_room:
            if _MEMO * epsilon > limit:
                return
            more["memo_epsilon"] = _MEMO * epsilon
        proposed = (_MEMO_LIFETIME if memoize else _FRESH_LIFETIME) * epsilon
        more["lifetime_epsilon"] = keys.get("lifetime_epsilon", proposed)
        yield {key: value for key, value in keys.items() if key not in more} | more


def _block(name: str, keys: Mapping[str, Any]) -> str:
    """The table of a metric, with a comment behind each key that needs one."""
    lifetime = "limit on what all reports of a device reveal"
    if "memo_epsilon" in keys:
        lifetime = "the same, with the memos of later edits"
    elif "longitudinal" in keys:
        lifetime = "limit on what all reports of one value reveal"
    comments = {
        "epsilon": "limit on what one report reveals",
        "memo_epsilon": "limit on what all reports of one value reveal",
        "lifetime_epsilon": lifetime,
        "longitudinal": "the device keeps its noise",
        "one_in": f"each {keys.get('window', 'day')} another of so many groups of devices reports",
        "devices": "how many devices run the app, for the forecast of `deniable lint`",
        "expires": "the last day on which it is recorded",
        "answer": "reported within ten seconds of the first record of a window",
    }
    lines = [f"[metrics.{name}]"]
    for key, value in keys.items():
        line = f"{key} = {toml_value(value)}"
        lines.append(f"{line:<29} # {comments[key]}" if key in comments else line)
    return "\n".join(lines) + "\n"


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return repr(value)
    # JSON of all else is TOML, but for the character DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def expiry() -> date:
    """The last day of a new metric, which lasts a year, today included."""
    return today() + timedelta(364)


def metric_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a metric that `init` and `add` have; other keys are edited in the file."""
    for option in (
        click.option(
            "--at-once",
            is_flag=True,
            help="Report the first record of a window within ten seconds.",
        ),
        click.option("--high", type=float, help="The upper end."),
        click.option("--low", type=float, help="The lower end of a number's range."),
        click.option("--values", metavar="A,B,C", help="The list of a category."),
        click.option("--type", type=click.Choice(list(TYPES)), help="What record() takes."),
    ):
        function = option(function)
    return function


def is_interactive(*, yes: bool) -> bool:
    """Whether somebody can be asked."""
    return not yes and sys.stdin.isatty() and sys.stdout.isatty()


def asker(given: Mapping[str, Any], *, interactive: bool) -> Callable[..., Any]:
    """What a key holds: as an option says, or as somebody answers, or a default."""

    def ask(key: str, question: str, default: Any, kind: Any = None) -> Any:
        if given.get(key) is not None:
            return given[key]
        return click.prompt(question, default=default, type=kind) if interactive else default

    return ask


_QUESTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "category": {"values": ("Its values, with commas", "red,green,blue,other")},
    "pair": {"of": ("Its two metrics, with a comma", "")},
    "number": {
        "low": ("The lower end of its range", 0.0),
        "high": ("The upper end", 100.0),
        "ask": ("What to know of it", "mean", click.Choice(["mean", "distribution"])),
    },
    "discovery": {"alphabet": ("Its bytes", "bytes", click.Choice(list(ALPHABETS)))},
}
"""What is asked of a metric of each type, with the answer by default, and those that there are."""


def metric_keys(name: str, given: Mapping[str, Any], ask: Callable[..., Any]) -> dict[str, Any]:
    """The keys of a metric, in the order of a registry; what is missing is asked for or takes a
    default. Epsilons stay out if they were not given."""
    given = {key: value for key, value in given.items() if value is not None}
    likely = (
        "number" if given.keys() & {"low", "high"}
        else "category" if "values" in given
        else "pair" if "of" in given
        else "boolean"
    )  # fmt: skip
    kind = ask("type", "Its type", likely, click.Choice(list(TYPES)))
    keys = {
        "type": kind,
        "description": ask("description", "In one sentence", f"The app's {name}."),
    }
    keys |= {key: ask(key, *asked) for key, asked in _QUESTIONS.get(kind, {}).items()}
    # What is given and does not fit is refused by the registry.
    fixed = ("values", "of", "low", "high", "ask", "platform")
    keys |= {key: given[key] for key in fixed if key in given}
    keys = {key: _typed(key, value) for key, value in keys.items()}
    if given.get("at_once") and not TYPES[kind].looks_back:  # that is always reported at once
        keys |= {"answer": "at_once", "aggregate": "first"}
    keys |= {key: given[key] for key in ("epsilon", "lifetime_epsilon") if key in given}
    if kind not in ("number", "pair", "discovery"):
        keys["longitudinal"] = "memoize"
    return keys


def _typed(key: str, value: Any) -> Any:
    """What was typed as a registry has it: a list, or a whole number without a point."""
    if key in ("values", "of"):
        return [word for each in value.split(",") if (word := each.strip())]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


class Call(NamedTuple):
    """The call, as Python code, and as JavaScript in a page."""

    python: str
    script: str


def example_of(registry: Registry) -> Call:
    """A call for the first metric that an app records itself; README's if there is none."""
    for metric in registry:
        if not metric.type.looks_back:
            try:
                metric.normalize(_value(metric))
            except MetricError:
                continue
        return example_call(metric)
    return _record("browser", "firefox")


def example_call(metric: Metric) -> Call:
    """A call for a metric."""
    if metric.type.looks_back:
        return Call(*2 * (f"active({json.dumps(metric.name)})",))
    return _record(metric.name, _value(metric))


def _record(name: str, value: bool | float | str) -> Call:
    named, written = json.dumps(name), json.dumps(value, ensure_ascii=False)
    python = written if isinstance(value, str) else repr(value)
    # In a page `</script>` would end the script wherever it stands.
    script = written.replace("<", "\\u003c")
    return Call(f"record({named}, {python})", f"record({named}, {script})")


def _value(metric: Metric) -> bool | float | str:
    """A value that the metric takes."""
    if metric.type.name == "boolean":
        return True
    if isinstance(metric.type, Number):
        return float(metric.type.range.low)
    return metric.values[0] if metric.values else "example"
