"""What a pair can detect, and which of its shares are shown, before it is declared.

The test of independence has a noncentral chi-square distribution where the two lists depend on
each other. Its noncentrality is the test's own statistic, evaluated at the assumed table. That
table has equally frequent values in both lists, and is a mixture ::

    (1 - t) A B' + t C,   C: the table of these margins in which the two rise together

whose Cramer's V is t times that of C.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from deniable import SchemeError
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable.protocol.types.pair import MAX_PAIR_CELLS, Pair, PairPart
from deniable.protocol.types.texts import Category
from deniable_estimator.analyses import oracle_analysis
from deniable_estimator.analyses.pairs import LEAST_ERRORS, Covariance, conditionals
from deniable_estimator.analyses.pairs.poisoning import Fake, fakes_to_reject, moved
from deniable_estimator.document.document import Column, Document, Fact, Frame, Note, WordedValue
from deniable_estimator.inputs import Asked, InputError
from deniable_estimator.messages import message
from deniable_estimator.planning import words
from deniable_estimator.planning.inputs import Planned
from deniable_estimator.planning.population import pair_shares
from deniable_estimator.statistics.detection import LEVEL, POWER, first
from deniable_estimator.statistics.tails import (
    chi_square_quantile,
    halved,
    noncentral_chi_square_tail,
)

_EFFECTS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
"""The dependences of the table, beside that which is asked for."""
_CONDITIONS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
"""How many devices have the value that a conditional share is given."""


_MOST_DEVICES = 10**13


class PlannedTable(NamedTuple):
    """What the figures of a plan are of."""

    rows: int
    columns: int
    mechanism: SubsetSelection
    covariance: Covariance
    """Of the reports of one window. Only devices that have both values report."""
    crowd: words.PlannedCrowd


def planned(asked: Asked) -> Planned:
    """The plan of a pair of lists of `rows` and `columns` values.

    Raises:
        InputError, SchemeError: it cannot be planned.
    """
    _check(asked)
    crowd, rows, columns = words.PlannedCrowd(asked), asked["rows"], asked["columns"]
    mechanism = SubsetSelection.design(rows * columns, asked["epsilon"])
    covariance = Covariance.of(mechanism, max(1, round(crowd.reports)))
    table = PlannedTable(rows, columns, mechanism, covariance, crowd)
    least = least_effect(rows, columns, covariance)
    cells, told = f"{rows:,} × {columns:,}", f"# of {rows:,} and {columns:,} values"
    shown = (shown_from(columns, covariance), shown_from(rows, covariance))
    even = np.full((rows, columns), 1 / (rows * columns))
    intervals = [conditionals(each, covariance, 0.95) for each in (even, even.T)]
    widths = [float((each.high - each.low).mean() / 2) for each in intervals]
    document = Document(
        "pair",
        crowd.subtitle(message("{cells} cells", cells=cells)),
        _verdict(least),
        (
            *crowd.report_facts(mechanism.epsilon),
            *_facts(table, widths, shown),
            *crowd.lifetime_facts(mechanism.epsilon),
            *_fakes(table),
            *words.cost_facts(
                mechanism,
                message("over all {cells:,} cells", cells=rows * columns),
                words.symbols(mechanism),
            ),
        ),
        (_powers(table), _conditionals(table)),
        notes=crowd.notes,
        snippet=crowd.snippet("my_pair", 'type = "pair"', told, 'of = ["first", "second"]'),
        about={
            "rows": rows,
            "columns": columns,
            **crowd.about,
            "parameters": mechanism.parameters(),
            "tally_cells": rows * columns,
            "effect": asked["effect"],
            "least_effect": least,
            "conditional_half_widths": widths,
            "shown_from": shown,
            "lifetime": None,
            "fakes": crowd.fakes,
        },
    )
    return Planned(document, crowd.metric("my_pair", _kind(rows, columns)))


def _check(asked: Asked) -> None:
    rows, columns = asked["rows"], asked["columns"]
    if min(rows, columns) < 2:
        raise SchemeError("each list of a pair needs at least two values")
    if rows * columns > MAX_PAIR_CELLS:
        told = message(
            "{rows:,} × {columns:,} are {cells:,} cells, and a pair has at most {most:,}: merge "
            "rare values.",
            rows=rows,
            columns=columns,
            cells=rows * columns,
            most=MAX_PAIR_CELLS,
        )
        raise InputError("columns", told)
    if asked["effect"] > (most := strongest_effect(rows, columns)):
        told = message(
            "Two lists of these sizes have a Cramér’s V of at most {most:.2f}.", most=most
        )
        raise InputError("effect", told)


def _kind(rows: int, columns: int) -> Pair:
    parts = []
    for name, size in (("first", rows), ("second", columns)):
        values = tuple(map(str, range(size)))
        parts.append(PairPart(name, Category(values), values))
    return Pair((parts[0], parts[1]))


def _verdict(least: float | None) -> Note:
    if least is None:
        told = message(
            "No usable signal: not even the strongest dependence is found reliably. It takes more "
            "devices, fewer values, or a larger epsilon."
        )
        return Note(told, "alarm")
    told = message(
        "A dependence of Cramér’s V {effect:.2f} or more is found {power:.0f}% of the time.",
        effect=least,
        power=100 * POWER,
    )
    return Note(told, "good")


def _facts(
    table: PlannedTable, widths: Sequence[float], shown_from: Sequence[float | None]
) -> Iterator[Fact]:
    rows, columns, mechanism, covariance, crowd = table
    effect = crowd.asked["effect"]
    power = power_of(effect, rows, columns, covariance)
    yield Fact(
        "power",
        message("Cramér’s V {effect:g} is found", effect=effect),
        power,
        message("{percent:.0f}% of the time", percent=100 * power),
        message("by the test of independence at {level:g}%", level=100 * LEVEL),
    )
    needed = devices_to_find(mechanism, rows, columns, effect, crowd.rate)
    yield words.devices_fact(
        *("devices_to_detect", message("To find it"), needed),
        message("with power {power:g}", power=POWER),
    )
    for key, name, width, shown in zip(
        ("conditional_of_second", "conditional_of_first"),
        (
            message("Shares of the second list given the first"),
            message("Shares of the first list given the second"),
        ),
        widths,
        shown_from,
        strict=True,
    ):
        told = message("half of the 95% interval, if all values are equally frequent")
        yield words.width_fact(
            *(key, name, width),
            message("{told}; shown for no value", told=told)
            if shown is None
            else message(
                "{told}; shown given a value that {share}% have or more",
                told=told,
                share=words.points(shown),
            ),
        )
    error, *margins = (
        float(covariance.noise(cells, 1).at(np.array([cells / (rows * columns)]))[0]) ** 0.5
        for cells in (1, columns, rows)
    )
    told = message("its standard error")
    yield words.width_fact("cell_std_error", message("A cell"), error, told)
    yield Fact(
        "margin_std_errors",
        message("A value alone"),
        margins,
        message("±{points} points", points=" / ".join(map(words.points, margins))),
        message("the standard error of a value of the first list / of the second"),
    )


def _fakes(table: PlannedTable) -> Iterator[Fact]:
    """What fakes could do."""
    rows, columns, mechanism, covariance, crowd = table
    fake, even = Fake.of(mechanism), np.full((rows, columns), 1 / (rows * columns))
    conditional = min(1.0, float(moved(even, fake, crowd.fakes)[1][0, 0])) - 1 / columns
    to_reject = fakes_to_reject(even.sum(axis=1), even.sum(axis=0), covariance, fake, LEVEL)
    yield crowd.fakes_fact(
        crowd.fakes * float(oracle_analysis(mechanism).pull().most),
        message("that they could add to any one cell: the smaller epsilon, the more"),
    )
    yield crowd.fakes_fact(
        conditional,
        message("that they could add to a conditional share"),
        "fakes_conditional",
    )
    yield Fact(
        "fakes_to_reject",
        message("A false dependence"),
        to_reject,
        message("{percent:.2g}% fake devices", percent=100 * to_reject),
        message("are enough for it"),
    )


def _powers(table: PlannedTable) -> Frame:
    rows, columns, mechanism, covariance, crowd = table
    most = strongest_effect(rows, columns)
    effects = sorted({crowd.asked["effect"], *(each for each in _EFFECTS if each <= most)})
    return Frame(
        "powers",
        message("Which dependence is found"),
        (
            Column("effect", message("Cramér’s V"), "number"),
            Column("power", message("Found")),
            Column(
                "devices",
                message("Devices to find it 80% of the time"),
                "count",
                empty=message("no number of devices"),
            ),
        ),
        tuple(
            (
                each,
                WordedValue(
                    found := power_of(each, rows, columns, covariance), f"{100 * found:.0f}%"
                ),
                devices_to_find(mechanism, rows, columns, each, crowd.rate),
            )
            for each in effects
        ),
        notes=(
            message(
                "By the test of independence at 5%, if all values are equally frequent. Cramér’s V "
                "is 0 if the two do not depend on each other, and 1 if one says the other."
            ),
        ),
    )


def _conditionals(table: PlannedTable) -> Frame:
    def cell(share: float, cells: int) -> WordedValue | None:
        width = conditional_half_width(share, cells, table.covariance)
        return None if width is None else WordedValue(width, words.within(width))

    few = message("too few")
    return Frame(
        "conditionals",
        message("Which conditional shares are shown"),
        (
            Column("share", message("Of the devices with a value that so many have"), "share"),
            Column("first", message("of the first list"), empty=few),
            Column("second", message("of the second list"), empty=few),
        ),
        tuple((each, cell(each, table.columns), cell(each, table.rows)) for each in _CONDITIONS),
        notes=(
            message(
                "Half of the 95% interval of a conditional share, if the values of the other list "
                "are equally frequent. “Too few” is shown where the value is below 3 standard "
                "errors."
            ),
        ),
    )


def power_of(effect: float, rows: int, columns: int, covariance: Covariance) -> float:
    """The probability that the test of independence finds a Cramer's V. The margins of the assumed
    table are even, so that the statistic is a quotient ::

        V**2 (min(rows, columns) - 1) / (d own + own_share + kept),   d = rows columns

    The contrasts of `analyses.pairs.dependence` have one variance here, own + own_share / d.
    """
    freedom = (rows - 1) * (columns - 1)
    variance = rows * columns * covariance.own + covariance.own_share + covariance.kept
    noncentrality = effect**2 * (min(rows, columns) - 1) / variance
    return noncentral_chi_square_tail(chi_square_quantile(LEVEL, freedom), freedom, noncentrality)


def devices_to_find(
    mechanism: SubsetSelection, rows: int, columns: int, effect: float, sample_rate: float
) -> int | None:
    """How many devices find a Cramer's V with power POWER; None if no number that there can be."""

    def found(reports: int) -> bool:
        return power_of(effect, rows, columns, Covariance.of(mechanism, reports)) >= POWER

    return math.ceil(first(found) / sample_rate) if found(_MOST_DEVICES) else None


def shown_from(cells: int, covariance: Covariance) -> float | None:
    """The smallest share of a value whose conditional shares are shown, if it goes together with
    `cells` values of the other list; None if not even 1 is enough."""
    noise = covariance.noise(cells, 1)

    def shown(share: float) -> bool:
        return share > LEAST_ERRORS * math.sqrt(float(noise.at(np.array([share]))[0]))

    return halved(shown, 0.0, 1.0, 30) if shown(1.0) else None


def conditional_half_width(share: float, cells: int, covariance: Covariance) -> float | None:
    """Half of the 95% interval of a conditional share, among the devices with a value that has
    this share, of one of `cells` equally frequent values; None if too few devices have it."""
    table = np.repeat([[share], [1 - share]], cells, axis=1) / cells
    found = conditionals(table, covariance, 0.95)
    return float(found.high[0, 0] - found.low[0, 0]) / 2 if found.known[0, 0] else None


def strongest_effect(rows: int, columns: int) -> float:
    """The largest Cramer's V of two lists of equally frequent values: those that rise together."""
    rising = pair_shares(np.full(rows, 1 / rows), np.full(columns, 1 / columns), 1.0)
    even = 1 / rising.size
    phi2 = float(((rising - even) ** 2).sum()) / even
    return math.sqrt(phi2 / (min(rows, columns) - 1))


def least_effect(rows: int, columns: int, covariance: Covariance) -> float | None:
    """The smallest Cramer's V that is found with power POWER."""

    def found(effect: float) -> bool:
        return power_of(effect, rows, columns, covariance) >= POWER

    most = strongest_effect(rows, columns)
    return halved(found, 0.0, most, 20) if found(most) else None
