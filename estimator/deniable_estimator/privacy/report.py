"""The guarantee in writing: one page of HTML that needs nothing else, for a privacy reviewer."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from deniable import Registry
from deniable_estimator.privacy import Guarantee, guarantee_in, learned_by, together
from deniable_estimator.privacy.outsider import (
    DELTA,
    LEAST_REPORTS,
    SPANS,
    outsider_of,
    outsider_together,
)
from deniable_estimator.privacy.outsider_words import assumed, span_words
from deniable_estimator.privacy.words import rounded_up

__all__ = ["report"]

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
    schemes = "".join(f"{metric.name} {metric.scheme.fingerprint}\n" for metric in metrics)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(up=_up, span=span_words)
    page = environment.from_string(_TEMPLATE.read_text("utf-8"))
    return page.render(
        app=registry.app or "telemetry",
        count=len(metrics),
        digest=hashlib.sha256(schemes.encode()).hexdigest(),
        reports=reports,
        delta=f"{delta:g}",
        spans=SPANS,
        metrics=[
            {
                "name": metric.name,
                "given": each,
                "mechanism": metric.scheme.mechanism.name,
                "parameters": ", ".join(
                    f"{key} = {value}"
                    for key, value in metric.scheme.mechanism.parameters().items()
                ),
                "odds": str(metric.scheme.mechanism.odds),
                "epsilon": repr(metric.scheme.mechanism.epsilon),
                "declared": f"{metric.epsilon:g}",
            }
            for metric, each in zip(metrics, given, strict=True)
        ],
        whole=together(registry),
        outsiders=outsiders,
        together=whole,
        unknown=any(not span.known for each in (*outsiders, whole) for span in each.spans.values()),
        assumed=list(assumed(whole)),
        learned=_learned(given),
    )


def _learned(given: Iterable[Guarantee]) -> dict[str, str]:
    """Who can learn what, at most, of a device that reports all of these metrics."""
    metrics = list(given)
    return learned_by(
        remembers=any(each.memory is not None for each in metrics),
        at_once=any(each.answer == "at_once" for each in metrics),
    )


def _up(epsilon: float) -> str:
    """An epsilon with four digits that matter, rounded up."""
    if epsilon <= 0:
        return "0"
    return rounded_up(epsilon, max(1, 3 - math.floor(math.log10(epsilon))))
