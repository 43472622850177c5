"""Makes the distribution of a number from a tally, and one from those of several schemes.

Schemes whose cells have the same edges are averaged. Where the range or the cells have changed,
edges cannot be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deniable_estimator.analyses.anomalies import Verdict
from deniable_estimator.analyses.base import FAKES
from deniable_estimator.analyses.numbers import HistogramAnalysis
from deniable_estimator.analyses.numbers.distribution import (
    range_findings,
)
from deniable_estimator.analyses.numbers.poisoning import Attack
from deniable_estimator.analyses.numbers.sums import combine_sums, sum_weights
from deniable_estimator.answers.basis import Basis, Part, number_caveats, vars_of
from deniable_estimator.answers.distribution import Distribution
from deniable_estimator.answers.mean import MeanInUnits, number_analysis
from deniable_estimator.messages import message, sentence
from deniable_estimator.statistics.participation import overlap, together
from deniable_estimator.statistics.significance import Adjustment

_RANGE = {
    "low_too_high": sentence(
        "at least {share:.1%} of the numbers lie below low ({low}): declare a lower one to tell "
        "them apart"
    ),
    "high_too_low": sentence(
        "at least {share:.1%} of the numbers lie at high ({high}) or above: declare a higher one "
        "to tell them apart"
    ),
    "too_wide": sentence(
        "at least {share:.0%} of the numbers lie in {cells} neighbouring cells: a narrower range, "
        'or scale = "log", would tell more'
    ),
}
"""What is said of a range that does not suit the numbers."""


def estimate_distribution(part: Part, level: float, adjust: Adjustment) -> Distribution:
    """What a tally of one scheme says of a distribution; the arguments are those of
    `estimate_mean`, with the same errors."""
    analysis, tally, repeats = number_analysis(part), part.tally, part.repeats
    assert isinstance(analysis, HistogramAnalysis)
    answer = Distribution(
        **vars_of(part.basis),
        level=level,
        verdict=Verdict.of(analysis.figures(tally, repeats)),
        name=part.unit,
        range=analysis.mechanism.range,
        found=analysis.distribution(tally, level, repeats),
        mean=MeanInUnits.of(analysis, analysis.mean(tally, repeats)),
        attack=analysis.curve_attack(FAKES),
    )
    return replace(answer, warnings=_caveats(answer))


def _caveats(answer: Distribution) -> tuple[str, ...]:
    warnings = list(number_caveats(answer))
    if not answer.n:
        return tuple(warnings)
    # Where each whole number has a cell of its own, no range would tell more.
    finest = answer.range.integer and answer.range.span <= answer.found.cells - 2
    for finding in range_findings(answer.found):
        if finest and finding.code == "too_wide":
            continue
        template = _RANGE[finding.code]
        warnings.insert(
            0,
            message(
                template,
                share=finding.share,
                cells=finding.cells,
                low=answer.range.low,
                high=answer.range.high,
            ),
        )
    return tuple(warnings)


def combine_distributions(parts: Sequence[Distribution]) -> Distribution:
    """The average of distributions with the same cells."""
    participations = [each.participation for each in parts]
    weights = np.array(sum_weights([each.found.sums for each in parts]))
    # The cost of a device that reported under several schemes is bounded for the same weights.
    extra = float(together(participations, weights[:, None], overlap(participations))[0])
    first = parts[0]
    combined = replace(
        first,
        **vars_of(Basis.merged(parts)),
        found=replace(first.found, sums=combine_sums([each.found.sums for each in parts], extra)),
        mean=MeanInUnits.pooled([each.mean for each in parts], participations),
        attack=Attack(
            max(each.attack.gain for each in parts), max(each.attack.loss for each in parts)
        ),
        verdict=Verdict.of([each for part in parts for each in part.verdict.figures]),
    )
    return replace(combined, warnings=_caveats(combined))
