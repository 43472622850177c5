"""The figures of a guarantee as text, never rounded below their value."""

from __future__ import annotations

import math
from fractions import Fraction

from deniable.protocol.windows import IN_A_YEAR
from deniable_estimator.document.units import windows_text
from deniable_estimator.messages import listed, message, sentence, spaced
from deniable_estimator.privacy.guarantees import USEFUL, Bound, Guarantee

_MILLION = 1_000_000

_SAME = sentence(
    "The reports of {metrics} are about the same values, so their epsilons add up: in one window "
    "they reveal at most epsilon {epsilon}, with which a 50/50 guess is right at most {guess} "
    "times in 100."
)
_SAME_YEARS = sentence(
    "Together they reveal at most epsilon {typical} in a typical year, and {worst} in the worst "
    "one."
)
_SAME_LIFETIME = sentence(
    "Together they reveal at most epsilon {typical} in a typical year, {worst} in the worst one, "
    "and {lifetime} in a lifetime."
)
_SAME_USELESS = sentence("Those of a year have no useful bound together.")
_IN_PLACE = sentence(
    "Devices do not report this metric by itself: its shares come from the reports of {pair}, "
    "and the figures are those of {pair}."
)


OPERATOR = message(
    "The collector's operator sees single reports as they come in. Against the operator stands "
    "the device's epsilon alone, unless a relay that others run stands between."
)
MAY_FAIL = message(
    "Delta is the probability with which a bound may fail. Even then the device's epsilon holds."
)
_READER = message(
    "The reader sees nothing but sums, and may know the values of all other devices. Whoever "
    "also knows the other reports, or sent them, subtracts them and learns what the device's "
    "own report reveals. If c of the devices work together, count c reports fewer."
)
_PUBLISHED = message(
    "Sums are published when their window takes no more reports, seven days after its end. Two "
    "readings of a window that grows publish their difference too: then n is the number of "
    "reports between the two."
)
_SEGMENTS = message("n is the number of reports of a segment, not of the whole metric.")
_BY_LOT = message(
    "A device draws by lot in which windows it reports. The figures hold "
    "even if the reader knows in which it did."
)
_REMEMBERS = message(
    "With memos, reports of a device depend on each other. The figures for several windows "
    "allow values to change at any time; where no such bound is known, they are the "
    "device's own epsilon."
)


_LIST = sentence(
    "The list of what is found is calculated from the reports. To publish it reveals no more about "
    "a device than its report did, whatever is in it."
)
_CROWD = sentence(
    "Of {devices:,} devices, from {half:,} on that have a string it is found in half of the "
    "windows, and from {sure:,} on in 95% of them, if it looks like common text. Strings that "
    "fewer than {hidden:,} have stay hidden: none of 180 was found when that was measured, which "
    "is at most 1.7% with 95% confidence. That is a statement about crowds, and no guarantee for "
    "a device: its guarantee is epsilon."
)
_NO_CROWD = sentence(
    "How many devices must have a string until it is found depends on the crowd: say `devices` in "
    "the registry to see it here."
)


def assumed_of_sums(*, segments: bool, sampled: bool, remembers: bool) -> tuple[str, ...]:
    """What must hold for the figures of published sums, in sentences."""
    told = (
        *((True, _READER), (True, OPERATOR), (True, _PUBLISHED), (segments, _SEGMENTS)),
        *((sampled, _BY_LOT), (True, MAY_FAIL), (remembers, _REMEMBERS)),
    )
    return tuple(each for holds, each in told if holds)


def shared_words(guarantee: Guarantee) -> tuple[str, ...]:
    """What a pair and its metrics reveal of the same values, and which strings a discovery shows,
    in sentences; none for others."""
    told: list[str] = []
    if (crowd := guarantee.discovery) is not None:
        needed = (
            message(_CROWD, **crowd._asdict()) if crowd.devices is not None else message(_NO_CROWD)
        )
        told += [message(_LIST), needed]
    if guarantee.reported_by is not None:
        told.append(message(_IN_PLACE, pair=guarantee.reported_by))
    if (same := guarantee.same_values) is not None:
        told.append(
            message(
                _SAME,
                metrics=listed(same.metrics),
                epsilon=rounded_up(same.report.epsilon, 3),
                guess=chance(same.report),
            )
        )
        years = {
            "typical": rounded_up(same.typical_year.epsilon, 3),
            "worst": rounded_up(same.worst_year.epsilon, 3),
        }
        if not same.worst_year.useful:
            told.append(message(_SAME_USELESS))
        elif same.lifetime is None or not same.lifetime.useful:
            told.append(message(_SAME_YEARS, **years))
        else:
            lifetime = rounded_up(same.lifetime.epsilon, 3)
            told.append(message(_SAME_LIFETIME, **years, lifetime=lifetime))
    return tuple(told)


def rounded_up(value: Fraction | float, digits: int) -> str:
    """A figure with so many decimals, not below the value, but for what binary floats add to a
    decimal: the 1.3 of a registry is a little more, and not shown as 1.301."""
    scaled = math.ceil(Fraction(value) * 10**digits - Fraction(1, 10**9))
    whole, rest = divmod(scaled, 10**digits)
    return f"{whole:,}.{rest:0{digits}}" if digits else f"{whole:,}"


def figure(bound: Bound) -> str:
    """An epsilon as tables show it, rounded up."""
    epsilon = bound.epsilon
    return rounded_up(epsilon, 4 if epsilon < 0.1 else 3 if epsilon < 100 else 0)


def plain_delta(delta: float) -> str:
    """A delta as people write it: 1e-8."""
    return f"{delta:g}".replace("e-0", "e-")


def typical_reports(guarantee: Guarantee) -> str:
    """How many reports a device sends in a typical year."""
    return rounded_up(guarantee.typical_reports, 1).removesuffix(".0")


def factor(bound: Bound) -> str:
    """The factor by which odds change at most, with two decimals or at least three digits that
    matter. Beyond what is useful it is no bound, and says how large it is at least."""
    if not bound.useful:
        return f"> {math.floor(Bound(USEFUL).odds / _MILLION) * _MILLION:,}"
    odds = bound.odds
    if odds < _MILLION:
        return rounded_up(odds, 2 if odds < 100 else 0)
    step = 10 ** (len(str(math.floor(odds))) - 3)
    return f"{math.ceil(odds / step) * step:,}"


def chance(bound: Bound) -> str:
    """How often a 50/50 guess is right, out of 100, with more decimals if it would read 100."""
    chance = 100 * bound.belief
    for digits in (1, 2, 3):
        if math.ceil(chance * 10**digits) < 100 * 10**digits:
            return rounded_up(chance, digits)
    return "100"


def in_clear(guarantee: Guarantee) -> str | None:
    """What each report tells without noise, and what the bounds then mean; None if nothing."""
    if not guarantee.segments:
        return None
    parts = [
        message("{segment} ({values})", segment=name, values=listed(values))
        for name, values in guarantee.segments.items()
    ]
    return spaced(
        [
            message(
                "Not private: each report states its segment without noise: {segments}.",
                segments=listed(parts),
            ),
            message(
                "The bounds compare two values within one segment. Whoever reads a report also "
                "sees the segment, what it suggests about the value, and when the device changes "
                "it."
            ),
        ]
    )


_MOST_YEARS = 200
"""No metric lasts longer: a budget that does ends with the metric."""


def pace(guarantee: Guarantee) -> str:
    """How soon a device that has a value in every window has sent all its reports."""
    window = guarantee.window
    rate, reports = guarantee.sample_rate, guarantee.lifetime_reports
    every = rate >= 1
    often = _EVERY[window] if every else message(_SAMPLED[window], rate=rate * 100)
    years = math.inf if reports is None else reports / rate / IN_A_YEAR[window]
    if reports is None or (not every and years > _MOST_YEARS):
        return message("A device reports {often} until the metric expires.", often=often)
    if every:
        lasting = windows_text(reports, window)
        return message(
            "A device that reports {often} stops after {lasting}.", often=often, lasting=lasting
        )
    if years >= 1.5:
        lasting = message("{years:.0f} years", years=years)
    else:
        lasting = windows_text(round(reports / rate), window)
    return message(
        "A device reports {often}, so its budget lasts about {lasting}.",
        often=often,
        lasting=lasting,
    )


_EVERY: dict[str, str] = {
    "day": message("every day"),
    "week": message("every week"),
    "month": message("every month"),
}
_SAMPLED = {
    "day": sentence("in a random {rate:g}% of its days"),
    "week": sentence("in a random {rate:g}% of its weeks"),
    "month": sentence("in a random {rate:g}% of its months"),
}
