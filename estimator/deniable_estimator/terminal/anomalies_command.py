"""`deniable estimate anomalies`: which windows of a metric look dishonest.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call, 3 if nothing has been reported
yet, 4 if there is an alarm.
"""

from __future__ import annotations

import sys
import time
from datetime import date
from pathlib import Path

import click

from deniable.tools.command_line import command
from deniable_collector.options import registry_option, store_option
from deniable_estimator.terminal.options import (
    alarm_level_in_force,
    as_json,
    candidates_option,
    no_data,
    opened,
    progress,
    range_options,
    read_candidates,
    reported,
    say,
    without_option,
)

# numpy and rich take longer to import than `deniable --help` should.

ALARM = 4
"""The exit code if `deniable estimate anomalies` raises an alarm."""


@command("deniable estimate anomalies browser --from 2026-11-16")
@click.argument("metric")
@range_options
@without_option
@registry_option
@store_option
@candidates_option
@as_json
@reported
def anomalies(
    metric: str,
    first: date | None,
    last: date | None,
    without: tuple[str, ...],
    registry: Path,
    store: str | None,
    candidates: Path | None,
    form: str | None,
) -> None:
    """Find windows of METRIC that honest reports cannot explain, or with more reports than usual.

    Exits with 4 on an alarm. DENIABLE_ALARM_LEVEL says how often honest reports may raise one.
    """
    from deniable import Registry
    from deniable_estimator.asking.history import Look, inspect, looks_in
    from deniable_estimator.asking.query import find_metric
    from deniable_estimator.asking.reading import select, unfinished
    from deniable_estimator.asking.trend import trend as read_trend
    from deniable_estimator.terminal.comparing import history_document

    declared = Registry.load(registry)
    asked = read_candidates(find_metric(declared, metric), candidates)
    days = (first, last)
    with opened(store) as tallies, progress("Looking at each window"):
        if find_metric(declared, metric).type.name == "discovery":
            chosen = select(tallies, declared, metric, *days, without=without).apart()
            looks = [each for _, each in looks_in(chosen, chosen.labels) if each is not None]
            running = unfinished([each.label for each in looks], time.time())
        else:
            reported = read_trend(tallies, declared, metric, *days, asked, without=without).reported
            looks = [Look.of(each.label, each.estimate) for each in reported if each.estimate]
            running = tuple(each.label for each in reported if each.unfinished)
        found = inspect(metric, looks, alarm_level_in_force(), unfinished=running)
    if form == "json" or found.windows:
        say(form, found.to_dict, lambda: history_document(found))
    if not found.windows:
        no_data(metric)
    if found.anomalous:
        sys.exit(ALARM)
