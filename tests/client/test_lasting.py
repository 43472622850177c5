"""For how long devices report: the forecast, checked against real devices, and lint's warning."""

import json
from datetime import UTC, date, datetime, timedelta

import pytest
from click.testing import CliRunner

from deniable import Registry
from deniable.protocol.lasting import groups, lasting
from deniable.tools.commands import lint, remarks
from deniable.tools.starting.commands import add

from .conftest import metrics_toml
from .test_turns import DAY, START, drawing

TODAY = date(2027, 1, 1)
YEAR = {"expires": "2027-12-31"}
MEMO = {"longitudinal": "memoize", "memo_epsilon": 2.0, "lifetime_epsilon": 6.0}


def registry(top="", **keys):
    return Registry.parse(metrics_toml(top, m={**YEAR, "lifetime_epsilon": 4.0, **keys}))


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({}, "a device falls silent on day 5 of 365 days"),
        ({"lifetime_epsilon": 400.0}, "a device reports on 365 of 365 days"),
        ({"one_in": 92}, "a device reports on 4 of 365 days"),
        ({"one_in": 10}, "a device falls silent on day 41 of 365 days"),
        ({"sample_rate": 0.05}, "a device falls silent on day 81 of 365 days"),
        ({"sample_rate": 0.01}, "a device reports on 4 of 365 days"),
        ({"window": "week"}, "a device falls silent in week 5 of 53 weeks"),
        ({"window": "month", "one_in": 3}, "a device reports in 4 of 12 months"),
        (MEMO, "a device reports on 365 of 365 days"),
        ({"expires": "2027-01-01"}, "a device reports on 1 of 1 day"),
    ],
)
def test_it_is_said_in_one_line(keys, told):
    """For each way to take part: how many reports a device sends, or when it falls silent."""
    assert lasting(registry(**keys), TODAY)["m"].text == told


@pytest.mark.parametrize("keys", [{}, {"one_in": 7}, {"lifetime_epsilon": 20.0, "one_in": 2}])
def test_real_devices_do_as_it_says(keys, live):
    """A device of the first group, which is used daily over 60 days, sends its last report before
    the day that is told, and so does one of the last group."""
    declared = registry(expires="2027-03-01", **keys)
    told = lasting(declared, TODAY)["m"]
    counts = []
    for group in (0, (declared["m"].one_in or 1) - 1):
        life = live(declared, drawing(group))
        for day in range(60):
            life.use(START + day * DAY)
        life.wait(START + 61 * DAY)
        days = [(date.fromisoformat(each) - TODAY).days + 1 for each in life.reported()]
        counts.append(len(days))
        assert told.silent is None or max(days) < told.silent
    assert min(counts) - 1 <= told.reports <= max(counts) + 1


def test_the_registrys_budget_ends_all():
    """With a cap, metrics fall silent together on the day that their sum passes it."""
    text = metrics_toml(
        "lifetime_epsilon = 10.0",
        a={**YEAR, "lifetime_epsilon": 1000.0},
        b={**YEAR, "lifetime_epsilon": 3.0},
        short={"expires": "2026-12-01"},
    )
    found = lasting(Registry.parse(text), TODAY)
    assert found.keys() == {"a", "b"}
    # Both spend 2 a day for three days, and then a spends 1 for four more.
    assert (found["a"].silent, found["a"].capped) == (8, True)
    assert (found["b"].silent, found["b"].capped) == (4, False)


@pytest.mark.parametrize(("window", "least"), [("day", 92), ("week", 14), ("month", 3)])
def test_so_many_groups_make_it_last(window, least):
    """The proposed number of groups lasts until the metric expires, and one less would not."""
    declared = registry(window=window)
    assert groups(lasting(declared, TODAY)["m"], 1.0) == least
    assert lasting(registry(window=window, one_in=least), TODAY)["m"].silent is None
    assert least == 2 or lasting(registry(window=window, one_in=least - 1), TODAY)["m"].silent


def test_no_device_has_the_same_weekday_for_ever():
    """A multiple of 7 days is not proposed."""
    declared = registry(expires=str(TODAY + timedelta(363)))
    assert groups(lasting(declared, TODAY)["m"], 1.0) == 92  # not 91


def run_lint(tmp_path, text):
    path = tmp_path / "metrics.toml"
    path.write_text(text, encoding="utf-8")
    done = CliRunner().invoke(lint, [str(path), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("lifetime", "epsilons", "told"),
    [
        (3.9, {"epsilon": 1.3}, "2 reports: write lifetime_epsilon = 3.91"),
        (0.036, {"epsilon": 0.012}, None),
        (
            3.9,
            {**MEMO, "epsilon": 1.0, "memo_epsilon": 1.3},
            "2 memos: write lifetime_epsilon = 3.91",
        ),
        (3.91, {"epsilon": 1.3}, None),
        (2.6, {"epsilon": 1.3}, None),
    ],
)
def test_lint_warns_of_a_lifetime_that_is_short_of_a_report(lifetime, epsilons, told):
    """3 x 1.3 is more than 3.9 in floats; what lint advises has that room. What a report of 0.012
    is charged is a little less, and fits three times into 0.036."""

    def warned(lifetime):
        keys = {"sample_rate": 0.0001, **epsilons, "lifetime_epsilon": lifetime}
        found = [each.message for each in remarks(registry(**keys))]
        return [each for each in found if "binary floats" in each]

    messages = warned(lifetime)
    assert bool(messages) == bool(told)
    for message in messages:
        assert message.endswith(f"so there is room for {told}")
        better = float(message.rpartition(" ")[2])
        assert better // epsilons.get("memo_epsilon", epsilons["epsilon"]) == 3
        assert not warned(better)


def test_lint_warns_of_silence_with_lines_to_paste(tmp_path):
    """A metric whose devices fall silent gets a warning, its proposals with their forecasts; each
    pasted proposal ends the warning."""
    expires = datetime.now(UTC).date() + timedelta(364)
    keys = {"expires": str(expires), "lifetime_epsilon": 4.0, "devices": 50_000}
    text = metrics_toml(m=keys)
    found = run_lint(tmp_path, text)
    (warning,) = [
        each["message"] for each in found["problems"] if "falls silent" in each["message"]
    ]
    head, *options = warning.split("\n")
    assert head.startswith("a device falls silent on day 5 of 365 days until it expires")
    assert [each["severity"] for each in found["problems"] if each["message"] == warning] == [
        "warning"
    ]
    assert found["metrics"][0]["lasting"]["silent"] == 5
    assert len(options) == 2
    for option in options:
        assert all(f"in a {span}" in option for span in ("day", "week", "month"))
        again = run_lint(tmp_path, text + option.strip())
        assert not [each for each in again["problems"] if "falls silent" in each["message"]]


def test_add_writes_turns_for_a_number(tmp_path):
    """`add` writes turns where there are no memos, at once or not, and nothing falls silent."""
    path = tmp_path / "metrics.toml"
    path.write_text(metrics_toml(m={"devices": 1_000_000, **MEMO}), encoding="utf-8")
    for name, more in (("one", []), ("two", ["--at-once"])):
        arguments = [name, "--registry", str(path), "--yes", "--low", "0", "--high", "9"]
        done = CliRunner().invoke(add, [*arguments, *more])
        assert done.exit_code == 0, done.output
        assert "A device reports on 4 of 365 days" in done.output
    declared = Registry.load(path)
    assert [declared[name].one_in for name in ("one", "two")] == [92, 92]
    found = lasting(declared, datetime.now(UTC).date())
    assert [each.silent for each in found.values()] == [None, None, None]
