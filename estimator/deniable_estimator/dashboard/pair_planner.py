"""The planner's page for pairs: which dependence of two lists will be found, before a pair is
declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from deniable import Metric
from deniable.mechanisms import SubsetSelection
from deniable.types import MAX_PAIR_CELLS, Category, Pair
from deniable.types.pair_parts import PairPart
from deniable_estimator.analyses.pairs.covariance import Covariance
from deniable_estimator.answers.units import SHARES
from deniable_estimator.asking.results import digest
from deniable_estimator.dashboard.pages import keep_form
from deniable_estimator.dashboard.planner_facts import cost_fact, lifetime_facts, reports_fact
from deniable_estimator.dashboard.planner_form import (
    FIELDS,
    LIGHT_SIZE,
    FieldSpec,
    marked,
    read_fields,
)
from deniable_estimator.dashboard.privacy_label import PrivacyLabel, label_of
from deniable_estimator.dashboard.ranges import RangeError, check_names
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.dashboard.words import mechanism_words, number
from deniable_estimator.forecasting.detection import LEVEL, POWER
from deniable_estimator.messages import counted, message
from deniable_estimator.planning.pairs import (
    EFFECT,
    MOVE,
    PairPlan,
    conditional_half_width,
    devices_to_find,
    plan_pair,
    power_of,
    strongest_effect,
)

pair_planner = Blueprint("pair_planner", __name__)

_MOST_VALUES = MAX_PAIR_CELLS // 2
_EFFECTS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
"""The dependences of the table, beside that of the form."""
_CONDITIONS = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
"""How many devices have the value that a conditional share is given."""

_LISTS: tuple[FieldSpec, ...] = (
    (
        *("rows", message("Values of the first list"), message("A number counts by its bins")),
        *("3", 2, _MOST_VALUES, True),
    ),
    (
        *("columns", message("Values of the second list"), message("A number counts by its bins")),
        *("4", 2, _MOST_VALUES, True),
    ),
    (
        *("effect", message("Cramér’s V")),
        *(message("How strongly the two depend on each other, from 0 to 1"),),
        *(f"{EFFECT:g}", 0, 1, False),
    ),
)


@dataclass(frozen=True, slots=True)
class PairPlanResult:
    """The results for the numbers of the form."""

    plan: PairPlan
    verdict: str
    facts: tuple[tuple[str, str, str], ...]
    """Name, figure, explanation."""
    powers: tuple[tuple[str, str, str], ...]
    """Cramér's V, how often it is found, and the devices to find it with power POWER."""
    conditionals: tuple[tuple[str, str, str], ...]
    """The share of a value, and half of the interval of a conditional share of the devices with
    such a value of the first list, and of the second."""
    toml: str
    label: PrivacyLabel
    segment: None = None


@pair_planner.get("/plan/pair")
def pair_planner_page() -> ResponseReturnValue:
    """The form and, if it is filled in as it can be, the results."""
    fields, numbers = read_fields(request.args, (*_LISTS, *FIELDS[1:]))
    outcome, mistake = None, None
    try:
        check_names(request.args, [field.name for field in fields])
    except RangeError as error:
        numbers, mistake = None, str(keep_form(error))
    if numbers is not None:
        rows, columns = int(numbers["rows"]), int(numbers["columns"])
        if rows * columns > MAX_PAIR_CELLS:
            told = message(
                "{rows:,} × {columns:,} are {cells:,} cells, and a pair has at most {most:,}: "
                "merge rare values.",
                rows=rows,
                columns=columns,
                cells=rows * columns,
                most=MAX_PAIR_CELLS,
            )
            fields = marked(fields, "columns", told)
        elif numbers["effect"] > (most := strongest_effect(rows, columns)):
            told = message(
                "Two lists of these sizes have a Cramér’s V of at most {most:.2f}.", most=most
            )
            fields = marked(fields, "effect", told)
        else:
            outcome = _calculated(numbers)
    page = render_template("plan_pair.html", fields=fields, outcome=outcome, mistake=mistake)
    return page, 200 if outcome is not None else 400


def _calculated(numbers: Mapping[str, float]) -> PairPlanResult:
    if numbers["rows"] * numbers["columns"] <= LIGHT_SIZE:
        return _outcome(numbers)
    key = digest("pair planner", *sorted(numbers.items()))
    return current_source().calculate(key, _outcome, numbers)


def _outcome(numbers: Mapping[str, float]) -> PairPlanResult:
    made = plan_pair(
        int(numbers["rows"]),
        int(numbers["columns"]),
        numbers["epsilon"],
        int(numbers["devices"]),
        effect=numbers["effect"],
        sample_rate=numbers["sample_rate"],
        lifetime_epsilon=numbers["lifetime_epsilon"],
    )
    mechanism = SubsetSelection.design(made.rows * made.columns, made.declared_epsilon)
    covariance = Covariance.of(mechanism, max(1, round(made.reports)))
    return PairPlanResult(
        plan=made,
        verdict=_verdict(made),
        facts=tuple(_facts(made)),
        powers=tuple(_powers(made, covariance)),
        conditionals=tuple(
            (
                f"{100 * share:g}%",
                _half_width(share, made.columns, covariance),
                _half_width(share, made.rows, covariance),
            )
            for share in _CONDITIONS
        ),
        toml=_toml(made),
        label=label_of(_metric(made, numbers)),
    )


def _verdict(made: PairPlan) -> str:
    if made.least_effect is None:
        return message(
            "No usable signal: not even the strongest dependence is found reliably. It takes more "
            "devices, fewer values, or a larger epsilon."
        )
    return message(
        "A dependence of Cramér’s V {effect:.2f} or more is found {power:.0f}% of the time.",
        effect=made.least_effect,
        power=100 * POWER,
    )


def _facts(made: PairPlan) -> Iterator[tuple[str, str, str]]:
    yield reports_fact(made.reports, made.devices)
    yield (
        message("Cramér’s V {effect:g} is found", effect=made.effect),
        message("{percent:.0f}% of the time", percent=100 * made.power),
        message("by the test of independence at {level:g}%", level=100 * LEVEL),
    )
    yield (
        message("To find it"),
        message("no number of devices")
        if made.devices_to_detect is None
        else counted("{count:,} device", "{count:,} devices", made.devices_to_detect),
        message("with power {power:g}", power=POWER),
    )
    for name, width in zip(
        (
            message("Shares of the second list given the first"),
            message("Shares of the first list given the second"),
        ),
        made.conditional_half_widths,
        strict=True,
    ):
        yield (
            name,
            message("±{points} points", points=_points(width)),
            message("half of the 95% interval, if all values are equally frequent"),
        )
    yield (
        message("A cell"),
        message("±{points} points", points=_points(made.cell_std_error)),
        message("its standard error"),
    )
    one, two = map(_points, made.margin_std_errors)
    yield (
        message("A value alone"),
        message("±{points} points", points=f"{one} / {two}"),
        message("the standard error of a value of the first list / of the second"),
    )
    yield from lifetime_facts(made.lifetime)
    yield (
        message("{fakes:.3g}% fake devices", fakes=100 * made.fakes),
        message("{points} points", points=_points(made.fakes_gain)),
        message("that they could add to any one cell: the smaller epsilon, the more"),
    )
    yield (
        message("{fakes:.3g}% fake devices", fakes=100 * made.fakes),
        message("{points} points", points=_points(made.fakes_conditional)),
        message("that they could add to a conditional share"),
    )
    if made.fakes_to_move is not None:
        yield (
            message("A conditional share moved by {points:g} points", points=100 * MOVE),
            message("{percent:.2g}% fake devices", percent=100 * made.fakes_to_move),
            message("are enough for it"),
        )
    yield (
        message("A false dependence"),
        message("{percent:.2g}% fake devices", percent=100 * made.fakes_to_reject),
        message(
            "are enough for it; {fakes:.3g}% bring a Cramér’s V of {effect:.2f}",
            fakes=100 * made.fakes,
            effect=made.fakes_effect,
        ),
    )
    yield (
        message("Mechanism"),
        mechanism_words(made.mechanism),
        message("over all {cells:,} cells", cells=made.tally_cells),
    )
    yield cost_fact(made.report_bytes, made.tally_cells)


def _powers(made: PairPlan, covariance: Covariance) -> Iterator[tuple[str, str, str]]:
    most = strongest_effect(made.rows, made.columns)
    for effect in sorted({made.effect, *(each for each in _EFFECTS if each <= most)}):
        found = power_of(effect, made.rows, made.columns, covariance)
        devices = devices_to_find(
            effect, made.rows, made.columns, made.declared_epsilon, made.sample_rate
        )
        needed = message("no number of devices") if devices is None else number(devices)
        yield f"{effect:g}", f"{100 * found:.0f}%", needed


def _half_width(share: float, cells: int, covariance: Covariance) -> str:
    width = conditional_half_width(share, cells, covariance)
    return (
        message("too few") if width is None else message("±{points} points", points=_points(width))
    )


def _points(share: float) -> str:
    return SHARES.text(share, share)


def _metric(made: PairPlan, numbers: Mapping[str, float]) -> Metric:
    """The pair that these numbers would declare, of two categories."""
    parts = []
    for name, size in (("first", made.rows), ("second", made.columns)):
        values = tuple(map(str, range(size)))
        parts.append(PairPart(name, Category(values), values))
    return Metric(
        name="my_pair",
        type=Pair((parts[0], parts[1])),
        description="",
        owner="",
        expires=date.max,
        epsilon=made.declared_epsilon,
        lifetime_epsilon=float(numbers["lifetime_epsilon"]),
        sample_rate=made.sample_rate,
    )


def _toml(made: PairPlan) -> str:
    """The pair as a registry declares it, beside its two metrics."""
    assert made.lifetime is not None
    return "\n".join(
        (
            "[metrics.my_pair]",
            'type = "pair"',
            f"# of {number(made.rows)} and {number(made.columns)} values",
            'of = ["first", "second"]',
            f"epsilon = {made.declared_epsilon!r}",
            f"lifetime_epsilon = {made.lifetime.lifetime_epsilon!r}",
            f"sample_rate = {made.sample_rate!r}",
            f"devices = {made.devices}",
        )
    )
