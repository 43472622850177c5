"""How each value's share changed between two estimates, with an interval of its own.

For independent estimates with intervals (l, u) the difference d = after - before lies between ::

    d - sqrt((after - l_after) ** 2 + (u_before - before) ** 2)
    d + sqrt((u_after - after) ** 2 + (before - l_before) ** 2)

(Newcombe, Statistics in Medicine 1998, method 10), which for large crowds is
d +- z sqrt(Var_before + Var_after). It is the change of the share among all devices, so each
variance counts devices as that of a single period does (see
`deniable_estimator.statistics.participation`). A report does not say which device it is from, so
the two periods are treated as coming from different devices. If the same devices report in both
and keep their values, the choice of devices cancels out, and the interval is too wide: hardly for
periods of one window, considerably for two months of daily reports. Treating them as the same
devices would report false changes as soon as other devices report.
"""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import Metric, windows
from deniable.mechanisms import Memoizing
from deniable_collector.stores.base import Store
from deniable_estimator.answers.shares import Shares
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message, sentence
from deniable_estimator.statistics.intervals import FloatArray, score_interval

__all__ = ["NO_CHANGE", "Comparison", "compare", "has_memory", "plain", "points", "signed"]

NO_CHANGE = message("no change that can be told from noise")


@dataclass(frozen=True, eq=False)
class Comparison:
    """The change of d values from `before` to `after`. Arrays have shape (d,), in shares of 1."""

    before: Shares
    after: Shares
    level: float
    together: bool
    """Whether `changed` is corrected for the number of values."""
    values: tuple[str, ...]
    share_before: FloatArray
    share_after: FloatArray
    difference: FloatArray
    std_error: FloatArray
    low: FloatArray
    high: FloatArray
    """Each interval holds by itself."""
    changed: NDArray[np.bool_]
    """Which values have changed by more than noise: their intervals do not hold zero, also when
    they are widened for the number of values (Bonferroni), if `together`."""

    def describe(self, place: int) -> str:
        """The change of one value in words: "up 2.1 points (95 % CI +0.4 to +3.8)"."""
        difference, low, high = (
            float(column[place]) for column in (self.difference, self.low, self.high)
        )
        if not math.isfinite(difference):
            return message("the change is unknown: one of the two has no reports")
        spread = (high - low) / 2
        level = self.level * 100
        ends = {"level": level, "low": self.ends(place)[0], "high": self.ends(place)[1]}
        if self.changed[place]:
            way = _UP if difference > 0 else _DOWN
            return message(way, change=points(abs(difference), spread), **ends)
        if low > 0 or high < 0:
            return message(_UNCERTAIN, no_change=NO_CHANGE, count=len(self.values), **ends)
        return message(_NONE, no_change=NO_CHANGE, **ends)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to bear in mind about it."""
        if _weekdays(self.before) == _weekdays(self.after):
            return ()
        return (
            message(
                "the two periods do not hold the same weekdays, which alone can change a share"
            ),
        )

    def ends(self, place: int) -> tuple[str, str]:
        """The ends of one value's interval in points, with their signs."""
        low, high = float(self.low[place]), float(self.high[place])
        spread = (high - low) / 2
        # An end just beside zero must not be rounded to it if the interval does not hold zero.
        return (
            signed(low, min(spread, low) if low > 0 else spread),
            signed(high, min(spread, -high) if high < 0 else spread),
        )

    def to_dict(self) -> dict[str, Any]:
        """The comparison for JSON; unknown numbers are null."""
        return {
            "metric": self.after.metric,
            "level": self.level,
            "together": self.together,
            "before": _period(self.before),
            "after": _period(self.after),
            "notes": list(self.notes),
            "values": [dict(zip(_COLUMNS, row, strict=True)) for row in self._rows()],
        }

    def to_csv(self) -> str:
        """One line for each value, under a header (RFC 4180)."""
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow((*_COLUMNS, *_BASIS_COLUMNS))
        basis = tuple(
            each
            for period in (self.before, self.after)
            for each in (period.n, *(period.span or (None, None)))
        )
        writer.writerows((*row, *basis) for row in self._rows())
        return text.getvalue()

    def _rows(self) -> list[tuple[Any, ...]]:
        columns = (
            self.share_before,
            self.share_after,
            self.difference,
            self.std_error,
            self.low,
            self.high,
            self.changed,
        )
        return list(zip(self.values, *map(plain, columns), strict=True))


_UP = sentence("up {change} points ({level:g} % CI {low} to {high})")
_DOWN = sentence("down {change} points ({level:g} % CI {low} to {high})")
_NONE = sentence("{no_change} ({level:g} % CI {low} to {high} points)")
_UNCERTAIN = sentence(
    "{no_change} ({level:g} % CI {low} to {high} points; not significant among {count} values)"
)

_COLUMNS = ("value", "before", "after", "difference", "std_error", "low", "high", "changed")
_BASIS_COLUMNS = tuple(
    f"{name}_{period}" for period in ("before", "after") for name in ("n", "first", "last")
)


def compare(before: Shares, after: Shares, *, together: bool = True) -> Comparison:
    """The change from `before` to `after` of every value that both know, in the order of `after`.

    The noise of their reports must be drawn independently: one metric without memory
    (`has_memory`) over different windows. With `together`, what counts as changed is corrected
    for the number of values.

    Raises:
        EstimateError: they are of different metrics or levels, or share a window.
    """
    if (before.metric, before.level) != (after.metric, after.level):
        raise EstimateError(message("only estimates of one metric and level can be compared"))
    if shared := set(before.windows) & set(after.windows):
        raise EstimateError(
            message(
                "both periods hold {window}: a window cannot be compared with itself, so choose "
                "two ranges that do not overlap",
                window=min(shared),
            )
        )
    known = {value: place for place, value in enumerate(before.values)}
    values = tuple(value for value in after.values if value in known)
    # Of two values in a complete list, one mirrors the other.
    family = 1 if after.complete and len(values) == 2 else max(1, len(values))
    old, _, _, old_variance = _at(before, values, after.level)
    new, _, _, new_variance = _at(after, values, after.level)
    low, high = least, most = _interval(before, after, values, after.level)
    if together and family > 1:
        least, most = _interval(before, after, values, 1 - (1 - after.level) / family)
    return Comparison(
        before=before,
        after=after,
        level=after.level,
        together=together,
        values=values,
        share_before=old,
        share_after=new,
        difference=new - old,
        std_error=np.sqrt(old_variance + new_variance),
        low=low,
        high=high,
        changed=(least > 0) | (most < 0),
    )


def has_memory(store: Store, metric: Metric) -> bool:
    """Whether a device may have reported twice from the same memo, so that the reports of different
    windows are not independent.

    Raises:
        StoreUnavailable: the store cannot answer now.
    """
    published = store.schemes().get(metric.name, {}).values()
    return any(isinstance(scheme.mechanism, Memoizing) for scheme in (metric.scheme, *published))


def points(difference: float, spread: float) -> str:
    """A difference of shares in percentage points, with the digits that its uncertainty allows."""
    decimals = 1
    if 0 < spread < 0.001:
        decimals = min(4, math.ceil(-math.log10(spread * 100)) + 1)
    text = f"{difference * 100:.{decimals}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", "\N{MINUS SIGN}")


def signed(difference: float, spread: float) -> str:
    """The same with its sign, also if that is a plus."""
    text = points(difference, spread)
    return f"+{text}" if difference > 0 and text.strip("0.") else text


def plain(column: NDArray[Any]) -> list[Any]:
    """Python's own numbers, with None for NaN."""
    return [None if isinstance(x, float) and not math.isfinite(x) else x for x in column.tolist()]


def _interval(
    before: Shares, after: Shares, values: tuple[str, ...], level: float
) -> tuple[FloatArray, FloatArray]:
    """The ends of the intervals of the differences (see above)."""
    old, old_low, old_high, _ = _at(before, values, level)
    new, new_low, new_high, _ = _at(after, values, level)
    return (
        new - old - np.hypot(new - new_low, old_high - old),
        new - old + np.hypot(new_high - new, old - old_low),
    )


def _at(
    estimate: Shares, values: tuple[str, ...], level: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Share, interval ends and variance of these values."""
    share = estimate.share
    with np.errstate(invalid="ignore"):
        low, high = score_interval(share, estimate.noise, level)
    variance = estimate.std_error**2
    if values == estimate.values:
        return share, low, high, variance
    index = {value: place for place, value in enumerate(estimate.values)}
    places = [index[value] for value in values]
    return share[places], low[places], high[places], variance[places]


def _weekdays(estimate: Shares) -> dict[int, Fraction]:
    """The part of its windows that each weekday has; nothing where windows are longer."""
    days = [each for each in estimate.windows if windows.kind_of(each) == "day"]
    found = Counter(date.fromisoformat(each).weekday() for each in days)
    return {weekday: Fraction(count, len(days)) for weekday, count in found.items()}


def _period(estimate: Shares) -> dict[str, Any]:
    return {"n": estimate.n, "windows": list(estimate.windows)}
