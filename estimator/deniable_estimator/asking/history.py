"""Judges which windows of a metric look dishonest, or have more reports than those before them, and
says so: for pages and commands, the overview, `deniable watch` and the digest.

Each window has the figures of its own tally (`deniable_estimator.analyses.anomalies`), and one that
compares it with up to 28 windows before it: *reports*, whether there are more of them. With y the
logarithms of the reports of m windows before, their mean and their variance s**2, and a new x of
n reports ::

    t = (x - mean) / sqrt(V + V/m + D),  V = max(s**2, mean of 1/n of those before)

D being by how much 1/n is larger now. Under Student's distribution with m - 1 degrees of freedom
this is calibrated if windows vary as they did.

That estimates move is no sign of fakes: honest devices whose values change send just that, and
comparisons of windows tell it as a change. Fewer reports than usual are no alarm either: devices
that are offline send later, so the newest windows still grow. A window that has not ended is not
compared at all.

A page looks at each window of a year. So windows of which each has one tally of a closed list, as
most have, are looked at together: a call of numpy takes about as long for one window as for many.

The figures of all windows that are shown, and those of their sum, are adjusted together (Holm), so
that a page with many windows raises a false alarm as seldom as one with a single one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from deniable import Registry, Scheme
from deniable.protocol.mechanisms import FrequencyOracle
from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable_estimator.analyses import analysis_of, asked_values, oracle_analysis
from deniable_estimator.analyses.anomalies import ALARM_LEVEL, LEAST_REPORTS, Figure, Verdict
from deniable_estimator.asking.fetch import Question, Selection, select
from deniable_estimator.asking.query import Query, find_metric
from deniable_estimator.asking.reader import Reader
from deniable_estimator.kinds.base import Answer
from deniable_estimator.kinds.basis import Part, unfinished
from deniable_estimator.kinds.formats import window
from deniable_estimator.messages import listed, message
from deniable_estimator.statistics.intervals import FloatArray
from deniable_estimator.statistics.tails import student_tails

LEAST_HISTORY = 7
"""How many earlier windows are needed for a comparison: a week of days."""

LONGEST_HISTORY = 28
"""How many earlier windows are used; older ones say little about the present."""

_NAMED = 3
"""So many windows that raise an alarm are named; the others are counted."""


@dataclass(frozen=True, eq=False, slots=True)
class Look:
    """What is looked at in one window; arrays have shape (d,)."""

    label: str
    n: int
    """Reports."""
    scheme: str
    """The fingerprint of its scheme; of several, the first."""
    values: tuple[str, ...]
    """Empty where shares are not looked at, as of strings that nobody has named."""
    share: FloatArray
    variance: FloatArray
    """NaN where nothing is known, as of a quantile whose interval has no limit on a side."""
    figures: tuple[Figure, ...]
    """Those of its own tally."""

    @classmethod
    def of(cls, label: str, estimate: Answer) -> Self:
        """That of an answer over one window."""
        series = estimate.series
        return cls(
            label,
            estimate.n,
            estimate.schemes[0],
            series.names,
            series.value,
            series.std_error**2,
            estimate.verdict.figures,
        )


def _look(label: str, question: Question) -> Look:
    """That of tallies of several schemes, and of any that is not the shares of a closed list.
    Strings are not decoded: of their tallies alone the rows and bitmaps are looked at, and the rows
    of a discovery."""
    parts = question.informed
    if question.n and (question.pair or not any(_is_open(part.scheme) for part in parts)):
        return Look.of(label, question.estimate())
    found = [
        figure
        for part in parts
        if isinstance(mechanism := part.scheme.mechanism, (FrequencyOracle, PrefixTree))
        for figure in analysis_of(mechanism).figures([part.tally], [1.0])[0]
    ]
    none = np.zeros(0)
    scheme = parts[0].tally.scheme if parts else ""
    return Look(label, question.n, scheme, (), none, none, tuple(found))


def looks_in(selection: Selection, labels: Sequence[str]) -> Iterator[Look]:
    """What there is to see in each of these windows of a selection. Some are read at once."""
    for first in range(0, len(labels), selection.at_once):
        some = labels[first : first + selection.at_once]
        questions = selection.read_each([[label] for label in some])
        yield from look_at_each(some, questions)


def look_at_each(labels: Sequence[str], questions: Sequence[Question]) -> list[Look]:
    """What there is to see in each of these windows, in their order, without all else that an
    estimate says: that takes a quarter of its time."""
    found: dict[str, Look] = {}
    alike: dict[str, dict[str, Part]] = {}
    for label, question in zip(labels, questions, strict=True):
        parts = question.informed
        if not question.pair and len(parts) == 1 and _is_closed(parts[0].scheme):
            alike.setdefault(parts[0].scheme.fingerprint, {})[label] = parts[0]
        else:
            found[label] = _look(label, question)
    for same in alike.values():
        found |= zip(same, _together([*same], [*same.values()]), strict=True)
    return [found[label] for label in labels]


def _is_open(scheme: Scheme) -> bool:
    """Whether its tallies are of strings that nobody has listed."""
    return scheme.needs_candidates or isinstance(scheme.mechanism, PrefixTree)


def _is_closed(scheme: Scheme) -> bool:
    """Whether its tallies have the shares of a closed list."""
    return not scheme.needs_candidates and isinstance(scheme.mechanism, FrequencyOracle)


def _together(labels: Sequence[str], parts: Sequence[Part]) -> list[Look]:
    """The looks at tallies with reports of one scheme, of a closed list."""
    scheme, tallies = parts[0].scheme, [part.tally for part in parts]
    analysis = oracle_analysis(scheme.oracle)
    values, items = asked_values(scheme)
    _, share, noise = analysis.shares(tallies, items)
    variance = noise.at(share)
    seen = analysis.figures(tallies, [1.0] * len(tallies), analysis.share_tests(share, noise))
    return [
        Look(
            label,
            tally.reports,
            tally.scheme,
            values,
            # Copies, because a view would keep all others in memory.
            share[place].copy(),
            variance[place].copy(),
            seen[place],
        )
        for place, (label, tally) in enumerate(zip(labels, tallies, strict=True))
    ]


@dataclass(frozen=True, slots=True)
class Window:
    """One window, with its figures; their p-values are adjusted for all that is shown."""

    label: str
    n: int
    """Reports."""
    verdict: Verdict


class Strange(NamedTuple):
    """A window that raises an alarm, or all of them together."""

    when: str
    reasons: tuple[Figure, ...]
    label: str | None = None
    """None of all together."""


@dataclass(frozen=True)
class History:
    """The windows of a metric that are shown and have reports, the oldest first."""

    metric: str
    alarm_level: float
    windows: tuple[Window, ...]
    whole: Verdict = field(default_factory=Verdict)
    """The figures of the sum of these windows, adjusted with theirs."""

    @cached_property
    def strange(self) -> tuple[Strange, ...]:
        """What raises an alarm, the newest window first; it takes the place of all that is said of
        these windows."""
        found = [
            Strange(window(each.label), reasons, each.label)
            for each in reversed(self.windows)
            if (reasons := each.verdict.alarms(self.alarm_level))
        ]
        if reasons := self.whole.alarms(self.alarm_level):
            several = len(self.windows) > 1
            when = message("all windows together") if several else message("this window")
            found.append(Strange(when, reasons))
        return tuple(found)

    def new(self, is_new: Callable[[str], bool]) -> History | None:
        """What is to be told where older windows were told before: these windows without the older
        ones, if any of them raises an alarm. The sum of all is told where no single window is."""
        if not self.labels:
            return self if self.strange else None
        newer = tuple(each for each in self.windows if is_new(each.label))
        found = replace(self, windows=newer)
        return found if found.labels else None

    @property
    def labels(self) -> tuple[str, ...]:
        """The windows that are to be left out."""
        return tuple(each.label for each in self.strange if each.label is not None)

    @property
    def which(self) -> str:
        """What raises the alarm, in a few words."""
        names = [window(each) for each in self.labels] or [self.strange[0].when]
        rest = len(names) - _NAMED
        if rest > 0:
            names[_NAMED:] = [message("{more} more", more=rest)]
        return listed(names)

    @property
    def text(self) -> str:
        """What takes the place of a headline."""
        return message("Anomalous: {which}. Do not rely on these numbers.", which=self.which)

    @property
    def checks(self) -> int:
        """How many figures were looked at."""
        verdicts = (self.whole, *(each.verdict for each in self.windows))
        return sum(len(each.figures) for each in verdicts)

    def to_dict(self) -> dict[str, Any]:
        """As JSON can carry it: `metric`, `level`, `anomalous`, and `windows` with `window`, `n`
        and what `Verdict.to_dict` says, which also stands under `whole` for their sum."""
        return {
            "metric": self.metric,
            "level": self.alarm_level,
            "anomalous": bool(self.strange),
            "whole": self.whole.to_dict(self.alarm_level),
            "windows": [
                {"window": each.label, "n": each.n, **each.verdict.to_dict(self.alarm_level)}
                for each in self.windows
            ],
        }


def history_in(
    reader: Reader,
    registry: Registry,
    query: Query,
    alarm_level: float,
    whole: Iterable[Figure] | None,
    now: float,
) -> History:
    """The windows of a question, each against those before it, and the figures of their sum: those
    of its answer (`whole`), if it is known. Strings are not decoded for it.

    Raises:
        MetricError: the registry declares no such metric.
        StoreUnavailable: the store cannot answer now.
    """
    window = find_metric(registry, query.metric).window
    reach = query.days.reaching_back(LONGEST_HISTORY, window)
    chosen = select(reader, registry, query, reach).apart()
    return inspect_asked(chosen, [*looks_in(chosen, chosen.labels)], alarm_level, whole, now)


def inspect_asked(
    chosen: Selection,
    looks: Sequence[Look],
    alarm_level: float,
    whole: Iterable[Figure] | None,
    now: float,
) -> History:
    """The same of a selection that begins before the windows that are asked for."""
    shown = set(filter(chosen.query.days.holds, chosen.labels))
    if whole is None:
        together = chosen.within(shown).read()
        closed = not any(_is_open(part.scheme) for part in together.parts)
        whole = together.estimate().verdict.figures if closed else ()
    running = unfinished(chosen.labels, now)
    return inspect(chosen.metric.name, looks, alarm_level, shown, whole, running)


def inspect(
    metric: str,
    looks: Sequence[Look],
    alarm_level: float = ALARM_LEVEL,
    shown: Collection[str] | None = None,
    whole: Iterable[Figure] = (),
    unfinished: Collection[str] = (),
) -> History:
    """The windows `shown`, each against those before it; all of them, if not given.

    Args:
        looks: the oldest first. Those that are not shown are what others are compared with; those
            without reports are passed over.
        whole: the figures of the sum of the windows that are shown.
        unfinished: the windows that have not ended, which are not compared.
    """
    kept: list[tuple[Look, tuple[Figure, ...]]] = []
    before: list[int] = []
    for each in looks:
        ended = each.label not in unfinished
        if each.n and (shown is None or each.label in shown):
            more = _against(each, before[-LONGEST_HISTORY:]) if ended else ()
            kept.append((each, (*each.figures, *more)))
        if each.n and ended:
            before.append(each.n)
    whole = tuple(whole)
    together = Verdict.of([*whole, *(figure for _, found in kept for figure in found)]).figures
    windows, start = [], len(whole)
    for each, found in kept:
        end = start + len(found)
        windows.append(Window(each.label, each.n, Verdict(together[start:end])))
        start = end
    return History(metric, alarm_level, tuple(windows), Verdict(together[: len(whole)]))


def _against(look: Look, before: Sequence[int]) -> tuple[Figure, ...]:
    """Whether a window has more reports than those before it; nothing where these are few."""
    count = len(before)
    if count < LEAST_HISTORY or look.n < LEAST_REPORTS:
        return ()
    x = np.log(np.array([*before, look.n], np.float64))
    # A count of n reports is known to 1 / sqrt(n) of itself, were it drawn by chance.
    noise = np.exp(-x)
    mean, usual = x[:-1].mean(), noise[:-1].mean()
    spread = max(x[:-1].var(ddof=1), usual) * (1 + 1 / count)
    t = float((x[-1] - mean) / np.sqrt(spread + max(noise[-1] - usual, 0.0)))
    tail = student_tails(t, count - 1) / 2
    expected = float(np.exp(mean))
    return (Figure("reports", look.scheme, look.n, expected, tail if t > 0 else 1 - tail),)
