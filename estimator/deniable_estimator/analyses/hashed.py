"""Hashed strings: the support of candidates summed over the rows of their hash tables, and
tallies drawn from their exact distribution.

In row i a candidate has the support S_i of the column it hashes to, out of n_i reports. The sum
over rows, out of n, is the statistic of a pure protocol with the mechanism's p and q.

With few rows, collisions can be recognized and left out. A candidate is *frequent* if it is
clearly detected even without its best row. A candidate that collides with another frequent one
in some row is estimated from its other rows. A frequent string that is not a candidate still
makes *ghosts*, which look frequent in one row only. They are recognized by the disagreement of
their rows' estimates f_i, whose variances are v / n_i::

    X = sum of n_i (f_i - f)**2 / v,  v = r (1-r) / (p-q)**2 at the common estimate f

which has a chi-square distribution with (rows - 1) degrees of freedom, if all rows have the same
share. A collision makes it huge. But common strings collide with others too, and with enough
reports the rows of each of them disagree. So a candidate that is detected even in the weaker
half of its rows is not a ghost: a string that no device has would need collisions in most rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

import mmh3
import numpy as np
from numpy.typing import NDArray

from deniable.protocol.hashing import hash_key
from deniable.protocol.mechanisms.hashed import (
    CountMeanSketch,
    HadamardCountMeanSketch,
    Hashed,
    HashedProjectiveGeometry,
)
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses.anomalies import Found
from deniable_estimator.analyses.base import (
    Counts,
    Items,
    OneRowAnalysis,
    OracleAnalysis,
    Support,
    sample_each_row,
)
from deniable_estimator.analyses.own_columns import UnaryEncodingAnalysis
from deniable_estimator.analyses.planes import HadamardResponseAnalysis
from deniable_estimator.analyses.projective_geometry import ProjectiveGeometryAnalysis
from deniable_estimator.statistics.tails import chi_square_quantile

AnyHashed = TypeVar("AnyHashed", bound=Hashed)

GHOST_LEVEL = 1e-3
"""The probability that a string without collisions is called a ghost."""

_FREQUENT = 3.0
"""A candidate is frequent above so many standard errors of the null hypothesis. If one is wrongly
called frequent, a few others lose one of their rows, which matters little."""

_SURE = 5.0
"""The weaker half of the rows detects a candidate above so many standard errors. With four rows, a
string of 20 standard errors has 13 in the weaker two."""


_KEPT = 50_000
"""Strings of a list up to which their places are kept, for the next period of a trend: at most
this times 8 bytes and the number of rows, and the list."""


def hash_places(mechanism: Hashed, texts: Sequence[str]) -> Iterator[Counts]:
    """Row by row, the places that the strings hash to, each of shape (len(texts),)."""
    hashed = mechanism.salt, mechanism.hashes, mechanism.width
    if len(texts) <= _KEPT:
        return iter(_kept_columns(*hashed, tuple(texts)))
    return hash_columns(*hashed, texts)


@lru_cache(maxsize=2)
def _kept_columns(salt: str, count: int, width: int, texts: tuple[str, ...]) -> tuple[Counts, ...]:
    columns = tuple(hash_columns(salt, count, width, texts))
    for each in columns:
        each.setflags(write=False)
    return columns


def hash_columns(salt: str, count: int, width: int, texts: Sequence[str]) -> Iterator[Counts]:
    """`hash64(salt, i, text) % width` for i below `count`, each of shape (len(texts),)."""
    keys = [hash_key(salt, text) for text in texts]
    for number in range(0, count, 2):
        digests = b"".join([mmh3.hash_bytes(key, number >> 1) for key in keys])
        halves = np.frombuffer(digests, "<u8").reshape(-1, 2)
        for half in range(min(2, count - number)):
            yield (halves[:, half] % np.uint64(width)).astype(np.int64)


class HashedAnalysis(OracleAnalysis[AnyHashed]):
    """The support of a string, added up over the rows; what is true of the channel of each row
    comes from the channel's analysis."""

    tests_shares = False
    channel_analysis: ClassVar[type[OneRowAnalysis[Any]]]

    @property
    def channel(self) -> OneRowAnalysis[Any]:
        """That of one row."""
        return self.channel_analysis(self.mechanism.channel)

    def support(self, tally: Tally, items: Items) -> Support:
        channel = self.channel
        counts = np.zeros(len(items), np.int64)
        for row, places in zip(tally.rows, hash_places(self.mechanism, list(items)), strict=True):
            counts += channel.places(row.cells)[places]
        return Support(counts, tally.reports)

    def tests(self, rows: Sequence[TallyRow], repeats: float = 1.0) -> Iterator[Found]:
        return self.channel.tests(rows, repeats)

    def together(self) -> float:
        return self.channel.together()

    def sample_rows(
        self, items: Items, counts: Counts, rng: np.random.Generator
    ) -> tuple[TallyRow, ...]:
        places = hash_places(self.mechanism, list(items))
        return sample_each_row([self.channel] * self.mechanism.hashes, places, counts, rng)


class CountMeanSketchAnalysis(HashedAnalysis[CountMeanSketch]):
    """Many rows of bitmaps."""

    channel_analysis = UnaryEncodingAnalysis


class HadamardCountMeanSketchAnalysis(HashedAnalysis[HadamardCountMeanSketch]):
    """Many rows of Hadamard response."""

    channel_analysis = HadamardResponseAnalysis


class HashedProjectiveGeometryAnalysis(HashedAnalysis[HashedProjectiveGeometry]):
    """A few rows, in which collisions can be recognized (see above)."""

    tests_shares = True
    channel_analysis = ProjectiveGeometryAnalysis

    @property
    def lift(self) -> float:  # type: ignore[override]
        """q includes collisions with probability 1 / width; a string without any is lower."""
        return 1 / (self.mechanism.width - 1)

    def support(self, tally: Tally, items: Items) -> Support:
        """The same, without the rows in which a candidate shares its place with a frequent one,
        and with the items that are ghosts."""
        mechanism, channel = self.mechanism, self.channel
        places = np.array(list(hash_places(mechanism, list(items))))
        counts = np.array(
            [
                channel.places(row.cells)[place]
                for row, place in zip(tally.rows, places, strict=True)
            ]
        )
        reports = np.array([row.reports for row in tally.rows])[:, None]
        frequent = _frequent(counts, reports, float(mechanism.q))
        shared = np.array(
            [
                np.bincount(place[frequent], minlength=mechanism.width)[place] > frequent
                for place in places
            ]
        )
        # A candidate that collides in all rows is left as it is; its rows will disagree.
        used = ~shared | shared.all(axis=0)
        reports = np.where(used, reports, 0)
        counts = np.where(used, counts, 0)
        ghosts = _ghosts(counts, reports) & ~_surely_there(counts, reports, float(mechanism.q))
        supported = _without_frequent(counts, reports, frequent, mechanism)
        return Support(supported, reports.sum(axis=0), ghosts)


def _without_frequent(
    counts: Counts, reports: Counts, frequent: NDArray[np.bool_], mechanism: Hashed
) -> NDArray[np.float64]:
    """The support over all rows, (rows, d) -> (d,), as if collisions had not been left out.

    q includes a collision with any other string with probability 1/w. A candidate that is known
    not to collide with the frequent ones lacks (q - channel.q) times their total share.
    """
    total = reports.sum(axis=0)
    supported: NDArray[np.float64] = counts.sum(axis=0).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (supported / total - float(mechanism.q)) / float(mechanism.p - mechanism.q)
    share = np.where(frequent, np.nan_to_num(share), 0.0)
    others = np.clip(share.sum() - share, 0.0, 1.0)
    supported += others * total * float(mechanism.q - mechanism.channel.q)
    return supported


def _frequent(counts: Counts, reports: Counts, q: float) -> NDArray[np.bool_]:
    """Which candidates are detected without their best row; (rows, d) and (rows, 1) -> (d,)."""
    excess = counts - q * reports
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.nan_to_num(excess / np.sqrt(reports)).argmax(axis=0)
    each = np.arange(counts.shape[1])
    rest = excess.sum(axis=0) - excess[best, each]
    error = np.sqrt(q * (1 - q) * (reports.sum() - reports[best, 0]))
    frequent: NDArray[np.bool_] = rest > _FREQUENT * error
    return frequent


def _ghosts(counts: Counts, reports: Counts) -> NDArray[np.bool_]:
    """Which candidates' rows disagree; both of shape (rows, d), zero for rows not used."""
    total = reports.sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = counts.sum(axis=0) / total
        deviance = np.nan_to_num(reports * (counts / reports - rate) ** 2).sum(axis=0)
        # At the edges, 0 and 1, the variance of the rate is not known to be 0.
        deviance /= np.maximum(rate * (1 - rate), 1 / total)
    freedom = (reports > 0).sum(axis=0) - 1
    critical = np.array(
        [np.inf, *(chi_square_quantile(GHOST_LEVEL, each + 1) for each in range(len(reports) - 1))]
    )
    ghosts: NDArray[np.bool_] = deviance > critical[np.maximum(freedom, 0)]
    return ghosts


def _surely_there(counts: Counts, reports: Counts, q: float) -> NDArray[np.bool_]:
    """Which candidates the weaker half of their rows detects; arrays as for `_ghosts`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (counts - q * reports) / np.sqrt(q * (1 - q) * reports)
    z = np.sort(np.where(reports > 0, z, np.inf), axis=0)
    half = np.maximum((reports > 0).sum(axis=0) // 2, 1)
    weaker = np.cumsum(z, axis=0)[half - 1, np.arange(z.shape[1])]
    sure: NDArray[np.bool_] = weaker > _SURE * np.sqrt(half)
    return sure
