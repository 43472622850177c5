"""What an edit of the registry costs on devices that have answered already.

A changed parameter is a new scheme. Without memory, answers under it go on from the same
ledger. With memory, every value gets another memo, which is charged anew against the metric's
lifetime: where that has no room, a device that has answered stops for good.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from deniable.mechanisms import Memoizing
from deniable.metric import Metric
from deniable.problem import Problem
from deniable.registry import Registry

__all__ = ["compare", "foresee"]


def foresee(registry: Registry) -> Iterator[Problem]:
    """A note for each metric with memory: how often its scheme may change."""
    for metric in registry:
        mechanism = metric.scheme.mechanism
        if not isinstance(mechanism, Memoizing):
            continue
        room = Fraction(metric.lifetime_epsilon) // Fraction(mechanism.lifetime_epsilon)
        begin = "a change of its values, epsilon, memo_epsilon or mechanism gives every value "
        begin += f"another memo. lifetime_epsilon {metric.lifetime_epsilon:g} has room for "
        if room > 1:
            end = f"{room} of them, so a device stops for good at change {room}"
        else:
            end = (
                "one, so devices that have answered would stop for good; a smaller memo_epsilon "
                "leaves room for changes"
            )
        yield _note(registry, metric, begin + end)


def compare(before: Registry, after: Registry) -> Iterator[Problem]:
    """A note for each metric that was edited, named by its place in `after`."""
    if before.app != after.app:
        yield Problem(
            None,
            "app",
            f"was {before.app!r}: devices begin anew, with an unspent ledger and other memos. Keep "
            "the name, unless it is another app",
            "warning",
        )
    for metric in after:
        old = before.metrics.get(metric.name)
        if old is not None and old.scheme.fingerprint != metric.scheme.fingerprint:
            yield _note(after, metric, _cost(old, metric))


def _cost(old: Metric, new: Metric) -> str:
    kept, drawn = old.scheme.mechanism, new.scheme.mechanism
    if not isinstance(kept, Memoizing) and not isinstance(drawn, Memoizing):
        return (
            "is a new scheme: devices go on with the ledger that they have, and estimates combine "
            "both schemes"
        )
    if isinstance(kept, Memoizing) and not isinstance(drawn, Memoizing):
        return (
            "gives up its memory: every answer that was given counts against lifetime_epsilon "
            f"{new.lifetime_epsilon:g} with the epsilon of its fresh noise "
            f"({kept.fresh_epsilon:.4g}), and a device without room stops for good"
        )
    assert isinstance(drawn, Memoizing)
    needed = Fraction(drawn.lifetime_epsilon)
    if not isinstance(kept, Memoizing):
        return (
            f"begins a memory: a memo is charged {float(needed):.4g}, beside "
            f"{kept.epsilon:.4g} for each answer that a device has given, and one for which "
            f"lifetime_epsilon {new.lifetime_epsilon:g} has no room stops for good"
        )
    spent = Fraction(kept.lifetime_epsilon)
    charged = f"{float(spent):.4g} for the memos before and {float(needed):.4g} for these"
    if spent + needed <= Fraction(new.lifetime_epsilon):
        return (
            f"gives every value another memo: {charged} fit into lifetime_epsilon "
            f"{new.lifetime_epsilon:g}, so devices answer on"
        )
    return (
        f"gives every value another memo: {charged} are more than lifetime_epsilon "
        f"{new.lifetime_epsilon:g}, so every device that has answered stops for good and new ones "
        f"alone answer. Keep them by memo_epsilon = {float(needed):.4g} and a lifetime_epsilon of "
        f"at least {float(spent + needed):.4g}, if that much may be told, or declare a new metric"
    )


def _note(registry: Registry, metric: Metric, message: str) -> Problem:
    line = registry.lines.get(metric.name)
    return Problem(line, f"metrics.{metric.name}", message, "note")
