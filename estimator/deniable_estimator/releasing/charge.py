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
cannot be added up. Noise counts with its epsilon, which also holds against readers who know all
other reports. If it tells apart reports that exact sums hold together, what these reveal more
because of that is added.

**What a reader of several exact sums can subtract.** The sums of two ranges of windows differ by
the reports that are in one of them alone, and so do a segment and its whole, or two readings of a
window that has got more reports in between. Whoever subtracts the sums is left with the sum of
these reports, however few they are.

Reports are divided into *cells*: two reports are in the same cell if the same sums hold them. All
sums follow from the sums of the cells, so they reveal no more than these do. A window of a segment
whose number of reports has grown is divided into the reports that were there before, and the rest.

Sums that were released with noise divide a cell further, into *parts* that the same of them hold. A
report hides among those of its cell only as far as the noise does not separate it from them, and it
suffices that it hides among the largest part. For given the sum of that part and the report
together, each noisy sum is a mechanism of its own, whose noise is drawn independently: its epsilon
is added by basic composition (Dwork and Roth, "The Algorithmic Foundations of Differential
Privacy", 2014, theorem B.1). All else that is published follows from these and from the reports of
other devices, which do not depend on this one.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from itertools import compress
from typing import Any, Literal, TypeAlias

from deniable_estimator.asking.fetch import Selection
from deniable_estimator.privacy.composition import advanced
from deniable_estimator.releasing.noise import Method, of_rho

Kind: TypeAlias = Method | Literal["exact"]

Counted: TypeAlias = Mapping[str, Mapping[str, int]]
"""The reports of one sum, by "metric scheme window" and by the number of the combination of
segments. A text and no tuple, because it is kept as JSON."""


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
    for each in _by_metric(charges).values():
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


def _by_metric(charges: Iterable[Charge]) -> Mapping[str, list[Charge]]:
    found: dict[str, list[Charge]] = defaultdict(list)
    for charge in charges:
        found[charge.metric].append(charge)
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
        by_metric = _by_metric(charges).items()
        found = {name: ReleasesSpent.of(each, delta, None) for name, each in by_metric}
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


@dataclass(frozen=True, slots=True)
class SumCell:
    """Reports that the same sums hold.

    Attributes:
        windows: in which they were made.
        hiding: those of the largest part; all of them if no noisy sum divides them.
    """

    reports: int
    windows: frozenset[str]
    hiding: int


def reports_counted(chosen: Selection) -> Counted:
    """The reports of the sum of these windows, by where they are counted."""
    found: dict[str, dict[str, int]] = {}
    for each in chosen.chosen:
        if not each.windows:
            continue
        counts = chosen.reader.segment_reports(*each.named, each.windows)
        for label, by_place in counts.items():
            known = {str(place): int(by_place[place]) for place in each.places if by_place[place]}
            if known:
                found[" ".join((*each.named, label))] = known
    return found


def cells(
    earlier: Sequence[Counted],
    new: Sequence[Counted],
    noisy: Sequence[Counted] = (),
    *,
    exact: bool = True,
) -> list[SumCell]:
    """The cells of the new sums, of all earlier ones that share reports with them, of those that
    share reports with these, and so on.

    Args:
        earlier: the exact sums of releases that were made before.
        noisy: the sums with noise.
        exact: whether the new sums are; otherwise there are the cells of the earlier ones alone.
    """
    joined = _joined(earlier, new)
    whole = joined if exact else joined[len(new) :]
    holding: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for number, each in enumerate([*whole, *noisy]):
        for at, count in _places(each):
            holding[at][number] = count
    parts: dict[frozenset[int], dict[frozenset[int], int]] = defaultdict(lambda: defaultdict(int))
    windows: dict[frozenset[int], set[str]] = defaultdict(set)
    for (key, _), counts in holding.items():
        before = 0
        for level in sorted(set(counts.values())):
            members = frozenset(number for number, count in counts.items() if count >= level)
            cell = frozenset(number for number in members if number < len(whole))
            if cell:
                parts[cell][members - cell] += level - before
                windows[cell].add(key.rsplit(" ", 1)[1])
            before = level
    return [
        SumCell(sum(each.values()), frozenset(windows[cell]), max(each.values()))
        for cell, each in parts.items()
    ]


def _joined(earlier: Sequence[Counted], new: Sequence[Counted]) -> list[Counted]:
    """The new sums, and the earlier ones that hang together with them."""
    found, near, touched = list(new), new, set[tuple[str, str]]()
    apart = earlier
    while near:
        touched.update(at for each in near for at, _ in _places(each))
        reached = [any(at in touched for at, _ in _places(each)) for each in apart]
        near = [*compress(apart, reached)]
        apart = [each for each, here in zip(apart, reached, strict=True) if not here]
        found += near
    return found


def _places(each: Counted) -> Iterator[tuple[tuple[str, str], int]]:
    for key, by_place in each.items():
        for place, count in by_place.items():
            yield (key, place), count
