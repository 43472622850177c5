"""The ways to divide a lifetime epsilon, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from deniable.protocol.windows import Kind
from deniable_estimator.privacy import Bound

Question: TypeAlias = Literal["share", "mean", "distribution"]
"""What the widths are about: one value's share, a mean, or the share below a limit."""


@dataclass(frozen=True)
class LifetimeChoice:
    """One division of the lifetime epsilon."""

    reports: int
    """That a device may send."""
    epsilon: float
    """Of each, as the registry would declare it."""
    exact_epsilon: float
    """In force, rounded up."""
    mechanism: str
    sample_rate: float
    """With which the reports last for the planned years, on average."""
    advised: bool
    """Whether one report stays within the largest epsilon that is advised."""
    noise: float
    """The variance that one report's noise leaves (`forecasting.lifetime_split`)."""
    spread: float
    """The same of the choice of devices."""
    window_reports: float
    """Of an average window of these years."""
    window_variance: float
    half_width: float
    """Of the 95% interval in such a window: of the share (1 is all devices) or of the mean, in its
    unit or, on a logarithmic scale, as a part of it."""
    information: float
    """Over all windows: the reports of one place in the crowd, divided by the variance of one."""
    relative: float
    """The same, divided by that of the best choice."""
    left_after_years: tuple[float, ...]
    """The share of the devices with reports left after 1, 2, ... years, and at the end."""
    left_at_last: float
    """What that share tends to."""
    one: Bound
    """After one report."""
    life: Bound
    """After all reports of a device."""
    staying_half_width: float
    """For a trait that stays, with all reports of as many devices: the 95% interval's."""
    like_one_epsilon: float | None
    """For a trait that stays: the epsilon with which one report has as little noise as all of these
    together; None if above what one report may have."""


@dataclass(frozen=True)
class Remembered:
    """Memoized noise within the same lifetime epsilon, for a trait that stays. Every device
    reports in every window."""

    mechanism: str
    report: Bound
    """One report."""
    memo: Bound
    """All reports of one value, however many."""
    fresh: Bound
    """What each report adds at most, times of change included, whatever was reported before."""
    half_width: float
    """Of the 95% interval in a window."""
    staying_half_width: float
    """Over any number of windows."""


@dataclass(frozen=True)
class LifetimePlan:
    """The choices for one lifetime epsilon."""

    question: Question
    size: int | None
    """How many values there are; None for a number."""
    share: float | None
    """The share that the widths are for; None for a number."""
    unit: str | None
    """Of the widths of a mean."""
    log: bool
    """Whether the widths of a mean are parts of it, as its scale is logarithmic."""
    lifetime_epsilon: float
    years: float
    window: Kind
    windows: int
    devices: int
    turnover: float
    most_epsilon: float
    choices: tuple[LifetimeChoice, ...]
    """By falling epsilon."""
    best: LifetimeChoice
    """For a value that changes from window to window: the most information with reports of at most
    `most_epsilon`."""
    once: LifetimeChoice
    """For a trait that stays: one report in a life, within `most_epsilon`. Its epsilon is also
    all that a lifetime reveals."""
    memory: Remembered | None
    """None for numbers, which have no memos."""
    stated: LifetimeChoice | None = None
    """At the epsilon that was asked for."""
    same_as_stated: LifetimeChoice | None = None
    """The smallest lifetime epsilon that tells as much as the stated choice; None if nothing was
    stated, or no other takes less."""
