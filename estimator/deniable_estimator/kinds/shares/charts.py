"""The bars of shares with their intervals, and apart from them those below the noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.document.plot.marks import BarRow, Bars
from deniable_estimator.document.plot.scales import Tick, scale_from_zero
from deniable_estimator.document.units import SHARES
from deniable_estimator.kinds.formats import described, series_name
from deniable_estimator.kinds.kind import Shown
from deniable_estimator.kinds.shares.shares import Shares
from deniable_estimator.messages import message, sentence

_NORMALIZED = sentence("{metric}: normalized shares")
_ESTIMATED = sentence("{metric}: estimated shares")
_BETWEEN = sentence("{value} {share}, between {low} and {high}")
_IMPOSSIBLE = sentence("{value} {share}, which is impossible")


_PLAIN = Shown(rows=0)


def bar_order(estimate: Shares) -> NDArray[np.intp]:
    """The places of the values, the largest first; a boolean as it is declared."""
    if estimate.boolean:
        return np.arange(2)
    return estimate.order


def bar_chart(
    estimate: Shares,
    shown: Shown = _PLAIN,
    *,
    limit: int | None = None,
    places: NDArray[np.intp] | None = None,
    scaled: NDArray[np.intp] | None = None,
) -> Bars:
    """The bars of an estimate, of which `limit` keeps the first: the largest, or those at `places`,
    on a scale that holds them, or those at `scaled`.

    Of the two halves of a boolean a limit of 1 keeps "true", on a scale to 100% or to what
    reaches beyond: the other half says the same again. The intervals of normalized shares stay
    those of the unbiased ones, which alone have any. The truth is marked beside them, if it is
    known.
    """
    places = bar_order(estimate) if places is None else places
    drawn = places[:limit]
    scaled = drawn if scaled is None else scaled
    if shown.declared_order:
        drawn = np.sort(drawn)
    shares = estimate.normalized if shown.normalized else estimate.share
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
    for index in drawn.tolist():
        ends = float(estimate.low[index]), float(estimate.high[index])
        share, spread = float(shares[index]), (ends[1] - ends[0]) / 2
        row = BarRow(
            label=series_name(estimate, estimate.values[index]),
            number=SHARES.full(share, spread),
            at=scale.across(share),
            low=scale.across(ends[0]),
            high=scale.across(ends[1]),
            low_text=SHARES.full(ends[0], spread),
            high_text=SHARES.full(ends[1], spread),
            spread=SHARES.full(spread, spread).rstrip("%"),
            noise=bool(noise[index]),
            impossible=bool(estimate.impossible[index]),
            truth=None if shown.truth is None else scale.across(float(shown.truth[index])),
        )
        rows.append(row)
    return Bars(
        name=estimate.metric,
        title=message(_NORMALIZED if shown.normalized else _ESTIMATED, metric=estimate.metric),
        description=_describe(estimate, rows),
        rows=tuple(rows),
        ticks=tuple(
            Tick(scale.across(share), SHARES.tick(share, ticks[-1] - ticks[-2])) for share in ticks
        ),
        zero=scale.across(0.0),
        more=len(places) - len(drawn),
    )


def folded_chart(
    estimate: Shares, shown: Shown, *, limit: int, noise_limit: int
) -> tuple[Bars, Bars | None]:
    """The same in two parts on one scale: at most `limit` values that stand out, with impossible
    ones first, and at most `noise_limit` of those that are to be folded away, if there are any
    (`Shares.parted`)."""
    standing, noise = estimate.parted
    if not len(noise):
        return bar_chart(estimate, shown, limit=limit), None
    scaled = np.concatenate((standing[:limit], noise[:noise_limit]))
    rest = bar_chart(estimate, shown, limit=noise_limit, places=noise, scaled=scaled)
    return (
        bar_chart(estimate, shown, limit=limit, places=standing, scaled=scaled),
        replace(
            rest,
            name=f"{rest.name}-noise",
            title=message("{title} below the noise", title=rest.title),
        ),
    )


def _describe(estimate: Shares, rows: list[BarRow]) -> str:
    """A description of the picture for screen readers."""
    told: list[str] = [
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
