"""The part of a privacy label that is about published sums: what a reader who sees nothing else
learns of one device, beside what its own reports reveal.

The figures of a metric take some tenths of a second. They follow from the registry alone: a server
finds them when it starts, and keeps them. A page that comes before waits no longer than for others.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from deniable import Metric
from deniable_estimator.asking.results import StillDecoding, TooManyDecodes, digest
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.messages import message
from deniable_estimator.privacy import Bound, guarantee_in
from deniable_estimator.privacy.outsider import (
    DELTA,
    Outsider,
    figure,
    outsider_of,
    plain_delta,
    span_words,
)
from deniable_estimator.privacy.spans import SPANS

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
