"""Whether the series of an answer differ between segments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from deniable_estimator.answers.base import Answer, Comparison
from deniable_estimator.answers.shares import Shares
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.significance import homogeneity
from deniable_estimator.statistics.tails import chi_square_tail, normal_tails


def number_tests(
    answers: Sequence[Answer], names: Sequence[str], comparisons: Iterable[Comparison]
) -> FloatArray:
    """For each of the names the chance that numbers differ so, or more, if all segments are alike.

    Means are tested by chi-square; for a quantile, whose error is not that of a normal number,
    it is the smallest p-value among the comparisons with the reference, for their number."""
    found, against = [], list(comparisons)
    for name in names:
        place = [each.series.place(name) for each in answers]
        rows = [(each.series, at) for each, at in zip(answers, place, strict=True)]
        value = np.array([series.value[at] for series, at in rows])
        error = np.array([series.std_error[at] for series, at in rows])
        if not (np.isfinite(value) & np.isfinite(error) & (error > 0)).all():
            found.append(math.nan)
        elif name.endswith("mean"):
            weight = 1 / error**2
            middle = weight @ value / weight.sum()
            x = float((weight * (value - middle) ** 2).sum())
            found.append(chi_square_tail(x, len(value) - 1))
        else:
            tails = [
                normal_tails(float(each.difference[at] / each.std_error[at]))
                for each in against
                if name in each.values and each.std_error[at := each.values.index(name)] > 0
            ]
            found.append(min(1.0, len(tails) * min(tails)) if tails else math.nan)
    return np.array(found, np.float64)


def share_tests(answers: Sequence[Shares], names: tuple[str, ...]) -> FloatArray:
    """The same of shares (`deniable_estimator.statistics.significance`)."""
    places = [each.places(names) for each in answers]
    noises = [each.noise.taken(place) for each, place in zip(answers, places, strict=True)]

    share = np.array([each.share[at] for each, at in zip(answers, places, strict=True)])
    return homogeneity(share, noises)
