"""Tests whether a tally can be the sum of honest reports: figures with p-values, and one verdict.

Fake devices can be detected in the counts only if they send what no crowd of honest devices
could have sent. Each figure here has a p-value that is valid for *every* distribution of honest
devices over the values, so a real but unusual crowd raises no alarm:

* *low*: how many values are more than a standard error below zero. No share is below zero, so
  for each value the probability of this is .159 or less.
* *lowest*: how far the lowest share is below zero.
* *ones*: the number of ones in all bitmaps. Its expectation is the same for every value. For a
  closed list this compares the sum of the shares with 1. (In subset selection they always sum
  to 1, because each report has k columns. In a projective space each message supports about
  as many values as any other, so fakes do not change the sum.)
* *row_ones*: whether rows agree in the number of ones, if every string sets one bit.
* *rows*: whether the rows (tables or cohorts), which devices draw uniformly, have equally many
  reports.
* *repeated*: how often the most frequent message was sent, compared with the most that devices
  with the same value would send it.

The verdict bounds the probability that any figure of an honest tally raises an alarm (Holm,
Scand. J. Statist. 1979).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from deniable_collector.tally import TallyRow
from deniable_estimator.messages import message, sentence
from deniable_estimator.statistics.intervals import FloatArray, Noise
from deniable_estimator.statistics.significance import low_scores
from deniable_estimator.statistics.tails import (
    binomial_tail,
    chi_square_tail,
    normal_tails,
    poisson_tail,
)

ALARM_LEVEL = 0.001
"""The probability that a metric whose devices are all honest is called anomalous."""

LEAST_REPORTS = 1000
"""With fewer reports p-values would be inexact, and fakes could not be distinguished from noise."""

_ROUGH = 0.5
"""Above this skewness the approximation of the lower tail is not valid."""

_LOW = 0.5 * math.erfc(math.sqrt(0.5))
"""The probability that a value which nobody has is more than a standard error below zero."""


SENTENCES = {
    "low": sentence(
        "{observed:,.0f} values lie more than a standard error below zero, where chance makes it "
        "{expected:,.0f} or fewer"
    ),
    "lowest": sentence(
        "the lowest share, {observed:.2%}, is further below zero than chance takes it"
    ),
    "ones": sentence(
        "a bitmap holds {observed:.2f} ones on average, where honest ones hold {expected:.2f}"
    ),
    "row_ones": sentence("the rows disagree on how many ones a bitmap holds"),
    "rows": sentence("reports are not spread evenly over the rows, which devices draw by lot"),
    "repeated": sentence(
        "one message came {observed:,.0f} times, where {expected:,.0f} times is the most to be "
        "expected"
    ),
    "groups": sentence("the columns are not sent as evenly as every crowd sends them"),
    "rarest": sentence(
        "one column came {observed:,.0f} times, where {expected:,.0f} times is the least to be "
        "expected"
    ),
    "commonest": sentence(
        "one column came {observed:,.0f} times, where {expected:,.0f} times is the most to be "
        "expected"
    ),
    "outside": sentence("the mean lies further outside of the range than chance takes it"),
    "agreement": sentence("the rows disagree on where the numbers lie"),
    "reports": sentence("{observed:,.0f} reported, where {expected:,.0f} were usual before"),
}
"""What an alarm of each figure says."""

_LIST = 4
"""With fewer values there would be no alarm even if all of them were this far below zero."""

CROWDED = 10.0
"""Reports that each row must have on average for their number to be judged."""


class Figure(NamedTuple):
    """The result of one test of a tally. A page has thousands, and a tuple is made in half of the
    time."""

    name: str
    """Which test: see the docstring of this module."""
    scheme: str
    """The fingerprint of the tally's scheme."""
    observed: float
    expected: float
    """The expectation for an honest tally; for `low` and `repeated`, for the least favourable
    one."""
    p_value: float
    """The p-value, valid for every distribution of honest devices over the values."""
    p_adjusted: float = math.nan
    """The p-value adjusted for all figures of the verdict."""

    @property
    def text(self) -> str:
        """What the alarm says, as half a sentence."""
        return message(SENTENCES[self.name], observed=self.observed, expected=self.expected)


@dataclass(frozen=True, slots=True)
class Verdict:
    """All figures of an estimate together."""

    figures: tuple[Figure, ...] = ()
    """None if nothing can be tested, as with two values or few reports."""

    @classmethod
    def of(cls, found: Sequence[Figure]) -> Verdict:
        """With p-values adjusted for the number of figures."""
        order = sorted(range(len(found)), key=lambda each: found[each].p_value)
        adjusted, least = [1.0] * len(found), 0.0
        for rank, each in enumerate(order):
            least = max(least, min(1.0, (len(found) - rank) * found[each].p_value))
            adjusted[each] = least
        return cls(tuple(Figure(*each[:5], p) for each, p in zip(found, adjusted, strict=True)))

    def alarms(self, level: float = ALARM_LEVEL) -> tuple[Figure, ...]:
        """The figures that raise an alarm at this level, the clearest first."""
        found = [each for each in self.figures if each.p_adjusted <= level]
        return tuple(sorted(found, key=lambda each: each.p_adjusted))

    def to_dict(self, level: float = ALARM_LEVEL) -> dict[str, Any]:
        """The verdict as JSON can carry it: `anomalous`, `level` and `figures`."""
        return {
            "anomalous": bool(self.alarms(level)),
            "level": level,
            "figures": [each._asdict() for each in self.figures],
        }


Found: TypeAlias = tuple[str, float, float, float]
"""(name, observed, expected, p-value)."""


class Ones(NamedTuple):
    """What is known of the ones in the bitmap of an honest report, whatever its value."""

    width: int
    """Bits of the bitmap."""
    p11: float
    """How often a bit is 1 that the value sets."""
    p01: float
    """How often a bit is 1 that the value does not set."""
    hashes: float = 1.0
    """Bits that a value sets."""
    fewer: float = 0.0
    """By how many bits less a value may set on average over the rows, because its hashes meet."""


def share_figures(
    share: FloatArray, noise: Noise, lift: float, together: float
) -> Iterator[tuple[Found, ...]]:
    """The lower tail of the shares of each of T tallies, shape (T, d); `lift` and `together` are
    those of `OracleAnalysis`."""
    known = np.isfinite(share) & np.isfinite(noise.a)
    # Of rows without reports these are no numbers.
    with np.errstate(divide="ignore", invalid="ignore"):
        skewness = np.where(known, np.abs(noise.skewness), 0.0).max(axis=1)
        scores = np.where(known, low_scores(share + lift, noise), np.inf)
    columns = (
        known.sum(axis=1),
        skewness,
        scores.min(axis=1),
        np.where(known, share, np.inf).min(axis=1),
        (scores < -1).sum(axis=1),
    )
    for size, rough, score, lowest, count in zip(*(c.tolist() for c in columns), strict=True):
        if size == 0 or rough > _ROUGH:
            yield ()
            continue
        tail = normal_tails(min(0.0, score)) / 2
        first = "lowest", lowest, 0.0, min(1.0, size * tail)
        if size < _LIST:
            yield (first,)
            continue
        yield first, low_figure(count, size, together)


def low_figure(count: int, size: int, together: float = 1.0) -> Found:
    """That so many of these values are more than a standard error below zero; those that move
    together (`OracleAnalysis.together`) count as fewer."""
    tail = binomial_tail(int(count / together), math.ceil(size / together), _LOW)
    return "low", float(count), _LOW * size, tail


def bitmap_figures(rows: Sequence[TallyRow], ones: Ones, repeats: float) -> Iterator[Found]:
    """The ones in bitmaps, in all and row by row."""
    width, p11, p01, hashes, fewer = ones
    reports = np.array([row.reports for row in rows], np.float64)
    counted = np.array([int(row.cells.sum()) for row in rows], np.float64)
    most = hashes * p11 + (width - hashes) * p01
    least = most - fewer * hashes * (p11 - p01)
    each = repeats * (hashes * p11 * (1 - p11) + (width - hashes) * p01 * (1 - p01))
    n = float(reports.sum())
    seen = float(counted.sum()) / n
    nearest = min(max(seen, least), most)
    yield "ones", seen, nearest, normal_tails((seen - nearest) / math.sqrt(each / n))
    live = reports >= CROWDED
    if live.sum() > 1 and not fewer:
        excess = counted[live] - reports[live] * most
        statistic = float((excess**2 / (reports[live] * each)).sum())
        freedom = int(live.sum())
        yield "row_ones", statistic, float(freedom), chi_square_tail(statistic, freedom)


def row_figures(
    rows: Sequence[TallyRow], repeats: float = 1.0, shares: FloatArray | None = None
) -> Iterator[Found]:
    """Whether reports are spread over rows as devices draw these: with equal shares, if no others
    are given."""
    count = len(rows)
    if count < 2:
        return
    reports = np.array([row.reports for row in rows], np.float64)
    expected = reports.sum() * (np.full(count, 1 / count) if shares is None else shares)
    if expected.min() < CROWDED:
        return
    # Devices keep their rows, so a device that reports again does so in the same one.
    statistic = float((np.square(reports - expected) / expected).sum()) / repeats
    yield "rows", statistic, count - 1.0, chi_square_tail(statistic, count - 1)


def message_figure(rows: Sequence[TallyRow], most: float | Sequence[float]) -> Found:
    """The most frequent message, of mechanisms that have many; `most` is the most that it can be
    expected to be sent, as a part of its row's reports, in all rows or in each."""
    p_value, observed, expected = 1.0, 0.0, 0.0
    cells = 0
    for row, part in zip(rows, np.broadcast_to(most, len(rows)).tolist(), strict=True):
        top, mean = int(row.cells.max()), row.reports * part
        cells += len(row.cells)
        tail = poisson_tail(top, mean)
        if tail <= p_value:
            p_value, observed, expected = tail, float(top), mean
    return "repeated", observed, expected, min(1.0, cells * p_value)
