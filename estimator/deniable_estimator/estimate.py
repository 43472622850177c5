"""A tally becomes an Estimate: shares with errors, intervals, significance and caveats."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable import Scheme
from deniable.mechanisms import Mechanism, Memoizing
from deniable_collector.tally import Tally
from deniable_estimator.anomalies import ALARM_LEVEL, Figure, Verdict, figures
from deniable_estimator.caveats import caveats
from deniable_estimator.cohorts import decode_cohorts, fits
from deniable_estimator.decoders import asked_values, supported
from deniable_estimator.decoders.support import Items, Support
from deniable_estimator.finding import Finding
from deniable_estimator.intervals import FloatArray, Noise, debias, score_interval
from deniable_estimator.memoized import kept_noise
from deniable_estimator.messages import message
from deniable_estimator.normalization import normalize
from deniable_estimator.participation import Participation
from deniable_estimator.poisoning import FAKES, Exposure
from deniable_estimator.significance import Adjustment, adjust_p, far_scores

__all__ = ["COLUMNS", "Basis", "Estimate", "estimate", "infer"]

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
"""What an Estimate says of each value, in the order of its table, CSV and JSON."""


_COLLISIONS = 0.01
"""By so much other strings may move the share of a candidate beyond what its noise says."""


@dataclass(frozen=True, eq=False)
class Basis:
    """What an estimate rests on."""

    metric: str
    schemes: tuple[str, ...]
    """Fingerprints."""
    windows: tuple[str, ...]
    n: int
    """Reports. In one window each is another device's."""
    participation: Participation = field(repr=False)
    """How often the same device may be among them."""
    epsilon: float
    """The most that one of these reports can reveal, exact and rounded up."""
    complete: bool
    """Whether the values are all there are, so that their true shares sum to one."""

    @property
    def devices(self) -> float:
        """At least so many devices have reported, and as so many the intervals count them."""
        return self.participation.devices


@dataclass(frozen=True, eq=False)
class Estimate(Basis):
    """The answer to one metric, for d values. Arrays have shape (d,); shares are fractions of 1.

    A share is that among all devices which could report, averaged over the windows; those that
    did report are taken for a random sample of them.
    `share` is unbiased and may lie below 0 or above 1; so may the interval's ends.
    `normalized` shares are not negative and sum to 1 (of candidates, to at most 1). Without
    reports all numbers are NaN, which JSON shows as null and CSV as an empty field.
    """

    level: float
    """Of each value's interval, and 1 minus the level at which a value counts as detected."""
    adjustment: Adjustment
    values: tuple[str, ...]
    share: FloatArray
    std_error: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray
    """One-sided, of "nobody has it"."""
    p_adjusted: FloatArray
    normalized: FloatArray
    noise: Noise = field(repr=False)
    ghosts: NDArray[np.bool_]
    """Values whose support looks like an accident of hashing: never detected, and their
    normalized share is 0."""
    exposure: Exposure = field(repr=False)
    """How far fake devices can move each share."""
    verdict: Verdict
    """Whether the tallies look like the sums of honest reports."""
    warnings: tuple[str, ...] = ()
    fakes: float = FAKES
    """The part of all reports that `gain` and `loss` take to be fake; `replace` it at will."""
    alarm_level: float = ALARM_LEVEL
    """How often an estimate from honest devices alone may be called anomalous."""

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
    def anomalous(self) -> bool:
        """Whether what was reported is unlike what honest devices report."""
        return bool(self.verdict.alarms(self.alarm_level))

    @property
    def detected(self) -> NDArray[np.bool_]:
        """Which values are there, as far as the adjusted p-values can tell."""
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
        """The places of the values, the largest share first. Kept, as a million take a while."""
        return np.argsort(-self.share, kind="stable")

    @cached_property
    def standing(self) -> NDArray[np.intp]:
        """The places of the detected values, the largest first, without impossible ones."""
        return self.order[(self.detected & ~self.impossible)[self.order]]

    @cached_property
    def below(self) -> NDArray[np.intp]:
        """The places of the values that cannot be told from noise, the largest first."""
        return self.order[~(self.detected | self.impossible)[self.order]]

    @property
    def strange(self) -> NDArray[np.intp]:
        """The places of the values with impossible shares, those furthest out first."""
        places = np.flatnonzero(self.impossible)
        return places[np.argsort(-np.abs(self.share[places] - 0.5), kind="stable")]

    @property
    def moved(self) -> NDArray[np.bool_]:
        """Which values normalization has moved by more than their standard error."""
        moved: NDArray[np.bool_] = np.abs(self.normalized - self.share) > self.std_error
        return moved

    def to_dict(self, places: NDArray[np.intp] | None = None) -> dict[str, Any]:
        """The estimate as JSON can carry it; of the values at `places` alone, if given.

        Keys: `metric`, `schemes`, `windows`, `n`, `devices`, `epsilon`, `level`, `adjustment`,
        `complete`, `warnings`, `poisoning` (`fakes`, and what they add to any one share at
        most), `anomalies` (as `Verdict.to_dict`), and `values`: a list with one object for each
        value, with `value` and every name in `COLUMNS`.
        """
        budget = None if math.isnan(self.budget) else self.budget
        return {
            "metric": self.metric,
            "schemes": list(self.schemes),
            "windows": list(self.windows),
            "n": self.n,
            "devices": round(self.devices),
            "epsilon": self.epsilon,
            "level": self.level,
            "adjustment": self.adjustment,
            "complete": self.complete,
            "warnings": list(self.warnings),
            "poisoning": {"fakes": self.fakes, "most": budget},
            "anomalies": self.verdict.to_dict(self.alarm_level),
            "values": [
                dict(zip(("value", *COLUMNS), row, strict=True)) for row in self._rows(places)
            ],
        }

    def to_csv(self, places: NDArray[np.intp] | None = None) -> str:
        """One line for each value under a header of `value` and `COLUMNS` (RFC 4180); for the
        values at `places` alone, if given."""
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(("value", *COLUMNS))
        writer.writerows(self._rows(places))
        return text.getvalue()

    def _rows(self, places: NDArray[np.intp] | None) -> Iterator[tuple[Any, ...]]:
        columns = [getattr(self, name) for name in COLUMNS]
        if places is None:
            return zip(self.values, *map(_plain, columns), strict=True)
        values = [self.values[place] for place in places.tolist()]
        return zip(values, *(_plain(column[places]) for column in columns), strict=True)


def _plain(column: NDArray[Any]) -> list[Any]:
    """Python's own numbers, with None for NaN."""
    plain: list[Any] = column.tolist()
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        return [each if math.isfinite(each) else None for each in plain]
    return plain


def estimate(
    tally: Tally,
    scheme: Scheme,
    candidates: Sequence[str] | None = None,
    *,
    level: float = 0.95,
    adjust: Adjustment = "storey",
    participation: Participation | None = None,
) -> Estimate:
    """Estimate the share of each value, or of each candidate, from a tally of one scheme.

    Candidates follow the rule of `deniable.value_list`, and stand in normal form C in the answer.
    `participation` says how often the same device may have reported; if not given, it is taken
    that all devices have in every window of the tally.

    Raises:
        EstimateError: the tally is not the scheme's, or a candidate cannot be a value, is there
            twice, or is not in the domain.
        ValueError: `level` is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    mechanism = scheme.mechanism
    values, items = asked_values(tally, scheme, candidates)
    participation = participation or Participation.evenly(tally)
    repeats = participation.repeats
    basis = Basis(
        tally.metric,
        (scheme.fingerprint,),
        tally.windows,
        tally.reports,
        participation,
        mechanism.epsilon,
        complete=candidates is None,
    )
    reports: int | NDArray[np.int64] = tally.reports
    if fits(mechanism, items):
        found = decode_cohorts(tally, mechanism, items, level, repeats)
    else:
        support, share, noise = direct_shares(tally, mechanism, items)
        reports = support.reports
        noise = replace(noise, kept=kept_noise(mechanism, tally.reports, repeats))
        found = Finding.of(share, noise, support.ghosts)
    exposure = Exposure.of(mechanism, found.share, tally.reports, reports)
    # Without memory devices keep neither bits nor rows, so these look as if of other devices.
    kept = repeats if isinstance(mechanism, Memoizing) else 1.0
    seen = figures(tally, mechanism, found.share, found.noise, kept)
    return infer(basis, values, found, exposure, seen, level, adjust)


def direct_shares(
    tally: Tally, mechanism: Mechanism[Any], items: Items
) -> tuple[Support, FloatArray, Noise]:
    """What supports each item, its unbiased share, and the noise of reports of as many devices."""
    support = supported(tally, mechanism, items)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = debias(support.counts, support.reports, mechanism.p, mechanism.q)
    return support, share, Noise.of(mechanism.p, mechanism.q, support.reports, len(share))


def infer(
    basis: Basis,
    values: tuple[str, ...],
    found: Finding,
    exposure: Exposure,
    seen: Sequence[Figure],
    level: float,
    adjust: Adjustment,
) -> Estimate:
    """Everything that follows from unbiased shares, their noise and what their tallies look like.

    Raises:
        ValueError: `level` is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    share, noise = found.share, found.noise
    known = np.isfinite(share)
    with np.errstate(invalid="ignore"):
        low, high = score_interval(share, noise, level)
        std_error = np.sqrt(noise.at(share))
    std_error[~known] = np.nan
    p_value = np.where(found.ghosts, 1.0, found.p_value)
    warnings = found.warnings + caveats(
        basis.n,
        basis.windows,
        noise,
        level,
        devices=basis.devices,
        complete=basis.complete,
    )
    if found.ghosts.any():
        warnings += (
            message(
                "{count:,} of the candidates look like accidents of hashing: they do not count as "
                "detected",
                count=int(found.ghosts.sum()),
            ),
        )
    p_adjusted = adjust_p(p_value, adjust)
    normalized = np.where(known, 0.0, np.nan)
    real = known & ~found.ghosts
    if real.any():
        detected = p_adjusted[real] <= 1 - level
        normalized[real] = normalize(share[real], detected, complete=basis.complete)
    return Estimate(
        **{each.name: getattr(basis, each.name) for each in fields(Basis)},
        level=level,
        adjustment=adjust,
        values=values,
        share=share,
        std_error=std_error,
        low=low,
        high=high,
        p_value=p_value,
        p_adjusted=p_adjusted,
        normalized=normalized,
        noise=noise,
        ghosts=found.ghosts,
        exposure=exposure,
        verdict=Verdict.of(seen),
        warnings=warnings,
    )
