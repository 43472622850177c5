"""The privacy label: what one report, a year of reports and all reports can reveal, as text; and
what a reader of published sums, who sees nothing else, learns of one device beside that.

The figures of published sums take some tenths of a second. They follow from the registry alone: a
server finds them when it starts, and keeps them. A page that comes before waits no longer than for
others.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from deniable import Metric, Registry
from deniable.protocol.mechanisms import FrequencyOracle
from deniable_estimator.asking.results import StillDecoding, TooManyDecodes, digest
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.messages import message
from deniable_estimator.planning.words import mechanism_words
from deniable_estimator.privacy import USEFUL, Bound, Guarantee, guarantee, guarantee_in
from deniable_estimator.privacy.outsider import (
    DELTA,
    Outsider,
    figure,
    outsider_of,
    plain_delta,
    span_words,
)
from deniable_estimator.privacy.spans import SPANS
from deniable_estimator.privacy.words import (
    chance,
    factor,
    in_clear,
    pace,
    rounded_up,
    shared_words,
)

_BELIEFS = (1, 10, 50, 90)
"""Out of 100: beliefs before a report, for which the label shows the beliefs after it."""

_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Figures:
    """One bound in three ways."""

    epsilon: str
    factor: str
    """The largest factor by which the odds between two values change."""
    guess: str
    """Out of 100: the most often that a 50/50 guess is right afterwards."""
    useful: bool
    """Whether it bounds anything that matters; if not, sentences take its place."""


@dataclass(frozen=True, slots=True)
class Exact:
    """The numbers in force, as fractions and as decimals."""

    mechanism: str
    odds: str
    epsilon: str
    odds_about: str
    support: SupportRates | None
    """None where reports do not support values, as of a number."""


@dataclass(frozen=True, slots=True)
class SupportRates:
    """How often a report supports the true value (p), and any other (q)."""

    p: str
    q: str
    p_about: str
    q_about: str


@dataclass(frozen=True, slots=True)
class PrivacyLabel:
    """The figures of the label."""

    one: Figures
    """One report."""
    each: Figures
    """What every report adds if there are several."""
    year: Figures
    """The reports of a typical year."""
    year_reports: str
    worst_year: Figures
    """The reports of a year in which the device takes part in every window."""
    most_reports: int
    lifetime_reports: int | None
    """How many reports the lifetime budget allows; None if only expiry ends them."""
    lifetime: Figures | None
    memo: Figures | None
    """With memos: all reports of one value."""
    edited: Figures | None
    """The same with the memos of all edits that the device accepts, if it accepts any."""
    pace: str
    """How soon a device that has a value in every window has spent its budget."""
    beliefs: tuple[tuple[int, str], ...]
    """Out of 100: what was believed before one report, and at most after it."""
    learned: dict[str, str]
    """Who -> what they can learn."""
    exact: Exact
    numeric: bool
    """Whether the values are numbers, which people call so."""
    web: bool
    """Whether browsers record the metric."""
    clear: str | None
    """What a report tells without noise, if its metric is counted by segments."""
    shared: tuple[str, ...] = ()
    """What reports of other metrics about the same values add, in sentences."""
    joins: bool = False
    """Whether it joins the values of other metrics."""


def even_guess(metric: Metric, registry: Registry) -> str:
    """Out of 100: the most often that a 50/50 guess is right after one report, of a pair if devices
    report that in place of the metric. It is all that an overview tells of a label, and takes a
    tenth of its time."""
    return _even_guess(registry.unasked.get(metric.name, metric))


@lru_cache(maxsize=1024)
def _even_guess(reported: Metric) -> str:
    return chance(Bound.of(Fraction(reported.scheme.mechanism.epsilon)))


def privacy_label(metric: Metric, registry: Registry) -> PrivacyLabel:
    """The label of a metric of a registry."""
    source = registry.unasked.get(metric.name, metric)
    return _declared_label(metric, source, registry.lifetime_epsilon, registry.about(source))


@lru_cache(maxsize=1024)
def _declared_label(
    metric: Metric, source: Metric, cap: float | None, about: tuple[Metric, ...]
) -> PrivacyLabel:
    """That of `metric` where devices report `source`."""
    given = guarantee(source, cap, 1, about)
    if source is not metric:
        given = replace(given, reported_by=source.name)
    return _label(source, given)


def label_of(metric: Metric, cap: float | None = None) -> PrivacyLabel:
    """The label of a metric that is not declared, which is not cached."""
    return _label(metric, guarantee(metric, cap))


def _label(metric: Metric, given: Guarantee) -> PrivacyLabel:
    return PrivacyLabel(
        one=_figures(given.report),
        each=_figures(given.each),
        year=_figures(given.typical_year),
        year_reports=rounded_up(given.typical_reports, 1).removesuffix(".0"),
        worst_year=_figures(given.worst_year),
        most_reports=given.most_reports,
        lifetime_reports=given.lifetime_reports,
        lifetime=None if given.lifetime is None else _figures(given.lifetime),
        memo=None if given.memory is None else _figures(given.memory.memo),
        edited=None
        if given.memory is None or given.memory.edited is None
        else _figures(given.memory.edited),
        pace=pace(given),
        beliefs=tuple((before, _after(before, given.report)) for before in _BELIEFS),
        learned=given.learned_by,
        exact=_exact(metric),
        numeric=given.numeric,
        web=given.web,
        shared=shared_words(given),
        joins=bool(given.of),
        clear=in_clear(given),
    )


def _figures(bound: Bound) -> Figures:
    epsilon = rounded_up(bound.epsilon, 2) if bound.useful else f"> {USEFUL:g}"
    return Figures(epsilon, factor(bound), chance(bound), bound.useful)


def _after(before: int, bound: Bound) -> str:
    """The largest belief after a report, in 100: the odds grow by e**epsilon at most."""
    odds = bound.odds * Fraction(before, 100 - before)
    return rounded_up(100 * odds / (odds + 1), 1)


def _exact(metric: Metric) -> Exact:
    mechanism = metric.scheme.mechanism
    support = None
    if isinstance(mechanism, FrequencyOracle):
        p, q = mechanism.p, mechanism.q
        support = SupportRates(str(p), str(q), f"{float(p):.{_DIGITS}f}", f"{float(q):.{_DIGITS}f}")
    return Exact(
        mechanism=mechanism_words(mechanism.name),
        odds=str(mechanism.odds),
        epsilon=repr(mechanism.epsilon),
        odds_about=f"{float(mechanism.odds):.{_DIGITS}f}",
        support=support,
    )


SIZES = (1_000, 10_000, 100_000)
"""The label has figures for sums of at least so many reports."""

_LABELS = "labels"
"""All labels together take one reader's places in the queue of calculations, and nobody else's."""


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """The epsilons of one span of time."""

    span: str
    windows: str
    """How many sums have a report of the device; empty where nothing limits that."""
    device: str
    """What the device's own reports reveal."""
    readers: tuple[str, ...]
    """What a reader of sums learns, for each of `SIZES`."""


@dataclass(frozen=True, slots=True)
class PublishedSums:
    """The figures of one metric."""

    sizes: tuple[int, ...]
    delta: str
    rows: tuple[PublishedRow, ...]
    assumed: tuple[str, ...]
    """What must hold for the figures, in sentences."""
    unknown: bool
    """Whether no bound below the device's is known for some span."""


def released_sums(source: DataSource, metric: Metric) -> PublishedSums | None:
    """The figures of a metric; None while they are calculated."""
    registry = source.registry
    reported = registry.unasked.get(metric.name, metric)
    key = digest(
        *("published sums", reported.scheme.fingerprint, reported.window, reported.epsilon),
        *(reported.lifetime_epsilon, registry.lifetime_epsilon, bool(reported.segments)),
    )

    def calculate() -> PublishedSums:
        memory = guarantee_in(registry, metric).memory
        by_size = [outsider_of(registry, metric, size) for size in SIZES]
        return _label_of(by_size, None if memory is None else memory.memo)

    with suppress(StillDecoding, TooManyDecodes):
        return replace(source, who=_LABELS).kept(key, calculate)
    return None


def _label_of(by_size: list[Outsider], memo: Bound | None) -> PublishedSums:
    """The figures of each size; `memo` is what all reports of one value reveal, with memos."""
    first, *_ = by_size
    rows = []
    for span in SPANS:
        if span not in first.spans:
            rows.append(PublishedRow(span_words(span), "", message("no bound"), ()))
            continue
        found = [each.spans[span] for each in by_size]
        windows = f"{found[0].windows:,}"
        device = figure(found[0].device)
        rows.append(
            PublishedRow(
                span_words(span), windows, device, tuple(figure(each.epsilon) for each in found)
            )
        )
        steady = [each.steady for each in found]
        if found[0].windows > 1 and memo is not None:
            rows.append(
                PublishedRow(
                    message("{span}, of a value that never changes", span=span_words(span)),
                    windows,
                    figure(min(found[0].device, memo, key=lambda bound: bound.epsilon)),
                    tuple(figure(each) for each in steady if each is not None),
                )
            )
    return PublishedSums(
        sizes=SIZES,
        delta=plain_delta(DELTA),
        rows=tuple(rows),
        assumed=first.assumed,
        unknown=any(not each.known for outsider in by_size for each in outsider.spans.values()),
    )
