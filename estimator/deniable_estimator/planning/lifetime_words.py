"""A plan of a lifetime in sentences, for the terminal and the dashboard."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from deniable_estimator.answers.units import SHARES, NumberUnit
from deniable_estimator.messages import counted, message
from deniable_estimator.planning.lifetime_choices import LifetimeChoice, LifetimePlan
from deniable_estimator.privacy.words import factor, rounded_up


def width_words(plan: LifetimePlan, width: float) -> str:
    """A half width in points, in the unit, or as a part of a geometric mean."""
    if plan.question == "mean" and not plan.log:
        return NumberUnit(plan.unit).full(width, width)
    if plan.question == "mean":
        return SHARES.full(width, width)
    return message("{width} points", width=SHARES.text(width, width))


def within_words(plan: LifetimePlan, width: float) -> str:
    """The same as the ends of an interval around an estimate."""
    return message("±{width}", width=width_words(plan, width))


def rate_words(rate: float) -> str:
    """A sample rate with three digits, as it is written in a registry."""
    return f"{Decimal(f'{rate:.3g}'):f}"


def best_words(plan: LifetimePlan) -> str:
    """The best choice for values that change, in a few words."""
    return message(
        "Best: {division}, sample rate {rate}",
        division=_division(plan.best),
        rate=rate_words(plan.best.sample_rate),
    )


def verdicts(plan: LifetimePlan) -> Iterator[tuple[str, str, str]]:
    """What to take for what: a name, its 95% interval, and a sentence."""
    best, once, memory = plan.best, plan.once, plan.memory
    yield (
        message("Values that change"),
        within_words(plan, best.half_width),
        message(
            "in each window: {division}. All of them change the odds between two values by a "
            "factor of {life} at most, one of them by {one}",
            division=_division(best),
            life=factor(best.life),
            one=factor(best.one),
        ),
    )
    yield (
        message("A trait that stays"),
        within_words(plan, once.staying_half_width),
        message(
            "when all devices have reported once, with epsilon {epsilon:g} and the same lifetime "
            "epsilon: the odds of a whole life change by {life} at most",
            epsilon=once.epsilon,
            life=factor(once.life),
        ),
    )
    if best.reports > 1 and best.like_one_epsilon is not None:
        yield (
            message("The same trait, reported more often"),
            within_words(plan, best.staying_half_width),
            message(
                "{division}: together they have as little noise as one report with epsilon "
                "{one:g}, but cost {lifetime:g}",
                division=_division(best),
                one=best.like_one_epsilon,
                lifetime=best.epsilon * best.reports,
            ),
        )
    if memory is not None:
        yield (
            message("The same trait, memoized"),
            within_words(plan, memory.half_width),
            message(
                "in every window, and at best ±{lasting} over many. All reports of one value "
                "reveal at most epsilon {memo}. This does not bound what they reveal about when "
                "it changes: each further report can add {fresh}",
                lasting=width_words(plan, memory.staying_half_width),
                memo=rounded_up(memory.memo.epsilon, 2),
                fresh=rounded_up(memory.fresh.epsilon, 2),
            ),
        )
    if plan.stated is not None:
        yield (
            message("Your plan"),
            within_words(plan, plan.stated.half_width),
            _compared(plan, plan.stated),
        )
    yield message("How long it lasts"), *_lasting(plan)


def _lasting(plan: LifetimePlan) -> tuple[str, str]:
    best = plan.best
    left = message("{left:.0f}% of the devices", left=100 * best.left_after_years[-1])
    if not plan.turnover:
        return left, message(
            "still have reports left after {years:g} years with the best choice, and without new "
            "devices fewer and fewer",
            years=plan.years,
        )
    return left, message(
        "still have reports left after {years:g} years with the best choice, and {last:.0f}% in "
        "the long run. They are newer than the others",
        years=plan.years,
        last=100 * best.left_at_last,
    )


def _division(choice: LifetimeChoice) -> str:
    return counted(
        "{count} report with epsilon {epsilon:g}",
        "{count} reports with epsilon {epsilon:g} each",
        choice.reports,
        epsilon=choice.epsilon,
    )


def _compared(plan: LifetimePlan, stated: LifetimeChoice) -> str:
    same = plan.same_as_stated
    if same is None:
        return message(
            "in each window: {division}. No smaller lifetime epsilon tells as much",
            division=_division(stated),
        )
    return message(
        "in each window: {division}. Lifetime epsilon {lifetime:g} is enough for that: {other}, "
        "sample rate {rate}. The odds of a whole life then change by {odds} at most, not by {now}",
        division=_division(stated),
        lifetime=same.epsilon * same.reports,
        other=_division(same),
        rate=rate_words(same.sample_rate),
        odds=factor(same.life),
        now=factor(stated.life),
    )
