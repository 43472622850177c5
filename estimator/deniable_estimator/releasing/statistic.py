"""What receives noise in a release, how far one report moves it, and the answer that follows.

A *statistic* is a list of integers, each a sum over reports. Its size does not depend on the
reports, and the number of reports is published as it is. Neighbours differ in what one report says:
its row and its segment, which do not depend on the value, count as known.

`share_statistics.py` and `number_statistics.py` have one class for each kind, and `choosing.py`
takes the one for a metric.

* Shares: how many reports support each value. Of all values published, a report supports between
  `fewest` and `most`, so two reports differ in at most min(2 most, 2 (count - fewest), count) of
  them, by one each.
* Shares of a long list, whose reports are one message that supports many values: how often each
  message was sent. Two reports differ in two messages, by one each. Of the two, the one is taken
  whose noise moves shares less.
* A distribution of numbers: the counters of all rows. Two reports differ in two columns of one row,
  or, of bitmaps, in all of them.
* A mean: the sum of the scores of all reports, in units of 2**-20; two reports differ by the
  difference of the largest and the smallest score at most. The variance of the devices' own noise
  is not published, so the largest that is possible at such a mean is taken.

The published number is (statistic + noise) debiased as always, so its variance is that of the
devices' noise, plus the variance of the noise here times the square of the debiasing's factor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from deniable_estimator.answers.base import Answer
from deniable_estimator.answers.basis import Basis
from deniable_estimator.questions.reading import Part
from deniable_estimator.releasing.noise import Sensitivity

__all__ = ["Statistic"]


class Statistic(ABC):
    """What of one scheme's tally receives noise."""

    def __init__(self, part: Part, level: float, unit: str | None) -> None:
        self.part, self.level, self.name = part, level, unit
        self.tally, self.scheme = part.tally, part.scheme

    @property
    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """How far one report moves it."""

    @abstractmethod
    def exact(self) -> Sequence[int]:
        """Its integers, without noise: they must not be published."""

    @abstractmethod
    def answer(self, noisy: Sequence[int], variance: float) -> Answer:
        """What people read, from integers with noise of this variance each."""

    @abstractmethod
    def variances(self, variance: float) -> tuple[float, float]:
        """The variance of a published number because of the devices' own noise (of a value that
        nobody has), and what noise of `variance` on each integer adds; in the square of its unit,
        of a mean in that of half its range."""

    @property
    def basis(self) -> Basis:
        """What the answer rests on; all of it is public."""
        part = self.part
        return Basis(
            part.tally.metric,
            (part.scheme.fingerprint,),
            part.tally.windows,
            part.tally.reports,
            part.participation,
            part.scheme.mechanism.epsilon,
        )
