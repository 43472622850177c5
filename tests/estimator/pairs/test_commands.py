"""Plans and commands of pairs."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats
from tests.estimator.pairs.conftest import REGISTRY

from deniable.protocol.errors import SchemeError
from deniable_estimator.planning.pairs import dependent_table, plan_pair
from deniable_estimator.planning.population import pair_shares, zipf_shares
from deniable_estimator.statistics.tails import chi_square_quantile, noncentral_chi_square_tail
from deniable_estimator.terminal.privacy_command import privacy
from deniable_estimator.terminal.simulated import simulate


@pytest.fixture
def run(tmp_path):
    """Runs a command on that registry."""

    def run(command, *arguments, text=REGISTRY):
        path = tmp_path / "metrics.toml"
        path.write_text(text, encoding="utf-8")
        return CliRunner().invoke(command, [*arguments, "--registry", str(path)])

    return run


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("free,3\n", "value,value,weight"),
        ("free,yes,3\n", "names 'yes'"),
        ("free,true,-1\n", "weight"),
        ("free,true,1\nfree,true,1\n", "names 'free' with 'true' a second time"),
        ("free,true,0\n", "no cell a weight above 0"),
    ],
)
def test_a_broken_file_of_cells(run, tmp_path, lines, why):
    """Each mistake in a file of cells is named with its line."""
    path = tmp_path / "cells.csv"
    path.write_text(lines, encoding="utf-8")
    refused = run(simulate, "plan_by_mode", "--devices", "9", "--shares", str(path))
    assert refused.exit_code == 1
    assert why in refused.output


def test_privacy_adds_up(run):
    """The label of a pair, and of each of its metrics, says what all reports about the same values
    reveal together; a cap bounds it, and forgotten ones show the figures of the pair."""
    names = ("plan", "dark_mode", "plan_by_mode")
    of_plan, of_mode, of_pair = (json.loads(run(privacy, each, "--json").output) for each in names)
    assert of_pair["same_values"]["metrics"] == [*names]
    assert of_pair["same_values"]["epsilon"] == pytest.approx(3.5)
    assert of_plan["same_values"]["epsilon"] == pytest.approx(3.0)
    for span in ("typical_year", "worst_year", "lifetime"):
        expected = sum(each[span]["epsilon"] for each in (of_plan, of_mode, of_pair))
        assert of_pair["same_values"][span]["epsilon"] == pytest.approx(expected), span
    capped = "lifetime_epsilon = 9.0\n" + REGISTRY.lstrip()
    least = json.loads(run(privacy, "plan", "--json", text=capped).output)
    assert least["same_values"]["lifetime"]["epsilon"] == pytest.approx(9.0)
    whole = json.loads(run(privacy, "--json", text=REGISTRY + 'forget = "marginals"\n').output)
    assert [each["metric"] for each in whole["metrics"]] == ["plan_by_mode"]
    assert whole["report"]["epsilon"] == pytest.approx(2.0)


@pytest.mark.parametrize("freedom", [1, 841])
@pytest.mark.parametrize("noncentrality", [0.0, 7.0, 1e12])
def test_the_tail_is_that_of_scipy(freedom, noncentrality):
    """The critical value and the tail beyond it agree with scipy's."""
    critical = chi_square_quantile(0.05, freedom)
    assert critical == pytest.approx(stats.chi2.isf(0.05, freedom))
    expected = stats.ncx2.sf(critical, freedom, noncentrality) if noncentrality else 0.05
    found = noncentral_chi_square_tail(critical, freedom, noncentrality)
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("rows", "columns"), [(2, 5), (7, 3)])
def test_the_assumed_table_has_its_effect(rows, columns):
    """Its margins are even, and its Cramer's V is what was said."""
    table = dependent_table(rows, columns, 0.3)
    assert table.sum(axis=1) == pytest.approx(1 / rows)
    assert table.sum(axis=0) == pytest.approx(1 / columns)
    even = 1 / (rows * columns)
    phi2 = ((table - even) ** 2 / even).sum()
    assert np.sqrt(phi2 / (min(rows, columns) - 1)) == pytest.approx(0.3)


def test_a_plan_agrees_with_itself():
    """The devices that it asks for have the power that it promises, and so has the least effect."""
    plan = plan_pair(4, 3, 1.0, 50_000, effect=0.1, sample_rate=0.5, lifetime_epsilon=8.0)
    assert plan.devices_to_detect is not None
    again = plan_pair(4, 3, 1.0, plan.devices_to_detect, effect=0.1, sample_rate=0.5)
    assert again.power == pytest.approx(0.8, abs=0.005)
    assert plan.least_effect is not None
    least = plan_pair(4, 3, 1.0, 50_000, effect=plan.least_effect, sample_rate=0.5)
    assert least.power == pytest.approx(0.8, abs=0.001)
    assert plan.lifetime is not None
    assert plan.lifetime.reports == 8
    assert plan.reports == 25_000


@pytest.mark.parametrize(
    ("rows", "columns", "effect", "why"),
    [
        (1, 5, 0.1, "at least two values"),
        (31, 30, 0.1, "above the limit of 900"),
        (2, 9, 1.0, "at most"),
    ],
)
def test_what_cannot_be_planned(rows, columns, effect, why):
    """One value, too many cells, and an effect that two lists cannot have are refused."""
    with pytest.raises(SchemeError, match=why):
        plan_pair(rows, columns, 1.0, 1000, effect=effect)


@pytest.mark.parametrize("dependence", [0.0, 0.4, 1.0])
def test_a_simulated_pair_keeps_its_margins(dependence):
    """However the two go together, each list by itself stays as it is."""
    first, second = zipf_shares(4, 1.0), zipf_shares(3, 0.5)
    table = pair_shares(first, second, dependence).reshape(4, 3)
    assert table.sum(axis=1) == pytest.approx(first)
    assert table.sum(axis=0) == pytest.approx(second)
    assert (table >= 0).all()
