"""How each value's share changed between two estimates, with an interval of its own.

For independent estimates with intervals (l, u) the difference d = after - before lies between ::

    d - sqrt((after - l_after) ** 2 + (u_before - before) ** 2)
    d + sqrt((u_after - after) ** 2 + (before - l_before) ** 2)

(Newcombe, Statistics in Medicine 1998, method 10), which for large crowds is
d +- z sqrt(Var_before + Var_after). It is the change of the share among all devices, so each
variance counts devices as that of a single period does (see
`deniable_estimator.statistics.participation`). A report does not say which device it is from, so
the two periods are treated as coming from different devices. If the same devices report in both
and keep their values, the choice of devices cancels out, and the interval is too wide: hardly for
periods of one window, considerably for two months of daily reports. Treating them as the same
devices would report false changes as soon as other devices report.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from deniable_estimator.answers.base import TOGETHER, Answer, ChangeTest, Comparison
from deniable_estimator.errors import EstimateError
from deniable_estimator.messages import message


def compare(before: Answer, after: Answer, test: ChangeTest = TOGETHER) -> Comparison:
    """The change from `before` to `after` of every series that both have, in the order of `after`.

    Raises:
        EstimateError: they are of different metrics or levels, or share a window.
    """
    (found,) = compare_each([(before, after)], test)
    return found


def compare_each(pairs: Sequence[tuple[Answer, Answer]], test: ChangeTest) -> list[Comparison]:
    """The change of each of these pairs, with the same errors."""
    for before, after in pairs:
        if (before.metric, before.level, before.kind) != (after.metric, after.level, after.kind):
            raise EstimateError(message("only estimates of one metric and level can be compared"))
        if shared := set(before.windows) & set(after.windows):
            raise EstimateError(
                message(
                    "both periods hold {window}: a window cannot be compared with itself, so "
                    "choose two ranges that do not overlap",
                    window=min(shared),
                )
            )
    kinds = groupby(pairs, key=lambda pair: type(pair[1]))
    return [change for kind, same in kinds for change in kind.changes([*same], test)]
