"""The guarantee in writing: one page of HTML that needs nothing else, for a privacy reviewer."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from deniable import Metric, Registry
from deniable.protocol.mechanisms import Memoizing
from deniable_estimator.privacy import Guarantee, guarantee_in, learned_by, together
from deniable_estimator.privacy.derivation import derivation_of
from deniable_estimator.privacy.mechanism_blankets import blanket_of
from deniable_estimator.privacy.outsider import (
    DELTA,
    LEAST_REPORTS,
    Outsider,
    outsider_of,
    outsider_together,
    plain_delta,
    span_words,
)
from deniable_estimator.privacy.spans import SPANS
from deniable_estimator.privacy.words import rounded_up

_MOST_CLASSES = 12
"""A blanket of more classes is too long for a page."""

_TEMPLATE = Path(__file__).with_name("report.html")


def report(registry: Registry, reports: int = LEAST_REPORTS, delta: float = DELTA) -> str:
    """The page, with the figures of this registry. The same registry gives the same page.

    Raises:
        ValueError: the registry has no metric, `reports` is not positive, or `delta` cannot be.
    """
    whole = outsider_together(registry, reports, delta)
    metrics = [metric for metric in registry if metric.name not in registry.unasked]
    outsiders = [outsider_of(registry, metric, reports, delta) for metric in metrics]
    given = [guarantee_in(registry, metric) for metric in metrics]
    common = [line for line in given[0].not_covered if all(line in e.not_covered for e in given)]
    schemes = "".join(f"{metric.name} {metric.scheme.fingerprint}\n" for metric in metrics)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(up=_up, span=span_words, about=_about)
    page = environment.from_string(_TEMPLATE.read_text("utf-8"))
    return page.render(
        app=registry.app or "telemetry",
        count=len(metrics),
        digest=hashlib.sha256(schemes.encode()).hexdigest(),
        reports=reports,
        delta=plain_delta(delta),
        spans=SPANS,
        unasked={name: pair.name for name, pair in registry.unasked.items()},
        metrics=[
            _worked(metric, each, published, common)
            for metric, each, published in zip(metrics, given, outsiders, strict=True)
        ],
        common=common,
        whole=together(registry),
        outsiders=outsiders,
        together=whole,
        unknown=any(not span.known for each in (*outsiders, whole) for span in each.spans.values()),
        assumed=list(whole.assumed),
        learned=_learned(given),
    )


def _worked(
    metric: Metric, given: Guarantee, published: Outsider, common: Sequence[str]
) -> dict[str, Any]:
    """A metric from the integers in force to the figures of a lifetime."""
    mechanism = metric.scheme.mechanism
    blanket = blanket_of(mechanism)
    parameters = mechanism.parameters().items()
    return {
        "name": metric.name,
        "given": given,
        "mechanism": mechanism.name.replace("_", " "),
        "fingerprint": metric.scheme.fingerprint,
        "parameters": ", ".join(f"{key} = {value}" for key, value in parameters),
        "derived": derivation_of(mechanism),
        "odds": str(mechanism.odds),
        "odds_about": f"{float(mechanism.odds):.6g}",
        "epsilon": repr(mechanism.epsilon),
        "declared": f"{metric.epsilon:g}",
        "memo": mechanism if isinstance(mechanism, Memoizing) else None,
        "gamma": f"{blanket.gamma:.6f}",
        "classes": [[f"{number:.4g}" for number in each] for each in blanket.classes]
        if len(blanket.classes) <= _MOST_CLASSES
        else [],
        "spans": [
            (span_words(span), found) for span, found in published.spans.items() if found.windows
        ],
        "not_covered": [line for line in given.not_covered if line not in common],
    }


def _learned(given: Iterable[Guarantee]) -> dict[str, str]:
    """Who can learn what, at most, of a device that reports all of these metrics."""
    metrics = list(given)
    return learned_by(
        remembers=any(each.memory is not None for each in metrics),
        at_once=any(each.answer == "at_once" for each in metrics),
    )


def _about(fraction: Fraction) -> str:
    """An exact fraction as a decimal, to compare by eye."""
    return f"{float(fraction):.6g}"


def _up(epsilon: float) -> str:
    """An epsilon with four digits that matter, rounded up."""
    if epsilon <= 0:
        return "0"
    return rounded_up(epsilon, max(1, 3 - math.floor(math.log10(epsilon))))
