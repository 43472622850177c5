"""The geometry of the charts: an estimate becomes bars, whiskers and ticks, as plain data.

The templates turn them into SVG. Positions across are percentages of the plot, so that
one drawing fits every width; positions down are pixels. Nothing is clipped: where an
interval reaches below zero, so does the plot.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from deniable_estimator.answers.shares import Shares
from deniable_estimator.answers.units import SHARES
from deniable_estimator.dashboard.charts.ticks import (
    Tick,
    levels_from_zero,
    nice_step,
    round_levels,
)
from deniable_estimator.dashboard.words import percent, series_name
from deniable_estimator.messages import counted, joined, message, sentence
from deniable_estimator.statistics.intervals import FloatArray

__all__ = [
    "ROW_HEIGHT",
    "Bar",
    "BarChart",
    "Folded",
    "Scale",
    "Tick",
    "bar_chart",
    "folded_chart",
    "nice_step",
]

ROW_HEIGHT = 36
"""Pixels from one bar to the next: room for a label above it on a phone."""

_NORMALIZED = sentence("{metric}: normalized shares")
_ESTIMATED = sentence("{metric}: estimated shares")

_BETWEEN = sentence("{value} {share}, between {low} and {high}")
_IMPOSSIBLE = sentence("{value} {share}, which is impossible")


@dataclass(frozen=True, slots=True)
class Bar:
    """One value's bar. `start`, `width`, `at`, `low` and `high` are percentages of the plot."""

    label: str
    share: str
    spread: str
    """Half the interval, in points."""
    low_text: str
    high_text: str
    noise: bool
    """Cannot be told from noise: drawn grey."""
    impossible: bool
    """No honest crowd has such a share: drawn as an alarm."""
    top: int
    start: float
    width: float
    at: float
    low: float
    high: float
    truth: float | None = None
    """The true share, if the devices are simulated."""

    @property
    def shapes(self) -> Markup:
        """Bar and whisker as SVG, for whom the style sheet draws. Numbers alone, so
        there is nothing to escape; a template would look at each of them, of hundreds on a page."""
        low, high = self.low, self.high
        return Markup(  # noqa: S704
            f'<rect class="bar" x="{self.start}%" width="{self.width}%" y="1.25em" height="0.5em" '
            'rx="2"/>'
            f'<line class="whisker" x1="{low}%" x2="{high}%" y1="1.5em" y2="1.5em"/>'
            f'<line class="whisker" x1="{low}%" x2="{low}%" y1="1.125em" y2="1.875em"/>'
            f'<line class="whisker" x1="{high}%" x2="{high}%" y1="1.125em" y2="1.875em"/>'
        )

    @property
    def small(self) -> Markup:
        """The same without a scale, in a box of 100 by 6 that is stretched across: an overview has
        hundreds of them."""
        start, width, low, high = (
            f"{each:.4g}" for each in (self.start, self.width, self.low, self.high)
        )
        return Markup(  # noqa: S704
            '<svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
            f'<path class="b" d="M{start} 3h{width}"/><path class="w" d="M{low} 3H{high}"/></svg>'
        )


@dataclass(frozen=True, slots=True)
class BarChart:
    """Bars over a common scale."""

    name: str
    """Makes the ids inside the SVG unique on a page with several."""
    title: str
    description: str
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    zero: float
    height: int
    more: int
    """How many values were left out at the end."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A chart in two parts on one scale: what stands out, and what is folded away below it."""

    standing: BarChart
    noise: BarChart | None
    """What cannot be told from noise; None where nothing is folded away."""
    hidden: int
    """How many values cannot be told from noise, drawn or not, if they are folded away."""


class Scale(NamedTuple):
    """What the left and the right end of a plot stand for."""

    bottom: float
    top: float

    def across(self, value: float) -> float:
        """Where a value lies, as a percentage of the plot."""
        return round((value - self.bottom) / (self.top - self.bottom) * 100, 2)

    def bar(
        self,
        row: int,
        label: str,
        interval: tuple[float, float, float],
        write: Callable[[float, float], str],
        *,
        noise: bool,
        impossible: bool = False,
        truth: float | None = None,
    ) -> Bar:
        """The bar of (value, low, high) from zero; `write` puts a number beside its spread."""
        value, low, high = interval
        spread = (high - low) / 2
        zero, at = self.across(0.0), self.across(value)
        return Bar(
            label=label,
            share=write(value, spread),
            spread=percent(spread, spread).rstrip("%"),
            low_text=write(low, spread),
            high_text=write(high, spread),
            noise=noise,
            impossible=impossible,
            top=row * ROW_HEIGHT,
            start=min(zero, at),
            width=round(abs(at - zero), 2),
            at=at,
            low=self.across(low),
            high=self.across(high),
            truth=None if truth is None else self.across(truth),
        )


def bar_chart(
    estimate: Shares,
    *,
    limit: int | None = None,
    declared_order: bool = False,
    normalized: bool = False,
    truth: FloatArray | None = None,
    values: Collection[str] = (),
) -> BarChart:
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
    if _is_boolean(estimate) or not len(standing) or not len(noise):
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


def _is_boolean(estimate: Shares) -> bool:
    return estimate.values == ("true", "false")


def _order(estimate: Shares) -> NDArray[np.intp]:
    """The places of the values, the largest first; a boolean as it is declared."""
    if _is_boolean(estimate):
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
) -> BarChart:
    """The bars of the values `shown`, out of `count`, on a scale that holds those `scaled`."""
    if declared_order:
        shown = np.sort(shown)
    shares = estimate.normalized if normalized else estimate.share
    bottom, top, ticks = _scale(
        min(0.0, float(estimate.low[scaled].min())),
        max(
            1.0 if _is_boolean(estimate) else 0.0,
            float(estimate.high[scaled].max()),
            float(shares[scaled].max()),
        ),
    )
    scale = Scale(bottom, top)
    noise = ~(estimate.detected | estimate.impossible)
    bars = [
        scale.bar(
            row,
            series_name(estimate, estimate.values[index]),
            (float(shares[index]), float(estimate.low[index]), float(estimate.high[index])),
            percent,
            noise=bool(noise[index]),
            impossible=bool(estimate.impossible[index]),
            truth=None if truth is None else float(truth[index]),
        )
        for row, index in enumerate(shown)
    ]
    return BarChart(
        name=estimate.metric,
        title=message(
            _NORMALIZED if normalized else _ESTIMATED,
            metric=estimate.metric,
        ),
        description=_describe(estimate, bars),
        bars=tuple(bars),
        ticks=tuple(
            Tick(scale.across(share), SHARES.tick(share, ticks[-1] - ticks[-2])) for share in ticks
        ),
        zero=scale.across(0.0),
        height=len(bars) * ROW_HEIGHT,
        more=count - len(shown),
    )


def _scale(lowest: float, highest: float) -> tuple[float, float, tuple[float, ...]]:
    """Bottom, top and ticks of an axis that holds both: zero is a tick, with three or four more."""
    levels, step = levels_from_zero(max(highest, 1e-6))
    if lowest < -step:
        levels, _ = round_levels(lowest, highest)
        return levels[0], levels[-1], tuple(levels)
    # A whisker that ends at the very edge looks cut off.
    top = max(highest, levels[-1])
    room = 0.02 * (top - lowest)
    bottom = lowest - room if lowest < 0 else 0.0
    return bottom, top if top == levels[-1] else top + room, tuple(levels)


def _describe(estimate: Shares, bars: list[Bar]) -> str:
    """A description of the picture for screen readers."""
    told: list[str] = []
    told += [
        message(
            _IMPOSSIBLE if bar.impossible else _BETWEEN,
            value=bar.label,
            share=bar.share,
            low=bar.low_text,
            high=bar.high_text,
        )
        for bar in bars
        if not bar.noise
    ]
    told = told[:10]
    if rest := len(bars) - len(told) if told else 0:
        told.append(message("and {count} more", count=rest))
    return counted(
        "From {count:,} report, with {level:.0%} intervals: {told}.",
        "From {count:,} reports, with {level:.0%} intervals: {told}.",
        estimate.n,
        level=estimate.level,
        told=joined(told or [message("no value can be told from noise")]),
    )
