"""Reads a metric's estimate from a store: windows are added up, schemes are combined.

A metric that devices do not report by itself, because a pair gives its shares (`forget`), is
estimated from the tallies of that pair, in all windows in which it has no reports of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

import numpy as np

from deniable import Metric, Registry, Scheme
from deniable.protocol import windows
from deniable.protocol.mechanisms import Memoizing
from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
from deniable_collector.stores.errors import NotKept
from deniable_collector.tally import Tally, empty_tally
from deniable_estimator.analyses.retention import WindowedTally
from deniable_estimator.answers import answers_of, combine
from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.basis import Part
from deniable_estimator.answers.pair import PairAnswer
from deniable_estimator.asking.query import (
    Query,
    check_days,
    check_where,
    find_metric,
    only_longer,
    places_of,
    sliced,
    windows_within,
)
from deniable_estimator.asking.reader import Reader
from deniable_estimator.statistics.participation import Participation
from deniable_estimator.statistics.significance import Adjustment

_COUNTERS = 1 << 20
"""Counters that are read at once, of 8 bytes each."""


def read(
    reader: Reader,
    registry: Registry,
    query: Query,
    *,
    level: float = 0.95,
    adjust: Adjustment = "storey",
    now: float | None = None,
) -> Answer:
    """The estimate that is asked for.

    Windows that have not ended at `now` (POSIX seconds, the clock's if not given) count, and the
    answer says so. Where nothing was reported, the estimate has n = 0.

    Raises:
        MetricError: the registry declares no such metric.
        EstimateError: the range ends before it begins, a candidate cannot be estimated, or the
            metric has no such segment.
        StoreUnavailable: the store cannot answer now.
    """
    answer = select(reader, registry, query).read().estimate(level=level, adjust=adjust)
    return answer.marked(unfinished(answer.windows, time.time() if now is None else now))


def unfinished(labels: Iterable[str], now: float) -> tuple[str, ...]:
    """The windows that have not ended at a POSIX time. They hold reports of metrics that are
    answered at once, and of devices whose clock runs ahead."""
    return tuple(label for label in labels if windows.end(label) > now)


@dataclass(frozen=True, eq=False)
class Question:
    """All data of an estimate, read from the store; only the calculation is left."""

    parts: tuple[Part, ...]
    """The current scheme comes first, so that values are in its order."""
    margin: Margin | None = None
    """What a pair says of a metric that is not reported by itself."""

    @property
    def n(self) -> int:
        """Reports."""
        own = sum(part.tally.reports for part in self.parts)
        return own + (self.margin.question.n if self.margin else 0)

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The windows that were asked for and could not be read, in their order."""
        found = {label for part in self.parts for label in part.tally.unreadable}
        found.update(self.margin.question.unreadable if self.margin else ())
        return tuple(sorted(found, key=windows.start))

    def estimate(self, *, level: float = 0.95, adjust: Adjustment = "storey") -> Answer:
        """The estimate.

        Raises:
            EstimateError: a candidate cannot be estimated.
        """
        (found,) = estimated([self], level, adjust)
        return found

    @property
    def informed(self) -> tuple[Part, ...]:
        """The parts that have reports."""
        return tuple(part for part in self.parts if part.tally.reports)


def estimated(
    questions: Sequence[Question], level: float, adjust: Adjustment = "storey"
) -> list[Answer]:
    """What each of these questions estimates, with the errors of one; the tallies of a scheme are
    estimated together."""
    margins = [[each.margin.estimate(level, adjust)] if each.margin else [] for each in questions]
    # Without any report the answer is of the kind that the pair gives, so that such a period can
    # be compared with others.
    asked = [each.informed or (() if each.margin else each.parts[:1]) for each in questions]
    alike: dict[tuple[str, bool], dict[Part, None]] = {}
    for part in chain.from_iterable(asked):
        alike.setdefault((part.scheme.fingerprint, part.tally.reports > 0), {})[part] = None
    answers: dict[Part, Answer] = {}
    for parts in map(list, alike.values()):
        answers.update(zip(parts, answers_of(parts, level, adjust), strict=True))
    return [
        combine([*map(answers.__getitem__, parts), *margin]).lacking(question.unreadable)
        for question, parts, margin in zip(questions, asked, margins, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Margin:
    """One of the two lists of a pair, as the answer of its metric."""

    question: Question
    metric: str
    candidates: Sequence[str] | None

    def estimate(self, level: float, adjust: Adjustment) -> Answer:
        answer = self.question.estimate(level=level, adjust=adjust)
        assert isinstance(answer, PairAnswer)
        return answer.margin_of(self.metric, self.candidates)


@dataclass(frozen=True, eq=False)
class Chosen:
    """The windows of one scheme, and what to estimate from their sum."""

    scheme: Scheme
    published: bool
    windows: tuple[str, ...]
    candidates: Sequence[str] | None
    budget: float | None
    """What a device can spend on the reports of this scheme: see `Participation`."""
    places: tuple[int, ...] = (0,)
    """The combinations of segments whose rows count."""
    dropped: frozenset[str] = frozenset()
    """The windows that were dropped: their reports are only in sums of longer periods."""
    apart: tuple[str, ...] = ()
    """All windows that can be read one by one, those before the range too, where an answer needs
    each of them; otherwise none."""

    def named(self, metric: Metric) -> tuple[str, str]:
        """What its tallies are called in a store."""
        return metric.name, self.scheme.fingerprint

    def single(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Those that an answer of these windows needs one by one: they and those in which their
        cohorts began."""
        mechanism = self.scheme.mechanism
        if not (labels and isinstance(mechanism, MemoizedRetention)):
            return ()
        numbers = list(map(windows.number, labels))
        first, last = min(numbers) - max(mechanism.ages, 1), max(numbers)
        return tuple(each for each in self.apart if first <= windows.number(each) <= last)

    @property
    def read(self) -> tuple[str, ...]:
        """All windows that are read for its answer, the oldest first."""
        before = [each for each in self.single(self.windows) if each not in self.windows]
        return (*before, *self.windows)

    @cached_property
    def cost(self) -> float:
        """What the ledger charges for one report."""
        return self.scheme.mechanism.cost


@dataclass(frozen=True, eq=False)
class Selection:
    """The tallies in a store that an estimate is based on; none of them is read yet."""

    reader: Reader
    metric: Metric
    chosen: tuple[Chosen, ...]
    pair: Selection | None = None
    """The tallies of the pair that gives its shares, if it is not reported by itself."""
    candidates: Sequence[str] | None = None
    """What is asked for of them."""
    where: Mapping[str, str] = field(default_factory=dict)
    """The segments that it is limited to."""

    @property
    def labels(self) -> tuple[str, ...]:
        """All windows that would be read, the oldest first."""
        labels = {label for each in self.chosen for label in each.windows}
        labels.update(self.pair.labels if self.pair else ())
        return tuple(sorted(labels, key=windows.start))

    @property
    def dropped(self) -> frozenset[str]:
        """Those of its windows that were dropped under a scheme."""
        own = frozenset[str]().union(*(each.dropped for each in self.chosen))
        return own | self.pair.dropped if self.pair else own

    def within(self, labels: Collection[str]) -> Selection:
        """The same of these windows alone."""
        return self._windows_where(lambda _, label: label in labels)

    def apart(self) -> Selection:
        """The same of the windows that can be read one by one: without those that were dropped."""
        return self._windows_where(lambda each, label: label not in each.dropped)

    def _windows_where(self, holds: Callable[[Chosen, str], bool]) -> Selection:
        """The same of the windows of which this holds."""
        chosen = (
            replace(each, windows=tuple(label for label in each.windows if holds(each, label)))
            for each in self.chosen
        )
        return replace(
            self, chosen=tuple(chosen), pair=self.pair and self.pair._windows_where(holds)
        )

    def version(self) -> tuple[object, ...]:
        """Plain values that differ when what would be read differs, at one round trip for each
        scheme with windows; candidates are not among them."""
        name = self.metric.name
        return (
            *(name, self.metric.sample_rate, self.metric.one_in),
            *(self.pair.version() if self.pair else ()),
            *(
                (
                    each.scheme.fingerprint,
                    each.windows,
                    each.budget,
                    *((each.places,) if self.where else ()),
                    self.reader.version(name, each.scheme.fingerprint, each.read),
                )
                if each.windows
                else (each.scheme.fingerprint,)
                for each in self.chosen
            ),
        )

    def each_version(self) -> dict[str, tuple[object, ...]]:
        """For each of its windows, plain values that differ when what would be read of it alone
        differs, with one call of the store for each scheme; the oldest window first."""
        name, rate = self.metric.name, (self.metric.sample_rate, self.metric.one_in)
        # As one text, because of many windows each would be turned into text again.
        about = repr(
            (name, rate, [(e.scheme.fingerprint, e.budget, e.places) for e in self.chosen])
        )
        found = [
            self.reader.each_version(name, each.scheme.fingerprint, each.read)
            for each in self.chosen
        ]
        of_pair = self.pair.each_version() if self.pair else {}

        def of(label: str, place: int) -> object:
            known = found[place]
            before = self.chosen[place].single([label])
            return tuple(map(known.get, before)) if before else known.get(label)

        return {
            label: (about, label, of_pair.get(label), *(of(label, at) for at in range(len(found))))
            for label in self.labels
        }

    @property
    def at_once(self) -> int:
        """How many of its windows may be read at once, so that their tallies take 8 MB at most."""
        sizes = [sum(row.width + 1 for row in each.scheme.rows) for each in self.chosen]
        own = max(1, _COUNTERS // max(1, sum(sizes)))
        return min(own, self.pair.at_once) if self.pair else own

    def read(self) -> Question:
        """All data of the estimate.

        Raises:
            EstimateError: single windows of a longer period are asked for, which were dropped.
            StoreUnavailable: the store cannot answer now.
        """
        (found,) = self.read_each([self.labels])
        return found

    def read_each(self, ranges: Sequence[Sequence[str]]) -> list[Question]:
        """All data of the estimate of each of these ranges of its windows, with the same errors.

        Tallies of single windows come with one call of the store for each scheme, and so do the
        reports of all others. All tallies are in memory at once.
        """
        margins: list[Margin | None] = [None] * len(ranges)
        if self.pair is not None:
            name = self.metric.name
            margins = [Margin(each, name, self.candidates) for each in self.pair.read_each(ranges)]
        columns = [self._parts(each, ranges) for each in self.chosen]
        return [
            Question(tuple(column[place] for column in columns), margin)
            for place, margin in enumerate(margins)
        ]

    def _parts(self, each: Chosen, ranges: Sequence[Sequence[str]]) -> list[Part]:
        """What one scheme has in each of these ranges."""
        there = set(each.windows)
        own = [[label for label in labels if label in there] for labels in ranges]
        single = [labels[0] for labels in own if len(labels) == 1]
        alone = self._each_tally(each, single) if single else {}
        several = [label for labels in own if len(labels) > 1 for label in labels]
        reports = self._reports(each, several) if several else {}
        nothing = empty_tally(*each.named(self.metric), (), each.scheme.mechanism.rows)
        told = self.participation(each, {}) if each.published else Participation({})
        unit = self.metric.type.unit
        none, found = Part(nothing, each.scheme, each.candidates, told, unit), []
        for labels in own:
            if not labels:
                found.append(none)
                continue
            tally = alone[labels[0]] if len(labels) == 1 else self.tally(each, labels)
            tally = self._with_windows(each, sliced(tally, each.scheme, each.places))
            # Those that cannot be read are not in it; one of a single window tells its reports.
            counts = {label: reports.get(label, tally.reports) for label in tally.windows}
            told = self.participation(each, counts)
            found.append(Part(tally, each.scheme, each.candidates, told, unit))
        return found

    def _with_windows(self, each: Chosen, tally: Tally) -> Tally:
        """The same with the tallies of single windows, if the answer needs them."""
        labels = each.single(tally.windows)
        if not labels:
            return tally
        return WindowedTally(
            *(tally.metric, tally.scheme, tally.windows, tally.rows, tally.unreadable),
            each=tuple(self._each_tally(each, labels).values()),
        )

    def _each_tally(self, each: Chosen, labels: Collection[str]) -> dict[str, Tally]:
        """The tally of each of these windows of one scheme, with the errors of `read`."""
        try:
            return self.reader.each_tally(*each.named(self.metric), labels)
        except NotKept as error:
            raise only_longer(self.metric.name, error) from None

    def _reports(self, each: Chosen, labels: Sequence[str]) -> dict[str, int]:
        """The reports of each of these windows of one scheme."""
        found = self.reader.segment_reports(*each.named(self.metric), labels)
        # All together, because numpy takes longer for the call than for the sum.
        counts = np.array(list(found.values()))[:, list(each.places)].sum(axis=1)
        return dict(zip(found, counts.tolist(), strict=True))

    def tally(self, each: Chosen, labels: Sequence[str]) -> Tally:
        """The sum of some windows of one scheme.

        Raises:
            EstimateError, StoreUnavailable: as `read` does.
        """
        try:
            return self.reader.tally(*each.named(self.metric), labels)
        except NotKept as error:
            raise only_longer(self.metric.name, error) from None

    def participation(self, each: Chosen, reports: Mapping[str, int]) -> Participation:
        """How often the devices of these reports, by window, may have reported under a scheme."""
        return Participation(
            reports, self.metric.sample_rate, each.budget, each.cost, self.metric.one_in or 1
        )


def select(reader: Reader, registry: Registry, query: Query) -> Selection:
    """The selection of tallies for `read`, with the same errors."""
    metric, candidates, where = query.metric, query.candidates, query.where
    declared = find_metric(registry, metric)
    check_where(declared, where)
    check_days(query.days)
    without = set(query.days.without)
    current = declared.scheme.fingerprint
    published = {of[1]: scheme for of, scheme in reader.schemes().items() if of[0] == metric}
    schemes: dict[str, Scheme] = {current: declared.scheme, **published}
    chosen = []
    for fingerprint, scheme in schemes.items():
        labels = reader.all_windows(metric, fingerprint) if fingerprint in published else []
        gone = reader.dropped(metric, fingerprint) if fingerprint in published else []
        asked = candidates
        if fingerprint != current:
            asked = _answerable(candidates, scheme)
        if asked is None or asked:
            kept = [label for label in labels if label not in without] if without else labels
            (within,) = windows_within(kept, declared, [query.days])
            places = places_of(scheme, where)
            if not places and fingerprint != current:
                continue  # its reports do not tell this segment
            budget = _budget(registry, declared, scheme)
            apart = frozenset(gone).intersection(within)
            there = fingerprint in published
            looked = isinstance(scheme.mechanism, MemoizedRetention)
            single = tuple(label for label in kept if label not in gone) if looked else ()
            chosen.append(Chosen(scheme, there, within, asked, budget, places, apart, single))
    found = Selection(reader, declared, tuple(chosen), where=where)
    pair = registry.unasked.get(metric)
    if pair is None:
        return found
    # In a window with reports of its own, the same devices may have reported for the pair.
    rest = select(reader, registry, Query(pair.name, query.days.leaving_out(*found.labels)))
    return replace(found, pair=rest, candidates=candidates)


def _budget(registry: Registry, metric: Metric, scheme: Scheme) -> float | None:
    """What the ledger allows a device to spend on reports of this scheme; None without a limit.

    The limits are today's, because the limits at the time of a report are not known.
    """
    budgets = [registry.lifetime_epsilon]
    # With memos, the metric's lifetime limits one memo, which no number of reports spends.
    if metric.longitudinal == "fresh" and not isinstance(scheme.mechanism, Memoizing):
        budgets.append(metric.lifetime_epsilon)
    return min((each for each in budgets if each is not None), default=None)


def _answerable(candidates: Sequence[str] | None, scheme: Scheme) -> Sequence[str] | None:
    """The candidates that an earlier scheme has; its domain may lack the newest ones."""
    if candidates is None or scheme.needs_candidates:
        return candidates
    known = set(scheme.values)
    return [each for each in candidates if each in known]
