"""The plan of a pair, in words."""

from __future__ import annotations

from collections.abc import Iterator

from deniable.protocol.mechanisms import SubsetSelection
from deniable.protocol.types import MAX_PAIR_CELLS, Category, Pair
from deniable.protocol.types.pair_parts import PairPart
from deniable_estimator.analyses.pairs.covariance import Covariance
from deniable_estimator.document.document import Column, Document, Fact, Frame, Note, WordedValue
from deniable_estimator.forecasting.detection import LEVEL, POWER
from deniable_estimator.inputs import Asked, InputError
from deniable_estimator.messages import message
from deniable_estimator.planning import words
from deniable_estimator.planning.kinds import Planned
from deniable_estimator.planning.pairs import (
    MOVE,
    PairPlan,
    conditional_half_width,
    devices_to_find,
    plan_pair,
    power_of,
    strongest_effect,
)

_EFFECTS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
"""The dependences of the table, beside that which is asked for."""
_CONDITIONS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
"""How many devices have the value that a conditional share is given."""


def planned(asked: Asked) -> Planned:
    """The plan of a pair of lists of `rows` and `columns` values.

    Raises:
        InputError, SchemeError: it cannot be planned.
    """
    _check(asked)
    crowd = words.PlannedCrowd(asked)
    made = plan_pair(**crowd.asked)
    mechanism = SubsetSelection.design(made.tally_cells, made.declared_epsilon)
    covariance = Covariance.of(mechanism, max(1, round(made.reports)))
    cells = f"{made.rows:,} × {made.columns:,}"
    document = Document(
        "pair",
        words.subtitle(made, message("{cells} cells", cells=cells)),
        _verdict(made),
        tuple(_facts(made)),
        (_powers(made, covariance), _conditionals(made, covariance)),
        notes=crowd.notes,
        snippet=words.snippet(
            *("my_pair", asked, crowd, 'type = "pair"'),
            f"# of {made.rows:,} and {made.columns:,} values",
            'of = ["first", "second"]',
        ),
        about={**words.data_of(made), **crowd.about},
    )
    metric = words.metric_of("my_pair", _kind(made), asked, segments=crowd.segments)
    return Planned(made, document, metric)


def _check(asked: Asked) -> None:
    rows, columns = asked["rows"], asked["columns"]
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


def _kind(made: PairPlan) -> Pair:
    parts = []
    for name, size in (("first", made.rows), ("second", made.columns)):
        values = tuple(map(str, range(size)))
        parts.append(PairPart(name, Category(values), values))
    return Pair((parts[0], parts[1]))


def _verdict(made: PairPlan) -> Note:
    if made.least_effect is None:
        told = message(
            "No usable signal: not even the strongest dependence is found reliably. It takes more "
            "devices, fewer values, or a larger epsilon."
        )
        return Note(told, "alarm")
    told = message(
        "A dependence of Cramér’s V {effect:.2f} or more is found {power:.0f}% of the time.",
        effect=made.least_effect,
        power=100 * POWER,
    )
    return Note(told, "good")


def _facts(made: PairPlan) -> Iterator[Fact]:
    yield from words.crowd_facts(made)
    yield Fact(
        "power",
        message("Cramér’s V {effect:g} is found", effect=made.effect),
        made.power,
        message("{percent:.0f}% of the time", percent=100 * made.power),
        message("by the test of independence at {level:g}%", level=100 * LEVEL),
    )
    yield Fact(
        "devices_to_detect",
        message("To find it"),
        made.devices_to_detect,
        words.devices(made.devices_to_detect),
        message("with power {power:g}", power=POWER),
    )
    for key, name, width, shown in zip(
        ("conditional_of_second", "conditional_of_first"),
        (
            message("Shares of the second list given the first"),
            message("Shares of the first list given the second"),
        ),
        made.conditional_half_widths,
        made.shown_from,
        strict=True,
    ):
        told = message("half of the 95% interval, if all values are equally frequent")
        yield Fact(
            key,
            name,
            width,
            words.within(width),
            message("{told}; shown for no value", told=told)
            if shown is None
            else message(
                "{told}; shown given a value that {share}% have or more",
                told=told,
                share=words.points(shown),
            ),
        )
    yield Fact(
        "cell_std_error",
        message("A cell"),
        made.cell_std_error,
        words.within(made.cell_std_error),
        message("its standard error"),
    )
    one, two = map(words.points, made.margin_std_errors)
    yield Fact(
        "margin_std_errors",
        message("A value alone"),
        made.margin_std_errors,
        message("±{points} points", points=f"{one} / {two}"),
        message("the standard error of a value of the first list / of the second"),
    )
    yield from words.lifetime_facts(made.lifetime)
    yield from _fakes(made)
    yield from words.cost_facts(made, message("over all {cells:,} cells", cells=made.tally_cells))


def _fakes(made: PairPlan) -> Iterator[Fact]:
    for key, gain, told in (
        (
            "fakes_gain",
            made.fakes_gain,
            message("that they could add to any one cell: the smaller epsilon, the more"),
        ),
        (
            "fakes_conditional",
            made.fakes_conditional,
            message("that they could add to a conditional share"),
        ),
    ):
        added = message("{points} points", points=words.points(gain))
        yield Fact(key, words.fakes_name(made.fakes), gain, added, told)
    if made.fakes_to_move is not None:
        yield Fact(
            "fakes_to_move",
            message("A conditional share moved by {points:g} points", points=100 * MOVE),
            made.fakes_to_move,
            message("{percent:.2g}% fake devices", percent=100 * made.fakes_to_move),
            message("are enough for it"),
        )
    yield Fact(
        "fakes_to_reject",
        message("A false dependence"),
        made.fakes_to_reject,
        message("{percent:.2g}% fake devices", percent=100 * made.fakes_to_reject),
        message(
            "are enough for it; {fakes:.3g}% bring a Cramér’s V of {effect:.2f}",
            fakes=100 * made.fakes,
            effect=made.fakes_effect,
        ),
    )


def _powers(made: PairPlan, covariance: Covariance) -> Frame:
    rows, columns = made.rows, made.columns
    most = strongest_effect(rows, columns)
    effects = sorted({made.effect, *(each for each in _EFFECTS if each <= most)})
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
                devices_to_find(each, rows, columns, made.declared_epsilon, made.sample_rate),
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


def _conditionals(made: PairPlan, covariance: Covariance) -> Frame:
    def cell(share: float, cells: int) -> WordedValue | None:
        width = conditional_half_width(share, cells, covariance)
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
        tuple((each, cell(each, made.columns), cell(each, made.rows)) for each in _CONDITIONS),
        notes=(
            message(
                "Half of the 95% interval of a conditional share, if the values of the other list "
                "are equally frequent. “Too few” is shown where the value is below 3 standard "
                "errors."
            ),
        ),
    )
