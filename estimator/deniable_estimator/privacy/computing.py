"""Computes guarantees from the mechanism in force and from the limits of the device's ledger.

How clearly memoized reports reveal that a value changes: a computed example.

Compare two histories of T reports: one value all the time, and two values alternating. The first
uses one memo, the second two. Consider the event that all odd reports look like one value and
all even ones like the other. Its probability under each history is known exactly, and the
logarithm of their quotient is a lower bound for the epsilon between the histories. It grows with
T without end. So "the number of memos times the epsilon of one", which is often stated for such
systems, bounds what is revealed about values given the times of change, but not about the times.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from deniable import Metric, Registry
from deniable.protocol.mechanisms import Memoizing
from deniable.protocol.mechanisms.number_range import Numeric
from deniable.protocol.windows import IN_A_YEAR
from deniable_estimator.analyses import analysis_of
from deniable_estimator.analyses.base import Analysis
from deniable_estimator.privacy.guarantees import (
    Bound,
    ChangeExample,
    CrowdNeeded,
    Guarantee,
    MemoGuarantee,
    SameValues,
    Together,
)

_MOST_REPORTS = 1 << 16


def reports_that_show(memory: Analysis[Any], epsilon: float) -> int | None:
    """The smallest even number of alternating reports that reveal more than `epsilon`.

    None if not even 65,536 do.
    """
    counts = range(2, _MOST_REPORTS + 1, 2)
    place = bisect_right(counts, epsilon, key=memory.alternation_loss)
    return counts[place] if place < len(counts) else None


MOST_IN_A_YEAR = {"day": 366, "week": 53, "month": 12}
"""How many windows of a kind end in one year at most."""


def guarantee_in(registry: Registry, metric: Metric, household: int = 1) -> Guarantee:
    """The guarantee of a metric of a registry. Where devices report a pair in its place, it is
    that of the pair.
    """
    source = registry.unasked.get(metric.name, metric)
    found = guarantee(source, registry.lifetime_epsilon, household, registry.about(source))
    if source is metric:
        return found
    return replace(
        found, metric=metric.name, description=metric.description, reported_by=source.name
    )


def guarantee(
    metric: Metric,
    cap: float | None = None,
    household: int = 1,
    about: Sequence[Metric] = (),
) -> Guarantee:
    """The guarantee of a metric under the cap of its registry, from the mechanism in force; `about`
    are all metrics whose reports of a window are about the same values.
    """
    mechanism = metric.scheme.mechanism
    # What the device's ledger charges for each report, and where it stops.
    if isinstance(mechanism, Memoizing):
        cost, own = Fraction(mechanism.fresh_epsilon), None
    else:
        cost, own = Fraction(mechanism.epsilon), metric.lifetime_epsilon
    limits = [each for each in (own, cap) if each is not None]
    reports = math.floor(Fraction(min(limits)) / cost) if limits else None
    most = math.ceil(MOST_IN_A_YEAR[metric.window] / (metric.one_in or 1))
    typical = IN_A_YEAR[metric.window] * metric.rate
    if reports is not None:
        most, typical = min(most, reports), min(typical, float(reports))
    lifetime = None if reports is None else Bound.of(household * reports * cost)
    memory = None
    if isinstance(mechanism, Memoizing):
        memory = _memory(metric, mechanism, household, lifetime)
    same = None
    if len(about) > 1:
        found = [guarantee(each, cap, household) for each in about]
        names = tuple(each.metric for each in found)
        same = SameValues(names, *_totals(found, cap, household))
    return Guarantee(
        metric=metric.name,
        description=metric.description,
        mechanism=mechanism.name,
        window=metric.window,
        sample_rate=metric.rate,
        household=household,
        report=Bound.of(household * Fraction(mechanism.epsilon)),
        each=Bound.of(household * cost),
        typical_reports=typical,
        typical_year=Bound.of(household * Fraction(typical) * cost),
        most_reports=most,
        worst_year=Bound.of(household * most * cost),
        lifetime_reports=reports,
        lifetime=lifetime,
        memory=memory,
        numeric=isinstance(mechanism, Numeric),
        answer=metric.answer,
        platform=metric.platform,
        of=metric.type.of,
        same_values=same,
        segments={each.name: each.values for each in metric.segments},
        discovery=CrowdNeeded.of(metric),
    )


def _totals(
    found: Sequence[Guarantee], cap: float | None, household: int
) -> tuple[Bound, Bound, Bound, Bound | None]:
    """One report of each, all of them in a typical year, in the worst year and in a lifetime; none
    beyond the cap. Without it there is no bound for a lifetime if one of them has none."""
    limit = None if cap is None else household * Fraction(cap)

    def total(bounds: Sequence[Bound]) -> Bound:
        whole = sum((Fraction(each.epsilon) for each in bounds), Fraction(0))
        return Bound.of(whole if limit is None else min(whole, limit))

    lifetimes = [each.lifetime for each in found if each.lifetime is not None]
    return (
        total([each.report for each in found]),
        total([each.typical_year for each in found]),
        total([each.worst_year for each in found]),
        total(lifetimes) if len(lifetimes) == len(found) else None,
    )


def all_together(registry: Registry, household: int = 1) -> Together:
    """The guarantees of all metrics, and of all of them together on one device."""
    cap = registry.lifetime_epsilon
    metrics = tuple(
        guarantee_in(registry, metric, household)
        for metric in registry
        if metric.name not in registry.unasked
    )
    report, year, worst, lifetime = _totals(metrics, cap, household)
    return Together(household, metrics, report, year, worst, cap, lifetime)


def _memory(
    metric: Metric, mechanism: Memoizing[Any], household: int, lifetime: Bound | None
) -> MemoGuarantee:
    """What memos bound; never more than `lifetime`, where the registry's cap ends all reports."""
    memo = Fraction(mechanism.lifetime_epsilon)

    def of(memos: int) -> Bound:
        bound = Bound.of(household * memos * memo)
        return bound if lifetime is None else min(bound, lifetime, key=lambda each: each.epsilon)

    memory = analysis_of(mechanism)
    reports = reports_that_show(memory, float(2 * memo))
    change = None
    if reports is not None:
        shown = memory.alternation_loss(reports)
        change = ChangeExample(reports, shown, Bound.of(2 * memo))
    cells = memory.entries(len(metric.values) or None)
    edits = math.floor(Fraction(metric.lifetime_epsilon) / memo)
    return MemoGuarantee(
        memo=of(1),
        edited=of(edits) if edits > 1 else None,
        cells=cells,
        values=None if cells is None else of(cells),
        change=change,
    )
