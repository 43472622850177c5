"""What `deniable lint` advises on how a lifetime epsilon is divided."""

from __future__ import annotations

import dataclasses
import json
import math
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable import Metric
from deniable.commands import lint
from deniable.mechanisms import NumberRange
from deniable.types import Boolean, Category, String
from deniable.types.number import Number
from deniable_estimator.forecasting.lifetime_advice import TWOFOLD, WORTH_A_NOTE, better_split
from deniable_estimator.forecasting.lifetime_split import (
    MOST_EPSILON,
    report_variance,
    sent_reports,
)

TYPES = {
    "boolean": Boolean(),
    "category": Category(tuple("abcdefgh")),
    "string": String(),
    "mean": Number(NumberRange("0", "9"), ("mean",)),
    "distribution": Number(NumberRange("0", "9"), ("distribution",), cells=64),
}


def metric(kind: str = "boolean", **changes: Any) -> Metric:
    """A metric with epsilon 1 and lifetime 8, reported on about 8 days of 400."""
    declared = Metric("m", TYPES[kind], "d", "o", date.max, 1.0, 8.0, sample_rate=0.02)
    return dataclasses.replace(declared, **changes)


def told(found: Any) -> Any:
    """The proposal alone, without what less would do."""
    return found if found.code == "better_split" else found.arguments["told"]


@pytest.mark.parametrize("kind", TYPES)
@given(st.floats(0.05, 5), st.floats(1, 60), st.sampled_from([0.001, 0.02, 0.5, 1.0]))
@settings(max_examples=15, deadline=None)
def test_a_proposal_keeps_its_promises(
    kind: str, epsilon: float, times: float, rate: float
) -> None:
    """What is proposed fits the same lifetime and time, stays within the largest advised epsilon,
    and tells as much more as it says; no share is known less well."""
    declared = metric(kind, epsilon=epsilon, lifetime_epsilon=epsilon * times, sample_rate=rate)
    found = better_split(declared)
    if found is None:
        return
    advice = told(found).arguments
    other = dataclasses.replace(
        declared, epsilon=advice["epsilon"], sample_rate=float(advice["rate"])
    )
    exact = other.scheme.mechanism.epsilon
    assert advice["reports"] * exact <= declared.lifetime_epsilon
    assert exact <= MOST_EPSILON
    assert advice["times"] >= WORTH_A_NOTE
    windows = max(advice["now"], round(advice["now"] / rate))
    assert float(advice["rate"]) * windows == pytest.approx(advice["reports"], rel=0.006)

    def tells(each: Metric, reports: int, share: float) -> float:
        variance = report_variance(each.scheme.mechanism, share)
        return sent_reports(reports, min(1.0, reports / windows), windows) / variance.total

    gains = [
        tells(other, advice["reports"], share) / tells(declared, advice["now"], share)
        for share in (0.01, 0.1, 0.5)
    ]
    assert gains[0] == pytest.approx(advice["times"], rel=1e-9)
    assert min(gains) >= 1 - 1e-9
    assert advice["belief"] >= 100 / (1 + math.exp(-exact))
    if found is not told(found):
        less = found.arguments
        assert less["lifetime"] < declared.lifetime_epsilon
        assert less["epsilon"] <= min(MOST_EPSILON, less["lifetime"])


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 2.66, "sample_rate": 0.0075},
        {"epsilon": 8.0},
        {"epsilon": 3.0, "lifetime_epsilon": 30.0},
        {"longitudinal": "memoize"},
        {"answer": "at_once", "aggregate": "first"},
        {"epsilon": 1.0, "lifetime_epsilon": 1.9},
    ],
)
def test_nothing_is_advised_where_nothing_is_better(changes: dict[str, Any]) -> None:
    """A split that is good, a single report, memos, and visitors who report at once get none."""
    assert better_split(metric(**changes)) is None


def test_a_cap_of_the_registry_limits_the_proposal() -> None:
    """With a cap below the metric's lifetime, the proposal fits the cap."""
    found = better_split(metric(), 2.0)
    assert found is not None
    assert told(found).arguments["epsilon"] * told(found).arguments["reports"] <= 2.0
    assert better_split(metric(), 1.5) is None


def test_a_mechanism_with_one_epsilon_gets_no_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the named mechanism cannot be designed at another epsilon, there is no proposal."""
    from deniable import SchemeError

    declared = metric()
    before = Boolean.design

    def only(self: Boolean, mechanism: str, name: str, epsilon: float) -> Any:
        if epsilon != 1.0:
            raise SchemeError("no")
        return before(self, mechanism, name, epsilon)

    monkeypatch.setattr(Boolean, "design", only)
    assert better_split(declared) is None


@pytest.mark.parametrize(("epsilon", "severity"), [(1.0, "warning"), (2.0, "note"), (2.66, "")])
def test_lint_warns_where_twice_as_much_can_be_told(
    tmp_path: Path, epsilon: float, severity: str
) -> None:
    """At least twofold is a warning, at least 1.5 times a note, and less is not mentioned."""
    path = tmp_path / "metrics.toml"
    path.write_text(
        'schema = 1\napp = "example"\n[metrics.m]\ntype = "category"\ndescription = "d"\n'
        'owner = "o"\nexpires = 2099-01-01\nvalues = ["a", "b", "c", "d", "e"]\n'
        f"epsilon = {epsilon}\nlifetime_epsilon = 8.0\nsample_rate = 0.02\n",
        encoding="utf-8",
    )
    done = CliRunner().invoke(lint, [str(path), "--json"])
    assert done.exit_code == 0
    found = [each["severity"] for each in json.loads(done.stdout)["problems"]]
    assert found == ([severity] if severity else [])
    assert TWOFOLD > WORTH_A_NOTE > 1
