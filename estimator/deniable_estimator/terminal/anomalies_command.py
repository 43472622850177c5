"""`deniable estimate anomalies`: which windows of a metric look dishonest.

Exit codes: 0 for a result, 1 for an error, 2 for a wrong call, 3 if nothing has been reported
yet, 4 if there is an alarm.
"""

from __future__ import annotations

import sys
import time

from deniable.tools.command_line import command
from deniable_estimator.terminal.call import StoreCall, asks, of_store
from deniable_estimator.terminal.options import alarm_level_in_force

# numpy and rich take longer to import than `deniable --help` should.

ALARM = 4
"""The exit code if `deniable estimate anomalies` raises an alarm."""


@command("deniable estimate anomalies browser --from 2026-11-16")
@asks("without")
@of_store("candidates", "json")
def anomalies(call: StoreCall) -> None:
    """Find windows of METRIC that honest reports cannot explain, or with more reports than usual.

    Exits with 4 on an alarm. DENIABLE_ALARM_LEVEL says how often honest reports may raise one.
    """
    from deniable_estimator.asking.history import Look, inspect, looks_in
    from deniable_estimator.asking.reading import select, unfinished
    from deniable_estimator.asking.trend import trend
    from deniable_estimator.terminal.documents import history_document

    with call.reading("Looking at each window") as reader:
        asked = reader, call.registry, call.query
        if call.metric.type.name == "discovery":
            chosen = select(*asked).apart()
            looks = [each for _, each in looks_in(chosen, chosen.labels) if each is not None]
            running = unfinished([each.label for each in looks], time.time())
        else:
            reported = trend(*asked).reported
            looks = [Look.of(each.label, each.estimate) for each in reported if each.estimate]
            running = tuple(each.label for each in reported if each.unfinished)
        found = inspect(call.metric.name, looks, alarm_level_in_force(), unfinished=running)
    if call.form is None:
        call.check(len(found.windows))
    call.say(len(found.windows), found.to_dict, lambda: history_document(found))
    if found.anomalous:
        sys.exit(ALARM)
