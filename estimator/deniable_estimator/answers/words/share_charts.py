"""The bars of shares with their intervals, and apart from them those below the noise."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.answers.shares import Shares
from deniable_estimator.answers.words.formats import described, percent, series_name
from deniable_estimator.document.plot.marks import BarRow, Bars
from deniable_estimator.document.plot.scales import scale_from_zero
from deniable_estimator.document.plot.ticks import Tick
from deniable_estimator.document.units import SHARES
from deniable_estimator.messages import message, sentence
from deniable_estimator.statistics.intervals import FloatArray

_NORMALIZED = sentence("{metric}: normalized shares")
_ESTIMATED = sentence("{metric}: estimated shares")
_BETWEEN = sentence("{value} {share}, between {low} and {high}")
_IMPOSSIBLE = sentence("{value} {share}, which is impossible")


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
) -> tuple[Bars, Bars | None, int]:
    """The same in two parts on one scale: at most `limit` values that stand out, with impossible
    ones first, and at most `noise_limit` that do not, which are to be folded away; and how many of
    these there are, drawn or not. Where none stands out nothing is folded away, nor is one half of
    a boolean."""
    order = _order(estimate)
    standing = np.concatenate((estimate.strange, estimate.standing))
    noise = estimate.below
    if estimate.boolean or not len(standing) or not len(noise):
        shown = order[:limit]
        whole = _draw(estimate, shown, shown, len(order), declared_order, normalized)
        return whole, None, 0
    shown, below = standing[:limit], noise[:noise_limit]
    every = np.concatenate((shown, below))
    rest = _draw(estimate, below, every, len(noise), declared_order, normalized)
    return (
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
    return described(estimate, told or [message("no value can be told from noise")])
