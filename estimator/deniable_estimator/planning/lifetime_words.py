"""A plan of a lifetime in sentences, for the terminal and the dashboard."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from deniable_estimator.answers.units import SHARES, NumberUnit
from deniable_estimator.messages import counted, message
from deniable_estimator.planning.lifetime_choices import LifetimeChoice, LifetimePlan
from deniable_estimator.privacy.words import rounded_up

__all__ = ["crowd_words", "rate_words", "verdicts", "width_words"]


def width_words(plan: LifetimePlan, width: float) -> str:
    """A half width in points, in the unit, or as a part of a geometric mean."""
    if plan.question == "mean" and not plan.log:
        return NumberUnit(plan.unit).short(width, width)
    return SHARES.short(width, width)


def rate_words(rate: float) -> str:
    """A sample rate with three digits, as it is written in a registry."""
    return f"{Decimal(f'{rate:.3g}'):f}"


def verdicts(plan: LifetimePlan) -> Iterator[str]:
    """What is best, in sentences: for a value that changes, for a trait that stays; what memos
    would do; and the plan that was stated."""
    best, once, memory = plan.best, plan.once, plan.memory
    yield message(
        "If values change from window to window: {division}, sample rate {rate}. A window's 95% "
        "interval is then ±{width}.",
        division=_division(best),
        rate=rate_words(best.sample_rate),
        width=width_words(plan, best.half_width),
    )
    yield message(
        "For a trait that stays: one report in a life, epsilon and lifetime epsilon "
        "{epsilon:g}. When all devices have reported, the interval is ±{width}.",
        epsilon=once.epsilon,
        width=width_words(plan, once.staying_half_width),
    )
    if best.reports > 1 and best.like_one_epsilon is not None:
        yield message(
            "If the trait stays, {division} together have as little noise as one report with "
            "epsilon {one:g}, but use lifetime epsilon {lifetime:g}.",
            division=_division(best),
            one=best.like_one_epsilon,
            lifetime=best.epsilon * best.reports,
        )
    if memory is not None:
        yield message(
            "Memoized noise shows such a trait in every window: ±{width} in one, and at best "
            "±{lasting} over many. All reports of one value reveal at most epsilon {memo}. This "
            "does not cover when the value changes: each further report of another history can "
            "add epsilon {fresh}.",
            width=width_words(plan, memory.half_width),
            lasting=width_words(plan, memory.staying_half_width),
            memo=rounded_up(memory.memo.epsilon, 2),
            fresh=rounded_up(memory.fresh.epsilon, 2),
        )
    if plan.stated is not None:
        yield _compared(plan, plan.stated)


def crowd_words(plan: LifetimePlan) -> str:
    """How long the reports of the best choice last in the crowd."""
    best = plan.best
    if not plan.turnover:
        return message(
            "With the best choice {left:.0f}% of the devices have reports left after {years:g} "
            "years. Without new devices there are fewer and fewer.",
            left=100 * best.left_after_years[-1],
            years=plan.years,
        )
    return message(
        "With the best choice {left:.0f}% of the devices have reports left after {years:g} years, "
        "and {last:.0f}% in the long run. These devices are newer than the others.",
        left=100 * best.left_after_years[-1],
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
            "Your plan, {division}: ±{width} in a window. No smaller lifetime epsilon tells as "
            "much.",
            division=_division(stated),
            width=width_words(plan, stated.half_width),
        )
    return message(
        "Your plan, {division}: ±{width} in a window. Lifetime epsilon {lifetime:g} is enough for "
        "that: {other}, sample rate {rate}.",
        division=_division(stated),
        width=width_words(plan, stated.half_width),
        lifetime=same.epsilon * same.reports,
        other=_division(same),
        rate=rate_words(same.sample_rate),
    )
