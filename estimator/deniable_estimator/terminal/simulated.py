"""`deniable plan simulate`: one window of a made-up crowd, with the truth beside what is estimated.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.protocol.coded_message import counted
from deniable.protocol.mechanisms.number_range import Numeric
from deniable.protocol.types.discovery import Discovery
from deniable.protocol.types.number import Number
from deniable.protocol.types.pair import Pair
from deniable.protocol.types.retention import Retention
from deniable.tools.command_line import command
from deniable_collector.options import registry_option
from deniable_estimator.terminal.options import (
    Parsed,
    Real,
    as_json,
    candidates_option,
    progress,
    read_candidates,
)
from deniable_estimator.terminal.simulated_crowds import (
    say_simulated,
    simulate_discovery,
    simulate_retention,
)

if TYPE_CHECKING:
    from numpy.random import Generator

    from deniable import Metric
    from deniable_estimator.planning.population import Crowd
    from deniable_estimator.statistics.intervals import FloatArray

# numpy and rich take longer to import than `deniable --help` should.


def _two(text: str) -> tuple[float, float]:
    """The two numbers of an option like `--normal MEAN,SD`, the second of which is above 0."""
    try:
        first, second = (float(each) for each in text.split(","))
    except ValueError:
        raise ValueError("write two numbers, like 12,3") from None
    if not (math.isfinite(first) and 0 < second < math.inf):
        raise ValueError("let both be finite, and the second above 0")
    return first, second


def _lives(text: str) -> tuple[float, float, float, float, int]:
    """How devices come, stay and go."""
    try:
        back, stays, returns, growth = (float(each) for each in text.split(",")[:-1])
        count = int(text.split(",")[-1])
    except ValueError:
        raise ValueError("write five numbers, like .45,.85,.15,0,20") from None
    rates = 0 <= back <= 1 and 0 <= stays <= 0.999 and 0 <= returns <= 1
    if not (rates and abs(growth) <= 0.5 and 2 <= count <= 520):
        raise ValueError(
            "the first three are parts of 1, and less than 1 stays; GROWTH is from -.5 to .5, and "
            "WINDOWS from 2 to 520"
        )
    return back, stays, returns, growth, count


@command("deniable plan simulate browser --devices 50000 --seed 7")
@click.argument("metric")
@registry_option
@click.option(
    "--devices", required=True, type=click.IntRange(1, 10**12), help="How many devices run the app."
)
@click.option(
    "--zipf",
    type=Real(0, 100),
    help="The values' shares are proportional to 1 / rank**ZIPF; 1 if not given.",
)
@click.option(
    "--shares",
    type=click.Path(path_type=Path),
    help="A CSV file of value,weight lines, of a pair value,value,weight, of a discovery "
    "string,weight, instead of --zipf.",
)
@click.option(
    "--dependence",
    type=Real(0, 1),
    help="Of a pair: the part of the devices whose two values rise together; by default 0.",
)
@click.option(
    "--normal",
    type=Parsed("numbers", _two),
    metavar="MEAN,SD",
    help="Of a number: it is normally distributed, with this mean and standard deviation.",
)
@click.option(
    "--lognormal",
    type=Parsed("numbers", _two),
    metavar="MEDIAN,SIGMA",
    help="Of a number: its logarithm is, with this standard deviation.",
)
@click.option(
    "--numbers",
    type=click.Path(path_type=Path),
    help="Of a number: a file that has one on each line, or number,weight.",
)
@click.option(
    "--lives",
    type=Parsed("numbers", _lives),
    metavar="BACK,STAYS,RETURNS,GROWTH,WINDOWS",
    help="Of a retention: the parts of the new devices that are back in the next window, of the "
    "others that stay, and of the absent ones that return; how many more are new in each window, "
    "and how many windows there are. .45,.85,.15,0,20 if not given.",
)
@candidates_option
@click.option("--seed", type=click.IntRange(0), help="Draw the same population every time.")
@as_json
def simulate(
    metric: str, registry: Path, devices: int, seed: int | None, form: str | None, **given: Any
) -> None:
    """Draw one window's tally of METRIC from a simulated population, and estimate it; of a
    retention many windows, in each of which about so many devices are active.

    The tally is drawn from its exact distribution, so 1,000,000,000 devices take seconds.
    """
    import numpy as np

    from deniable import Registry
    from deniable_estimator.asking.query import find_metric

    declared = find_metric(Registry.load(registry), metric)
    _check(declared, given)
    rng = np.random.default_rng(seed)
    if isinstance(declared.type, Number):
        _simulate_numbers(declared, devices, _population(given), rng, form)
    elif isinstance(declared.type, Retention):
        lives = given["lives"] or (0.45, 0.85, 0.15, 0.0, 20)
        simulate_retention(declared, devices, lives, rng, form)
    elif isinstance(declared.type, Discovery):
        spread = given["shares"], given["candidates"], given["zipf"]
        simulate_discovery(declared, devices, *spread, rng, form)
    else:
        asked = read_candidates(declared, given["candidates"])
        _simulate_values(declared, devices, _spread(declared, given, asked), asked, rng, form)


_NUMBERS = ("normal", "lognormal", "numbers")
_OF = {
    "number": _NUMBERS,
    "retention": ("lives",),
    "pair": ("zipf", "shares", "dependence"),
    "string": ("zipf", "shares", "candidates"),
    "discovery": ("zipf", "shares", "candidates"),
}
"""The options that say how a crowd of each type is spread; of others `--zipf` and `--shares`."""


def _check(declared: Metric, given: Mapping[str, Any]) -> None:
    """Refuse options of other types, and two that exclude each other.

    Raises:
        click.UsageError: there are some.
    """
    name, kind = declared.name, declared.type.name
    own = _OF.get(kind, ("zipf", "shares"))
    known = ", ".join(f"--{each}" for each in own)
    asked = [each for each, value in given.items() if value is not None]
    if wrong := [f"--{each}" for each in asked if each not in own]:
        raise click.UsageError(
            f"{name!r} is a {kind}: leave {', '.join(wrong)} out; it takes {known}"
        )
    if kind == "number" and len(asked) != 1:
        raise click.UsageError(f"say how the numbers of {name!r} are spread, by one of {known}")
    if {"shares", "dependence"} <= set(asked):
        raise click.UsageError("--dependence goes with --zipf: leave it out with --shares")


def _spread(declared: Metric, given: Mapping[str, Any], asked: list[str] | None) -> FloatArray:
    """The share of each value; of a pair of each cell."""
    from deniable_estimator.planning.population import pair_shares, read_shares, zipf_shares

    exponent = 1.0 if given["zipf"] is None else given["zipf"]
    if isinstance(declared.type, Pair):
        lists = [part.values for part in declared.type.parts]
        if given["shares"] is not None:
            return read_shares(given["shares"], *lists)
        margins = [zipf_shares(len(each), exponent) for each in lists]
        return pair_shares(margins[0], margins[1], given["dependence"] or 0.0)
    values = asked or declared.values
    if given["shares"] is not None:
        return read_shares(given["shares"], values)
    return zipf_shares(len(values), exponent)


def _simulate_values(
    declared: Metric,
    devices: int,
    spread: FloatArray,
    asked: list[str] | None,
    rng: Generator,
    form: str | None,
) -> None:
    from deniable_estimator.analyses import sample_tally
    from deniable_estimator.answers import answer_of

    with progress(f"Simulating {counted(devices, 'device')}"):
        counts = rng.multinomial(devices, spread)
        reporting = rng.binomial(counts, declared.rate)
        tally = sample_tally(declared.scheme, reporting, rng, values=asked, metric=declared.name)
        answer = answer_of(tally, declared.scheme, asked)
    truth = counts / devices
    rows = "cells" if declared.type.of else "values"
    say_simulated(form, answer, devices, truth, rows, truth.tolist())


def _simulate_numbers(
    declared: Metric,
    devices: int,
    population: Crowd,
    rng: Generator,
    form: str | None,
) -> None:
    import numpy as np

    from deniable_estimator.analyses import sample_tally
    from deniable_estimator.answers import answer_of
    from deniable_estimator.answers.files import plain
    from deniable_estimator.planning.population import Crowd

    mechanism, name = declared.scheme.mechanism, declared.name
    assert isinstance(mechanism, Numeric)
    numbers = population.numbers
    if mechanism.range.integer:
        numbers = np.rint(numbers)
    with progress(f"Simulating {counted(devices, 'device')}"):
        counts = rng.multinomial(devices, population.weights / population.weights.sum())
        reporting = rng.binomial(counts, declared.rate)
        tally = sample_tally(declared.scheme, reporting, rng, values=numbers, metric=name)
        answer = answer_of(tally, declared.scheme, unit=declared.type.unit)
    truth = Crowd.of(numbers, counts.astype(np.float64))
    told = [truth.series(each) for each in answer.series.names]
    say_simulated(form, answer, devices, truth, "series", plain(told))


def _population(given: Mapping[str, Any]) -> Crowd:
    """How the numbers are spread; one of the three is given."""
    from deniable_estimator.planning.population import lognormal_crowd, normal_crowd, read_numbers

    if given["normal"] is not None:
        return normal_crowd(*given["normal"])
    if given["lognormal"] is not None:
        if given["lognormal"][0] <= 0:
            raise click.UsageError("--lognormal needs a median above 0")
        return lognormal_crowd(*given["lognormal"])
    return read_numbers(given["numbers"])
