"""Plans and commands of pairs."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats
from tests.estimator.pairs.conftest import REGISTRY
from tests.estimator.planning.conftest import plan

from deniable.protocol.mechanisms.subset_selection import SubsetSelection
from deniable_estimator.analyses.pairs import Covariance
from deniable_estimator.analyses.pairs.dependence import independence
from deniable_estimator.kinds.pairs.plan import power_of, strongest_effect
from deniable_estimator.planning.population import pair_shares, zipf_shares
from deniable_estimator.statistics.tails import chi_square_quantile, noncentral_chi_square_tail
from deniable_estimator.terminal.privacy_command import privacy


@pytest.fixture
def run(tmp_path):
    """Runs a command on that registry."""

    def run(command, *arguments, text=REGISTRY):
        path = tmp_path / "metrics.toml"
        path.write_text(text, encoding="utf-8")
        return CliRunner().invoke(command, [*arguments, "--registry", str(path)])

    return run


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
    capped = "lifetime_epsilon = 9.0\n" + REGISTRY
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


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (6, 6), (2, 5), (7, 3)])
def test_the_power_is_that_of_a_table_with_this_effect(rows, columns):
    """The quotient that plans use agrees with the test of independence, at the table with even
    margins whose Cramer's V it is."""
    even, part = (np.full(size, 1 / size) for size in (rows, columns)), 0.2
    table = pair_shares(*even, part).reshape(rows, columns)
    covariance = Covariance.of(SubsetSelection.design(rows * columns, 2.0), 300)
    test = independence(table, covariance)
    critical = chi_square_quantile(0.05, test.freedom)
    expected = noncentral_chi_square_tail(critical, test.freedom, test.statistic)
    effect = part * strongest_effect(rows, columns)
    assert 0.05 < expected < 0.99
    assert power_of(effect, rows, columns, covariance) == pytest.approx(expected)


def test_a_plan_agrees_with_itself():
    """The devices that it asks for have the power that it promises, and so has the least effect."""
    asked = {"rows": 4, "columns": 3, "epsilon": 1.0, "sample_rate": 0.5}
    made = plan("pair", **asked, devices=50_000, lifetime_epsilon=8.0)
    again = plan("pair", **asked, devices=made["devices_to_detect"])
    assert again["power"] == pytest.approx(0.8, abs=0.005)
    least = plan("pair", **asked, devices=50_000, effect=made["least_effect"])
    assert least["power"] == pytest.approx(0.8, abs=0.001)
    assert made["lifetime"]["reports"] == 8
    assert made["reports"] == 25_000


@pytest.mark.parametrize("dependence", [0.0, 0.4, 1.0])
def test_a_simulated_pair_keeps_its_margins(dependence):
    """However the two go together, each list by itself stays as it is."""
    first, second = zipf_shares(4, 1.0), zipf_shares(3, 0.5)
    table = pair_shares(first, second, dependence).reshape(4, 3)
    assert table.sum(axis=1) == pytest.approx(first)
    assert table.sum(axis=0) == pytest.approx(second)
    assert (table >= 0).all()
