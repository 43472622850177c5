"""The figures of a plan in words: each with its name and an explanation."""

from __future__ import annotations

from collections.abc import Iterator

from deniable_estimator.dashboard.words import mechanism_words, number
from deniable_estimator.messages import counted, joined, message
from deniable_estimator.planning.plan import Lifetime, Plan
from deniable_estimator.privacy.words import rounded_up


def plan_facts(made: Plan) -> tuple[tuple[str, str, str], ...]:
    """All facts of a plan: name, figure, explanation."""
    return (
        reports_fact(made.reports, made.devices),
        (
            message("To detect 1%"),
            counted("{count:,} device", "{count:,} devices", made.devices_to_detect),
            message("with power 0.8, among all {size:,} values at once", size=made.size),
        ),
        (
            message("For ±1 point"),
            counted("{count:,} device", "{count:,} devices", made.devices_for_half_width),
            message("in the 95% interval of a share of 1%"),
        ),
        *_over_time(made),
        (
            message("{fakes:.3g}% fake devices", fakes=100 * made.fakes),
            message("{gain:.2f} points", gain=100 * made.fakes_gain),
            message("that they could add to any one value: the smaller epsilon, the more"),
        ),
        (
            message("Mechanism"),
            mechanism_words(made.mechanism),
            message(
                "{reason}; {loss:.2f} times the least possible variance",
                reason=made.reason,
                loss=made.loss,
            ),
        ),
        cost_fact(made.report_bytes, made.tally_cells),
    )


def reports_fact(reports: float, devices: int) -> tuple[str, str, str]:
    """How many reports a window has."""
    return (
        message("Reports in a window"),
        number(round(reports)),
        counted("from {count:,} device, on average", "from {count:,} devices, on average", devices),
    )


def cost_fact(report_bytes: int, tally_cells: int) -> tuple[str, str, str]:
    """What a report and a tally take."""
    return (
        message("Cost"),
        counted("{count:,} byte", "{count:,} bytes", report_bytes),
        message("a report; {cells:,} counters a window", cells=tally_cells),
    )


def lifetime_facts(lifetime: Lifetime | None) -> Iterator[tuple[str, str, str]]:
    """How long the budget of a device lasts, if it does not report for ever."""
    if lifetime is not None:
        lasts = counted(
            "then it falls silent, after about {count:,} window",
            "then it falls silent, after about {count:,} windows",
            round(lifetime.windows),
        )
        turns = lifetime.turns
        yield (
            message("Reports of a device"),
            number(lifetime.reports),
            lasts
            if turns is None
            else joined((lasts, message("one_in = {turns} makes them last 365", turns=turns))),
        )


def _over_time(made: Plan) -> Iterator[tuple[str, str, str]]:
    yield from lifetime_facts(made.lifetime)
    if made.memory is not None:
        yield (
            message("Reports of a device"),
            message("any number"),
            message(
                "all of one value reveal at most ε {memo}; each further one, of whatever "
                "history, adds at most ε {fresh}",
                memo=rounded_up(made.memory.memo_epsilon, 2),
                fresh=rounded_up(made.memory.fresh_epsilon, 2),
            ),
        )
        yield (
            message("Over many windows"),
            message("±{error:.2g} points", error=100 * made.memory.lasting_std_error),
            message(
                "the standard error of a share of 1% stays above this, if the same devices report"
            ),
        )
