"""A pair from a tally of one scheme, and the average of several."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from deniable import Scheme
from deniable.protocol.mechanisms import SubsetSelection
from deniable.protocol.types.pair import margins_of
from deniable_collector.tally import Tally
from deniable_estimator.analyses import oracle_analysis
from deniable_estimator.analyses.base import Finding
from deniable_estimator.analyses.pairs.covariance import Covariance
from deniable_estimator.analyses.pairs.poisoning import Fake
from deniable_estimator.analyses.poisoning import Exposure
from deniable_estimator.answers.basis import Basis
from deniable_estimator.answers.numbers import vars_of
from deniable_estimator.answers.pair import PairAnswer
from deniable_estimator.answers.shares import Shares, estimate, infer
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import counted, message
from deniable_estimator.statistics.intervals import FloatArray, Noise
from deniable_estimator.statistics.participation import Participation, overlap
from deniable_estimator.statistics.significance import Adjustment


def estimate_pair(
    tally: Tally,
    scheme: Scheme,
    candidates: Sequence[str] | None = None,
    *,
    level: float = 0.95,
    adjust: Adjustment = "storey",
    participation: Participation | None = None,
    unit: str | None = None,
) -> PairAnswer:
    """What a tally of one scheme says of two lists; the arguments are those of `shares.estimate`.

    Raises:
        EstimateError: the tally does not belong to the scheme, or candidates were given.
        ValueError: `level` is not between 0 and 1.
    """
    if candidates is not None:
        raise EstimateError(message("a pair has no candidates: leave them out"))
    joint = estimate(
        tally, scheme, level=level, adjust=adjust, participation=participation, unit=unit
    )
    names, values = margins_of(scheme.values)
    mechanism = scheme.mechanism
    assert isinstance(mechanism, SubsetSelection)
    repeats = joint.participation.repeats
    covariance = Covariance.of(mechanism, joint.n, repeats) if joint.n else None
    shape = len(values[0]), len(values[1])
    exposures = tuple(
        _exposure(mechanism, joint.share.reshape(shape).sum(axis=1 - axis), shape[1 - axis])
        for axis in (0, 1)
    )
    fake = Fake.of(mechanism) if joint.n else None
    return _made(joint, names, values, covariance, exposures, fake)


def _made(
    joint: Shares,
    names: tuple[str, str],
    values: tuple[tuple[str, ...], tuple[str, ...]],
    covariance: Covariance | None,
    exposures: Iterable[Exposure],
    fake: Fake | None,
) -> PairAnswer:
    basis = Basis(**vars_of(joint))
    shape = len(values[0]), len(values[1])
    margins = []
    for axis, exposure in enumerate(exposures):
        size = shape[axis]
        share = joint.share.reshape(shape).sum(axis=1 - axis)
        noise = replace(Noise.none(size), a=np.full(size, math.inf))
        if covariance is not None:
            noise = covariance.noise(shape[1 - axis], size)
        found = Finding.of(share, noise)
        margins.append(
            infer(basis, True, values[axis], found, exposure, (), joint.level, joint.adjustment)
        )
    return PairAnswer(
        **vars_of(basis),
        level=joint.level,
        verdict=joint.verdict,
        warnings=joint.warnings,
        names=names,
        joint=joint,
        margins=(margins[0], margins[1]),
        covariance=covariance,
        fake=fake,
    )


def pooled(parts: Sequence[PairAnswer]) -> PairAnswer:
    """The average of pairs with the same cells, by inverse variance. Every cell has the same
    weights, so that the cells still sum to 1."""
    first = parts[0]
    models = [each.covariance for each in parts if each.covariance is not None]
    precision = np.array([1 / (each.own + each.all) for each in models])
    weights = precision / precision.sum()
    # The cost of a device that reported under several schemes is bounded for the same weights.
    matrix = overlap([each.participation for each in parts])
    alone = float((weights**2 / np.array([each.n for each in parts])).sum())
    covariance = models[0].weighted(float(weights[0]))
    for weight, model in zip(weights[1:].tolist(), models[1:], strict=True):
        covariance += model.weighted(weight)
    covariance = replace(covariance, kept=max(0.0, float(weights @ matrix @ weights) - alone))
    share = sum(w * each.joint.share for w, each in zip(weights, parts, strict=True))
    basis = Basis.merged(parts)

    def exposed(found: Sequence[Exposure]) -> Exposure:
        """Fakes report under the scheme that moves the average most."""
        rates = [w * basis.n / each.n for w, each in zip(weights, parts, strict=True)]
        sides = zip(*found, strict=True)
        return Exposure(
            *(
                np.max([r * each for r, each in zip(rates, side, strict=True)], axis=0)
                for side in sides
            )
        )

    joint = infer(
        basis,
        True,
        first.joint.values,
        Finding.of(np.asarray(share), covariance.noise(1, len(first.joint.values))),
        exposed([each.joint.exposure for each in parts]),
        [figure for each in parts for figure in each.verdict.figures],
        first.level,
        first.joint.adjustment,
    )
    values = first.margins[0].values, first.margins[1].values
    exposures = [exposed([each.margins[axis].exposure for each in parts]) for axis in (0, 1)]
    fakes = [
        replace(each.fake, rate=float(w * basis.n / each.n))
        for w, each in zip(weights, parts, strict=True)
        if each.fake is not None
    ]
    worst = max(fakes, key=lambda fake: fake.rate * (fake.inside - fake.outside))
    return _made(joint, first.names, values, covariance, exposures, worst)


def _exposure(mechanism: SubsetSelection, share: FloatArray, cells: int) -> Exposure:
    """How far fakes move sums of so many cells."""
    most, least = (float(each) for each in oracle_analysis(mechanism).pull(cells))
    honest = np.clip(share, 0.0, 1.0)
    return Exposure(most - honest, honest - least)


def combine_pairs(informed: Sequence[PairAnswer]) -> PairAnswer:
    """A single answer from those of several schemes of one pair: of those whose values are the same
    as most reports have."""
    most = max(informed, key=lambda each: each.n)
    alike = [each for each in informed if each.joint.values == most.joint.values]
    combined = pooled(alike) if len(alike) > 1 else most
    if left := sum(each.n for each in informed) - combined.n:
        warning = counted(
            "the values have changed: {count:,} report under other lists is left out; choose "
            "days before the change to see it",
            "the values have changed: {count:,} reports under other lists are left out; choose "
            "days before the change to see them",
            left,
        )
        combined = replace(combined, warnings=(*combined.warnings, warning))
    return combined
