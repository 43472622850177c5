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
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, ClassVar, NamedTuple

import numpy as np

from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable_estimator.analyses.anomalies import Figure, Verdict
from deniable_estimator.analyses.base import Finding
from deniable_estimator.analyses.discovery import LEVEL, DecodedRows, FoundHead
from deniable_estimator.analyses.discovery.prior import Prior, shipped_prior
from deniable_estimator.document.csv_files import Table, plain
from deniable_estimator.kinds.basis import Basis, Part, Result, few_notes, footnotes, vars_of
from deniable_estimator.kinds.shares.making import combine, infer
from deniable_estimator.kinds.shares.shares import Shares
from deniable_estimator.statistics.detection import deviations
from deniable_estimator.statistics.expected import Reach
from deniable_estimator.statistics.intervals import Noise, debias
from deniable_estimator.statistics.tails import binomial_tail

_SELDOM = 0.025
_FAR = 5.0
"""So far below the threshold no find is: its rows would differ from those that found it."""

COLUMNS = ("text", "cut", "share", "std_error", "low", "high", "p_value", "followed")
"""The fields of a find in the table, CSV and JSON."""


@dataclass(frozen=True, slots=True)
class Find(FoundHead):
    """One string that occurs. Shares are fractions of 1, unbiased and unclipped."""

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


def find_strings(
    parts: Sequence[Part],
    *,
    minimum_share: float = 0.0,
    denies: Callable[[str], bool] = lambda text: False,
    level: float = 0.95,
    prior: Prior | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Finds:
    """The strings that occur, found in each scheme and estimated from all of them.

    Several schemes share the level of the test, so that it bounds the false part of their union.
    Finds with a smaller share than the minimum, or that a pattern of the deny list matches, are
    left out.

    Raises:
        EstimateError: a tally has too many reports.
        ValueError: `level` is not between 0 and 1.
    """
    prior = prior or shipped_prior()
    decoded = _decoded(parts)
    of = sum(each.mechanism.levels + 1 for _, each in decoded)
    values: dict[FoundHead, float] = {}
    before = 0
    for _, each in decoded:

        def tell(done: int, _: int, before: int = before) -> None:
            progress(before + done, of)

        for head, value in each.find(prior, LEVEL / len(decoded), tell):
            values[head] = min(value, values.get(head, 1.0))
        before += each.mechanism.levels + 1
    whole, heads = _shares(decoded, list(values), level), {head.name: head for head in values}
    every = []
    for name, share, error, low, high in whole.series.lines() if whole is not None else ():
        head = heads[name]
        every.append(Find(head.head, head.cut, share, error, low, high, values[head]))
    every.sort(key=lambda each: -each.share)
    kept = [each for each in every if not denies(each.text)]
    finds = [each for each in kept if each.share >= minimum_share]
    shares = _shares(decoded, finds, level)
    cut = -NormalDist().inv_cdf(max(1e-300, *values.values())) if values else None
    basis = Basis.merged([part.basis for part, _ in decoded] or [parts[0].basis])
    notes = shares.notes if shares is not None else ()
    return Finds(
        **vars_of(basis),
        level=level,
        finds=tuple(finds),
        explained=explained_by(_shares(decoded, _apart(finds), level), cut),
        withheld=_withheld(_shares(decoded, [FoundHead(b"", False)], level)),
        minimum_share=minimum_share,
        below=len(kept) - len(finds),
        denied=len(every) - len(kept),
        reach=min(
            (Reach.in_window(each.mechanism, part.tally.reports) for part, each in decoded),
            default=None,
        ),
        prior=prior.source,
        verdict=Verdict.of([figure for each in decoded for figure in _figures(*each)]),
        shares=shares,
        warnings=(
            *(notes if basis.n else few_notes(0)),
            *footnotes(basis),
        ),
    )


def _apart(heads: Sequence[FoundHead]) -> list[FoundHead]:
    """Those that no other of them counts too: the beginning that a short scheme cuts at counts
    all strings that a longer scheme tells apart."""
    cuts = [each for each in heads if each.cut]
    return [
        each
        for each in heads
        if not any(cut != each and each.head.startswith(cut.head) for cut in cuts)
    ]


def _withheld(shares: Shares | None) -> Explained:
    """The share of the empty string, with the interval that a single string has: the sum's normal
    one has no width where none or all of few reports support it."""
    if shares is None:
        return explained_by(None)
    return Explained(float(shares.share[0]), float(shares.low[0]), float(shares.high[0]))


def shares_of(parts: Sequence[Part], heads: Sequence[FoundHead], level: float) -> Shares | None:
    """The shares of these strings; None where no scheme with reports counts any of them."""
    return _shares(_decoded(parts), heads, level)


def _decoded(parts: Sequence[Part]) -> list[tuple[Part, DecodedRows]]:
    """The tallies with reports."""
    found = []
    for part in parts:
        mechanism = part.scheme.mechanism
        assert isinstance(mechanism, PrefixTree)
        if part.tally.reports:
            found.append((part, DecodedRows(mechanism, part.tally)))
    return found


def _shares(
    decoded: Sequence[tuple[Part, DecodedRows]], heads: Sequence[FoundHead], level: float
) -> Shares | None:
    answers = []
    for part, each in decoded:
        # Of few reports, none may be in a row that speaks of a string.
        told = [head for head in heads if each.tells(head) and each.supported(head)[1].any()]
        if told:
            answers.append(_shares_of_one(part, each, told, level))
    return combine(answers) if answers else None


def _shares_of_one(
    part: Part, decoded: DecodedRows, heads: Sequence[FoundHead], level: float
) -> Shares:
    channel = decoded.mechanism.channel
    counts, reports = np.array([decoded.supported(each).sum(axis=1) for each in heads]).T
    with np.errstate(divide="ignore", invalid="ignore"):
        share = debias(counts, reports, channel.p, channel.q)
    noise = Noise.of(channel.p, channel.q, reports, len(heads)).turned(np.atleast_2d)
    # The same devices report again: they are the same sample of all devices.
    kept = decoded.channel.kept_noise([part.tally.reports], [part.repeats])
    noise = replace(noise, kept=kept)
    (found,) = infer(
        [part.basis],
        tuple(head.name for head in heads),
        Finding.of(share, noise),
        decoded.channel.exposure(share, part.tally.reports / np.maximum(reports, 1)),
        [_figures(part, decoded)],
        level,
        complete=False,
    )
    return found


def _figures(part: Part, decoded: DecodedRows) -> tuple[Figure, ...]:
    return decoded.channel.figures([part.tally], [1.0])[0]
