"""A crowd whose devices come, stay, go and come back, drawn week by week with their memos.

Devices are alike but for what they did last: a new one is back in the next window with the chance
`back`, one that was active stays with `stays`, one that was not returns with `returns` or is gone
for ever with `quits`. So it is enough to count those with the same cohort, memo and state, and a
million devices are drawn as fast as a thousand, from their exact distribution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable import Metric
from deniable.protocol import windows
from deniable.protocol.mechanisms.memoized_retention import LIFECYCLE, MemoizedRetention
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection, SubsetSelection
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.own_columns import SubsetSelectionAnalysis
from deniable_estimator.messages import message
from deniable_estimator.statistics.intervals import FloatArray

Counts = NDArray[np.int64]

_Window = tuple[int, "Life", float]
"""Its number, how devices live in it, and how many were there before the first one."""


@dataclass(frozen=True)
class Life:
    """How the devices of a crowd live, in one window."""

    new: float
    """New devices."""
    back: float = 0.45
    """The part of them that is active in the next window, too."""
    stays: float = 0.85
    """The part of the other active devices that is."""
    returns: float = 0.15
    """The part of those that were not active that is now."""
    quits: float = 0.1
    """The part of the others that never will be again."""

    @classmethod
    def steady(cls, active: float, **rates: float) -> Life:
        """One in which about `active` devices are active in each window, as many come as go."""
        life = cls(0.0, **rates)
        # Of each new device: the windows in which it is active, from its states in equilibrium.
        again = life.returns / (1 - (1 - life.returns) * (1 - life.quits))
        once_more = 1 / ((1 - life.stays) * (1 - again))
        visits = 1 + (life.back + (1 - life.back) * again) * once_more
        return replace(life, new=active / visits)

    def words(self, active: float) -> str:
        """How the devices live, if so many are active in each window."""
        return message(
            "{new:.0%} are new; {back:.0%} of them come back in the next window",
            new=self.new / active,
            back=self.back,
        )

    def away(self, active: float) -> float:
        """How many devices may still come back while so many are active, of those that came before:
        as many join them as return or quit."""
        left = (1 - self.stays) * (active - self.new) + (1 - self.back) * self.new
        return left / (1 - (1 - self.returns) * (1 - self.quits))

    def curve(self, ages: int) -> FloatArray:
        """The part of new devices that is active so many windows later, from 1 to `ages`."""
        found, active, away = [], 0.0, 0.0
        for age in range(1, ages + 1):
            stay, back = (
                (self.back, 0.0) if age == 1 else (self.stays * active, self.returns * away)
            )
            gone = 1 - self.back if age == 1 else active - stay
            away = (away - back) * (1 - self.quits) + gone
            active = stay + back
            found.append(active)
        return np.array(found)


class DrawnWindow(NamedTuple):
    """One window of a crowd; arrays of shape (...) but for the last axis."""

    lifecycle: Counts
    """Shape (..., 3): new, stayed and returned devices that answer the question, or all."""
    cohorts: Counts
    """Shape (..., ages + 2): devices of each age, then older ones; the same."""
    lifecycle_memos: Counts
    """Shape (..., 3): how many answer from each memo."""
    cohort_memos: Counts
    """Shape (..., ages + 2): the same."""


def windows_of(
    lives: Sequence[Life],
    lifecycle: MemoizedSubsetSelection | None,
    cohorts: MemoizedSubsetSelection | None,
    rng: np.random.Generator,
    *,
    first: int = 0,
    older: float = 0.0,
    sample_rate: float = 1.0,
    runs: tuple[int, ...] = (),
) -> Iterator[DrawnWindow]:
    """The windows of a crowd from the number `first` on, one for each of `lives`.

    Args:
        lifecycle, cohorts: the channels of the questions that are asked. With both, each device
            answers one of them for ever.
        older: so many devices were there before, and are active in the first window.
        runs: the shape of so many crowds at once.
    """
    rate, part = sample_rate, 0.5 if lifecycle and cohorts else 1.0
    size = 2 if cohorts is None else cohorts.size
    none, nobody = np.zeros((*runs, 3), np.int64), np.zeros((*runs, size), np.int64)
    days = [
        (number, life, 0.0 if number > first else older) for number, life in enumerate(lives, first)
    ]
    one = _lifecycle(lifecycle, days, rate, part, runs, rng) if lifecycle else repeat((none, none))
    two = _cohorts(cohorts, days, rate, part, runs, rng) if cohorts else repeat((nobody, nobody))
    for _, (lived, life_memos), (began, cohort_memos) in zip(days, one, two, strict=False):
        yield DrawnWindow(lived, began, life_memos, cohort_memos)


def tallies_of(
    metric: Metric,
    labels: Sequence[str],
    lives: Sequence[Life],
    rng: np.random.Generator,
    *,
    older: float = 0.0,
) -> Iterator[tuple[Tally, DrawnWindow]]:
    """The tally of each of these windows, one after another, and the truth behind it."""
    mechanism = metric.scheme.mechanism
    assert isinstance(mechanism, MemoizedRetention)
    channels = dict(zip(mechanism.asks, mechanism.channels, strict=True))
    drawn = windows_of(
        lives,
        channels.get("lifecycle"),
        channels.get("cohorts"),
        rng,
        first=windows.number(labels[0]),
        older=older,
        sample_rate=metric.rate,
    )
    for label, window in zip(labels, drawn, strict=True):
        memos = {"lifecycle": window.lifecycle_memos, "cohorts": window.cohort_memos}
        rows = tuple(_reported(channels[each], memos[each], rng) for each in mechanism.asks)
        yield Tally(metric.name, metric.scheme.fingerprint, (label,), rows), window


def true_series(seen: Sequence[DrawnWindow], ages: int) -> dict[str, float]:
    """What the series of an answer over these windows would be without noise, by their names."""
    found: dict[str, float] = {}
    lived = np.sum([each.lifecycle for each in seen], axis=0)
    if lived.sum():
        found |= dict(zip(LIFECYCLE, (lived / lived.sum()).tolist(), strict=True))
    cohorts = np.array([each.cohorts for each in seen], np.float64)
    if cohorts.any():
        for age in range(1, min(ages, len(seen) - 1) + 1):
            if began := cohorts[:-age, 0].sum():
                found[f"age {age}"] = float(cohorts[age:, age].sum() / began)
    return found


def _reported(
    channel: MemoizedSubsetSelection, memos: Counts, rng: np.random.Generator
) -> TallyRow:
    """The tally of the reports of devices with these memos, shape (size,)."""
    fresh: SubsetSelection = channel.fresh
    return SubsetSelectionAnalysis(fresh).sample_rows(range(fresh.size), memos, rng)[0]


def _lifecycle(
    channel: MemoizedSubsetSelection,
    days: Sequence[_Window],
    rate: float,
    part: float,
    runs: tuple[int, ...],
    rng: np.random.Generator,
) -> Iterator[tuple[Counts, Counts]]:
    """The devices that answer whether they are new, by their memos of the two other answers."""
    alone, *others = _memo(channel)
    pairs = np.outer(*others).ravel()
    states = [np.zeros((*runs, 9), np.int64) for _ in range(3)]
    for _, life, started in days:
        stayed, returned = _move(states, life, rng)
        states[0] = rng.multinomial(rng.poisson(life.new * part, runs), pairs)
        if started:
            # Devices that were there before say that they stayed.
            there = rng.multinomial(rng.poisson(started * part, runs), pairs)
            away = rng.poisson(life.away(started + life.new) * part, runs)
            states[1] += there
            states[2] += rng.multinomial(away, pairs)
            stayed = stayed + there
        new = states[0].sum(axis=-1)
        kept, back = (_thinned(each, rate, rng) for each in (stayed, returned))
        memos = (
            rng.multinomial(_thinned(new, rate, rng), alone)
            + kept.reshape((*runs, 3, 3)).sum(axis=-1)
            + back.reshape((*runs, 3, 3)).sum(axis=-2)
        )
        yield np.stack([new, stayed.sum(axis=-1), returned.sum(axis=-1)], axis=-1), memos


def _cohorts(
    channel: MemoizedSubsetSelection,
    days: Sequence[_Window],
    rate: float,
    part: float,
    runs: tuple[int, ...],
    rng: np.random.Generator,
) -> Iterator[tuple[Counts, Counts]]:
    """The devices that answer when they began, by cohort and memo; the last are the older ones."""
    size, memo = channel.size, _memo(channel)
    states = [np.zeros((*runs, size, size), np.int64) for _ in range(3)]
    for number, life, started in days:
        _move(states, life, rng)
        own = number % (size - 1)
        # The cohort whose cell is taken now is older from now on, and draws the memo of that.
        for state in states:
            state[..., -1, :] += rng.multinomial(state[..., own, :].sum(axis=-1), memo[-1])
            state[..., own, :] = 0
        born = rng.poisson(life.new * part, runs)
        states[0][..., own, :] = rng.multinomial(born, memo[own])
        if started:
            for place, count in ((1, started), (2, life.away(started + life.new))):
                there = rng.poisson(count * part, runs)
                states[place][..., -1, :] += rng.multinomial(there, memo[-1])
        active = states[0] + states[1]
        memos = _thinned(active, rate, rng).sum(axis=-2)
        ages = np.append((number - np.arange(size - 1)) % (size - 1), size - 1)
        yield active.sum(axis=-1)[..., ages], memos


def _move(states: list[Counts], life: Life, rng: np.random.Generator) -> tuple[Counts, Counts]:
    """One window later, without new devices: those that stayed, and those that returned.

    `states` are those that were new, active and not active; they are replaced."""
    fresh, active, away = states
    came, stay = rng.binomial(fresh, life.back), rng.binomial(active, life.stays)
    returned = rng.binomial(away, life.returns)
    left = away - returned
    stayed = came + stay
    states[0] = np.zeros_like(fresh)
    states[1] = stayed + returned
    states[2] = left - rng.binomial(left, life.quits) + (fresh - came) + (active - stay)
    return stayed, returned


def _memo(channel: MemoizedSubsetSelection) -> FloatArray:
    """The chance of each memo of each value, shape (size, size)."""
    p, q = float(channel.permanent.p), float(channel.permanent.q)
    found: FloatArray = np.full((channel.size, channel.size), q)
    np.fill_diagonal(found, p)
    found /= found.sum(axis=1, keepdims=True)
    return found


def _thinned(counts: Counts, rate: float, rng: np.random.Generator) -> Any:
    """Those that are asked."""
    return counts if rate == 1 else rng.binomial(counts, rate)
