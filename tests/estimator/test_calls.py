"""What the commands about a metric refuse before they read a store."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from tests.registries import declared

from deniable.tools.command_line import find


@pytest.mark.parametrize("command", ["estimate", "estimate trend", "estimate anomalies"])
@pytest.mark.parametrize("given", ["--from 0001-01-01", "--to 9999-12-31"])
def test_days_of_the_first_and_the_last_year_are_refused(command, given, registry_file):
    """Their windows may have none before or after them; the message says which days there are."""
    asked = ["browser", "--registry", str(registry_file), *given.split()]
    done = CliRunner().invoke(find(*command.split()), asked)
    assert done.exit_code == 2
    assert "Days from 0002-01-01 to 9998-12-31 can be asked for" in done.output


def test_a_crowd_that_leaves_windows_empty_is_not_simulated(tmp_path):
    """Of a retention whole windows would be missing, and what is said of the others would be
    wrong."""
    path = tmp_path / "metrics.toml"
    path.write_text(declared(back={"type": "retention", "lifetime_epsilon": 4.0}))
    asked = ["back", "--registry", str(path), "--seed", "3", "--devices"]
    refused = CliRunner().invoke(find("plan", "simulate"), [*asked, "2"])
    assert refused.exit_code == 2
    assert "with so few devices some windows have no report: simulate more" in refused.output
    assert CliRunner().invoke(find("plan", "simulate"), [*asked, "200"]).exit_code == 0
