"""`deniable estimate discover` as people and programs call it."""

from dataclasses import replace

import pytest
from click.testing import CliRunner

from deniable.protocol.mechanisms.prefix_tree import PrefixTree
from deniable_estimator.terminal.estimate_command import discover

from .conftest import CROWD, TOML


@pytest.fixture
def reported(registry, fill, draw):
    """Two days of reports, in the second of which nobody searched."""
    scheme = registry["terms"].scheme
    assert isinstance(scheme.mechanism, PrefixTree)
    # A registry that denies a pattern later: these devices did not know it yet.
    second = {**CROWD, "search": 5_000, "me@here": 20_000}
    for seed, crowd in ((10, CROWD), (11, second)):
        tally = draw(scheme.mechanism, crowd, seed, f"2026-11-{seed + 5}")
        fill(replace(tally, scheme=scheme.fingerprint), scheme)


@pytest.fixture
def ask(registry_file, store_url):
    """Run `deniable estimate discover terms` against the store."""

    def run(*arguments):
        place = ["--registry", str(registry_file), "--store", store_url]
        return CliRunner().invoke(discover, ["terms", *arguments, *place])

    return run


@pytest.mark.usefixtures("reported")
def test_promote_to_a_category(ask, registry_file):
    """The values of a category are proposed and not written: they change its scheme."""
    result = ask("--promote", "engine")
    assert '    "search",\n    "other",\n' in result.output
    assert '    "\\u641c\\u7d22",\n' in result.output
    assert "values = [" in result.output
    assert registry_file.read_text() == TOML
