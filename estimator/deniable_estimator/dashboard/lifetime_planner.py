"""The planner's page for a lifetime epsilon: how to divide it into reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from deniable import DeniableError, windows
from deniable_estimator.asking.results import StillDecoding, TooManyDecodes, digest
from deniable_estimator.dashboard.calculations import lifetime_of
from deniable_estimator.dashboard.pages import keep_form
from deniable_estimator.dashboard.plan_charts import division_chart
from deniable_estimator.dashboard.planner_form import (
    FIELDS,
    LIGHT_SIZE,
    FieldSpec,
    marked,
    read_fields,
)
from deniable_estimator.dashboard.ranges import RangeError, check_names
from deniable_estimator.dashboard.source import current_source
from deniable_estimator.document.plot.marks import Lines
from deniable_estimator.messages import message
from deniable_estimator.planning.lifetime import MOST_TURNOVER, MOST_YEARS
from deniable_estimator.planning.lifetime_choices import LifetimeChoice, LifetimePlan
from deniable_estimator.planning.lifetime_words import (
    best_words,
    rate_words,
    verdicts,
    within_words,
)
from deniable_estimator.privacy.words import chance, factor

lifetime_planner = Blueprint("lifetime_planner", __name__)

_QUESTIONS = {
    "share": message("share of a value"),
    "mean": message("mean of a number"),
    "distribution": message("distribution of a number"),
}
_WINDOWS = {"day": message("day"), "week": message("week"), "month": message("month")}
_SIZE, _EPSILON, _LIFETIME, _DEVICES, _ = FIELDS
_FIELDS: tuple[FieldSpec, ...] = (
    _LIFETIME,
    (
        *("years", message("Years"), message("How long the reports of a device should last")),
        *("2", 0, MOST_YEARS, False),
    ),
    (
        *("turnover", message("Replaced in a year (%)")),
        *(message("Of 100 devices, how many are replaced by new ones"),),
        *("0", 0, round(100 * MOST_TURNOVER), True),
    ),
    _DEVICES,
    _SIZE,
    (
        *("epsilon", message("Epsilon per report now"), message("To compare with")),
        *("1", *_EPSILON[4:]),
    ),
)


@dataclass(frozen=True, slots=True)
class DivisionRow:
    """One way to divide the lifetime, as the table shows it."""

    reports: int
    epsilon: str
    rate: str
    width: str
    tells: str
    one: str
    """How often a 50/50 guess is right at most after one report, and the factor of its odds."""
    life: str
    """The factor after all reports."""
    left: str
    """After these years, and in the long run."""
    best: bool
    advised: bool


@dataclass(frozen=True, slots=True)
class LifetimeResult:
    """The results for the numbers of the form."""

    plan: LifetimePlan
    verdict: str
    facts: tuple[tuple[str, str, str], ...]
    """Name, figure, explanation."""
    chart: Lines
    rows: tuple[DivisionRow, ...]
    toml: str
    segment: None = None
    label: None = None


@lifetime_planner.get("/plan/lifetime")
def lifetime_planner_page() -> ResponseReturnValue:
    """The form and, if it is filled in as it can be, the results."""
    fields, numbers = read_fields(request.args, _FIELDS)
    question = request.args.get("question", "share")
    chosen = request.args.get("window", "day")
    window = next((each for each in windows.KINDS if each == chosen), None)
    outcome, mistake = None, None
    try:
        check_names(request.args, (*(field.name for field in fields), "question", "window"))
        if question not in _QUESTIONS:
            raise RangeError(message("Choose what is asked."), "question")
        if window is None:
            raise RangeError(message("Choose day, week or month."), "window")
    except RangeError as error:
        numbers, mistake = None, str(keep_form(error))
    if numbers is not None and window is not None:
        try:
            outcome = _calculated(numbers, question, window)
        except (StillDecoding, TooManyDecodes):
            raise
        except DeniableError as error:
            fields = marked(fields, "years", str(error))
    page = render_template(
        "plan_lifetime.html",
        fields=fields,
        questions=_QUESTIONS,
        question=question,
        windows=_WINDOWS,
        window=window,
        outcome=outcome,
        mistake=mistake,
    )
    return page, 200 if outcome is not None else 400


def _calculated(
    numbers: Mapping[str, float], question: str, window: windows.Kind
) -> LifetimeResult:
    if question != "share" or numbers["size"] <= LIGHT_SIZE:
        return _outcome(numbers, question, window)
    key = digest("lifetime planner", *sorted(numbers.items()), question, window)
    return current_source().calculate(key, _outcome, numbers, question, window)


def _outcome(numbers: Mapping[str, float], question: str, window: windows.Kind) -> LifetimeResult:
    made = lifetime_of(
        {
            **numbers,
            "ask": question,
            "size": int(numbers["size"]),
            "devices": int(numbers["devices"]),
            "turnover": numbers["turnover"] / 100,
            "window": window,
        }
    )
    return LifetimeResult(
        plan=made,
        verdict=best_words(made),
        facts=tuple(verdicts(made)),
        chart=division_chart(made),
        rows=tuple(_row(made, each) for each in made.choices),
        toml=_toml(made),
    )


def _row(made: LifetimePlan, each: LifetimeChoice) -> DivisionRow:
    return DivisionRow(
        reports=each.reports,
        epsilon=f"{each.epsilon:g}",
        rate=rate_words(each.sample_rate),
        width=within_words(made, each.half_width),
        tells=f"{100 * each.relative:.0f}%",
        one=f"{chance(each.one)}% · ×{factor(each.one)}",
        life=f"×{factor(each.life)}",
        left=f"{100 * each.left_after_years[-1]:.0f}% / {100 * each.left_at_last:.0f}%",
        best=each == made.best,
        advised=each.advised,
    )


def _toml(made: LifetimePlan) -> str:
    """The best choice as a metric declares it."""
    return "\n".join(
        (
            f"epsilon = {made.best.epsilon!r}",
            f"lifetime_epsilon = {made.lifetime_epsilon!r}",
            f"sample_rate = {rate_words(made.best.sample_rate)}",
            *([f'window = "{made.window}"'] if made.window != "day" else []),
        )
    )
