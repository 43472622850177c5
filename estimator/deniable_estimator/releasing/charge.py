"""What a release spends of a device's privacy, and what several of them spend together.

Two devices are neighbours if all their reports differ. A device reports to a metric in at most
`limit` windows, so only the windows that cost the most count, however many are released. Costs of
windows are added up within a metric, and those of metrics as well, because a device reports to all.

Three ways are tried, and the least total is taken, at one delta for all releases together:

* basic: epsilons and deltas are added;
* concentrated: epsilons of pure mechanisms count as epsilon**2 / 2 of zero-concentrated privacy,
  which is added to that of Gaussian noise and converted at the end (Bun and Steinke, TCC 2016);
  exact sums are added to the result;
* advanced composition (Kairouz, Oh and Viswanath, ICML 2015) of all releases.

An exact sum counts with what it reveals to a reader of sums, together with all earlier ones that it
shares reports with: the noise of these reports is in each of them, so what each reveals by itself
cannot be added up (see `overlaps.py`). Noise counts with its epsilon, which
also holds against readers who know all other reports. If it tells apart reports that exact sums
hold together, what these reveal more because of that is added.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Literal, TypeAlias

from deniable_estimator.privacy.composition import advanced
from deniable_estimator.releasing.noise import Method, of_rho
from deniable_estimator.releasing.overlaps import Counted

Kind: TypeAlias = Method | Literal["exact"]


@dataclass(frozen=True, slots=True)
class Charge:
    """What one release spends.

    Attributes:
        limit: in how many windows a device reports at most; None without a limit.
        epsilon, delta: the guarantee of the whole release for a device.
        window_epsilon: what one window adds to a pure epsilon; None where there is none.
        window_rho: what one window adds to a rho; None for exact sums.
        sums: where the reports of each sum are counted, with noise or without.
        separated: what exact sums of the same reports reveal more because of this noise.
    """

    metric: str
    windows: tuple[str, ...]
    limit: int | None
    kind: Kind
    epsilon: float
    delta: float
    window_epsilon: float | None = None
    window_rho: float | None = None
    sums: tuple[Counted, ...] = ()
    separated: float = 0.0

    def to_json(self) -> str:
        """Its text in the ledger."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Charge:
        """What `to_json` gave."""
        found = json.loads(text)
        told = {"windows": tuple(found["windows"]), "sums": tuple(found["sums"])}
        return cls(**{**found, **told})


def total(charges: Sequence[Charge], delta: float) -> float:
    """The epsilon of all these releases together for one device, at `delta`; infinite if delta is
    spent."""
    if not charges:
        return 0.0
    sums = [each for each in charges if each.window_rho is None]
    noised = [each for each in charges if each.window_rho is not None]
    spent = _sum(charges, "delta")
    for_noise = delta - _sum(sums, "delta")
    ways = [math.inf]
    if spent <= delta:
        ways.append(_sum(charges, "epsilon", "window_epsilon"))
    if noised and for_noise > 0:
        rho = _sum(noised, "window_rho", "window_rho")
        ways.append(of_rho(rho, for_noise) + _sum(sums, "epsilon"))
    if spent < delta:
        ways.append(advanced([(each.epsilon, 1) for each in charges], delta - spent))
    return min(ways) + math.fsum(each.separated for each in charges)


def _sum(charges: Iterable[Charge], whole: str, of_window: str = "") -> float:
    """The most that the costs `whole` come to for one device; `whole` and `of_window` name fields
    of a charge.

    A release of a single window costs in that window alone, and one that has a cost `of_window`
    has it in each of its windows. Of others the cost counts once, in whichever window a device
    reports.
    """
    found = 0.0
    metrics: dict[str, list[Charge]] = defaultdict(list)
    for charge in charges:
        metrics[charge.metric].append(charge)
    for each in metrics.values():
        windows: dict[str, float] = defaultdict(float)
        limits = [charge.limit for charge in each]
        for charge in each:
            cost = getattr(charge, whole if len(charge.windows) == 1 else of_window, None)
            if cost is None:
                found += getattr(charge, whole)
                continue
            for label in charge.windows:
                windows[label] += cost
        known = [limit for limit in limits if limit is not None]
        most = max(known) if len(known) == len(limits) else None
        found += math.fsum(sorted(windows.values(), reverse=True)[:most])
    return found


MOST_STEPS = 24
"""The most days of which an account says what was spent by then."""

_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class ReleasesSpent:
    """What all releases spend together, and the budget.

    Attributes:
        delta: at which the total is stated.
        budget: the most that the total may be; None without a limit.
    """

    releases: int
    epsilon: float
    delta: float
    budget: float | None

    @classmethod
    def of(cls, charges: Sequence[Charge], delta: float, budget: float | None) -> ReleasesSpent:
        """What these charges come to."""
        return cls(len(charges), total(charges, delta), delta, budget)

    @property
    def refused(self) -> bool:
        """Whether it is more than the budget, or than delta allows."""
        if self.budget is None:
            return math.isinf(self.epsilon)
        # Three times 0.1 is a little more than 0.3 in floats, and is allowed.
        return self.epsilon > self.budget * (1 + _ROUNDING)

    def to_dict(self) -> dict[str, Any]:
        """For JSON; an epsilon that cannot be stated is null."""
        return {**asdict(self), "epsilon": None if math.isinf(self.epsilon) else self.epsilon}


@dataclass(frozen=True, slots=True)
class ReleaseAccount:
    """What the releases of a ledger spend of one device's privacy.

    Attributes:
        total: all of them together.
        metrics: those of each metric alone, the most first. The total is not their sum: each is
            the least of three bounds for its own releases.
        unfinished: how many of them were charged and never published.
        steps: what was spent by the end of a day, of up to `MOST_STEPS` days, the oldest first.
    """

    total: ReleasesSpent
    metrics: Mapping[str, ReleasesSpent]
    unfinished: int
    steps: tuple[tuple[date, float], ...]

    @classmethod
    def of(
        cls, made: Sequence[tuple[date, Charge, bool]], delta: float, budget: float | None
    ) -> ReleaseAccount:
        """That of releases in the order in which they were made: the day of each, its charge, and
        whether it was published."""
        charges = [charge for _, charge, _ in made]
        by_metric: dict[str, list[Charge]] = defaultdict(list)
        for charge in charges:
            by_metric[charge.metric].append(charge)
        found = {name: ReleasesSpent.of(each, delta, None) for name, each in by_metric.items()}
        order = sorted(found, key=lambda name: (-found[name].epsilon, name))
        return cls(
            ReleasesSpent.of(charges, delta, budget),
            {name: found[name] for name in order},
            sum(not finished for *_, finished in made),
            tuple(_steps([day for day, *_ in made], charges, delta)),
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON; an epsilon that cannot be stated is null."""
        metrics = {
            name: {key: each.to_dict()[key] for key in ("releases", "epsilon")}
            for name, each in self.metrics.items()
        }
        return {
            "total": {**self.total.to_dict(), "unfinished": self.unfinished},
            "metrics": metrics,
        }


def _steps(
    made: Sequence[date], charges: Sequence[Charge], delta: float
) -> Iterator[tuple[date, float]]:
    """What was spent by the end of each day. Of more days than `MOST_STEPS`, some are left out,
    and never the last one."""
    ends: dict[date, int] = {}
    latest = date.min
    for count, day in enumerate(made, 1):
        # After a clock was set back, a release counts on the latest day that there was before.
        latest = max(latest, day)
        ends[latest] = count
    days = list(ends)
    if len(days) > MOST_STEPS:
        last = len(days) - 1
        days = [days[round(place * last / (MOST_STEPS - 1))] for place in range(MOST_STEPS)]
    for day in days:
        yield day, ReleasesSpent.of(charges[: ends[day]], delta, None).epsilon
