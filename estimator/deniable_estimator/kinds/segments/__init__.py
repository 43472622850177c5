"""The answers of one metric for each segment of its crowd: their differences, and which values
differ at all.

A difference of two segments has the interval of `interval_of_difference`, from those of both
(Newcombe, Statistics in Medicine 1998, method 10): Wald's is far too short for the few supporting
reports of a large epsilon. Segments with fewer than LEAST_REPORTS reports say nothing by
themselves; they fold into the rest, with their number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.segments import LEAST_REPORTS
from deniable_estimator.document.csv_files import Filed, Table, plain, records
from deniable_estimator.kinds.base import TOGETHER, Answer, Comparison
from deniable_estimator.kinds.shares.shares import Shares
from deniable_estimator.messages import counted, message
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.significance import benjamini_hochberg, homogeneity
from deniable_estimator.statistics.tails import chi_square_tail, normal_tails

REST = "rest"
"""What files call the segments that are too small, together."""


def name_of(labels: Mapping[str, str]) -> str:
    """A combination of segments in words: "web" or "web, paid"."""
    return ", ".join(labels.values())


@dataclass(frozen=True, eq=False)
class Group:
    """The answer of one segment, or of one combination of two."""

    labels: Mapping[str, str]
    """The name of each segment with its value."""
    answer: Answer

    @property
    def name(self) -> str:
        """Its values in words."""
        return name_of(self.labels)

    @property
    def key(self) -> str:
        """Its values as an address names them: as JSON where one holds a comma, so that no two
        segments are named alike."""
        if any("," in each for each in self.labels.values()):
            return json.dumps([*self.labels.values()], ensure_ascii=False)
        return self.name


@dataclass(frozen=True, eq=False)
class Segmented(Filed):
    """A metric by segments. Arrays have shape (d,), one entry for each series of the total."""

    by: tuple[str, ...]
    where: Mapping[str, str]
    total: Answer
    """That of all segments together: what the metric shows without them."""
    groups: tuple[Group, ...]
    """Those with LEAST_REPORTS or more, in their declared order."""
    small: tuple[Group, ...]
    """Those with fewer, but at least one."""
    rest: Answer | None
    """That of the small ones together; None where they are too small even so."""
    unsplit: int
    """Reports of earlier schemes, which do not tell these segments."""
    reference: Group | None
    """What the others are compared with; None where there are not two to compare."""

    @property
    def metric(self) -> str:
        return self.total.metric

    @property
    def level(self) -> float:
        return self.total.level

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """How each segment differs from the reference, by its key."""
        if self.reference is None:
            return {}
        return {
            each.key: each.answer.change_from(self.reference.answer, TOGETHER)
            for each in self.groups
            if each is not self.reference
        }

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The series that all segments have, in the order of the total; of a boolean "true" alone,
        as "false" mirrors it."""
        if isinstance(self.total, Shares) and self.total.boolean:
            return ("true",)
        known = [set(each.answer.series.names) for each in self.groups]
        return tuple(
            name for name in self.total.series.names if all(name in each for each in known)
        )

    @cached_property
    def p_value(self) -> FloatArray:
        """For each of `names` the chance of such differences, or larger ones, if all segments are
        alike; NaN where nothing could be tested."""
        answers = [each.answer for each in self.groups]
        if self.reference is None or len(answers) < 2:
            return np.full(len(self.names), np.nan)
        shares = [each for each in answers if isinstance(each, Shares)]
        if len(shares) == len(answers):
            places = [each.places(self.names) for each in shares]
            taken = [each.noise.taken(place) for each, place in zip(shares, places, strict=True)]
            share = [each.share[place] for each, place in zip(shares, places, strict=True)]
            return homogeneity(np.array(share), taken)
        return number_tests(answers, self.names, self.comparisons.values())

    @cached_property
    def p_adjusted(self) -> FloatArray:
        """The same, adjusted so that at most 1 minus `level` of the finds are false on average."""
        return benjamini_hochberg(self.p_value)

    @property
    def differs(self) -> NDArray[np.bool_]:
        """Which of `names` differ between segments."""
        with np.errstate(invalid="ignore"):
            found: NDArray[np.bool_] = self.p_adjusted <= 1 - self.level
        return found

    @property
    def verdict(self) -> str:
        """Whether anything differs between the segments, in words."""
        count, found = int(np.isfinite(self.p_value).sum()), int(self.differs.sum())
        if self.reference is None:
            return message(
                "There are not two segments with {least} reports to compare", least=LEAST_REPORTS
            )
        if not count:
            return message("Too few reports to test whether the segments differ")
        if found:
            if count == 1:
                return message("The segments differ by more than noise")
            return message(
                "{found:,} of {count:,} series differ between segments (about {false:.2g}% of "
                "such finds are false)",
                found=found,
                count=count,
                false=100 * (1 - self.level),
            )
        return message("No difference between segments that can be told from noise")

    @property
    def notes(self) -> tuple[str, ...]:
        """How to read it."""
        notes = [message("segments are not private: each report states its segment without noise")]
        if self.small:
            count, reports = len(self.small), sum(each.answer.n for each in self.small)
            notes.append(
                counted(
                    "{count} segment with fewer than {least} reports is folded away ({reports})",
                    "{count} segments with fewer than {least} reports each are folded away "
                    "({reports})",
                    count,
                    least=LEAST_REPORTS,
                    reports=counted("{count:,} report", "{count:,} reports", reports),
                )
            )
        if self.unsplit:
            notes.append(
                counted(
                    "{count:,} report of earlier schemes does not tell these segments: it counts "
                    "in the total alone",
                    "{count:,} reports of earlier schemes do not tell these segments: they count "
                    "in the total alone",
                    self.unsplit,
                )
            )
        return tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        """For JSON; what cannot be said is null."""
        return {
            "metric": self.metric,
            "kind": self.total.kind,
            "by": list(self.by),
            "where": dict(self.where),
            "level": self.level,
            "least": LEAST_REPORTS,
            "verdict": self.verdict,
            "notes": list(self.notes),
            "total": self.total.to_dict(),
            "segments": [
                {"segment": dict(each.labels), **each.answer.to_dict()} for each in self.groups
            ],
            "small": [{"segment": dict(each.labels), "n": each.answer.n} for each in self.small],
            "rest": None if self.rest is None else self.rest.to_dict(),
            "unsplit": self.unsplit,
            "reference": None if self.reference is None else dict(self.reference.labels),
            "differences": [
                {
                    "segment": dict(each.labels),
                    "values": self.comparisons[each.key].to_dict()["values"],
                }
                for each in self.groups
                if each.key in self.comparisons
            ],
            "tests": records(
                (self.total.headings[0], "p_value", "p_adjusted", "differs"),
                *(self.names, self.p_value, self.p_adjusted, self.differs),
            ),
        }

    def csv_table(self) -> Table:
        """One line for each segment and series, then those of the rest and the total; after the
        interval the difference from the reference, and whether the series differs at all. The last
        column names the segment, the rest or the total, and is called the same for all metrics."""
        heading = self.total.headings
        header = (*self.by, "part", *heading, "std_error", "low", "high", "n", "difference")
        header = (*header, "difference_low", "difference_high", "p_adjusted", "differs", "segment")
        tested = zip(plain(self.p_adjusted), self.differs.tolist(), strict=True)
        tests = dict(zip(self.names, tested, strict=True))
        rows: list[tuple[Any, ...]] = []
        parts: list[tuple[str, Mapping[str, str], Answer | None, Comparison | None]] = [
            ("segment", each.labels, each.answer, self.comparisons.get(each.key))
            for each in self.groups
        ]
        parts += [(REST, {}, self.rest, None), ("total", {}, self.total, None)]
        for part, labels, answer, found in parts:
            if answer is None:
                continue
            changes = {}
            if found is not None:
                columns = map(plain, (found.difference, found.low, found.high))
                changes = dict(zip(found.values, zip(*columns, strict=True), strict=True))
            rows += [
                (
                    *(labels.get(name) for name in self.by),
                    part,
                    name,
                    *numbers,
                    answer.n,
                    *changes.get(name, (None, None, None)),
                    *tests.get(name, (None, None)),
                    name_of(labels) if labels else part,
                )
                for name, *numbers in answer.series.lines()
            ]
        return header, rows


def shown_series(found: Segmented, most: int) -> list[str]:
    """The series to show, at most so many: those that differ first, then the largest shares."""
    if not isinstance(found.total, Shares):
        return list(found.names)
    adjusted = np.where(found.differs, found.p_adjusted, 1.0)
    share = np.array([found.total.share[found.total.series.place(name)] for name in found.names])
    order = np.lexsort((-np.nan_to_num(share), adjusted))
    return [found.names[place] for place in order[:most].tolist()]


def number_tests(
    answers: Sequence[Answer], names: Sequence[str], comparisons: Iterable[Comparison]
) -> FloatArray:
    """For each of the names the chance that numbers differ so, or more, if all segments are alike.

    Means are tested by chi-square; for a quantile, whose error is not that of a normal number,
    it is the smallest p-value among the comparisons with the reference, for their number."""
    found, against = [], list(comparisons)
    for name in names:
        rows = [(each.series, each.series.place(name)) for each in answers]
        value = np.array([series.value[at] for series, at in rows])
        error = np.array([series.std_error[at] for series, at in rows])
        if not (np.isfinite(value) & np.isfinite(error) & (error > 0)).all():
            found.append(math.nan)
        elif name.endswith("mean"):
            weight = 1 / error**2
            middle = weight @ value / weight.sum()
            x = float((weight * (value - middle) ** 2).sum())
            found.append(chi_square_tail(x, len(value) - 1))
        else:
            tails = [
                normal_tails(float(each.difference[at] / each.std_error[at]))
                for each in against
                if name in each.values and each.std_error[at := each.values.index(name)] > 0
            ]
            found.append(min(1.0, len(tails) * min(tails)) if tails else math.nan)
    return np.array(found, np.float64)
