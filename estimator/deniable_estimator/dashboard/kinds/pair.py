"""Two lists at once on the pages: a heat map of conditional shares, and all cells as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from deniable_estimator.answers.base import Comparison
from deniable_estimator.answers.pair import PairAnswer
from deniable_estimator.answers.pair_estimate import Given
from deniable_estimator.answers.pair_words import (
    fakes_words,
    finding_words,
    remarks,
    verdict_words,
)
from deniable_estimator.answers.units import CONDITIONALS, cell_words, half_width, value_words
from deniable_estimator.dashboard.kinds.base import Kind
from deniable_estimator.dashboard.view import View
from deniable_estimator.dashboard.words import NOTHING_STANDS_OUT, SeriesText, series_text
from deniable_estimator.document.plot.marks import CellRow, HeatCell, HeatMap
from deniable_estimator.messages import message, sentence

_LINES = 100
"""How many cells the table lists; the files have all of them."""

_WITH_INTERVALS = 100
"""Up to so many cells of a heat map have their interval in them."""

_SIDE = 12
"""How many values of each list a picture and a card draw: the largest."""

_LEVELS = 4
"""How many steps of colour there are above and below independence."""

_SMALL = 6
"""How many series are offered to be seen over time."""

_IMPOSSIBLE = sentence("Impossible: {cell}. No honest crowd has such a share; do not rely on it.")


class PairKind(Kind[PairAnswer]):
    """How two lists go together."""

    template = "kinds/pair.html"

    def headline(self, answer: PairAnswer) -> str:
        return finding_words(answer)[0]

    def unsound(self, answer: PairAnswer) -> str | None:
        if not answer.joint.impossible.any():
            return None
        return message(
            _IMPOSSIBLE, cell=cell_words(answer.joint.values[int(answer.joint.strange[0])])
        )

    def attention(self, answer: PairAnswer) -> Sequence[str]:
        sound = answer.n and not answer.joint.impossible.any()
        return (NOTHING_STANDS_OUT,) if sound and not answer.joint.detected.any() else ()

    def parts(
        self, answer: PairAnswer, view: View, comparison: Comparison | None = None
    ) -> dict[str, Any]:
        lines = _cell_lines(answer)
        return {
            "heat": heat_map(answer, _direction(answer, view.given)),
            "names": answer.names,
            "verdict": verdict_words(answer),
            "remarks": tuple(remarks(answer)),
            "lines": lines,
            "more": len(answer.joint.values) - len(lines),
            "worst": CONDITIONALS.text(answer.budget, answer.budget),
            "faked": fakes_words(answer),
        }

    def picture(self, answer: PairAnswer, view: View, limit: int) -> HeatMap:
        return heat_map(answer, _direction(answer, view.given), _SIDE)

    def said(self, picture: HeatMap) -> str:
        return picture.title

    def card(self, answer: PairAnswer) -> str:
        """What the two have to do with each other, in a sentence."""
        return finding_words(answer)[0]

    def over_time(self, answer: PairAnswer, chosen: Sequence[str]) -> list[str]:
        """The leading conditional, the same of the other values, and the chosen series."""
        leading = answer.leading
        value, _, condition = leading.partition(" given ")
        name = condition.partition("=")[0]
        margin = answer.margins[answer.names.index(name)]
        alike = [f"{value} given {name}={each}" for each in _largest(margin.share, margin.values)]
        shown = list(dict.fromkeys([leading, *alike]))[:_SMALL]
        more = [each for each in chosen if each in answer.series.names and each not in shown]
        return [*shown[: max(1, _SMALL - len(more))], *more]


def heat_map(answer: PairAnswer, given: Given, most: int | None = None) -> HeatMap:
    """The heat map of one direction, of the `most` largest values of each list."""
    told, named = finding_words(answer, given)
    first, second = answer.names
    one, two = answer.margins
    if given == "second":
        first, second, one, two = second, first, two, one
    found, apart = answer.conditionals[given], answer.residuals
    shares = [found.share, found.low, found.high, found.known, answer.carries]
    beyond = np.full(answer.shape, math.nan) if apart is None else apart.value
    error = np.full(answer.shape, math.nan) if apart is None else apart.std_error
    share, low, high, known, carries, beyond, error = (
        each if given == "first" else each.T for each in (*shares, beyond, error)
    )
    rows, columns = (_places(margin.share, most) for margin in (one, two))
    narrow = len(rows) * len(columns) <= _WITH_INTERVALS
    top = float(np.abs(np.where(carries, beyond, 0.0)).max()) or 1.0

    def cell(i: int, j: int) -> HeatCell:
        number, below, above = float(share[i, j]), float(low[i, j]), float(high[i, j])
        spread = half_width(number, below, above)
        sure, distance = bool(known[i, j]), float(beyond[i, j])
        level = math.ceil(abs(distance) / top * _LEVELS) if carries[i, j] else 0
        return HeatCell(
            CONDITIONALS.full(number if sure else math.nan, spread),
            int(math.copysign(level, distance)) if level else 0,
            CONDITIONALS.interval(below, above, spread) if sure and narrow else "",
            "" if math.isnan(distance) else CONDITIONALS.signed(distance, float(error[i, j])),
            ((i, j) if given == "first" else (j, i)) in named,
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


def _direction(answer: PairAnswer, given: str | None) -> Given:
    return "second" if given == answer.names[1] else "first"


def _cell_lines(answer: PairAnswer) -> list[dict[str, Any]]:
    """The table: `given` is the share of the second value among devices with the first, and the
    reverse."""
    joint, apart = answer.joint, answer.residuals
    order = np.arange(len(joint.values))
    if len(order) > _LINES and apart is not None:
        order = np.argsort(apart.p_value.ravel(), kind="stable")
    columns = answer.shape[1]
    sides = tuple(answer.conditionals.values())

    def text(value: float, low: float, high: float) -> SeriesText:
        return series_text(CONDITIONALS, value, low, high, half_width(value, low, high))

    found = []
    for place in order[:_LINES].tolist():
        at = divmod(place, columns)
        given = [
            text(*(float(each[at]) for each in (side.share, side.low, side.high)))
            if side.known[at]
            else text(math.nan, math.nan, math.nan)._replace(between="")
            for side in sides
        ]
        names = zip(answer.margins, at, strict=True)
        ends = (float(each[place]) for each in (joint.share, joint.low, joint.high))
        beyond = ""
        if apart is not None:
            beyond = CONDITIONALS.signed(float(apart.value[at]), float(apart.std_error[at]))
        found.append(
            {
                "values": [value_words(margin.values[index]) for margin, index in names],
                "share": text(*ends),
                "given": given,
                "beyond": beyond,
                "carries": bool(answer.carries[at]),
                "detected": bool(joint.detected[place]),
            }
        )
    return found


def _places(share: Any, most: int | None) -> list[int]:
    """The places of the largest shares, in their declared order."""
    if most is None or len(share) <= most:
        return list(range(len(share)))
    largest: list[int] = np.sort(np.argsort(-share, kind="stable")[:most]).tolist()
    return largest


def _largest(share: Any, values: Sequence[str]) -> list[str]:
    return [values[place] for place in np.argsort(-share, kind="stable").tolist()]
