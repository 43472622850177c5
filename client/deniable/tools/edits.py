"""What an edit of the registry costs on devices that have already reported.

A changed parameter is a new scheme. Without memos, reports under it continue with the same
ledger. With memos, every value gets another memo, which is charged again to the metric's
lifetime epsilon. If that has no room, a device that has reported stops for good.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from deniable.protocol.errors import Problem
from deniable.protocol.keep import in_words
from deniable.protocol.mechanisms import Memoizing
from deniable.protocol.metric import Answer, Metric
from deniable.protocol.registry import Registry


def foresee(registry: Registry) -> Iterator[Problem]:
    """A note for each metric with memos: how often its scheme may change."""
    for metric in registry:
        mechanism = metric.scheme.mechanism
        if not isinstance(mechanism, Memoizing):
            continue
        room = Fraction(metric.lifetime_epsilon) // Fraction(mechanism.lifetime_epsilon)
        bound = "lifetime_epsilon" if metric.memo_epsilon is None else "memo_epsilon"
        values = "window, ages, asks" if metric.type.looks_back else "values"
        begin = f"a change of its {values}, epsilon, {bound} or mechanism gives every value "
        begin += f"another memo. lifetime_epsilon {metric.lifetime_epsilon:g} has room for "
        if room > 1:
            end = f"{room} of them, so a device stops for good at change {room}"
        else:
            end = (
                "one, so devices that have reported would stop for good; a smaller memo_epsilon "
                "leaves room for changes"
            )
        yield registry.problem(metric, begin + end, "note")


def compare(before: Registry, after: Registry) -> Iterator[Problem]:
    """A note for each edit that devices notice, named by its place in `after`."""
    if before.app != after.app:
        yield Problem(
            None,
            "app",
            f"was {before.app!r}: devices start again, with an unspent ledger and other memos. "
            "Keep the name, unless it is another app",
            "warning",
        )
        return
    if before.lifetime_epsilon != after.lifetime_epsilon:
        old, new = (
            "no limit" if each.lifetime_epsilon is None else f"{each.lifetime_epsilon:g}"
            for each in (before, after)
        )
        message = f"was {old} and is {new}: a device that has spent as much reports nothing more"
        yield Problem(None, "lifetime_epsilon", message, "note")
    for name in [each for each in before.metrics if each not in after.metrics]:
        message = (
            "is gone: devices delete its values and do not report it any more. If it was "
            "renamed, it is another metric, with an unspent ledger"
        )
        yield Problem(None, f"metrics.{name}", message, "note")
    for metric in after:
        earlier = before.metrics.get(metric.name)
        if earlier is None:
            continue
        same = earlier.scheme.fingerprint == metric.scheme.fingerprint
        told = [
            _lifetime_cost(earlier, metric) if same else _cost(earlier, metric),
            metric.type.reread(earlier.type) if same else None,
            f"had the aggregate {earlier.aggregate} and has {metric.aggregate}: the scheme is the "
            "same, so that reports of both are added up. If they are other numbers to you, declare "
            "a new metric"
            if same and metric.aggregate != earlier.aggregate
            else None,
            f"kept {_kept(earlier)} and keeps {_kept(metric)}: what is older is dropped for ever, "
            "within a day after collectors have read this registry"
            if metric.keep != earlier.keep
            else None,
            _ANSWERS[metric.answer] if metric.answer != earlier.answer else None,
        ]
        yield from (after.problem(metric, each, "note") for each in told if each)


_ANSWERS: dict[Answer, str] = {
    "at_once": (
        "was answered at_close and is answered at_once: from the next window on, the network sees "
        "roughly when the app is first used. Give the collector this registry before the app: "
        "until it has it, it leaves such reports out, and devices wait. Visitors who do not come "
        "back now count, so the crowd may be another"
    ),
    "at_close": (
        "was answered at_once and is answered at_close: from the next window on, devices report "
        "only if the app runs again after the window has ended, so the crowd may be another"
    ),
}
"""What an edit of `answer` means, by the new one."""


def _kept(metric: Metric) -> str:
    return in_words(metric.keep) if metric.keep else "windows as the collector is set"


def _cost(old: Metric, new: Metric) -> str:
    """What another scheme of one metric costs."""
    kept, drawn = old.scheme.mechanism, new.scheme.mechanism
    if not isinstance(drawn, Memoizing):
        if not isinstance(kept, Memoizing):
            return (
                "is a new scheme: devices continue with the ledger that they have, and estimates "
                f"{new.type.combines(old.type)}"
            )
        return (
            "gives up its memos: every report so far counts against lifetime_epsilon "
            f"{new.lifetime_epsilon:g} with the epsilon of its fresh noise "
            f"({kept.fresh_epsilon:.4g}), and a device without room stops for good"
        )
    needed = Fraction(drawn.lifetime_epsilon)
    if not isinstance(kept, Memoizing):
        return (
            f"begins to memoize: a memo is charged {float(needed):.4g}, in addition to "
            f"{kept.epsilon:.4g} for each report so far, and a device for which "
            f"lifetime_epsilon {new.lifetime_epsilon:g} has no room stops for good"
        )
    spent = Fraction(kept.lifetime_epsilon)
    charged = f"{float(spent):.4g} for the memos before and {float(needed):.4g} for these"
    if spent + needed <= Fraction(new.lifetime_epsilon):
        return (
            f"gives every value another memo: {charged} fit into lifetime_epsilon "
            f"{new.lifetime_epsilon:g}, so devices go on reporting"
        )
    return (
        f"gives every value another memo: {charged} are more than lifetime_epsilon "
        f"{new.lifetime_epsilon:g}, so every device that has reported stops for good, and only new "
        f"ones report. To keep them, set memo_epsilon = {float(needed):.4g} and a "
        f"lifetime_epsilon of at least {float(spent + needed):.4g}, if they may reveal that much, "
        "or declare a new metric"
    )


def _lifetime_cost(old: Metric, new: Metric) -> str | None:
    """What another lifetime under the same scheme means."""
    if old.lifetime_epsilon == new.lifetime_epsilon:
        return None
    mechanism = new.scheme.mechanism
    one = mechanism.lifetime_epsilon if isinstance(mechanism, Memoizing) else mechanism.epsilon
    unit = "schemes with memos" if isinstance(mechanism, Memoizing) else "reports"
    counts = [Fraction(each.lifetime_epsilon) // Fraction(one) for each in (old, new)]
    return (
        f"has another lifetime: it has room for {counts[1]:,} {unit}, and had room for "
        f"{counts[0]:,}. A device that has spent more stops for good, and one that had stopped "
        "continues if there is room again"
    )
