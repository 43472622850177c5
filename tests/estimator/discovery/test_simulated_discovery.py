"""`deniable plan simulate` of a discovery, and the words that simulated devices record."""

import json

import pytest
from click.testing import CliRunner
from tests.registries import declared

from deniable import Registry
from deniable.protocol.mechanisms.prefix_tree import ALPHABETS, head
from deniable_estimator.planning.population import WORDS, made_up
from deniable_estimator.terminal.plan_command import simulate

TOML = declared(
    search={"type": "discovery", "max_length": 6, "deny": ["*@*"], "epsilon": 4.0},
)


@pytest.fixture
def registry(tmp_path):
    path = tmp_path / "metrics.toml"
    path.write_text(TOML, encoding="utf-8")
    return path


def simulated(registry, *options):
    asked = ["search", "--registry", str(registry), "--seed", "5", *options]
    done = CliRunner().invoke(simulate, asked)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_simulation_finds_the_strings(registry, tmp_path):
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


def test_simulated_devices_record_words(registry):
    """Simulated devices record words that every alphabet has."""
    values, shares, _ = made_up(Registry.load(registry)["search"])
    assert len(values) == len(WORDS) == len(set(values))
    assert shares.sum() == pytest.approx(1)
    assert all(head(word, 3, alphabet) for alphabet in ALPHABETS for word in WORDS)
