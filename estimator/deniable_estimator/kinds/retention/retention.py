"""The answer to who comes back: shares of the lifecycle, growth, cohorts and their average."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from deniable.protocol import windows
from deniable.protocol.mechanisms.memoized_retention import LIFECYCLE
from deniable.protocol.types.retention import Retention
from deniable_estimator.analyses.retention import (
    Cells,
    CohortCounts,
    Ratio,
    average,
    cells_of,
    retention,
)
from deniable_estimator.document.csv_files import Table, plain
from deniable_estimator.document.units import ShareUnit, windows_text
from deniable_estimator.kinds.base import (
    NUMBER_COLUMNS,
    Answer,
    ChangeTest,
    Comparison,
    Series,
    number_change,
)
from deniable_estimator.kinds.shares.shares import Shares
from deniable_estimator.messages import message, sentence
from deniable_estimator.statistics.counts import share_interval
from deniable_estimator.statistics.detection import deviations
from deniable_estimator.statistics.intervals import FloatArray, Noise
from deniable_estimator.statistics.participation import Participation

_COHORT = ("cohort", "window", "age", "devices", "retention", "std_error", "low", "high", "told")
_AROUND = ("estimate", "low", "high")
_GROWTH = ("new", "stayed", "returned", "lost", "gained_for_each_lost")

NAMES = {
    "new": message("share that is new"),
    "stayed": message("share that stayed"),
    "returned": message("share that came back"),
}
"""What people call the series of the lifecycle."""

_ENDED = message("cohorts and growth are told of complete windows alone")

_COHORT_WINDOWS = 3
"""Periods of so many windows have two cohorts of their own that were seen again."""


@dataclass(frozen=True)
class RetentionUnit(ShareUnit):
    """Shares of the devices of a window, or of those of cohorts, which may be too few."""

    window: windows.Kind = "week"
    unknown = message("too few")
    repeated = sentence(
        "each cohort is compared with others, so no device counts in both periods; the shares of "
        "the lifecycle take the devices of two periods for different ones"
    )

    def label(self, name: str) -> str:
        if name in NAMES:
            return NAMES[name]
        after = windows_text(int(name.removeprefix("age ")), self.window)
        return message("retention after {windows}", windows=after)


class Around(NamedTuple):
    """A number and the ends of its interval."""

    value: float
    low: float
    high: float


class WindowGrowth(NamedTuple):
    """The devices of one window, and what became of those of the one before."""

    window: str
    active: float
    """All that were active, counted by their reports."""
    new: Around
    stayed: Around
    returned: Around
    lost: Around | None
    """Those of the window before that were not; None if that is not known."""
    quick: Around | None
    """New and returned devices for each lost one."""


@dataclass(frozen=True, eq=False)
class LifeWindow:
    """The lifecycle of one window; arrays have shape (3,)."""

    label: str
    reports: float
    """Of all questions."""
    answered: float
    """Of this one."""
    share: FloatArray
    noise: Noise


@dataclass(frozen=True, eq=False, kw_only=True)
class RetentionAnswer(Answer):
    """Who comes back.

    What happened in its windows counts: the lifecycle of their devices, and which of the devices
    of each cohort were active in them, whenever the cohort began.
    """

    kind = "retention"
    headings = ("series", "share")
    other = message("the questions have changed")
    too_few = message("too few windows or reports for a cohort")

    window: windows.Kind
    asked: Participation = field(repr=False)
    """Which part of the devices the reports of a window are from; of several schemes, that of the
    one with the most."""
    lifecycle: Shares | None
    """None if it is not asked for."""
    lives: tuple[LifeWindow, ...] = field(repr=False)
    """The windows that can be told apart, and the one before them, the oldest first."""
    cohorts: CohortCounts | None = field(repr=False)
    """None if they are not asked for; of the windows that can be told apart, and those before."""
    began: frozenset[int] | None = None
    """Cohorts that began in other windows do not count; None for no limit."""

    def marked(self, now: float | None = None) -> Self:
        """Cohorts and growth are told of the windows that have ended alone."""
        found = super().marked(now)
        if not found.unfinished:
            return found
        first, *others = found.warnings
        return replace(found, warnings=(first, _ENDED, *others))

    @property
    def ended(self) -> tuple[str, ...]:
        """Its windows that have ended."""
        return tuple(each for each in self.windows if each not in self.unfinished)

    @property
    def asks(self) -> tuple[str, ...]:
        """The questions that are answered."""
        asked = {"lifecycle": self.lifecycle, "cohorts": self.cohorts}
        return tuple(name for name, found in asked.items() if found is not None)

    @property
    def ages(self) -> int:
        """How many windows back cohorts are told apart; 0 without cohorts."""
        return self.cohorts.ages if self.cohorts else 0

    @property
    def unit(self) -> RetentionUnit:
        return RetentionUnit(self.window)

    @property
    def footnotes(self) -> tuple[str, ...]:
        return self.lifecycle.footnotes if self.lifecycle else ()

    @cached_property
    def cells(self) -> Cells:
        """The cells of the triangle that were seen in its windows that have ended."""
        if self.cohorts is None:
            return cells_of((), 0)
        found = cells_of(self.cohorts.numbers, self.ages)
        own = {windows.number(label) for label in self.ended}
        numbers = self.cohorts.numbers
        kept = [
            numbers[later] in own and (self.began is None or numbers[first] in self.began)
            for first, later in zip(found.first.tolist(), found.later.tolist(), strict=True)
        ]
        return Cells(*(each[np.array(kept, np.bool_)] for each in found))

    @cached_property
    def triangle(self) -> Ratio:
        """The retention of each of `cells`."""
        assert self.cohorts is not None
        return retention(self.cohorts, self.cells, self.asked, self.level)

    @cached_property
    def curve(self) -> Ratio | None:
        """The average over cohorts for each age, from 1 on; None without cohorts."""
        if self.cohorts is None:
            return None
        return average(self.cohorts, self.cells, self.asked, self.level)

    @cached_property
    def growth(self) -> tuple[WindowGrowth, ...]:
        """Of each of its windows that have ended and can be told apart, the oldest first."""
        own = set(self.ended)
        before = {windows.number(each.label): each for each in self.lives}
        return tuple(
            _growth(each, before.get(windows.number(each.label) - 1), self.asked, self.level)
            for each in self.lives
            if each.label in own
        )

    @cached_property
    def series(self) -> Series:
        names: list[str] = []
        columns: list[tuple[FloatArray, ...]] = []
        if self.lifecycle is not None:
            found = self.lifecycle
            names += LIFECYCLE
            columns.append((found.share, found.std_error, found.low, found.high))
        if self.curve is not None:
            names += [f"age {age}" for age in range(1, self.ages + 1)]
            columns.append(self.curve[:4])
        return Series(tuple(names), *(np.concatenate(each) for each in zip(*columns, strict=True)))

    @property
    def listed(self) -> Collection[str]:
        """Without the ages that no cohort has reached."""
        return {*LIFECYCLE, *(f"age {age}" for age in self.cells.age.tolist())}

    @property
    def leading(self) -> str:
        return "age 1" if self.cohorts else "stayed"

    @property
    def budget(self) -> float:
        """Of a retention to first order, and never more than all."""
        if not self.n:
            return math.nan
        most = 0.0 if self.lifecycle is None else self.lifecycle.budget
        if self.curve is not None:
            known = self.curve.fakes[np.isfinite(self.curve.value)]
            most = max(most, float(known.max()) * self.fakes if len(known) else 0.0)
        return min(most, 1.0)

    def alike(self, other: RetentionAnswer) -> bool:
        """Whether both ask the same questions, of as many ages."""
        mine = self.asks, self.ages, self.window
        return mine == (other.asks, other.ages, other.window)

    def change_from(self, before: RetentionAnswer, test: ChangeTest) -> Comparison:
        """Of two periods of three windows or more, the cohorts that began in each are compared, so
        that none of them lived through what happened between the two; of shorter ones what was
        seen in them, of whatever cohort."""
        return number_change(before._of_own_cohorts(self), self._of_own_cohorts(before), test)

    def _of_own_cohorts(self, other: RetentionAnswer) -> RetentionAnswer:
        own, others = (frozenset(map(windows.number, each.windows)) for each in (self, other))
        if min(len(own), len(others)) < _COHORT_WINDOWS or own & others:
            return self
        return replace(self, began=own)

    def numbers(self) -> dict[str, Any]:
        """`asks`, `ages` and the kind of `window`. `series`: as for a mean. `growth`: for each
        `window` the devices `active` in it, and of `new`, `stayed`, `returned`, `lost` and
        `gained_for_each_lost` the `estimate` with `low` and `high`, in devices. `cohorts`: for each
        cell `cohort` (its first window), `window`, `age`, `devices` (how many began), `retention`,
        `std_error`, `low`, `high` and `told`: "known", "too few", or "nothing fits"."""
        return {
            "asks": list(self.asks),
            "ages": self.ages,
            "window": self.window,
            **super().numbers(),
            "growth": [
                {
                    "window": each.window,
                    "active": each.active,
                    **{
                        name: found and dict(zip(_AROUND, plain(found), strict=True))
                        for name, found in zip(_GROWTH, each[2:], strict=True)
                    },
                }
                for each in self.growth
            ],
            "cohorts": [dict(zip(_COHORT, row, strict=True)) for row in self.rows()],
        }

    def rows(self) -> list[tuple[Any, ...]]:
        """For each cell its cohort, its window, its age, the devices that began, `retention`,
        `std_error`, `low`, `high` and what is known."""
        if self.cohorts is None or not len(self.cells.age):
            return []
        found, numbers = self.triangle, self.cohorts.numbers
        newest = self.windows[0]
        label = {each: windows.shifted(newest, each - windows.number(newest)) for each in numbers}
        unknown = np.where(found.empty, "nothing fits", "too few")
        return [
            (label[numbers[first]], label[numbers[later]], age, *rest)
            for first, later, age, *rest in zip(
                *(each.tolist() for each in self.cells),
                plain(found.counted),
                *(plain(column) for column in found[:4]),
                np.where(np.isnan(found.value), unknown, "known").tolist(),
                strict=True,
            )
        ]

    def own_table(self) -> Table:
        """One line for each series, for each number of growth, and for each cell of a cohort. The
        column `of` says which: "all", "growth" or "cohort"."""
        lines: list[tuple[Any, ...]] = [("all", None, None, *each) for each in self.series.lines()]
        for each in self.growth:
            lines.append(("growth", None, each.window, "active", each.active, None, None, None))
            lines += [
                ("growth", None, each.window, name, found.value, None, found.low, found.high)
                for name, found in zip(_GROWTH, each[2:], strict=True)
                if found is not None
            ]
        lines += [
            ("cohort", cohort, window, f"age {age}", *numbers)
            for cohort, window, age, _, *numbers, _ in self.rows()
        ]
        return ("of", "cohort", "window", *NUMBER_COLUMNS), lines


def retention_series(kind: Retention) -> tuple[str, ...]:
    """What the series of the answer to a metric of this type are called."""
    return (
        *(LIFECYCLE if "lifecycle" in kind.asks else ()),
        *(f"age {age}" for age in range(1, kind.ages + 1)),
    )


def _growth(
    each: LifeWindow, before: LifeWindow | None, asked: Participation, level: float
) -> WindowGrowth:
    """The reports are all devices, or a known part of them; the other ones add to the error."""
    part = asked.sample_rate / asked.one_in
    low, high = share_interval(each.share, each.noise, level)
    active = each.reports / part
    # Relative, of a number of devices that was counted from a part of them.
    z = deviations(level)
    error = z * math.sqrt((1 - part) / each.reports) if each.reports else math.inf
    found = []
    for share, least, most in np.transpose((each.share, low, high)).tolist():
        value = share * active
        below, above = (share - least) * active, (most - share) * active
        found.append(_around(value, (below, error * value), (above, error * value)))
    lost = quick = None
    if before is not None and before.reports:
        earlier = before.reports / part
        apart = z * math.sqrt((1 - part) / before.reports) * earlier
        stayed = found[1]
        more, fewer = stayed.high - stayed.value, stayed.value - stayed.low
        lost = _around(earlier - stayed.value, (more, apart), (fewer, apart))
        quick = _quick(active, error * active, earlier, apart, stayed)
    return WindowGrowth(each.label, active, found[0], found[1], found[2], lost, quick)


def _around(value: float, below: tuple[float, float], above: tuple[float, float]) -> Around:
    """So many devices with two independent errors downwards and upwards, and no fewer than none."""
    low, high = value - math.hypot(*below), value + math.hypot(*above)
    return Around(value, max(0.0, low), max(0.0, high))


def _quick(active: float, error: float, earlier: float, apart: float, stayed: Around) -> Around:
    """(active - stayed) / (earlier - stayed): it moves in one direction with each of the three, so
    its ends are those of their intervals, taken together as independent errors are."""

    def at(now: float, then: float, both: float) -> float:
        gained, lost = now - both, then - both
        return math.nan if lost <= 0 else max(gained, 0.0) / lost

    value = at(active, earlier, stayed.value)
    if math.isnan(value):
        return Around(math.nan, 0.0, math.inf)
    ends = [
        at(active - error, earlier, stayed.value),
        at(active + error, earlier, stayed.value),
        at(active, earlier - apart, stayed.value),
        at(active, earlier + apart, stayed.value),
        at(active, earlier, stayed.low),
        at(active, earlier, stayed.high),
    ]
    if any(map(math.isnan, ends)):
        return Around(value, 0.0, math.inf)
    down = math.hypot(*(max(0.0, value - end) for end in ends))
    up = math.hypot(*(max(0.0, end - value) for end in ends))
    return Around(value, max(0.0, value - down), value + up)
