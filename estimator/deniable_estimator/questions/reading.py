"""Reads a metric's estimate from a store: windows are added up, schemes are combined.

A metric that devices do not report by itself, because a pair gives its shares (`forget`), is
estimated from the tallies of that pair, in all windows in which it has no reports of its own.
"""

from __future__ import annotations

import difflib
import time
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

from deniable import Metric, MetricError, Registry, Scheme, windows
from deniable.mechanisms import Mechanism, Memoizing, PrefixTree
from deniable_collector.stores.base import Store
from deniable_collector.tally import Tally, empty_tally
from deniable_estimator.answers import Answer, answer_of, combine
from deniable_estimator.answers.pair import PairAnswer
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message
from deniable_estimator.questions.slices import places_of, sliced
from deniable_estimator.statistics.participation import Participation
from deniable_estimator.statistics.significance import Adjustment

__all__ = [
    "LENGTHS",
    "Part",
    "Question",
    "Selection",
    "check_days",
    "find_metric",
    "read",
    "select",
    "unfinished",
]

LENGTHS: dict[windows.Kind, timedelta] = {
    "day": timedelta(1),
    "week": timedelta(7),
    "month": timedelta(31),
}
"""How long a window of each kind lasts at most."""

_DAY = 86_400.0


def read(
    store: Store,
    registry: Registry,
    metric: str,
    first: date | None = None,
    last: date | None = None,
    candidates: Sequence[str] | None = None,
    *,
    without: Collection[str] = (),
    level: float = 0.95,
    adjust: Adjustment = "storey",
    now: float | None = None,
    where: Mapping[str, str] | None = None,
) -> Answer:
    """The metric's estimate over every stored window that touches the days first to last.

    Without a first or last day the range is open on that side. The windows `without` are left
    out. Windows that have not ended at `now` (POSIX seconds, the clock's if not given) count, and
    the answer says so. Where nothing was reported, the estimate has n = 0. `where` keeps the
    reports of one segment, or of one combination: {"platform": "web"}.

    Raises:
        MetricError: the registry declares no such metric.
        EstimateError: the range ends before it begins, a candidate cannot be estimated, or the
            metric has no such segment.
        StoreUnavailable: the store cannot answer now.
    """
    selection = select(store, registry, metric, first, last, candidates, without, where=where or {})
    asked = selection.read()
    answer = asked.estimate(level=level, adjust=adjust)
    return answer.marked(unfinished(answer.windows, time.time() if now is None else now))


def unfinished(labels: Iterable[str], now: float) -> tuple[str, ...]:
    """The windows that have not ended at a POSIX time. They hold reports of metrics that are
    answered at once, and of devices whose clock runs ahead."""
    return tuple(label for label in labels if windows.end(label) > now)


@dataclass(frozen=True, eq=False)
class Part:
    """The tally of one scheme, and what to estimate from it."""

    tally: Tally
    scheme: Scheme
    candidates: Sequence[str] | None
    participation: Participation

    @property
    def unnamed(self) -> bool:
        """Whether nothing names the strings to estimate: a string metric without a list, or a
        discovery, which finds them (`deniable_estimator.questions.discoveries`)."""
        scheme = self.scheme
        open_list = scheme.needs_candidates and self.candidates is None
        return open_list or isinstance(scheme.mechanism, PrefixTree)


@dataclass(frozen=True, eq=False)
class Question:
    """All data of an estimate, read from the store; only the calculation is left."""

    parts: tuple[Part, ...]
    """The current scheme comes first, so that values are in its order."""
    unit: str | None = None
    """That of a number."""
    margin: Margin | None = None
    """What a pair says of a metric that is not reported by itself."""

    @property
    def n(self) -> int:
        """Reports."""
        own = sum(part.tally.reports for part in self.parts)
        return own + (self.margin.question.n if self.margin else 0)

    def estimate(self, *, level: float = 0.95, adjust: Adjustment = "storey") -> Answer:
        """The estimate.

        Raises:
            EstimateError: a candidate cannot be estimated.
        """
        answers = [] if self.margin is None else [self.margin.estimate(level, adjust)]
        return combine(
            [
                answer_of(
                    part.tally,
                    part.scheme,
                    part.candidates,
                    level=level,
                    adjust=adjust,
                    participation=part.participation,
                    unit=self.unit,
                )
                for part in self.parts
            ]
            + answers
        )


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
class _Chosen:
    """The windows of one scheme, and what to estimate from their sum."""

    scheme: Scheme
    published: bool
    windows: tuple[str, ...]
    candidates: Sequence[str] | None
    budget: float | None
    """What a device can spend on the reports of this scheme: see `Participation`."""
    places: tuple[int, ...] = (0,)
    """The combinations of segments whose rows count."""


@dataclass(frozen=True, eq=False)
class Selection:
    """The tallies in a store that an estimate is based on; none of them is read yet."""

    store: Store
    metric: Metric
    chosen: tuple[_Chosen, ...]
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

    def within(self, labels: Collection[str]) -> Selection:
        """The same of these windows alone."""
        chosen = (
            replace(each, windows=tuple(label for label in each.windows if label in labels))
            for each in self.chosen
        )
        pair = self.pair and self.pair.within(labels)
        return replace(self, chosen=tuple(chosen), pair=pair)

    def version(self) -> tuple[object, ...]:
        """Plain values that differ when what would be read differs, at one round trip for each
        scheme with windows; candidates are not among them."""
        name = self.metric.name
        return (
            *(name, self.metric.sample_rate),
            *(self.pair.version() if self.pair else ()),
            *(
                (
                    each.scheme.fingerprint,
                    each.windows,
                    each.budget,
                    *((each.places,) if self.where else ()),
                    self.store.version(name, each.scheme.fingerprint, each.windows),
                )
                if each.windows
                else (each.scheme.fingerprint,)
                for each in self.chosen
            ),
        )

    def foresee(self) -> None:
        """Ask the store for the version of every window at once: a snapshot of it keeps them."""
        for each in self.chosen:
            if each.windows:
                self.store.each_version(self.metric.name, each.scheme.fingerprint, each.windows)

    def read(self) -> Question:
        """All data of the estimate.

        Raises:
            StoreUnavailable: the store cannot answer now.
        """
        margin = None
        if self.pair is not None:
            margin = Margin(self.pair.read(), self.metric.name, self.candidates)
        return Question(tuple(map(self._read, self.chosen)), self.metric.type.unit, margin)

    def _read(self, each: _Chosen) -> Part:
        name, fingerprint = self.metric.name, each.scheme.fingerprint
        if not each.published:
            tally = empty_tally(name, fingerprint, (), each.scheme.mechanism.rows)
            return Part(tally, each.scheme, each.candidates, Participation({}))
        whole = self.store.tally(name, fingerprint, each.windows)
        tally = sliced(whole, each.scheme, each.places)
        reports = dict.fromkeys(each.windows, tally.reports)
        if len(reports) > 1 and not self.where:
            reports = self.store.reports(name, fingerprint, each.windows)
        elif len(reports) > 1:
            rows = len(each.scheme.mechanism.rows)
            counts = self.store.row_reports(name, fingerprint, each.windows)
            reports = {
                label: int(found.reshape(-1, rows)[list(each.places)].sum())
                for label, found in counts.items()
            }
        return Part(tally, each.scheme, each.candidates, self.participation(each, reports))

    def participation(self, each: _Chosen, reports: Mapping[str, int]) -> Participation:
        """How often the devices of these reports, by window, may have reported under a scheme."""
        cost = _cost(each.scheme.mechanism)
        return Participation(reports, self.metric.sample_rate, each.budget, cost)


def select(
    store: Store,
    registry: Registry,
    metric: str,
    first: date | None = None,
    last: date | None = None,
    candidates: Sequence[str] | None = None,
    without: Collection[str] = (),
    *,
    where: Mapping[str, str] | None = None,
) -> Selection:
    """The selection of tallies for `read`, with the same errors."""
    declared = find_metric(registry, metric)
    where = where or {}
    _check_where(declared, where)
    check_days(first, last)
    current = declared.scheme.fingerprint
    published = store.schemes().get(metric, {})
    schemes: dict[str, Scheme] = {current: declared.scheme, **published}
    chosen = []
    for fingerprint, scheme in schemes.items():
        labels = store.windows(metric, fingerprint) if fingerprint in published else []
        asked = candidates
        if fingerprint != current:
            asked = _answerable(candidates, scheme)
        if asked is None or asked:
            within = tuple(
                label
                for label in _near(labels, declared, first, last)
                if label not in without and _within(label, declared, first, last)
            )
            places = places_of(scheme, where)
            if not places and fingerprint != current:
                continue  # its reports do not tell this segment
            budget = _budget(registry, declared, scheme)
            chosen.append(_Chosen(scheme, fingerprint in published, within, asked, budget, places))
    found = Selection(store, declared, tuple(chosen), where=where)
    pair = registry.unasked.get(metric)
    if pair is None:
        return found
    # In a window with reports of its own, the same devices may have reported for the pair.
    left_out = {*without, *found.labels}
    rest = select(store, registry, pair.name, first, last, without=left_out)
    return replace(found, pair=rest, candidates=candidates)


def _check_where(metric: Metric, where: Mapping[str, str]) -> None:
    """Refuse what is no value of a segment of the metric.

    Raises:
        EstimateError: it is none.
    """
    declared = {each.name: each.values for each in metric.segments}
    for name, value in where.items():
        if name not in declared:
            raise EstimateError(
                message(
                    "{metric} is not counted by a segment {segment}: {known}",
                    metric=metric.name,
                    segment=name,
                    known=", ".join(declared) or message("it has none"),
                )
            )
        if value not in declared[name]:
            raise EstimateError(
                message(
                    "{segment} has no value {value}: choose one of {known}",
                    segment=name,
                    value=value,
                    known=", ".join(declared[name]),
                )
            )


def check_days(first: date | None, last: date | None) -> None:
    """Refuse a range of days that ends before it begins.

    Raises:
        EstimateError: it does.
    """
    if first is not None and last is not None and last < first:
        raise EstimateError(
            message(
                "the range ends ({last}) before it begins ({first}): swap them",
                last=last,
                first=first,
            )
        )


def find_metric(registry: Registry, name: str) -> Metric:
    """The metric of that name.

    Raises:
        MetricError: there is none; the message names those that are spelt like it.
    """
    if name in registry.metrics:
        return registry[name]
    near = difflib.get_close_matches(name, registry.metrics, cutoff=0.5)
    known = ", ".join(near or sorted(registry.metrics))
    advice = f"did you mean {known}?" if near else f"it declares {known}"
    raise MetricError(name, f"is not declared in {registry.source}; {advice}")


def _budget(registry: Registry, metric: Metric, scheme: Scheme) -> float | None:
    """What the ledger allows a device to spend on reports of this scheme; None without a limit.

    The limits are today's, because the limits at the time of a report are not known.
    """
    budgets = [registry.lifetime_epsilon]
    # With memos, the metric's lifetime limits one memo, which no number of reports spends.
    if metric.longitudinal == "fresh" and not isinstance(scheme.mechanism, Memoizing):
        budgets.append(metric.lifetime_epsilon)
    return min((each for each in budgets if each is not None), default=None)


def _cost(mechanism: Mechanism[Any]) -> float:
    """What the ledger charges for one report."""
    return mechanism.fresh_epsilon if isinstance(mechanism, Memoizing) else mechanism.epsilon


def _answerable(candidates: Sequence[str] | None, scheme: Scheme) -> Sequence[str] | None:
    """The candidates that an earlier scheme has; its domain may lack the newest ones."""
    if candidates is None or scheme.needs_candidates:
        return candidates
    known = set(scheme.values)
    return [each for each in candidates if each in known]


def _near(
    labels: Sequence[str], metric: Metric, first: date | None, last: date | None
) -> Sequence[str]:
    """Those of the labels, which are in the order of their starts, that begin where windows of the
    metric's kind do which touch the range: a trend asks for many short ranges of a long list."""
    begin, end = 0, len(labels)
    if first is not None:
        earliest = _midnight(first) - LENGTHS[metric.window].total_seconds()
        begin = bisect_left(labels, earliest, key=windows.start)
    if last is not None:
        end = bisect_left(labels, _midnight(last) + _DAY, key=windows.start)
    return labels[begin:end]


def _within(label: str, metric: Metric, first: date | None, last: date | None) -> bool:
    """Whether a window is of the metric's kind and touches the range."""
    if windows.kind_of(label) != metric.window:
        return False
    begins = first is None or windows.end(label) > _midnight(first)
    return begins and (last is None or windows.start(label) < _midnight(last) + _DAY)


@lru_cache(maxsize=1024)
def _midnight(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()
