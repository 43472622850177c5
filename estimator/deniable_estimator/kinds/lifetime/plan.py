"""How a lifetime epsilon can be divided, and what a crowd tells with each division.

A device may send k reports, each with epsilon L / k, and reports with probability k / N in each of
the N windows of the planned years. `kinds.lifetime.crowd` says how many devices
have reports left then; `planning.lifetime_split` has the variance of a report, what a window
tells (`information`), and what that assumes.

Newer devices have more of their reports left. So with few reports a device and a high turnover, the
devices that report are newer than the crowd.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields
from fractions import Fraction
from typing import NamedTuple

from deniable import SchemeError
from deniable.protocol.mechanisms import MAX_EPSILON
from deniable_estimator.document.document import Column, Document, Fact, Frame, Note, WordedValue
from deniable_estimator.inputs import Asked, InputError
from deniable_estimator.kinds.lifetime.crowd import LifetimeChoice, LifetimeCrowd, Remembered
from deniable_estimator.messages import counted, message
from deniable_estimator.planning import words
from deniable_estimator.planning.inputs import Planned
from deniable_estimator.planning.lifetime_split import (
    MOST_EPSILON,
    Split,
    declared,
    rate_words,
    report_counts,
)
from deniable_estimator.privacy.words import chance, factor, rounded_up

SMALLEST_EPSILON = 0.25
"""Smaller reports are not listed, unless one in every window leaves no more."""


class Choices(NamedTuple):
    """The ways to divide one lifetime epsilon."""

    choices: tuple[LifetimeChoice, ...]
    """By falling epsilon."""
    best: LifetimeChoice
    """For a value that changes from window to window: the most information with reports of at most
    MOST_EPSILON."""
    once: LifetimeChoice
    """For a trait that stays: one report in a life, within MOST_EPSILON. Its epsilon is also all
    that a lifetime reveals."""
    memory: Remembered | None
    """None for numbers, which have no memos."""
    stated: LifetimeChoice | None
    """At the epsilon that was asked for."""
    same_as_stated: LifetimeChoice | None
    """The smallest lifetime epsilon that tells as much as the stated choice; None if nothing was
    stated, or no other takes less."""


def planned(asked: Asked) -> Planned:
    """The ways to divide a lifetime, for a share of one of `size` values or for a number.

    Raises:
        InputError, SchemeError: it cannot be planned.
    """
    crowd = LifetimeCrowd(asked)
    if asked["epsilon"] is not None:
        words.check_lifetime(asked)
    try:
        made = _choices(crowd)
    except SchemeError as error:
        raise InputError("years", str(error)) from error
    best, number, window = made.best, crowd.number, asked["window"]
    rate = rate_words(best.sample_rate)
    division = _division(best)
    subtitle = message(
        "{devices:,} devices, of which {turnover:.0%} are replaced in a year; lifetime ε "
        "{epsilon:g}, years: {years:g}, {windows:,} windows",
        devices=crowd.devices,
        turnover=asked["turnover"],
        epsilon=asked["lifetime_epsilon"],
        years=asked["years"],
        windows=crowd.windows,
    )
    document = Document(
        "lifetime",
        subtitle,
        Note(message("Best: {division}, sample rate {rate}", division=division, rate=rate), "good"),
        tuple(_facts(made, crowd)),
        (_frame(made, crowd),),
        snippet="\n".join(
            (
                f"epsilon = {best.epsilon!r}",
                f"lifetime_epsilon = {asked['lifetime_epsilon']!r}",
                f"sample_rate = {rate}",
                *([f'window = "{window}"'] if window != "day" else []),
            )
        ),
        about={
            "question": crowd.question,
            "size": None if number else asked["size"],
            "share": None if number else crowd.share,
            "unit": number.unit if number else None,
            "log": number is not None and number.range.scale == "log",
            "windows": crowd.windows,
            **{name: asked[name] for name in _SAID},
            "most_epsilon": MOST_EPSILON,
            **made._asdict(),
        },
    )
    return Planned(document)


_SAID = ("lifetime_epsilon", "years", "window", "devices", "turnover")


def _choices(crowd: LifetimeCrowd) -> Choices:
    lifetime, epsilon, splits = (
        crowd.asked["lifetime_epsilon"],
        crowd.asked["epsilon"],
        crowd.splits,
    )
    found = [splits.of(*each) for each in _divisions(lifetime, crowd.windows)]
    advised = (each for each in found if each.epsilon <= MOST_EPSILON)
    best = max(advised, key=lambda each: each.information)

    def choice_of(split: Split) -> LifetimeChoice:
        return crowd.choice(split, best.information)

    stated, same = None, None
    if epsilon is not None:
        count = Fraction(lifetime) // Fraction(splits.design(epsilon).epsilon)
        mine = splits.of(epsilon, min(count, crowd.windows))
        stated = choice_of(mine)
        least = splits.smallest(mine.information, mine.reports)
        if least is not None and least.lifetime_epsilon < mine.lifetime_epsilon:
            same = choice_of(least)
    return Choices(
        choices=tuple(map(choice_of, found)),
        best=choice_of(best),
        once=choice_of(splits.of(min(declared(Fraction(lifetime)), MOST_EPSILON), 1)),
        memory=crowd.remembered(),
        stated=stated,
        same_as_stated=same,
    )


def _divisions(lifetime_epsilon: float, windows: int) -> list[tuple[float, int]]:
    """Epsilon and number of the reports, by falling epsilon. If even one in every window would
    leave more than MOST_EPSILON for each, then so many of that limit as well, which do not spend
    all."""
    whole = Fraction(lifetime_epsilon)
    fewest = math.ceil(whole / Fraction(MAX_EPSILON))
    within = math.ceil(whole / Fraction(MOST_EPSILON))
    most = min(windows, max(within, math.floor(whole / Fraction(SMALLEST_EPSILON))))
    if fewest > windows:
        return [(MAX_EPSILON, windows), (MOST_EPSILON, windows)]
    counts = {*report_counts(fewest, max(fewest, most)), min(within, windows)}
    found = [(declared(whole / count), count) for count in sorted(counts)]
    return found if within <= windows else [*found, (MOST_EPSILON, windows)]


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


def _frame(made: Choices, crowd: LifetimeCrowd) -> Frame:
    names = [each.name for each in fields(LifetimeChoice)]
    order = [*_SHOWN, *(each for each in names if each not in _SHOWN)]
    return Frame(
        "choices",
        message("The choices"),
        tuple(Column(each, _SHOWN.get(each, ""), data_only=each not in _SHOWN) for each in order),
        tuple(
            (*_cells(made, crowd, each), *(getattr(each, name) for name in order[len(_SHOWN) :]))
            for each in made.choices
        ),
        tuple(
            "good" if each == made.best else "plain" if each.advised else "quiet"
            for each in made.choices
        ),
        tuple(_notes(made, crowd)),
    )


def _cells(made: Choices, crowd: LifetimeCrowd, each: LifetimeChoice) -> Iterator[WordedValue]:
    best = each == made.best
    yield WordedValue(
        each.reports,
        message("{count:,} (best)", count=each.reports) if best else f"{each.reports:,}",
    )
    yield WordedValue(each.epsilon, f"{each.epsilon:g}")
    yield WordedValue(each.sample_rate, rate_words(each.sample_rate))
    yield WordedValue(each.half_width, _within(crowd, each.half_width))
    yield WordedValue(each.relative, f"{100 * each.relative:.0f}%")
    yield WordedValue(each.one, f"{chance(each.one)}% ×{factor(each.one)}")
    yield WordedValue(each.life, f"{chance(each.life)}% ×{factor(each.life)}")
    left = f"{100 * each.left_after_years[-1]:.0f}% / {100 * each.left_at_last:.0f}%"
    yield WordedValue(each.left_after_years, left)


def _notes(made: Choices, crowd: LifetimeCrowd) -> Iterator[str]:
    if crowd.question == "share":
        yield message(
            "Interval: of a share of {share:g}% in an average window of these years.",
            share=100 * crowd.share,
        )
    elif crowd.question == "mean":
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
            epsilon=MOST_EPSILON,
        )


def _within(crowd: LifetimeCrowd, width: float) -> str:
    """A half width as the ends of an interval around an estimate."""
    return message("±{width}", width=crowd.told(width))


def _facts(made: Choices, crowd: LifetimeCrowd) -> Iterator[Fact]:
    """What to take for what: its 95% interval, and a sentence."""
    best, once, memory = made.best, made.once, made.memory
    yield Fact(
        "best",
        message("Values that change"),
        best,
        _within(crowd, best.half_width),
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
        _within(crowd, once.staying_half_width),
        message(
            "when all devices have reported once, with epsilon {epsilon:g} and the same lifetime "
            "epsilon: the odds of a whole life change by {life} at most",
            epsilon=once.epsilon,
            life=factor(once.life),
        ),
    )
    if memory is not None:
        yield Fact(
            "memory",
            message("The same trait, memoized"),
            memory,
            _within(crowd, memory.half_width),
            message(
                "in every window, and at best ±{lasting} over many. All reports of one value "
                "reveal at most epsilon {memo}. This does not bound what they reveal about when "
                "it changes: each further report can add {fresh}",
                lasting=crowd.told(memory.staying_half_width),
                memo=rounded_up(memory.memo.epsilon, 2),
                fresh=rounded_up(memory.fresh.epsilon, 2),
            ),
        )
    if made.stated is not None:
        yield Fact(
            "stated",
            message("Your plan"),
            made.stated,
            _within(crowd, made.stated.half_width),
            _compared(made.stated, made.same_as_stated),
        )
    left = best.left_after_years[-1]
    yield Fact("left_at_end", message("How long it lasts"), left, *_lasting(made.best, crowd.asked))


def _lasting(best: LifetimeChoice, asked: Asked) -> tuple[str, str]:
    left = message("{left:.0f}% of the devices", left=100 * best.left_after_years[-1])
    if not asked["turnover"]:
        return left, message(
            "still have reports left after {years:g} years with the best choice, and without new "
            "devices fewer and fewer",
            years=asked["years"],
        )
    return left, message(
        "still have reports left after {years:g} years with the best choice, and {last:.0f}% in "
        "the long run. They are newer than the others",
        years=asked["years"],
        last=100 * best.left_at_last,
    )


def _division(choice: LifetimeChoice) -> str:
    return counted(
        "{count} report with epsilon {epsilon:g}",
        "{count} reports with epsilon {epsilon:g} each",
        choice.reports,
        epsilon=choice.epsilon,
    )


def _compared(stated: LifetimeChoice, same: LifetimeChoice | None) -> str:
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
