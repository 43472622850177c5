"""docs/watching.md has every key, default and limit of the code, and its examples work."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from deniable_estimator.judging.findings import KINDS
from deniable_estimator.judging.rules import PERIODS, MetricRules
from deniable_estimator.watching import rules_file as code
from deniable_estimator.watching.commands import watch
from deniable_estimator.watching.rules_file import parse_rules

PAGE = (Path(__file__).parents[3] / "docs" / "watching.md").read_text(encoding="utf-8")
ENVIRON = {"CHAT_KEY": "k", "MAIL_USER": "u", "MAIL_PASSWORD": "p"}


def table(heading: str) -> dict[str, list[str]]:
    """The rows of the table whose first heading is this: first cell -> the others."""
    found = re.search(rf"^\| {heading} \|.*\n\|[ -|]*\n((?:\|.*\n)+)", PAGE, re.M)
    assert found is not None, heading
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in found[1].splitlines()
    ]
    return {first.strip("` "): others for first, *others in rows}


def example(language: str) -> str:
    """The fenced block in that language."""
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)
    return str(text)


def test_every_key_has_a_row() -> None:
    """Each key that the code reads has a row with meaning, default and limits; no other has."""
    assert set(table("key at the top")) == set(code.TOP_KEYS)
    assert set(table("key")) == set(code.DEFAULT_KEYS)
    assert set(table("channel's key")) == set(code.CHANNEL_KEYS)
    for cells in [*table("key at the top").values(), *table("key").values()]:
        assert len(cells) == 3
        assert all(cells)


def test_every_default_is_that_of_the_code() -> None:
    """The defaults are those of rules that say nothing."""
    for field in dataclasses.fields(MetricRules):
        assert table("key")[field.name][1] == f"`{field.default}`"
    least = parse_rules('schema = 1\ndashboard = "https://d.example"\n', (), {})
    top = table("key at the top")
    assert top["language"][1] == f'`"{least.language}"`'
    assert top["wait_days"][1] == f"`{least.wait_days}`"
    assert least.digest is None
    alarms = least.false_alarms
    assert top["false_alarms"][1] == f'`"{alarms.number:g} a {alarms.per}"`'


@pytest.mark.parametrize("key", code.DEFAULT_KEYS)
def test_every_limit_is_that_of_the_code(key: str) -> None:
    """Both ends of a range are accepted, and what lies beyond is not."""
    low, high = map(float, re.findall(r"[0-9.]+", table("key")[key][2]))
    check = code.DEFAULT_KEYS[key]
    whole = key.endswith("_days")
    for number, fine in ((low, True), (high, True), (low - 1, False), (high + 1, False)):
        assert (check(int(number) if whole else number) is None) == fine, number


def test_every_limit_at_the_top_is_that_of_the_code() -> None:
    """The page names each number and each choice."""
    top = table("key at the top")
    assert f"`{code.SCHEMA}`" == top["schema"][2]
    assert top["wait_days"][2] == f"0 to {code.MOST_WAIT}"
    assert f"at most {code.MOST_ALARMS:g}" in top["false_alarms"][2]
    assert all(each in top["false_alarms"][2] for each in PERIODS)
    assert all(f"`{each}`" in top["language"][2] for each in code.LANGUAGE_TAGS)
    assert top["digest"][2] == f"`{code.WEEKDAYS[0]}` to `{code.WEEKDAYS[-1]}`"
    assert str(code.MOST_CHANNELS) in top["channels"][2]


def test_the_example_is_accepted_and_has_every_key() -> None:
    """The rules of the page are read without a mistake, and set each key."""
    text = example("toml")
    rules = parse_rules(text, ["browser"], ENVIRON)
    assert len(rules.channels) == len(code.CHANNEL_KEYS)
    for key in (*code.TOP_KEYS, *code.DEFAULT_KEYS, *code.CHANNEL_KEYS):
        assert re.search(rf"^(\[{key}\b|{key} = )", text, re.M), key


def test_the_example_passes_the_check(registry_file: Path, tmp_path: Path) -> None:
    """`--check` takes it as well, so Apprise knows its addresses."""
    path = tmp_path / "rules.toml"
    path.write_text(example("toml"), encoding="utf-8")
    arguments = [str(path), "--check", "--registry", str(registry_file)]
    done = CliRunner().invoke(watch, arguments, env=ENVIRON)
    assert done.exit_code == 0, done.output


def test_the_webhook_is_described() -> None:
    """The example of a delivery has the form that is sent, and each kind has its row."""
    document = json.loads(example("json"))
    (message,) = document["messages"]
    assert list(message) == [
        *("id", "metric", "kind", "text", "since", "link", "facts", "body"),
    ]
    rows = table("`kind`")
    assert set(rows) == {*KINDS, "digest"}
    assert set(re.findall("`([a-z]+)`", rows["change"][0])) == set(message["facts"])


def test_the_line_for_cron_is_a_call_that_works(
    registry_file: Path, store_url: str, tmp_path: Path
) -> None:
    """The command of the crontab runs, with files of this test in place of its own."""
    line = example("crontab").splitlines()[-1]
    *minutes, program, command, _, once, registry, _, store, _, state, _ = shlex.split(line)
    assert minutes == ["15", "*", "*", "*", "*"]
    assert (program.rpartition("/")[2], command) == ("deniable", "watch")
    path = tmp_path / "rules.toml"
    path.write_text(example("toml"), encoding="utf-8")
    given = [str(path), once, registry, str(registry_file), store, store_url]
    done = CliRunner().invoke(watch, [*given, state, str(tmp_path / "state")], env=ENVIRON)
    assert done.exit_code in (0, 4, 5), done.output


def test_the_unit_is_valid(tmp_path: Path) -> None:
    """systemd accepts the unit, and its command has options that exist."""
    text = example("ini")
    (command,) = re.findall("^ExecStart=(.*)$", text, re.M)
    known = {each for option in watch.params for each in option.opts}
    assert set(re.findall(r"--[a-z-]+", command)) <= known
    if shutil.which("systemd-analyze") is None:
        return
    program = tmp_path / "deniable"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "deniable-watch.service"
    unit.write_text(text.replace("/opt/deniable/bin/deniable", str(program)))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False
    )
    assert "deniable-watch.service" not in done.stderr, done.stderr
