"""One run after the other: what is told, once, and how it ends."""

import json
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from deniable import Registry
from deniable_estimator.analyses import sample_tally
from deniable_estimator.asking.reader import Reader
from deniable_estimator.files import CheckedFileError
from deniable_estimator.judging.newest_window import MetricRules, _large
from deniable_estimator.watching.rules_file import parse_rules
from deniable_estimator.watching.seen import WatchState

from .conftest import RenewedWatcher, day, noon

RULES = """
schema = 1
dashboard = "https://d.acme.example"
only = ["browser"]
wait_days = 0
[defaults]
share = 0.2
"""


def rules(registry, more=""):
    return parse_rules(RULES + more, registry.metrics, {})


@pytest.fixture
def watcher(store, registry):
    """It watches the browser metric, and judges a day as soon as it has ended."""
    return RenewedWatcher(Reader(store), registry, rules(registry))


def told(result):
    """Kind and series of each message."""
    return [(each["kind"], each["facts"].get("series", "")) for each in result.messages]


@pytest.fixture
def settled(watcher, report):
    """The state after a run on five weeks of honest days, of which nothing is told."""
    state = WatchState()
    for number in range(35):
        report(number)
    assert told(watcher.run(state, noon(34))) == []
    return state


def test_a_change_is_told_once(watcher, settled, report):
    """A rise that stays is told in the first run that sees it, with its interval, its beginning and
    a link, and no more; when the days before have it too, it has ended."""
    report(35, firefox=0.6)
    result = watcher.run(settled, noon(35))
    assert ("change", "firefox") in told(result)
    message = next(each for each in result.messages if each["facts"]["series"] == "firefox")
    facts = message["facts"]
    assert message["text"].startswith("firefox up ")
    assert "95% CI" in message["text"]
    assert message["since"] == facts["window"] == day(35)
    assert facts["low"] < facts["difference"] < facts["high"]
    assert 0.1 < facts["difference"] < 0.3
    assert message["link"] == (f"https://d.acme.example/metric/browser?from={day(35)}&to={day(35)}")
    active = [key for key in settled.told if settled.is_active(key)]
    assert "browser/change/firefox/up" in active
    for number in range(36, 80):
        report(number, firefox=0.6)
        again = watcher.run(settled, noon(number))
        assert ("change", "firefox") not in told(again), number
        assert ("change", "firefox/down") not in told(again)
    assert not settled.is_active("browser/change/firefox/up")


def test_one_odd_day_has_no_echo(watcher, settled, report):
    """A day that stands out is told on that day; the weeks that are compared with it tell nothing,
    neither a change back nor the same change."""
    found = {}
    for number in range(35, 75):
        report(number, firefox=0.7 if number == 35 else 0.4)
        found[number] = told(watcher.run(settled, noon(number)))
    assert ("change", "firefox") in found.pop(35)
    del found[36], found[41]  # two and seven days together still hold the odd one
    assert not any(found.values()), found


def test_a_window_with_few_of_its_reports_waits(watcher, settled, report):
    """With less than half of the usual reports a window is not judged yet; later it is."""
    report(35, firefox=0.9, devices=9000)
    assert told(watcher.run(settled, noon(35))) == []
    assert settled.judged == {"browser": day(34)}
    report(35, firefox=0.9, devices=9000)
    assert ("change", "firefox") in told(watcher.run(settled, noon(35) + 3600))


def test_a_small_change_is_not_told(store, registry, report):
    """A change beyond noise but smaller than `points` is silent."""
    for number in range(35):
        report(number)
    report(35, firefox=0.6)
    large = RenewedWatcher(Reader(store), registry, rules(registry, "points = 40\n"))
    assert told(large.run(WatchState(), noon(35))) == []
    small = RenewedWatcher(Reader(store), registry, rules(registry, "points = 15\n"))
    assert told(small.run(WatchState(), noon(35))) == [("change", "firefox")]


def test_silence_and_expiry(store, registry, report):
    """A metric that goes stale or expires is told once; with new reports the silence has ended."""
    watcher = RenewedWatcher(Reader(store), registry, rules(registry))
    state = WatchState()
    report(0)
    assert told(watcher.run(state, noon(0) + 3 * 86_400)) == []
    assert told(watcher.run(state, noon(0) + 4 * 86_400)) == [("stale", "")]
    assert told(watcher.run(state, noon(0) + 5 * 86_400)) == []
    report(5)
    assert told(watcher.run(state, noon(5))) == []
    assert not state.is_active("browser/stale/")
    assert told(watcher.run(state, noon(9))) == [("stale", "")]
    (message,) = watcher.run(WatchState(), noon(9)).messages
    assert message["text"] == f"no reports since {day(5)}"
    late = 1_811_721_600.0  # 2027-05-31, thirty days before it expires
    assert told(watcher.run(state, late - 2 * 86_400)) == []
    assert ("expires", "") in told(watcher.run(state, late))
    assert told(watcher.run(state, late + 86_400)) == []
    assert told(watcher.run(state, late + 40 * 86_400)) == []


def test_a_metric_that_never_had_a_report_is_told_once(store, registry, report):
    """It is silent some windows after it was first watched, also where runs are far apart."""
    watcher = RenewedWatcher(Reader(store), registry, rules(registry))
    state = WatchState()
    assert told(watcher.run(state, noon(0))) == []
    assert told(watcher.run(state, noon(5) - 1)) == []
    (message,) = watcher.run(state, noon(5)).messages
    assert (message["kind"], message["since"]) == ("stale", day(1))
    assert message["text"] == f"no reports since {day(1)}, when it was first watched"
    assert told(watcher.run(state, noon(6))) == []
    report(6)
    assert told(watcher.run(state, noon(6))) == []
    assert (state.awaited, state.is_active("browser/stale/")) == ({}, False)


def test_too_few_reports(store, registry, report):
    """A window that cannot show the stated share is told, with what that takes, until one can."""
    watcher = RenewedWatcher(Reader(store), registry, rules(registry))
    state = WatchState()
    report(0, devices=30)
    (message,) = watcher.run(state, noon(0)).messages
    assert message["kind"] == "few"
    assert message["facts"]["n"] == 30
    assert message["facts"]["needed"] > 30
    report(1, devices=40)
    assert told(watcher.run(state, noon(1))) == []
    report(2, devices=message["facts"]["needed"] + 50)
    watcher.run(state, noon(2))
    assert not state.is_active("browser/few/0.2")


def test_a_channel_that_fails_is_tried_again(store, registry, report, hook):
    """A failure is told without the address; others go on, and the next run sends what waits."""
    more = (
        f'[channels.good]\nwebhook = "{hook.address}"\n'
        '[channels.bad]\nwebhook = "http://127.0.0.1:9/secret-path"\n'
    )
    watcher = RenewedWatcher(Reader(store), registry, rules(registry, more))
    state = WatchState()
    report(0, devices=30)
    saved = []
    result = watcher.run(state, noon(0), save=lambda: saved.append(repr(state)))
    assert len(saved) == 2
    assert "waiting=['good', 'bad']" in saved[0]
    assert "secret" not in "".join(saved)
    assert len(result.failed) == 1
    assert "'bad' failed: it cannot be reached" in result.failed[0]
    assert "secret" not in result.failed[0]
    (body,) = map(json.loads, hook.bodies)
    assert body["schema"] == 1
    assert [each["id"] for each in body["messages"]] == [f"browser/few/0.2/{day(0)}"]
    again = replace(watcher.rules.channels[1], address=hook.address)
    healed = replace(watcher, rules=replace(watcher.rules, channels=(again,)))
    after = healed.run(state, noon(0) + 3600)
    assert (after.messages, after.failed) == ((), ())
    assert [json.loads(each)["messages"] for each in hook.bodies] == [body["messages"]] * 2
    assert all(not each.waiting and each.message is None for each in state.told.values())


def test_a_redirect_or_an_error_is_a_failure(store, registry, report, hook):
    """A response that is no success keeps the message waiting, and its status is told."""
    watcher = RenewedWatcher(
        Reader(store), registry, rules(registry, f'[channels.ops]\nwebhook = "{hook.address}"\n')
    )
    state = WatchState()
    report(0, devices=30)
    for hook.status in (302, 404, 503):
        result = watcher.run(state, noon(0))
        assert str(hook.status) in result.failed[0]
        assert "secret" not in result.failed[0]
    hook.status = 204
    assert watcher.run(state, noon(0)).failed == ()
    assert len(hook.bodies) == 4
    assert watcher.run(state, noon(0)).failed == ()
    assert len(hook.bodies) == 4


def test_a_metric_that_is_watched_no_more(store, registry, report):
    """What was told of it has ended, and is told again if it is watched again; what was never sent
    waits for its channel beside it."""
    unreachable = '[channels.bad]\nwebhook = "http://127.0.0.1:9/"\n'
    watcher = RenewedWatcher(Reader(store), registry, rules(registry, unreachable))
    other = replace(watcher, rules=replace(watcher.rules, only=("dark_mode",)))
    state = WatchState()
    report(0, devices=30)
    assert told(watcher.run(state, noon(0))) == [("few", "")]
    other.run(state, noon(0))
    assert state.judged == {}
    assert told(watcher.run(state, noon(0))) == [("few", "")]
    assert state.told.keys() == {"browser/few/0.2", f"browser/few/0.2/{day(0)}"}
    assert all(each.waiting == ["bad"] for each in state.told.values())


@pytest.mark.parametrize("outcome", [True, False, OSError("secret")])
def test_apprise_is_given_what_is_told(store, registry, report, monkeypatch, outcome):
    """An address that it does not know is a mistake, what it does not take is tried again, and
    whatever it raises is not told, as the address may be in it."""
    sent = []

    class Apprise:
        def add(self, address):
            return address == "json://secret"

        def notify(self, **given):
            sent.append(given)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

    library = SimpleNamespace(Apprise=Apprise, NotifyFormat=SimpleNamespace(TEXT="text"))
    monkeypatch.setitem(sys.modules, "apprise", library)
    report(0, devices=30)
    more = '[channels.ops]\napprise = "json://secret"\n'
    watcher = RenewedWatcher(Reader(store), registry, rules(registry, more))
    with pytest.raises(CheckedFileError, match=r"channels.ops.apprise: is no address") as error:
        rules(registry, more.replace("json", "unknown"))
    assert "secret" not in str(error.value)
    result = watcher.run(WatchState(), noon(0))
    told = "channel 'ops' failed: Apprise could not send it; it is tried again at the next run"
    assert result.failed == (() if outcome is True else (told,))
    body = result.messages[0]["body"]
    assert sent == [{"body": body, "title": "deniable: 1 new", "body_format": "text"}]


@pytest.mark.parametrize(
    ("of_all", "size", "told"),
    [
        (True, -0.02, True),
        (True, 0.0199, False),
        (False, -3.0, True),
        (False, 2.99, False),
        (False, np.inf, False),
    ],
)
def test_what_is_large_is_told(of_all, size, told):
    """Of a share from so many points on, of a number from so many percent of what it was."""
    unit = SimpleNamespace(of_all=of_all)
    after = SimpleNamespace(unit=unit)
    found: Any = SimpleNamespace(difference=np.array([size]), old=np.array([-30.0]), after=after)
    assert _large(found, 0, MetricRules(points=2.0, percent=10.0)) is told


def test_a_metric_with_memos_tells_its_changes(store, registry_file, fill):
    """A share that doubles in a day is told as a change, once, and not as an anomaly."""
    text = registry_file.read_text()
    registry = Registry.parse(text.replace("= 2.0\n", '= 1.0\nlongitudinal = "memoize"\n'))
    scheme, rng = registry["browser"].scheme, np.random.default_rng(9)
    for number in range(36):
        counts = np.array([11_000, *[3_000] * 3] if number == 35 else [5_000] * 4)
        fill(sample_tally(scheme, counts, rng, metric="browser", window=day(number)), scheme)
    watcher, state = RenewedWatcher(Reader(store), registry, rules(registry)), WatchState()
    assert told(watcher.run(state, noon(34))) == []
    found = told(watcher.run(state, noon(35)))
    assert {kind for kind, _ in found} == {"change"}
    assert told(watcher.run(state, noon(35))) == []


def test_more_reports_than_usual_are_told_once(watcher, settled, report):
    """Of a day with four times as many, as the overview and `anomalies` tell it, once: also where
    no run judged that day itself. Later days are told again."""
    report(35, devices=80_000)
    report(36)
    (message,) = watcher.run(settled, noon(36)).messages
    assert (message["kind"], message["since"]) == ("anomaly", day(35))
    assert message["text"] == (
        f"{day(35)} is anomalous: 80,000 reported, where 20,000 were usual before"
    )
    assert message["link"].endswith(f"/metric/browser?from={day(35)}&to={day(35)}")
    for number in range(37, 45):
        report(number)
        assert told(watcher.run(settled, noon(number))) == []
    report(45, devices=800_000)
    report(46, devices=900_000)
    (message,) = watcher.run(settled, noon(46)).messages
    assert message["text"].startswith(f"2 windows are anomalous, {day(46)} last: 900,000 reported")
    assert message["link"].endswith(f"?from={day(45)}&to={day(46)}")


def test_what_no_day_shows_is_told_of_all_together(store, registry, fill):
    """Of four weeks with a share below zero by one standard error each day, once. Seed 4."""
    rng, scheme = np.random.default_rng(4), registry["browser"].scheme
    watcher, state = RenewedWatcher(Reader(store), registry, rules(registry)), WatchState()
    for number in range(30):
        tally = sample_tally(scheme, [20_000, 0, 0, 0], rng, metric="browser", window=day(number))
        tally.rows[0].cells[:] += [45, 0, 0, -45]
        fill(tally, scheme)
        if number == 27:
            (message,) = watcher.run(state, noon(27)).messages
    assert message["text"].startswith("28 windows together are anomalous: the lowest share, ")
    assert message["link"].endswith(f"?from={day(0)}&to={day(27)}")
    assert told(watcher.run(state, noon(29))) == []


def test_weekends_are_no_change(watcher, report):
    """A share that is different on each weekend is compared with other weekends."""
    state = WatchState()
    found = []
    for number in range(49):
        report(number, firefox=0.6 if number % 7 >= 5 else 0.4)
        if number >= 14:
            found += told(watcher.run(state, noon(number)))
    assert found == []


def test_late_reports_tell_nothing_twice(watcher, settled, report):
    """A window that grows after it was judged is not judged again."""
    for hours in range(1, 7):
        report(34, firefox=0.9, devices=2000)
        assert told(watcher.run(settled, noon(34) + hours * 3600)) == []


@pytest.mark.campaign
def test_a_slow_drift_is_told_once(watcher, report):
    """A share that rises a little each day is beyond noise now and then, with weeks between."""
    state = WatchState()
    found = []
    for number in range(80):
        report(number, firefox=0.3 + 0.0025 * number, devices=2000)
        if number >= 28:
            found += told(watcher.run(state, noon(number)))
    assert found.count(("change", "firefox")) == 1
