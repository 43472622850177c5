"""Makes the answer of a pair from a tally, and one from those of several schemes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable.protocol.types.pair import margins_of
from deniable_estimator.analyses import oracle_analysis
from deniable_estimator.analyses.base import Exposure, Finding
from deniable_estimator.analyses.pairs import Covariance
from deniable_estimator.analyses.pairs.poisoning import Fake
from deniable_estimator.errors import EstimateError
from deniable_estimator.kinds.basis import Basis, Part, vars_of
from deniable_estimator.kinds.pairs.pair import PairAnswer
from deniable_estimator.kinds.shares.making import estimate_shares, infer
from deniable_estimator.kinds.shares.shares import Shares
from deniable_estimator.messages import message
from deniable_estimator.statistics.intervals import Noise
from deniable_estimator.statistics.participation import overlap
from deniable_estimator.statistics.significance import Adjustment


def estimate_pair(part: Part, level: float, adjust: Adjustment) -> PairAnswer:
    """What a tally of one scheme says of two lists.

    Raises:
        EstimateError: the tally does not belong to the scheme, or candidates were given.
    """
    if part.candidates is not None:
        raise EstimateError(message("a pair has no candidates: leave them out"))
    (joint,) = estimate_shares([part], level, adjust)
    names, values = margins_of(part.scheme.values)
    mechanism = part.scheme.mechanism
    assert isinstance(mechanism, SubsetSelection)
    covariance = Covariance.of(mechanism, joint.n, part.repeats) if joint.n else None
    shape = len(values[0]), len(values[1])
    analysis, table = oracle_analysis(mechanism), joint.share.reshape(shape)
    exposures = [
        analysis.exposure(table.sum(axis=1 - axis), targets=shape[1 - axis]) for axis in (0, 1)
    ]
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
    shape = len(values[0]), len(values[1])
    margins = []
    for axis, exposure in enumerate(exposures):
        size = shape[axis]
        share = joint.share.reshape(shape).sum(axis=1 - axis)
        noise = replace(Noise.none(size), a=np.full(size, math.inf))
        if covariance is not None:
            noise = covariance.noise(shape[1 - axis], size)
        found = Finding.of(share, noise)
        asked = joint.level, joint.adjustment
        margins += infer([joint], values[axis], found, exposure, [()], *asked, complete=True)
    return PairAnswer(
        **vars_of(joint),
        level=joint.level,
        verdict=joint.verdict,
        warnings=joint.warnings,
        names=names,
        joint=joint,
        margins=(margins[0], margins[1]),
        covariance=covariance,
        fake=fake,
    )


def combine_pairs(parts: Sequence[PairAnswer]) -> PairAnswer:
    """The average of pairs with the same cells, by their reports, as shares are averaged
    (`deniable_estimator.kinds.shares.making`)."""
    first = parts[0]
    models = [each.covariance for each in parts if each.covariance is not None]
    reports = np.array([each.n for each in parts])
    weights = reports / reports.sum()
    # The cost of a device that reported under several schemes is bounded for the same weights.
    matrix = overlap([each.participation for each in parts])
    alone = float((weights**2 / reports).sum())
    covariance = models[0].weighted(float(weights[0]))
    for weight, model in zip(weights[1:].tolist(), models[1:], strict=True):
        covariance += model.weighted(weight)
    covariance = replace(covariance, kept=max(0.0, float(weights @ matrix @ weights) - alone))
    share = sum(w * each.joint.share for w, each in zip(weights, parts, strict=True))
    basis = Basis.merged(parts)
    (joint,) = infer(
        [basis],
        first.joint.values,
        Finding.of(np.asarray(share), covariance.noise(1, len(first.joint.values))),
        Exposure.worst([each.joint.exposure for each in parts]),
        [[figure for each in parts for figure in each.verdict.figures]],
        first.level,
        first.joint.adjustment,
        complete=True,
    )
    values = first.margins[0].values, first.margins[1].values
    exposures = [Exposure.worst([each.margins[axis].exposure for each in parts]) for axis in (0, 1)]
    fakes = [each.fake for each in parts if each.fake is not None]
    worst = max(fakes, key=lambda fake: fake.inside - fake.outside)
    return _made(joint, first.names, values, covariance, exposures, worst)
