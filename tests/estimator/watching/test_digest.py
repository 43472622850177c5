"""The weekly digest: what it says of each metric, and the files that carry it."""

import json
import re
from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from tests.registries import declared

from deniable import Registry
from deniable.protocol import windows
from deniable_estimator.analyses import sample_tally
from deniable_estimator.annotations import Annotation
from deniable_estimator.asking.reader import Reader
from deniable_estimator.watching.digest import (
    DigestLine,
    WeeklyDigest,
    as_html,
    as_text,
    weekly_digest,
)
from deniable_estimator.watching.rules_file import parse_rules
from deniable_estimator.watching.seen import WatchState

from .conftest import RenewedWatcher, noon

MONDAY = noon(13)
"""Noon after the second Sunday."""


def made(store, registry, now=MONDAY, weeks=1):
    return weekly_digest(
        Reader(store), registry, (registry["browser"],), {}, "https://d.example", now, weeks
    )


def test_a_metric_that_never_had_a_report_has_its_own_heading(store, registry):
    """It has not stayed as it was: nothing is known of it."""
    found = made(store, registry)
    assert [each.metric for each in found.silent] == ["browser"]
    assert found.unchanged == []
    assert "No reports yet (1)\n  browser: no reports so far\n" in as_text(found, "en")


def test_a_month_is_told_when_it_ends(store, fill, tmp_path):
    """A metric by months is compared in the week in which one ended; in any other its line says
    that none did."""
    registry = Registry.parse(declared(m={"type": "boolean", "window": "month"}))
    scheme, rng = registry["m"].scheme, np.random.default_rng(1)
    fill(sample_tally(scheme, [9, 9], rng, metric="m", window="2026-01"), scheme)
    for number, ended in ((27, True), (20, False), (34, False)):
        found = weekly_digest(
            Reader(store), registry, tuple(registry), {}, "https://d.example", noon(number)
        )
        assert (found.first <= date(2026, 10, 31) <= found.last) == ended
        (line,) = found.uncompared
        assert (line.text != "no month ended in these weeks") == ended, number


def test_months_in_many_weeks_are_compared(store, fill):
    """Where the weeks hold several complete months, these are compared with as many before them,
    and not the newest alone."""
    registry = Registry.parse(declared(m={"type": "boolean", "window": "month"}))
    scheme, rng = registry["m"].scheme, np.random.default_rng(1)
    for month in range(1, 11):
        yes = 6000 if month > 5 else 3000
        tally = sample_tally(scheme, [yes, 9000 - yes], rng, metric="m", window=f"2026-{month:02}")
        fill(tally, scheme)
    asked = Reader(store), registry, tuple(registry), {}, "https://d.example", noon(30)
    (line,) = weekly_digest(*asked, weeks=26).changed
    assert "from=2026-06-01&to=2026-10-31" in line.link
    (line,) = weekly_digest(*asked, weeks=5).unchanged
    assert "from=2026-10-01" in line.link


@pytest.mark.parametrize("calendar", ["week", "month"])
def test_weeks_whose_days_were_dropped(store, registry, report, calendar):
    """They are compared where their sums are kept; where only those of months are, the metric is
    among those that were not compared, and its link opens."""
    for number in range(-14, 42):
        report(number, firefox=0.7 if number > 13 else 0.4)
    scheme = registry["browser"].scheme.fingerprint
    assert store.sums.drop_windows(("browser", scheme), noon(20), (calendar,))
    found = made(store, registry, noon(42), weeks=4)
    if calendar == "week":
        (line,) = found.changed
        assert "firefox up" in line.text
    else:
        (line,) = found.uncompared
        assert line.text == "not compared, because only sums of longer periods are kept"
        assert line.link == "https://d.example/metric/browser"
        assert "Not compared (1)" in as_text(found, "en")


def test_uneven_weeks_are_told(store, registry, report):
    """Where a week lacks a day that the other has, the line of the metric says so, as its page
    does; of even weeks it says nothing."""
    for number in range(13):
        report(number)
    for told in (True, False):
        found = made(store, registry)
        (line,) = found.uncompared if told else found.unchanged
        assert ("do not hold the same weekdays" in line.text) == told
        report(13)


def test_an_anomalous_day_needs_attention(store, registry, report):
    """A day with four times the usual reports is told, and its week is not compared; nor is the
    next one, which tells no more of it."""
    for number in range(21):
        report(
            number, firefox=0.9 if number == 10 else 0.4, devices=80_000 - 60_000 * (number != 10)
        )
    for now, told in ((MONDAY, True), (noon(20), False)):
        found = made(store, registry, now)
        (line,) = found.uncompared
        assert line.text.endswith("not compared, because one of the two looks dishonest")
        assert [each.text for each in found.attention] == [
            "2026-10-15 is anomalous: 80,000 reported, where 20,000 were usual before"
        ] * told


@pytest.mark.parametrize(("changed", "lacking"), [(True, None), (False, None), (True, 15)])
def test_what_changed_since_the_latest_annotation(store, registry, report, changed, lacking):
    """Each metric that can be compared since then is counted, and has a line if it changed: not
    where a weekday has no reports on one side."""
    for number in {*range(21)} - {lacking}:
        report(number, firefox=0.7 if changed and number > 9 else 0.4)
    noted = Annotation(1, date(2026, 10, 14), None, "Release 5", None, ())
    asked = Reader(store), registry, (registry["browser"],), {}, "https://d.example", noon(20)
    found = weekly_digest(*asked, annotations=(noted,))
    compared = lacking is None
    assert (found.moment, found.compared) == ("Release 5", compared)
    assert [each.metric for each in found.since] == ["browser"] * (changed and compared)
    assert weekly_digest(*asked).compared == 0


def test_what_changed_since_then_is_told_of_kept_months(store, fill):
    """Of an annotation from which on not all days are kept, October is compared with August."""
    text = declared(m={"type": "boolean"}) + 'keep = { day = "60 days", month = "forever" }\n'
    registry, rng = Registry.parse(text), np.random.default_rng(1)
    scheme = registry["m"].scheme
    for day, yes in (("2026-08-03", 900), ("2026-10-05", 5000)):
        fill(sample_tally(scheme, [yes, 9000 - yes], rng, metric="m", window=day), scheme)
    before = windows.end("2026-09-30")
    assert store.sums.drop_windows(("m", scheme.fingerprint), before, ("month",))
    noted = Annotation(1, date(2026, 9, 5), None, "Release 5", None, ())
    now = windows.end("2026-11-30")
    asked = Reader(store), registry, tuple(registry), {}, "https://d.example", now
    (line,) = weekly_digest(*asked, annotations=(noted,)).since
    assert "up 4" in line.text


HOSTILE = WeeklyDigest(
    date(2026, 10, 12),
    date(2026, 10, 18),
    changed=[
        DigestLine("a", "<script>alert(1)</script> & up", "https://d.example/metric/a?x=1&y=2")
    ],
)


@pytest.mark.parametrize("language", ["en", "zh-Hans"])
def test_the_html_is_safe_for_mail(language):
    """It has no script and loads nothing, and a value cannot add a tag."""
    html = as_html(HOSTILE, language)
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; up" in html
    assert not re.search(r"url\(|\bsrc=|\bon[a-z]+=", html)
    assert re.findall('href="([^"]*)"', html) == ["https://d.example/metric/a?x=1&amp;y=2"]
    assert ("有变化" in html) == (language == "zh-Hans")


def test_watch_sends_it_once_on_its_day(store, registry, report, hook):
    """On Monday the first run sends the digest; later runs of the day, and other days, do not. If
    the channel fails, it is sent at the next run."""
    text = f"""
schema = 1
dashboard = "https://d.example"
digest = "monday"
only = ["browser"]
[channels.ops]
webhook = "{hook.address}"
"""
    watcher = RenewedWatcher(Reader(store), registry, parse_rules(text, registry.metrics, {}))
    for number in range(14):
        report(number)
    state = WatchState()
    assert watcher.run(state, noon(12)).messages == ()
    hook.status = 500
    first = watcher.run(state, noon(13))
    assert [each["kind"] for each in first.messages] == ["digest"]
    assert first.messages[0]["facts"]["unchanged"] == ["browser"]
    assert "Not changed (1)" in first.messages[0]["body"]
    assert len(first.failed) == 1
    hook.status = 200
    assert watcher.run(state, noon(13) + 3600).messages == ()
    assert json.loads(hook.bodies[-1])["messages"] == json.loads(json.dumps([*first.messages]))
    assert watcher.run(state, noon(14)).messages == ()
    assert len(hook.bodies) == 2
    quiet = replace(watcher, rules=replace(watcher.rules, digest=None))
    assert quiet.run(WatchState(), noon(13)).messages == ()
