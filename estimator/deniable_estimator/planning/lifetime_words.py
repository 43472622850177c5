"""The ways to divide a lifetime epsilon, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from decimal import Decimal
from typing import Any

from deniable import SchemeError
from deniable_estimator.answers.units import SHARES, NumberUnit
from deniable_estimator.document.document import Column, Document, Fact, Frame, Note, WordedValue
from deniable_estimator.inputs import Asked, InputError
from deniable_estimator.messages import counted, message
from deniable_estimator.planning import words
from deniable_estimator.planning.kinds import Planned
from deniable_estimator.planning.lifetime import plan_lifetime
from deniable_estimator.planning.lifetime_choices import LifetimeChoice, LifetimePlan
from deniable_estimator.planning.number_words import check_range
from deniable_estimator.planning.numbers import number_type
from deniable_estimator.privacy.words import chance, factor, rounded_up


def planned(asked: Asked) -> Planned:
    """The ways to divide a lifetime, for a share of one of `size` values or for a number.

    Raises:
        InputError, SchemeError: it cannot be planned.
    """
    rest = {name: value for name, value in asked.items() if name not in _DOMAIN}
    ends = (asked["low"], asked["high"])
    domain: Any = asked["size"]
    if asked["ask"] == "share":
        if ends != (None, None):
            told = message("Low and high are for a number: say what is asked of it.")
            raise InputError("ask", told)
    elif ends == (None, None):
        # The range of a number makes no difference, so widths are percents of it.
        domain = number_type(0, 100, asked["ask"], unit="%")
    elif None in ends:
        raise InputError("high", message("Say both low and high, or neither."))
    else:
        check_range(asked)
        domain = number_type(*ends, asked["ask"], asked["scale"])
    if asked["epsilon"] is not None:
        words.check_lifetime(asked)
    try:
        made = plan_lifetime(domain, **rest)
    except SchemeError as error:
        raise InputError("years", str(error)) from error
    document = Document(
        "lifetime",
        _subtitle(made),
        Note(best_words(made), "good"),
        tuple(_facts(made)),
        (_choices(made),),
        snippet=_snippet(made),
        about=words.data_of(made),
    )
    return Planned(made, document)


_DOMAIN = ("ask", "size", "low", "high", "scale", "fakes")


def _subtitle(made: LifetimePlan) -> str:
    return message(
        "{devices:,} devices, of which {turnover:.0%} are replaced in a year; lifetime ε "
        "{epsilon:g}, years: {years:g}, {windows:,} windows",
        devices=made.devices,
        turnover=made.turnover,
        epsilon=made.lifetime_epsilon,
        years=made.years,
        windows=made.windows,
    )


def _snippet(made: LifetimePlan) -> str:
    """The best choice as a metric declares it."""
    return "\n".join(
        (
            f"epsilon = {made.best.epsilon!r}",
            f"lifetime_epsilon = {made.lifetime_epsilon!r}",
            f"sample_rate = {rate_words(made.best.sample_rate)}",
            *([f'window = "{made.window}"'] if made.window != "day" else []),
        )
    )


_SHOWN = {
    "reports": message("Reports"),
    "epsilon": message("Epsilon"),
    "sample_rate": message("Sample rate"),
    "half_width": message("95% interval"),
    "relative": message("Tells"),
    "one": message("After one report"),
    "life": message("After all"),
    "left_after_years": message("Reports left"),
}


def _choices(made: LifetimePlan) -> Frame:
    names = [each.name for each in fields(LifetimeChoice)]
    order = [*_SHOWN, *(each for each in names if each not in _SHOWN)]
    return Frame(
        "choices",
        message("The choices"),
        tuple(Column(each, _SHOWN.get(each, ""), data_only=each not in _SHOWN) for each in order),
        tuple(
            (*_cells(made, each), *(getattr(each, name) for name in order[len(_SHOWN) :]))
            for each in made.choices
        ),
        tuple(
            "good" if each == made.best else "plain" if each.advised else "quiet"
            for each in made.choices
        ),
        tuple(_notes(made)),
    )


def _cells(made: LifetimePlan, each: LifetimeChoice) -> Iterator[WordedValue]:
    best = each == made.best
    yield WordedValue(
        each.reports,
        message("{count:,} (best)", count=each.reports) if best else f"{each.reports:,}",
    )
    yield WordedValue(each.epsilon, f"{each.epsilon:g}")
    yield WordedValue(each.sample_rate, rate_words(each.sample_rate))
    yield WordedValue(each.half_width, within_words(made, each.half_width))
    yield WordedValue(each.relative, f"{100 * each.relative:.0f}%")
    yield WordedValue(each.one, f"{chance(each.one)}% ×{factor(each.one)}")
    yield WordedValue(each.life, f"{chance(each.life)}% ×{factor(each.life)}")
    left = f"{100 * each.left_after_years[-1]:.0f}% / {100 * each.left_at_last:.0f}%"
    yield WordedValue(each.left_after_years, left)


def _notes(made: LifetimePlan) -> Iterator[str]:
    if made.share is not None:
        yield message(
            "Interval: of a share of {share:g}% in an average window of these years.",
            share=100 * made.share,
        )
    elif made.question == "mean":
        yield message("Interval: of the mean in an average window of these years.")
    else:
        yield message("Interval: of the share below a limit in an average window of these years.")
    yield message("Tells: what all windows tell, compared with the best.")
    yield message(
        "After one report: how often a 50/50 guess between two values is right at most, and the "
        "factor by which its odds change at most. After all: the same."
    )
    yield message(
        "Reports left: the devices that have some after these years / in the long run. Devices "
        "report in random windows, so some have."
    )
    if not all(each.advised for each in made.choices):
        yield message(
            "Dim: above epsilon {epsilon:g} one report alone hides little.",
            epsilon=made.most_epsilon,
        )


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


def _facts(plan: LifetimePlan) -> Iterator[Fact]:
    """What to take for what: its 95% interval, and a sentence."""
    best, once, memory = plan.best, plan.once, plan.memory
    yield Fact(
        "best",
        message("Values that change"),
        best,
        within_words(plan, best.half_width),
        message(
            "in each window: {division}. All of them change the odds between two values by a "
            "factor of {life} at most, one of them by {one}",
            division=_division(best),
            life=factor(best.life),
            one=factor(best.one),
        ),
    )
    yield Fact(
        "once",
        message("A trait that stays"),
        once,
        within_words(plan, once.staying_half_width),
        message(
            "when all devices have reported once, with epsilon {epsilon:g} and the same lifetime "
            "epsilon: the odds of a whole life change by {life} at most",
            epsilon=once.epsilon,
            life=factor(once.life),
        ),
    )
    if best.reports > 1 and best.like_one_epsilon is not None:
        yield Fact(
            "best_staying_half_width",
            message("The same trait, reported more often"),
            best.staying_half_width,
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
        yield Fact(
            "memory",
            message("The same trait, memoized"),
            memory,
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
        yield Fact(
            "stated",
            message("Your plan"),
            plan.stated,
            within_words(plan, plan.stated.half_width),
            _compared(plan, plan.stated),
        )
    left = best.left_after_years[-1]
    yield Fact("left_at_end", message("How long it lasts"), left, *_lasting(plan))


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
