"""`deniable lint --notice`: the privacy notice and the question for consent."""

from __future__ import annotations

import re
from typing import Any

import pytest
from click.testing import CliRunner
from tests.registries import declared

from deniable import Registry
from deniable.tools.commands import lint

PEOPLE = 'recipient = "Acme [Ltd] | Springfield"\ncontact = "privacy@acme.example"\n'
METRICS: dict[str, dict[str, Any]] = {
    "plain": {"type": "boolean", "description": "Is *it* on?", "epsilon": 1.0,
              "lifetime_epsilon": 3.5},
    "kept": {"type": "category", "values": ["a", "b", "c"], "longitudinal": "memoize",
             "description": "Which one?", "memo_epsilon": 4.0, "lifetime_epsilon": 8.0,
             "sample_rate": 0.25, "window": "week"},
    "turns": {"type": "boolean", "description": "Whose turn?", "one_in": 8},
    "seen": {"type": "boolean", "description": "Seen?", "platform": "web", "answer": "at_once",
             "aggregate": "first", "segments": ["system"]},
}  # fmt: skip


def run(tmp_path, text, *words):
    path = tmp_path / "metrics.toml"
    path.write_text(text)
    return CliRunner().invoke(lint, [str(path), "--notice", *words])


@pytest.mark.parametrize("language", ["en", "zh-Hans"])
def test_the_notice_follows_from_the_registry(tmp_path, language):
    """Each metric with its question, its figures as the mechanism in force has them, who receives
    reports, where to ask, how to switch off, what is told in clear, and no brace left."""
    text = PEOPLE + declared({"system": ["linux", "other"]}, **METRICS)
    done = run(tmp_path, text, "--lang", language)
    assert done.exit_code == 0, done.stderr
    page = done.stdout
    assert "{" not in page.replace("\\{", "")
    for needed in (r"Acme \[Ltd\] \| Springfield", "privacy@acme.example", r"Is \*it\* on?",
                   "`deniable sent --switch-off`", "system (linux, other)", "25%"):  # fmt: skip
        assert needed in page
    rows = {each.split("(`")[1].split("`")[0]: each for each in page.splitlines() if "(`" in each}
    assert set(rows) == set(METRICS)
    registry = Registry.parse(text)
    shown = [float(each) for each in re.findall(r"(\d+\.\d+)[ \uff08]", rows["plain"])]
    odds = registry["plain"].scheme.mechanism.odds
    for guess, times in zip(shown, (1, 3), strict=True):
        whole = odds**times
        assert 100 * whole / (whole + 1) <= guess < 100 * whole / (whole + 1) + 0.1
    assert "epsilon 4" in rows["kept"]
    assert "12.5%" in rows["turns"]
    assert page.count("[ ") == 2
