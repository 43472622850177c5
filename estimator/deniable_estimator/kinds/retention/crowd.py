"""A crowd whose devices come, stay, go and come back, drawn week by week with their memos.

Devices are alike but for what they did last: a new one is back in the next window with the chance
`back`, one that was active stays with `stays`, one that was not returns with `returns` or is gone
for ever with `quits`. So it is enough to count those with the same cohort, memo and state, and a
million devices are drawn as fast as a thousand, from their exact distribution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deniable import Metric
from deniable.protocol import windows
from deniable.protocol.mechanisms.memoized_retention import LIFECYCLE, Asked, MemoizedRetention
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


class Answering(NamedTuple):
    """The devices that answer one question in one window; arrays of shape (..., cells)."""

    devices: Counts
    """Those that are new, stayed and returned; or those of each age, then older ones."""
    memos: Counts
    """How many answer from each memo."""


DrawnWindow: TypeAlias = Mapping[Asked, Answering]
"""One window of a crowd, by the question. With both, each device answers one of them for ever."""


def windows_of(
    lives: Sequence[Life],
    channels: Mapping[Asked, MemoizedSubsetSelection],
    rng: np.random.Generator,
    *,
    first: int = 0,
    older: float = 0.0,
    sample_rate: float = 1.0,
) -> Iterator[DrawnWindow]:
    """The windows of a crowd from the number `first` on, one for each of `lives`.

    Args:
        channels: those of the questions that are asked.
        older: so many devices were there before, and are active in the first window.

    Arrays in place of the numbers of devices, `new` and `older`, are many crowds at once.
    """
    part = 1 / len(channels)
    days = [
        (number, life, 0.0 if number > first else older) for number, life in enumerate(lives, first)
    ]
    drawn = [
        _DRAWN[question](channel, days, sample_rate, part, rng)
        for question, channel in channels.items()
    ]
    for each in zip(*drawn, strict=True):
        yield dict(zip(channels, each, strict=True))


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
    first, rate = windows.number(labels[0]), metric.rate
    drawn = windows_of(lives, channels, rng, first=first, older=older, sample_rate=rate)
    for label, window in zip(labels, drawn, strict=True):
        rows = tuple(_reported(channels[each], found.memos, rng) for each, found in window.items())
        yield Tally(metric.name, metric.scheme.fingerprint, (label,), rows), window


def true_series(seen: Sequence[DrawnWindow], ages: int) -> dict[str, float]:
    """What the series of an answer over these windows would be without noise, by their names."""
    found: dict[str, float] = {}
    for question in seen[0]:
        devices = np.array([each[question].devices for each in seen], np.float64)
        if question == "cohorts":
            for age in range(1, min(ages, len(seen) - 1) + 1):
                if began := devices[:-age, 0].sum():
                    found[f"age {age}"] = float(devices[age:, age].sum() / began)
        elif devices.any():
            lived = devices.sum(axis=0) / devices.sum()
            found |= dict(zip(LIFECYCLE, lived.tolist(), strict=True))
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
    rng: np.random.Generator,
) -> Iterator[Answering]:
    """The devices that answer whether they are new, by their memos of the two other answers."""
    alone, *others = _memo(channel)
    pairs = np.outer(*others).ravel()
    states = [np.zeros((*np.shape(days[0][1].new), 9), np.int64) for _ in range(3)]
    for _, life, started in days:
        stayed, returned = _move(states, life, rng)
        states[0] = rng.multinomial(rng.poisson(life.new * part), pairs)
        if np.any(started):
            # Devices that were there before say that they stayed.
            there = rng.multinomial(rng.poisson(started * part), pairs)
            away = rng.poisson(life.away(started + life.new) * part)
            states[1] += there
            states[2] += rng.multinomial(away, pairs)
            stayed = stayed + there
        new = states[0].sum(axis=-1)
        kept, back = (_thinned(each, rate, rng) for each in (stayed, returned))
        memos = (
            rng.multinomial(_thinned(new, rate, rng), alone)
            + kept.reshape((*new.shape, 3, 3)).sum(axis=-1)
            + back.reshape((*new.shape, 3, 3)).sum(axis=-2)
        )
        lived = np.stack([new, stayed.sum(axis=-1), returned.sum(axis=-1)], axis=-1)
        yield Answering(lived, memos)


def _cohorts(
    channel: MemoizedSubsetSelection,
    days: Sequence[_Window],
    rate: float,
    part: float,
    rng: np.random.Generator,
) -> Iterator[Answering]:
    """The devices that answer when they began, by cohort and memo; the last are the older ones."""
    size, memo = channel.size, _memo(channel)
    states = [np.zeros((*np.shape(days[0][1].new), size, size), np.int64) for _ in range(3)]
    for number, life, started in days:
        _move(states, life, rng)
        own = number % (size - 1)
        # The cohort whose cell is taken now is older from now on, and draws the memo of that.
        for state in states:
            state[..., -1, :] += rng.multinomial(state[..., own, :].sum(axis=-1), memo[-1])
            state[..., own, :] = 0
        born = rng.poisson(life.new * part)
        states[0][..., own, :] = rng.multinomial(born, memo[own])
        if np.any(started):
            for place, count in ((1, started), (2, life.away(started + life.new))):
                there = rng.poisson(count * part)
                states[place][..., -1, :] += rng.multinomial(there, memo[-1])
        active = states[0] + states[1]
        memos = _thinned(active, rate, rng).sum(axis=-2)
        ages = np.append((number - np.arange(size - 1)) % (size - 1), size - 1)
        yield Answering(active.sum(axis=-1)[..., ages], memos)


_DRAWN = {"lifecycle": _lifecycle, "cohorts": _cohorts}


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
