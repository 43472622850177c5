"""Two lists at once, in words: sentences, a heat map of conditional shares, and all cells as a
table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from deniable_estimator.analyses.pairs import Conditionals
from deniable_estimator.document.document import Column, Estimate, Frame, Picture, Tone, WordedValue
from deniable_estimator.document.plot.marks import CellRow, HeatCell, HeatMap
from deniable_estimator.document.units import CONDITIONALS, cell_words, half_width, value_words
from deniable_estimator.kinds import formats
from deniable_estimator.kinds.kind import OFFERED, Card, Kind, Shown
from deniable_estimator.kinds.numbers.words import poisoning
from deniable_estimator.kinds.pairs.making import combine_pairs, estimate_pair
from deniable_estimator.kinds.pairs.pair import LEAST_FOR_TEST, PairAnswer, Side, pair_series
from deniable_estimator.kinds.shares.shares import Shares
from deniable_estimator.messages import counted, listed, message, sentence

_ALL = 1_000
"""More bars than a file or a frame has: a page draws all values of both lists."""

_BOTH = message(
    "Only devices that recorded both values in a window report. “Too few” stands where a value is "
    "below 3 standard errors."
)
_LEGEND = (
    (
        "up",
        message("more often than if the two were independent, by so many points of all devices"),
    ),
    ("down", message("less often")),
    ("faded", message("cannot be told from independence")),
)

_WITH_INTERVALS = 100
"""Up to so many cells of a heat map have their interval in them."""

_SIDE = 12
"""How many values of each list a picture and a card draw: the largest."""

_LEVELS = 4
"""How many steps of colour there are above and below independence."""

_IMPOSSIBLE = sentence("Impossible: {cell}. No honest crowd has such a share; do not rely on it.")

Place: TypeAlias = tuple[int, int]
"""A cell of a side: the places of its row and of its column."""

_LISTED = 6
"""The most values that a sentence names."""

_NONE = message("No reports yet.")
_DEPENDENT = sentence(
    "{first} and {second} depend on each other (test of independence, {p}): Cramér’s V is {v}, "
    "{level:.0%} interval {low} to {high}."
)
_FOUND = sentence("{first} and {second} depend on each other (test of independence, {p}).")
_INDEPENDENT = sentence(
    "No dependence of {first} and {second} can be told from noise (test of independence, {p}): "
    "Cramér’s V is at most {high}."
)
_UNDECIDED = sentence(
    "No dependence of {first} and {second} can be told from noise (test of independence, {p})."
)
_OF = sentence("Of those with {given}, {share} have {value} ({level:.0%} interval {between}).")
_LUMPED = sentence(
    "Cramér’s V takes {values} together: their shares are below 5 standard errors, and would "
    "drown it in noise"
)
_AND_MORE = sentence("{count:,} values of {first} and {second}")


class PairKind(Kind[PairAnswer]):
    """How two lists go together."""

    answer = PairAnswer
    types = frozenset({"pair"})
    estimate = staticmethod(estimate_pair)
    combine = staticmethod(combine_pairs)
    series_of = staticmethod(pair_series)

    def headline(self, answer: PairAnswer) -> str:
        return finding_words(answer, answer.sides[0])[0]

    def unsound(self, answer: PairAnswer) -> str | None:
        if not answer.joint.impossible.any():
            return None
        return message(
            _IMPOSSIBLE, cell=cell_words(answer.joint.values[int(answer.joint.strange[0])])
        )

    def unknown(self, answer: PairAnswer) -> bool:
        return not answer.joint.detected.any()

    def reading(self, answer: PairAnswer) -> tuple[str, ...]:
        verdict = verdict_words(answer)
        tested = () if verdict == self.headline(answer) else (verdict,)
        points = CONDITIONALS.text(answer.budget, answer.budget)
        worst = poisoning(answer, message("+{worst} points to a cell", worst=points))
        notes = map(formats.noted, pair_remarks(answer))
        return *tested, *notes, _BOTH, worst, *fakes_words(answer)

    def frames(self, answer: PairAnswer, shown: Shown) -> tuple[Frame, ...]:
        frame = _cells(answer, shown)
        if not shown.drawn:
            return (frame,)
        (picture,) = self.pictures(answer, shown, _ALL)
        told = picture.chart.title
        notes = () if told == self.headline(answer) else (told,)
        return (replace(frame, pictures=(replace(picture, notes=notes),)),)

    def pictures(self, answer: PairAnswer, shown: Shown, limit: int) -> tuple[Picture, ...]:
        most = _SIDE if limit < _ALL else None
        chart = heat_map(answer, answer.seen_from(shown.given), most)
        about = message(
            "{what}, with its {level}% interval:",
            what=chart.heading,
            level=f"{answer.level * 100:g}",
        )
        return (Picture(chart, subtitle=about, legend=_LEGEND),)

    def said(self, answer: PairAnswer, shown: Shown) -> str:
        return finding_words(answer, answer.seen_from(shown.given))[0]

    def card(self, answer: PairAnswer) -> Card:
        """What the two have to do with each other, in a sentence."""
        return Card(said=self.headline(answer))

    def over_time(self, answer: PairAnswer, chosen: Sequence[str]) -> list[str]:
        """The leading conditional, the same of the other values, and the chosen series."""
        leading = answer.leading
        value, _, condition = leading.partition(" given ")
        name = condition.partition("=")[0]
        margin = answer.margins[answer.names.index(name)]
        order = np.argsort(-margin.share, kind="stable").tolist()
        alike = [f"{value} given {name}={margin.values[place]}" for place in order]
        shown = list(dict.fromkeys([leading, *alike]))[:OFFERED]
        more = [each for each in chosen if each in answer.series.names and each not in shown]
        return [*shown[: max(1, OFFERED - len(more))], *more]


def verdict_words(pair: PairAnswer) -> str:
    """Whether there is any dependence, in a sentence."""
    test, effect = pair.independence, pair.effect
    if not pair.n:
        return _NONE
    if test is None or effect is None:
        return counted(
            "{count:,} report is too few for the test of independence, which takes {least}.",
            "{count:,} reports are too few for the test of independence, which takes {least}.",
            pair.n,
            least=LEAST_FOR_TEST,
        )
    first, second = pair.names
    known = math.isfinite(effect.v)
    if pair.dependent:
        template = _DEPENDENT if known else _FOUND
    else:
        template = _INDEPENDENT if known else _UNDECIDED
    return message(
        template,
        first=first,
        second=second,
        p=_p(test.p_value),
        level=pair.level,
        v=f"{effect.v:.2f}",
        low=f"{effect.low:.2f}",
        high=f"{effect.high:.2f}",
    )


def finding_words(pair: PairAnswer, side: Side) -> tuple[str, tuple[Place, ...]]:
    """What the two have to do with each other, as conditional shares in a sentence, and the cells
    of that side that it names. The test and the size of the dependence are in `verdict_words`."""
    (first, second), found = pair.names, side.shares
    if not pair.dependent or side.residuals is None:
        if pair.independence is None:
            return verdict_words(pair), ()
        template = sentence("No link between {first} and {second} can be told from noise.")
        return message(template, first=first, second=second), ()
    surely = np.abs(side.residuals.value / side.residuals.std_error)
    surely = np.where(found.known & side.carries, surely, -1.0)
    row, column = (int(each) for each in np.unravel_index(surely.argmax(), surely.shape))
    if surely[row, column] < 0:
        template = sentence("{first} and {second} go together.")
        return message(template, first=first, second=second), ()
    # The same value among the devices whose share of it is furthest from this one.
    away = np.abs(found.share[:, column] - found.share[row, column])
    away = np.where(found.known[:, column], away, -1.0)
    other = int(away.argmax())
    if away[other] <= 0:
        template = sentence("{first} and {second} go together: {told}")
        told = conditional_words(pair, side, (row, column))
        return message(template, first=first, second=second, told=told), ((row, column),)
    places: list[Place] = [(row, column), (other, column)]
    more, less = sorted(places, key=lambda place: -float(found.share[place]))
    texts = [_conditional_texts(side, place) for place in (more, less)]
    return message(
        "{first} and {second} go together: {share} of those with {given} have {value}, and {other} "
        "of those with {other_given}.",
        first=first,
        second=second,
        share=texts[0][2].text,
        given=texts[0][0],
        value=texts[0][1],
        other=texts[1][2].text,
        other_given=texts[1][0],
    ), (more, less)


def conditional_words(pair: PairAnswer, side: Side, place: Place) -> str:
    """One conditional share, in a sentence."""
    condition, value, told = _conditional_texts(side, place)
    return message(
        _OF,
        given=condition,
        value=value,
        share=told.text,
        level=pair.level,
        between=told.between,
    )


def _conditional_texts(side: Side, place: Place) -> tuple[str, str, Estimate]:
    """What is given, the value, and its share, as text."""
    condition, value = (
        cell_words(f"{name}={margin.values[at]}")
        for name, margin, at in zip(side.names, side.margins, place, strict=True)
    )
    found = side.shares
    share, low, high = (float(each[place]) for each in (found.share, found.low, found.high))
    # An unbiased share may lie beyond what there can be, which no sentence should say.
    told = formats.estimate_of(CONDITIONALS, min(max(share, 0.0), 1.0), low, high)
    return condition, value, told


def fakes_words(pair: PairAnswer) -> tuple[str, ...]:
    """What fake devices could do to conditional shares and to the test, in sentences."""
    found = []
    if math.isfinite(pair.budget_of_conditionals):
        points = CONDITIONALS.text(pair.budget_of_conditionals, pair.budget_of_conditionals)
        found.append(
            message(
                "{fakes:.3g}% fake devices could move a conditional share that is shown by up to "
                "{points} points.",
                fakes=100 * pair.fakes,
                points=points,
            )
        )
    if pair.fakes_to_reject is not None:
        found.append(
            message(
                "{percent:.2g}% fake devices that send the same report are enough for the test to "
                "call two independent metrics dependent.",
                percent=100 * pair.fakes_to_reject,
            )
        )
    return tuple(found)


def pair_remarks(pair: PairAnswer) -> Iterator[str]:
    """What to bear in mind about the effect size, as the warnings have it."""
    lumped = pair.lumped
    if not lumped:
        return
    first, second = pair.names
    values = listed(map(cell_words, lumped))
    if len(lumped) > _LISTED:
        values = message(_AND_MORE, count=len(lumped), first=first, second=second)
    yield message(_LUMPED, values=values)


def _p(p_value: float) -> str:
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


def heat_map(answer: PairAnswer, side: Side, most: int | None = None) -> HeatMap:
    """The heat map of one side, of the `most` largest values of each list."""
    told, named = finding_words(answer, side)
    (first, second), (one, two), found = side.names, side.margins, side.shares
    unknown = np.full(found.share.shape, math.nan)
    beyond, error = side.residuals[:2] if side.residuals else (unknown, unknown)
    rows, columns = (_places(margin.share, most) for margin in (one, two))
    narrow = len(rows) * len(columns) <= _WITH_INTERVALS
    top = float(np.abs(np.where(side.carries, beyond, 0.0)).max()) or 1.0

    def cell(i: int, j: int) -> HeatCell:
        number, below, above = (each.item(i, j) for each in (found.share, found.low, found.high))
        spread = half_width(number, below, above)
        sure, distance = bool(found.known[i, j]), float(beyond[i, j])
        level = math.ceil(abs(distance) / top * _LEVELS) if side.carries[i, j] else 0
        return HeatCell(
            CONDITIONALS.full(number if sure else math.nan, spread),
            int(math.copysign(level, distance)) if level else 0,
            CONDITIONALS.interval(below, above, spread) if sure and narrow else "",
            "" if math.isnan(distance) else CONDITIONALS.signed(distance, float(error[i, j])),
            (i, j) in named,
        )

    return HeatMap(
        heading=message(
            "Of the devices with each value of {given}, the share with each value of {of}",
            given=first,
            of=second,
        ),
        corner=first,
        over=second,
        rows=tuple(
            CellRow(
                value_words(one.values[i]),
                tuple(cell(i, j) for j in columns),
                message(
                    "{share} of all",
                    share=CONDITIONALS.full(float(one.share[i]), float(one.std_error[i])),
                ),
            )
            for i in rows
        ),
        heads=tuple(value_words(two.values[j]) for j in columns),
        title=told,
        description=verdict_words(answer),
        wide=True,
    )


def _cells(answer: PairAnswer, shown: Shown) -> Frame:
    """Each cell with its share, and the share among those with one of its values; where not all
    fit, those furthest from independence."""
    joint, apart, size = answer.joint, answer.residuals, len(answer.joint.values)
    order = np.arange(size)
    if size > shown.rows and apart is not None:
        order = np.argsort(apart.p_value.ravel(), kind="stable")
    listed = order[: shown.rows].tolist()
    interval = formats.interval_title(answer.level)
    given, _ = answer.seen_from(shown.given).names
    columns = (
        *(Column(name, name, "name") for name in answer.names),
        Column("truth", message("Truth"), data_only=shown.truth is None),
        Column("share", formats.SHARE, "estimate", interval=interval),
        *(
            Column(
                *(f"given {name}", message("Of its {name}", name=name), "estimate"),
                interval=interval,
                # A terminal has room for one of the two.
                data_only=not shown.drawn and name != given,
            )
            for name in answer.names
        ),
        Column("beyond", message("Beyond chance, points")),
    )
    rows = [_cell_row(answer, place, shown.truth) for place in listed]
    tones: list[Tone] = ["plain" if joint.detected[place] else "quiet" for place in listed]
    notes = []
    if answer.carries.ravel()[listed].any():
        notes.append(message("Bold: cells that differ from independence."))
    if size > len(listed):
        notes.append(
            counted(
                "{count:,} cell nearer to independence is not listed; CSV and JSON have it.",
                "{count:,} cells nearer to independence are not listed; CSV and JSON have them.",
                size - len(listed),
            )
        )
    return Frame("cells", "", columns, rows, tones, tuple(notes))


def _cell_row(answer: PairAnswer, place: int, truth: Any) -> Sequence[Any]:
    at = divmod(place, answer.shape[1])
    joint, apart = answer.joint, answer.residuals
    first, second = (
        value_words(margin.values[index]) for margin, index in zip(answer.margins, at, strict=True)
    )
    given = [
        _share(side, at) if side.known[at] else Estimate(None, CONDITIONALS.unknown)
        for side in answer.conditionals
    ]
    beyond = None
    if apart is not None:
        away = float(apart.value[at])
        text = CONDITIONALS.signed(away, float(apart.std_error[at]))
        beyond = WordedValue(away, text, "strong" if answer.carries[at] else "plain")
    return (
        WordedValue(first, first, tag="" if joint.detected[place] else formats.NOISE),
        second,
        None if truth is None else CONDITIONALS.full(float(truth[place]), 0.001),
        _share(joint, place),
        *given,
        beyond,
    )


def _share(found: Shares | Conditionals, place: int | Place) -> Estimate:
    """One of these shares."""
    numbers = (float(each[place]) for each in (found.share, found.low, found.high))
    return formats.estimate_of(CONDITIONALS, *numbers)


def _places(share: Any, most: int | None) -> list[int]:
    """The places of the largest shares, in their declared order."""
    if most is None or len(share) <= most:
        return list(range(len(share)))
    largest: list[int] = np.sort(np.argsort(-share, kind="stable")[:most]).tolist()
    return largest
