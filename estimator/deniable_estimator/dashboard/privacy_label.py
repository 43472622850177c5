"""The privacy label: what one report, a year of reports and all reports can reveal, as text; and
what a reader of published sums, who sees nothing else, learns of one device beside that.

The figures of published sums take some tenths of a second. They follow from the registry alone: a
server finds them when it starts, and keeps them. A page that comes before waits no longer than for
others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

from deniable import Metric, Registry
from deniable.protocol.mechanisms import FrequencyOracle, Mechanism
from deniable_estimator.asking.results import StillDecoding, TooManyDecodes, key_of
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.document.document import Column, Frame
from deniable_estimator.messages import message
from deniable_estimator.planning.words import mechanism_words
from deniable_estimator.privacy.computing import guarantee_in
from deniable_estimator.privacy.guarantees import USEFUL, Bound
from deniable_estimator.privacy.outsider import DELTA, SPANS, Outsider, outsider_of
from deniable_estimator.privacy.words import (
    chance,
    factor,
    figure,
    in_clear,
    pace,
    plain_delta,
    rounded_up,
    shared_words,
    typical_reports,
)

_DIGITS = 6


def even_guess(metric: Metric, registry: Registry) -> str:
    """Out of 100: the most often that a 50/50 guess is right after one report, of a pair if devices
    report that in place of the metric. It is all that an overview tells of a label."""
    reported = registry.unasked.get(metric.name, metric)
    return chance(Bound.of(Fraction(reported.scheme.mechanism.epsilon)))


def _support(mechanism: Mechanism[Any]) -> dict[str, Fraction]:
    """How often a report supports the true value (p), and any other (q); nothing where reports do
    not support values, as of a number."""
    return {"p": mechanism.p, "q": mechanism.q} if isinstance(mechanism, FrequencyOracle) else {}


def _after(bound: Bound, before: int) -> str:
    """The largest belief after a report, in 100, by that before it: the odds grow by e**epsilon at
    most."""
    odds = bound.odds * Fraction(before, 100 - before)
    return rounded_up(100 * odds / (odds + 1), 1)


LABEL_FILTERS: Mapping[str, Callable[..., Any]] = {
    "epsilon": lambda bound: rounded_up(bound.epsilon, 2) if bound.useful else f"> {USEFUL:g}",
    "factor": factor,
    "guess": chance,
    "after": _after,
    "about": lambda number: f"{float(number):.{_DIGITS}f}",
    "support": _support,
    "mechanism": mechanism_words,
    "pace": pace,
    "typical_reports": typical_reports,
    "in_clear": in_clear,
    "shared_words": shared_words,
}
"""How templates write a bound of the label, an exact number, and what a guarantee says."""


SIZES = (1_000, 10_000, 100_000)
"""The label has figures for sums of at least so many reports."""

_LABELS = "labels"
"""All labels together take one reader's places in the queue of calculations, and nobody else's."""


def sums_label(source: DataSource, metric: Metric) -> dict[str, Any] | None:
    """The figures of a metric; None while they are calculated."""
    registry = source.registry
    reported = registry.unasked.get(metric.name, metric)
    key = key_of(
        *("published sums", reported.scheme.fingerprint, reported.window, reported.epsilon),
        *(reported.lifetime_epsilon, registry.lifetime_epsilon, bool(reported.segments)),
    )

    def calculate() -> dict[str, Any]:
        memory = guarantee_in(registry, metric).memory
        by_size = [outsider_of(registry, metric, size) for size in SIZES]
        return _label_of(by_size, None if memory is None else memory.memo)

    with suppress(StillDecoding, TooManyDecodes):
        return replace(source, who=_LABELS).kept(key, calculate)
    return None


def _label_of(by_size: list[Outsider], memo: Bound | None) -> dict[str, Any]:
    """The figures of each size; `memo` is what all reports of one value reveal, with memos."""
    first, *_ = by_size
    columns = (
        Column("span", message("Published")),
        Column("windows", message("Reports of a device"), "count"),
        Column("device", message("Seen one by one")),
        *(Column(f"n{size}", message("In sums of {n}", n=f"{size:,}")) for size in SIZES),
    )
    rows: list[tuple[Any, ...]] = []
    for span in SPANS:
        if span not in first.spans:
            # Nothing limits how many sums have a report of the device.
            rows.append((SPANS[span], None, message("no bound"), *(None for _ in SIZES)))
            continue
        found = [each.spans[span] for each in by_size]
        windows, device = found[0].windows, found[0].device
        readers = (figure(each.epsilon) for each in found)
        rows.append((SPANS[span], windows, figure(device), *readers))
        if windows > 1 and memo is not None:
            steady = message("{span}, of a value that never changes", span=SPANS[span])
            least = figure(min(device, memo, key=lambda bound: bound.epsilon))
            rows.append(
                (steady, windows, least, *(each.steady and figure(each.steady) for each in found))
            )
    known = all(each.known for outsider in by_size for each in outsider.spans.values())
    title, subtitle = message("Published sums"), message("Epsilon, at most")
    return {
        "delta": plain_delta(DELTA),
        "table": Frame("published", title, columns, rows, subtitle=subtitle),
        "assumed": first.assumed,
        "unknown": not known,
    }
