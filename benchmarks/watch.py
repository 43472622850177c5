"""Whether `deniable watch` keeps the stated number of false alarms, and how soon it tells a change.

Simulates booleans, categories of 4 and of 10 values in turn, at epsilon 1, with windows of a day
and 20,000 devices. Each day's tally is drawn from its exact distribution, the
devices of a day from a population that does not change. Every day is judged as the command does,
with a baseline of the four weeks before; the days are those after these weeks. Every series that is
called changed counts, also if the same was told the day before, so the command tells fewer.

For the power, one value of each metric rises for good, by so many standard errors of the
difference between one day and the four days that it is compared with. It is told if the rise
is told on the first day or the second. Sizes are not limited (points = 0).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta

import numpy as np

from common.tables import Table, run
from deniable import Scheme
from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses import sample_tally
from deniable_estimator.asking.fetch import Question
from deniable_estimator.asking.history import LONGEST_HISTORY, Look, inspect, look_at_each
from deniable_estimator.judging.newest_window import (
    WEEKS_BEFORE,
    FalseAlarms,
    MetricRules,
    judge,
    judgement_level,
)
from deniable_estimator.kinds.basis import Part
from deniable_estimator.statistics.detection import std_error
from deniable_estimator.statistics.participation import Participation

EPSILON = 1.0
FIRST = date(2026, 1, 5)
BEFORE = 7 * (WEEKS_BEFORE + 1)
RULES = MetricRules(points=0.0, percent=0.0)
SIZES = (2, 4, 10)


def scheme_of(size: int) -> Scheme:
    """A category of so many values; of two, what a boolean is."""
    values = tuple(f"v{number}" for number in range(size))
    return Scheme("category", SubsetSelection.design(size, EPSILON), values)


@dataclass
class SimulatedMetric:
    """The tallies of one metric, by day."""

    scheme: Scheme
    shares: np.ndarray
    devices: int
    rng: np.random.Generator
    tallies: dict[str, Tally] = field(default_factory=dict)

    def draw(self, day: str, rise: float = 0.0) -> None:
        """A day, on which the first value is more frequent by `rise`."""
        shares = self.shares * (1 - rise / (1 - self.shares[0]))
        shares[0] = self.shares[0] + rise
        counts = self.rng.multinomial(self.devices, shares)
        self.tallies[day] = sample_tally(self.scheme, counts, self.rng, window=day)

    def ask(self, labels: Collection[str]) -> Question:
        """The question that `judge` asks of a store."""
        parts = [self.tallies[each] for each in sorted(labels)]
        cells = np.sum([each.rows[0].cells for each in parts], axis=0)
        n = sum(each.reports for each in parts)
        tally = Tally("m", self.scheme.fingerprint, tuple(sorted(labels)), (TallyRow(n, cells),))
        reports = {each.windows[0]: each.reports for each in parts}
        # A small sample rate: the devices of two days are others.
        participation = Participation(reports, 0.01, 1e6, EPSILON)
        return Question((Part(tally, self.scheme, None, participation),))


def simulated(number: int, devices: int, rng: np.random.Generator) -> SimulatedMetric:
    """The metric of that number, with shares that fall as 1 / rank."""
    size = SIZES[number % len(SIZES)]
    shares = 1 / np.arange(2.0, size + 2)
    return SimulatedMetric(scheme_of(size), shares / shares.sum(), devices, rng)


def days(count: int) -> list[str]:
    """So many days in a row."""
    return [(FIRST + timedelta(each)).isoformat() for each in range(count)]


def false_alarms(
    metrics: int, length: int, devices: int, allowed: FalseAlarms, rng: np.random.Generator
) -> tuple[int, int]:
    """The false changes and false anomalies of all metrics in so many days."""
    level = judgement_level(allowed, metrics, "day")
    changes = anomalies = 0
    for number in range(metrics):
        metric, looks = simulated(number, devices, rng), list[Look]()
        for place, day in enumerate(days(BEFORE + length)):
            metric.draw(day)
            looks += look_at_each([day], [metric.ask((day,))])
            if place >= BEFORE:
                found = judge(metric.ask, metric.tallies, day, RULES, level.span)
                assert found is not None
                changes += len(found.changes)
                shown = [each.label for each in looks[-LONGEST_HISTORY:]]
                seen = inspect("m", looks[-2 * LONGEST_HISTORY :], level.anomaly, shown=shown)
                anomalies += seen.new(day.__eq__) is not None
    return changes, anomalies


def rise_of(metric: SimulatedMetric, errors: float) -> float:
    """A rise by so many standard errors of the difference of a day and four days."""
    one = std_error(metric.scheme.oracle, float(metric.shares[0]), metric.devices)
    return errors * one * math.sqrt(1 + 1 / WEEKS_BEFORE)


def power(
    metrics: int,
    runs: int,
    devices: int,
    errors: float,
    allowed: FalseAlarms,
    rng: np.random.Generator,
) -> float:
    """How often the rise of one among so many metrics is told within two windows."""
    level = judgement_level(allowed, metrics, "day").span
    told = 0
    for number in range(runs):
        metric = simulated(number, devices, rng)
        labels = days(BEFORE + 2)
        for day in labels[:-2]:
            metric.draw(day)
        for day in labels[-2:]:
            metric.draw(day, rise_of(metric, errors))
            found = judge(metric.ask, metric.tallies, day, RULES, level)
            assert found is not None
            if any(each.detail == "v0/up" for each in found.changes):
                told += 1
                break
    return told / runs


def watching(quick: bool) -> Iterator[Table]:
    """The baseline is what 200 tests at 5% would tell in the same days."""
    metrics, length, runs = (20, 10, 10) if quick else (200, 90, 300)
    table = Table("watch", f"{metrics} metrics in {length} days, of which nothing changes")
    rng = np.random.default_rng(1)
    for number in (1.0, 10.0):
        allowed = FalseAlarms(number, "month")
        changes, anomalies = false_alarms(metrics, length, 20_000, allowed, rng)
        table.rows.append(
            {
                "false_alarms": f"{number:g} a month",
                "expected at most": number * length / 30,
                "tests at 5% would tell": 0.05 * metrics * length,
                "false changes": changes,
                "false anomalies": anomalies,
                **{
                    f"rise of {errors:g} errors": f"{rise:.0%}"
                    for errors in (3.0, 4.0, 5.0)
                    for rise in [power(metrics, runs, 20_000, errors, allowed, rng)]
                },
            }
        )
    yield table


if __name__ == "__main__":
    run(__doc__, {"watching": watching})
