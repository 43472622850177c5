"""What `deniable watch` would tell of a metric's newest window, at the level of an overview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from deniable import Metric
from deniable.protocol import windows
from deniable.protocol.types import Discovery
from deniable_estimator.asking.listed import digest_of_candidates
from deniable_estimator.asking.query import LENGTHS
from deniable_estimator.asking.reading import select
from deniable_estimator.asking.results import digest
from deniable_estimator.dashboard.data import DataSource
from deniable_estimator.dashboard.ranges import DayRange
from deniable_estimator.judging.changes import (
    FalseAlarms,
    MetricRules,
    judge,
    judgement_level,
    newest_settled,
)
from deniable_estimator.judging.findings import MetricFinding, findings_of

FALSE_ALARMS = FalseAlarms(0.05, "run")
"""How many changes may be expected to need attention on one overview although nothing changed."""

WAIT_DAYS = 1
"""A window is judged one day after its end, as `deniable watch` does: devices report late."""

OLD_DAYS = 7
"""What changed so long ago is no news, as in a metric that is silent or has expired."""

RULES = MetricRules()
"""What `deniable watch` tells unless its rules say otherwise."""

_REACH = 35 + WAIT_DAYS + OLD_DAYS + 1
"""How many windows before today a judgement looks back: four weeks before a week of days, which may
have ended as long ago as is still news."""


@dataclass(frozen=True, slots=True)
class JudgedWindow:
    """What is told of one window."""

    findings: tuple[MetricFinding, ...]


def newest_findings(
    source: DataSource, metric: Metric, candidates: Sequence[str] | None, family: int
) -> tuple[MetricFinding, ...]:
    """What changed in the newest settled window, and that it has too few reports.

    `family` is the number of metrics, which share `FALSE_ALARMS`. Whether the window looks honest
    is left to the alarm of the card, which looks at the same figures in more windows.
    """
    if isinstance(metric.type, Discovery):
        return ()  # it has no list of series whose changes could be told
    now = source.clock()
    last = datetime.fromtimestamp(now, UTC).date()
    reach = DayRange(last, last).reaching_back(_REACH, metric.window)
    asked = source.reader, source.registry, metric.name, reach.first, reach.last, candidates
    selection = select(*asked).apart()
    window = newest_settled(selection.labels, now, WAIT_DAYS)
    if window is None:
        return ()
    age = timedelta(seconds=now - windows.end(window))
    if age > LENGTHS[metric.window] + timedelta(OLD_DAYS):
        return ()
    end = windows.end(window)
    labels = frozenset(each for each in selection.labels if windows.end(each) <= end)
    selection = selection.within(labels)
    level = judgement_level(FALSE_ALARMS, family, metric.window)
    known = "judged", *selection.version(), window, level, digest_of_candidates(candidates)

    def work() -> JudgedWindow:
        found = judge(*(lambda each: selection.within(each).read(), labels, window, RULES, level))
        own = selection.pair is None
        return JudgedWindow(tuple(findings_of(metric, found, RULES, own=own)) if found else ())

    found = source.results.get(digest(*known), work).findings
    # Of a boolean one half says it all.
    halves = metric.values == ("true", "false")
    return tuple(
        each
        for each in found
        if each.kind != "anomaly" and not (halves and each.facts.get("series") == "false")
    )
