"""rules.toml, its levels, and the file of what was told."""

import contextlib
import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable import Registry
from deniable.protocol import windows
from deniable_estimator.files import CheckedFileError
from deniable_estimator.judging.findings import standing
from deniable_estimator.judging.newest_window import (
    DAYS,
    PERIODS,
    SPANS,
    FalseAlarms,
    MetricRules,
    judgement_level,
)
from deniable_estimator.watching.channels import NoticeChannel
from deniable_estimator.watching.rules_file import parse_rules
from deniable_estimator.watching.seen import ToldFinding, WatchState, WatchStateError

METRICS = ("browser", "dark_mode")
HEAD = 'schema = 1\ndashboard = "https://d.acme.example/"\n'


def test_defaults():
    """Two lines are enough: all metrics are watched, one false alarm a month is allowed."""
    rules = parse_rules(HEAD, METRICS, {})
    assert rules.dashboard == "https://d.acme.example"
    assert rules.false_alarms == FalseAlarms(1.0, "month")
    assert (rules.wait_days, rules.language, rules.digest) == (1, "en", None)
    assert rules.of("browser") == MetricRules()
    assert all(map(rules.watches, METRICS))


def test_a_metric_has_its_own_rules():
    """[metrics.NAME] overrides [defaults], which overrides what is built in."""
    text = HEAD + (
        'only = ["browser"]\nfalse_alarms = 0.5\n[defaults]\npoints = 2\nshare = 0.1\n'
        "[metrics.browser]\npoints = 3.5\n"
    )
    rules = parse_rules(text, METRICS, {})
    assert rules.of("browser") == MetricRules(points=3.5, share=0.1)
    assert rules.of("dark_mode") == MetricRules(points=2, share=0.1)
    assert not rules.watches("dark_mode")
    assert rules.false_alarms == FalseAlarms(0.5, "run")


def test_secrets_come_from_the_environment():
    """${NAME} is filled in, and neither the rules nor an error show what it was."""
    text = HEAD + '[channels.ops]\nwebhook = "https://chat.example/${HOOK}"\n'
    rules = parse_rules(text, METRICS, {"HOOK": "s3cret"})
    assert rules.channels == (NoticeChannel("ops", "webhook", "https://chat.example/s3cret"),)
    assert "s3cret" not in repr(rules)
    with pytest.raises(CheckedFileError, match="environment variable HOOK, which is not set"):
        parse_rules(text, METRICS, {})
    wrong = HEAD + '[channels.ops]\nwebhook = "${HOOK}"\n'
    with pytest.raises(CheckedFileError) as error:
        parse_rules(wrong, METRICS, {"HOOK": "s3cret"})
    assert "s3cret" not in str(error.value)


def test_an_address_that_is_none_is_a_mistake_as_any_other():
    """Also where the library that takes addresses apart refuses it."""
    with pytest.raises(CheckedFileError, match="dashboard: must be the address of the dashboard"):
        parse_rules(HEAD.replace("d.acme.example", "["), METRICS, {})


@given(st.text(max_size=60), st.sampled_from(["", HEAD, HEAD + "[defaults]\n"]))
def test_any_text_is_read_or_refused(text, head):
    """No text makes any other error than a list of mistakes."""
    with contextlib.suppress(CheckedFileError):
        parse_rules(head + text, METRICS, {})


@pytest.mark.parametrize("kind", windows.KINDS)
@pytest.mark.parametrize("per", PERIODS)
def test_levels_add_up_to_what_is_stated(kind, per):
    """Over all metrics, looks and spans the levels sum to the number that is allowed, or less."""
    level = judgement_level(FalseAlarms(0.5, per), 200, kind)
    looks = 1 if per == "run" else max(1, PERIODS[per] / DAYS[kind])
    total = 200 * looks * (len(SPANS[kind]) * level.span + level.anomaly)
    assert total == pytest.approx(0.5)


def test_no_level_is_above_one_in_twenty():
    """A large allowance for few metrics does not make a test useless."""
    level = judgement_level(FalseAlarms(1000.0, "run"), 1, "day")
    assert level.span == level.anomaly == 0.05


def test_a_state_survives_its_file(tmp_path):
    """What is saved is loaded again; a file that is not there is an empty state."""
    path = tmp_path / "state"
    assert WatchState.load(path) == WatchState()
    told = {"m/few/": ToldFinding("2026-11-02", 1.0, 2.0)}
    state = WatchState({"m": "2026-11-02"}, told, {"n": 3.0})
    state.save(path)
    assert WatchState.load(path) == state
    assert os.listdir(tmp_path) == ["state"]  # noqa: PTH208
    with pytest.raises(WatchStateError, match=r"cannot be written \(No such file or directory\)"):
        state.save(tmp_path / "absent" / "state")


def test_what_a_later_version_notes_of_a_finding_is_passed_over(tmp_path):
    """A state with one key more is read, so that an update can be taken back."""
    path = tmp_path / "state"
    state = WatchState({}, {"m/few/": ToldFinding("2026-11-02", 1.0, 2.0)})
    state.save(path)
    path.write_text(path.read_text().replace('"since":', '"later": 1, "since":'))
    assert WatchState.load(path) == state


TOLD = {"since": "x", "told": 0, "seen": 0, "ended": None, "waiting": [], "message": None}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": 2, "judged": {}, "told": {}}',
        '{"schema": 1, "judged": {"m": "someday"}, "told": {}}',
        '{"schema": 1, "judged": {}, "told": {"m/few/": {}}}',
        *(
            json.dumps({"schema": 1, "judged": {}, "told": {"m/few/": {**TOLD, **wrong}}})
            for wrong in (
                *({"since": 1}, {"told": "0"}, {"seen": None}, {"ended": "1"}, {"waiting": "a"}),
                *({"waiting": ["ops"]}, {"waiting": ["ops"], "message": []}),
            )
        ),
        '{"schema": 1, "judged": {"m": "2026-11-02"}, "told": {',
        "[" * 100_000,
        "\xff",
    ],
)
def test_a_damaged_file_is_refused(tmp_path, text):
    """The error says what to do, and the file is left as it is."""
    path = tmp_path / "state"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(WatchStateError, match=r"restore it from a backup, or remove it"):
        WatchState.load(path)
    assert path.read_bytes() == text.encode("latin-1")


def test_what_ended_long_ago_is_forgotten():
    """After 90 days a finding is dropped, unless a channel still waits for it."""
    day = 86_400.0
    old = ToldFinding("2026-01-01", 0.0, 0.0, 3 * day)
    waiting = ToldFinding("2026-01-01", 0.0, 0.0, 0.0, ["ops"], {})
    active = ToldFinding("2026-01-01", 0.0, 0.0)
    state = WatchState(told={"a/few/": old, "b/few/": waiting, "c/few/": active})
    state.forget(93 * day)
    assert len(state.told) == 3
    state.forget(93 * day + 1)
    assert set(state.told) == {"b/few/", "c/few/"}


@pytest.mark.parametrize(
    ("day", "second", "told"),
    [
        ("2026-11-05", -1, {}),
        ("2026-11-05", 0, {"stale": 3}),
        ("2026-11-16", -1, {"stale": 13}),
        ("2026-11-16", 0, {"stale": 14, "expires": 14}),
        ("2026-11-30", 86_399, {"stale": 28, "expires": 0}),
        ("2026-12-01", 0, {"expires": -1}),
    ],
)
def test_silence_and_the_end_are_told_to_the_second(tmp_path, day, second, told):
    """A day without reports is silent once it has ended and the stated days have passed; what has
    expired is no longer silent."""
    path = tmp_path / "metrics.toml"
    path.write_text(
        'schema = 1\napp = "notes"\n[metrics.plan]\ntype = "boolean"\ndescription = "?"\n'
        'owner = "a@b.example"\nexpires = 2026-11-30\nepsilon = 1.0\nlifetime_epsilon = 8.0\n'
    )
    (metric,) = Registry.load(path)
    rules = MetricRules(stale_days=2, expires_days=14)
    found = standing(metric, "2026-11-01", rules, windows.start(day) + second)
    assert {each.kind: each.facts["days"] for each in found} == told
