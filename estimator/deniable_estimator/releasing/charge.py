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

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from deniable_estimator.privacy.composition import advanced
from deniable_estimator.releasing.noise import of_rho
from deniable_estimator.releasing.overlaps import Counted

Kind: TypeAlias = Literal["exact", "laplace", "gaussian", "exponential"]


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

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "windows": list(self.windows), "sums": list(self.sums)}

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Charge:
        """What `to_dict` gave."""
        told = {"windows": tuple(found["windows"]), "sums": tuple(found["sums"])}
        return cls(**{**found, **told})


def total(charges: Sequence[Charge], delta: float) -> float:
    """The epsilon of all these releases together for one device, at `delta`; infinite if delta is
    spent."""
    if not charges:
        return 0.0
    least = min(_basic(charges, delta), _concentrated(charges, delta), _advanced(charges, delta))
    return least + math.fsum(each.separated for each in charges)


def _basic(charges: Sequence[Charge], delta: float) -> float:
    if _sum(charges, lambda each: each.delta) > delta:
        return math.inf
    return _sum(charges, _whole)


def _concentrated(charges: Sequence[Charge], delta: float) -> float:
    sums = [each for each in charges if each.window_rho is None]
    noised = [each for each in charges if each.window_rho is not None]
    left = delta - _sum(sums, lambda each: each.delta)
    if left <= 0 or not noised:
        return math.inf
    rho = _sum(noised, _rho, additive=True)
    return of_rho(rho, left) + _sum(sums, _whole)


def _advanced(charges: Sequence[Charge], delta: float) -> float:
    left = delta - _sum(charges, lambda each: each.delta)
    if left <= 0:
        return math.inf
    return advanced([(each.epsilon, 1) for each in charges], left)


def _rho(charge: Charge) -> float:
    assert charge.window_rho is not None
    return charge.window_rho


def _whole(charge: Charge) -> float:
    return charge.epsilon


def _sum(
    charges: Iterable[Charge], cost: Callable[[Charge], float], *, additive: bool = False
) -> float:
    """The most that these costs come to for one device.

    A release of a single window, and every one of `additive` costs, costs in its windows alone. Of
    others the cost counts once, in whichever window a device reports.
    """
    found = 0.0
    metrics: dict[str, list[Charge]] = defaultdict(list)
    for charge in charges:
        metrics[charge.metric].append(charge)
    for each in metrics.values():
        windows: dict[str, float] = defaultdict(float)
        limits = [charge.limit for charge in each]
        for charge in each:
            if additive or len(charge.windows) == 1:
                for label in charge.windows:
                    windows[label] += cost(charge)
            elif charge.window_epsilon is not None and cost is _whole:
                for label in charge.windows:
                    windows[label] += charge.window_epsilon
            else:
                found += cost(charge)
        known = [limit for limit in limits if limit is not None]
        most = max(known) if len(known) == len(limits) else None
        found += math.fsum(sorted(windows.values(), reverse=True)[:most])
    return found
