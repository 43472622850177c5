"""Shares on the pages: bars with their intervals, those below the noise folded away."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import Metric
from deniable_estimator.answers.base import Comparison
from deniable_estimator.answers.shares import Shares
from deniable_estimator.answers.units import SHARES
from deniable_estimator.dashboard import words
from deniable_estimator.dashboard.changes import table
from deniable_estimator.dashboard.kinds.base import Kind
from deniable_estimator.dashboard.view import LONGEST_SEARCH, View
from deniable_estimator.dashboard.words import percent, series_name
from deniable_estimator.document.plot.marks import BarRow, Bars, Folded
from deniable_estimator.document.plot.scales import scale_from_zero
from deniable_estimator.document.plot.ticks import Tick
from deniable_estimator.messages import counted, joined, message, sentence, spaced
from deniable_estimator.statistics.intervals import FloatArray

_CHART_BARS = 40
_NOISE_BARS = 20
_CARD_BARS = 5
_TABLE_LINES = 100
"""How many values fit into a page of 100 KB; a link lists all."""
_ALL_LINES = 10_000
"""For longer lists, only the files contain every value."""
_SEARCHED = 8
"""A longer table has a field to search in."""
_SMALL = 6
"""How many values are offered to be seen over time."""


_NORMALIZED = sentence("{metric}: normalized shares")
_ESTIMATED = sentence("{metric}: estimated shares")

_BETWEEN = sentence("{value} {share}, between {low} and {high}")
_IMPOSSIBLE = sentence("{value} {share}, which is impossible")


class SharesKind(Kind[Shares]):
    """How devices are spread over values."""

    template = "kinds/shares.html"

    def headline(self, answer: Shares) -> str:
        return words.headline(answer)

    def unsound(self, answer: Shares) -> str | None:
        return words.impossible(answer) if answer.impossible.any() else None

    def attention(self, answer: Shares) -> Sequence[str]:
        sound = answer.n and not answer.impossible.any()
        return (words.NOTHING_STANDS_OUT,) if sound and not answer.detected.any() else ()

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

    def parts(
        self, answer: Shares, view: View, comparison: Comparison | None = None
    ) -> dict[str, Any]:
        declared = view.order == "declared"
        return {
            "folded": folded_chart(
                answer,
                limit=_CHART_BARS,
                noise_limit=_NOISE_BARS,
                declared_order=declared,
                normalized=view.shares == "normalized",
            ),
            "lines": table(
                answer,
                _ALL_LINES if view.lines == "all" else _TABLE_LINES,
                declared_order=declared,
                comparison=comparison,
                sort=view.sort,
                find=view.find,
            ),
            "all_lines": _ALL_LINES,
            "searched": _SEARCHED,
            "longest_search": LONGEST_SEARCH,
        }

    def picture(self, answer: Shares, view: View, limit: int) -> Bars:
        return bar_chart(
            answer,
            limit=limit,
            declared_order=view.order == "declared",
            normalized=view.shares == "normalized",
        )

    def caption(self, answer: Shares, view: View) -> str:
        named = {
            "metric": answer.metric,
            "n": f"{answer.n:,}",
            "period": words.period(answer.windows),
            "level": f"{answer.level * 100:g}",
        }
        if view.shares == "normalized":
            return counted(
                "{metric}, {n} report, {period}; normalized shares, {level}% intervals",
                "{metric}, {n} reports, {period}; normalized shares, {level}% intervals",
                answer.n,
                **named,
            )
        return counted(
            "{metric}, {n} report, {period}; unbiased shares, {level}% intervals",
            "{metric}, {n} reports, {period}; unbiased shares, {level}% intervals",
            answer.n,
            **named,
        )

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

    def card(self, answer: Shares) -> Bars:
        return bar_chart(answer, limit=1 if answer.boolean else _CARD_BARS)

    def over_time(self, answer: Shares, chosen: Sequence[str]) -> list[str]:
        """The largest values, and the chosen ones; of a boolean "true" alone."""
        if answer.boolean:
            return ["true"]
        largest = [answer.values[i] for i in answer.order[:_SMALL]]
        return [*largest, *(value for value in chosen if value not in largest)]

    def asked(self, metric: Metric, shown: Sequence[str]) -> Sequence[str] | None:
        """Of many values only those that are shown need be estimated. The shares of a number, which
        a pair of it gives, are of ranges, and these cannot be asked for by name."""
        return None if metric.type.name == "number" or metric.values == ("true", "false") else shown


def bar_chart(
    estimate: Shares,
    *,
    limit: int | None = None,
    declared_order: bool = False,
    normalized: bool = False,
    truth: FloatArray | None = None,
    values: Collection[str] = (),
) -> Bars:
    """The bars of an estimate, largest first or as declared, of which `limit` keeps the largest.

    Of the two halves of a boolean a limit of 1 keeps "true", on a scale to 100% or to what
    reaches beyond: the other half says the same again. With `normalized` the bars are the
    normalized shares; the intervals stay those of the unbiased ones, which alone have any.
    `truth`, shape (d,), is marked beside them. If `values` are named, there are no other bars.
    """
    order = _order(estimate)
    if values:
        order = np.array([each for each in order if estimate.values[each] in values], np.intp)
    shown = order if limit is None else order[:limit]
    return _draw(estimate, shown, shown, len(order), declared_order, normalized, truth)


def folded_chart(
    estimate: Shares,
    *,
    limit: int,
    noise_limit: int,
    declared_order: bool = False,
    normalized: bool = False,
) -> Folded:
    """The same in two parts: at most `limit` values that stand out, with impossible ones first,
    and below them at most `noise_limit` that do not. Where none stands out nothing is folded away,
    nor is one half of a boolean."""
    order = _order(estimate)
    standing = np.concatenate((estimate.strange, estimate.standing))
    noise = estimate.below
    if estimate.boolean or not len(standing) or not len(noise):
        shown = order[:limit]
        whole = _draw(estimate, shown, shown, len(order), declared_order, normalized)
        return Folded(whole, None, 0)
    shown, below = standing[:limit], noise[:noise_limit]
    every = np.concatenate((shown, below))
    rest = _draw(estimate, below, every, len(noise), declared_order, normalized)
    return Folded(
        _draw(estimate, shown, every, len(standing), declared_order, normalized),
        replace(
            rest,
            name=f"{rest.name}-noise",
            title=message("{title} below the noise", title=rest.title),
        ),
        len(noise),
    )


def _order(estimate: Shares) -> NDArray[np.intp]:
    """The places of the values, the largest first; a boolean as it is declared."""
    if estimate.boolean:
        return np.arange(2)
    return estimate.order


def _draw(
    estimate: Shares,
    shown: NDArray[np.intp],
    scaled: NDArray[np.intp],
    count: int,
    declared_order: bool,
    normalized: bool,
    truth: FloatArray | None = None,
) -> Bars:
    """The bars of the values `shown`, out of `count`, on a scale that holds those `scaled`."""
    if declared_order:
        shown = np.sort(shown)
    shares = estimate.normalized if normalized else estimate.share
    scale, ticks = scale_from_zero(
        min(0.0, float(estimate.low[scaled].min())),
        max(
            1.0 if estimate.boolean else 0.0,
            float(estimate.high[scaled].max()),
            float(shares[scaled].max()),
        ),
    )
    noise = ~(estimate.detected | estimate.impossible)
    rows = []
    for index in shown.tolist():
        ends = float(estimate.low[index]), float(estimate.high[index])
        share, spread = float(shares[index]), (ends[1] - ends[0]) / 2
        row = BarRow(
            label=series_name(estimate, estimate.values[index]),
            number=percent(share, spread),
            at=scale.across(share),
            low=scale.across(ends[0]),
            high=scale.across(ends[1]),
            low_text=percent(ends[0], spread),
            high_text=percent(ends[1], spread),
            spread=percent(spread, spread).rstrip("%"),
            noise=bool(noise[index]),
            impossible=bool(estimate.impossible[index]),
            truth=None if truth is None else scale.across(float(truth[index])),
        )
        rows.append(row)
    return Bars(
        name=estimate.metric,
        title=message(
            _NORMALIZED if normalized else _ESTIMATED,
            metric=estimate.metric,
        ),
        description=_describe(estimate, rows),
        rows=tuple(rows),
        ticks=tuple(
            Tick(scale.across(share), SHARES.tick(share, ticks[-1] - ticks[-2])) for share in ticks
        ),
        zero=scale.across(0.0),
        more=count - len(shown),
    )


def _describe(estimate: Shares, rows: list[BarRow]) -> str:
    """A description of the picture for screen readers."""
    told: list[str] = []
    told += [
        message(
            _IMPOSSIBLE if row.impossible else _BETWEEN,
            value=row.label,
            share=row.number,
            low=row.low_text,
            high=row.high_text,
        )
        for row in rows
        if not row.noise
    ]
    told = told[:10]
    if rest := len(rows) - len(told) if told else 0:
        told.append(message("and {count} more", count=rest))
    return counted(
        "From {count:,} report, with {level:.0%} intervals: {told}.",
        "From {count:,} reports, with {level:.0%} intervals: {told}.",
        estimate.n,
        level=estimate.level,
        told=joined(told or [message("no value can be told from noise")]),
    )
