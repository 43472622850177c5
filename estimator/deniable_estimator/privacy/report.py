"""The guarantee in writing: one page of HTML that needs nothing else, for a privacy reviewer.

It leads from the integers in force to the odds of one report, step by step: each mechanism makes
some reports likelier under one value than under another. `derivation_of` has the largest and the
smallest probability as exact fractions; their ratio is the mechanism's `odds`, e**epsilon. The
words are in `report.html` and `derivations.toml`.
"""

from __future__ import annotations

import hashlib
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from deniable import Metric, Registry
from deniable.protocol.mechanisms import Mechanism, Memoizing
from deniable.protocol.mechanisms.compatible import HadamardResponse, UnaryEncoding
from deniable.protocol.mechanisms.dbitflip import DBitFlip
from deniable.protocol.mechanisms.hashed import Hashed
from deniable.protocol.mechanisms.projective_geometry import ProjectiveGeometry, points
from deniable.protocol.mechanisms.rappor import BasicRappor, OneTimeRappor, Rappor
from deniable.protocol.mechanisms.sliding_window import SlidingWindow
from deniable.protocol.mechanisms.subset_selection import MemoizedSubsetSelection, SubsetSelection
from deniable_estimator.privacy.computing import all_together, guarantee_in
from deniable_estimator.privacy.guarantees import Guarantee, learned_by
from deniable_estimator.privacy.mechanism_blankets import blanket_of, parts_of
from deniable_estimator.privacy.outsider import DELTA, LEAST_REPORTS, SPANS, Outsider, outsider_of
from deniable_estimator.privacy.words import plain_delta, rounded_up

_MOST_CLASSES = 12
"""A blanket of more classes is too long for a page."""

_FOLDER = Path(__file__).parent


def report(registry: Registry, reports: int = LEAST_REPORTS, delta: float = DELTA) -> str:
    """The page, with the figures of this registry. The same registry gives the same page.

    Raises:
        ValueError: the registry has no metric.
    """
    whole = outsider_of(registry, None, reports, delta)
    metrics = [metric for metric in registry if metric.name not in registry.unasked]
    outsiders = [outsider_of(registry, metric, reports, delta) for metric in metrics]
    given = [guarantee_in(registry, metric) for metric in metrics]
    common = [line for line in given[0].not_covered if all(line in e.not_covered for e in given)]
    schemes = "".join(f"{metric.name} {metric.scheme.fingerprint}\n" for metric in metrics)
    page = _environment(autoescape=True).from_string((_FOLDER / "report.html").read_text("utf-8"))
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
        whole=all_together(registry),
        outsiders=outsiders,
        together=whole,
        unknown=any(not span.known for each in (*outsiders, whole) for span in each.spans.values()),
        assumed=list(whole.assumed),
        learned=learned_by(
            remembers=any(each.memory is not None for each in given),
            at_once=any(each.answer == "at_once" for each in given),
        ),
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
        "spans": [(SPANS[span], found) for span, found in published.spans.items() if found.windows],
        "not_covered": [line for line in given.not_covered if line not in common],
    }


def _up(epsilon: float) -> str:
    """An epsilon with four digits that matter, rounded up."""
    if epsilon <= 0:
        return "0"
    return rounded_up(epsilon, max(1, 3 - math.floor(math.log10(epsilon))))


@dataclass(frozen=True, slots=True)
class Derivation:
    """How the odds of one report follow from the integers in force: (high / low)**times.

    Attributes:
        high: the probability under the value that makes a report, or a bit of it, likeliest.
        low: the same under the value that makes it least likely.
        times: how often this ratio counts.
        words: how a report is made, the formulas and the source, by their keys in
            `derivations.toml`; empty where there is none.
    """

    high: Fraction
    low: Fraction
    times: int
    words: dict[str, str]


def derivation_of(mechanism: Mechanism[Any]) -> Derivation:
    """The derivation.

    Raises:
        TypeError: none is written down for such a mechanism.
    """
    if parts := [part for part, _ in parts_of(mechanism)]:
        largest = max(range(len(parts)), key=lambda place: parts[place].odds)
        found = derivation_of(parts[largest])
        told = {"parts": len(parts), "row": largest + 1, "part": found.words}
        return replace(found, words={**found.words, **_words(mechanism, **told)})
    high, low, times = _extremes(mechanism)
    return Derivation(high, low, times, _words(mechanism, times=times))


def _extremes(mechanism: Mechanism[Any]) -> tuple[Fraction, Fraction, int]:
    """The largest and the smallest probability, and how often their ratio counts."""
    match mechanism:
        case SubsetSelection(size=d, k=k, p=p) | MemoizedSubsetSelection(size=d, k=k, p=p):
            return p / math.comb(d - 1, k - 1), (1 - p) / math.comb(d - 1, k), 1
        case ProjectiveGeometry(p=p, messages=messages):
            near = points(mechanism.order, mechanism.dimension - 1)
            return p / near, (1 - p) / (messages - near), 1
        case HadamardResponse(p=p):
            half = mechanism.rows[0].width // 2
            return p / half, (1 - p) / half, 1
        case SlidingWindow(width=width, columns=columns):
            threshold = mechanism.parameters()["threshold"]
            assert isinstance(threshold, int)
            p = Fraction(threshold, 2**53)
            return p / width, (1 - p) / (columns - width), 1
        case UnaryEncoding(p=p, q=q):
            return p * (1 - q), q * (1 - p), 1
        case BasicRappor(rounds=rounds) | Rappor(rounds=rounds):
            times = mechanism.bloom.h if isinstance(mechanism, Rappor) else 1
            return rounds.p11 * (1 - rounds.p01), rounds.p01 * (1 - rounds.p11), times
        case OneTimeRappor(p=p, bloom=bloom):
            return p, 1 - p, 2 * bloom.h
        case DBitFlip(flipped=flipped, bits=bits):
            return 1 - flipped, flipped, 1 if bits == 1 else 2
    raise TypeError(f"{mechanism.name} has no derivation")


def _words(mechanism: Mechanism[Any], **told: Any) -> dict[str, str]:
    name = "hashed" if isinstance(mechanism, Hashed) else mechanism.name.removeprefix("basic_")
    texts = tomllib.loads((_FOLDER / "derivations.toml").read_text("utf-8"))[name]
    environment = _environment(autoescape=False)
    return {
        key: environment.from_string(text).render(m=mechanism, points=points, **told)
        for key, text in texts.items()
    }


def _environment(*, autoescape: bool) -> Environment:
    found = Environment(
        autoescape=autoescape,  # noqa: S701  (the page escapes what it holds)
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(up=_up, span=SPANS.__getitem__, thousands="{:,}".format)
    found.filters["about"] = lambda fraction: f"{float(fraction):.6g}"
    return found
