"""How devices are spread over values: shares with errors, intervals, significance and warnings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.analyses.base import Exposure
from deniable_estimator.document.csv_files import Table, plain, records
from deniable_estimator.document.units import RANGES, SHARES, Unit, are_ranges
from deniable_estimator.kinds.base import Answer, ChangeTest, Comparison, Series
from deniable_estimator.kinds.basis import footnotes
from deniable_estimator.statistics.counts import p_values_of_changes, share_interval
from deniable_estimator.statistics.intervals import FloatArray, Noise, interval_of_difference
from deniable_estimator.statistics.normalization import Normalization
from deniable_estimator.statistics.significance import Adjustment, adjust_p, far_scores

COLUMNS = (
    "share",
    "std_error",
    "low",
    "high",
    "p_value",
    "p_adjusted",
    "detected",
    "normalized",
    "moved",
    "gain",
    "loss",
    "impossible",
)
"""The fields of an Estimate for each value, in the order of its table, CSV and JSON."""


_PIECE = 20_000

_COLLISIONS = 0.01
"""By so much other strings may move the share of a candidate beyond what its noise says."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Shares(Answer):
    """How devices are spread over d values. Arrays have shape (d,); shares are fractions of 1.

    A share is the share among all devices that could report, averaged over the windows; those
    that did report are treated as a random sample of them. `share` is unbiased and may be below
    0 or above 1, and so may the ends of the interval. `normalized` shares are not negative and
    sum to 1 (for candidates, to at most 1). Without reports all numbers are NaN, which is null
    in JSON and an empty field in CSV.
    """

    kind = "shares"
    headings = ("value", "share")

    complete: bool
    """Whether the list of values is complete, so that their true shares sum to one."""
    adjustment: Adjustment
    """How p-values are adjusted; 1 minus `level` is the level of detection."""
    values: tuple[str, ...]
    share: FloatArray
    std_error: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray
    """One-sided, for the hypothesis that no device has the value."""
    p_adjusted: FloatArray
    normalization: Normalization = field(repr=False)
    noise: Noise = field(repr=False)
    ghosts: NDArray[np.bool_]
    """Values whose support looks like a hash collision: they are never detected, and their
    normalized share is 0."""
    exposure: Exposure = field(repr=False)
    """How far fake devices can move each share."""

    @property
    def unit(self) -> Unit:
        return RANGES if are_ranges(self.values) else SHARES

    @cached_property
    def series(self) -> Series:
        return Series(self.values, self.share, self.std_error, self.low, self.high)

    @property
    def leading(self) -> str:
        """The largest; of a boolean, "true"."""
        return "true" if self.boolean else self.values[int(self.share.argmax())]

    @property
    def own(self) -> tuple[str, ...]:
        return ("true",) if self.boolean else self.values

    @property
    def boolean(self) -> bool:
        """Whether it answers a question with yes or no."""
        return self.values == ("true", "false")

    @property
    def footnotes(self) -> tuple[str, ...]:
        return footnotes(self, complete=self.complete)

    @property
    def normalized(self) -> FloatArray:
        """The shares, not negative and with a sum of 1 (of candidates, of at most 1)."""
        return self.normalization.shares

    @property
    def gain(self) -> FloatArray:
        """The most that so many fake devices add to each share."""
        return self.fakes * self.exposure.gain

    @property
    def loss(self) -> FloatArray:
        """The most that so many fake devices take from each share."""
        return self.fakes * self.exposure.loss

    @property
    def budget(self) -> float:
        """The most that so many fake devices add to any one of the shares; NaN without reports."""
        known = self.gain[np.isfinite(self.gain)]
        return float(known.max()) if self.n and len(known) else math.nan

    @property
    def detected(self) -> NDArray[np.bool_]:
        """Which values are detected, by the adjusted p-values."""
        return self.p_adjusted <= 1 - self.level

    @cached_property
    def impossible(self) -> NDArray[np.bool_]:
        """Which shares lie so far below 0 or above 1 that honest devices bring any of them there
        at most as often as `alarm_level` says."""
        with np.errstate(invalid="ignore"):
            beyond: NDArray[np.bool_] = (self.high < 0) | (self.low > 1)
        if not beyond.any():
            return beyond
        # Strings that are not asked for can take a little from others.
        slack = 0.0 if self.complete else _COLLISIONS
        scores = far_scores(self.share, self.noise, slack)
        family = int(np.isfinite(self.share).sum())
        return beyond & (
            # From below, as a level may be so small that 1 minus it is 1.
            scores > -NormalDist().inv_cdf(max(self.alarm_level / family, 5e-324))
        )

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The indices of the values, the largest share first. Cached, because sorting a million is
        slow."""
        return np.argsort(-self.share, kind="stable")

    @property
    def strange(self) -> NDArray[np.intp]:
        """The indices of the values with impossible shares, those furthest out first."""
        places = np.flatnonzero(self.impossible)
        return places[np.argsort(-np.abs(self.share[places] - 0.5), kind="stable")]

    @cached_property
    def parted(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The places of the values that stand out, the impossible and then the largest first, and
        of those that cannot be told from noise, which are to be folded away. Where none stands out
        none is folded away, nor is one half of a boolean."""
        order, impossible = self.order, self.impossible[self.order]
        detected = self.detected[order]
        standing = np.concatenate((self.strange, order[detected & ~impossible]))
        if self.boolean or not len(standing):
            return order, order[:0]
        return standing, order[~(detected | impossible)]

    @property
    def moved(self) -> NDArray[np.bool_]:
        """Which values normalization has moved by more than their standard error."""
        return np.abs(self.normalized - self.share) > self.std_error

    def numbers(self, places: NDArray[np.intp] | None = None) -> dict[str, Any]:
        """`adjustment`, `complete`, and `values`: a list with one object for each value, with
        `value` and every name in `COLUMNS`; of the values at `places` alone, if given."""
        return {
            "adjustment": self.adjustment,
            "complete": self.complete,
            "values": records(("value", *COLUMNS), *self._columns(places)),
        }

    def own_table(self, places: NDArray[np.intp] | None = None) -> Table:
        """One line for each value, or for those at `places`."""
        pieces = map(self._columns, self.pieces(places))
        lines = (line for each in pieces for line in zip(*map(plain, each), strict=True))
        return ("value", *COLUMNS), lines

    def pieces(self, places: NDArray[np.intp] | None) -> Iterator[NDArray[np.intp]]:
        """These places, or all, some at a time: a million values, all at once as Python has them,
        would take a gigabyte."""
        asked = np.arange(len(self.values)) if places is None else places
        for first in range(0, len(asked), _PIECE):
            yield asked[first : first + _PIECE]

    def to_dict(self, places: NDArray[np.intp] | None = None) -> dict[str, Any]:
        return {**self.head(), **self.numbers(places)}

    def _columns(self, places: NDArray[np.intp] | None) -> list[Iterable[Any]]:
        columns = [getattr(self, name) for name in COLUMNS]
        if places is None:
            return [self.values, *columns]
        return [[self.values[at] for at in places.tolist()], *(each[places] for each in columns)]

    def change_from(self, before: Shares, test: ChangeTest) -> Comparison:
        (found,) = self.changes([(before, self)], test)
        return found

    @classmethod
    def changes(cls, pairs: Sequence[tuple[Shares, Shares]], test: ChangeTest) -> list[Comparison]:
        shared = [after._shared(before) for before, after in pairs]
        crowds = [
            (before.share[was], before.noise.taken(was), after.share[now], after.noise.taken(now))
            for (before, after), (_, was, now) in zip(pairs, shared, strict=True)
        ]
        found = []
        for (before, after), (values, was, now), p_value in zip(
            pairs, shared, p_values_of_changes(crowds), strict=True
        ):
            old, new = before.at(was, after.level), after.at(now, after.level)
            # Of two values in a complete list, one mirrors the other.
            several = test.together and not (after.complete and len(values) == 2)
            adjusted = adjust_p(p_value, test.adjust) if several else p_value
            std_error = np.sqrt(before.std_error[was] ** 2 + after.std_error[now] ** 2)
            numbers = old[0], new[0], std_error, *interval_of_difference(old, new), adjusted
            found.append(Comparison(before, after, test, values, *numbers))
        return found

    def _shared(self, before: Shares) -> tuple[tuple[str, ...], NDArray[np.intp], NDArray[np.intp]]:
        """The values that both have, and their places in each."""
        values = self.values
        if before.values != values:
            known = set(before.values)
            values = tuple(value for value in values if value in known)
        return values, before.places(values), self.places(values)

    def at(
        self, places: NDArray[np.intp], level: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Share and interval ends of the values at these indices, at another level."""
        if level == self.level:
            return self.share[places], self.low[places], self.high[places]
        share = self.share[places]
        return share, *share_interval(share, self.noise.taken(places), level)

    def places(self, values: tuple[str, ...]) -> NDArray[np.intp]:
        """The indices of these values."""
        if values == self.values:
            return np.arange(len(values))
        index = {value: place for place, value in enumerate(self.values)}
        return np.array([index[value] for value in values], np.intp)
