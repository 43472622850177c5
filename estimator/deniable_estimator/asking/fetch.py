"""Reads a metric's estimate from a store: windows are added up, schemes are combined.

A metric that devices do not report by itself, because a pair gives its shares (`forget`), is
estimated from the tallies of that pair, in all windows in which it has no reports of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from itertools import chain, product, starmap

import numpy as np

from deniable import Metric, Registry, Scheme
from deniable.protocol import windows
from deniable.protocol.keep import CALENDARS
from deniable.protocol.mechanisms import Memoizing
from deniable.protocol.mechanisms.memoized_retention import MemoizedRetention
from deniable.protocol.types.discovery import Discovery
from deniable_collector.stores.sums import bounds, period_of
from deniable_collector.tally import Tally, empty_tally
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.retention import WindowedTally
from deniable_estimator.asking.query import (
    Days,
    Query,
    advised,
    check_where,
    find_metric,
    places_of,
    sliced,
    windows_within,
)
from deniable_estimator.asking.reader import Reader
from deniable_estimator.errors import OnlyLongerError
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.basis import Part
from deniable_estimator.kinds.pairs.pair import PairAnswer
from deniable_estimator.kinds.registry import answers_of, combine
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
    now: float | None = None,
) -> Answer:
    """The estimate that is asked for.

    Windows that have not ended at `now` (POSIX seconds, the clock's if not given) count, and the
    answer says so. Where nothing was reported, the estimate has n = 0.

    Raises:
        MetricError: the registry declares no such metric.
        EstimateError: a candidate cannot be estimated, or the metric has no such segment.
        StoreUnavailable: the store cannot answer now.
    """
    return select(reader, registry, query).read().estimate(level=level).marked(now)


@dataclass(frozen=True, eq=False)
class Question:
    """All data of an estimate, read from the store; only the calculation is left."""

    parts: tuple[Part, ...]
    """The current scheme comes first, so that values are in its order."""
    pair: tuple[Part, ...] = ()
    """The same of the pair that gives the shares of a metric that is not reported by itself."""
    metric: str = ""
    """Which metric of the pair it is."""
    candidates: Sequence[str] | None = None
    """What is asked for of it."""

    @property
    def n(self) -> int:
        """Reports."""
        return sum(part.tally.reports for part in (*self.parts, *self.pair))

    @property
    def unreadable(self) -> tuple[str, ...]:
        """The windows that were asked for and could not be read, in their order."""
        found = {label for part in (*self.parts, *self.pair) for label in part.tally.unreadable}
        return tuple(sorted(found, key=windows.start))

    def estimate(self, *, level: float = 0.95, adjust: Adjustment = "storey") -> Answer:
        """The estimate.

        Raises:
            EstimateError: a candidate cannot be estimated.
        """
        (found,) = estimated([self], level, adjust)
        return found

    def margins(self, level: float, adjust: Adjustment) -> list[Answer]:
        """What the pair says of the metric, if there is one, with the same error."""
        if not self.pair:
            return []
        answer = Question(self.pair).estimate(level=level, adjust=adjust)
        assert isinstance(answer, PairAnswer)
        return [answer.margin_of(self.metric, self.candidates)]

    @property
    def informed(self) -> tuple[Part, ...]:
        """The parts that have reports."""
        return tuple(part for part in self.parts if part.tally.reports)


def estimated(
    questions: Sequence[Question], level: float, adjust: Adjustment = "storey"
) -> list[Answer]:
    """What each of these questions estimates, with the errors of one; the tallies of a scheme are
    estimated together."""
    margins = [each.margins(level, adjust) for each in questions]
    # Without any report the answer is of the kind that the pair gives, so that such a period can
    # be compared with others.
    asked = [each.informed or (() if each.pair else each.parts[:1]) for each in questions]
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
class Chosen:
    """The windows of one scheme, and what to estimate from their sum."""

    metric: Metric
    """The one that is asked for, or the pair that gives its shares."""
    scheme: Scheme
    windows: tuple[str, ...]
    candidates: Sequence[str] | None
    budget: float | None
    """What a device can spend on the reports of this scheme: see `Participation`."""
    places: tuple[int, ...]
    """The combinations of segments whose rows count."""
    dropped: frozenset[str]
    """The windows that were dropped: their reports are only in sums of longer periods."""
    apart: tuple[str, ...]
    """All windows that can be read one by one, those before the range too, where an answer needs
    each of them; otherwise none."""

    @property
    def named(self) -> tuple[str, str]:
        """What its tallies are called in a store."""
        return self.metric.name, self.scheme.fingerprint

    @property
    def about(self) -> tuple[object, ...]:
        """Plain values that differ when other reports count, or count in another way."""
        rates = self.metric.sample_rate, self.metric.one_in
        return *self.named, *rates, self.budget, self.places

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
    def kept(self) -> float:
        """The part of a report's variance that stays the same on a device, at most."""
        return analysis_of(self.scheme.mechanism).kept_part()

    @cached_property
    def cost(self) -> float:
        """What the ledger charges for one report."""
        return self.scheme.mechanism.cost

    def part(self, tally: Tally, reports: Mapping[str, int]) -> Part:
        """A tally of it, with the reports of each of its windows."""
        metric = self.metric
        participation = Participation(
            reports, metric.sample_rate, self.budget, self.cost, metric.one_in or 1, self.kept
        )
        return Part(tally, self.scheme, self.candidates, participation, metric.type.unit)


@dataclass(frozen=True, eq=False)
class Selection:
    """The tallies in a store that an estimate is based on; none of them is read yet."""

    reader: Reader
    metric: Metric
    chosen: tuple[Chosen, ...]
    """Its own come first, then those of the pair that gives its shares, if it is not reported by
    itself."""
    query: Query

    @property
    def own(self) -> tuple[Chosen, ...]:
        """The tallies of the metric itself."""
        return tuple(each for each in self.chosen if each.metric.name == self.metric.name)

    @property
    def of_pair(self) -> tuple[Chosen, ...]:
        """Those of the pair."""
        return self.chosen[len(self.own) :]

    @property
    def labels(self) -> tuple[str, ...]:
        """All windows that would be read, the oldest first."""
        labels = {label for each in self.chosen for label in each.windows}
        return tuple(sorted(labels, key=windows.start))

    @property
    def dropped(self) -> frozenset[str]:
        """Those of its windows that were dropped under a scheme."""
        return frozenset[str]().union(*(each.dropped for each in self.chosen))

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
        return replace(self, chosen=tuple(chosen))

    def version(self) -> tuple[object, ...]:
        """Plain values that differ when what would be read differs, at one round trip for each
        scheme with windows; candidates are not among them."""
        return (
            self.metric.name,
            *(
                (each.about, each.windows, self.reader.version(*each.named, each.read))
                if each.windows
                else each.about
                for each in self.chosen
            ),
        )

    def each_version(self) -> dict[str, tuple[object, ...]]:
        """For each of its windows, plain values that differ when what would be read of it alone
        differs, with one call of the store for each scheme; the oldest window first."""
        # As one text, because of many windows each would be turned into text again.
        about = repr((self.metric.name, [each.about for each in self.chosen]))
        found = [(each, self.reader.each_version(*each.named, each.read)) for each in self.chosen]

        def of(label: str, each: Chosen, known: Mapping[str, bytes]) -> object:
            before = each.single([label])
            return tuple(map(known.get, before)) if before else known.get(label)

        return {
            label: (about, label, *(of(label, *each) for each in found)) for label in self.labels
        }

    @property
    def at_once(self) -> int:
        """How many of its windows may be read at once, so that their tallies take 8 MB at most."""
        size = sum(row.width + 1 for each in self.chosen for row in each.scheme.rows)
        return max(1, _COUNTERS // max(1, size))

    def read(self) -> Question:
        """All data of the estimate.

        Raises:
            OnlyLongerError: single windows of a longer period are asked for, which were dropped;
                it names days that can be asked for.
            StoreUnavailable: the store cannot answer now.
        """
        try:
            (found,) = self.read_each([self.labels])
        except OnlyLongerError as error:
            raise advised(error, next(self._days_around(), None)) from None
        return found

    def can_read(self, days: Days) -> bool:
        """Whether the sum of these days is there, whatever days are asked for."""
        for each in self.chosen:
            known = filter(days.holds, self.reader.all_windows(*each.named))
            (labels,) = windows_within([*known], each.metric, [days])
            if not self.reader.can_sum(*each.named, labels):
                return False
        return True

    def kept_days(self) -> Days:
        """The days that are asked for; where single windows of a longer period were dropped, with
        all of that period, if its sum is kept."""
        return next(self._days_around(), self.query.days) if self.dropped else self.query.days

    def _days_around(self) -> Iterator[Days]:
        """Days that can be read, and hold those that are asked for; at the end those of them that
        came after all that was dropped."""
        gone, days = sorted(self.dropped, key=windows.start), self.query.days
        if not gone:
            # They were dropped while this was asked.
            return
        first = windows.first_day(self.labels[0]) if days.first == date.min else days.first
        last = windows.last_day(self.labels[-1]) if days.last == date.max else days.last
        for calendar in CALENDARS[self.metric.window]:
            begin, _ = bounds(period_of(calendar, gone[0]))
            _, end = bounds(period_of(calendar, gone[-1]))
            firsts = (first, min(first, datetime.fromtimestamp(begin, UTC).date()))
            lasts = (last, max(last, datetime.fromtimestamp(end - 1, UTC).date()))
            yield from filter(self.can_read, starmap(days.over, product(firsts, lasts)))
        if rest := self.after_dropped(last):
            yield rest

    def after_dropped(self, last: date) -> Days | None:
        """The days up to the last one that came after all that was dropped, if there are any."""
        ended = max(map(windows.last_day, self.dropped), default=last)
        return self.query.days.over(ended + timedelta(1), last) if ended < last else None

    def read_each(self, ranges: Sequence[Sequence[str]]) -> list[Question]:
        """All data of the estimate of each of these ranges of its windows, with the same errors.

        Tallies of single windows come with one call of the store for each scheme, and so do the
        reports of all others. All tallies are in memory at once.
        """
        columns = [self._parts(each, ranges) for each in self.chosen]
        count, asked = len(self.own), (self.metric.name, self.query.candidates)
        return [
            Question(parts[:count], parts[count:], *asked)
            for parts in (zip(*columns, strict=True) if columns else [()] * len(ranges))
        ]

    def _parts(self, each: Chosen, ranges: Sequence[Sequence[str]]) -> list[Part]:
        """What one scheme has in each of these ranges."""
        there = set(each.windows)
        own = [[label for label in labels if label in there] for labels in ranges]
        single = [labels[0] for labels in own if len(labels) == 1]
        alone = self.reader.each_tally(*each.named, single) if single else {}
        several = [label for labels in own if len(labels) > 1 for label in labels]
        reports = self._reports(each, several) if several else {}
        nothing = each.part(empty_tally(*each.named, (), each.scheme.mechanism.rows), {})
        found = []
        for labels in own:
            if not labels:
                found.append(nothing)
                continue
            tally = alone[labels[0]] if len(labels) == 1 else self.reader.tally(*each.named, labels)
            tally = self._with_windows(each, sliced(tally, each.scheme, each.places))
            # Those that cannot be read are not in it; one of a single window tells its reports.
            counts = {label: reports.get(label, tally.reports) for label in tally.windows}
            found.append(each.part(tally, counts))
        return found

    def _with_windows(self, each: Chosen, tally: Tally) -> Tally:
        """The same with the tallies of single windows, if the answer needs them."""
        labels = each.single(tally.windows)
        if not labels:
            return tally
        return WindowedTally(
            *(tally.metric, tally.scheme, tally.windows, tally.rows, tally.unreadable),
            each=tuple(self.reader.each_tally(*each.named, labels).values()),
        )

    def _reports(self, each: Chosen, labels: Sequence[str]) -> dict[str, int]:
        """The reports of each of these windows of one scheme."""
        found = self.reader.segment_reports(*each.named, labels)
        # All together, because numpy takes longer for the call than for the sum.
        counts = np.array(list(found.values()))[:, list(each.places)].sum(axis=1)
        return dict(zip(found, counts.tolist(), strict=True))


def select(
    reader: Reader, registry: Registry, query: Query, reach: Days | None = None
) -> Selection:
    """The selection of tallies for `read`, with the same errors; where more must be read than the
    days that are asked for, to compare with, all that they `reach`."""
    metric = find_metric(registry, query.metric)
    check_where(metric, query.where)
    note_asked(reader, registry, metric, query.days)
    reach = reach or query.days
    chosen = tuple(_chosen(reader, registry, metric, replace(query, days=reach)))
    for each in chosen:
        # Of retention alone, whose cohorts may have begun before the days that are asked for.
        if each.apart and (needed := each.single([*filter(query.days.holds, each.windows)])):
            began = Days(windows.first_day(needed[0]), windows.last_day(needed[-1]))
            note_asked(reader, registry, metric, began.leaving_out(*query.days.without))
    found = Selection(reader, metric, chosen, query)
    pair = registry.unasked.get(metric.name)
    if pair is None:
        return found
    # In a window with reports of its own, the same devices may have reported for the pair.
    rest = Query(pair.name, reach.leaving_out(*found.labels))
    return replace(found, chosen=(*chosen, *_chosen(reader, registry, pair, rest)))


def reported(reader: Reader, registry: Registry, metric: Metric) -> list[str]:
    """The windows that hold reports of a metric, or of the pair that answers for it."""
    pair = registry.unasked.get(metric.name)
    return [
        label
        for name in (metric.name, *((pair.name,) if pair else ()))
        for scheme in reader.schemes_of(name)
        for label in reader.all_windows(name, scheme)
    ]


def first_day(reader: Reader, registry: Registry, metric: Metric) -> date:
    """The first day that has reports of a metric in windows of its kind; `date.min` without any,
    and of a discovery, as nothing is compared of it."""
    if isinstance(metric.type, Discovery):
        return date.min
    labels = reported(reader, registry, metric)
    own = (each for each in labels if windows.kind_of(each) == metric.window)
    return min(map(windows.first_day, own), default=date.min)


def note_asked(reader: Reader, registry: Registry, metric: Metric, days: Days) -> None:
    """Let the reader know that these days of a metric are asked for: of the pair too that gives its
    shares."""
    pair = registry.unasked.get(metric.name, metric)
    reader.asked.update({(metric.name, days), (pair.name, days)})


def _chosen(reader: Reader, registry: Registry, metric: Metric, query: Query) -> Iterator[Chosen]:
    """The tallies that a metric has itself, of each of its schemes."""
    without = set(query.days.without)
    current = metric.scheme.fingerprint
    published = reader.schemes_of(metric.name)
    schemes: dict[str, Scheme] = {current: metric.scheme, **published}
    for fingerprint, scheme in schemes.items():
        there = fingerprint in published
        labels = reader.all_windows(metric.name, fingerprint) if there else []
        gone = reader.dropped(metric.name, fingerprint) if there else []
        asked = query.candidates
        if fingerprint != current:
            asked = _answerable(asked, scheme)
        places = places_of(scheme, query.where)
        # Of an earlier scheme, reports may not tell what is asked for, or not this segment.
        if (asked is not None and not asked) or not (places or fingerprint == current):
            continue
        kept = [label for label in labels if label not in without] if without else labels
        (within,) = windows_within(kept, metric, [query.days])
        looked = isinstance(scheme.mechanism, MemoizedRetention)
        yield Chosen(
            metric,
            scheme,
            within,
            asked,
            _budget(registry, metric, scheme),
            places,
            frozenset(gone).intersection(within),
            tuple(label for label in kept if label not in gone) if looked else (),
        )


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
