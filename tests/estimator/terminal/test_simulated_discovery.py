"""`deniable plan simulate` of a discovery, reports in a store, and fakes that push a string."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from deniable import Registry, Scheme
from deniable.mechanisms import PrefixTree
from deniable.mechanisms.prefix_code import ALPHABETS, head
from deniable_collector.tally import Tally, TallyRow
from deniable_estimator.analyses import analysis_of
from deniable_estimator.answers.finds_making import Reported, Rule, find_strings
from deniable_estimator.development.crowd import WORDS, _values
from deniable_estimator.forecasting.discovery_forecast import Reach
from deniable_estimator.statistics.participation import Participation
from deniable_estimator.terminal.simulated import simulate

TOML = """
schema = 1
app = "editor"
[metrics.search]
type = "discovery"
description = "What people search for."
owner = "growth@acme.example"
expires = 2099-06-30
max_length = 6
deny = ["*@*"]
epsilon = 4.0
lifetime_epsilon = 12.0
"""


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    path = tmp_path / "metrics.toml"
    path.write_text(TOML, encoding="utf-8")
    return path


def simulated(registry: Path, *options: str) -> str:
    asked = ["search", "--registry", str(registry), "--seed", "5", *options]
    done = CliRunner().invoke(simulate, asked)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_simulation_finds_the_strings(registry: Path, tmp_path: Path) -> None:
    """The strings of a made-up crowd are found with their true shares beside them; the denied one
    is not, and neither is one that hardly any device has, which is named as missed."""
    shares = tmp_path / "shares.csv"
    shares.write_text("weather,50\nnews,30\na@b.org,19\nrare,0.01\n", encoding="utf-8")
    options = ("--devices", "200000", "--shares", str(shares))
    document = json.loads(simulated(registry, *options, "--json"))
    assert [each["text"] for each in document["finds"]] == ["weathe", "news"]
    assert [round(each["truth"], 2) for each in document["finds"]] == [0.5, 0.3]
    assert document["finds"][0]["cut"]
    assert document["withheld"]["low"] < 0.19 < document["withheld"]["high"]
    assert [each["text"] for each in document["missed"]] == ["rare"]
    told = simulated(registry, *options)
    assert "0 of the strings are nobody's" in " ".join(told.split())
    assert "The commonest that were not found: rare" in told


def test_candidates_are_the_commonest_first(registry: Path, tmp_path: Path) -> None:
    """With --candidates the strings' shares fall as 1 / rank."""
    names = tmp_path / "names.txt"
    names.write_text("one\ntwo\n", encoding="utf-8")
    options = ("--devices", "100000", "--candidates", str(names), "--json")
    first, second = json.loads(simulated(registry, *options))["finds"]
    assert (first["text"], round(first["truth"], 1)) == ("one", 0.7)
    assert (second["text"], round(second["truth"], 1)) == ("two", 0.3)


def test_a_simulation_needs_strings(registry: Path, tmp_path: Path) -> None:
    """Without strings, with both files, or with a file that has a mistake, nothing is drawn."""
    twice = tmp_path / "twice.csv"
    twice.write_text("a,1\na,2\n", encoding="utf-8")
    for options, told in (
        ([], "say which strings devices have"),
        (["--shares", str(twice), "--zipf", "1"], "leave the others out"),
        (["--shares", str(twice)], "a second time"),
        (["--normal", "1,2"], "is not a number"),
    ):
        asked = ["search", "--registry", str(registry), "--devices", "9", *options]
        done = CliRunner().invoke(simulate, asked)
        assert done.exit_code != 0
        assert told in " ".join(done.output.split())


def test_as_many_fakes_as_forecast_put_a_string_on_the_list() -> None:
    """Fakes that pick their tables and messages make a string appear at twice the forecast number,
    and not at a third of it.

    A million devices with one common string, 3 tokens at epsilon 4, numpy's generator with seed 11.
    A third of the forecast is 1.2 standard errors of a row: a run in which it appears has a
    probability below 1%, and the seed is fixed.
    """
    code = PrefixTree.design("search", 4.0, 3)
    rng = np.random.default_rng(11)
    counts = np.array([600_000, 400_000])
    rows = analysis_of(code).sample_rows(["weather", "news"], counts, rng)
    needed = Reach.in_window(code, 1_000_000).fakes
    planes = [
        np.array([cell.column for cell in code.channel.support(code.place(row, "planted"))])
        for row in range(code.levels + 1)
    ]
    scheme = Scheme("discovery", code, ())
    for fakes, there in ((needed // 3, False), (2 * needed, True)):
        pushed = []
        for row, plane in zip(rows, planes, strict=True):
            each = fakes // len(rows)
            sent = np.bincount(rng.choice(plane, each), minlength=code.width)
            pushed.append(TallyRow(row.reports + each, row.cells + sent))
        tally = Tally("search", scheme.fingerprint, ("simulated",), tuple(pushed))
        part = Reported(tally, scheme, Participation.evenly(tally))
        found = [each.text for each in find_strings([part], Rule()).finds]
        assert ("plante" in found) is there
        assert found[:2] == ["weathe", "news"]


def test_simulated_devices_record_words(registry: Path) -> None:
    """Simulated devices record words that every alphabet has."""
    values, shares = _values(Registry.load(registry)["search"], None)
    assert len(values) == len(WORDS) == len(set(values))
    assert shares.sum() == pytest.approx(1)
    assert all(head(word, 3, alphabet) for alphabet in ALPHABETS for word in WORDS)
