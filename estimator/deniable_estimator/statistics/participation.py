"""How often the same devices have reported, which determines the weight of their reports.

A device that reports in several windows is not a new sample from the population. Let device i
have reported T_i times, n = sum of T_i, and let devices keep their values. Then the noise of an
estimated share depends on the reports, but sampling depends on the devices::

    Var = [V + (repeats - 1) f (1-f)] / n,    repeats = (sum of T_i**2) / n

where V = r (1-r) / (p-q)**2 is the variance of one report of each device, for the share f among
all devices. With memos, these stay the same too (`deniable_estimator.analyses.base`).

Nobody can count the T_i, because a report does not say which device it is from, but they are
bounded. If N_v devices are there in window v and each reports with probability `sample_rate` s, two
windows share s min(s N_v, s N_w) reports at most. Where s is 1 the s N_v are the counts n_v. Where
it is less, counts differ by chance, and their smaller one is too small. So two windows count as
different only by what their counts differ beyond two standard errors of chance, ::

    min(s N_v, s N_w)  is taken as  [n_v + n_w - max(0, |n_v - n_w| - 2 sqrt((1-s)(n_v + n_w)))] / 2

and windows without any report, of which a tally does not tell, are as many as a Poisson count with
the same mean has. So all pairs of windows bound the sum of T_i**2. And the ledger allows a device
`most` reports: in W windows it reports min(Binomial(W, s), most) times. Both bounds are exact if
every device stays once it has reported; if devices come and go, they are cautious.

Where devices take turns (`one_in` = M, as the rotation groups of a panel survey do), two windows
are of the same group if their numbers differ by a multiple of M, and otherwise share no device.
They are counted as if they shared 1 / M of them, which also covers an edit of M, as devices then
draw another group.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations

import numpy as np

from deniable.protocol import windows
from deniable_collector.tally import Tally
from deniable_estimator.statistics.intervals import FloatArray

_CAUTION = 2.0
"""Standard errors by which two counts may differ by chance."""

_MOST_PAIRED = 400
"""Of so many windows, the newest ones, `shared_noise` compares all pairs: of ten years of days they
would take half a gigabyte."""

_ROUNDS = 100
_FEWEST = 0.05
"""So many reports a window are expected at least."""


@dataclass(frozen=True)
class Participation:
    """The reports of each window under one scheme, and what limits those of one device."""

    reports: Mapping[str, float]
    """Window -> its reports."""
    sample_rate: float = 1.0
    """The probability that a device reports in a window, independently of other windows."""
    budget: float | None = None
    """The epsilon that a device can spend on this metric; None without a limit."""
    cost: float = 1.0
    """The epsilon that each report spends."""
    one_in: int = 1
    """Of how many groups that take turns a device is in one."""
    kept: float = 1.0
    """The part of a report's variance that stays the same on a device, at most."""

    @classmethod
    def evenly(cls, tally: Tally) -> Participation:
        """The cautious case if only the sum of the windows is known: all devices in each."""
        windows = tally.windows or ("",)
        return cls(dict.fromkeys(windows, tally.reports / len(windows)))

    @classmethod
    def merged(cls, parts: Sequence[Participation]) -> Participation:
        """For several schemes of a metric; in each window a device reports under one of them."""
        reports: Counter[str] = Counter()
        for part in parts:
            reports.update(part.reports)
        rate, cost = max(part.sample_rate for part in parts), min(part.cost for part in parts)
        groups, kept = min(part.one_in for part in parts), max(part.kept for part in parts)
        budgets = {part.budget for part in parts}
        # Without a budget that all of them share there is no limit.
        budget = budgets.pop() if len(budgets) == 1 else None
        return cls(dict(reports), rate, budget, cost, groups, kept)

    @cached_property
    def n(self) -> float:
        """All reports."""
        return sum(self.reports.values())

    @property
    def most(self) -> int | None:
        """The most reports that the ledger allows a device."""
        return None if self.budget is None else _most(self.budget, self.cost)

    def again(self, age: int) -> float:
        """The chance that a device that could report in a window can do so that many later."""
        return self.sample_rate if age % self.one_in == 0 else 0.0

    @cached_property
    def repeats(self) -> float:
        """The largest possible sum(T_i**2) / sum(T_i); 1 if no device reported twice."""
        if self.n == 0 or len(self.reports) == 1:
            return 1.0
        pairs = self._meetings(self)
        by_windows = 1 + self.sample_rate * pairs * self._unseen / self.n
        windows_there = math.ceil(len(self.reports) * self._unseen)
        if self.most is None or self.most >= windows_there:
            return by_windows
        if self.one_in > 1:
            return min(by_windows, self.most)
        return min(by_windows, _ledger_repeats(windows_there, self.sample_rate, self.most))

    def _meetings(self, other: Participation) -> float:
        """How many reports the pairs of unlike windows may have had to share, over all pairs."""
        mine, theirs = (np.array(list(each.reports.values())) for each in (self, other))
        rate = max(self.sample_rate, other.sample_rate)
        both = mine[:, np.newaxis] + theirs
        apart = np.abs(mine[:, np.newaxis] - theirs)
        by_chance = _CAUTION * np.sqrt((1 - rate) * both)
        shared = (both - np.maximum(apart - by_chance, 0.0)) / 2
        if self.one_in > 1:
            one, two = (np.array(list(map(windows.number, each.reports))) for each in (self, other))
            alike = (one[:, np.newaxis] - two) % self.one_in == 0
            shared = np.where(alike, shared, shared / self.one_in)
        # In one and the same window a device reports once.
        places = {window: place for place, window in enumerate(other.reports)}
        for place, window in enumerate(self.reports):
            if window in places:
                shared[place, places[window]] = 0.0
        return float(shared.sum())

    @cached_property
    def _unseen(self) -> float:
        """By what factor there may have been more windows than those with reports."""
        if self.sample_rate == 1:
            return 1.0
        seen = self.n / len(self.reports)
        mean = seen
        # The mean of a Poisson count whose mean, where it is not 0, is the one that is seen.
        for _ in range(_ROUNDS):
            mean = max(seen * -math.expm1(-mean), _FEWEST)
        return seen / mean

    @property
    def devices(self) -> float:
        """The least number of devices that reported: (sum of T_i)**2 / sum of T_i**2."""
        return self.n / self.repeats

    def shared(self, other: Participation) -> float:
        """The largest possible sum of T_i U_i, where device i has reported U_i times under another
        scheme of the metric."""
        rate = max(self.sample_rate, other.sample_rate)
        bounds = [rate * self._meetings(other) * max(self._unseen, other._unseen)]
        if self.most is not None:
            bounds.append(self.most * other.n)
        if other.most is not None:
            bounds.append(other.most * self.n)
        return min(bounds)


def overlap(parts: Sequence[Participation]) -> FloatArray:
    """Bounds of the variances and covariances, divided by f (1-f), of the estimates of several
    schemes because of the choice of devices; shape (schemes, schemes), diagonal `repeats` / n."""
    matrix = np.diag([part.repeats / part.n for part in parts])
    for one, two in combinations(range(len(parts)), 2):
        first, second = parts[one], parts[two]
        matrix[one, two] = matrix[two, one] = first.shared(second) / (first.n * second.n)
    return matrix


def shared_noise(parts: Sequence[Participation]) -> float:
    """The part of the variance of estimates of several times that two of them share at most, on
    average, because the same devices may have reported in both."""
    if len(parts) < 2:
        return 0.0
    whole = Participation.merged(parts)
    each = len(whole.reports) / len(parts)
    some = replace(whole, reports=dict([*whole.reports.items()][-_MOST_PAIRED:]))
    # As if all pairs of windows shared equally many devices, in a part and beyond it.
    pair = whole.kept * (some.repeats - 1) / max(1, len(some.reports) - 1)
    shared = pair * each / (1 + pair * (each - 1))
    if 1 < whole.one_in <= each:
        # In each part each group has its turn.
        pair, turns = whole.kept * whole.sample_rate, each / whole.one_in
        shared = max(shared, pair * turns / (1 + pair * (turns - 1)))
    return min(1.0, shared)


def together(parts: Sequence[Participation], weights: FloatArray, matrix: FloatArray) -> FloatArray:
    """By how much, divided by f (1-f), the variance of an average over schemes exceeds the sum of
    their variances, because the same devices may have used several schemes.

    `weights` has shape (schemes, d), with a sum of 1 over the schemes, and `matrix` is their
    `overlap`; the answer has shape (d,). A report under scheme s counts for a_s = weight / n of
    the average, device i for A_i = sum of a_s T_is, and the sum of A_i**2 is at most

    * what `matrix` says, pair by pair;
    * max(a)**2 n repeats, of all schemes as if they were one;
    * max(a_s budget / cost_s), because that is the largest A_i where schemes share a budget.
    """
    own = np.diag(matrix) @ weights**2
    each = weights / np.array([[part.n] for part in parts])
    whole = Participation.merged(parts)
    bounds = [
        np.einsum("sd,st,td->d", weights, matrix, weights),
        each.max(axis=0) ** 2 * whole.n * whole.repeats,
    ]
    if whole.budget is not None:
        costs = np.array([[part.cost] for part in parts])
        bounds.append((each * whole.budget / costs).max(axis=0))
    more: FloatArray = np.maximum(np.min(bounds, axis=0) - own, 0.0)
    return more


@lru_cache(maxsize=1024)
def _most(budget: float, cost: float) -> int:
    return max(1, math.floor(Fraction(budget) / Fraction(cost)))


@lru_cache(maxsize=1024)
def _ledger_repeats(windows: int, sample_rate: float, most: int) -> float:
    """E[T**2] / E[T] of a device that takes part at random until its ledger is spent."""
    # The chance to have reported 0, 1, ... times, window by window.
    chance = np.zeros(most + 1)
    chance[0] = 1.0
    for _ in range(windows):
        moved = sample_rate * chance[:-1]
        chance[:-1] -= moved
        chance[1:] += moved
    times = np.arange(most + 1)
    return float(chance @ times**2 / (chance @ times))
