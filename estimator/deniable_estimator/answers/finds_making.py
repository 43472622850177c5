"""The finds of a discovery metric, from the tallies of its schemes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable_estimator.analyses.anomalies import Figure, Verdict, discovery_figures
from deniable_estimator.analyses.base import Finding
from deniable_estimator.analyses.candidates import check_tally
from deniable_estimator.analyses.discovery import DecodedRows, FoundHead
from deniable_estimator.analyses.discovery.prior import Prior, shipped_prior
from deniable_estimator.analyses.discovery.tree import LEVEL
from deniable_estimator.answers.basis import Basis, Part, few_notes, footnotes, vars_of
from deniable_estimator.answers.finds import Explained, Find, Finds, explained_by
from deniable_estimator.answers.shares import Shares
from deniable_estimator.answers.shares_making import combine, infer
from deniable_estimator.forecasting.discovery_forecast import Reach
from deniable_estimator.statistics.intervals import Noise, debias


@dataclass(frozen=True)
class Rule:
    """What is shown of what was found."""

    minimum_share: float = 0.0
    denies: Callable[[str], bool] = lambda text: False
    """Whether a pattern of the deny list matches a string."""


def find_strings(
    parts: Sequence[Part],
    rule: Rule,
    *,
    level: float = 0.95,
    prior: Prior | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Finds:
    """The strings that occur, found in each scheme and estimated from all of them.

    Several schemes share the level of the test, so that it bounds the false part of their union.

    Raises:
        EstimateError: a tally does not belong to its scheme, or has too many reports.
        ValueError: `level` is not between 0 and 1.
    """
    prior = prior or shipped_prior()
    for part in parts:
        check_tally(part.tally, part.scheme)
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
    whole, heads = _shares(decoded, list(values), level), {_name(head): head for head in values}
    every: list[Find] = []
    if whole is not None:
        for at in np.argsort(-whole.share, kind="stable").tolist():
            head = heads[whole.values[at]]
            every.append(_find(whole, at, head, values[head]))
    kept = [each for each in every if not rule.denies(each.text)]
    finds = [each for each in kept if each.share >= rule.minimum_share]
    shown = [FoundHead(each.head, each.cut) for each in finds]
    shares = _shares(decoded, shown, level)
    cut = -NormalDist().inv_cdf(max(1e-300, *values.values())) if values else None
    basis = Basis.merged([part.basis for part, _ in decoded] or [parts[0].basis])
    notes = shares.notes if shares is not None else ()
    return Finds(
        **vars_of(basis),
        level=level,
        finds=tuple(finds),
        explained=explained_by(_shares(decoded, _apart(shown), level), cut),
        withheld=_withheld(_shares(decoded, [FoundHead(b"", False)], level)),
        minimum_share=rule.minimum_share,
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
            *footnotes(basis, complete=True),
        ),
    )


def _apart(heads: Sequence[FoundHead]) -> list[FoundHead]:
    """Those that no other of them counts too: the beginning that a short scheme cuts at counts
    all strings that a longer scheme tells apart."""
    cuts = [each for each in heads if each.cut]
    return [
        each
        for each in heads
        if not any(cut != each and each.data.startswith(cut.data) for cut in cuts)
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


def _name(head: FoundHead) -> str:
    """What shares call a string: one that is cut ends in dots, as another one may be as long."""
    return head.text() + ("\N{HORIZONTAL ELLIPSIS}" if head.cut else "")


def _shares(
    decoded: Sequence[tuple[Part, DecodedRows]], heads: Sequence[FoundHead], level: float
) -> Shares | None:
    answers = []
    for part, each in decoded:
        # Of few reports, none may be in a row that speaks of a string.
        told = [head for head in heads if each.tells(head) and each.supported(head).total]
        if told:
            answers.append(_shares_of_one(part, each, told, level))
    return combine(answers) if answers else None


def _shares_of_one(
    part: Part, decoded: DecodedRows, heads: Sequence[FoundHead], level: float
) -> Shares:
    channel, support = decoded.mechanism.channel, decoded.support(heads)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = debias(support.counts, support.reports, channel.p, channel.q)
    noise = Noise.of(channel.p, channel.q, support.reports, len(heads)).turned(np.atleast_2d)
    # The same devices report again: they are the same sample of all devices.
    kept = decoded.channel.kept_noise([part.tally.reports], [part.repeats])
    noise = replace(noise, kept=kept)
    (found,) = infer(
        [part.basis],
        tuple(map(_name, heads)),
        Finding.of(share, noise),
        decoded.channel.exposure(share, part.tally.reports / np.maximum(support.reports, 1)),
        [_figures(part, decoded)],
        level,
        complete=False,
    )
    return found


def _figures(part: Part, decoded: DecodedRows) -> tuple[Figure, ...]:
    return discovery_figures(part.tally, decoded.channel.commonest())


def _find(shares: Shares, at: int, head: FoundHead, p_value: float) -> Find:
    share, std_error, low, high = (
        each.item(at) for each in (shares.share, shares.std_error, shares.low, shares.high)
    )
    return Find(head.text(), head.data, head.cut, share, std_error, low, high, p_value)
