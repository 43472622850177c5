"""How devices are spread over values: shares with errors, intervals, significance and warnings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable_collector.tally import Tally
from deniable_estimator.analyses import oracle_analysis
from deniable_estimator.analyses.anomalies import Figure, Verdict, figures
from deniable_estimator.analyses.base import Finding
from deniable_estimator.analyses.candidates import asked_values
from deniable_estimator.analyses.poisoning import Exposure
from deniable_estimator.answers.base import Answer, Comparison, Series, beyond_noise
from deniable_estimator.answers.basis import Basis, Table, caveats, footnotes
from deniable_estimator.answers.files import plain, records
from deniable_estimator.answers.units import RANGES, SHARES, Unit, are_ranges
from deniable_estimator.messages import message
from deniable_estimator.statistics.counts import change_p_values, share_interval
from deniable_estimator.statistics.intervals import FloatArray, Noise, interval_of_difference
from deniable_estimator.statistics.normalization import Normalization
from deniable_estimator.statistics.participation import Participation
from deniable_estimator.statistics.significance import (
    Adjustment,
    adjust_p,
    far_scores,
)

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
        return footnotes(self.n, self.windows, devices=self.devices, complete=self.complete)

    @property
    def normalized(self) -> FloatArray:
        """The shares, not negative and with a sum of 1 (of candidates, of at most 1)."""
        return self.normalization.shares

    @property
    def gain(self) -> FloatArray:
        """The most that so many fake devices add to each share."""
        gain: FloatArray = self.fakes * self.exposure.gain
        return gain

    @property
    def loss(self) -> FloatArray:
        """The most that so many fake devices take from each share."""
        loss: FloatArray = self.fakes * self.exposure.loss
        return loss

    @property
    def budget(self) -> float:
        """The most that so many fake devices add to any one of the shares; NaN without reports."""
        known = self.gain[np.isfinite(self.gain)]
        return float(known.max()) if self.n and len(known) else math.nan

    @property
    def detected(self) -> NDArray[np.bool_]:
        """Which values are detected, by the adjusted p-values."""
        detected: NDArray[np.bool_] = self.p_adjusted <= 1 - self.level
        return detected

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
        found: NDArray[np.bool_] = beyond & (
            # From below, as a level may be so small that 1 minus it is 1.
            scores > -NormalDist().inv_cdf(max(self.alarm_level / family, 5e-324))
        )
        return found

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The indices of the values, the largest share first. Cached, because sorting a million is
        slow."""
        return np.argsort(-self.share, kind="stable")

    @cached_property
    def standing(self) -> NDArray[np.intp]:
        """The places of the detected values, the largest first, without impossible ones."""
        return self.order[(self.detected & ~self.impossible)[self.order]]

    @cached_property
    def below(self) -> NDArray[np.intp]:
        """The indices of the values that are not distinguishable from noise, the largest first."""
        return self.order[~(self.detected | self.impossible)[self.order]]

    @property
    def strange(self) -> NDArray[np.intp]:
        """The indices of the values with impossible shares, those furthest out first."""
        places = np.flatnonzero(self.impossible)
        return places[np.argsort(-np.abs(self.share[places] - 0.5), kind="stable")]

    @property
    def moved(self) -> NDArray[np.bool_]:
        """Which values normalization has moved by more than their standard error."""
        moved: NDArray[np.bool_] = np.abs(self.normalized - self.share) > self.std_error
        return moved

    def numbers(self, places: NDArray[np.intp] | None = None) -> dict[str, Any]:
        """`adjustment`, `complete`, and `values`: a list with one object for each value, with
        `value` and every name in `COLUMNS`; of the values at `places` alone, if given."""
        return {
            "adjustment": self.adjustment,
            "complete": self.complete,
            "values": records(("value", *COLUMNS), *self._columns(places)),
        }

    def csv_table(self, places: NDArray[np.intp] | None = None) -> Table:
        """One line for each value, or for those at `places`."""
        return ("value", *COLUMNS), zip(*map(plain, self._columns(places)), strict=True)

    def to_dict(self, places: NDArray[np.intp] | None = None) -> dict[str, Any]:
        return {**self.head(), **self.numbers(places)}

    def to_csv(self, places: NDArray[np.intp] | None = None, *, raw: bool = False) -> str:
        return self.csv_of(self.csv_table(places), raw=raw)

    def _columns(self, places: NDArray[np.intp] | None) -> list[Iterable[Any]]:
        columns = [getattr(self, name) for name in COLUMNS]
        if places is None:
            return [self.values, *columns]
        return [[self.values[at] for at in places.tolist()], *(each[places] for each in columns)]

    def change_from(
        self,
        before: Shares,
        *,
        together: bool = True,
        adjust: Adjustment = "storey",
        alpha: float | None = None,
    ) -> Comparison:
        values = self.values
        if before.values != values:
            known = set(before.values)
            values = tuple(value for value in values if value in known)
        was, now = before.places(values), self.places(values)
        old, new = before.at(was, self.level), self.at(now, self.level)
        noises = before.noise.taken(was), self.noise.taken(now)
        p_value = change_p_values(old[0], noises[0], new[0], noises[1])
        # Of two values in a complete list, one mirrors the other.
        mirrored = self.complete and len(values) == 2
        adjusted = adjust_p(p_value, adjust) if together and not mirrored else p_value
        low, high = interval_of_difference(old, new)
        return Comparison(
            before=before,
            after=self,
            level=self.level,
            together=together,
            values=values,
            old=old[0],
            new=new[0],
            difference=new[0] - old[0],
            std_error=np.sqrt(before.std_error[was] ** 2 + self.std_error[now] ** 2),
            low=low,
            high=high,
            changed=beyond_noise(adjusted, low, high, 1 - self.level if alpha is None else alpha),
        )

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


def estimate(
    tally: Tally,
    scheme: Scheme,
    candidates: Sequence[str] | None = None,
    *,
    level: float = 0.95,
    adjust: Adjustment = "storey",
    participation: Participation | None = None,
    unit: str | None = None,
) -> Shares:
    """Estimate the share of each value, or of each candidate, from a tally of one scheme.

    Candidates follow the rule of `deniable.protocol.value_list`, and are in normal form C in the
    result. `unit` has no meaning for shares. `participation` says how often the same device may
    have reported. Without it, all devices are assumed to have reported in every window of the
    tally.

    Raises:
        EstimateError: the tally does not belong to the scheme, or a candidate cannot be a value,
            is listed twice, or is not in the domain.
        ValueError: `level` is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    mechanism = scheme.oracle
    values, items = asked_values(tally, scheme, candidates)
    participation = participation or Participation.evenly(tally)
    repeats = participation.repeats
    basis = Basis.of(tally, scheme, participation)
    analysis = oracle_analysis(mechanism)
    found, reports = analysis.find(tally, items, level, repeats)
    exposure = Exposure.of(mechanism, found.share, tally.reports, reports)
    # Without memos devices keep neither bits nor rows, so their reports look independent.
    kept = repeats if analysis.memory else 1.0
    seen = figures(tally, analysis, found.share, found.noise, kept)
    complete = candidates is None
    return infer(basis, complete, values, found, exposure, seen, level, adjust)


class Numbers(NamedTuple):
    """What follows from shares and their noise; arrays have shape (d,)."""

    std_error: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray
    p_adjusted: FloatArray


def errors_of(
    share: FloatArray, noise: Noise, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The standard errors of shares, and the ends of their intervals; shape (d,) each."""
    low, high = share_interval(share, noise, level)
    with np.errstate(invalid="ignore"):
        std_error = np.sqrt(noise.at(share))
    std_error[~np.isfinite(share)] = np.nan
    return std_error, low, high


def infer(
    basis: Basis,
    complete: bool,
    values: tuple[str, ...],
    found: Finding,
    exposure: Exposure,
    seen: Sequence[Figure],
    level: float,
    adjust: Adjustment,
) -> Shares:
    """The estimate from unbiased shares, their noise and the verdict on their tallies.

    Raises:
        ValueError: `level` is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    p_value = np.where(found.ghosts, 1.0, found.p_value)
    errors = errors_of(found.share, found.noise, level)
    numbers = Numbers(*errors, p_value, adjust_p(p_value, adjust))
    warnings = caveats(
        basis.n,
        basis.windows,
        found.noise,
        level,
        devices=basis.devices,
        complete=complete,
    )
    return assembled(
        *(basis, complete, values, found, exposure, seen, level, adjust, numbers, warnings)
    )


def assembled(
    basis: Basis,
    complete: bool,
    values: tuple[str, ...],
    found: Finding,
    exposure: Exposure,
    seen: Sequence[Figure],
    level: float,
    adjust: Adjustment,
    numbers: Numbers,
    caveats: tuple[str, ...],
) -> Shares:
    """The estimate, of which all numbers are known."""
    warnings = found.warnings + caveats
    if found.ghosts.any():
        warnings += (
            message(
                "{count:,} of the candidates look like accidents of hashing: they do not count as "
                "detected",
                count=int(found.ghosts.sum()),
            ),
        )
    detected = numbers.p_adjusted <= 1 - level
    return Shares(
        **vars(basis),
        level=level,
        complete=complete,
        adjustment=adjust,
        values=values,
        share=found.share,
        **numbers._asdict(),
        normalization=Normalization(found.share, detected, found.ghosts, complete),
        noise=found.noise,
        ghosts=found.ghosts,
        exposure=exposure,
        verdict=Verdict.of(seen),
        warnings=warnings,
    )
