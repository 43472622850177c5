"""Which strings occur at all: what a discovery metric found, with shares and what they explain.

Heads are disjoint: a device has one. So the part of all reports that the list explains is the sum
of its shares. Cells of different strings are supported almost independently (two hyperplanes of a
projective space meet in nearly q**2 of its points), so its variance is the sum of theirs::

    Var = sum of (a_i + b_i f_i) - (sum of f_i)**2 / n

with the a, b of `statistics.intervals`; the last term is the choice of the devices, of whom each
is counted in one string at most.

Strings are in the list because their support was high, so the sum is a little high too. Its lower
end allows for that: for each string by its standard error times phi(d) / Phi(d), by which a normal
number exceeds its mean if it is only seen above a threshold d below it; and for as many finds that
no device has as 97.5% of lists hold at most, each with the smallest share that was found.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple

from deniable_estimator.analyses.discovery.tree import LEVEL
from deniable_estimator.answers.basis import Result
from deniable_estimator.answers.files import Table, plain
from deniable_estimator.answers.shares import Shares
from deniable_estimator.forecasting.detection import deviations
from deniable_estimator.forecasting.discovery_forecast import Reach
from deniable_estimator.statistics.tails import binomial_tail

_SELDOM = 0.025
_FAR = 5.0
"""So far below the threshold no find is: its rows would differ from those that found it."""

COLUMNS = ("text", "cut", "share", "std_error", "low", "high", "p_value", "followed")
"""The fields of a find in the table, CSV and JSON."""


@dataclass(frozen=True, slots=True)
class Find:
    """One string that occurs. Shares are fractions of 1, unbiased and unclipped."""

    text: str
    """The string; of one that is cut, its first bytes, with those of a letter that is cut as
    \\xNN. It was written by a stranger: escape it wherever it is shown."""
    head: bytes
    """The same as the devices have it: UTF-8, cut to the declared length."""
    cut: bool
    """Whether it fills the declared length, so that longer strings may be counted in it."""
    share: float
    std_error: float
    low: float
    high: float
    p_value: float
    """That no device has it, from reports that did not choose it."""
    followed: tuple[str, ...] = ()
    """The metrics that have it in their list."""


class Explained(NamedTuple):
    """Which part of all reports the finds are, with its interval; 0 without finds."""

    share: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Finds(Result):
    """The strings that a discovery metric found, the most common one first.

    The list is post-processing of reports that already hold their epsilon: to publish it reveals
    no more about a device than its report did.
    """

    kind: ClassVar[str] = "finds"

    finds: tuple[Find, ...]
    explained: Explained
    """By the finds that are shown."""
    withheld: Explained
    """By devices that had no string, one that the registry denies, or one with a letter outside of
    the alphabet: all of them report the empty string."""
    minimum_share: float
    """Finds with a smaller share are left out."""
    below: int
    """How many finds were left out for their share."""
    denied: int
    """How many were left out because a pattern of the deny list matches them."""
    reach: Reach | None
    """From which share on strings surface in such a crowd; None without reports."""
    prior: str
    """What the prior was made from."""
    shares: Shares | None = field(repr=False)
    """The same finds as shares, for charts and comparisons; None without finds."""

    def followed_in(self, lists: Mapping[str, Collection[str]]) -> Finds:
        """The same, with the metrics that follow each find; `lists` has the strings of each. What
        is cut is no whole string, so no list has it."""
        finds = tuple(
            replace(
                each,
                followed=tuple(
                    name for name, texts in lists.items() if not each.cut and each.text in texts
                ),
            )
            for each in self.finds
        )
        return replace(self, finds=finds)

    def numbers(self) -> dict[str, Any]:
        """`prior`, `minimum_share`, `below_minimum`, `denied`, `explained` and `withheld` (`share`,
        `low`, `high`), `reach` (see `Reach`), and `finds`: an object of `COLUMNS` for each."""
        return {
            "prior": self.prior,
            "minimum_share": self.minimum_share,
            "below_minimum": self.below,
            "denied": self.denied,
            "explained": self.explained._asdict(),
            "withheld": self.withheld._asdict(),
            "reach": None if self.reach is None else self.reach._asdict(),
            "finds": [dict(zip(COLUMNS, _line(each), strict=True)) for each in self.finds],
        }

    def own_table(self) -> Table:
        """A line for each find under a header of `COLUMNS`."""
        lines = (_line(each) for each in self.finds)
        return COLUMNS, ((*line, " ".join(followed)) for *line, followed in lines)


def _line(each: Find) -> list[Any]:
    *cells, followed = plain([getattr(each, name) for name in COLUMNS])
    return [*cells, list(followed)]


def explained_by(shares: Shares | None, threshold: float | None = None) -> Explained:
    """The sum of some shares of disjoint strings, with its interval at their level.

    `threshold` is above how many standard errors they were found, if they were not named.
    """
    if shares is None or not len(shares.share):
        return Explained(0.0, 0.0, 0.0)
    total = float(shares.share.sum())
    variance = 0.0
    for noise, each in ((shares.noise, 1 / shares.n), (shares.noise.kept, None)):
        if noise is None:
            continue
        least = float(noise.c.min()) if each is None else each
        held = float((noise.a + noise.b * shares.share).sum())
        variance += max(0.0, held - least * total**2)
    half = deviations(shares.level) * math.sqrt(variance)
    chosen = 0.0 if threshold is None else _chosen(shares, threshold)
    return Explained(total, total - half - chosen, total + half)


def _chosen(shares: Shares, threshold: float) -> float:
    """By how much the sum may be too high because its strings were chosen."""
    normal = NormalDist()
    error = shares.noise.null_error
    above = (shares.share / error - threshold).tolist()
    lifted = sum(
        each * normal.pdf(far) / normal.cdf(far)
        for each, far in zip(error.tolist(), above, strict=True)
        if far > -_FAR
    )
    count = 0
    while binomial_tail(count + 1, len(above), LEVEL) > _SELDOM:
        count += 1
    return float(lifted) + count * float(shares.share.min())
