"""Which windows of a metric look dishonest, or unlike the windows before them.

Each window has the figures of its own tally (`deniable_estimator.analyses.anomalies`), and two that
compare it with up to 28 windows before it: *jump*, the share of the value that moved furthest (of
numbers *shift*, the quantile or mean that did), and *reports*, whether there are more of them. With
m windows before, mean y, variance s**2, and a new one x ::

    t = (x - y) / sqrt(V + V/m + D),  V = max(s**2, noise of those before)

D being by how much the new one is noisier. A quantile whose interval has no limit is not compared,
and does not count among the m. Under Student's distribution with m - 1 degrees of
freedom this is calibrated if windows vary as they did, so a jump is a reason to look, and no
proof of fakes: a launch is one too.

Fewer reports than usual are no alarm: devices that are offline send later, so the newest windows
still grow. For the same reason a window with less than half of the usual reports is not compared
by its shares: the devices that report first need not be like the others. A window that has not
ended is not compared at all; the figures of its own tally hold for any number of reports.

The figures of all windows that are shown, and those of their sum, are adjusted together (Holm), so
that a page with many windows raises a false alarm as seldom as one with a single one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable_estimator.analyses.anomalies import ALARM_LEVEL, LEAST_REPORTS, Figure, Verdict
from deniable_estimator.questions.looks import Look
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.tails import student_tails

LEAST_HISTORY = 7
"""How many earlier windows are needed for a comparison: a week of days."""

LONGEST_HISTORY = 28
"""How many earlier windows are used; older ones say little about the present."""

_HALF = 0.5
"""The part of the usual reports that a window must have for its shares to be compared."""


@dataclass(frozen=True, slots=True)
class Window:
    """One window, with its figures; their p-values are adjusted for all that is shown."""

    label: str
    n: int
    """Reports."""
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class History:
    """The windows of a metric that are shown and have reports, the oldest first."""

    metric: str
    alarm_level: float
    windows: tuple[Window, ...]
    whole: Verdict = field(default_factory=Verdict)
    """The figures of the sum of these windows, adjusted with theirs."""

    @property
    def anomalous(self) -> tuple[Window, ...]:
        """The windows that raise an alarm."""
        return tuple(each for each in self.windows if each.verdict.alarms(self.alarm_level))

    @property
    def checks(self) -> int:
        """How many figures were looked at."""
        verdicts = (self.whole, *(each.verdict for each in self.windows))
        return sum(len(each.figures) for each in verdicts)

    def to_dict(self) -> dict[str, Any]:
        """As JSON can carry it: `metric`, `level`, `anomalous`, and `windows` with `window`, `n`
        and what `Verdict.to_dict` says, which also stands under `whole` for their sum."""
        whole = self.whole.to_dict(self.alarm_level)
        return {
            "metric": self.metric,
            "level": self.alarm_level,
            "anomalous": whole["anomalous"] or bool(self.anomalous),
            "whole": whole,
            "windows": [
                {"window": each.label, "n": each.n, **each.verdict.to_dict(self.alarm_level)}
                for each in self.windows
            ],
        }


def inspect(
    metric: str,
    looks: Sequence[Look],
    alarm_level: float = ALARM_LEVEL,
    *,
    shown: Collection[str] | None = None,
    whole: Iterable[Figure] = (),
    unfinished: Collection[str] = (),
) -> History:
    """The windows `shown`, each against those before it; all of them, if not given.

    Args:
        looks: the oldest first. Those that are not shown are what others are compared with.
        whole: the figures of the sum of the windows that are shown.
        unfinished: the windows that have not ended, which are not compared.
    """
    ended = [each for each in looks if each.label not in unfinished]
    against = {each.label: found for each, found in zip(ended, _against(ended), strict=True)}
    kept = [
        (each, (*each.figures, *against.get(each.label, ())))
        for each in looks
        if shown is None or each.label in shown
    ]
    whole = tuple(whole)
    together = Verdict.of([*whole, *(figure for _, found in kept for figure in found)]).figures
    windows, start = [], len(whole)
    for each, found in kept:
        end = start + len(found)
        windows.append(Window(each.label, each.n, Verdict(together[start:end])))
        start = end
    return History(metric, alarm_level, tuple(windows), Verdict(together[: len(whole)]))


def _against(looks: Sequence[Look]) -> list[list[Figure]]:
    """How far each window lies from those before it that were asked for the same values."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for place, each in enumerate(looks):
        alike.setdefault(each.values, []).append(place)
    found: list[list[Figure]] = [[] for _ in looks]
    for places in alike.values():
        if len(places) > LEAST_HISTORY:
            for place, figure in _moves([looks[each] for each in places]):
                found[places[place]].append(figure)
    return found


def _moves(looks: Sequence[Look]) -> Iterator[tuple[int, Figure]]:
    """The figures of windows that have enough before them, with their places."""
    n = np.array([each.n for each in looks], np.float64)
    # A count of n reports is known to 1 / sqrt(n) of itself, were it drawn by chance.
    crowd, usual_log, _ = _scores(np.log(n)[:, None], 1 / n[:, None])
    usual = np.exp(usual_log[:, 0])
    moved, before, windows = _scores(
        np.array([each.share for each in looks]), np.array([each.variance for each in looks])
    )
    known = np.isfinite(moved)
    families = known.sum(axis=1)
    furthest = np.where(known, np.abs(moved), -1.0).argmax(axis=1) if moved.size else families
    values = looks[0].values
    for place in range(LEAST_HISTORY, len(looks)):
        if n[place] < LEAST_REPORTS:
            continue
        scheme = looks[place].scheme
        freedom = min(place, LONGEST_HISTORY) - 1
        t = float(crowd[place, 0])
        tail = student_tails(t, freedom) / 2
        yield (
            place,
            Figure("reports", scheme, n[place], float(usual[place]), tail if t > 0 else 1 - tail),
        )
        family = int(families[place])
        if not family or n[place] < _HALF * usual[place]:
            continue
        at = int(furthest[place])
        p = student_tails(float(moved[place, at]), int(windows[place, at]) - 1)
        yield (
            place,
            Figure(
                looks[place].moved,
                scheme,
                float(looks[place].share[at]),
                float(before[place, at]),
                min(1.0, family * p),
                value=values[at],
            ),
        )


def _scores(
    x: NDArray[Any], noise: NDArray[Any]
) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
    """Student's t of each row against the rows before it (see above), their mean, and how many
    they are.

    All have shape (windows, d). NaN where a number or its noise is not known, and t where fewer
    than `LEAST_HISTORY` known ones lie before.
    """
    last = np.arange(len(x))
    first = np.maximum(last - LONGEST_HISTORY, 0)
    known = np.isfinite(x) & np.isfinite(noise)

    def before(column: NDArray[Any]) -> FloatArray:
        """The sums of what is known in the rows before each."""
        kept = np.where(known, column, 0.0)
        sums = np.vstack([np.zeros(column.shape[1]), np.cumsum(kept, axis=0)])
        found: FloatArray = sums[last] - sums[first]
        return found

    count = before(known).astype(np.int64)
    m = np.maximum(count, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        # About the middle, as squares of large numbers would lose digits.
        middle = np.where(known, x, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        mean = before(x - middle) / m
        spread = (before((x - middle) ** 2) - m * mean**2) / (m - 1)
        usual = before(noise) / m
        variance = np.maximum(spread, usual) * (1 + 1 / m) + np.maximum(noise - usual, 0.0)
        t: FloatArray = (x - middle - mean) / np.sqrt(variance)
    t[(count < LEAST_HISTORY) | ~known] = np.nan
    return t, mean + middle, count
