"""The poisoning budget: how far fake devices could move an estimate at most.

A fake does not randomize. It sends the well-formed report that moves the estimate most. Let a
fraction b of all reports be fake, and let f be the share of a value among the honest ones. If
every fake supports the value (Cao, Jia and Gong, USENIX Security 2021), its estimate rises by ::

    G = b [A - f],   A = (1 - q) / (p - q)             what fakes alone would show
    G = b [A - f],   A = (a - r q) / (p - q)           in all, for r targets at once

where a is how many of the targets one report can support. If none supports it, the
estimate falls by b [f - B] with B = -q / (p - q). Small epsilons have p near q, so a large A.
Filters of RAPPOR are decoded by a regression: see `deniable_estimator.analyses.cohorts`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.mechanisms import FrequencyOracle
from deniable_estimator.analyses import oracle_analysis
from deniable_estimator.statistics.intervals import FloatArray


class Exposure(NamedTuple):
    """How far d shares move, divided by the fraction of fakes; shape (d,) each.

    Multiplied by the fraction of fakes, these are the poisoning budget. Both are positive.
    """

    gain: FloatArray
    loss: FloatArray

    @classmethod
    def of(
        cls,
        mechanism: FrequencyOracle[Any],
        share: FloatArray,
        n: int | NDArray[np.int64],
        reports: int | NDArray[np.int64],
    ) -> Exposure:
        """For estimates under one scheme, from n reports in all.

        `reports`, shape (d,), is the number of reports that each value is estimated from, if that
        is fewer; fakes then choose to be among them.
        """
        most, least = (float(each) for each in oracle_analysis(mechanism).pull())
        weight = np.broadcast_to(n / np.maximum(reports, 1), share.shape)
        honest = np.clip(share, 0.0, 1.0)
        return cls(weight * (most - honest), weight * (honest - least))


def gain(mechanism: FrequencyOracle[Any], fakes: float) -> float:
    """The most that this part of all reports adds to the share of a value that nobody has."""
    return fakes * float(oracle_analysis(mechanism).pull().most)
