"""Shares in words: bars and a table, of which what is below the noise is folded away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import Metric
from deniable_estimator.analyses.base import OracleAnalysis
from deniable_estimator.document.document import Column, Frame, Picture, Tone, WordedValue
from deniable_estimator.document.plot.marks import Bars
from deniable_estimator.document.units import SHARES
from deniable_estimator.kinds import formats
from deniable_estimator.kinds.kind import OFFERED, Card, Kind, Shown
from deniable_estimator.kinds.numbers.words import EVERYONE, change_column, poisoning
from deniable_estimator.kinds.shares.charts import bar_chart, folded_chart
from deniable_estimator.kinds.shares.making import combine, estimate_shares
from deniable_estimator.kinds.shares.shares import Shares
from deniable_estimator.messages import listed, message, sentence, spaced

_CHART_BARS = 40
_NOISE_BARS = 20
_CARD_BARS = 5
_NAMED = 3
"""How many impossible shares a sentence names."""


_MOVED = message("*: more than a standard error away from the unbiased estimate.")
_IMPOSSIBLE_TAG = message("impossible")
_NORMALIZED = sentence("normalized shares, {level}% intervals")
_UNBIASED = sentence("unbiased shares, {level}% intervals")
_TONES: dict[str, Tone] = {_IMPOSSIBLE_TAG: "alarm", formats.NOISE: "quiet", "": "plain"}


class SharesKind(Kind[Shares]):
    """How devices are spread over values."""

    answer = Shares
    analysis = OracleAnalysis
    combine = staticmethod(combine)
    make = staticmethod(estimate_shares)

    def headline(self, answer: Shares) -> str:
        """The answer in a sentence: which value leads, and whether the lead is significant.

        Where shares are impossible, none leads.

        Two intervals that do not overlap at `level` differ by more than the noise; the check
        errs on the cautious side.
        """
        if wrong := self.unsound(answer):
            return wrong
        order = answer.order
        first = order[0]
        spread = float(answer.high[first] - answer.low[first]) / 2
        if answer.boolean:
            told = formats.estimate_of(answer.unit, *answer.series.at("true"))
            return message(
                "{share} say yes; the {level:.0%} interval is {between}.",
                share=told.text,
                level=answer.level,
                between=told.between,
            )
        if not answer.detected[first]:
            return message(
                "No value can be told from noise yet: it takes more reports, or a longer range."
            )
        name, share = (
            answer.unit.label(answer.values[first]),
            SHARES.full(float(answer.share[first]), spread),
        )
        if len(order) == 1:
            return message("{name} has {share}.", name=name, share=share)
        second = order[1]
        other = answer.unit.label(answer.values[second])
        if answer.low[first] > answer.high[second]:
            return message(
                "{name} leads with {share}, ahead of {other} by more than the noise.",
                name=name,
                share=share,
                other=other,
            )
        return message(
            "{name} has {share}, too close to {other} to say which one leads.",
            name=name,
            share=share,
            other=other,
        )

    def unsound(self, answer: Shares) -> str | None:
        if not answer.impossible.any():
            return None
        told = []
        for place in (0,) if answer.boolean else answer.strange[:_NAMED]:
            spread = float(answer.high[place] - answer.low[place]) / 2
            share = SHARES.full(float(answer.share[place]), spread)
            value = answer.unit.label(answer.values[place])
            yes, other = sentence("{share} say yes"), sentence("{share} for {value}")
            told.append(message(yes if answer.boolean else other, share=share, value=value))
        return message("Impossible: {which}. Do not rely on these numbers.", which=listed(told))

    def unknown(self, answer: Shares) -> bool:
        return not answer.detected.any()

    def new_leader(self, before: Shares, newest: Shares) -> str | None:
        """Both lead by intervals that do not overlap, although the larger of d values leads by
        chance more easily than one that is named beforehand: the intervals are of level
        1 - .05 / d."""
        new, old = newest.leading, before.leading
        if newest.boolean or new == old or not {new, old} <= {*newest.values} & {*before.values}:
            return None
        for answer, first, second in ((newest, new, old), (before, old, new)):
            level = 1 - (1 - answer.level) / len(answer.values)
            _, low, high = answer.at(answer.places((first, second)), level)
            if not low[0] > high[1]:
                return None
        return message("{new} leads now; before this, {old} did.", new=new, old=old)

    def reading(self, answer: Shares) -> tuple[str, ...]:
        points = f"{answer.budget * 100:.2f}"
        worst = message("+{points} points for one value", points=points)
        return EVERYONE, poisoning(answer, worst)

    def frames(self, answer: Shares, shown: Shown) -> tuple[Frame, ...]:
        frame = _frame(answer, shown)
        if not shown.drawn:
            return (frame,)
        parts = folded_chart(answer, shown, limit=_CHART_BARS, noise_limit=_NOISE_BARS)
        return (replace(frame, pictures=(_picture(answer, shown, *parts),)),)

    def pictures(self, answer: Shares, shown: Shown, limit: int) -> tuple[Picture, ...]:
        return (_picture(answer, shown, bar_chart(answer, shown, limit=limit)),)

    def caption(self, answer: Shares, shown: Shown) -> str:
        return formats.caption(answer, _NORMALIZED if shown.normalized else _UNBIASED)

    def footnote(self, answer: Shares) -> str:
        told = [
            message(
                "Every share is an estimate: each device added its own noise. Grey cannot be told "
                "from noise."
            )
        ]
        if answer.impossible.any():
            told.append(message("Red is impossible."))
        return spaced(told)

    def card(self, answer: Shares) -> Card:
        return Card(bar_chart(answer, limit=1 if answer.boolean else _CARD_BARS))

    def over_time(self, answer: Shares, chosen: Sequence[str]) -> list[str]:
        """The largest values, and the chosen ones; of a boolean "true" alone."""
        if answer.boolean:
            return ["true"]
        largest = [answer.values[i] for i in answer.order[:OFFERED]]
        return [*largest, *(value for value in chosen if value not in largest)]

    def asked(self, metric: Metric, shown: Sequence[str]) -> Sequence[str] | None:
        """Of many values only those that are shown need be estimated. The shares of a number, which
        a pair of it gives, are of ranges, and these cannot be asked for by name."""
        return None if metric.type.name == "number" or metric.values == ("true", "false") else shown


def _picture(answer: Shares, shown: Shown, chart: Bars, noise: Bars | None = None) -> Picture:
    """A chart, which may have a part that is folded away, with its legend."""
    level = f"{answer.level * 100:g}"
    legend = [
        ("bar", message("unbiased estimate")),
        ("whisker", formats.interval_title(answer.level)),
        ("bar noise", message("cannot be told from noise")),
    ]
    if shown.normalized:
        whiskers = message("{level}% interval of the unbiased estimate", level=level)
        bars = message("normalized share (sums to 100%)")
        legend[:2] = [("bar", bars), ("whisker", whiskers)]
    if answer.impossible.any():
        told = message("impossible: no honest crowd has such a share")
        legend.append(("bar impossible", told))
    parts, notes = [chart, *([noise] if noise else [])], []
    if any(each.more for each in parts) and not answer.boolean:
        notes.append(
            message(
                "The {shown} largest of {values} values.",
                shown=sum(len(each.rows) for each in parts),
                values=f"{len(answer.values):,}",
            )
        )
    fold = formats.values_below_noise(len(noise.rows) + noise.more) if noise else ""
    return Picture(chart, folded=noise, fold=fold, legend=tuple(legend), notes=tuple(notes))


def _frame(answer: Shares, shown: Shown) -> Frame:
    """The table of at most so many values: the largest first, or as they are declared (a boolean
    always).

    Impossible ones come first, and those that cannot be told from noise after all others, folded
    away; where none can be told from it, they all stand. Where rows are sorted or looked for,
    nothing is folded away. Upper and lower case make no difference.
    """
    standing, noise = answer.parted
    if shown.sort or shown.find:
        standing, noise = _found(answer, shown), noise[:0]
    first = standing[: shown.rows]
    rest = noise[: shown.rows - len(first)]
    if not shown.sort and (shown.declared_order or answer.boolean):
        first, rest = np.sort(first), np.sort(rest)
    places = np.concatenate((first, rest))
    more = len(standing) + len(noise) - len(places)
    top = None if shown.drawn or not len(places) else float(answer.high[places].max())
    moved = answer.moved[places].any()
    notes = [*((_MOVED,) if moved else ()), *((formats.not_listed(more),) if more else ())]
    if shown.find and not len(places):
        notes = [message("No value contains {text}.", text=shown.find)]
    return Frame(
        "values",
        "",
        _columns(answer, shown, top),
        _rows(answer, shown, places, top),
        [_TONES[_tag(answer, place)] for place in places.tolist()],
        tuple(notes),
        folded=len(rest),
        fold=formats.values_below_noise(len(noise)) if len(noise) else "",
        more=more,
    )


def _columns(answer: Shares, shown: Shown, top: float | None) -> tuple[Column, ...]:
    scale = None if top is None else ("0", SHARES.full(top, 0.01))
    return (
        Column("value", message("Value"), "name", sort="value"),
        Column("line", "", "count", data_only=True),
        Column("truth", message("Truth"), data_only=shown.truth is None),
        Column(
            *("share", formats.SHARE, "estimate"),
            sort="share",
            interval=formats.interval_title(answer.level),
            scale=scale,
        ),
        change_column(answer, shown),
        # A terminal has room for the bars or for these.
        Column("std_error", message("Std. error"), aside=True, data_only=not shown.drawn),
        Column(
            *("p_adjusted", message("Adjusted p")),
            help=message("p-value against a share of zero, adjusted for the number of values"),
            aside=True,
        ),
        Column(
            *("normalized", message("Normalized")),
            help=message("Not negative and summing to 100% (candidates: to at most 100%)"),
            aside=True,
        ),
    )


def _rows(
    answer: Shares, shown: Shown, places: NDArray[np.intp], top: float | None
) -> list[tuple[Any, ...]]:
    # Only these become Python's numbers: there may be a million more.
    columns = [
        column[places].tolist()
        for column in (
            answer.share,
            answer.low,
            answer.high,
            answer.std_error,
            answer.p_adjusted,
            answer.normalized,
            answer.moved,
        )
    ]
    values = [answer.values[place] for place in places.tolist()]
    changes = formats.change_cells(shown.comparison, values)
    axis = None if top is None else (0.0, top)
    rows = []
    for value, place, share, low, high, std_error, p_adjusted, normalized, moved in zip(
        values, places.tolist(), *columns, strict=True
    ):
        spread = (high - low) / 2
        name, known = formats.series_name(answer, value), None
        if shown.truth is not None:
            known = SHARES.full(float(shown.truth[place]), spread)
        rows.append(
            (
                WordedValue(value, name, tag=_tag(answer, place)),
                place + 1,
                known,
                formats.estimate_of(SHARES, share, low, high, axis=axis),
                changes.get(value),
                formats.error(std_error),
                formats.p_value(p_adjusted),
                SHARES.full(normalized, spread) + ("*" if moved else ""),
            )
        )
    return rows


def _tag(answer: Shares, place: int) -> str:
    """What a value is not, if anything."""
    if answer.impossible[place]:
        return _IMPOSSIBLE_TAG
    return "" if answer.detected[place] else formats.NOISE


def _found(answer: Shares, shown: Shown) -> NDArray[np.intp]:
    """The places of the values that contain a text, sorted."""
    column = (shown.sort or "share").removeprefix("-")
    order = answer.order
    if column == "value":
        names = [value.casefold() for value in answer.values]
        order = np.array(sorted(range(len(names)), key=names.__getitem__), np.intp)
    elif column == "change" and shown.comparison is not None:
        changed = formats.change_order(shown.comparison)
        first = answer.places(tuple(shown.comparison.values[at] for at in changed))
        order = np.concatenate((first, order[~np.isin(order, first)]))
    if shown.find:
        text = shown.find.casefold()
        held = np.array([text in value.casefold() for value in answer.values], np.bool_)
        order = order[held[order]]
    return order[::-1] if shown.sort and shown.sort.startswith("-") else order
