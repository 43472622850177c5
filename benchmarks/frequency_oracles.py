"""Frequency oracles beside the best possible, their goals and two public libraries.

Run: python benchmarks/frequency_oracles.py [--quick] [--json] [--only NAME] [--peers PLACE]

The libraries are pure-ldp 1.2.0 and multi-freq-ldpy 0.2.5, in an environment of their own
that is made where it is missing. Every table has its goal beside the figure.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console

from oracles import accuracy, peers, speed, strings
from oracles.tables import Result

SIZES = (2, 10, 100, 1024, 10**5, 10**6)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
TABLES = ("error", "floor", "trust", "device", "wire", "fold", "estimate", "strings")


def requests(wanted: tuple[str, ...], quick: bool) -> list[peers.Request]:
    """What the peers have to do for these tables, each request once."""
    sizes, epsilons = scope(quick)
    seconds = 0.3 if quick else 1.0
    asked: list[peers.Request] = []
    if "error" in wanted:
        asked += accuracy.error_requests(sizes, epsilons, seconds)
    if "floor" in wanted:
        asked += accuracy.floor_requests(10**5 if quick else 10**6, 6 * seconds)
    if "device" in wanted or "estimate" in wanted:
        asked += speed.speed_requests(epsilons, seconds)
    return sorted(set(asked), key=asked.index)


def scope(quick: bool) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The domains and epsilons: all of the goals', or fewer for a short run."""
    return (SIZES[:-1], (1.0, 4.0)) if quick else (SIZES, EPSILONS)


def measure(
    wanted: tuple[str, ...], answers: accuracy.Answers, quick: bool, say: Callable[[str], None]
) -> list[Result]:
    """All tables that are wanted, in order."""
    sizes, epsilons = scope(quick)
    precision = 0.02 if quick else 0.007
    numbers = (10**3, 10**4, 10**5, 10**6, 10**8)
    makers: dict[str, Callable[[], Result]] = {
        "error": lambda: accuracy.errors(sizes, epsilons, answers, precision, say),
        "floor": lambda: accuracy.floors(
            numbers, (2, 100, 1024, 10**5), answers, 3 * precision, say
        ),
        "trust": lambda: accuracy.trust(
            (100, 1024, 10**5), 2.0, 20_000 if quick else 1_000_000, say
        ),
        "device": lambda: speed.devices(epsilons, answers, quick),
        "wire": lambda: speed.wire(epsilons),
        "fold": speed.folds,
        "estimate": lambda: speed.answers_at_once((2.0,) if quick else EPSILONS, answers),
        "strings": lambda: strings.found_strings(5 if quick else 40, say),
    }
    results = []
    for name in wanted:
        say(name)
        results.append(makers[name]())
    return results


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Fewer sizes, epsilons and repetitions.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
@click.option("--only", multiple=True, type=click.Choice(TABLES), help="This table (repeatable).")
@click.option(
    "--peers",
    "place",
    type=click.Path(path_type=Path, file_okay=False),
    default=peers.default_place,
    help="The peers' environment; made if it is not there.",
)
def main(quick: bool, as_json: bool, only: tuple[str, ...], place: Path) -> None:
    console = Console(stderr=True)
    wanted = only or TABLES
    with console.status("Starting") as status:

        def say(what: str) -> None:
            status.update(f"Measuring {what} ...")

        asked = requests(wanted, quick)
        answers: accuracy.Answers = {}
        if asked:
            python = peers.prepare(place)
            for request, answer in zip(asked, peers.ask(python, asked), strict=True):
                answers[request] = answer
                say(f"{request.library}, {len(answers)} of {len(asked)}")
        results = measure(wanted, answers, quick, say)
    if as_json:
        click.echo(json.dumps({each.name: each.to_dict() for each in results}, indent=1))
        return
    for each in results:
        Console(width=None).print(each.table(), "")


if __name__ == "__main__":
    main()
